//! The calls on counters. All waits poll except [`LAPI_Nopoll_wait`]. A wait compares the counter
//! and subtracts from it in one atomic step, so several threads may wait on one counter.

use super::context::{self, Context, call, local_call};
use super::counters::{SLEEPERS, checked, set};
use super::outcome::{Outcome, refuse};
use super::types::{Counter, Handle};
use super::watched::{INITIAL, INVALID, List};
use super::{finish, messages};
use crate::boundary::{array, export};
use portolan_base::trace::Cause;
use portolan_base::wait::RepeatedWait;
use portolan_engine::am::Am;
use portolan_engine::runtime::Engine;
use std::os::raw::{c_int, c_uint};
use std::sync::atomic::Ordering;

export! {
    /// Makes progress in polling mode only.
    LAPI_Getcntr / PLAPI_Getcntr(
        hndl: Handle, cntr: *mut Counter, val: *mut c_int,
    ) -> c_int = call(|| {
        let (context, engine) = context::enter(hndl)?;
        // SAFETY: the caller guarantees that the counter is null or valid.
        let counter = unsafe { checked(cntr) }?;
        if val.is_null() {
            refuse!(messages::RET_PTR_NULL, "the pointer to the value is null");
        }
        finish::serve(context, engine)?;
        // SAFETY: `val` is not null, and the caller guarantees that it is writable.
        unsafe { val.write(counter.value.load(Ordering::Acquire) as c_int) };
        context.watched.notify(counter, false, None);
        Ok(())
    });

    LAPI_Setcntr / PLAPI_Setcntr(
        hndl: Handle, cntr: *mut Counter, val: c_int,
    ) -> c_int = local_call(|| {
        let (context, _) = context::enter(hndl)?;
        // SAFETY: the caller guarantees that the counter is null or valid.
        set(context, unsafe { checked(cntr) }?, val);
        Ok(())
    });
}

/// Subtracts `val` from a counter and returns the rest, or `None` if the counter is less.
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
        // SAFETY: `current` is not null, so the caller guarantees that it is valid for a write.
        unsafe { current.write(left) };
    }
}

/// Waits for a counter and serves other ranks. Returns the rest, or `None` if `given_up` or the end
/// of the context ended the wait.
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
        format!("the counter at {counter:p} to reach {val} (its value is {now})")
    };
    engine.wait_for(Cause::Message, &what, || {
        left = take(counter, val);
        if left.is_none() {
            context.pending.advance(context, engine)?;
        }
        Ok(left.is_some() || given_up() || context::gives_up())
    })?;
    Ok(left)
}

export! {
    /// Subtracts `val`, which may be negative, and stores the rest in `*cur_cntr_val`.
    LAPI_Waitcntr / PLAPI_Waitcntr(
        hndl: Handle, cntr: *mut Counter, val: c_int, cur_cntr_val: *mut c_int,
    ) -> c_int = call(|| {
        let (context, engine) = context::enter(hndl)?;
        // SAFETY: the caller guarantees that the counter is null or valid.
        let counter = unsafe { checked(cntr) }?;
        finish::serve(context, engine)?;
        let left = wait(context, engine, counter, val, || false)?;
        context.watched.notify(counter, true, None);
        match left {
            // SAFETY: the caller guarantees that `cur_cntr_val` is null or valid for a write.
            Some(left) => unsafe { give(cur_cntr_val, left) },
            None => return context::given_up(),
        }
        Ok(())
    });
}

/// Registers a thread that waits for a counter without polling, until dropped.
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

export! {
    /// Waits like `LAPI_Waitcntr`, but sleeps while the progress thread serves other ranks. Polls
    /// itself without a progress thread and in polling mode. Only one thread at a time may wait for
    /// a counter in this way. Fails if a target is purged during the wait.
    LAPI_Nopoll_wait / PLAPI_Nopoll_wait(
        hndl: Handle, cntr_ptr: *mut Counter, val: c_int, cur_cntr_val: *mut c_int,
    ) -> c_int = call(|| {
        let (context, engine) = context::enter(hndl)?;
        // SAFETY: the caller guarantees that the counter is null or valid.
        let counter = unsafe { checked(cntr_ptr) }?;
        if val <= 0 {
            refuse!(messages::CNTR_VAL, "a counter is waited for from 1 on, not {val}");
        }
        finish::serve(context, engine)?;
        let _waiter = Waiter::new(context, counter)?;
        let now = context.purges.load(Ordering::SeqCst);
        let before = context.watched.reported_purges(counter, now);
        let purged = || context.purges.load(Ordering::SeqCst) != before;
        let served = engine.has_thread() && !context.deferral.is_polling();
        let left = if served && Engine::running_handler().is_none() {
            engine.without_handlers_lock(|| {
                let mut turns = RepeatedWait::begin();
                loop {
                    let now = counter.value.load(Ordering::SeqCst);
                    if let Some(left) = take(counter, val) {
                        return Outcome::Ok(Some(left));
                    }
                    if purged() || context::gives_up() {
                        return Ok(None);
                    }
                    context.pending.advance(context, engine)?;
                    let what = || format!("a counter to reach {val} (its value is {now})");
                    // Increments by the engine itself do not wake sleepers.
                    turns.asleep(engine, (&counter.value, now), &what);
                }
            })?
        } else {
            wait(context, engine, counter, val, purged)?
        };
        let purges = context.purges.load(Ordering::SeqCst);
        context.watched.notify(counter, true, Some(purges));
        match left {
            // SAFETY: the caller guarantees that `cur_cntr_val` is null or valid for a write.
            Some(left) => unsafe { give(cur_cntr_val, left) },
            None if context::gives_up() => return context::given_up(),
            None => refuse!(messages::TGT_PURGED, "a target was purged during the wait"),
        }
        Ok(())
    });
}

fn first_status(context: &Context, task: c_uint) -> c_int {
    match context.task(task) {
        Ok(rank) if !context.is_purged(rank) => INITIAL,
        _ => INVALID,
    }
}

export! {
    /// Sets the counter to `val`, as without a list, if `dest` or `dest_status` is null.
    LAPI_Setcntr_wstatus / PLAPI_Setcntr_wstatus(
        hndl: Handle, cntr: *mut Counter, val: c_int, dest: *mut c_uint, dest_status: *mut c_int,
    ) -> c_int = call(|| {
        let (context, _) = context::enter(hndl)?;
        // SAFETY: the caller guarantees that the counter is null or valid.
        let counter = unsafe { checked(cntr) }?;
        if dest.is_null() || dest_status.is_null() {
            set(context, counter, val);
            return Ok(());
        }
        let Ok(length) = usize::try_from(val) else {
            refuse!(messages::CNTR_VAL, "a list of {val} destinations");
        };
        set(context, counter, 0);
        // SAFETY: the caller guarantees that `dest` has `length` elements.
        let tasks = unsafe { array(dest, length, "the list of destinations") }?;
        let entries = tasks.iter().map(|&task| (task, first_status(context, task))).collect();
        let purges = context.purges.load(Ordering::SeqCst);
        context.watched.watch(cntr, List { entries, array: dest_status, purges });
        Outcome::Ok(())
    });
}
