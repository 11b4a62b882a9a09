//! Admission of calls by objects that may outlive the runtime, and the end of the runtime.
//!
//! Any thread can hold a class, context, call or bulk handle of function shipping, even after the
//! runtime has ended. Calls on these objects reach the engine by [`Engine::admit`], which costs two
//! plain memory accesses and a load ([`Door`]), and fails once the engine begins to stop. The
//! thread that stops the engine ([`shut`]) wakes the threads that wait in such calls, waits until
//! all calls have returned, and only then touches the state that they use.
//!
//! LAPI lets any thread call while another ends it, and its programs do. Its calls enter a door of
//! their own ([`begin_call`]), so that the end of LAPI alone waits for them ([`await_calls`]), and
//! an end of the engine does so too.
//!
//! Calls of ARMCI, X10 and compositions and of `portolan::Runtime` are not admitted individually,
//! because that would cost a short put 7 % more instructions. After the end, [`super::current`]
//! fails. The compiler ensures that values that borrow from a `Runtime` do not outlive it. A C
//! program must return from these calls before it ends the interface, as with MPI itself.
//!
//! Invariants: the engine that [`super::current`] returns changes only while the door is shut and
//! no thread is inside. User code runs inside only as a handler, which cannot end the runtime.

use super::{CURRENT, Engine, not_running};
use crate::core::handler;
use parking_lot::{Mutex, MutexGuard};
use portolan_base::error::{Error, ErrorKind, Result, fail};
use portolan_base::sync::door::{self, Door};
use portolan_base::thread::this_thread;
use portolan_base::trace::Cause;
use portolan_base::wait::{self, Progress};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

static DOOR: Door = Door::new(0);

/// The door of LAPI. Calls load a pointer to their state, so the door itself need not refuse them.
static CALLS: Door = Door::new(1);

static END_CALLS: Mutex<Option<fn()>> = Mutex::new(None);

/// Whether all calls have returned since the door was shut.
static HAVE_LEFT: AtomicBool = AtomicBool::new(false);

/// The thread of the `portolan::Runtime`, or 0. Safe Rust code may be in calls that are not
/// admitted, because the compiler bounds them by the life of the `Runtime`: on this thread and,
/// once `ENDPOINTS` is set, on any thread.
static RUNTIME_THREAD: AtomicUsize = AtomicUsize::new(0);
static ENDPOINTS: AtomicBool = AtomicBool::new(false);

static LIFE: Mutex<()> = Mutex::new(());

/// Callbacks of the module that owns objects that may outlive the runtime.
#[derive(Debug, Clone, Copy)]
pub struct Guests {
    /// Wakes the threads that wait in calls. The door is shut by then.
    pub wake: fn(),
    /// Runs when no call is in progress any more, while MPI still works.
    pub leave: fn(),
    /// Runs when the engine is gone. Must end the operations that were in progress on it.
    pub gone: fn(),
}

static GUESTS: Mutex<Option<Guests>> = Mutex::new(None);

#[derive(Debug)]
pub struct Admitted<'a> {
    engine: &'a Engine,
    _inside: door::InsideDoor,
}

impl Deref for Admitted<'_> {
    type Target = Engine;

    #[inline]
    fn deref(&self) -> &Engine {
        self.engine
    }
}

impl Engine {
    /// Begins a call that may send messages or wait for them, but not for user code. Fails with
    /// `State` if the engine is stopping or has stopped, or if this thread may not call MPI.
    #[inline]
    pub fn admit(&self) -> Result<Admitted<'_>> {
        let inside = DOOR.pass();
        if self.may_use_messages()
            && let Some(inside) = inside
            && std::ptr::eq(CURRENT.load(Ordering::Acquire), self)
        {
            return Ok(Admitted { engine: self, _inside: inside });
        }
        Err(self.refusal())
    }

    /// For a call that also uses MPI directly.
    pub fn admit_to_mpi(&self) -> Result<Admitted<'_>> {
        if self.may_call_mpi() { self.admit() } else { Err(self.refusal()) }
    }

    #[inline]
    pub fn check_admits(&self) -> Result<()> {
        self.admit().map(drop)
    }

    #[cold]
    fn refusal(&self) -> Error {
        if self.is_over() {
            return over();
        }
        let text = format!(
            "MPI was initialised at {}, so only the thread that started the runtime may \
             call function shipping; initialise MPI at MPI_THREAD_MULTIPLE to call it from other threads",
            self.thread_level().name()
        );
        Error::new(ErrorKind::State, text)
    }

    /// While the engine is stopping, threads inside an admitted call still get false.
    pub fn is_over(&self) -> bool {
        self.is_gone() || DOOR.is_shut() && !DOOR.am_inside()
    }

    pub fn is_gone(&self) -> bool {
        !std::ptr::eq(CURRENT.load(Ordering::Acquire), self)
    }
}

#[cold]
fn over() -> Error {
    let text = "the runtime was finalised, or is being finalised; objects created before its end \
                can no longer communicate";
    Error::new(ErrorKind::State, text)
}

/// Begins a call on the running engine that neither sends nor waits.
pub fn admit_current() -> Result<Admitted<'static>> {
    let Some(inside) = DOOR.pass() else { return Err(not_running()) };
    // The engine stays while this thread is inside.
    Ok(Admitted { engine: super::current()?, _inside: inside })
}

/// For a handler of function shipping. The engine cannot end meanwhile.
pub fn in_handler() -> door::InsideDoor {
    DOOR.pass_anyway()
}

/// Begins a call that any thread may make while another ends its interface. The caller must then
/// load the pointer to the state that it uses, and may use this state until the result is dropped.
#[inline]
pub fn begin_call() -> door::InsideDoor {
    CALLS.announce()
}

/// The number of calls that this thread has begun, one inside the other.
pub fn depth_of_calls() -> u32 {
    CALLS.depth()
}

/// Waits until other threads have left the calls that they have begun with a pointer that the
/// caller has cleared. Fails as `progress`.
pub fn await_calls(progress: &impl Progress) -> Result<()> {
    CALLS.shut();
    let what = || format!("{} threads to return from calls", CALLS.others_inside());
    wait::until(progress, Cause::Other, &what, || Ok(CALLS.others_inside() == 0))
}

/// Sets the function that clears the pointer of [`begin_call`] before the engine ends.
pub fn set_end_calls(end: fn()) {
    *END_CALLS.lock() = Some(end);
}

/// For waits of threads that may not use the engine. They fail when the engine ends.
#[derive(Debug)]
pub struct Outside;

impl Progress for Outside {
    fn poll(&self) -> Result<bool> {
        if super::is_running() { Ok(false) } else { Err(over()) }
    }
    fn may_wait(&self) -> Result<()> {
        if super::is_running() { Ok(()) } else { Err(over()) }
    }
}

pub fn set_guests(guests: Guests) {
    *GUESTS.lock() = Some(guests);
}

/// A `portolan::Runtime` is created on this thread, or dropped.
pub fn set_runtime(lives: bool) {
    RUNTIME_THREAD.store(if lives { this_thread() } else { 0 }, Ordering::Release);
    ENDPOINTS.store(false, Ordering::Release);
}

pub fn endpoint_given() {
    ENDPOINTS.store(true, Ordering::Release);
}

/// Fails with `State` if other threads may be in calls that borrow from a `portolan::Runtime`.
pub(super) fn check_end_by_host() -> Result<()> {
    let thread = RUNTIME_THREAD.load(Ordering::Acquire);
    if thread != 0 && (thread != this_thread() || ENDPOINTS.load(Ordering::Acquire)) {
        fail!(
            State,
            "the Runtime still exists, and other threads may be using it; finalise it before MPI, \
             on its own thread"
        );
    }
    Ok(())
}

/// Waits until no other thread starts or stops the engine, and excludes others until dropped.
pub fn begin() -> MutexGuard<'static, ()> {
    LIFE.lock()
}

/// Like [`begin`], but fails with `State` instead of waiting, and in a handler.
pub(super) fn begin_to_end() -> Result<MutexGuard<'static, ()>> {
    if let Some(name) = handler::running() {
        fail!(State, "the handler {name} is running, and a handler cannot end the runtime");
    }
    match LIFE.try_lock() {
        Some(life) => Ok(life),
        None => fail!(State, "another thread is starting or ending the runtime"),
    }
}

pub fn open() {
    HAVE_LEFT.store(false, Ordering::Release);
    DOOR.open();
}

/// Stops the admission of calls, and waits until those in progress have returned. Does nothing
/// after it has succeeded once. Fails with `State` inside an admitted call, and if the wait fails.
pub(super) fn shut(engine: &Engine) -> Result<()> {
    if HAVE_LEFT.load(Ordering::Acquire) {
        return Ok(());
    }
    if DOOR.am_inside() || CALLS.am_inside() {
        fail!(State, "the runtime cannot be ended inside a call of the library");
    }
    DOOR.shut();
    let end_calls = *END_CALLS.lock();
    if let Some(end_calls) = end_calls {
        end_calls();
    }
    let guests = *GUESTS.lock();
    if let Some(guests) = guests {
        (guests.wake)();
    }
    let what = || {
        let count = DOOR.others_inside();
        format!("{count} threads to return from calls of function shipping")
    };
    wait::until(engine, Cause::Other, &what, || Ok(DOOR.others_inside() == 0))?;
    await_calls(engine)?;
    if let Some(guests) = guests {
        (guests.leave)();
    }
    HAVE_LEFT.store(true, Ordering::Release);
    Ok(())
}

pub(super) fn gone() {
    let guests = *GUESTS.lock();
    if let Some(guests) = guests {
        (guests.gone)();
    }
}
