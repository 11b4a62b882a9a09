//! The owner's side: mutexes taken and released on behalf of other ranks, and
//! handing over to the next in the queue.

use super::Name;
use super::state::{State, state_bytes};
use crate::error::{Result, fail};
use crate::futex;
use crate::path::message::wire::{Header, Kind};
use crate::path::stripe;
use crate::runtime::Engine;
use std::sync::atomic::Ordering;

/// Tells the next holder.
pub(super) fn hand_over(
    engine: &Engine,
    state: State,
    name: Name,
    next: std::result::Result<Option<usize>, u32>,
    owner: usize,
) -> Result<()> {
    let next = match next {
        Ok(Some(next)) => next,
        Ok(None) => return Ok(()),
        Err(holder) => fail!(
            State,
            "mutex {} of rank {} is released by a rank that does not hold it (holder {})",
            name.index,
            name.owner,
            i64::from(holder) - 1
        ),
    };
    // Whoever shares the owner's memory sleeps on its word, others wait for a
    // message.
    if engine.reaches_directly(owner, next) {
        let word = state.granted(next);
        word.store(1, Ordering::Release);
        futex::wake_all(word);
        return Ok(());
    }
    let mut header = Header::new(Kind::Grant, 0);
    header.operand = name.operand();
    engine.messenger()?.notice(next, header)
}

/// Where a request of another rank finds the state of one of our mutexes.
fn own_state(engine: &Engine, header: &Header) -> Result<(State, *mut u8, usize)> {
    let bytes = state_bytes(engine.size());
    let (slab, offset) =
        engine.memory.registry.in_slice(engine.rank(), header.address as usize, bytes)?;
    // SAFETY: the state lies in our slice, which stays mapped: the requester
    // holds the set alive until it has released the mutex.
    let state = unsafe { State::at(slab.my_base().wrapping_add(offset)) };
    Ok((state, slab.my_base(), stripe::of(offset)))
}

pub(crate) fn serve_lock(engine: &Engine, source: usize, header: &Header) -> Result<()> {
    let (state, slice, stripe) = own_state(engine, header)?;
    let got = {
        // SAFETY: our own slice.
        let _held = unsafe { stripe::take(slice, stripe) };
        state.acquire(source, true)
    };
    if got {
        let mut grant = Header::new(Kind::Grant, 0);
        grant.operand = header.operand;
        engine.messenger()?.notice(source, grant)?;
    }
    Ok(())
}

pub(crate) fn serve_try(engine: &Engine, source: usize, header: &Header) -> Result<bool> {
    let (state, slice, stripe) = own_state(engine, header)?;
    // SAFETY: our own slice.
    let _held = unsafe { stripe::take(slice, stripe) };
    Ok(state.acquire(source, false))
}

pub(crate) fn serve_unlock(engine: &Engine, source: usize, header: &Header) -> Result<()> {
    let (state, slice, stripe) = own_state(engine, header)?;
    let next = {
        // SAFETY: our own slice.
        let _held = unsafe { stripe::take(slice, stripe) };
        state.release(source)
    };
    hand_over(engine, state, Name::of(header), next, engine.rank())
}
