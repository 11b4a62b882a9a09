//! The acquisition of more data (`HG_CORE_MORE_DATA` of 2.4), and the program's callbacks for it.

use crate::mercury::table::Token;
use parking_lot::Mutex;
use portolan_rpc::failure::Status;
use std::os::raw::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

/// The library's function, which the program calls when the data is acquired.
pub(crate) type Done = Option<unsafe extern "C" fn(Token, c_int)>;
/// Acquires the rest of the data of a handle.
pub(crate) type Acquire = Option<unsafe extern "C-unwind" fn(Token, c_int, Done) -> c_int>;
pub(crate) type Release = Option<unsafe extern "C-unwind" fn(Token)>;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Callbacks {
    pub acquire: Acquire,
    pub release: Release,
}

type Then = Box<dyn FnOnce(Status) + Send>;

#[derive(Default)]
pub(crate) struct Acquisition {
    pub then: Mutex<Option<Then>>,
    /// The release callback has to run.
    pub acquired: AtomicBool,
}

impl std::fmt::Debug for Acquisition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Acquisition").field("acquired", &self.acquired).finish_non_exhaustive()
    }
}

impl Acquisition {
    pub(crate) fn is_under_way(&self) -> bool {
        self.then.lock().is_some()
    }

    /// Returns whether the release callback has to run, and records that it runs.
    pub(crate) fn take_acquired(&self) -> bool {
        self.acquired.load(Ordering::Acquire) && self.acquired.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn is_acquired(&self) -> bool {
        self.acquired.load(Ordering::Acquire)
    }
}
