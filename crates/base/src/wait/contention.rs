//! Detection of other work that competes for the core of a waiting thread.
//!
//! A thread that polls and is preempted loses its core for a time slice of the competing thread,
//! milliseconds. A thread that sleeps is woken and gets its core at once. So a waiting thread polls
//! for long only if it has its core for itself.
//!
//! A thread was preempted if much time passes between two of its polls *and* the kernel has counted
//! an involuntary context switch of the thread meanwhile. Neither is sufficient: a thread that
//! computes between its waits does not poll, and a switch of a few microseconds is harmless. A
//! yield that takes a time slice is evidence too. Contention is then assumed for a while, which
//! doubles if the next long poll is preempted again. The kernel counts a yield that gives the core
//! away as an involuntary switch, so the thread expects one for each of its own yields.
//!
//! The state is per thread: the threads of a rank may be on cores with different load, and no cache
//! line moves. The kernel is asked only after a long gap.

use super::times::{FIRST_SPAN, GAP, LONGEST_SPAN, SLICE};
use crate::trace::usage;
use std::cell::Cell;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy)]
struct Knowledge {
    /// Time of the last poll or yield, and the expected number of involuntary switches: that at the
    /// last gap, and one for each yield since.
    polled: Option<(Instant, u64)>,
    /// Contention is assumed until then.
    until: Option<Instant>,
    span: Duration,
}

thread_local! {
    static KNOWN: Cell<Knowledge> =
        const { Cell::new(Knowledge { polled: None, until: None, span: FIRST_SPAN }) };
}

impl Knowledge {
    /// `switches` returns the involuntary switches so far.
    fn polls(&mut self, now: Instant, switches: impl FnOnce() -> u64) {
        let Some((last, before)) = self.polled else {
            self.polled = Some((now, switches()));
            return;
        };
        self.polled = Some((now, before));
        if now.saturating_duration_since(last) > GAP {
            let switches = switches();
            self.polled = Some((now, switches));
            if switches > before {
                self.assume(now);
            }
        }
    }

    fn yielded(&mut self, now: Instant, took: Duration) {
        if let Some((last, switches)) = &mut self.polled {
            (*last, *switches) = (now, *switches + 1);
        }
        if took > SLICE {
            self.assume(now);
        }
    }

    fn assume(&mut self, now: Instant) {
        let again = self.until.is_some_and(|until| now < until + self.span);
        self.span = if again { (self.span * 2).min(LONGEST_SPAN) } else { FIRST_SPAN };
        self.until = Some(now + self.span);
    }

    fn is_contended(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }
}

/// Whether a thread idle for `idle` may poll on; under contention only until `limit`.
pub(super) fn may_poll(idle: Duration, limit: Duration) -> bool {
    let now = Instant::now();
    let mut known = KNOWN.get();
    known.polls(now, usage::involuntary_switches);
    KNOWN.set(known);
    idle < limit || !known.is_contended(now)
}

pub(super) fn is_present() -> bool {
    let known = KNOWN.get();
    known.until.is_some() && known.is_contended(Instant::now())
}

/// Returns how long the yield took. Long yields are evidence of contention.
pub(super) fn timed_yield() -> Duration {
    let begun = Instant::now();
    std::thread::yield_now();
    let end = Instant::now();
    let took = end - begun;
    let mut known = KNOWN.get();
    known.yielded(end, took);
    KNOWN.set(known);
    took
}

/// Yields the core to other ranks, unless it would go to other work.
pub fn offer_core() {
    if !is_present() {
        timed_yield();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: Knowledge = Knowledge { polled: None, until: None, span: FIRST_SPAN };

    #[test]
    fn a_gap_with_a_switch_is_contention() {
        let start = Instant::now();
        let at = |us| start + Duration::from_micros(us);
        let mut known = NEW;
        known.polls(at(0), || 5);
        known.polls(at(100), || panic!("a short gap asks nothing"));
        known.polls(at(400), || 5);
        assert!(!known.is_contended(at(400)), "the thread computed");
        known.polls(at(4400), || 6);
        assert!(known.is_contended(at(4401)));
        assert!(!known.is_contended(at(4401) + FIRST_SPAN));
    }

    #[test]
    fn own_yields_are_not_contention() {
        let start = Instant::now();
        let at = |us| start + Duration::from_micros(us);
        let mut known = NEW;
        known.polls(at(0), || 5);
        known.yielded(at(300), Duration::from_micros(300));
        known.polls(at(301), || panic!("the yield is no gap"));
        known.polls(at(601), || 6);
        assert!(!known.is_contended(at(601)), "the only switch is the yield");
        known.yielded(at(602), Duration::from_micros(1));
        known.polls(at(1002), || 8);
        assert!(known.is_contended(at(1002)));
        let mut known = NEW;
        known.yielded(at(2000), 2 * SLICE);
        assert!(known.is_contended(at(2001)), "other work had the core");
    }

    #[test]
    fn repeated_contention_is_assumed_for_longer() {
        let mut now = Instant::now();
        let mut known = NEW;
        for expected in [20, 40, 80, 160, 320, 640, 1000, 1000] {
            known.assume(now);
            assert_eq!(known.span, Duration::from_millis(expected));
            now += known.span + Duration::from_millis(1);
        }
        now += 2 * LONGEST_SPAN;
        known.assume(now);
        assert_eq!(known.span, FIRST_SPAN);
    }
}
