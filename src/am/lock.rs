//! The lock that keeps handlers of this rank from running.
//!
//! A thread that holds it holds the dispatcher's lock, under which all handlers run, so
//! none runs until it unlocks. It nests, and a handler, which runs under the dispatcher's
//! lock anyway, may take it too.
//!
//! There are two ways to hold it. One that is held *throughout* excludes handlers until
//! it is unlocked, also while its holder waits. One that is held *between waits* is given
//! up while its holder waits, polls or sleeps in a call of ours, as the condition of a
//! monitor gives it up, and is taken again before the call returns: handlers run inside
//! such calls only. A thread that holds both kinds holds it throughout.
//!
//! Invariant: what a thread gives up for a wait it has again when the wait returns,
//! as deep as before; a wait within a wait finds nothing to give up.

use super::Am;
use crate::core::handler;
use crate::error::{Error, Result, fail};
use crate::trace::Cause;
use crate::wait::GivenUp;
use std::cell::Cell;
use std::sync::atomic::Ordering;

/// How a thread holds the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Until it unlocks.
    Throughout,
    /// It is given up while the thread waits.
    BetweenWaits,
}

/// How often this thread has locked the handlers.
#[derive(Debug, Clone, Copy, Default)]
struct LockDepth {
    depth: u32,
    /// How often of these throughout.
    throughout: u32,
    /// The thread holds the dispatcher's lock for that (a handler has it anyway).
    owns: bool,
}

thread_local! {
    static HELD: Cell<LockDepth> = const { Cell::new(LockDepth { depth: 0, throughout: 0, owns: false }) };
}

/// Whether this thread has locked the handlers.
pub(super) fn has_locked() -> bool {
    HELD.get().depth > 0
}

/// This thread, as C programs compare it; never 0.
fn this_thread() -> u64 {
    // SAFETY: it has no conditions.
    unsafe { libc::pthread_self() as u64 }
}

impl Am {
    /// Keeps handlers of this rank from running until [`Am::unlock_handlers`] on the
    /// same thread, throughout.
    ///
    /// # Errors
    /// `State` before handlers were registered.
    pub fn lock_handlers(&self) -> Result<()> {
        self.lock_handlers_as(Hold::Throughout)
    }

    /// # Errors
    /// `State` where this thread does not hold the lock throughout.
    pub fn unlock_handlers(&self) -> Result<()> {
        self.unlock_handlers_as(Hold::Throughout)
    }

    /// Keeps handlers of this rank from running until [`Am::unlock_handlers_as`] on the
    /// same thread.
    ///
    /// # Errors
    /// `State` before handlers were registered.
    pub fn lock_handlers_as(&self, hold: Hold) -> Result<()> {
        if !self.nest(hold) {
            let what = || "the lock of the handlers".to_string();
            self.wait_for(Cause::Message, &what, || self.try_take(hold))?;
        }
        Ok(())
    }

    /// As [`Am::lock_handlers_as`], where that need not wait; whether it was done.
    ///
    /// # Errors
    /// `State` before handlers were registered.
    pub fn try_lock_handlers_as(&self, hold: Hold) -> Result<bool> {
        Ok(self.nest(hold) || self.try_take(hold)?)
    }

    /// Locks once more what this thread has; false where it has nothing.
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

    /// Takes the dispatcher's lock for `held`, if it is free.
    fn take(&self, held: LockDepth) -> Result<bool> {
        let state = self.state()?;
        let Some(guard) = state.dispatch.try_lock() else { return Ok(false) };
        std::mem::forget(guard);
        state.locker.store(this_thread(), Ordering::Release);
        HELD.set(held);
        Ok(true)
    }

    /// Undoes one locking of this thread.
    ///
    /// # Errors
    /// `State` where this thread does not hold the lock so.
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

    /// Gives back all that this thread has locked; whether handlers can run now.
    fn let_go(&self) -> Result<bool> {
        let state = self.state()?;
        let owned = HELD.replace(LockDepth::default()).owns;
        if owned {
            state.locker.store(0, Ordering::Release);
            // SAFETY: this thread locked it in `take` and forgot the guard.
            unsafe { state.dispatch.force_unlock() };
        }
        Ok(owned)
    }

    /// Messages that arrived meanwhile found no thread that could handle them.
    fn poll_after_lock(&self) -> Result<()> {
        let state = self.state()?;
        while state.poll(self)? {}
        Ok(())
    }

    /// Whether this thread has locked the handlers.
    pub fn has_handlers_lock(&self) -> bool {
        has_locked()
    }

    /// The thread that has locked the handlers, as `pthread_self` names it; a handler is
    /// told that it is its own.
    pub fn locker_of_handlers(&self) -> Result<Option<u64>> {
        if handler::running().is_some() {
            return Ok(Some(this_thread()));
        }
        Ok(Some(self.state()?.locker.load(Ordering::Acquire)).filter(|&thread| thread != 0))
    }

    /// Gives the lock up for a wait, where this thread holds it between waits only.
    pub(crate) fn give_up_handlers(&self) -> Option<GivenUp> {
        let held = HELD.get();
        if !held.owns || held.throughout > 0 {
            return None;
        }
        self.let_go().ok().map(|_| GivenUp(held.depth))
    }

    /// Takes the lock again after a wait.
    pub(crate) fn take_handlers_again(&self, GivenUp(depth): GivenUp) {
        let held = LockDepth { depth, throughout: 0, owns: true };
        let what = || "the lock of the handlers, after a wait".to_string();
        if let Err(error) = crate::wait::until(self, Cause::Message, &what, || self.take(held)) {
            // The caller would go on without the lock that it counts on.
            let text = format!("the lock of the handlers is lost: {}", error.detail());
            super::handler_dispatch::fatal(&Error::new(error.kind(), text));
        }
    }

    /// Runs something that sleeps or polls, with the lock given up as for a wait.
    pub(crate) fn without_handlers_lock<R>(&self, body: impl FnOnce() -> R) -> R {
        let Some(held) = self.give_up_handlers() else { return body() };
        if let Err(error) = self.poll_after_lock() {
            super::handler_dispatch::fatal(&error);
        }
        let result = body();
        self.take_handlers_again(held);
        result
    }

    /// Gives back whatever this thread holds between waits, for good.
    pub(crate) fn drop_handlers_lock(&self) -> Result<()> {
        match self.give_up_handlers() {
            Some(_) => self.poll_after_lock(),
            None => Ok(()),
        }
    }
}
