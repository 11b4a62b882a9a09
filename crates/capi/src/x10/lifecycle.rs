//! Initialisation and finalisation. The state of this interface is in the statics of its modules.
//! Start and end clear it, so that nothing survives into the next initialisation.

use super::aggregate::Batches;
use super::handler_ids::{BATCHES, SPAWN};
use super::spawn::Spawn;
use super::{OK, RUNNING, aggregate, environment, failed, fence, not_running, register, switches};
use crate::boundary::{self, array, export, guard};
use parking_lot::Mutex;
use portolan_base::error::{Result, fail};
use portolan_engine::am::Handler;
use portolan_engine::runtime::sharing;
use portolan_engine::runtime::{self, Engine};
use std::os::raw::{c_char, c_int};
use std::sync::Arc;
use std::sync::atomic::Ordering;

static TURN: Mutex<()> = Mutex::new(());

fn forget() {
    RUNNING.store(false, Ordering::Release);
    aggregate::clear();
    switches::clear();
    register::clear();
    [&SPAWN, &BATCHES].into_iter().for_each(|known| known.set(None));
}

/// Collective.
fn register_handlers(engine: &Engine) -> Result<()> {
    let handlers: Vec<(String, Arc<dyn Handler>)> = vec![
        ("x10_asyncSpawnInline".into(), Arc::new(Spawn)),
        ("x10_asyncSpawnInlineAgg".into(), Arc::new(Batches)),
    ];
    let ids = engine.register_handlers(handlers)?;
    for (&id, known) in ids.iter().zip([&SPAWN, &BATCHES]) {
        known.set(Some(id));
    }
    Ok(())
}

/// Collective. No message may be in flight.
fn unregister_handlers(engine: &Engine) -> Result<()> {
    engine.unregister_handlers(&[SPAWN.id()?, BATCHES.id()?])
}

/// Registers the functions. Fails at all places if it fails at one, so none waits. Collective.
fn fill_everywhere(engine: &Engine, handlers: &[usize]) -> Result<()> {
    let filled = register::fill(handlers);
    let failed = engine.world().allgather(engine, &u64::from(filled.is_err()))?;
    filled?;
    match failed.iter().position(|&failed| failed != 0) {
        Some(place) => fail!(Argument, "the functions that place {place} passed are invalid"),
        None => Ok(()),
    }
}

fn begin(handlers: &[usize]) -> Result<()> {
    let _turn = TURN.lock();
    if RUNNING.load(Ordering::Acquire) {
        if runtime::is_running() {
            fail!(State, "X10Lib is initialised already");
        }
        forget(); // MPI_Finalize has ended an earlier runtime
    }
    // SAFETY: no communicator is given.
    let engine = boundary::starting("x10_init", || unsafe { sharing::attach(None) })?;
    // The first async may arrive before this call returns, so functions and settings come first.
    let own = engine.observer().exclude_calls();
    let begun = fill_everywhere(engine, handlers).and_then(|()| {
        environment::reset(engine);
        register_handlers(engine)
    });
    drop(own);
    if let Err(error) = begun {
        forget();
        sharing::detach()?;
        return Err(error);
    }
    environment::started(engine);
    RUNNING.store(true, Ordering::Release);
    Ok(())
}

fn end() -> Result<()> {
    let _turn = TURN.lock();
    if !RUNNING.load(Ordering::Acquire) {
        return not_running().map(|_| ());
    }
    if !runtime::is_running() {
        forget(); // the program has called MPI_Finalize, which ended the engine
        return sharing::detach();
    }
    let engine = runtime::current()?;
    let own = engine.observer().exclude_calls();
    fence::everywhere(engine)?;
    unregister_handlers(engine)?;
    drop(own);
    forget();
    sharing::detach()
}

export! {
    /// `handlers` must be null or valid for reads of `n` elements.
    x10_init(handlers: *const usize, n: c_int) -> c_int = guard(failed, || {
        let given = match usize::try_from(n) {
            // SAFETY: the caller guarantees `n` elements at `handlers`.
            Ok(n) if !handlers.is_null() => unsafe {
                array(handlers, n, "the array of functions")?
            },
            _ => &[],
        };
        begin(given)?;
        Ok(OK)
    });

    x10_finalize() -> c_int = guard(failed, || {
        end()?;
        Ok(OK)
    });

    x10_last_error() -> *const c_char { boundary::last_error() }
}
