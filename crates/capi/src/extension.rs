//! Portolan's own calls, declared in `include/portolan.h`.

use super::boundary::{self, array, code, export};
use portolan_base::error::fail;
use portolan_engine::memory::segment::Purpose;
use portolan_engine::runtime;
use std::os::raw::{c_char, c_int, c_void};

export! {
    portolan_path_name(target: c_int) -> *const c_char {
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

    /// `bytes` must have `count` numbers; `ptrs` must have room for `count` times the number of
    /// ranks.
    portolan_malloc_many(
        count: c_int, bytes: *const usize, ptrs: *mut *mut c_void,
    ) -> c_int = code(|engine| {
        let asked = || {
            let Ok(count) = usize::try_from(count) else {
                fail!(Argument, "{count} segments");
            };
            if ptrs.is_null() && count > 0 {
                fail!(Argument, "the array for the pointers is null");
            }
            // SAFETY: by this function's contract, `bytes` has `count` elements.
            unsafe { array(bytes, count, "the array of the lengths") }
        };
        let segments = engine.allocate_many(Purpose::Addresses, engine.world(), asked())?;
        for (n, segment) in segments.into_iter().enumerate() {
            for (rank, part) in segment.parts().enumerate() {
                let at = ptrs.wrapping_add(n * engine.size() + rank);
                // SAFETY: by contract, `ptrs` has an element for each segment and rank.
                unsafe { at.write(part.address() as *mut c_void) };
            }
            engine.release_if_empty(segment)?;
        }
        Ok(())
    });

    portolan_version() -> *const c_char { concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast() }

    portolan_last_error() -> *const c_char { boundary::last_error() }
}
