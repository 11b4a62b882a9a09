//! Waking a rank: a flag for a rank that polls, and a bell for threads that sleep.
//!
//! A rank is *attended* while one of its threads polls. A sender writes its record first and reads
//! the doorbell afterwards. It rings the bell of a rank that is not attended and has sleepers. A
//! thread that goes to sleep, or stops attending, changes the doorbell and then checks the rings.
//!
//! Invariant: each side has a barrier between its two steps, so no record is missed.

use portolan_base::futex;
use portolan_base::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::Duration;

/// In shared memory, initially zero.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Doorbell {
    attended: AtomicU32,
    _line: [u32; 15],
    /// Futex word of sleepers, which each ring changes.
    bell: AtomicU32,
    sleepers: AtomicU32,
    /// Threads that sleep in a wait and have nothing else to do.
    resting: AtomicU32,
    _line2: [u32; 13],
}

impl Doorbell {
    /// Wakes the rank if it sleeps. The caller has written a record for it before.
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

    #[inline]
    pub fn set_attended(&self, attended: bool) {
        self.attended.store(attended.into(), Ordering::Release);
    }

    pub fn is_attended(&self) -> bool {
        self.attended.load(Ordering::Relaxed) != 0
    }

    pub fn rest(&self, sleep: impl FnOnce()) {
        self.resting.fetch_add(1, Ordering::Relaxed);
        sleep();
        self.resting.fetch_sub(1, Ordering::Relaxed);
    }

    pub fn rests(&self) -> bool {
        self.resting.load(Ordering::Relaxed) > 0
    }

    /// Sleeps until the bell rings, at most for the result of `nap`, if any.
    pub fn sleep(&self, nap: impl FnOnce() -> Option<Duration>) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let bell = self.bell.load(Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if let Some(nap) = nap() {
            futex::wait(&self.bell, bell, nap);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    pub fn wake(&self) {
        self.bell.fetch_add(1, Ordering::SeqCst);
        futex::wake_all(&self.bell);
    }
}
