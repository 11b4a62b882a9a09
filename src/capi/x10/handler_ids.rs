//! The numbers of the engine's handlers, between the start of X10Lib and its end.

use crate::am::HandlerId;
use crate::error::{Result, fail};
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of a handler, plus one.
#[derive(Debug)]
pub(super) struct Known(AtomicU32);

/// Asyncs, one message each.
pub(super) static SPAWN: Known = Known(AtomicU32::new(0));
/// Batches of asyncs.
pub(super) static BATCHES: Known = Known(AtomicU32::new(0));

impl Known {
    /// Its number.
    ///
    /// # Errors
    /// `State` outside X10Lib's life.
    pub(super) fn id(&self) -> Result<HandlerId> {
        match u16::try_from(self.0.load(Ordering::Acquire).wrapping_sub(1)) {
            Ok(id) => Ok(HandlerId(id)),
            Err(_) => fail!(State, "X10Lib is not initialised, or was finalised already"),
        }
    }

    /// Notes it, or forgets it.
    pub(super) fn set(&self, id: Option<HandlerId>) {
        self.0.store(id.map_or(0, |id| u32::from(id.0) + 1), Ordering::Release);
    }
}
