//! Initialisation and termination. The context shares the engine with the program's other
//! interfaces ([`sharing`]). `LAPI_Term` waits for all messages and undoes `LAPI_Init`, unless other
//! tasks do not call it ([`super::agreement`]).
//!
//! `LAPI_Init` fails on all tasks or on none, so that no task waits for one that has given up. The
//! tasks therefore exchange the results of their checks, and an engine that was started for this
//! stays for the next attempt.

use super::context::{self, Context, Handlers, coded};
use super::outcome::{Failure, Outcome, refuse};
use super::types::{Handle, Info};
use super::{deliver, finish, messages as m, notices, rmw, traffic};
use crate::boundary::{self, export};
use parking_lot::{Mutex, MutexGuard};
use portolan_base::error::{Result, fail};
use portolan_base::trace::Cause;
use portolan_base::wait::{self, Boot};
use portolan_engine::am::deferral::Deferral;
use portolan_engine::am::{Accept, Am, Arrival, Handler};
use portolan_engine::collective::{self, Kind};
use portolan_engine::core::handler;
use portolan_engine::runtime::sharing;
use portolan_engine::runtime::{self, Engine, admission};
use std::os::raw::c_int;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The newest library version (`LAST_LIB`) that a program may request.
const LAST_LIB: c_int = 4;
/// All instance numbers name the same instance.
const LAST_INSTANCE: u32 = 16;
/// `LAPI_INTERRUPT_OFF`: the context starts in polling mode.
const INTERRUPT_OFF: u32 = 0x2000_0000;
/// The accepted protocol bits. `LAPI_SHARE_PROTOCOL` and `LAPI_PSS_GPFS` are ignored here.
const PROTOCOLS: u32 = INTERRUPT_OFF | 0x8000_0000 | 0x4000_0000;
/// Handles count up from here, so that a variable that was never set hardly holds a valid one.
const FIRST_HANDLE: Handle = 0x1a00_0001;

/// The next handle. The lock is held while a context is created or ended.
static NEXT: Mutex<Handle> = Mutex::new(FIRST_HANDLE);

/// Waits until no other thread creates or ends a context, without the engine, which may stop.
fn alone() -> Result<MutexGuard<'static, Handle>> {
    let what = || "another thread to end its LAPI_Init or LAPI_Term".to_string();
    let mut held = None;
    wait::until(&Boot, Cause::Start, &what, || {
        held = NEXT.try_lock();
        Ok(held.is_some())
    })?;
    Ok(held.unwrap_or_else(|| NEXT.lock()))
}

fn is_clean(info: &Info) -> bool {
    info.protocol as u32 & !PROTOCOLS == 0
        && (0..=LAST_LIB).contains(&info.lib_vers)
        && info.epoch_num == 0
        && info.instance_no <= LAST_INSTANCE
        && info.info6 == 0
        && info.lapi_thread_attr.is_null()
        && info.adapter_name.is_null()
        && info.add_info.is_null()
}

struct Agreed;

impl Handler for Agreed {
    fn arrive(&self, engine: &Am, message: &Arrival<'_>) -> Result<Accept> {
        context::current()?.agreement.arrive(engine, message)?;
        Ok(Accept::DONE)
    }
}

fn register(engine: &Engine, deferral: &Arc<Deferral>) -> Result<Handlers> {
    let named = |name: &str, handler: Arc<dyn Handler>| (format!("lapi.{name}"), handler);
    let ids = engine.register_handlers(vec![
        named("message", Arc::new(deliver::Messages(deferral.clone()))),
        named("count", Arc::new(notices::Count)),
        named("run", Arc::new(notices::RunDeferral(deferral.clone()))),
        named("rmw", Arc::new(rmw::Serve)),
        named("answer", Arc::new(rmw::Take)),
        named("agreement", Arc::new(Agreed)),
    ])?;
    let [message, count, run, rmw, answer, agreement] = ids[..] else {
        fail!(Internal, "{} handlers were registered for LAPI", ids.len());
    };
    Ok(Handlers { message, count, run, rmw, answer, agreement })
}

/// Creates the context. Undoes everything if it fails, so that a later call reports its own error
/// and not a context in use.
fn begin(engine: &Engine, handle: Handle, info: &Info) -> Result<()> {
    let _own = engine.observer().exclude_calls();
    let deferral = Deferral::new(info.protocol as u32 & INTERRUPT_OFF != 0);
    let handlers = register(engine, &deferral)?;
    let ids = handlers.all();
    let transports = traffic::transports(engine);
    context::install(Context::new(handle, info.err_hndlr, handlers, deferral, transports));
    // After the barrier every task has a context, so no message arrives without one.
    let met = finish::hook_up(engine).and_then(|()| engine.barrier_of(engine.world()));
    if met.is_err() {
        for undone in [engine.unregister_handlers(&ids), finish::unhook(engine)] {
            if let Err(second) = undone {
                log::warn!("LAPI_Init fails, and leaves a part of its context: {second}");
            }
        }
        if let Err(second) = context::remove() {
            log::warn!("LAPI_Init fails, and leaves its context: {second}");
        }
    }
    met
}

/// Ends the context. Collective.
fn end(context: &Context, engine: &Engine) -> Result<()> {
    let _own = engine.observer().exclude_calls();
    let inside = context.deferral.enter();
    context.ending.store(true, Ordering::Release);
    engine.quiesce_deferrals()?;
    engine.unregister_handlers(&context.handlers.all())?;
    finish::unhook(engine)?;
    drop(inside);
    context::remove()
}

/// # Safety
/// `lapi_info` must be null or point to a valid structure.
unsafe fn check(hndl: *mut Handle, lapi_info: *const Info) -> Outcome<Info> {
    if hndl.is_null() {
        refuse!(m::RET_PTR_NULL, "the pointer to the handle is null");
    }
    // SAFETY: the caller guarantees that `lapi_info` is null or points to a valid structure.
    let Some(&info) = (unsafe { lapi_info.as_ref() }) else {
        refuse!(m::INFO_NULL, "the pointer to lapi_info_t is null");
    };
    if !is_clean(&info) {
        refuse!(m::INFO_NONZERO, "lapi_info_t has nonzero values in unused fields");
    }
    Ok(info)
}

/// Exchanges the results of the checks. Fails on all tasks if one task has refused its arguments.
fn agree(engine: &Engine, checked: Outcome<Info>) -> Outcome<Info> {
    let own = match &checked {
        Ok(_) => m::SUCCESS,
        Err(Failure::Code(code, _)) => *code,
        Err(Failure::Engine(_)) => m::UNKNOWN,
    };
    let _own = engine.observer().exclude_calls();
    let all = collective::scope(Kind::Start, 0, || engine.world().allgather(engine, &own))?;
    let info = checked?;
    if let Some((task, code)) = all.into_iter().enumerate().find(|&(_, code)| code != m::SUCCESS) {
        let why = m::describe(code).unwrap_or_default();
        refuse!(m::UNKNOWN, "LAPI_Init of task {task} fails, so it fails on all tasks: {why}");
    }
    Ok(info)
}

export! {
    /// Starts MPI, unless the program has. Collective: if the arguments of one task are refused,
    /// the call fails on all tasks.
    LAPI_Init / PLAPI_Init(hndl: *mut Handle, lapi_info: *mut Info) -> c_int = coded(|| {
        // SAFETY: by contract, `lapi_info` is null or points to a valid structure.
        let checked = unsafe { check(hndl, lapi_info) };
        let mut next = alone()?;
        match context::current() {
            Err(_) => (),
            Ok(context) if context.has_lost_engine() => context::remove()?,
            Ok(context) if context.retired.load(Ordering::Relaxed) => {
                end(context, runtime::current()?)?;
            }
            Ok(_) => {
                checked?;
                refuse!(m::ALL_HNDL_IN_USE, "a context exists already; end it with LAPI_Term");
            }
        }
        // SAFETY: `None` passes no communicator, so no handle has to be valid.
        let engine = boundary::starting("LAPI_Init", || unsafe { sharing::attach(None) })?;
        let info = agree(engine, checked).inspect_err(|_| sharing::leave())?;
        let handle = *next;
        *next += 1;
        if let Err(error) = begin(engine, handle, &info) {
            // The caller needs the cause, so an error of the clean-up goes to the log.
            if let Err(second) = sharing::detach() {
                log::warn!("LAPI_Init fails, and leaves the engine running: {second}");
            }
            return Err(error.into());
        }
        // SAFETY: `check` has refused null, and the caller guarantees that it is writable.
        unsafe { hndl.write(handle) };
        Ok(())
    });

    /// Ends the context after all messages are handled and all completion handlers have run.
    /// Finalizes MPI if `LAPI_Init` started it and the program no longer needs it. If
    /// `MPI_Finalize` has already stopped the engine, this only removes the context. Collective,
    /// but returns after ten seconds if other tasks do not call it.
    LAPI_Term / PLAPI_Term(hndl: Handle) -> c_int = coded(|| {
        context::may_wait()?;
        if handler::is_in_completion() || admission::depth_of_calls() > 0 {
            refuse!(
                m::UNKNOWN,
                "a completion handler called LAPI_Term, which waits for all completion \
                 handlers; call it outside of handlers"
            );
        }
        let _alone = alone()?;
        let (context, engine) = context::to_end(hndl)?;
        let Some(engine) = engine else {
            context::remove()?;
            return if runtime::is_running() { Ok(()) } else { Ok(sharing::detach()?) };
        };
        // This thread's hold of the LAPI_Util lock ends with the context.
        engine.drop_handlers_lock()?;
        if !ready_to_end(context, engine).inspect_err(|_| context::reopen())? {
            context.retired.store(true, Ordering::Relaxed);
            sharing::leave();
            return Ok(());
        }
        end(context, engine).inspect_err(|_| context::reopen())?;
        Ok(sharing::detach()?)
    });
}

/// Waits for the calls of other threads, for the transfers of this task, and for the other tasks.
/// Returns whether all tasks end the context together.
fn ready_to_end(context: &Context, engine: &Engine) -> Result<bool> {
    let _own = engine.observer().exclude_calls();
    let _inside = context.deferral.enter();
    context::shut(engine)?;
    engine.wait_for(Cause::Handle, &|| "transfers at the end of LAPI".into(), || {
        context.pending.advance(context, engine)?;
        Ok(context.pending.left() == 0)
    })?;
    context.agreement.reach(engine)
}
