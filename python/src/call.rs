//! Calls into the library: one thread at a time, the global interpreter lock, interrupts, and errors.
//!
//! The runtime and all objects that borrow from it are used by one thread at a time: the one that has
//! the [`Turn`]. [`Pinned`] holds such an object in a Python object, which any thread can reach. A
//! call passes [`enter`] first, which waits for the turn of another thread to end. It refuses calls
//! after the end, calls that a signal handler makes inside another call, and calls of other threads
//! if MPI permits only one. [`wait`] then runs the call without the interpreter lock. [`transfer`]
//! keeps the lock for short transfers in shared memory: they do not wait, and another Python thread
//! that takes the lock keeps it for milliseconds.
//!
//! Invariants: a thread takes its turn, uses a [`Pinned`] value and drops one only with the
//! interpreter lock. It gives the lock up only during its turn. So no other thread uses the values
//! meanwhile. A thread waits for its turn without the lock. A panic becomes a `portolan.Error`
//! ([`caught`]), because `except Exception` of a program does not catch the `PanicException` of PyO3.

use crate::dtype::Failure;
use crate::text::with_tuples;
use portolan::internals::binding;
use portolan::{Error, ErrorKind, OnPanic, Runtime, ThreadLevel, TransferPath};
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, OnceLock};
use std::time::Duration;

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
/// The thread that has imported the package: the main thread, which Python's signal handlers use.
static MAIN: AtomicUsize = AtomicUsize::new(0);
/// Whether MPI permits calls of other threads.
static ANY_THREAD: AtomicBool = AtomicBool::new(false);
/// The thread that has the turn, or 0.
static TURN: AtomicUsize = AtomicUsize::new(0);
/// The number of threads that wait for their turn, and the event of its end.
static WAITING: AtomicUsize = AtomicUsize::new(0);
static ENDS: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
/// The thread that had the last turn.
static LAST: AtomicUsize = AtomicUsize::new(0);
/// Between looks for signals while a thread waits for its turn.
const PATIENCE: Duration = Duration::from_millis(50);
/// The longest time that a thread leaves the next turn to threads that wait for one.
const COURTESY: Duration = Duration::from_millis(1);
static RUNTIME: OnceLock<Pinned<&'static Runtime>> = OnceLock::new();
/// Maximum size in bytes of a short transfer.
const SHORT: usize = 64 << 10;
/// The views of own elements that Python holds.
pub static VIEWS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Whether this thread is in a call of the library.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// The number of turns of this thread, one in the other.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
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

fn is_main() -> bool {
    MAIN.load(Ordering::Relaxed) == this_thread()
}

fn may_call() -> bool {
    ANY_THREAD.load(Ordering::Relaxed) || is_main()
}

/// Returns whether no other thread has the turn.
fn is_my_turn() -> bool {
    let turn = TURN.load(Ordering::Acquire);
    turn == 0 || turn == this_thread()
}

/// Waits until no other thread has the turn, and checks that this thread may call the library now.
#[inline]
pub fn enter() -> PyResult<()> {
    if !is_my_turn() {
        await_turn()?;
    }
    if phase() == RUNNING && may_call() && !INSIDE.get() {
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
        _ if may_call() => {
            "another call of portolan is in progress: a signal handler or a stencil step calls it"
        }
        _ => {
            "MPI was initialised below MPI_THREAD_SERIALIZED, so only the thread that imported \
             portolan may call it"
        }
    })
}

/// Waits until no other thread has the turn, or the runtime has ended. The child of a fork has not
/// got the other threads, and its runtime has ended. The caller holds the interpreter lock.
#[cold]
fn await_turn() -> PyResult<()> {
    Python::attach(|py| {
        while !is_my_turn() && matches!(phase(), BEFORE | RUNNING) {
            WAITING.fetch_add(1, Ordering::SeqCst);
            py.detach(|| {
                if let Ok(held) = ENDS.0.lock()
                    && !is_my_turn()
                {
                    drop(ENDS.1.wait_timeout(held, PATIENCE));
                }
            });
            WAITING.fetch_sub(1, Ordering::SeqCst);
            py.check_signals()?;
        }
        Ok(())
    })
}

/// Gives up the interpreter lock between two turns. A thread that makes one call after the other
/// would otherwise have a turn whenever another thread has the lock.
#[cold]
fn let_others_begin() {
    Python::attach(|py| {
        py.detach(|| {
            if let Ok(held) = ENDS.0.lock() {
                drop(ENDS.1.wait_timeout(held, COURTESY));
            }
        });
    });
}

/// The turn of this thread: no other thread uses the library until it is dropped. Turns of a thread
/// nest.
pub struct Turn(PhantomData<*const ()>);

impl Turn {
    /// The caller holds the interpreter lock, here and when the turn ends.
    #[inline]
    pub fn take() -> PyResult<Turn> {
        let me = this_thread();
        if DEPTH.get() == 0 {
            if WAITING.load(Ordering::Relaxed) > 0 && LAST.load(Ordering::Relaxed) == me {
                let_others_begin();
            }
            if !is_my_turn() {
                await_turn()?;
            }
            TURN.store(me, Ordering::Release);
            LAST.store(me, Ordering::Relaxed);
        }
        DEPTH.set(DEPTH.get() + 1);
        Ok(Turn(PhantomData))
    }
}

impl Drop for Turn {
    #[inline]
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        if DEPTH.get() == 0 {
            TURN.store(0, Ordering::SeqCst);
            if WAITING.load(Ordering::SeqCst) > 0 {
                let held = ENDS.0.lock();
                ENDS.1.notify_all();
                drop(held);
            }
        }
    }
}

/// A value that one thread uses at a time. If a thread drops it during the turn of another thread,
/// for example in a garbage collection, or a signal handler does so inside a call, the next call
/// drops it. After the end it is leaked.
pub struct Pinned<T: 'static>(ManuallyDrop<T>);

/// Values that were dropped during calls, and their number.
static DROPPED: Mutex<Vec<Here<Box<dyn Any>>>> = Mutex::new(Vec::new());
static DROPPED_NUMBER: AtomicUsize = AtomicUsize::new(0);

/// Drops what was dropped during calls.
#[cold]
fn drop_here() {
    let Ok(mut dropped) = DROPPED.lock() else { return };
    let values = std::mem::take(&mut *dropped);
    DROPPED_NUMBER.store(0, Ordering::Relaxed);
    drop(dropped);
    drop(values); // without the lock: this may drop further values
}

// SAFETY: threads use and drop the value with the interpreter lock, and none of them does so in the
// turn of another one (see the module).
unsafe impl<T> Send for Pinned<T> {}
// SAFETY: a shared reference gives access to the value only through `get`, which waits for the turns
// of other threads, and `peek`, whose callers read what does not change.
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

    /// Returns the value for a query, which makes no call of the library and reads what does not
    /// change. Queries work at any time: during calls of other threads, after the end, and after an
    /// interrupt.
    #[inline]
    pub fn peek(&self) -> &T {
        &self.0
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        if !matches!(phase(), BEFORE | RUNNING) {
            return;
        }
        // SAFETY: the value is not used after this drop.
        let value = unsafe { ManuallyDrop::take(&mut self.0) };
        if may_call() && is_my_turn() && !INSIDE.get() {
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
    MAIN.store(this_thread(), Ordering::Relaxed);
    let builder = Runtime::builder().on_panic(OnPanic::Unwind);
    let builder = binding::caller(builder, python_line);
    let builder = binding::keeps_mapped(builder, || VIEWS.load(Ordering::Acquire) > 0);
    // SAFETY: after the error, `raise` sets the phase, and `enter` refuses all calls. Views show
    // memory that other ranks may write to, as Python programs expect.
    let builder = unsafe { binding::interrupted(builder, is_interrupted) };
    let runtime: &'static Runtime = Box::leak(Box::new(wait(py, || builder.init())?));
    RUNTIME.get_or_init(|| Pinned::new(runtime));
    ANY_THREAD.store(runtime.thread_level() >= ThreadLevel::Serialized, Ordering::Relaxed);
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
    Ok(RUNTIME.get().ok_or_else(refusal)?.peek())
}

/// Ends the runtime, once. Collective. After an interrupt it ends the job instead.
pub fn end(py: Python<'_>) -> PyResult<()> {
    if PHASE.load(Ordering::Relaxed) == INTERRUPTED && is_main() {
        Runtime::abort(130);
    }
    let Ok(runtime) = runtime() else { return Ok(()) };
    let world = runtime.world();
    // After a mismatch, the ranks meet here again.
    let met = wait(py, || match world.described("the end of the program", || world.barrier()) {
        Err(error) if error.kind() == ErrorKind::Mismatch => world.resume(),
        met => met,
    });
    if PHASE.load(Ordering::Relaxed) == INTERRUPTED {
        Runtime::abort(130);
    }
    met?;
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
    is_main()
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
    if !INSIDE.get() {
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
// in `DROPPED` are dropped by a call, as a `Pinned` is.
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
    let turn = Turn::take()?;
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
    drop(turn);
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
    let text = with_tuples(error.detail());
    match error.kind() {
        ErrorKind::Address => PyIndexError::new_err(text),
        ErrorKind::Argument | ErrorKind::Rank => PyValueError::new_err(text),
        ErrorKind::Type => PyTypeError::new_err(text),
        ErrorKind::Memory => PyMemoryError::new_err(text),
        ErrorKind::Mismatch => Error_::new_err(format!(
            "{text}; if all ranks of the group catch this error, they can continue after resume() of \
             the group"
        )),
        _ => Error_::new_err(text),
    }
}
