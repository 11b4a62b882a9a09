//! Start and end.
//!
//! The engine is shared with other interfaces of the program ([`sharing`]). What
//! the face keeps lives in the modules' own statics and is cleared at both ends, so
//! that a second life knows nothing of the first.

use super::{OK, aggregate, environment, failed, fence, register, spawn, switches};
use crate::capi::boundary::{self, guard};
use crate::capi::sharing;
use crate::error::{Result, fail};
use crate::runtime::{self, Engine};
use parking_lot::Mutex;
use std::os::raw::{c_char, c_int};
use std::sync::atomic::{AtomicBool, Ordering};

/// Between `x10_init` and `x10_finalize`.
static RUNNING: AtomicBool = AtomicBool::new(false);

/// Held while X10Lib starts and ends.
static TURN: Mutex<()> = Mutex::new(());

/// The engine, for calls between init and finalize.
#[inline]
pub(super) fn engine() -> Result<&'static Engine> {
    if !RUNNING.load(Ordering::Acquire) {
        return not_running();
    }
    runtime::current()
}

#[cold]
fn not_running() -> Result<&'static Engine> {
    fail!(State, "X10Lib is not initialised, or was finalised already; call x10_init first")
}

/// Forgets what a life has left in this process.
fn forget() {
    RUNNING.store(false, Ordering::Release);
    aggregate::clear();
    switches::clear();
    register::clear();
    spawn::clear();
}

/// Registers the functions; fails at all places where it does at one, so that none waits for
/// a place that has given up. Collective.
fn fill_everywhere(engine: &Engine, handlers: &[usize]) -> Result<()> {
    let filled = register::fill(handlers);
    let failed = engine.world().allgather(engine, &u64::from(filled.is_err()))?;
    filled?;
    match failed.iter().position(|&failed| failed != 0) {
        Some(place) => fail!(Argument, "the functions that place {place} gives are refused"),
        None => Ok(()),
    }
}

fn begin(handlers: &[usize]) -> Result<()> {
    let _turn = TURN.lock();
    if RUNNING.load(Ordering::Acquire) {
        if runtime::is_running() {
            fail!(State, "X10Lib is initialised already");
        }
        forget(); // MPI_Finalize has closed an earlier one
    }
    // SAFETY: no communicator is given.
    let engine = unsafe { sharing::attach(None) }?;
    // The first async may arrive before this call returns.
    let begun = fill_everywhere(engine, handlers).and_then(|()| {
        environment::reset(engine);
        spawn::begin(engine)
    });
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
        forget(); // the host has called MPI_Finalize, which has closed everything
        return sharing::detach();
    }
    let engine = runtime::current()?;
    fence::everywhere(engine)?;
    spawn::end(engine)?;
    forget();
    sharing::detach()
}

/// Starts X10Lib over all ranks, and registers `n` functions at the indexes from 1.
///
/// # Safety
/// `handlers` must be null or valid for reads of `n` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn x10_init(handlers: *const usize, n: c_int) -> c_int {
    guard("x10_init", failed, || {
        let given = match usize::try_from(n) {
            // SAFETY: the caller vouches for the array.
            Ok(n) if n > 0 && !handlers.is_null() => unsafe {
                std::slice::from_raw_parts(handlers, n)
            },
            _ => &[],
        };
        begin(given)?;
        Ok(OK)
    })
}

/// Ends X10Lib: completes everything; MPI goes on unless `x10_init` started it.
#[unsafe(no_mangle)]
pub extern "C" fn x10_finalize() -> c_int {
    guard("x10_finalize", failed, || {
        end()?;
        Ok(OK)
    })
}

/// The text of this thread's last error, empty where there was none.
#[unsafe(no_mangle)]
pub extern "C" fn x10_last_error() -> *const c_char {
    boundary::last_error()
}
