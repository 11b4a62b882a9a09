//! Operations on segments, and their order. [`crate::transfer`] and [`crate::atomics`] contain
//! further methods of [`Ops`].

mod order;
mod segments;
pub mod traced;

use crate::path::Paths;
use crate::path::mutex_service::Mutexes;
use portolan_base::error::{Result, fail};
use std::ops::Deref;

#[inline]
pub(crate) fn check_local(local: *const u8) -> Result<()> {
    if local.is_null() {
        fail!(Argument, "null local address for a transfer of bytes");
    }
    Ok(())
}

#[derive(Debug)]
pub struct Ops {
    paths: Paths,
    pub mutexes: Mutexes,
}

impl Deref for Ops {
    type Target = Paths;

    #[inline]
    fn deref(&self) -> &Paths {
        &self.paths
    }
}

impl Ops {
    pub fn new(paths: Paths) -> Ops {
        Ops { paths, mutexes: Mutexes::default() }
    }

    /// # Safety
    /// See [`crate::core::upper_layer::UpperLayer::set`].
    pub(crate) unsafe fn register_services(&self) {
        if let Ok(two_sided) = self.two_sided() {
            // SAFETY: the caller guarantees the requirements of `UpperLayer::set`.
            unsafe { two_sided.services().register(&Mutexes::KINDS, &self.mutexes) };
        }
    }
}

crate::core::progress_by_deref!(Ops);
