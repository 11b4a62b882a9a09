//! Where a call of C enters: panics stop, failures become codes.

use crate::capi::boundary;
use crate::rpc::failure::{Failure, Result, Status, refuse};
use parking_lot::Mutex;
use std::cell::Cell;
use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_uint, c_void};
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
    let text = unsafe { CStr::from_ptr(text) };
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

/// Copies bytes into a buffer of C.
///
/// # Safety
/// `buf` must be null or valid for writes of `size` bytes.
pub(super) unsafe fn put_bytes(buf: *mut c_void, size: u64, from: &[u8]) -> Result<()> {
    if buf.is_null() {
        refuse!(INVALID_ARG, "there is no place for the bytes: the buffer is null");
    }
    if from.len() as u64 > size {
        refuse!(OVERFLOW, "{} bytes are needed, the buffer has {size}", from.len());
    }
    // SAFETY: the buffer has room.
    unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), buf.cast(), from.len()) };
    Ok(())
}

/// Says how a wait ended.
pub(super) fn report(
    waited: Result<bool>,
    status: Option<&mut u8>,
    milliseconds: c_uint,
) -> Result<()> {
    let ended = !matches!(waited, Ok(false));
    match status {
        Some(status) => *status = u8::from(ended),
        None if !ended => {
            refuse!(TIMEOUT, "the operation has not ended in {milliseconds} ms");
        }
        None => {}
    }
    waited.map(|_| ())
}

/// The name of a code and its meaning, as C has it, under the prefix of its interface.
pub(super) fn error_text(status: Status, prefix: &str) -> &'static CStr {
    static TEXTS: Mutex<Vec<(Status, bool, &'static CStr)>> = Mutex::new(Vec::new());
    let na = prefix == "NA_";
    let mut texts = TEXTS.lock();
    if let Some((.., text)) = texts.iter().find(|(s, n, _)| *s == status && *n == na) {
        return text;
    }
    if texts.len() > 1000 {
        return c"another status";
    }
    let text = match status.name() {
        "OTHER" => format!("{}: {}", status.0, status.meaning()),
        name => format!("{prefix}{name}: {}", status.meaning()),
    };
    let text = std::ffi::CString::new(text).unwrap_or_default();
    // As many texts as there are statuses; C keeps no count of a text's holders.
    let text: &'static CStr = Box::leak(text.into_boxed_c_str());
    texts.push((status, na, text));
    text
}
