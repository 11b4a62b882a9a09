//! The context: the state behind a handle.
//!
//! A call enters through [`call`], which turns errors into codes, and [`enter`], which finds the
//! context of its handle. A handle is never reused, so a terminated one is always recognised.
//!
//! Any thread may call while another ends the context. Each call announces itself
//! ([`admission::begin_call`]) before it loads [`ADMITTED`]. The end first clears that pointer
//! ([`shut`]), so that new calls fail with `HNDL_INVALID` and waits give up ([`gives_up`]), and
//! waits for the calls in progress. Until the context is removed, handlers still reach it, with the
//! calls that they make, and so do holders of the LAPI_Util lock, which must be able to release it.
//!
//! Invariants: a call uses the context and the engine only between its announcement and its return.
//! [`remove`] frees the context when no call is in progress and no message can arrive.

use super::agreement::Agreement;
use super::groups::Groups;
use super::messages;
use super::outcome::{Failure, Outcome, refuse};
use super::pending::Pending;
use super::traffic::{Traffic, TrafficKind};
use super::types::{ComplHandler, ErrHandler, ErrorOf, Handle, Hook, SendHandler};
use super::watched::Watched;
use crate::boundary;
use parking_lot::{Mutex, RwLock};
use portolan_base::error::{Error, ErrorKind, Result};
use portolan_base::wait::Boot;
use portolan_engine::am::Am;
use portolan_engine::am::HandlerId;
use portolan_engine::am::deferral::Deferral;
use portolan_engine::core::handler;
use portolan_engine::runtime::{self, Engine, admission};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::collections::HashSet;
use std::os::raw::{c_int, c_uint};
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
use std::sync::{Arc, Weak};

/// `LOC_ADDRTBL_SZ`. Valid indices are less than this.
pub(crate) const TABLE: usize = 128;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Handlers {
    pub message: HandlerId,
    pub count: HandlerId,
    pub run: HandlerId,
    pub rmw: HandlerId,
    pub answer: HandlerId,
    pub agreement: HandlerId,
}

impl Handlers {
    /// In the order of the fields.
    pub(crate) fn all(&self) -> [HandlerId; 6] {
        [self.message, self.count, self.run, self.rmw, self.answer, self.agreement]
    }
}

/// The counts that `LAPI_Msgpoll` watches.
#[derive(Debug, Default)]
pub(crate) struct Tallies {
    /// Messages sent whose data may be modified again.
    pub left: AtomicU64,
    /// Messages received and finished.
    pub received: AtomicU64,
}

/// The values that `LAPI_Senv` sets.
#[derive(Debug)]
pub(crate) struct Settings {
    pub error_chk: AtomicI32,
    pub timeout: AtomicI32,
    pub interrupt: AtomicI32,
    pub ack_threshold: AtomicI32,
}

#[derive(Debug)]
pub(crate) struct Context {
    handle: AtomicU32,
    engine: Weak<Engine>,
    pub err_hndlr: Option<ErrHandler>,
    pub handlers: Handlers,
    /// Decides on which threads the program's handlers run.
    pub deferral: Arc<Deferral>,
    /// `LAPI_Term` waits for the last messages. Messages for an index that is not set now fail.
    pub ending: AtomicBool,
    pub agreement: Agreement,
    /// `LAPI_Term` has returned, and the context remains for messages of other tasks.
    pub retired: AtomicBool,
    /// The header handlers by index; 0 if none is set.
    pub table: [AtomicUsize; TABLE],
    /// Addresses of other ranks returned by `LAPI_Address_init`, as (rank, address).
    pub exchanged: RwLock<HashSet<(usize, u64)>>,
    /// The number of calls of `LAPI_Address_init` that have cleared `routes`.
    pub exchanges: AtomicU32,
    /// Cache of (object, handler) as sent in a message, by (target, header handler address).
    pub routes: RwLock<FxHashMap<(usize, u64), (u64, u64)>>,
    /// Cache of the addresses of received header handlers, by (object, handler) as sent.
    pub code: RwLock<FxHashMap<(u64, u64), usize>>,
    /// Addresses received from other ranks that were found to be writable.
    pub in_use: RwLock<HashSet<usize>>,
    purged: Box<[AtomicBool]>,
    pub purges: AtomicU32,
    /// The addresses of counters on which a `LAPI_Nopoll_wait` waits.
    pub waited_for: Mutex<HashSet<usize>>,
    pub pending: Pending,
    /// The number of read-modify-writes without an answer.
    pub asked: AtomicUsize,
    pub tallies: Tallies,
    pub transports: Box<[TrafficKind]>,
    pub traffic: [Traffic; 3],
    pub watched: Watched,
    pub groups: Groups,
    pub settings: Settings,
}

/// The context for new calls, or null while it ends.
static ADMITTED: AtomicPtr<Context> = AtomicPtr::new(ptr::null_mut());
/// The context in `OWNER`, or null.
static CURRENT: AtomicPtr<Context> = AtomicPtr::new(ptr::null_mut());
static OWNER: Mutex<Option<Arc<Context>>> = Mutex::new(None);

impl Context {
    pub(crate) fn new(
        handle: Handle,
        err_hndlr: Option<ErrHandler>,
        handlers: Handlers,
        deferral: Arc<Deferral>,
        transports: Box<[TrafficKind]>,
    ) -> Context {
        Context {
            handle: AtomicU32::new(handle),
            engine: runtime::current_arc().map_or_else(|_| Weak::new(), |e| Arc::downgrade(&e)),
            err_hndlr,
            handlers,
            ending: AtomicBool::new(false),
            agreement: Agreement::new(handlers.agreement),
            retired: AtomicBool::new(false),
            table: [const { AtomicUsize::new(0) }; TABLE],
            exchanged: RwLock::default(),
            exchanges: AtomicU32::new(0),
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
                interrupt: AtomicI32::new(c_int::from(!deferral.is_polling())),
                ack_threshold: AtomicI32::new(30),
            },
            deferral,
        }
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle.load(Ordering::Relaxed)
    }

    /// Another interface or `MPI_Finalize` has ended the engine of the context.
    pub(crate) fn has_lost_engine(&self) -> bool {
        self.engine.upgrade().is_none_or(|engine| engine.is_gone())
    }

    pub(crate) fn tasks(&self) -> usize {
        self.transports.len()
    }

    #[inline]
    pub(crate) fn traffic(&self, rank: usize) -> &Traffic {
        &self.traffic[self.transports[rank] as usize]
    }

    /// Checks a target passed from C and returns its rank. Fails with `TGT` outside the job, and
    /// with `TGT_PURGED` if it is purged.
    #[inline]
    pub(crate) fn target(&self, tgt: c_uint) -> Outcome<usize> {
        let target = self.task(tgt)?;
        if self.is_purged(target) {
            refuse!(
                messages::TGT_PURGED,
                "task {tgt} was purged; call LAPI_Resume_totask to admit it again"
            );
        }
        Ok(target)
    }

    /// Checks a task passed from C and returns its rank, purged or not.
    #[inline]
    pub(crate) fn task(&self, tgt: c_uint) -> Outcome<usize> {
        let tasks = self.purged.len();
        if tgt as usize >= tasks {
            refuse!(messages::TGT, "task {tgt} is outside the {tasks} tasks of the job");
        }
        Ok(tgt as usize)
    }

    #[inline]
    pub(crate) fn is_purged(&self, rank: usize) -> bool {
        self.purged[rank].load(Ordering::Relaxed)
    }

    pub(crate) fn set_purged(&self, rank: usize, purged: bool) {
        self.purged[rank].store(purged, Ordering::SeqCst);
        if purged {
            self.watched.purged(rank);
            self.purges.fetch_add(1, Ordering::SeqCst);
        }
    }

    pub(crate) fn purged_any(&self) -> bool {
        self.purged.iter().any(|p| p.load(Ordering::Relaxed))
    }

    /// Reports an error that no call can return to the program's error handler, if there is one.
    /// The returned error is meant to end the job.
    #[cold]
    pub(crate) fn report(&self, code: c_int, of: ErrorOf, src: usize, text: String) -> Error {
        let name = messages::describe(code).unwrap_or_default();
        let mut error = Error::new(ErrorKind::State, format!("{text}; {name}"));
        if let Some(report) = self.err_hndlr {
            error.log_once();
            let me = runtime::current().map_or(0, |engine| engine.rank());
            let (mut code, mut of) = (code, of as c_int);
            let (mut me, mut src) = (me as c_int, src as c_int);
            // SAFETY: the program passed the handler to LAPI_Init. The arguments are live locals.
            unsafe { report(&mut self.handle(), &mut code, &mut of, &mut me, &mut src) };
        }
        error
    }
}

pub(crate) fn install(context: Context) {
    let context = Arc::new(context);
    let place = Arc::as_ptr(&context).cast_mut();
    *OWNER.lock() = Some(context);
    CURRENT.store(place, Ordering::Release);
    ADMITTED.store(place, Ordering::Release);
    admission::set_end_calls(end_calls);
}

fn end_calls() {
    ADMITTED.store(ptr::null_mut(), Ordering::SeqCst);
}

/// Refuses new calls, and waits until those in progress have returned. Fails as the engine, and
/// then admits calls again.
pub(crate) fn shut(engine: &Engine) -> Result<()> {
    end_calls();
    admission::await_calls(engine).inspect_err(|_| reopen())
}

/// Admits calls again, after the end of the context has failed.
pub(crate) fn reopen() {
    ADMITTED.store(CURRENT.load(Ordering::Acquire), Ordering::Release);
}

/// Frees the context, after the last calls have returned.
pub(crate) fn remove() -> Result<()> {
    end_calls();
    CURRENT.store(ptr::null_mut(), Ordering::SeqCst);
    match runtime::current() {
        Ok(engine) => admission::await_calls(engine)?,
        Err(_) => admission::await_calls(&Boot)?,
    }
    OWNER.lock().take();
    Ok(())
}

/// Whether a wait of this thread must end, because another thread ends the context. Handlers may
/// still wait, because that thread waits for them.
pub(crate) fn gives_up() -> bool {
    ADMITTED.load(Ordering::Acquire).is_null() && admission::depth_of_calls() == 1 && !in_handler()
}

fn in_handler() -> bool {
    handler::running().is_some() || handler::is_in_completion()
}

#[cold]
pub(crate) fn given_up<R>() -> Outcome<R> {
    refuse!(messages::HNDL_INVALID, "another thread has ended the context during the wait")
}

/// For message handlers, which get no handle. Fails with `State` without a context.
#[inline]
pub(crate) fn current() -> Result<&'static Context> {
    let context = CURRENT.load(Ordering::Acquire);
    if context.is_null() {
        return Err(missing());
    }
    // SAFETY: the pointer refers to the context in OWNER. `remove` frees it after all messages are
    // handled and all announced calls have returned.
    Ok(unsafe { &*context })
}

/// The context for a call that was announced, and null if there is none.
#[inline]
fn reachable() -> *const Context {
    let context = ADMITTED.load(Ordering::Acquire);
    if context.is_null() { while_ending() } else { context }
}

#[cold]
#[inline(never)]
fn while_ending() -> *const Context {
    let context = CURRENT.load(Ordering::Acquire);
    let admits = in_handler()
        || admission::depth_of_calls() > 1
        || runtime::current().is_ok_and(|engine| engine.has_handlers_lock());
    if admits { context } else { ptr::null() }
}

#[cold]
fn missing() -> Error {
    Error::new(ErrorKind::State, "no LAPI context exists; create it with LAPI_Init")
}

/// For the body of a [`call`]. Fails with `HNDL_INVALID` if the handle does not belong to the
/// current context, or if the context ends.
#[inline]
pub(crate) fn enter(hndl: Handle) -> Outcome<(&'static Context, &'static Engine)> {
    // SAFETY: see `current`; the call was announced.
    let context = unsafe { reachable().as_ref() };
    if let Some(context) = context
        && let Ok(engine) = runtime::current()
        && context.handle() == hndl
    {
        return Ok((context, engine));
    }
    invalid(hndl, context)
}

/// For `LAPI_Term`, which is not announced: the caller excludes other ends of the context. Returns
/// no engine if it has ended.
pub(crate) fn to_end(hndl: Handle) -> Outcome<(&'static Context, Option<&'static Engine>)> {
    let context = current().ok().filter(|context| !context.retired.load(Ordering::Relaxed));
    match context {
        Some(context) if context.handle() == hndl => {
            let engine = if context.has_lost_engine() { None } else { runtime::current().ok() };
            Ok((context, engine))
        }
        _ => invalid(hndl, context),
    }
}

#[cold]
#[inline(never)]
fn invalid<R>(hndl: Handle, context: Option<&Context>) -> Outcome<R> {
    match (context, runtime::current()) {
        (Some(context), Ok(_)) => {
            let live = context.handle();
            refuse!(
                messages::HNDL_INVALID,
                "handle {hndl} is not valid; the valid handle is {live}"
            )
        }
        _ => refuse!(
            messages::HNDL_INVALID,
            "handle {hndl}: LAPI is not initialised, or was terminated"
        ),
    }
}

/// Fails with `UNKNOWN` in a header handler or an inline completion handler. Calls that may wait
/// for other ranks check this first, even if they would not wait this time.
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

fn code_of(error: &Error) -> c_int {
    match error.kind() {
        ErrorKind::Memory => messages::MEMORY_EXHAUSTED,
        ErrorKind::Rank => messages::TGT,
        ErrorKind::Address => messages::TGT_ADDR_NULL,
        _ => messages::UNKNOWN,
    }
}

/// Runs the body of a call as [`local_call`] does. In polling mode, the program's handlers may run
/// on the thread while it is in the call.
#[inline]
pub(crate) fn call(name: &'static str, body: impl FnOnce() -> Outcome) -> c_int {
    let _announced = admission::begin_call();
    // SAFETY: see `current`; the call was announced.
    let _inside = unsafe { reachable().as_ref() }.map(|context| context.deferral.enter());
    coded(name, body)
}

/// Runs a call that concerns only this task, and in polling mode no handlers.
#[inline]
pub(crate) fn local_call(name: &'static str, body: impl FnOnce() -> Outcome) -> c_int {
    let _announced = admission::begin_call();
    coded(name, body)
}

/// Errors and panics of the body become return codes and are written to standard error
/// (`TGT_PURGED` only to the debug log).
#[inline]
pub(crate) fn coded(name: &'static str, body: impl FnOnce() -> Outcome) -> c_int {
    let code = Cell::new(messages::UNKNOWN);
    let failed = |error: &Error| {
        if code.get() == messages::TGT_PURGED {
            log::debug!("{error}");
        } else {
            boundary::reported(error);
        }
        code.get()
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

/// Ends the job because of an error that cannot be returned to a caller.
#[cold]
pub(crate) fn fatal(error: &Error) -> ! {
    error.clone().log_once();
    portolan_base::process::end_job(error.kind().code())
}

impl Hook<ComplHandler> {
    pub(crate) fn call(self, context: &Context) {
        // SAFETY: the program passed the function and its argument for this call.
        unsafe { (self.0)(&mut context.handle(), self.1) }
    }
}

impl Hook<SendHandler> {
    /// Calls the send completion handler for a message to `target`: at once, or in polling mode
    /// during the next call if this thread is not in one. Fails if the engine cannot queue it.
    pub(crate) fn call(self, context: &'static Context, engine: &Am, target: usize) -> Result<()> {
        engine.run_at_deferral(&context.deferral, move |_| self.call_now(context, target))
    }

    fn call_now(self, context: &Context, target: usize) {
        let mut info = super::types::SendInfo {
            src: target as c_uint,
            reason: messages::SUCCESS as c_uint,
            reserve: [0; 6],
        };
        // SAFETY: the program passed the function and its argument. `info` is a live local.
        unsafe { (self.0)(&mut context.handle(), self.1, &mut info) }
    }
}
