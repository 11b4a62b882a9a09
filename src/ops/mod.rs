//! Operations on segments, and their order.
//!
//! | module | owns |
//! |---|---|
//! | `order` | the change of path, fences, waits without handles |
//! | `told` | what operations tell the observer |
//! | `segments` | making and unmaking segments and groups |
//! | [`crate::transfer`] | put, get, accumulate |
//! | [`crate::atomics`] | read-modify-write, mutexes, notify flags |

mod order;
mod segments;
pub(crate) mod told;

use crate::atomics::mutex::serve::Mutexes;
use crate::path::Transport;
use std::ops::Deref;

/// The layer of the operations.
#[derive(Debug)]
pub struct Ops {
    transport: Transport,
    pub(crate) mutexes: Mutexes,
}

impl Deref for Ops {
    type Target = Transport;

    #[inline]
    fn deref(&self) -> &Transport {
        &self.transport
    }
}

impl Ops {
    /// On these paths.
    pub fn new(transport: Transport) -> Ops {
        Ops { transport, mutexes: Mutexes::default() }
    }

    /// Has requests of other ranks served.
    ///
    /// # Safety
    /// As for [`crate::core::above::Above::set`].
    pub(crate) unsafe fn register_services(&self) {
        if let Ok(two_sided) = self.two_sided() {
            // SAFETY: passed on from the caller.
            unsafe { two_sided.services().register(&Mutexes::KINDS, &self.mutexes) };
        }
    }
}

crate::wait::progress_by_deref!(Ops);
