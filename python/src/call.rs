//! Calls into the library: the thread that may make them, the global interpreter lock, interrupts,
//! and errors.
//!
//! The runtime and all objects that borrow from it belong to the thread that imported the package.
//! [`Pinned`] holds such an object in a Python object, which any thread can reach. A call passes
//! [`enter`] first, which refuses other threads, calls after the end, and calls that a signal
//! handler makes inside another call. [`wait`] then runs the call without the interpreter lock.
//! [`transfer`] keeps the lock for short transfers in shared memory: they do not wait, and another
//! Python thread that takes the lock keeps it for milliseconds.
//!
//! Invariants: while [`wait`] or [`transfer`] runs, no other code of this thread uses the library.
//! A panic becomes a `portolan.Error` ([`caught`]), because `except Exception` of a program does not
//! catch the `PanicException` of PyO3.

use crate::dtype::Failure;
use portolan::internals::binding;
use portolan::{Error, ErrorKind, OnPanic, Runtime, TransferPath};
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

mod exception {
    pyo3::create_exception!(
        portolan,
        Error,
        pyo3::exceptions::PyRuntimeError,
        "A failure of communication, or a call in the wrong state."
    );
}
pub use exception::Error as Error_;

const BEFORE: u8 = 0;
const RUNNING: u8 = 1;
const ENDED: u8 = 2;
const INTERRUPTED: u8 = 3;

static PHASE: AtomicU8 = AtomicU8::new(BEFORE);
/// Whether a trace is written. Calls then look up their line before they give up the interpreter
/// lock, because the trace needs it afterwards.
static TRACED: AtomicBool = AtomicBool::new(false);
/// Whether this rank reaches the memory of all ranks by load and store.
static DIRECT: AtomicBool = AtomicBool::new(false);
/// The address of the thread-local data of the runtime's thread.
static THREAD: AtomicUsize = AtomicUsize::new(0);
static RUNTIME: OnceLock<Pinned<&'static Runtime>> = OnceLock::new();
/// Maximum size in bytes of a short transfer.
const SHORT: usize = 64 << 10;
/// The views of own elements that Python holds.
pub static VIEWS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// The exception of a signal handler that ended a wait.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    /// The line that makes the current call, if a trace is written.
    static LINE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Returns the phase. The program's own `MPI_Finalize` ends the runtime, too.
#[inline]
fn phase() -> u8 {
    match PHASE.load(Ordering::Relaxed) {
        RUNNING if !Runtime::is_running() => ENDED,
        phase => phase,
    }
}

/// Returns whether a signal handler has raised during a wait. This rank can only end then.
pub fn was_interrupted() -> bool {
    PHASE.load(Ordering::Relaxed) == INTERRUPTED
}

fn this_thread() -> usize {
    INSIDE.with(|inside| std::ptr::from_ref(inside).addr())
}

fn is_own_thread() -> bool {
    THREAD.load(Ordering::Relaxed) == this_thread()
}

/// Checks that this thread may call the library now.
#[inline]
pub fn enter() -> PyResult<()> {
    if phase() == RUNNING && is_own_thread() && !INSIDE.get() {
        if DROPPED_NUMBER.load(Ordering::Relaxed) > 0 {
            drop_here();
        }
        return Ok(());
    }
    Err(refusal())
}

#[cold]
fn refusal() -> PyErr {
    Error_::new_err(match phase() {
        BEFORE => "portolan has not started",
        ENDED => "portolan has ended",
        INTERRUPTED => "a call of portolan was interrupted, so this rank can only end",
        _ if is_own_thread() => {
            "another call of portolan is in progress: a signal handler or a stencil step calls it"
        }
        _ => "portolan is used by a thread other than the one that imported it",
    })
}

/// A value that only the runtime's thread uses. If another thread drops it, for example in a
/// garbage collection, or a signal handler does so inside a call, the runtime's thread drops it at
/// its next call. After the end it is leaked.
pub struct Pinned<T: 'static>(ManuallyDrop<T>);

/// Values that other threads or signal handlers have dropped, and their number.
static DROPPED: Mutex<Vec<Here<Box<dyn Any>>>> = Mutex::new(Vec::new());
static DROPPED_NUMBER: AtomicUsize = AtomicUsize::new(0);

/// Drops what other threads and signal handlers have dropped.
#[cold]
fn drop_here() {
    let Ok(mut dropped) = DROPPED.lock() else { return };
    let values = std::mem::take(&mut *dropped);
    DROPPED_NUMBER.store(0, Ordering::Relaxed);
    drop(dropped);
    drop(values); // without the lock: this may drop further values
}

// SAFETY: other threads can move, forget and drop a `Pinned`. They do not use the value: `get`
// refuses them, and `drop` hands the value to the runtime's thread.
unsafe impl<T> Send for Pinned<T> {}
// SAFETY: a shared reference gives access to the value only through `get`, which refuses other
// threads.
unsafe impl<T> Sync for Pinned<T> {}

impl<T> Pinned<T> {
    pub fn new(value: T) -> Pinned<T> {
        Pinned(ManuallyDrop::new(value))
    }

    /// Returns the value for a call.
    #[inline]
    pub fn get(&self) -> PyResult<&T> {
        enter()?;
        Ok(&self.0)
    }

    /// Returns the value for a query, which makes no call of the library. Queries work after the end
    /// and after an interrupt, too.
    #[inline]
    pub fn peek(&self) -> PyResult<&T> {
        if is_own_thread() { Ok(&self.0) } else { Err(refusal()) }
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        if !matches!(phase(), BEFORE | RUNNING) {
            return;
        }
        // SAFETY: the value is not used after this drop.
        let value = unsafe { ManuallyDrop::take(&mut self.0) };
        if is_own_thread() && !INSIDE.get() {
            return drop(value);
        }
        let value: Here<Box<dyn Any>> = Here(Box::new(value));
        match DROPPED.lock() {
            Ok(mut dropped) => {
                dropped.push(value);
                DROPPED_NUMBER.store(dropped.len(), Ordering::Relaxed);
            }
            Err(_) => std::mem::forget(value),
        }
    }
}

/// Starts the runtime on this thread. Collective.
pub fn start(py: Python<'_>) -> PyResult<&'static Runtime> {
    if PHASE.load(Ordering::Relaxed) != BEFORE {
        return Err(Error_::new_err("portolan has already been started"));
    }
    THREAD.store(this_thread(), Ordering::Relaxed);
    let builder = Runtime::builder().on_panic(OnPanic::Unwind);
    let builder = binding::caller(builder, python_line);
    let builder = binding::keeps_mapped(builder, || VIEWS.load(Ordering::Acquire) > 0);
    // SAFETY: after the error, `raise` sets the phase, and `enter` refuses all calls. Views show
    // memory that other ranks may write to, as Python programs expect.
    let builder = unsafe { binding::interrupted(builder, is_interrupted) };
    let runtime: &'static Runtime = Box::leak(Box::new(wait(py, || builder.init())?));
    RUNTIME.get_or_init(|| Pinned::new(runtime));
    TRACED.store(runtime.is_traced(), Ordering::Relaxed);
    let direct = |rank| matches!(runtime.path_to(rank), Ok(TransferPath::Direct));
    DIRECT.store((0..runtime.size()).all(direct), Ordering::Relaxed);
    PHASE.store(RUNNING, Ordering::Relaxed);
    Ok(runtime)
}

/// Returns the running runtime.
pub fn runtime() -> PyResult<&'static Runtime> {
    let pinned = RUNTIME.get().ok_or_else(refusal)?;
    pinned.get().copied()
}

/// Returns the runtime for a query.
pub fn known_runtime() -> PyResult<&'static Runtime> {
    RUNTIME.get().ok_or_else(refusal)?.peek().copied()
}

/// Ends the runtime, once. Collective. After an interrupt it ends the job instead.
pub fn end(py: Python<'_>) -> PyResult<()> {
    if PHASE.load(Ordering::Relaxed) == INTERRUPTED && is_own_thread() {
        Runtime::abort(130);
    }
    let Ok(runtime) = runtime() else { return Ok(()) };
    PHASE.store(ENDED, Ordering::Relaxed);
    // SAFETY: from now on `enter` refuses all calls, and `Pinned` forgets the objects that borrow
    // from the runtime. Memory under live views stays mapped.
    let ended = wait(py, || unsafe { binding::finalize_borrowed(runtime) });
    if PHASE.load(Ordering::Relaxed) == INTERRUPTED {
        Runtime::abort(130);
    }
    ended
}

/// Returns whether a signal handler has raised an exception. Runs on the thread that waits.
fn is_interrupted() -> bool {
    is_own_thread()
        && Python::attach(|py| match py.check_signals() {
            Ok(()) => false,
            Err(raised) => {
                RAISED.set(Some(raised));
                true
            }
        })
}

/// Returns the line of the program that makes the current call, as `file:line (function)`.
fn python_line() -> Option<String> {
    if !is_own_thread() {
        return None;
    }
    LINE.with_borrow(Clone::clone).or_else(|| Python::attach(find_line))
}

#[cold]
fn find_line(py: Python<'_>) -> Option<String> {
    let module = py.import("portolan._values").ok()?;
    module.call_method0("program_line").ok()?.extract().ok()?
}

/// A closure, or its result, that stays on this thread.
struct Here<T>(T);

// SAFETY: `wait` hands it to `Python::detach`, which runs it on the calling thread. The bound of
// `detach` only keeps references to Python objects out, and the callers of `wait` pass none. Values
// in `DROPPED` are moved there, and used only by the runtime's thread.
unsafe impl<T> Send for Here<T> {}

impl<T> Deref for Here<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// Runs a call without the interpreter lock, and converts its error. The closure must not use
/// Python objects, other than through memory that they lend.
#[inline]
pub fn wait<R, E: Into<Failure>>(
    py: Python<'_>,
    body: impl FnOnce() -> Result<R, E>,
) -> PyResult<R> {
    let body = Here(body);
    run(py, || {
        py.detach(move || {
            let body = body;
            Here((body.0)())
        })
        .0
    })
}

/// Runs a put or a get of `bytes` bytes. It gives up the interpreter lock only if it may wait. The
/// closure must not use Python objects (see [`wait`]).
#[inline]
pub fn transfer<R, E: Into<Failure>>(
    py: Python<'_>,
    bytes: usize,
    body: impl FnOnce() -> Result<R, E>,
) -> PyResult<R> {
    if bytes <= SHORT && DIRECT.load(Ordering::Relaxed) {
        return run(py, body);
    }
    wait(py, body)
}

/// Runs a part of a call. A panic becomes an error.
#[inline]
pub fn caught<R>(body: impl FnOnce() -> PyResult<R>) -> PyResult<R> {
    // After a panic, objects of the library may refuse further calls, but all of them are valid.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| Err(panicked(&*payload)))
}

#[cold]
fn panicked(payload: &(dyn Any + Send)) -> PyErr {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    Error_::new_err(format!(
        "internal error: {}; standard error has the place. Please report it",
        text.unwrap_or("a panic without a message")
    ))
}

/// Runs a call, and converts its error.
#[inline]
fn run<R, E: Into<Failure>>(py: Python<'_>, body: impl FnOnce() -> Result<R, E>) -> PyResult<R> {
    struct Inside;
    impl Drop for Inside {
        fn drop(&mut self) {
            INSIDE.set(false);
        }
    }
    let traced = TRACED.load(Ordering::Relaxed);
    if traced {
        LINE.set(find_line(py));
    }
    let result = caught(|| {
        INSIDE.set(true);
        let inside = Inside;
        let result = body();
        drop(inside);
        result.map_err(|error| raise(error.into()))
    });
    if traced {
        LINE.take();
    }
    result
}

/// Converts an error of the library to the exception that NumPy raises for the same mistake.
#[cold]
pub fn raise(failure: Failure) -> PyErr {
    let error: Error = match failure {
        Failure::Library(error) => error,
        Failure::Type(text) => return PyTypeError::new_err(text),
    };
    if let Some(raised) = RAISED.take() {
        PHASE.store(INTERRUPTED, Ordering::Relaxed);
        return raised;
    }
    let text = error.detail().to_string();
    match error.kind() {
        ErrorKind::Address => PyIndexError::new_err(text),
        ErrorKind::Argument | ErrorKind::Rank => PyValueError::new_err(text),
        ErrorKind::Type => PyTypeError::new_err(text),
        ErrorKind::Memory => PyMemoryError::new_err(text),
        _ => Error_::new_err(text),
    }
}
