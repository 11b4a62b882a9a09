//! Start and end.
//!
//! The context shares the engine with the other interfaces of the program
//! ([`sharing`]). At the end everything is taken out of it that the start has put
//! there, after all messages were handled.

use super::context::{self, Context, Handlers, call};
use super::outcome::refuse;
use super::types::{Handle, Info};
use super::{deliver, finish, messages as m, notices, rmw, traffic, twin};
use crate::am::Handler;
use crate::am::gate::Gate;
use crate::core::handler;
use crate::error::Result;
use crate::runtime::{self, Engine};
use crate::sharing;
use crate::trace::Cause;
use crate::wait::{self, Boot};
use parking_lot::{Mutex, MutexGuard};
use std::os::raw::c_int;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// `LAST_LIB`: the newest version that a program may ask for.
const LAST_LIB: c_int = 4;
/// The last number that an instance may have; all mean the same one.
const LAST_INSTANCE: u32 = 16;
/// `LAPI_INTERRUPT_OFF`: begins in polling mode.
const INTERRUPT_OFF: u32 = 0x2000_0000;
/// The protocols that may be asked for; `LAPI_SHARE_PROTOCOL` and `LAPI_PSS_GPFS` are hints
/// that mean nothing here.
const PROTOCOLS: u32 = INTERRUPT_OFF | 0x8000_0000 | 0x4000_0000;
/// Handles count up from here, so that a variable that was never set is none.
const FIRST_HANDLE: Handle = 0x1a00_0001;

/// The next handle; held while a context is made or ended.
static NEXT: Mutex<Handle> = Mutex::new(FIRST_HANDLE);

/// Waits until no other thread makes or ends a context. The engine may end meanwhile, so it is not used.
fn alone() -> Result<MutexGuard<'static, Handle>> {
    let what = || "another thread to end its LAPI_Init or LAPI_Term".to_string();
    let mut held = None;
    wait::until(&Boot, Cause::Start, &what, || {
        held = NEXT.try_lock();
        Ok(held.is_some())
    })?;
    Ok(held.unwrap_or_else(|| NEXT.lock()))
}

/// Whether the fields that are not used are zero.
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

fn register(engine: &Engine, gate: &Arc<Gate>) -> Result<Handlers> {
    let named = |name: &str, handler: Arc<dyn Handler>| (format!("lapi.{name}"), handler);
    let ids = engine.register_handlers(vec![
        named("message", Arc::new(deliver::Messages(gate.clone()))),
        named("count", Arc::new(notices::Count)),
        named("run", Arc::new(notices::Run(gate.clone()))),
        named("rmw", Arc::new(rmw::Serve)),
        named("answer", Arc::new(rmw::Take)),
    ])?;
    Ok(Handlers { message: ids[0], count: ids[1], run: ids[2], rmw: ids[3], answer: ids[4] })
}

twin! {
    /// Makes the context, over all ranks of the job; starts MPI too, unless the program
    /// has. Collective: where the arguments of one task are refused, the other tasks wait until
    /// it calls again with better ones.
    LAPI_Init / PLAPI_Init(hndl: *mut Handle, lapi_info: *mut Info) -> c_int {
        call("LAPI_Init", || {
            if hndl.is_null() {
                refuse!(m::RET_PTR_NULL, "the pointer to the handle is null");
            }
            // SAFETY: the caller vouches for the structure, if it is one.
            let Some(info) = (unsafe { lapi_info.as_ref() }) else {
                refuse!(m::INFO_NULL, "the pointer to lapi_info_t is null");
            };
            if !is_clean(info) {
                refuse!(m::INFO_NONZERO, "lapi_info_t has values in fields that are not used");
            }
            let mut next = alone()?;
            if context::is_live() {
                refuse!(m::ALL_HNDL_IN_USE, "there is a context already; LAPI_Term ends it");
            }
            context::remove(); // MPI_Finalize has closed its engine
            // SAFETY: no communicator is given.
            let engine = unsafe { sharing::attach(None) }?;
            let gate = Gate::new(info.protocol as u32 & INTERRUPT_OFF != 0);
            let handlers = register(engine, &gate)?;
            let handle = *next;
            *next += 1;
            let transports = traffic::transports(engine);
            context::install(Context::new(handle, info.err_hndlr, handlers, gate, transports));
            finish::hook_up(engine)?;
            // No message comes before its target has a context.
            engine.barrier_of(engine.world())?;
            // SAFETY: it is not null, and the caller vouches for it.
            unsafe { hndl.write(handle) };
            Ok(())
        })
    }
}

twin! {
    /// Ends the context, when all messages are handled and all completion handlers have
    /// run. MPI goes on unless `LAPI_Init` started it and the program does not need it any
    /// more. After an `MPI_Finalize` that has ended everything nothing is left to do. Collective.
    LAPI_Term / PLAPI_Term(hndl: Handle) -> c_int {
        call("LAPI_Term", || {
            context::may_wait()?;
            if handler::is_in_completion() {
                refuse!(
                    m::UNKNOWN,
                    "a completion handler called LAPI_Term, which waits until all completion \
                     handlers have ended; call it outside of handlers"
                );
            }
            let _alone = alone()?;
            if !runtime::is_running() && context::current().is_ok_and(|c| c.handle() == hndl) {
                context::remove(); // MPI_Finalize has closed its engine
                return Ok(sharing::detach()?);
            }
            let (context, engine) = context::enter(hndl)?;
            // The lock of LAPI_Util ends with the context.
            engine.drop_handlers_lock()?;
            engine.wait_for(Cause::Handle, &|| "transfers at the end of LAPI".into(), || {
                context.pending.advance(context, engine)?;
                Ok(context.pending.left() == 0)
            })?;
            context.ending.store(true, Ordering::Release);
            engine.quiesce_gates()?;
            let ids = context.handlers.all();
            engine.unregister_handlers(&ids)?;
            finish::unhook(engine)?;
            context::remove();
            Ok(sharing::detach()?)
        })
    }
}
