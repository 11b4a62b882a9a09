//! The interface of a wait to the layers that it polls, and what a thread gives up while it waits.

use super::policy::{Ends, Patience};
use super::watchdog::{self, Standing, Watch};
use crate::error::Result;
use crate::futex;
use crate::trace::Observer;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// A lock that a thread gave up for a wait, with the number of times that it had taken it.
#[derive(Debug)]
#[must_use]
pub struct GivenUp(pub u32);

/// A layer that a wait polls.
pub trait Progress {
    /// The layer that does what this one does not do itself.
    fn delegate(&self) -> Option<&dyn Progress> {
        None
    }

    /// Serves other ranks, without blocking. Returns true if anything happened.
    #[inline]
    fn poll(&self) -> Result<bool> {
        self.delegate().map_or(Ok(false), Progress::poll)
    }

    /// Sleeps for at most `nap`, less if another rank rings the doorbell.
    fn nap(&self, nap: Duration) {
        match self.delegate() {
            Some(layer) => layer.nap(nap),
            None => std::thread::sleep(nap),
        }
    }

    /// Sleeps for at most `nap` while `word` equals `value`, or until a thread wakes the word.
    fn nap_on(&self, word: &AtomicU32, value: u32, nap: Duration) {
        match self.delegate() {
            Some(layer) => layer.nap_on(word, value, nap),
            None => futex::wait(word, value, nap),
        }
    }

    /// Whether the bytes of long messages are in flight, which move only while this rank polls. The
    /// thread then does not nap earlier for other work that competes for the core.
    fn moves_data(&self) -> bool {
        self.delegate().is_some_and(Progress::moves_data)
    }

    /// Time since the last event of this wait, or of other threads too if they share its events.
    fn idle(&self, here: Duration) -> Duration {
        here
    }

    fn patience(&self, ends: Ends) -> Patience {
        match self.delegate() {
            Some(layer) => layer.patience(ends),
            None if ends == Ends::Meeting => Patience::MEETING,
            None => Patience::POLLING,
        }
    }

    /// Fails if the caller must not wait, for example in a handler.
    #[inline]
    fn may_wait(&self) -> Result<()> {
        self.delegate().map_or(Ok(()), Progress::may_wait)
    }

    fn traced_by(&self) -> Option<&Observer> {
        self.delegate()?.traced_by()
    }

    /// Called when a wait begins and ends. A progress thread stands back meanwhile.
    fn waiting(&self, begins: bool) {
        if let Some(layer) = self.delegate() {
            layer.waiting(begins);
        }
    }

    /// Gives up, before a wait, a lock that the caller holds only between waits.
    #[inline]
    fn give_up(&self) -> Option<GivenUp> {
        self.delegate()?.give_up()
    }

    fn take_again(&self, given_up: GivenUp) {
        if let Some(layer) = self.delegate() {
            layer.take_again(given_up);
        }
    }

    fn watch(&self) -> Watch {
        Watch::new()
    }

    /// Whether the caller is the rank of its node that warns of a slow collective.
    fn may_warn(&self) -> bool {
        true
    }

    fn report(&self, standing: &Standing<'_>) {
        match self.delegate() {
            Some(layer) => layer.report(standing),
            None => standing.report(&watchdog::pending()),
        }
    }
}

/// Before the engine exists, there is nothing to serve.
#[derive(Debug)]
pub struct Boot;

impl Progress for Boot {}

/// Has given up the lock that it holds only between waits, until this is dropped.
pub struct Unlocked<'a, P: Progress + ?Sized>(&'a P, Option<GivenUp>);

impl<'a, P: Progress + ?Sized> Unlocked<'a, P> {
    pub fn begin(progress: &'a P) -> Unlocked<'a, P> {
        Unlocked(progress, progress.give_up())
    }
}

impl<P: Progress + ?Sized> Drop for Unlocked<'_, P> {
    fn drop(&mut self) {
        if let Some(given_up) = self.1.take() {
            self.0.take_again(given_up);
        }
    }
}

/// A thread that waits. `progress` knows about it until this is dropped.
pub struct Waiting<'a, P: Progress + ?Sized>(Unlocked<'a, P>);

impl<'a, P: Progress + ?Sized> Waiting<'a, P> {
    /// Fails with `State` if the thread must not wait.
    pub fn begin(progress: &'a P) -> Result<Waiting<'a, P>> {
        progress.may_wait()?;
        let unlocked = Unlocked::begin(progress);
        progress.waiting(true);
        Ok(Waiting(unlocked))
    }
}

impl<P: Progress + ?Sized> Drop for Waiting<'_, P> {
    fn drop(&mut self) {
        self.0.0.waiting(false);
    }
}
