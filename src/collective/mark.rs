//! A number in shared memory that grows, and on which ranks of a node sleep.

use crate::error::Result;
use crate::futex;
use crate::trace::Cause;
use crate::wait::{self, Ends, Progress};
use std::sync::atomic::{AtomicU32, Ordering, fence};

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

    /// Waits until it has reached a number.
    pub(super) fn wait_for<P: Progress + ?Sized>(
        &self,
        progress: &P,
        what: &dyn Fn() -> String,
        number: u32,
    ) -> Result<()> {
        let ends = if self.crowded { Ends::Meeting } else { Ends::Woken };
        loop {
            let now = self.number.load(Ordering::Acquire);
            if reached(now, number) {
                return Ok(());
            }
            let sleepers = Some(self.sleepers);
            wait::while_equal(progress, Cause::Collective, what, self.number, now, sleepers, ends)?;
        }
    }
}
