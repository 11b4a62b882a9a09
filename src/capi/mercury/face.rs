//! Where a call of C enters: panics stop, failures become codes.

use crate::capi::boundary;
use crate::rpc::failure::{Failure, Result, Status, refuse};
use std::cell::Cell;
use std::os::raw::{c_char, c_int, c_uint};
use std::time::Duration;

/// `HG_MAX_IDLE_TIME` and `NA_MAX_IDLE_TIME`: an hour, in milliseconds.
const LONGEST: c_uint = 3600 * 1000;

/// Runs a body; its failure is kept as the thread's last error, logged unless it is an
/// expected one, and mapped by `failed`.
#[inline]
pub(super) fn value<R>(
    call: &'static str,
    failed: impl FnOnce(Status) -> R,
    body: impl FnOnce() -> Result<R>,
) -> R {
    let status = Cell::new(Status::FAIL);
    boundary::guard(
        call,
        |error| {
            let status = status.get();
            if !matches!(status, Status::TIMEOUT | Status::CANCELED | Status::AGAIN) {
                boundary::reported(error);
            }
            failed(status)
        },
        || {
            body().map_err(|failure| {
                status.set(failure.status);
                failure.into()
            })
        },
    )
}

/// A call that returns a code.
#[inline]
pub(super) fn code(call: &'static str, body: impl FnOnce() -> Result<()>) -> c_int {
    value(call, |status| status.0, || body().map(|()| 0))
}

/// A time-out of C.
pub(super) fn timeout(milliseconds: c_uint) -> Duration {
    // The longest one of C is "for ever", as near as programs ask for it.
    Duration::from_millis(u64::from(milliseconds.min(LONGEST)))
}

/// A string of C.
///
/// # Errors
/// `INVALID_ARG` for null, or bytes that are no UTF-8.
///
/// # Safety
/// `text` must be null or a terminated string.
pub(super) unsafe fn text(text: *const c_char, what: &str) -> Result<String> {
    if text.is_null() {
        refuse!(INVALID_ARG, "the {what} is null");
    }
    // SAFETY: the caller vouches for the string.
    let text = unsafe { std::ffi::CStr::from_ptr(text) };
    match text.to_str() {
        Ok(text) => Ok(text.to_string()),
        Err(_) => refuse!(INVALID_ARG, "the {what} is not UTF-8"),
    }
}

/// A place for a result; null is an error.
///
/// # Safety
/// `place` must be null or valid for writes.
pub(super) unsafe fn place<'a, T>(place: *mut T, what: &str) -> Result<&'a mut T> {
    // SAFETY: the caller vouches for the place.
    unsafe { place.as_mut() }.ok_or_else(|| {
        Failure::new(Status::INVALID_ARG, format!("there is no place for the {what}: it is null"))
    })
}

/// A place for a result that is not wanted where it is null or 1.
///
/// # Safety
/// `place` must be null, 1, or valid for writes.
pub(super) unsafe fn maybe<'a, T>(place: *mut T) -> Option<&'a mut T> {
    if place as usize <= 1 {
        return None;
    }
    // SAFETY: the caller vouches for the place.
    unsafe { place.as_mut() }
}

/// Bytes of C.
///
/// # Errors
/// `INVALID_ARG` for null with bytes.
///
/// # Safety
/// The bytes must be valid for reads for `'a`.
pub(super) unsafe fn bytes<'a, T>(at: *const T, count: usize, what: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if at.is_null() {
        refuse!(INVALID_ARG, "{count} {what} are at the null address");
    }
    // SAFETY: the caller vouches for them.
    Ok(unsafe { std::slice::from_raw_parts(at, count) })
}

/// Copies a text with its terminating zero into a buffer of C.
///
/// # Errors
/// `OVERFLOW` where it does not fit.
///
/// # Safety
/// `buf` must be null or valid for writes of `size` bytes.
pub(super) unsafe fn put_text(buf: *mut c_char, size: usize, text: &str) -> Result<()> {
    if buf.is_null() {
        refuse!(INVALID_ARG, "there is no place for the text: the buffer is null");
    }
    if text.len() >= size {
        refuse!(OVERFLOW, "'{text}' needs {} bytes, the buffer has {size}", text.len() + 1);
    }
    // SAFETY: the buffer has room for the text and its zero.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), buf.cast(), text.len());
        *buf.add(text.len()) = 0;
    }
    Ok(())
}
