//! The context: what a handle stands for.
//!
//! A call enters through [`call`], which turns errors into codes, and [`enter`],
//! which finds the context of its handle. The context lives from `LAPI_Init` to
//! `LAPI_Term`; calls on other threads must have returned before it ends. A handle is
//! never used twice, so one that was terminated is known to be invalid.

use super::groups::Groups;
use super::messages;
use super::outcome::{Failure, Outcome, refuse};
use super::pending::Pending;
use super::traffic::{Traffic, Transport};
use super::types::{ComplHandler, ErrHandler, ErrorOf, Handle, Hook, SendHandler};
use super::watched::Watched;
use crate::am::Am;
use crate::am::HandlerId;
use crate::am::gate::Gate;
use crate::capi::boundary;
use crate::core::handler;
use crate::error::{Error, ErrorKind, Result};
use crate::process;
use crate::runtime::{self, Engine};
use parking_lot::{Mutex, RwLock};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::os::raw::{c_int, c_uint};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

/// `LOC_ADDRTBL_SZ`: indices are less than it.
pub(crate) const TABLE: usize = 128;

/// The engine's handlers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handlers {
    /// Active messages.
    pub message: HandlerId,
    /// Counts a counter.
    pub count: HandlerId,
    /// Runs something of the rank's own on the completion thread.
    pub run: HandlerId,
    /// Read-modify-write, and its answer.
    pub rmw: HandlerId,
    /// The answer.
    pub answer: HandlerId,
}

impl Handlers {
    /// All of them.
    pub(crate) fn all(&self) -> [HandlerId; 5] {
        [self.message, self.count, self.run, self.rmw, self.answer]
    }
}

/// What `LAPI_Msgpoll` looks at.
#[derive(Debug, Default)]
pub(crate) struct Tallies {
    /// Messages whose data may be changed again.
    pub left: AtomicU64,
    /// Messages received and done.
    pub received: AtomicU64,
}

/// What can be set.
#[derive(Debug)]
pub(crate) struct Settings {
    /// `ERROR_CHK`
    pub error_chk: AtomicI32,
    /// `TIMEOUT`
    pub timeout: AtomicI32,
    /// `INTERRUPT_SET`
    pub interrupt: AtomicI32,
    /// `ACK_THRESHOLD`
    pub ack_threshold: AtomicI32,
}

/// A context.
#[derive(Debug)]
pub(crate) struct Context {
    handle: AtomicU32,
    /// The user's error handler.
    pub err_hndlr: Option<ErrHandler>,
    /// The engine's handlers.
    pub handlers: Handlers,
    /// Says where the program's handlers run.
    pub gate: Arc<Gate>,
    /// No index is set any more.
    pub ending: AtomicBool,
    /// Header handlers by index.
    pub table: [AtomicUsize; TABLE],
    /// Addresses of other ranks that `LAPI_Address_init` has given.
    pub exchanged: RwLock<HashSet<(usize, u64)>>,
    /// How addresses of header handlers travel, once found out.
    pub routes: RwLock<HashMap<(usize, u64), (u64, u64)>>,
    /// Header handlers that have come, as they travel, and where they are.
    pub code: RwLock<HashMap<(u64, u64), usize>>,
    /// Addresses given by other ranks that were found to be in use.
    pub in_use: RwLock<HashSet<usize>>,
    purged: Box<[AtomicBool]>,
    /// How often a target was purged.
    pub purges: AtomicU32,
    /// Counters for which `LAPI_Nopoll_wait` waits.
    pub waited_for: Mutex<HashSet<usize>>,
    /// Transfers that are not done.
    pub pending: Pending,
    /// Read-modify-writes without an answer.
    pub asked: AtomicUsize,
    /// Counts of what this task has sent and received.
    pub tallies: Tallies,
    /// The transport to each rank.
    pub transports: Box<[Transport]>,
    /// The messages that have gone by each transport.
    pub traffic: [Traffic; 3],
    /// Counters that keep the status of destinations.
    pub watched: Watched,
    /// Groups for multicasts.
    pub groups: Groups,
    /// What can be set.
    pub settings: Settings,
}

static CURRENT: AtomicPtr<Context> = AtomicPtr::new(ptr::null_mut());
static OWNER: Mutex<Option<Arc<Context>>> = Mutex::new(None);

impl Context {
    /// A fresh context for as many ranks as there are transports.
    pub(crate) fn new(
        handle: Handle,
        err_hndlr: Option<ErrHandler>,
        handlers: Handlers,
        gate: Arc<Gate>,
        transports: Box<[Transport]>,
    ) -> Context {
        Context {
            handle: AtomicU32::new(handle),
            err_hndlr,
            handlers,
            ending: AtomicBool::new(false),
            table: [const { AtomicUsize::new(0) }; TABLE],
            exchanged: RwLock::default(),
            routes: RwLock::default(),
            code: RwLock::default(),
            in_use: RwLock::default(),
            purged: transports.iter().map(|_| AtomicBool::new(false)).collect(),
            purges: AtomicU32::new(0),
            waited_for: Mutex::default(),
            pending: Pending::default(),
            asked: AtomicUsize::new(0),
            tallies: Tallies::default(),
            transports,
            traffic: Default::default(),
            watched: Watched::default(),
            groups: Groups::default(),
            settings: Settings {
                error_chk: AtomicI32::new(0),
                timeout: AtomicI32::new(900),
                interrupt: AtomicI32::new(c_int::from(!gate.is_polling())),
                ack_threshold: AtomicI32::new(30),
            },
            gate,
        }
    }

    /// The handle.
    pub(crate) fn handle(&self) -> Handle {
        self.handle.load(Ordering::Relaxed)
    }

    /// What handlers get as their first argument.
    pub(crate) fn handle_ptr(&self) -> *mut Handle {
        self.handle.as_ptr()
    }

    /// How many tasks there are.
    pub(crate) fn tasks(&self) -> usize {
        self.transports.len()
    }

    /// What has gone to `rank`, and by the same transport to others.
    #[inline]
    pub(crate) fn traffic(&self, rank: usize) -> &Traffic {
        &self.traffic[self.transports[rank] as usize]
    }

    /// A target that C gives.
    ///
    /// # Errors
    /// `TGT` outside the job, `TGT_PURGED`.
    #[inline]
    pub(crate) fn target(&self, tgt: c_uint) -> Outcome<usize> {
        let target = self.task(tgt)?;
        if self.is_purged(target) {
            refuse!(messages::TGT_PURGED, "task {tgt} was purged; LAPI_Resume_totask admits it");
        }
        Ok(target)
    }

    /// A task that C gives, purged or not.
    #[inline]
    pub(crate) fn task(&self, tgt: c_uint) -> Outcome<usize> {
        let tasks = self.purged.len();
        if tgt as usize >= tasks {
            refuse!(messages::TGT, "task {tgt} is outside the {tasks} tasks of the job");
        }
        Ok(tgt as usize)
    }

    /// Whether a rank was purged.
    #[inline]
    pub(crate) fn is_purged(&self, rank: usize) -> bool {
        self.purged[rank].load(Ordering::Relaxed)
    }

    /// Purges a rank, or admits it again.
    pub(crate) fn set_purged(&self, rank: usize, purged: bool) {
        self.purged[rank].store(purged, Ordering::SeqCst);
        if purged {
            self.watched.purged(rank);
            self.purges.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Whether any rank is purged.
    pub(crate) fn purged_any(&self) -> bool {
        self.purged.iter().any(|p| p.load(Ordering::Relaxed))
    }

    /// Tells the user's error handler of something that no call can return. The
    /// error that comes back is to end the job.
    #[cold]
    pub(crate) fn tell(&self, code: c_int, of: ErrorOf, src: usize, text: String) -> Error {
        let name = messages::describe(code).unwrap_or_default();
        let mut error = Error::new(ErrorKind::State, format!("{text}; {name}"));
        if let Some(tell) = self.err_hndlr {
            error.log_once();
            let me = runtime::current().map_or(0, |engine| engine.rank());
            let (mut code, mut of) = (code, of as c_int);
            let (mut me, mut src) = (me as c_int, src as c_int);
            // SAFETY: the user gave the handler to LAPI_Init; the arguments are locals.
            unsafe { tell(self.handle_ptr(), &mut code, &mut of, &mut me, &mut src) };
        }
        error
    }
}

/// Makes a context the current one.
pub(crate) fn install(context: Context) {
    let context = Arc::new(context);
    CURRENT.store(Arc::as_ptr(&context).cast_mut(), Ordering::Release);
    *OWNER.lock() = Some(context);
}

/// Ends the current context.
pub(crate) fn remove() {
    CURRENT.store(ptr::null_mut(), Ordering::Release);
    OWNER.lock().take();
}

/// Whether there is a context and an engine below it.
pub(crate) fn is_live() -> bool {
    !CURRENT.load(Ordering::Acquire).is_null() && runtime::is_running()
}

/// The current context, for handlers.
///
/// # Errors
/// `State` where there is none.
#[inline]
pub(crate) fn current() -> Result<&'static Context> {
    let context = CURRENT.load(Ordering::Acquire);
    if context.is_null() {
        return Err(Error::new(ErrorKind::State, "there is no LAPI context; LAPI_Init makes it"));
    }
    // SAFETY: the pointer is that of the context in OWNER, which stays until
    // LAPI_Term; calls of other threads and all messages are done by then.
    Ok(unsafe { &*context })
}

/// The context of a handle, and the engine.
///
/// # Errors
/// `HNDL_INVALID`
#[inline]
pub(crate) fn enter(hndl: Handle) -> Outcome<(&'static Context, &'static Engine)> {
    match (current(), runtime::current()) {
        (Ok(context), Ok(engine)) if context.handle() == hndl => Ok((context, engine)),
        (Ok(context), Ok(_)) => {
            let live = context.handle();
            refuse!(messages::HNDL_INVALID, "handle {hndl} is not valid; handle {live} is")
        }
        _ => refuse!(
            messages::HNDL_INVALID,
            "handle {hndl}: LAPI is not initialised, or was terminated"
        ),
    }
}

/// For calls that wait for others: a handler must not make them, not even where it
/// would not have to wait.
///
/// # Errors
/// `UNKNOWN`, naming the handler.
pub(crate) fn may_wait() -> Outcome {
    match handler::running() {
        None => Ok(()),
        Some(name) => refuse!(
            messages::UNKNOWN,
            "a handler ({name}) called a function that waits; header handlers and inline \
             completion handlers must not block"
        ),
    }
}

/// The code of an engine's error.
fn code_of(error: &Error) -> c_int {
    match error.kind() {
        ErrorKind::Memory => messages::MEMORY_EXHAUSTED,
        ErrorKind::Rank => messages::TGT,
        ErrorKind::Address => messages::TGT_ADDR_NULL,
        _ => messages::UNKNOWN,
    }
}

/// Runs the body of a call: errors and panics become codes, and are written to
/// standard error, except that a target was purged.
#[inline]
pub(crate) fn call(name: &'static str, body: impl FnOnce() -> Outcome) -> c_int {
    let code = Cell::new(messages::UNKNOWN);
    let failed = |error: &Error| {
        if code.get() == messages::TGT_PURGED {
            log::debug!("{error}");
        } else {
            boundary::reported(error);
        }
        code.get()
    };
    // While a thread is in a call, the program's handlers may run on it.
    let _inside = match process::is_forked() {
        true => None,
        false => current().ok().map(|context| context.gate.enter()),
    };
    boundary::guard(name, failed, || {
        body().map(|()| messages::SUCCESS).map_err(|failure| {
            let error = match failure {
                Failure::Code(given, text) => {
                    code.set(given);
                    Error::new(ErrorKind::Argument, text)
                }
                Failure::Engine(error) => {
                    code.set(code_of(&error));
                    error
                }
            };
            let name = messages::describe(code.get()).unwrap_or_default();
            let name = name.split(':').next().unwrap_or_default();
            Error::new(error.kind(), format!("{}; {name}", error.detail()))
        })
    })
}

/// Ends the job because of an error that nobody can be told.
#[cold]
pub(crate) fn fatal(error: &Error) -> ! {
    error.clone().log_once();
    crate::process::end_job(error.kind().code())
}

impl Hook<ComplHandler> {
    /// Calls it.
    pub(crate) fn call(self, context: &Context) {
        // SAFETY: the user gave both, for this.
        unsafe { (self.0)(context.handle_ptr(), self.1) }
    }
}

impl Hook<SendHandler> {
    /// Calls it for a message to `target`: now, or in the next call in polling mode.
    ///
    /// # Errors
    /// What the engine returns.
    pub(crate) fn call(self, context: &'static Context, engine: &Am, target: usize) -> Result<()> {
        engine.run_at_gate(&context.gate, move |_| self.call_now(context, target))
    }

    fn call_now(self, context: &Context, target: usize) {
        let mut info = super::types::SendInfo {
            src: target as c_uint,
            reason: messages::SUCCESS as c_uint,
            reserve: [0; 6],
        };
        // SAFETY: the user gave both, for this; the information is a local.
        unsafe { (self.0)(context.handle_ptr(), self.1, &mut info) }
    }
}
