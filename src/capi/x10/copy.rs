//! Contiguous transfers, and what all transfers end in.
//!
//! Invariant: whatever a call has begun is complete, or counted on its switch,
//! when the call returns, also with an error.

use super::refs::{self, Direction, GasRef};
use super::{code, environment, switches};
use crate::any_memory::Span;
use crate::error::Result;
use crate::peer::CompletionCounter;
use crate::runtime::Engine;
use crate::trace::Cause;
use std::os::raw::{c_int, c_void};
use std::sync::Arc;

/// Moves bytes; returns when they have arrived.
///
/// # Safety
/// The local bytes must be valid for the direction they go.
pub(crate) unsafe fn now(
    engine: &Engine,
    direction: Direction,
    target: usize,
    spans: &[Span],
) -> Result<()> {
    // SAFETY: passed on from the caller.
    unsafe {
        match direction {
            Direction::Put => engine.put_anywhere(target, spans),
            Direction::Get => engine.get_anywhere(target, spans),
        }
    }
}

/// Begins to move bytes, counted on `counter`.
///
/// # Safety
/// As for [`now`], until the counter is done.
pub(crate) unsafe fn start(
    engine: &Engine,
    direction: Direction,
    target: usize,
    spans: &[Span],
    counter: &Arc<CompletionCounter>,
) -> Result<()> {
    // SAFETY: passed on from the caller.
    unsafe {
        match direction {
            Direction::Put => engine.start_put_anywhere(target, spans, counter),
            Direction::Get => engine.start_get_anywhere(target, spans, counter),
        }
    }
}

/// Runs `begin` with a counter of its own and waits until that is done, whether
/// `begin` failed or not.
pub(crate) fn blocking(
    engine: &Engine,
    direction: Direction,
    begin: impl FnOnce(&Arc<CompletionCounter>) -> Result<()>,
) -> Result<()> {
    let counter = Arc::new(CompletionCounter::default());
    let begun = begin(&counter);
    let what = || format!("{} transfers ({direction:?})", counter.outstanding());
    engine.wait_for(Cause::Handle, &what, || Ok(counter.outstanding() == 0))?;
    begun?;
    counter.check().map(|_| ())
}

/// # Safety
/// `local` must be valid for `n` bytes, with a switch until it is done.
unsafe fn contiguous(
    engine: &Engine,
    direction: Direction,
    remote: GasRef,
    local: *const c_void,
    n: c_int,
    hndl: Option<usize>,
) -> Result<()> {
    let bytes = refs::count(n, "the number of bytes")?;
    let target = refs::rank(engine, remote.place)?;
    let span = Span { local: refs::local(local, bytes)?, remote: remote.address(), bytes };
    let switch = hndl.map(switches::find).transpose()?;
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: passed on from the caller.
    unsafe {
        match switch {
            None => now(engine, direction, target, &[span])?,
            Some(switch) => start(engine, direction, target, &[span], switch.counter())?,
        }
    }
    environment::count_transfer(direction, bytes);
    Ok(())
}

/// Gets `n` bytes; on return they are here.
///
/// # Safety
/// `dest` must be valid for writes of `n` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn x10_get(src: GasRef, dest: *mut c_void, n: c_int) -> c_int {
    // SAFETY: passed on from the caller.
    code("x10_get", |engine| unsafe { contiguous(engine, Direction::Get, src, dest, n, None) })
}

/// As `x10_get`, on a switch.
///
/// # Safety
/// As for `x10_get`, until the switch is done.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn x10_get_nb(
    src: GasRef,
    dest: *mut c_void,
    n: c_int,
    hndl: usize,
) -> c_int {
    // SAFETY: passed on from the caller.
    code("x10_get_nb", |engine| unsafe {
        contiguous(engine, Direction::Get, src, dest, n, Some(hndl))
    })
}

/// Puts `n` bytes; on return they are there.
///
/// # Safety
/// `src` must be valid for reads of `n` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn x10_put(src: *const c_void, dest: GasRef, n: c_int) -> c_int {
    // SAFETY: passed on from the caller.
    code("x10_put", |engine| unsafe { contiguous(engine, Direction::Put, dest, src, n, None) })
}

/// As `x10_put`, on a switch.
///
/// # Safety
/// As for `x10_put`, and `src` unchanged, until the switch is done.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn x10_put_nb(
    src: *const c_void,
    dest: GasRef,
    n: c_int,
    hndl: usize,
) -> c_int {
    // SAFETY: passed on from the caller.
    code("x10_put_nb", |engine| unsafe {
        contiguous(engine, Direction::Put, dest, src, n, Some(hndl))
    })
}
