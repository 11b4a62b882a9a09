//! `hg_checksum_*`: checksums that accumulate.

use crate::capi::boundary::{self, guard};
use crate::error::{Result, fail};
use crate::rpc::checksum::{Checksum, Method};
use std::os::raw::{c_char, c_int, c_void};

/// `hg_checksum_t`.
pub(crate) type HgChecksum = *mut Checksum;

/// `HG_UTIL_FAIL`, for any error.
const FAIL: c_int = -1;

fn run(call: &'static str, body: impl FnOnce() -> Result<()>) -> c_int {
    guard(call, |_| FAIL, || body().map(|()| 0))
}

/// # Safety
/// `checksum` must be null or live.
unsafe fn known<'a>(checksum: HgChecksum) -> Result<&'a mut Checksum> {
    // SAFETY: the caller's promise.
    match unsafe { checksum.as_mut() } {
        Some(checksum) => Ok(checksum),
        None => fail!(Handle, "the checksum is HG_CHECKSUM_NULL"),
    }
}

/// Makes a checksum; the method is given by name.
///
/// # Safety
/// `hash_method` must be null or a terminated string, `checksum` null or valid for a
/// write.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_checksum_init(
    hash_method: *const c_char,
    checksum: *mut HgChecksum,
) -> c_int {
    run("hg_checksum_init", || {
        // SAFETY: the caller's promise.
        let name = unsafe { boundary::text(hash_method) };
        let method = match Method::from_name(&name) {
            Some(method) if method != Method::None => method,
            _ => fail!(Argument, "no method '{name}': crc16, crc32c, crc64 and adler32 there are"),
        };
        if checksum.is_null() {
            fail!(Argument, "there is no place for the checksum");
        }
        // SAFETY: the caller's promise.
        unsafe { *checksum = Box::into_raw(Box::new(Checksum::new(method))) };
        Ok(())
    })
}

/// Destroys a checksum.
///
/// # Safety
/// It must be null, or come from `hg_checksum_init` and be used no more.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_checksum_destroy(checksum: HgChecksum) -> c_int {
    run("hg_checksum_destroy", || {
        // SAFETY: the caller's promise.
        unsafe { drop(Box::from_raw(known(checksum)?)) };
        Ok(())
    })
}

/// Starts again.
///
/// # Safety
/// `checksum` must be null or live.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_checksum_reset(checksum: HgChecksum) -> c_int {
    run("hg_checksum_reset", || {
        // SAFETY: the caller's promise.
        unsafe { known(checksum) }?.reset();
        Ok(())
    })
}

/// Bytes of the value.
///
/// # Safety
/// `checksum` must be null or live.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_checksum_get_size(checksum: HgChecksum) -> usize {
    // SAFETY: the caller's promise.
    guard("hg_checksum_get_size", |_| 0, || Ok(unsafe { known(checksum) }?.method().size()))
}

/// Copies the value; with `finalize`, zeros behind it.
///
/// # Safety
/// `checksum` must be null or live; `buf` must be valid for writes of `size` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_checksum_get(
    checksum: HgChecksum,
    buf: *mut c_void,
    size: usize,
    finalize: c_int,
) -> c_int {
    run("hg_checksum_get", || {
        // SAFETY: the caller's promise.
        let checksum = unsafe { known(checksum) }?;
        let needed = checksum.method().size();
        if buf.is_null() || size < needed {
            fail!(Argument, "the value has {needed} bytes, there is room for {size} at {buf:?}");
        }
        // SAFETY: the caller's promise; `needed` is at most `size` and 8.
        unsafe {
            let buf = buf.cast::<u8>();
            std::ptr::copy_nonoverlapping(checksum.bytes().as_ptr(), buf, needed);
            if finalize != 0 {
                buf.add(needed).write_bytes(0, size - needed);
            }
        }
        Ok(())
    })
}

/// Takes in further data.
///
/// # Safety
/// `checksum` must be null or live; `data` must be valid for reads of `size` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_checksum_update(
    checksum: HgChecksum,
    data: *const c_void,
    size: usize,
) -> c_int {
    run("hg_checksum_update", || {
        // SAFETY: the caller's promise.
        let checksum = unsafe { known(checksum) }?;
        if size == 0 {
            return Ok(());
        }
        if data.is_null() || size > isize::MAX as usize {
            fail!(Argument, "{size} bytes at {data:?} make no sense");
        }
        // SAFETY: the caller's promise.
        checksum.update(unsafe { std::slice::from_raw_parts(data.cast(), size) });
        Ok(())
    })
}
