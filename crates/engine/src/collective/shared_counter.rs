//! An increasing number in shared memory, on which ranks of a node sleep.

use portolan_base::futex;
use portolan_base::wait::times::ALARM;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::Instant;

/// Number of polls between two checks of a waiting thread.
const CHECK_EVERY: u32 = 32;
/// Number of polls after which a thread that only polls checks too.
const FIRST_CHECK: u32 = 256;

/// Decides when a waiting thread checks for an alarm and for different calls. A check reads cache
/// lines of the other ranks, so a short wait makes none. A thread that yields or naps checks soon.
#[derive(Default)]
pub(super) struct Checks {
    polls: u32,
    last: Option<Instant>,
}

impl Checks {
    #[inline]
    pub(super) fn due(&mut self) -> bool {
        self.polls += 1;
        if !self.polls.is_multiple_of(CHECK_EVERY) {
            return false;
        }
        let now = Instant::now();
        let rests = self.last.replace(now).is_some_and(|last| now - last > ALARM);
        rests || self.polls >= FIRST_CHECK
    }
}

/// Whether `now` is `number` or later. The numbers wrap.
pub(crate) fn reached(now: u32, number: u32) -> bool {
    now.wrapping_sub(number) as i32 >= 0
}

#[derive(Clone, Copy)]
pub(crate) struct SharedCounter<'a> {
    pub number: &'a AtomicU32,
    pub sleepers: &'a AtomicU32,
    pub crowded: bool,
}

impl SharedCounter<'_> {
    /// A thread that has waited for the number sees all earlier writes of the caller.
    pub(crate) fn set(&self, number: u32) {
        self.number.store(number, Ordering::Release);
        // Either this thread sees the sleeper, or the sleeper sees the new number.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            futex::wake_all(self.number);
        }
    }
}
