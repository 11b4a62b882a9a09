//! Calls of our own, declared in `include/portolan.h`.

use super::boundary::{self, array, code};
use crate::error::fail;
use crate::runtime;
use std::os::raw::{c_char, c_int, c_void};

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

/// Allocates `count` segments over all ranks, segment `n` of `bytes[n]` bytes on this rank, in
/// about the time of one; `ptrs[n * ranks + p]` is the address of segment `n` at rank `p`, null
/// where it has no bytes. Collective over all ranks.
///
/// # Safety
/// `bytes` must be valid for `count` numbers, and `ptrs` for an address for each segment and rank.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn portolan_malloc_many(
    count: c_int,
    bytes: *const usize,
    ptrs: *mut *mut c_void,
) -> c_int {
    code("portolan_malloc_many", |engine| {
        let asked = || {
            let Ok(count) = usize::try_from(count) else {
                fail!(Argument, "{count} segments");
            };
            if ptrs.is_null() && count > 0 {
                fail!(Argument, "the array for the pointers is null");
            }
            // SAFETY: the caller vouches for the array.
            unsafe { array(bytes, count, "the array of the lengths") }
        };
        let segments = engine.allocate_many(engine.world(), asked())?;
        for (n, segment) in segments.iter().enumerate() {
            for (rank, part) in segment.parts().enumerate() {
                let at = ptrs.wrapping_add(n * engine.size() + rank);
                // SAFETY: the caller vouches for the array.
                unsafe { at.write(part.address() as *mut c_void) };
            }
        }
        Ok(())
    })
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
