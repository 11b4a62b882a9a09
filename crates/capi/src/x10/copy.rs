//! Contiguous transfers, and the functions through which all transfers are issued.
//!
//! Invariant: when a call returns, even with an error, every operation that it has begun is
//! complete or counted on its switch.

use super::refs::{self, Direction, GasRef};
use super::{code, environment, switches};
use portolan_engine::any_memory::Span;
use portolan_engine::core::peer::CompletionCounter;
use portolan_engine::error::Result;
use portolan_engine::runtime::Engine;
use portolan_engine::wait::Progress as _;
use std::os::raw::{c_int, c_void};
use std::sync::Arc;

/// Returns when the bytes have arrived.
///
/// # Safety
/// The local bytes must be valid for the direction of the transfer.
pub(crate) unsafe fn now(
    engine: &Engine,
    direction: Direction,
    target: usize,
    spans: &[Span],
) -> Result<()> {
    // SAFETY: the caller guarantees that the local bytes are valid for the direction.
    unsafe {
        match direction {
            Direction::Write => engine.put_anywhere(target, spans),
            Direction::Read => engine.get_anywhere(target, spans),
        }
    }
}

/// Starts a transfer that is counted on `counter`.
///
/// # Safety
/// The contract of [`now`] applies until the counter is zero.
pub(crate) unsafe fn start(
    engine: &Engine,
    direction: Direction,
    target: usize,
    spans: &[Span],
    counter: &Arc<CompletionCounter>,
) -> Result<()> {
    // SAFETY: the caller guarantees that the local bytes stay valid until the counter is zero.
    unsafe {
        match direction {
            Direction::Write => engine.start_put_anywhere(target, spans, counter),
            Direction::Read => engine.start_get_anywhere(target, spans, counter),
        }
    }
}

/// Makes several transfers and waits for all of them, even if one fails to start. `parts` calls its
/// argument with the target and the spans of each one, and stops at the first error.
///
/// # Safety
/// The contract of [`now`] applies to each part.
pub(crate) unsafe fn blocking(
    engine: &Engine,
    direction: Direction,
    parts: impl Fn(&mut dyn FnMut(usize, &[Span]) -> Result<()>) -> Result<()>,
) -> Result<()> {
    if engine.may_wait().is_err() {
        // All parts are checked before the first one starts.
        parts(&mut |target, spans| engine.may_wait_for(target, spans, direction))?;
    }
    let counter = Arc::new(CompletionCounter::default());
    // SAFETY: the caller guarantees the local bytes. The wait lasts until the counter is zero.
    let begun =
        parts(&mut |target, spans| unsafe { start(engine, direction, target, spans, &counter) });
    let what = || format!("{} transfers ({direction:?})", counter.outstanding());
    engine.complete(&*counter, &what, &counter)?;
    begun
}

/// Transfers `n` contiguous bytes, blocking or counted on the switch `hndl`.
///
/// # Safety
/// `local` must be valid for `n` bytes, with a switch until the transfer is complete.
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
    // SAFETY: by contract, `local` is valid for `bytes` bytes, with a switch until completion.
    unsafe {
        match switch {
            None => now(engine, direction, target, &[span])?,
            Some(switch) => start(engine, direction, target, &[span], switch.counter())?,
        }
    }
    environment::count_transfer(direction, bytes);
    Ok(())
}

/// `dest` must be valid for writes of `n` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn x10_get(src: GasRef, dest: *mut c_void, n: c_int) -> c_int {
    // SAFETY: the caller upholds the contract of `contiguous`, which is the same.
    code("x10_get", |engine| unsafe { contiguous(engine, Direction::Read, src, dest, n, None) })
}

/// `dest` must be valid for writes of `n` bytes until the transfer is complete.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn x10_get_nb(
    src: GasRef,
    dest: *mut c_void,
    n: c_int,
    hndl: usize,
) -> c_int {
    // SAFETY: the caller upholds the contract of `contiguous`, which is the same.
    code("x10_get_nb", |engine| unsafe {
        contiguous(engine, Direction::Read, src, dest, n, Some(hndl))
    })
}

/// `src` must be valid for reads of `n` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn x10_put(src: *const c_void, dest: GasRef, n: c_int) -> c_int {
    // SAFETY: the caller upholds the contract of `contiguous`, which is the same.
    code("x10_put", |engine| unsafe { contiguous(engine, Direction::Write, dest, src, n, None) })
}

/// `src` must be valid for reads of `n` bytes and unchanged until the transfer is complete.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn x10_put_nb(
    src: *const c_void,
    dest: GasRef,
    n: c_int,
    hndl: usize,
) -> c_int {
    // SAFETY: the caller upholds the contract of `contiguous`, which is the same.
    code("x10_put_nb", |engine| unsafe {
        contiguous(engine, Direction::Write, dest, src, n, Some(hndl))
    })
}
