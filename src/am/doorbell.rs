//! Waking a rank: whether its threads poll, and a bell for those that sleep.
//!
//! A rank is *attended* while one of its threads polls. A rank that is not attended has a
//! thread asleep on its bell, or computes without one. A sender writes its record first and
//! reads the doorbell afterwards; it rings the bell of a rank that is not attended and has
//! sleepers. A thread that goes to sleep, or stops attending, changes the doorbell first and
//! checks the rings once more afterwards.
//!
//! Invariant: with a barrier between the two steps on each side, no record is overlooked.

use crate::futex;
use crate::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::Duration;

/// What other ranks need for waking a rank; in shared memory, and zero to begin with.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Doorbell {
    /// Whether a thread polls.
    attended: AtomicU32,
    _line: [u32; 15],
    /// Changes when there is something new for sleepers.
    bell: AtomicU32,
    /// How many threads sleep on the bell.
    sleepers: AtomicU32,
    /// How many threads sleep that wait in a call, and have nothing else to do.
    resting: AtomicU32,
    _line2: [u32; 13],
}

impl Doorbell {
    /// Wakes the rank if it sleeps. After something was written for it.
    #[inline]
    pub fn alert(&self) {
        fence(Ordering::SeqCst);
        if self.attended.load(Ordering::Relaxed) == 0 {
            self.ring();
        }
    }

    #[cold]
    fn ring(&self) {
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.bell.fetch_add(1, Ordering::Release);
            futex::wake_all(&self.bell);
        }
    }

    /// Publishes whether a thread polls.
    #[inline]
    pub fn set_attended(&self, attended: bool) {
        self.attended.store(attended.into(), Ordering::Release);
    }

    /// Whether a thread polls.
    pub fn is_attended(&self) -> bool {
        self.attended.load(Ordering::Relaxed) != 0
    }

    /// Runs something that sleeps, of a thread that waits in a call.
    pub fn rest(&self, sleep: impl FnOnce()) {
        self.resting.fetch_add(1, Ordering::Relaxed);
        sleep();
        self.resting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether a thread sleeps that waits in a call.
    pub fn rests(&self) -> bool {
        self.resting.load(Ordering::Relaxed) > 0
    }

    /// Sleeps until the bell rings, at most as long as `nap` returns; `nap` checks whether there
    /// is something to do, and then returns nothing.
    pub fn sleep(&self, nap: impl FnOnce() -> Option<Duration>) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let bell = self.bell.load(Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if let Some(nap) = nap() {
            futex::wait(&self.bell, bell, nap);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Wakes all sleeping threads.
    pub fn wake(&self) {
        self.bell.fetch_add(1, Ordering::SeqCst);
        futex::wake_all(&self.bell);
    }
}
