//! Counters: adding to them and setting them.
//!
//! A counter is an `int` that only atomic operations touch. A thread that adds to it wakes
//! the threads that sleep on it (`LAPI_Nopoll_wait`).

use super::context::Context;
use super::outcome::{Outcome, refuse};
use super::types::{Counter, ErrorOf};
use super::{messages, objects};
use crate::error::Result;
use crate::futex;
use std::os::raw::c_int;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

/// Threads that sleep on a counter.
pub(super) static SLEEPERS: AtomicUsize = AtomicUsize::new(0);

/// Adds one to a counter of this rank, for a message from or to `task`.
///
/// # Safety
/// `counter` must be null, which counts nothing, or valid.
#[inline]
pub(crate) unsafe fn bump(context: &Context, counter: *const Counter, task: usize) {
    // SAFETY: the caller vouches for it.
    let Some(counter) = (unsafe { counter.as_ref() }) else { return };
    context.watched.counted(counter, task);
    counter.value.fetch_add(1, Ordering::AcqRel);
    fence(Ordering::SeqCst);
    if SLEEPERS.load(Ordering::Relaxed) > 0 {
        futex::wake_all(&counter.value);
    }
}

/// Adds one to the counter at an address that rank `src` gave; 0 is none.
///
/// # Errors
/// `State`, told to the error handler, where this rank has no memory there.
#[inline]
pub(crate) fn bump_at(context: &Context, address: u64, of: ErrorOf, src: usize) -> Result<()> {
    let address = address as usize;
    if address == 0 {
        return Ok(());
    }
    if !context.in_use.read().contains(&address) {
        admit(context, address, of, src)?;
    }
    // SAFETY: the address is in use and aligned; that it is a counter's, the program
    // vouches for.
    unsafe { bump(context, address as *const Counter, src) };
    Ok(())
}

#[cold]
fn admit(context: &Context, address: usize, of: ErrorOf, src: usize) -> Result<()> {
    if !address.is_multiple_of(4) || !objects::is_mapped(address, 4) {
        let text = format!(
            "task {src} gave {address:#x} as target counter, where there is none; the address \
             must be one of the target's, as LAPI_Address_init gives it"
        );
        return Err(context.tell(messages::TGT_ADDR_NULL, of, src, text));
    }
    context.in_use.write().insert(address);
    Ok(())
}

/// # Safety
/// `cntr` must be null or valid.
pub(super) unsafe fn checked<'a>(cntr: *const Counter) -> Outcome<&'a Counter> {
    // SAFETY: the caller vouches for it.
    match unsafe { cntr.as_ref() } {
        Some(counter) => Ok(counter),
        None => refuse!(messages::CNTR_NULL, "the counter is null"),
    }
}

/// Sets a counter; what was known of its destinations ends.
pub(super) fn set(context: &Context, counter: &Counter, val: c_int) {
    context.watched.forget(counter);
    counter.value.store(val as u32, Ordering::Release);
    fence(Ordering::SeqCst);
    if SLEEPERS.load(Ordering::Relaxed) > 0 {
        futex::wake_all(&counter.value);
    }
}
