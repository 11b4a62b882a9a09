//! Calls of objects that may outlive the runtime, and the end of the runtime.
//!
//! A class, context, call or bulk handle of function shipping can be held by any thread, also
//! when the runtime has ended. Its calls reach the engine by [`Engine::admit`], which costs two
//! plain memory accesses and a load ([`Door`]), and gives an error from the moment at which the
//! engine begins to stop. The thread that stops it ([`shut`]) wakes the threads that wait in such
//! calls, waits until all have returned, and only then touches what they use. So nothing reaches
//! MPI, or the engine's shared state, after the end.
//!
//! Calls of the C interfaces and of [`crate::Runtime`] are not admitted one by one, because that
//! would cost as much as a short put. [`super::current`] gives them an error after the end. The
//! compiler keeps what borrows from a `Runtime` from outliving it; a C program returns from its
//! calls before it ends the runtime, as with MPI itself.
//!
//! Invariants: the engine that [`super::current`] returns changes only while the door is shut and
//! no thread is inside; user code runs inside only as a handler, which can end nothing.

use super::{CURRENT, Engine, not_running};
use crate::core::handler;
use crate::error::{Error, ErrorKind, Result, fail};
use crate::memory::door::{self, Door};
use crate::mpi::init::ThreadLevel;
use crate::thread::this_thread;
use crate::trace::{Cause, Observer};
use crate::wait::{self, Progress};
use parking_lot::{Mutex, MutexGuard};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

static DOOR: Door = Door::new();

/// Threads of safe Rust may be in calls that are not admitted, because the compiler bounds them by
/// the [`crate::Runtime`]'s life: that of the runtime itself (0 where there is none), and, once an
/// endpoint was given out, any.
static RUNTIME_THREAD: AtomicUsize = AtomicUsize::new(0);
static ENDPOINTS: AtomicBool = AtomicBool::new(false);

/// Held while the process's engine starts or stops.
static LIFE: Mutex<()> = Mutex::new(());

/// What holders of objects that may outlive the runtime do when it ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guests {
    /// Wakes the threads that wait in calls; they find the door shut.
    pub wake: fn(),
    /// No call is in progress any more, and MPI still works.
    pub leave: fn(),
    /// The engine is gone: what was under way on it does not come to an end by itself.
    pub gone: fn(),
}

static GUESTS: Mutex<Option<Guests>> = Mutex::new(None);

/// A call has been admitted; the engine does not stop until this is dropped.
#[derive(Debug)]
pub(crate) struct Admitted<'a> {
    engine: &'a Engine,
    _inside: door::Inside,
}

impl Deref for Admitted<'_> {
    type Target = Engine;

    #[inline]
    fn deref(&self) -> &Engine {
        self.engine
    }
}

impl Engine {
    /// Begins a call that may send messages or wait for them. It must not wait for user code.
    ///
    /// # Errors
    /// `State` where the engine stops or has stopped, and on a thread that may not call MPI.
    #[inline]
    pub(crate) fn admit(&self) -> Result<Admitted<'_>> {
        let inside = DOOR.pass();
        if self.may_use_messages()
            && let Some(inside) = inside
            && std::ptr::eq(CURRENT.load(Ordering::Acquire), self)
        {
            return Ok(Admitted { engine: self, _inside: inside });
        }
        Err(self.refusal())
    }

    /// [`Engine::admit`] of a call that uses MPI itself.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn admit_to_mpi(&self) -> Result<Admitted<'_>> {
        if self.may_call_mpi() { self.admit() } else { Err(self.refusal()) }
    }

    /// Whether a call would be admitted now.
    ///
    /// # Errors
    /// As for [`Engine::admit`].
    #[inline]
    pub(crate) fn check_admits(&self) -> Result<()> {
        self.admit().map(drop)
    }

    #[cold]
    fn refusal(&self) -> Error {
        if self.is_over() {
            return over();
        }
        let level = match self.thread_level() {
            ThreadLevel::Single => "MPI_THREAD_SINGLE",
            ThreadLevel::Funneled => "MPI_THREAD_FUNNELED",
            ThreadLevel::Serialized | ThreadLevel::Multiple => "MPI_THREAD_SERIALIZED",
        };
        let text = format!(
            "MPI was initialised at {level}, so only the thread that started the runtime may \
             call function shipping; initialise MPI at MPI_THREAD_MULTIPLE to call it on others"
        );
        Error::new(ErrorKind::State, text)
    }

    /// Whether it stops or has stopped; not yet for a call that was admitted before.
    pub(crate) fn is_over(&self) -> bool {
        self.is_gone() || DOOR.is_shut() && !DOOR.am_inside()
    }

    /// Whether it has stopped.
    pub(crate) fn is_gone(&self) -> bool {
        !std::ptr::eq(CURRENT.load(Ordering::Acquire), self)
    }
}

#[cold]
fn over() -> Error {
    let text = "the runtime was finalised, or is being finalised; what was made before its end \
                cannot communicate any more";
    Error::new(ErrorKind::State, text)
}

/// Begins a call on the running engine that neither sends nor waits.
///
/// # Errors
/// `State` where none runs, or it stops.
pub(crate) fn admit_current() -> Result<Admitted<'static>> {
    let Some(inside) = DOOR.pass() else { return Err(not_running()) };
    // It stays while this thread is inside.
    Ok(Admitted { engine: super::current()?, _inside: inside })
}

/// To be held by a handler of active messages that belongs to function shipping: it runs inside
/// the engine, which does not end meanwhile, and so its own calls are admitted.
pub(crate) fn in_handler() -> door::Inside {
    DOOR.pass_anyway()
}

/// Waits of threads that may not use the engine: they end with it.
#[derive(Debug)]
pub(crate) struct Outside;

impl Progress for Outside {
    fn told_by(&self) -> Option<&Observer> {
        None
    }
    fn poll(&self) -> Result<bool> {
        if super::is_running() { Ok(false) } else { Err(over()) }
    }
    fn may_wait(&self) -> Result<()> {
        if super::is_running() { Ok(()) } else { Err(over()) }
    }
}

/// Makes known what is to be done when the runtime ends.
pub(crate) fn set_guests(guests: Guests) {
    *GUESTS.lock() = Some(guests);
}

/// A [`crate::Runtime`] begins to live on this thread, or ends.
pub(crate) fn set_runtime(lives: bool) {
    RUNTIME_THREAD.store(if lives { this_thread() } else { 0 }, Ordering::Release);
    ENDPOINTS.store(false, Ordering::Release);
}

/// Threads get endpoints, which live as long as the runtime.
pub(crate) fn endpoint_given() {
    ENDPOINTS.store(true, Ordering::Release);
}

/// Whether MPI may be finalised by the calling thread while the runtime runs.
///
/// # Errors
/// `State` where threads may be in calls that borrow from a [`crate::Runtime`].
pub(super) fn check_end_by_host() -> Result<()> {
    let thread = RUNTIME_THREAD.load(Ordering::Acquire);
    if thread != 0 && (thread != this_thread() || ENDPOINTS.load(Ordering::Acquire)) {
        fail!(
            State,
            "the Runtime lives, and other threads may be using it; finalise it before MPI, on its \
             own thread"
        );
    }
    Ok(())
}

/// Has the engine start or stop on this thread alone.
pub(super) fn begin() -> MutexGuard<'static, ()> {
    LIFE.lock()
}

/// The same for the end, which must not wait for another one.
///
/// # Errors
/// `State` in a handler, and where another thread starts or stops the runtime.
pub(super) fn begin_to_end() -> Result<MutexGuard<'static, ()>> {
    if let Some(name) = handler::running() {
        fail!(State, "the handler {name} runs, and a handler cannot end the runtime");
    }
    match LIFE.try_lock() {
        Some(life) => Ok(life),
        None => fail!(State, "another thread starts or ends the runtime; one of them is enough"),
    }
}

/// The engine runs: calls are admitted.
pub(super) fn open() {
    DOOR.open();
}

/// Admits no call any more, and waits until those in progress have returned. A second time
/// nothing is left to do.
///
/// # Errors
/// `State` inside a call.
pub(super) fn shut(engine: &Engine) -> Result<()> {
    if DOOR.is_shut() {
        return Ok(());
    }
    if DOOR.am_inside() {
        fail!(State, "the runtime cannot be ended inside a call of function shipping");
    }
    DOOR.shut();
    let guests = *GUESTS.lock();
    if let Some(guests) = guests {
        (guests.wake)();
    }
    let what = || {
        let count = DOOR.others_inside();
        format!("{count} threads to return from calls of function shipping")
    };
    wait::until(engine, Cause::Other, &what, || Ok(DOOR.others_inside() == 0))?;
    if let Some(guests) = guests {
        (guests.leave)();
    }
    Ok(())
}

/// Tells the guests that the engine is gone.
pub(super) fn gone() {
    let guests = *GUESTS.lock();
    if let Some(guests) = guests {
        (guests.gone)();
    }
}
