//! A number in shared memory that grows, and on which ranks of a node sleep.

use super::circle::Running;
use crate::error::Result;
use crate::futex;
use crate::trace::Cause;
use crate::wait::{self, Ends, Progress, Word};
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// A waiting thread checks for an alarm and for different calls at one of this many polls.
const CHECK_EVERY: u32 = 32;
/// The first check. A check reads cache lines of the other ranks, so short waits make none.
const FIRST_CHECK: u32 = 256;

/// Whether a waiting thread checks at this poll.
pub(super) fn checks_at(polls: u32) -> bool {
    polls >= FIRST_CHECK && polls.is_multiple_of(CHECK_EVERY)
}

/// Whether `now` is at or behind `number`: numbers wrap, so only their distance tells.
pub(super) fn reached(now: u32, number: u32) -> bool {
    now.wrapping_sub(number) as i32 >= 0
}

/// The number, and how many threads sleep on it.
#[derive(Clone, Copy)]
pub(super) struct Mark<'a> {
    pub number: &'a AtomicU32,
    pub sleepers: &'a AtomicU32,
    /// Ranks outnumber cores.
    pub crowded: bool,
}

impl Mark<'_> {
    /// Sets it: what was written before is seen by all that have waited for it.
    pub(super) fn set(&self, number: u32) {
        self.number.store(number, Ordering::Release);
        // Either a sleeper is seen here, or it sees the new number.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            futex::wake_all(self.number);
        }
    }

    /// Waits until it has reached a number, or `look`, which is called now and then, fails.
    ///
    /// # Errors
    /// That of `look`.
    pub(super) fn wait_for<P: Progress + ?Sized>(
        &self,
        running: &Running<'_, P>,
        what: &dyn Fn() -> String,
        number: u32,
        look: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let ends = if self.crowded { Ends::Meeting } else { Ends::Woken };
        let mut polls = 0u32;
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
                polls += 1;
                if checks_at(polls) {
                    look()?;
                }
                Ok(false)
            })?;
        }
    }
}
