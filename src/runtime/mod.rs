//! The engine: one per process, from start to stop.
//!
//! [`Engine::start`] initialises or adopts MPI, finds the topology, decides
//! which paths the job uses, and starts the progress thread where one is
//! needed. [`Engine::stop`] undoes it all. Both are collective. The engine may be
//! started again after it was stopped, as long as MPI runs.
//!
//! The C faces reach the engine through [`current`], one atomic load; the Rust
//! interface holds it by reference count. Calls of C on other threads must have
//! returned before the engine is stopped, as for MPI itself. Objects that may outlive it, or be
//! used by any thread, reach it through [`admission`].

use crate::am::{Am, Handler, HandlerId, Owner};
use crate::any_memory::AnyMemory;
use crate::core::handler;
use crate::error::{Error, ErrorKind, Result, unless_forked};
use crate::progress::ProgressThread;
use crate::watchdog::Watchdog;
use parking_lot::{Mutex, RwLock};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::time::Instant;

pub(crate) mod admission;
mod choice;
mod host;
mod introduction;
pub(crate) mod log_sink;
mod oversubscription;
mod path_selection;
mod start;
pub(crate) mod statistics;
mod tracing;
mod trial;

/// An engine: all layers, and what starts and stops them.
#[derive(Debug)]
pub struct Engine {
    layers: AnyMemory,
    /// Why transfers between nodes take the path they take.
    pub remote_reason: String,
    /// What was measured for that, a line for each kind of pair: where, and what.
    pub remote_measured: Vec<(&'static str, String)>,
    ours: bool,
    stopped: AtomicBool,
    thread: Mutex<Option<ProgressThread>>,
    started: Instant,
    /// When the statistics were set back.
    counted_since: Mutex<Instant>,
    watchdog: Mutex<Option<Watchdog>>,
    /// Blocking calls of MPI by the program wait in the engine's way.
    host_waits: bool,
    /// Such waits may poll.
    host_open: RwLock<bool>,
}

impl Deref for Engine {
    type Target = AnyMemory;

    #[inline]
    fn deref(&self) -> &AnyMemory {
        &self.layers
    }
}

crate::wait::progress_by_deref!(Engine);

impl Owner for Engine {
    fn am(&self) -> &Am {
        &self.layers
    }
}

static CURRENT: AtomicPtr<Engine> = AtomicPtr::new(std::ptr::null_mut());
static OWNER: Mutex<Option<Arc<Engine>>> = Mutex::new(None);

/// The running engine.
///
/// # Errors
/// `State` before start and after stop.
#[inline]
pub fn current() -> Result<&'static Engine> {
    let engine = CURRENT.load(Ordering::Acquire);
    if engine.is_null() {
        return Err(not_running());
    }
    // SAFETY: the pointer is that of the engine in OWNER, which stays until `stop`. Safe code
    // of other threads is admitted before, and `stop` waits for it; callers in C return before
    // they stop the engine, as their headers ask.
    Ok(unsafe { &*engine })
}

/// Hides the engine from calls in a forked child.
fn forked() {
    let engine = CURRENT.swap(std::ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: as in `current`.
    if let Some(engine) = unsafe { engine.as_ref() } {
        engine.refuse_calls();
    }
}

#[cold]
fn not_running() -> Error {
    if crate::process::is_forked() {
        return Error::in_fork();
    }
    Error::new(
        ErrorKind::State,
        "the runtime is not initialised, or was finalised already; initialise it first",
    )
}

/// Whether an engine runs.
pub fn is_running() -> bool {
    !CURRENT.load(Ordering::Acquire).is_null()
}

/// The engine, by reference count.
pub fn current_arc() -> Result<Arc<Engine>> {
    // In a child that was forked the lock may be held by a thread of the parent.
    unless_forked()?;
    OWNER.lock().clone().ok_or_else(not_running)
}

/// The engine by reference count, where one runs.
fn try_running() -> Option<Arc<Engine>> {
    if is_running() { OWNER.lock().clone() } else { None }
}

/// What the engine has pending, where there is one and no thread starts or stops it.
fn pending() -> Option<String> {
    Some(OWNER.try_lock()?.as_ref()?.pending())
}

impl Engine {
    /// As [`Am::add_handlers`]; the first call starts active messages.
    ///
    /// # Errors
    /// As there; `Memory` where `PORTOLAN_AM=node` and there is no shared memory.
    pub fn register_handlers(
        &self,
        handlers: Vec<(String, Arc<dyn Handler>)>,
    ) -> Result<Vec<HandlerId>> {
        self.start_am()?;
        self.add_handlers(handlers)
    }

    /// The name of the handler that this thread runs, if it does.
    pub fn running_handler() -> Option<String> {
        handler::running().map(str::to_string)
    }
}
