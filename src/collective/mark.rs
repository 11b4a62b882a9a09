//! A number in shared memory that grows, and on which ranks of a node sleep.

use crate::error::Result;
use crate::futex;
use crate::trace::Cause;
use crate::wait::{self, Progress, Waiting};
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::{Duration, Instant};

/// Where ranks share cores, a rank polls and yields this often, as long as yields come back soon:
/// a few ranks a core meet so without a sleep. Yields of many ranks keep the core from the one that
/// they wait for, so then it sleeps, up to so many times for so long.
const POLLS: u32 = 20;
const YIELDS: u32 = 8;
const SOON: Duration = Duration::from_micros(30);
const SLEEPS: u32 = 20;
const SLEEP: Duration = Duration::from_millis(1);

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
        if self.crowded && !reached(self.number.load(Ordering::Acquire), number) {
            self.sleep(progress, number)?;
        }
        loop {
            let now = self.number.load(Ordering::Acquire);
            if reached(now, number) {
                return Ok(());
            }
            let sleepers = Some(self.sleepers);
            wait::while_equal(progress, Cause::Collective, what, self.number, now, sleepers)?;
        }
    }

    /// Waits a while as ranks do that share cores.
    fn sleep<P: Progress + ?Sized>(&self, progress: &P, number: u32) -> Result<()> {
        let _waiting = Waiting::begin(progress)?;
        let mut yields = POLLS + YIELDS;
        for turn in 0..POLLS + YIELDS + SLEEPS {
            let busy = progress.poll()?;
            let now = self.number.load(Ordering::Acquire);
            if reached(now, number) {
                break;
            }
            if busy || turn < POLLS {
                continue;
            }
            if turn < yields {
                let begun = Instant::now();
                std::thread::yield_now();
                if begun.elapsed() > SOON {
                    yields = 0;
                }
                continue;
            }
            self.sleepers.fetch_add(1, Ordering::SeqCst);
            progress.nap_on(self.number, now, SLEEP);
            self.sleepers.fetch_sub(1, Ordering::SeqCst);
        }
        Ok(())
    }
}
