//! Where C calls Rust: panics stop here, errors become codes or an abort.
//!
//! An error is written to standard error by the face that decides about it, and
//! kept as the thread's last error for `portolan_last_error`.

use crate::error::{Error, ErrorKind, Result, fail};
use crate::message;
use crate::process;
use crate::runtime::{self, Engine};
use crate::trace;
use std::any::Any;
use std::cell::RefCell;
use std::ffi::CString;
use std::os::raw::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static LAST: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// An array of C, which may be null when it has no elements.
///
/// # Safety
/// `data` must be valid for reads of `n` elements, if it is not null.
pub(crate) unsafe fn array<'a, T>(data: *const T, n: usize, what: &str) -> Result<&'a [T]> {
    if n == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        fail!(Argument, "{what} is null, but {n} elements are to be read");
    }
    // SAFETY: the caller vouches for the array.
    Ok(unsafe { std::slice::from_raw_parts(data, n) })
}

/// Checks at compile time that structures lie as C has them: their bytes, and where members begin.
macro_rules! layout {
    ($($structure:ident: $bytes:expr $(, $member:ident at $offset:expr)*;)+) => {
        $(
            const_assert_eq!(std::mem::size_of::<$structure>(), $bytes);
            $(const_assert_eq!(memoffset::offset_of!($structure, $member), $offset);)*
        )+
    };
}
pub(crate) use layout;

/// Runs a face's body: an error or a panic goes to `failed`, which decides what
/// the C caller sees.
#[inline]
pub(crate) fn guard<R>(
    call: &'static str,
    failed: impl FnOnce(&Error) -> R,
    body: impl FnOnce() -> Result<R>,
) -> R {
    if process::is_forked() {
        return failed(&kept(call, Ok(Error::in_fork())));
    }
    trace::face::enter(call);
    guarded(call, failed, body)
}

/// [`guard`] of a body that says itself which interface the thread is in.
#[inline]
fn guarded<R>(
    call: &'static str,
    failed: impl FnOnce(&Error) -> R,
    body: impl FnOnce() -> Result<R>,
) -> R {
    let fault = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => return value,
        Ok(Err(error)) => Ok(error),
        Err(panic) => Err(panic),
    };
    failed(&kept(call, fault))
}

/// The error with the name of its call, after its text was kept as the thread's last.
/// Not part of every call's own code: there are hundreds.
#[cold]
#[inline(never)]
fn kept(call: &'static str, fault: std::result::Result<Error, Box<dyn Any + Send>>) -> Box<Error> {
    let error = match fault {
        Ok(error) => error,
        Err(panic) => panicked(&*panic),
    };
    let error = error.in_call(call);
    let text = error.to_string().replace('\0', " ");
    LAST.with(|last| *last.borrow_mut() = CString::new(text).ok());
    Box::new(error)
}

fn panicked(panic: &(dyn Any + Send)) -> Error {
    let text = panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_string())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".into());
    Error::new(ErrorKind::Internal, format!("internal fault: {text}"))
}

/// A call that returns an error code: zero is success.
#[inline]
pub(crate) fn code(call: &'static str, body: impl FnOnce(&'static Engine) -> Result<()>) -> c_int {
    value(call, |engine| body(engine).map(|()| 0))
}

/// A call that returns a number on success and an error code otherwise.
#[inline]
pub(crate) fn value(
    call: &'static str,
    body: impl FnOnce(&'static Engine) -> Result<c_int>,
) -> c_int {
    guarded(call, reported, || body(entered(call)?))
}

/// The code of an error, after it was written to standard error.
#[cold]
pub(crate) fn reported(error: &Error) -> c_int {
    if process::is_forked() {
        // The logger's lock may be held by a thread that the child does not have.
        message::say(&error.to_string());
    } else if log::log_enabled!(log::Level::Error) {
        log::error!("{error}");
    } else if !runtime::is_running() {
        // Before start and after stop there may be no logger.
        message::say(&error.to_string());
    }
    error.kind().code()
}

/// A call that returns nothing: an error ends the job.
#[inline]
pub(crate) fn or_abort<R>(
    call: &'static str,
    body: impl FnOnce(&'static Engine) -> Result<R>,
) -> R {
    guarded(call, ended, || body(entered(call)?))
}

/// The running engine, which a call has reached: the engine knows already whether calls are observed.
#[inline(always)]
fn entered(call: &'static str) -> Result<&'static Engine> {
    let engine = runtime::current()?;
    if engine.is_observed() {
        trace::face::enter(call);
    }
    Ok(engine)
}

/// Ends the job with an error.
#[cold]
fn ended<R>(error: &Error) -> R {
    abort(&error.to_string(), error.kind().code())
}

/// As [`or_abort`], for a call that needs no engine.
#[inline]
pub(crate) fn or_abort_alone<R>(call: &'static str, body: impl FnOnce() -> Result<R>) -> R {
    guard(call, ended, body)
}

/// Writes a message and ends the job with a code that is not zero.
#[cold]
pub(crate) fn abort(text: &str, code: c_int) -> ! {
    message::say(&format!("{text} (error code {code})"));
    // An exit status keeps eight bits, and an error must never look like success.
    // All ranks, where MPI runs: also before the first start.
    crate::mpi::init::abort(if code & 0xff == 0 { 1 } else { code })
}

/// The text of this thread's last error; empty where there was none.
pub(crate) fn last_error() -> *const c_char {
    LAST.with(|last| last.borrow().as_ref().map_or(c"".as_ptr(), |text| text.as_ptr()))
}

/// A C string, for messages.
///
/// # Safety
/// `text` must be null or a terminated string.
pub(crate) unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller vouches for the string.
    unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
