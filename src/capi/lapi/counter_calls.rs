//! The calls about counters: reading, setting, waiting, and the status of destinations.
//!
//! Waiting means polling, but for [`LAPI_Nopoll_wait`]. A wait takes its value off in the
//! same step in which it finds it there, so that several threads may wait on one counter.

use super::context::{self, Context, call};
use super::counters::{SLEEPERS, checked, set};
use super::outcome::{Outcome, refuse};
use super::types::{Counter, Handle};
use super::watched::{INITIAL, INVALID, List};
use super::{finish, messages, twin};
use crate::am::Am;
use crate::futex;
use crate::runtime::Engine;
use crate::trace::Cause;
use crate::wait::{Progress, Turns};
use crate::watchdog::Standing;
use std::os::raw::{c_int, c_uint};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long one sleeps before it looks again: what the engine counts wakes nobody.
const SLEEP: Duration = Duration::from_millis(1);

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
            finish::serve(context, engine)?;
            // SAFETY: it is not null, and the caller vouches for it.
            unsafe { val.write(counter.value.load(Ordering::Acquire) as c_int) };
            context.watched.tell(counter, false, 0);
            Ok(())
        })
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
    engine.wait_for(Cause::Message, &what, || {
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
            finish::serve(context, engine)?;
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
            finish::serve(context, engine)?;
            let _waiter = Waiter::new(context, counter)?;
            let now = context.purges.load(Ordering::SeqCst);
            let before = context.watched.purges_told(counter, now);
            let purged = || context.purges.load(Ordering::SeqCst) != before;
            let served = engine.has_thread() && !context.gate.is_polling();
            let left = if served && Engine::running_handler().is_none() {
                engine.without_handlers_lock(|| {
                    let mut turns = Turns::begin();
                    loop {
                        let now = counter.value.load(Ordering::SeqCst);
                        if let Some(left) = take(counter, val) {
                            return Outcome::Ok(Some(left));
                        }
                        if purged() {
                            return Ok(None);
                        }
                        context.pending.advance(context, engine)?;
                        let what = || format!("a counter to reach {val}, which is {now}");
                        if let Some(standing) = turns.look(now, "") {
                            engine.report(&Standing { what: &what(), ..standing });
                        }
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

/// The status of a task as the list begins.
fn first_status(context: &Context, task: c_uint) -> c_int {
    match context.task(task) {
        Ok(rank) if !context.is_purged(rank) => INITIAL,
        _ => INVALID,
    }
}

twin! {
    /// Sets a counter to zero and has it keep the status of each of `val` destinations in
    /// `dest_status`. Without a list or without an array, sets it to `val`.
    LAPI_Setcntr_wstatus / PLAPI_Setcntr_wstatus(
        hndl: Handle, cntr: *mut Counter, val: c_int, dest: *mut c_uint, dest_status: *mut c_int,
    ) -> c_int {
        call("LAPI_Setcntr_wstatus", || {
            let (context, _) = context::enter(hndl)?;
            // SAFETY: the caller vouches for the counter.
            let counter = unsafe { checked(cntr) }?;
            if dest.is_null() || dest_status.is_null() {
                set(context, counter, val);
                return Ok(());
            }
            let Ok(length) = usize::try_from(val) else {
                refuse!(messages::CNTR_VAL, "a list of {val} destinations");
            };
            set(context, counter, 0);
            // SAFETY: it is not null, and the caller vouches for as many destinations.
            let tasks = unsafe { std::slice::from_raw_parts(dest, length) };
            let entries = tasks.iter().map(|&task| (task, first_status(context, task))).collect();
            let purges = context.purges.load(Ordering::SeqCst);
            context.watched.watch(cntr, List { entries, array: dest_status, purges });
            Outcome::Ok(())
        })
    }
}
