//! The engine's ids for X10Lib's handlers, from the start of X10Lib to its end.

use portolan_base::error::{Result, fail};
use portolan_engine::am::HandlerId;
use std::sync::atomic::{AtomicU32, Ordering};

/// The id of a handler plus one, or 0 if it is not registered.
#[derive(Debug)]
pub(super) struct Known(AtomicU32);

pub(super) static SPAWN: Known = Known(AtomicU32::new(0));
pub(super) static BATCHES: Known = Known(AtomicU32::new(0));

impl Known {
    /// Fails with `State` unless X10Lib is initialised.
    pub(super) fn id(&self) -> Result<HandlerId> {
        match u16::try_from(self.0.load(Ordering::Acquire).wrapping_sub(1)) {
            Ok(id) => Ok(HandlerId(id)),
            Err(_) => fail!(State, "X10Lib is not initialised, or was finalised already"),
        }
    }

    pub(super) fn set(&self, id: Option<HandlerId>) {
        self.0.store(id.map_or(0, |id| u32::from(id.0) + 1), Ordering::Release);
    }
}
