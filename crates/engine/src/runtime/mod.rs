//! The process's engine, from start to stop.
//!
//! [`Engine::start`] initialises or adopts MPI, finds the topology, decides which paths the job
//! uses, and starts the progress thread if needed. [`Engine::stop`] undoes this. Both are
//! collective. The engine can be started again after a stop while MPI runs.
//!
//! The C interfaces reach the engine through [`current`], one atomic load; the Rust interface
//! counts references. Several interfaces share an engine by [`sharing`]. Objects that any thread may use or that may outlive it use [`admission`].

use crate::am::{Am, Handler, HandlerId, Owner};
use crate::core::handler;
use parking_lot::{Mutex, RwLock};
use portolan_base::error::{Error, ErrorKind, Result, unless_forked};
use portolan_base::wait::watchdog::Watchdog;
use progress_thread::ProgressThread;
use std::fs::File;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::time::Instant;

pub mod admission;
pub mod host;
pub mod log_sink;
mod oversubscription;
mod path_selection;
mod progress_thread;
pub mod sharing;
mod start;
mod startup_record;
pub mod statistics;
mod trace_lock;
mod tracing;

#[derive(Debug)]
pub struct Engine {
    layers: Am,
    pub remote_reason: &'static str,
    ours: bool,
    stopped: AtomicBool,
    thread: Mutex<Option<ProgressThread>>,
    started: Instant,
    counted_since: Mutex<Instant>,
    watchdog: Mutex<Option<Watchdog>>,
    trace_lock: Mutex<Option<File>>,
    host_waits: bool,
    /// Whether these waits may poll the engine.
    host_open: RwLock<bool>,
}

impl Deref for Engine {
    type Target = Am;

    #[inline]
    fn deref(&self) -> &Am {
        &self.layers
    }
}

crate::core::progress_by_deref!(Engine);

impl Owner for Engine {
    fn am(&self) -> &Am {
        &self.layers
    }
}

static CURRENT: AtomicPtr<Engine> = AtomicPtr::new(std::ptr::null_mut());
static OWNER: Mutex<Option<Arc<Engine>>> = Mutex::new(None);

/// Fails with `State` without an engine and in a forked child.
#[inline]
pub fn current() -> Result<&'static Engine> {
    let engine = CURRENT.load(Ordering::Acquire);
    if engine.is_null() {
        return Err(not_running());
    }
    // SAFETY: the pointer is that of the engine in `OWNER`, which stays until `stop`. Calls of safe
    // code on other threads have been admitted, and `stop` waits for them. C callers must return
    // before they stop the engine, as their headers require.
    Ok(unsafe { &*engine })
}

/// Hides the engine from calls in a forked child.
fn forked() {
    let engine = CURRENT.swap(std::ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: the engine was alive at the fork, and nothing in the child drops it.
    if let Some(engine) = unsafe { engine.as_ref() } {
        engine.refuse_calls();
    }
}

#[cold]
fn not_running() -> Error {
    if portolan_base::process::is_forked() {
        return Error::in_fork();
    }
    Error::new(
        ErrorKind::State,
        "the runtime is not initialised, or was finalised already; initialise it first",
    )
}

pub fn is_running() -> bool {
    !CURRENT.load(Ordering::Acquire).is_null()
}

pub fn current_arc() -> Result<Arc<Engine>> {
    // In a forked child, a thread of the parent may hold the lock.
    unless_forked()?;
    OWNER.lock().clone().ok_or_else(not_running)
}

fn try_running() -> Option<Arc<Engine>> {
    if is_running() { OWNER.lock().clone() } else { None }
}

/// `None` without an engine or while a thread starts or stops it.
fn pending() -> Option<String> {
    Some(OWNER.try_lock()?.as_ref()?.pending())
}

impl Engine {
    /// Like [`Am::add_handlers`]. The first call starts active messages, and fails with `Memory` if
    /// they need shared memory (`PORTOLAN_AM=node`, or an engine without messages) that is not
    /// available.
    pub fn register_handlers(
        &self,
        handlers: Vec<(String, Arc<dyn Handler>)>,
    ) -> Result<Vec<HandlerId>> {
        self.start_am()?;
        self.add_handlers(handlers)
    }

    pub fn running_handler() -> Option<String> {
        handler::running().map(str::to_string)
    }
}
