//! Counters: an `int` that is accessed only by atomic operations. A thread that changes it wakes
//! the threads that sleep on it in `LAPI_Nopoll_wait`.

use super::context::Context;
use super::messages;
use super::outcome::{Outcome, refuse};
use super::types::{Counter, ErrorOf};
use portolan_base::error::Result;
use portolan_base::futex;
use std::os::raw::c_int;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

pub(super) static SLEEPERS: AtomicUsize = AtomicUsize::new(0);

/// Increments a counter of this rank for a message from or to `task`.
///
/// # Safety
/// `counter` must be null or valid. Null is ignored.
#[inline]
pub(crate) unsafe fn bump(context: &Context, counter: *const Counter, task: usize) {
    // SAFETY: the caller guarantees that `counter` is null or valid.
    let Some(counter) = (unsafe { counter.as_ref() }) else { return };
    context.watched.counted(counter, task);
    counter.value.fetch_add(1, Ordering::AcqRel);
    fence(Ordering::SeqCst);
    if SLEEPERS.load(Ordering::Relaxed) > 0 {
        futex::wake_all(&counter.value);
    }
}

/// Increments the counter at an address that rank `src` sent, 0 for none. Fails with `State`, and
/// reports to the error handler, if the address is misaligned or cannot be written at this rank.
#[inline]
pub(crate) fn bump_at(context: &Context, address: u64, of: ErrorOf, src: usize) -> Result<()> {
    let address = address as usize;
    if address == 0 {
        return Ok(());
    }
    if !context.in_use.read().contains(&address) {
        admit(context, address, of, src)?;
    }
    // SAFETY: the address is writable and aligned, and the program guarantees a counter there.
    unsafe { bump(context, address as *const Counter, src) };
    Ok(())
}

#[cold]
fn admit(context: &Context, address: usize, of: ErrorOf, src: usize) -> Result<()> {
    if !address.is_multiple_of(4) || !futex::is_writable(address) {
        let text = format!(
            "task {src} passed {address:#x} as target counter, but no counter can be written at \
             that address here; pass an address of the target, as returned by LAPI_Address_init"
        );
        return Err(context.report(messages::TGT_ADDR_NULL, of, src, text));
    }
    context.in_use.write().insert(address);
    Ok(())
}

/// # Safety
/// `cntr` must be null or valid.
pub(super) unsafe fn checked<'a>(cntr: *const Counter) -> Outcome<&'a Counter> {
    // SAFETY: the caller guarantees that `cntr` is null or valid.
    match unsafe { cntr.as_ref() } {
        Some(counter) => Ok(counter),
        None => refuse!(messages::CNTR_NULL, "the counter is null"),
    }
}

pub(super) fn set(context: &Context, counter: &Counter, val: c_int) {
    context.watched.forget(counter);
    counter.value.store(val as u32, Ordering::Release);
    fence(Ordering::SeqCst);
    if SLEEPERS.load(Ordering::Relaxed) > 0 {
        futex::wake_all(&counter.value);
    }
}
