//! Entry points from C: failures become codes, and a panic ends the process.

use crate::boundary;
use parking_lot::Mutex;
use portolan_rpc::failure::{Failure, Result, Status, refuse};
use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::CStr;
use std::os::raw::{c_char, c_uint, c_void};
use std::time::{Duration, Instant};

/// `HG_MAX_IDLE_TIME` and `NA_MAX_IDLE_TIME`: one hour, in milliseconds.
const MAX_TIMEOUT: c_uint = 3600 * 1000;

/// The unreachable peers that were logged last: the text of the error, which names the call and the
/// address, and the time.
static UNREACHABLE: Mutex<VecDeque<(String, Instant)>> = Mutex::new(VecDeque::new());
const MOST_UNREACHABLE: usize = 64;
/// Time after which an unreachable peer is logged again.
const QUIET: Duration = Duration::from_secs(60);

/// Returns whether this error was logged lately. If not, it counts as logged now.
#[cold]
fn is_repeated(text: String, now: Instant) -> bool {
    let mut logged = UNREACHABLE.lock();
    logged.retain(|(_, at)| now.saturating_duration_since(*at) < QUIET);
    if logged.iter().any(|(known, _)| *known == text) {
        return true;
    }
    if logged.len() >= MOST_UNREACHABLE {
        logged.pop_front();
    }
    logged.push_back((text, now));
    false
}

/// Runs `body`. A failure is stored as the thread's last error and converted by `failed`. It is
/// logged, except `TIMEOUT`, `CANCELED` and `AGAIN`, which programs expect. An unreachable peer is
/// logged once in a while, because programs try again.
#[inline]
pub(super) fn value<R>(
    call: &'static str,
    failed: impl FnOnce(Status) -> R,
    body: impl FnOnce() -> Result<R>,
) -> R {
    let status = Cell::new(Status::FAIL);
    boundary::open_to_exceptions(
        call,
        |error| {
            let status = status.get();
            let is_expected = match status {
                Status::TIMEOUT | Status::CANCELED | Status::AGAIN => true,
                Status::HOSTUNREACH => is_repeated(error.to_string(), Instant::now()),
                _ => false,
            };
            if !is_expected {
                boundary::reported(error);
            }
            failed(status)
        },
        || {
            body().map_err(|failure| {
                status.set(failure.status());
                failure.into()
            })
        },
    )
}

pub(super) fn timeout(milliseconds: c_uint) -> Duration {
    // The headers define one hour as the longest timeout. Programs use it to mean "forever".
    Duration::from_millis(u64::from(milliseconds.min(MAX_TIMEOUT)))
}

/// Copies a C string. Fails with `INVALID_ARG` if `text` is null or not UTF-8.
///
/// # Safety
/// `text` must be null or a terminated string.
pub(super) unsafe fn text(text: *const c_char, what: &str) -> Result<String> {
    if text.is_null() {
        refuse!(INVALID_ARG, "the {what} is null");
    }
    // SAFETY: `text` is not null, so the caller guarantees that it is a terminated string.
    let text = unsafe { CStr::from_ptr(text) };
    match text.to_str() {
        Ok(text) => Ok(text.to_string()),
        Err(_) => refuse!(INVALID_ARG, "the {what} is not UTF-8"),
    }
}

/// Borrows the location of an output. Fails with `INVALID_ARG` if `place` is null.
///
/// # Safety
/// `place` must be null or valid for writes.
pub(super) unsafe fn place<'a, T>(place: *mut T, what: &str) -> Result<&'a mut T> {
    // SAFETY: the caller guarantees that `place` is null or valid for writes.
    unsafe { place.as_mut() }
        .ok_or_else(|| Failure::new(Status::INVALID_ARG, format!("null pointer for the {what}")))
}

/// Borrows the location of an optional output. `None` if `place` is null or 1, the value of
/// `HG_STATUS_IGNORE`, `HG_OP_ID_IGNORE` and `NA_OP_ID_IGNORE`.
///
/// # Safety
/// `place` must be null, 1, or valid for writes.
pub(super) unsafe fn maybe<'a, T>(place: *mut T) -> Option<&'a mut T> {
    if place as usize <= 1 {
        return None;
    }
    // SAFETY: `place` is not 1, so the caller guarantees that it is null or valid for writes.
    unsafe { place.as_mut() }
}

/// Writes the numbers of a version.
///
/// # Safety
/// Each pointer must be null or valid for a write.
pub(super) unsafe fn write_version(parts: [(*mut c_uint, c_uint); 3]) {
    for (to, number) in parts {
        // SAFETY: by this function's contract, `to` is null or valid for a write.
        if let Some(to) = unsafe { maybe(to) } {
            *to = number;
        }
    }
}

/// Copies a text and a terminating zero to a C buffer. Fails with `INVALID_ARG` if `buf` is null,
/// and `OVERFLOW` if the text and its zero do not fit.
///
/// # Safety
/// `buf` must be null or valid for writes of `size` bytes.
pub(super) unsafe fn put_text(buf: *mut c_char, size: usize, text: &str) -> Result<()> {
    if buf.is_null() {
        refuse!(INVALID_ARG, "null buffer for the text");
    }
    if text.len() >= size {
        refuse!(OVERFLOW, "'{text}' needs {} bytes, the buffer has {size}", text.len() + 1);
    }
    // SAFETY: `buf` is valid for `size` bytes, which is more than the length of the text.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), buf.cast(), text.len());
        *buf.add(text.len()) = 0;
    }
    Ok(())
}

/// Copies bytes to a C buffer. Fails like [`put_text`].
///
/// # Safety
/// `buf` must be null or valid for writes of `size` bytes.
pub(super) unsafe fn put_bytes(buf: *mut c_void, size: u64, from: &[u8]) -> Result<()> {
    if buf.is_null() {
        refuse!(INVALID_ARG, "null buffer for the bytes");
    }
    if from.len() as u64 > size {
        refuse!(OVERFLOW, "{} bytes are needed, the buffer has {size}", from.len());
    }
    // SAFETY: `buf` is valid for `size` bytes, which is at least the length of `from`.
    unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), buf.cast(), from.len()) };
    Ok(())
}

/// Reports an operation that was waited for. `status` receives 1 if it has `ended`, else 0. Fails
/// with the failure of the operation, and with `TIMEOUT` if it has not ended and `status` is
/// `None`.
pub(super) fn report(
    ended: bool,
    outcome: impl FnOnce() -> Result<()>,
    status: Option<&mut u8>,
    milliseconds: c_uint,
) -> Result<()> {
    match status {
        Some(status) => *status = u8::from(ended),
        None if !ended => {
            refuse!(TIMEOUT, "the operation has not ended in {milliseconds} ms");
        }
        None => {}
    }
    if ended { outcome() } else { Ok(()) }
}

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
    // The text is leaked once for each status and prefix. The check above limits the number.
    let text: &'static CStr = Box::leak(text.into_boxed_c_str());
    texts.push((status, na, text));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreachable_peer_is_logged_once_in_a_while() {
        let now = Instant::now();
        let is_logged = |text: &str, at| !is_repeated(text.into(), at);
        assert!(is_logged("a", now) && is_logged("b", now));
        assert!(!is_logged("a", now + QUIET / 2) && !is_logged("b", now));
        assert!(is_logged("a", now + QUIET));
        (0..MOST_UNREACHABLE).for_each(|n| assert!(is_logged(&format!("{n}"), now + QUIET)));
        assert_eq!(UNREACHABLE.lock().len(), MOST_UNREACHABLE);
        assert!(is_logged("a", now + QUIET), "it was forgotten");
    }
}
