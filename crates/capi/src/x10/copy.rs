//! Contiguous transfers, and the functions through which all transfers are issued.
//!
//! Invariant: when a call returns, even with an error, every operation that it has begun is
//! complete or counted on its switch.

use super::refs::{self, Direction, GasRef};
use super::{code, environment, switches};
use crate::boundary::export;
use portolan_base::error::Result;
use portolan_base::wait::Progress as _;
use portolan_engine::any_memory::Span;
use portolan_engine::core::peer::CompletionCounter;
use portolan_engine::runtime::Engine;
use std::os::raw::{c_int, c_void};
use std::sync::Arc;

/// Makes several transfers and waits for all of them, even if one fails to start. `parts` calls its
/// argument with the target and the spans of each one, and stops at the first error.
///
/// # Safety
/// The local bytes of each part must be valid for the direction.
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
    let begun = parts(&mut |target, spans| unsafe {
        engine.start_anywhere(target, spans, direction, &counter)
    });
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
            None => engine.move_anywhere(target, &[span], direction)?,
            Some(switch) => engine.start_anywhere(target, &[span], direction, switch.counter())?,
        }
    }
    environment::count_transfer(direction, bytes);
    Ok(())
}

export! {
    /// `dest` must be valid for writes of `n` bytes.
    x10_get(src: GasRef, dest: *mut c_void, n: c_int) -> c_int =
        // SAFETY: the caller upholds the contract of `contiguous`, which is the same.
        code(|engine| unsafe { contiguous(engine, Direction::Get, src, dest, n, None) });

    /// `dest` must be valid for writes of `n` bytes until the transfer is complete.
    x10_get_nb(src: GasRef, dest: *mut c_void, n: c_int, hndl: usize) -> c_int =
        // SAFETY: the caller upholds the contract of `contiguous`, which is the same.
        code(|engine| unsafe {
            contiguous(engine, Direction::Get, src, dest, n, Some(hndl))
        });

    /// `src` must be valid for reads of `n` bytes.
    x10_put(src: *const c_void, dest: GasRef, n: c_int) -> c_int =
        // SAFETY: the caller upholds the contract of `contiguous`, which is the same.
        code(|engine| unsafe { contiguous(engine, Direction::Put, dest, src, n, None) });

    /// `src` must be valid for reads of `n` bytes and unchanged until the transfer is complete.
    x10_put_nb(src: *const c_void, dest: GasRef, n: c_int, hndl: usize) -> c_int =
        // SAFETY: the caller upholds the contract of `contiguous`, which is the same.
        code(|engine| unsafe {
            contiguous(engine, Direction::Put, dest, src, n, Some(hndl))
        });
}
