//! An increasing number in shared memory, on which ranks of a node sleep.

use super::message_group::Running;
use crate::error::Result;
use crate::futex;
use crate::trace::Cause;
use crate::wait::{self, Ends, Word};
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::{Duration, Instant};

/// Number of polls between two checks of a waiting thread.
const CHECK_EVERY: u32 = 32;
/// Number of polls after which a thread that only polls checks too.
const FIRST_CHECK: u32 = 256;
/// [`CHECK_EVERY`] polls that take longer contain yields or naps.
const POLLING: Duration = Duration::from_micros(10);

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
        let rests = self.last.replace(now).is_some_and(|last| now - last > POLLING);
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

    /// Calls `check_others` at intervals, and returns its error.
    pub(super) fn wait_for(
        &self,
        running: &Running<'_>,
        what: &dyn Fn() -> String,
        number: u32,
        check_others: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let ends = if self.crowded { Ends::Meeting } else { Ends::Woken };
        let mut checks = Checks::default();
        loop {
            let now = self.number.load(Ordering::Acquire);
            if reached(now, number) {
                return Ok(());
            }
            let word = Word {
                word: self.number,
                value: now,
                sleepers: Some(self.sleepers),
                ends,
                warns: running.warns,
            };
            wait::on_word(running.progress, Cause::Collective, what, word, || {
                if self.number.load(Ordering::Acquire) != now {
                    return Ok(true);
                }
                if checks.due() {
                    check_others()?;
                }
                Ok(false)
            })?;
        }
    }
}
