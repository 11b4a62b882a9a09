//! An increasing number in shared memory, on which ranks of a node sleep.

use super::circle::Running;
use crate::error::Result;
use crate::futex;
use crate::trace::Cause;
use crate::wait::{self, Ends, Progress, Word};
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// Number of polls between two checks of a waiting thread for an alarm and for different calls.
const CHECK_EVERY: u32 = 32;
/// Number of polls before the first check. A check reads cache lines of the other ranks, so short
/// waits make none.
const FIRST_CHECK: u32 = 256;

/// Returns whether a waiting thread checks at this poll.
pub(super) fn checks_at(polls: u32) -> bool {
    polls >= FIRST_CHECK && polls.is_multiple_of(CHECK_EVERY)
}

/// Returns whether `now` is equal to or later than `number`. The numbers wrap, so only their
/// distance is compared.
pub(super) fn reached(now: u32, number: u32) -> bool {
    now.wrapping_sub(number) as i32 >= 0
}

/// The number, and a count of the threads that sleep on it.
#[derive(Clone, Copy)]
pub(super) struct Mark<'a> {
    pub number: &'a AtomicU32,
    pub sleepers: &'a AtomicU32,
    /// Whether there are more ranks than cores.
    pub crowded: bool,
}

impl Mark<'_> {
    /// Sets the number and wakes sleeping threads. All earlier writes of the caller are visible to
    /// a thread that has waited for the number.
    pub(super) fn set(&self, number: u32) {
        self.number.store(number, Ordering::Release);
        // With this fence, either this thread sees the sleeper, or the sleeper sees the new number.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            futex::wake_all(self.number);
        }
    }

    /// Waits until the mark has reached `number`. Calls `look` at intervals, and fails if it fails.
    ///
    /// # Errors
    /// Returns the error of `look`.
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
