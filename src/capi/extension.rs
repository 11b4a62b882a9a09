//! Calls of our own, declared in `include/portolan.h`.

use super::boundary;
use crate::runtime;
use std::os::raw::{c_char, c_int};

/// The path from this rank to ordinary memory of `target`: `"direct"`, `"rma"`
/// or `"message"`; null for a rank outside the job or before start.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn portolan_path_name(target: c_int) -> *const c_char {
    let name = || {
        let engine = runtime::current().ok()?;
        let target = usize::try_from(target).ok().filter(|&t| t < engine.size())?;
        Some(match engine.path_between(engine.rank(), target).name() {
            "direct" => c"direct",
            "rma" => c"rma",
            _ => c"message",
        })
    };
    name().map_or(std::ptr::null(), |name| name.as_ptr())
}

/// The library's version, as `MAJOR.MINOR.PATCH`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn portolan_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The text of this thread's last error, empty where there was none. Valid until
/// the thread's next failing call.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn portolan_last_error() -> *const c_char {
    boundary::last_error()
}
