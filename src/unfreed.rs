//! Warnings about segments, arrays and mutexes that were dropped without being freed.
//!
//! An error that leaves the program's body drops its segments before the error is printed. The
//! warning is therefore delayed until the next allocation, barrier or end of the runtime, or until
//! the process exits. If an error ends the job, nothing is logged.

use parking_lot::Mutex;
use std::sync::Once;

static UNFREED: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[cold]
pub(crate) fn note(what: String) {
    static ONCE: Once = Once::new();
    // SAFETY: `atexit` may be called at any time, and `at_exit` takes no argument.
    ONCE.call_once(|| unsafe {
        libc::atexit(at_exit);
    });
    UNFREED.lock().push(what);
}

extern "C" fn at_exit() {
    warn();
}

pub(crate) fn warn() {
    if portolan_base::process::is_forked() {
        return;
    }
    let noted = match UNFREED.try_lock() {
        Some(mut unfreed) if !unfreed.is_empty() => std::mem::take(&mut *unfreed),
        _ => return,
    };
    for what in noted {
        log::warn!(
            "{what} was dropped without being freed; its memory is released when the runtime ends"
        );
    }
}

/// Discards the warnings, because an error ends the job.
pub(crate) fn forget() {
    UNFREED.lock().clear();
}
