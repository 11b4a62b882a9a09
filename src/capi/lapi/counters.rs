//! Counters: adding to them, reading, setting, waiting.
//!
//! A counter is an `int` that only atomic operations touch. Whoever adds to it wakes
//! those who sleep on it ([`LAPI_Nopoll_wait`]); waiting otherwise means polling. A
//! wait takes its value off in the same step in which it finds it there, so that
//! several threads may wait on one counter.

use super::context::{self, Context, Outcome, call, refuse};
use super::twin;
use super::types::{Counter, ErrorOf, Handle};
use super::{messages, objects};
use crate::am::Am;
use crate::core::handler;
use crate::error::Result;
use crate::futex;
use std::os::raw::c_int;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::time::Duration;

/// Threads that sleep on a counter.
static SLEEPERS: AtomicUsize = AtomicUsize::new(0);
/// How long one sleeps before it looks again: what the engine counts wakes nobody.
const SLEEP: Duration = Duration::from_millis(1);

/// Adds one to a counter of this rank, for a message from or to `task`.
///
/// # Safety
/// `counter` must be null, which counts nothing, or valid.
#[inline]
pub unsafe fn bump(context: &Context, counter: *const Counter, task: usize) {
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
pub fn bump_at(context: &Context, address: u64, of: ErrorOf, src: usize) -> Result<()> {
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

/// Takes `val` off a counter that is at least that; what remains.
fn take(counter: &Counter, val: c_int) -> Option<c_int> {
    let mut now = counter.value.load(Ordering::Acquire);
    while now as c_int >= val {
        let left = (now as c_int).wrapping_sub(val);
        match counter.value.compare_exchange_weak(
            now,
            left as u32,
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            Ok(_) => return Some(left),
            Err(other) => now = other,
        }
    }
    None
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

twin! {
    /// Reads a counter. Makes no progress but in polling mode.
    LAPI_Getcntr / PLAPI_Getcntr(hndl: Handle, cntr: *mut Counter, val: *mut c_int) -> c_int {
        call("LAPI_Getcntr", || {
            let (context, engine) = context::enter(hndl)?;
            // SAFETY: the caller vouches for the counter.
            let counter = unsafe { checked(cntr) }?;
            if val.is_null() {
                refuse!(messages::RET_PTR_NULL, "the pointer to the value is null");
            }
            context::serve(context, engine)?;
            // SAFETY: it is not null, and the caller vouches for it.
            unsafe { val.write(counter.value.load(Ordering::Acquire) as c_int) };
            context.watched.tell(counter, false, 0);
            Ok(())
        })
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

twin! {
    /// Sets a counter.
    LAPI_Setcntr / PLAPI_Setcntr(hndl: Handle, cntr: *mut Counter, val: c_int) -> c_int {
        call("LAPI_Setcntr", || {
            let (context, _) = context::enter(hndl)?;
            // SAFETY: the caller vouches for the counter.
            set(context, unsafe { checked(cntr) }?, val);
            Ok(())
        })
    }
}

/// # Safety
/// `current` must be null or valid for a write.
unsafe fn give(current: *mut c_int, left: c_int) {
    if !current.is_null() {
        // SAFETY: the caller vouches for it.
        unsafe { current.write(left) };
    }
}

/// Waits for a counter, serving others meanwhile.
fn wait(
    context: &Context,
    engine: &Am,
    counter: &Counter,
    val: c_int,
    mut given_up: impl FnMut() -> bool,
) -> Outcome<Option<c_int>> {
    let mut left = None;
    let what = || {
        let now = counter.value.load(Ordering::Relaxed) as c_int;
        format!("the counter at {counter:p} to reach {val}; it is {now}")
    };
    engine.wait_until(&what, || {
        left = take(counter, val);
        if left.is_none() {
            context.pending.advance(context, engine)?;
        }
        Ok(left.is_some() || given_up())
    })?;
    Ok(left)
}

twin! {
    /// Waits until a counter is at least `val`, takes `val` off it, and stores what
    /// remains in `*cur_cntr_val`, which may be null.
    LAPI_Waitcntr / PLAPI_Waitcntr(
        hndl: Handle, cntr: *mut Counter, val: c_int, cur_cntr_val: *mut c_int,
    ) -> c_int {
        call("LAPI_Waitcntr", || {
            let (context, engine) = context::enter(hndl)?;
            // SAFETY: the caller vouches for the counter.
            let counter = unsafe { checked(cntr) }?;
            if val < 0 {
                refuse!(messages::CNTR_VAL, "a counter never needs to reach {val}");
            }
            context::serve(context, engine)?;
            let left = wait(context, engine, counter, val, || false)?;
            context.watched.tell(counter, true, 0);
            if let Some(left) = left {
                // SAFETY: the caller vouches for it.
                unsafe { give(cur_cntr_val, left) };
            }
            Ok(())
        })
    }
}

/// A thread that waits for a counter without polling, until it is dropped.
struct Waiter<'a>(&'a Context, usize);

impl<'a> Waiter<'a> {
    fn new(context: &'a Context, counter: &Counter) -> Outcome<Waiter<'a>> {
        let address = std::ptr::from_ref(counter) as usize;
        if !context.waited_for.lock().insert(address) {
            refuse!(messages::MULTIPLE_WAITERS, "another thread waits for this counter");
        }
        SLEEPERS.fetch_add(1, Ordering::SeqCst);
        Ok(Waiter(context, address))
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        SLEEPERS.fetch_sub(1, Ordering::SeqCst);
        self.0.waited_for.lock().remove(&self.1);
    }
}

twin! {
    /// As `LAPI_Waitcntr`, asleep: the progress thread serves meanwhile (where there is
    /// none, and in polling mode, this call does). One thread may wait for a counter in this way. Ends when
    /// a target is purged.
    LAPI_Nopoll_wait / PLAPI_Nopoll_wait(
        hndl: Handle, cntr_ptr: *mut Counter, val: c_int, cur_cntr_val: *mut c_int,
    ) -> c_int {
        call("LAPI_Nopoll_wait", || {
            let (context, engine) = context::enter(hndl)?;
            // SAFETY: the caller vouches for the counter.
            let counter = unsafe { checked(cntr_ptr) }?;
            if val <= 0 {
                refuse!(messages::CNTR_VAL, "a counter is waited for from 1 on, not {val}");
            }
            context::serve(context, engine)?;
            let _waiter = Waiter::new(context, counter)?;
            let now = context.purges.load(Ordering::SeqCst);
            let before = context.watched.purges_told(counter, now);
            let purged = || context.purges.load(Ordering::SeqCst) != before;
            let served = engine.has_thread() && !context.gate.is_polling();
            let left = if served && handler::running().is_none() {
                engine.without_handlers_lock(|| {
                    loop {
                        let now = counter.value.load(Ordering::SeqCst);
                        if let Some(left) = take(counter, val) {
                            return Outcome::Ok(Some(left));
                        }
                        if purged() {
                            return Ok(None);
                        }
                        context.pending.advance(context, engine)?;
                        futex::wait(&counter.value, now, SLEEP);
                    }
                })?
            } else {
                wait(context, engine, counter, val, purged)?
            };
            context.watched.tell(counter, true, context.purges.load(Ordering::SeqCst));
            match left {
                // SAFETY: the caller vouches for it.
                Some(left) => unsafe { give(cur_cntr_val, left) },
                None => refuse!(messages::TGT_PURGED, "a target was purged during the wait"),
            }
            Ok(())
        })
    }
}
