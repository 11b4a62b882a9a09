//! The lock that keeps handlers of this rank from running.
//!
//! Handlers run under the dispatcher's lock, which this lock takes. It nests. Handlers may take it.
//!
//! A lock held *throughout* ([`Hold`]) excludes handlers until it is unlocked, even while its
//! holder waits. A lock held *between waits* is released while its holder waits, polls or sleeps in
//! a call of this library, and is taken again before the call returns, like a monitor in a
//! condition wait. A thread that holds the lock in both ways holds it throughout.
//!
//! Invariant: when a wait returns, the thread holds what it released for the wait, at the same
//! depth. A nested wait finds nothing to release.

use super::Am;
use crate::core::handler;
use portolan_base::error::{Result, fail};
use portolan_base::trace::Cause;
use portolan_base::wait::GivenUp;
use std::cell::Cell;
use std::sync::atomic::Ordering;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    Throughout,
    BetweenWaits,
}

#[derive(Debug, Clone, Copy, Default)]
struct LockDepth {
    depth: u32,
    throughout: u32,
    /// Whether the thread took the dispatcher's lock for this. A handler holds it anyway.
    owns: bool,
}

thread_local! {
    static HELD: Cell<LockDepth> = const { Cell::new(LockDepth { depth: 0, throughout: 0, owns: false }) };
}

pub(super) fn has_locked() -> bool {
    HELD.get().depth > 0
}

/// The `pthread_t` of this thread, which C programs can compare. Never 0.
fn this_thread() -> u64 {
    // SAFETY: no preconditions.
    unsafe { libc::pthread_self() as u64 }
}

impl Am {
    /// Keeps handlers of this rank from running, with [`Hold::Throughout`].
    pub fn lock_handlers(&self) -> Result<()> {
        self.lock_handlers_as(Hold::Throughout)
    }

    pub fn unlock_handlers(&self) -> Result<()> {
        self.unlock_handlers_as(Hold::Throughout)
    }

    /// [`Am::unlock_handlers_as`] undoes it. Fails with `State` before handlers were registered.
    pub fn lock_handlers_as(&self, hold: Hold) -> Result<()> {
        if !self.nest(hold) {
            let what = || "the lock of the handlers".to_string();
            self.wait_for(Cause::Message, &what, || self.try_take(hold))?;
        }
        Ok(())
    }

    /// Locks if this needs no wait. Returns whether it locked.
    pub fn try_lock_handlers_as(&self, hold: Hold) -> Result<bool> {
        Ok(self.nest(hold) || self.try_take(hold)?)
    }

    /// Adds a level if this thread holds the lock or runs a handler, else returns false.
    fn nest(&self, hold: Hold) -> bool {
        let mut held = HELD.get();
        if held.depth == 0 && handler::running().is_none() {
            return false;
        }
        held.depth += 1;
        held.throughout += u32::from(hold == Hold::Throughout);
        HELD.set(held);
        true
    }

    fn try_take(&self, hold: Hold) -> Result<bool> {
        let throughout = u32::from(hold == Hold::Throughout);
        self.take(LockDepth { depth: 1, throughout, owns: true })
    }

    fn take(&self, held: LockDepth) -> Result<bool> {
        let state = self.state()?;
        let Some(guard) = state.dispatch.try_lock() else { return Ok(false) };
        std::mem::forget(guard);
        state.locker.store(this_thread(), Ordering::Release);
        HELD.set(held);
        Ok(true)
    }

    /// Fails with `State` if this thread does not hold a level of this kind.
    pub fn unlock_handlers_as(&self, hold: Hold) -> Result<()> {
        let mut held = HELD.get();
        let throughout = u32::from(hold == Hold::Throughout);
        let holds = match hold {
            Hold::Throughout => held.throughout,
            Hold::BetweenWaits => held.depth - held.throughout,
        };
        if holds == 0 {
            fail!(State, "this thread does not hold the lock of the handlers");
        }
        if held.depth == 1 {
            return if self.let_go()? { self.poll_after_lock() } else { Ok(()) };
        }
        held.depth -= 1;
        held.throughout -= throughout;
        HELD.set(held);
        Ok(())
    }

    fn let_go(&self) -> Result<bool> {
        let state = self.state()?;
        let owned = HELD.replace(LockDepth::default()).owns;
        if owned {
            state.locker.store(0, Ordering::Release);
            // SAFETY: `take` locked the mutex on this thread, forgot the guard and set `owns`.
            unsafe { state.dispatch.force_unlock() };
        }
        Ok(owned)
    }

    /// Handles the messages that no thread could handle while the lock was held.
    fn poll_after_lock(&self) -> Result<()> {
        let state = self.state()?;
        while state.poll(self)? {}
        Ok(())
    }

    pub fn has_handlers_lock(&self) -> bool {
        has_locked()
    }

    /// Returns the `pthread_t` of the thread that has locked the handlers, if any; in a handler, of
    /// this thread. Fails with `State` before handlers were registered.
    pub fn locker_of_handlers(&self) -> Result<Option<u64>> {
        if handler::running().is_some() {
            return Ok(Some(this_thread()));
        }
        Ok(Some(self.state()?.locker.load(Ordering::Acquire)).filter(|&thread| thread != 0))
    }

    /// Releases the lock for a wait, if this thread holds it between waits only.
    pub(crate) fn give_up_handlers(&self) -> Option<GivenUp> {
        let held = HELD.get();
        if !held.owns || held.throughout > 0 {
            return None;
        }
        self.let_go().ok().map(|_| GivenUp(held.depth))
    }

    pub(crate) fn take_handlers_again(&self, GivenUp(depth): GivenUp) {
        let held = LockDepth { depth, throughout: 0, owns: true };
        let what = || "the lock of the handlers, after a wait".to_string();
        if let Err(error) =
            portolan_base::wait::until(self, Cause::Message, &what, || self.take(held))
        {
            error.end_job_in("the lock of the handlers cannot be taken again");
        }
    }

    /// Runs `body`, which sleeps or polls, with the lock released as in a wait.
    pub fn without_handlers_lock<R>(&self, body: impl FnOnce() -> R) -> R {
        let Some(held) = self.give_up_handlers() else { return body() };
        if let Err(error) = self.poll_after_lock() {
            error.end_job();
        }
        let result = body();
        self.take_handlers_again(held);
        result
    }

    /// Releases for good what this thread holds between waits.
    pub fn drop_handlers_lock(&self) -> Result<()> {
        match self.give_up_handlers() {
            Some(_) => self.poll_after_lock(),
            None => Ok(()),
        }
    }
}
