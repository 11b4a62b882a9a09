//! `hg_checksum_*`: incremental checksums.

use crate::boundary::{self, array, array_mut, export, guard};
use portolan_base::error::{Result, fail};
use portolan_rpc::checksum::{Checksum, Method};
use std::os::raw::{c_char, c_int, c_void};

pub(crate) type HgChecksum = *mut Checksum;

/// `HG_UTIL_FAIL`, returned for every error.
const FAIL: c_int = -1;

fn run(call: &'static str, body: impl FnOnce() -> Result<()>) -> c_int {
    guard(call, |_| FAIL, || body().map(|()| 0))
}

/// # Safety
/// `checksum` must be null or live.
unsafe fn known<'a>(checksum: HgChecksum) -> Result<&'a mut Checksum> {
    // SAFETY: the caller guarantees that `checksum` is null or live.
    match unsafe { checksum.as_mut() } {
        Some(checksum) => Ok(checksum),
        None => fail!(Handle, "the checksum is HG_CHECKSUM_NULL"),
    }
}

export! {
    /// `hash_method` must be null or a terminated string, `checksum` null or valid for a write.
    hg_checksum_init(hash_method: *const c_char, checksum: *mut HgChecksum) -> c_int = run(|| {
        // SAFETY: the caller guarantees that `hash_method` is null or a terminated string.
        let name = unsafe { boundary::text(hash_method) };
        let method = match Method::from_name(&name) {
            Some(method) if method != Method::None => method,
            _ => {
                fail!(Argument, "unknown method '{name}'; expected crc16, crc32c, crc64 or adler32")
            }
        };
        if checksum.is_null() {
            fail!(Argument, "the pointer to the checksum is null");
        }
        // SAFETY: `checksum` is not null, so the caller guarantees that it is valid for a write.
        unsafe { *checksum = Box::into_raw(Box::new(Checksum::new(method))) };
        Ok(())
    });

    /// `checksum` must be null, or come from `hg_checksum_init` and not be used afterwards.
    hg_checksum_destroy(checksum: HgChecksum) -> c_int = run(|| {
        // SAFETY: `known` refuses null. `hg_checksum_init` has boxed any other checksum.
        unsafe { drop(Box::from_raw(known(checksum)?)) };
        Ok(())
    });

    hg_checksum_reset(checksum: HgChecksum) -> c_int = run(|| {
        // SAFETY: the caller guarantees that `checksum` is null or live.
        unsafe { known(checksum) }?.reset();
        Ok(())
    });

    hg_checksum_get_size(checksum: HgChecksum) -> usize =
        // SAFETY: the caller guarantees that `checksum` is null or live.
        guard(|_| 0, || Ok(unsafe { known(checksum) }?.method().size()));

    /// `checksum` must be null or live. `buf` must be null or valid for writes of `size` bytes.
    hg_checksum_get(
        checksum: HgChecksum, buf: *mut c_void, size: usize, finalize: c_int,
    ) -> c_int = run(|| {
        // SAFETY: the caller guarantees that `checksum` is null or live.
        let checksum = unsafe { known(checksum) }?;
        let needed = checksum.method().size();
        // SAFETY: the caller guarantees that `buf` is null or has `size` bytes.
        let buf = unsafe { array_mut(buf.cast::<u8>(), size, "the buffer") }?;
        let Some((value, rest)) = buf.split_at_mut_checked(needed) else {
            fail!(Argument, "the value has {needed} bytes, but the buffer has {size}");
        };
        value.copy_from_slice(&checksum.bytes()[..needed]);
        if finalize != 0 {
            rest.fill(0);
        }
        Ok(())
    });

    /// `checksum` must be null or live. `data` must be null or valid for reads of `size` bytes.
    hg_checksum_update(checksum: HgChecksum, data: *const c_void, size: usize) -> c_int = run(|| {
        // SAFETY: the caller guarantees that `checksum` is null or live.
        let checksum = unsafe { known(checksum) }?;
        // SAFETY: the caller guarantees that `data` is null or has `size` bytes.
        checksum.update(unsafe { array(data.cast(), size, "the data") }?);
        Ok(())
    });
}
