//! The boundary between C and Rust: panics stop here, and errors become codes or an abort. The
//! interface that decides about an error writes it to standard error.
//!
//! A program that ignores that the runtime has not started would use outputs that were never
//! written. So after such a failure ([`starting`]), the next call that the interface refuses ends
//! the job. Mercury's calls return codes.

use parking_lot::Mutex;
use portolan_base::error::{Error, ErrorKind, Result, fail};
use portolan_base::layout::{Dim, Shape};
use portolan_base::process;
use portolan_base::process::message;
use portolan_base::trace::{self, Interface};
use portolan_engine::runtime::{self, Engine, log_sink};
use scopeguard::ScopeGuard;
use std::any::Any;
use std::cell::RefCell;
use std::ffi::CString;
use std::os::raw::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

// Arrays that a program passes.
pub(crate) use portolan_base::layout::array::{borrow as array, borrow_mut as array_mut, collect};

thread_local! {
    static LAST: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// Returns the shape of the counts and strides of a C call. `counts` is one longer than the
/// strides, which are in bytes. Fails with `Argument` for a negative count, and as
/// [`Shape::repeated`].
#[inline(always)] // moving shapes takes time
pub(crate) fn shape(counts: &[c_int], local: &[c_int], remote: &[c_int]) -> Result<Shape> {
    if let Some(i) = counts.iter().position(|&count| count < 0) {
        fail!(Argument, "count[{i}] is {}, but cannot be negative", counts[i]);
    }
    let dims = counts[1..].iter().zip(local).zip(remote).map(|((&n, &local), &remote)| Dim {
        n: n as usize,
        local: local as isize,
        remote: remote as isize,
    });
    Shape::repeated(counts[0] as usize, dims)
}

/// Checks at compile time that structures have the C layout: size and member offsets in bytes.
macro_rules! layout {
    ($($structure:ident: $bytes:expr $(, $member:ident at $offset:expr)*;)+) => {
        $(
            const_assert_eq!(std::mem::size_of::<$structure>(), $bytes);
            $(const_assert_eq!(memoffset::offset_of!($structure, $member), $offset);)*
        )+
    };
}
pub(crate) use layout;

/// Exports C functions, also under the name of their profiling twin if there is one. In the form
/// `NAME(...) = run(...);`, `run` is called with the name and these arguments.
macro_rules! export {
    () => {};
    (
        $(#[$doc:meta])* $name:ident $(/ $twin:ident)? ($($args:tt)*) $(-> $ret:ty)? =
        $run:ident($($given:tt)*); $($rest:tt)*
    ) => {
        $crate::boundary::export! {
            $(#[$doc])* $name $(/ $twin)? ($($args)*) $(-> $ret)? {
                $run(stringify!($name), $($given)*)
            }
        }
        $crate::boundary::export! { $($rest)* }
    };
    (
        $(#[$doc:meta])* $name:ident / $twin:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)?
        $body:block $($rest:tt)*
    ) => {
        $crate::boundary::export! {
            $(#[$doc])* $twin($($arg: $ty),*) $(-> $ret)? $body
            $(#[$doc])* $name($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: both functions have the same contract.
                unsafe { $twin($($arg),*) }
            }
        }
        $crate::boundary::export! { $($rest)* }
    };
    (
        $(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)?
        $body:block $($rest:tt)*
    ) => {
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? $body
        $crate::boundary::export! { $($rest)* }
    };
}
pub(crate) use export;

/// The calls that have failed to start the runtime for an interface, at most one of each.
static UNSTARTED: Mutex<Vec<&str>> = Mutex::new(Vec::new());

/// These calls do no harm if the runtime has not started.
const ENDS: [&str; 2] = ["x10_finalize", "LAPI_Term"];

fn is_same_interface(a: &str, b: &str) -> bool {
    trace::interface::of(a) == trace::interface::of(b)
}

/// Starts the runtime in `call`. If this fails, the next call that the interface refuses ends the
/// job, unless another interface has started the runtime.
pub(crate) fn starting<R>(call: &'static str, start: impl FnOnce() -> Result<R>) -> Result<R> {
    UNSTARTED.lock().retain(|failed| !is_same_interface(failed, call));
    let started = start();
    if started.is_err() {
        UNSTARTED.lock().push(call);
    }
    started
}

/// Ends the job if the interface of a refused call has failed to start the runtime.
fn end_unless_started(call: &str) {
    // In a forked child, a thread that no longer exists may hold the lock.
    if process::is_forked() || runtime::is_running() || ENDS.contains(&call) {
        return;
    }
    let unstarted = UNSTARTED.lock();
    let of_call = |failed: &&&str| **failed != call && is_same_interface(failed, call);
    let Some(failed) = unstarted.iter().find(of_call) else { return };
    // The other interfaces have written the reason.
    let reason = match trace::interface::of(call) {
        Interface::Compose => LAST.with(|last| last.borrow().clone()),
        _ => None,
    };
    let ignored = match reason {
        Some(reason) => reason.to_string_lossy().into_owned(),
        None => format!("{failed} has failed"),
    };
    let text = format!("{call}: the job ends, because the program ignores an error: {ignored}");
    abort(&text, ErrorKind::State.code())
}

/// Runs the body of a C call. On an error or a panic, `failed` decides what the C caller sees.
#[inline]
pub(crate) fn guard<R>(
    call: &'static str,
    failed: impl FnOnce(&Error) -> R,
    body: impl FnOnce() -> Result<R>,
) -> R {
    if let Err(error) = begun(call) {
        return failed(&error);
    }
    guarded(call, failed, body)
}

/// Records the interface of a call. Fails in a forked child.
#[inline]
fn begun(call: &'static str) -> std::result::Result<(), Box<Error>> {
    if process::is_forked() {
        return Err(kept(call, Ok(Error::in_fork())));
    }
    trace::interface::enter(call);
    Ok(())
}

/// [`guard`] for calls that run functions of the program. A C++ exception that such a function
/// throws passes through to the program, as it does through C. A panic aborts the process, because
/// nothing can catch panics and let exceptions pass.
#[inline]
pub(crate) fn open_to_exceptions<R>(
    call: &'static str,
    failed: impl FnOnce(&Error) -> R,
    body: impl FnOnce() -> Result<R>,
) -> R {
    if let Err(error) = begun(call) {
        return failed(&error);
    }
    let unwinds = scopeguard::guard((), |()| {
        if std::thread::panicking() {
            message::say(&format!("{call}: a panic in the library"));
            std::process::abort();
        }
    });
    let outcome = body();
    // Not dropped: the caller may be a destructor of a thread that panics.
    ScopeGuard::into_inner(unwinds);
    match outcome {
        Ok(value) => value,
        Err(error) => failed(&kept(call, Ok(error))),
    }
}

/// [`guard`] without the check for a forked child and the record of the interface. The body calls
/// `entered`, which does both.
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

/// Adds the call's name to an error and stores its text as the thread's last error. A separate
/// function, so that it is not inlined into hundreds of calls.
#[cold]
#[inline(never)]
fn kept(call: &'static str, fault: std::result::Result<Error, Box<dyn Any + Send>>) -> Box<Error> {
    end_unless_started(call);
    let error = match fault {
        Ok(error) => error,
        Err(panic) => panicked(&*panic),
    };
    let error = error.in_call(call);
    let text = error.to_string().replace('\0', " ");
    // An exit handler runs after the thread-local variables were dropped.
    let _ = LAST.try_with(|last| *last.borrow_mut() = CString::new(text).ok());
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

/// Runs a call that returns 0 or an error code.
#[inline]
pub(crate) fn code(call: &'static str, body: impl FnOnce(&'static Engine) -> Result<()>) -> c_int {
    value(call, |engine| body(engine).map(|()| 0))
}

/// Runs a call that returns a number on success and an error code on failure.
#[inline]
pub(crate) fn value(
    call: &'static str,
    body: impl FnOnce(&'static Engine) -> Result<c_int>,
) -> c_int {
    guarded(call, reported, || body(entered(call)?))
}

/// Logs an error and returns its code.
#[cold]
pub(crate) fn reported(error: &Error) -> c_int {
    if log_sink::is_installed() && !process::is_forked() {
        log::error!("{error}");
    } else {
        log_sink::report(&error.to_string());
    }
    error.kind().code()
}

/// Runs a call that cannot return an error: an error ends the job.
#[inline]
pub(crate) fn or_abort<R>(
    call: &'static str,
    body: impl FnOnce(&'static Engine) -> Result<R>,
) -> R {
    guarded(call, ended, || body(entered(call)?))
}

/// Returns the running engine. Records the thread's interface only if the engine observes calls.
#[inline(always)]
fn entered(call: &'static str) -> Result<&'static Engine> {
    let engine = runtime::current()?;
    if engine.is_observed() {
        trace::interface::enter(call);
    }
    Ok(engine)
}

#[cold]
fn ended<R>(error: &Error) -> R {
    abort(&error.to_string(), error.kind().code())
}

/// Like [`or_abort`], for a call that needs no engine.
#[inline]
pub(crate) fn or_abort_alone<R>(call: &'static str, body: impl FnOnce() -> Result<R>) -> R {
    guard(call, ended, body)
}

#[cold]
pub(crate) fn abort(text: &str, code: c_int) -> ! {
    message::say(&format!("{text} (error code {code})"));
    // A failed job must not exit with 0. If MPI runs, this ends all ranks.
    portolan_engine::mpi::init::abort(if code & 0xff == 0 { 1 } else { code })
}

pub(crate) fn last_error() -> *const c_char {
    let text = LAST.try_with(|last| last.borrow().as_ref().map(|text| text.as_ptr()));
    text.ok().flatten().unwrap_or(c"".as_ptr())
}

/// Copies a C string for messages. Null becomes an empty string; invalid UTF-8 is replaced.
///
/// # Safety
/// `text` must be null or a NUL-terminated string.
pub(crate) unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: by this function's contract `text` is NUL-terminated, and it is not null.
    unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
