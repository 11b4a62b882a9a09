//! The events that wake waiting threads of a class, and the idle time of the class.
//!
//! Invariant: a thread that makes the condition of a wait true calls [`WakeSource::notify`]
//! afterwards ([`super::eventcount`]).

use super::eventcount::EventCount;
use super::resting::{Resting, Round};
use super::wait_descriptor::Descriptors;
use parking_lot::Mutex;
use portolan_base::wait::RepeatedWait;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(crate) struct WakeSource {
    pub(super) events: EventCount,
    /// File descriptors that programs wait for instead of sleeping here.
    pub(super) descriptors: Descriptors,
    /// Number of transfers. Waiting threads must poll for those that do not rest.
    pub(super) moving: AtomicUsize,
    pub(super) resting: Resting,
    /// Steps of threads that send or run callbacks; approximate.
    pub(super) turns: AtomicU32,
    pub(super) idle: Idle,
    /// Polls with timeout zero that found nothing; approximate.
    pub(super) idle_polls: AtomicU32,
    /// The waits of the class as the watchdog sees them, while an operation is under way, and the
    /// time of the last check.
    pub(super) watched: Mutex<Option<(RepeatedWait<u32>, Instant)>>,
}

/// The start of the idle period and the event count at that time, packed into one word so that no
/// lock is needed. The length of the idle period determines the back-off of every waiting thread.
#[derive(Debug)]
pub(super) struct Idle {
    /// Zero, or the event count in the upper half and the start time in ticks in the lower half.
    since: AtomicU64,
    beginning: Instant,
}

/// Binary logarithm of a tick in nanoseconds: a tick is 16.4 us. The ticks wrap after 19 hours; one
/// wait then starts with short naps again.
const TICK: u32 = 14;

impl Default for Idle {
    fn default() -> Idle {
        Idle { since: AtomicU64::new(0), beginning: Instant::now() }
    }
}

impl Idle {
    pub(super) fn lasts(&self, count: u32) -> Option<Duration> {
        let since = self.since.load(Ordering::Relaxed);
        if since == 0 || (since >> 32) as u32 != count {
            return None;
        }
        let ticks = self.ticks().wrapping_sub(since as u32);
        Some(Duration::from_nanos(u64::from(ticks) << TICK))
    }

    /// Starts an idle period unless one already lasts, and returns its length so far.
    pub(super) fn begins(&self, count: u32) -> Duration {
        self.lasts(count).unwrap_or_else(|| {
            let since = u64::from(count) << 32 | u64::from(self.ticks());
            self.since.store(since, Ordering::Relaxed);
            Duration::ZERO
        })
    }

    pub(super) fn end(&self) {
        self.since.store(0, Ordering::Relaxed);
    }

    /// Returns the time in ticks, but never zero, which means that no idle period lasts.
    fn ticks(&self) -> u32 {
        ((self.beginning.elapsed().as_nanos() >> TICK) as u32).max(1)
    }
}

impl WakeSource {
    /// Announces that the condition of a wait may have become true.
    #[inline]
    pub(super) fn notify(&self, wake: impl FnOnce(&AtomicU32)) {
        self.events.notify(wake);
        self.descriptors.notify();
    }

    /// Records the start of a transfer, before it is examined for the first time.
    pub(crate) fn transfer_begins(&self) {
        self.moving.fetch_add(1, Ordering::Release);
    }

    /// Records the end of a transfer that does not rest.
    pub(crate) fn transfer_ends(&self) {
        self.moving.fetch_sub(1, Ordering::Release);
    }

    /// Returns the current round, before a transfer is examined.
    pub(super) fn round(&self) -> Round {
        self.resting.round()
    }

    /// Ends the earlier rest of a transfer, and begins a rest in `round`, if any. Returns the
    /// round of the new rest.
    pub(super) fn rest(&self, earlier: Option<Round>, round: Option<Round>) -> Option<Round> {
        if earlier == round {
            return round;
        }
        earlier.into_iter().for_each(|round| self.resting.end(round));
        round.filter(|round| self.resting.begin(*round))
    }

    pub(super) fn must_poll(&self) -> bool {
        self.moving.load(Ordering::Acquire) > self.resting.count()
    }
}
