//! The clock of events: the processor's time-stamp counter if it is steady, else the monotonic
//! clock. A line through two samples of both clocks converts ticks to nanoseconds of
//! `CLOCK_MONOTONIC`. [`Clock::refine`] redraws the line from time to time. One of its ends is
//! always the first sample, so the slope becomes more exact the longer the job runs, and the ranks
//! of a host agree, although each takes its own samples.
//!
//! Invariant: a sequence number protects the line, so no reader combines values of two lines.

use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

/// A sample of both clocks: ticks, and nanoseconds of the monotonic clock.
type Both = (u64, u64);

#[derive(Debug)]
pub struct Clock {
    counter: bool,
    first: Both,
    /// Odd while a thread replaces the line.
    sequence: AtomicU64,
    ticks: AtomicU64,
    ns: AtomicU64,
    /// Nanoseconds per tick, in units of 2^-32.
    rate: AtomicU64,
    /// Nanoseconds added to the monotonic clock, for tests of hosts whose clocks differ.
    shift: u64,
}

/// Time between the two samples of the first line.
const FIRST_LINE: Duration = Duration::from_millis(5);

impl Clock {
    /// With the time-stamp counter if `may_count` and it is steady.
    pub fn start(may_count: bool, shift: Duration) -> Clock {
        let counter = may_count && counter::is_steady();
        let mut clock = Clock {
            counter,
            first: (0, 0),
            sequence: AtomicU64::new(0),
            ticks: AtomicU64::new(0),
            ns: AtomicU64::new(shift.as_nanos() as u64),
            rate: AtomicU64::new(1 << 32),
            shift: shift.as_nanos() as u64,
        };
        if counter {
            clock.first = clock.compare();
            std::thread::sleep(FIRST_LINE);
            clock.refine();
        }
        clock
    }

    /// For the trace file.
    pub fn name(&self) -> &'static str {
        if self.counter { "tsc" } else { "monotonic" }
    }

    #[inline(always)]
    pub fn ticks(&self) -> u64 {
        if self.counter { counter::now() } else { monotonic() }
    }

    pub fn now(&self) -> u64 {
        self.time(self.ticks(), 0).0
    }

    /// Converts a start and a duration from ticks to nanoseconds.
    #[inline]
    pub fn time(&self, begun: u64, length: u64) -> (u64, u64) {
        loop {
            let before = self.sequence.load(Ordering::Acquire);
            let ticks = self.ticks.load(Ordering::Relaxed);
            let ns = self.ns.load(Ordering::Relaxed);
            let rate = self.rate.load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            if before & 1 == 0 && self.sequence.load(Ordering::Relaxed) == before {
                // The line may be older or newer than `begun`, so the difference has either sign.
                let since = begun.wrapping_sub(ticks) as i64;
                let passed = (i128::from(since) * i128::from(rate)) >> 32;
                return (ns.wrapping_add(passed as u64), scaled(length, rate));
            }
            std::hint::spin_loop();
        }
    }

    pub fn length(&self, ticks: u64) -> u64 {
        scaled(ticks, self.rate.load(Ordering::Relaxed))
    }

    /// Redraws the line through a new sample, unless another thread is doing so.
    pub(crate) fn refine(&self) {
        if !self.counter {
            return;
        }
        let (ticks, ns) = self.compare();
        let (first_ticks, first_ns) = self.first;
        if ticks <= first_ticks || ns <= first_ns {
            return;
        }
        let rate = (u128::from(ns - first_ns) << 32) / u128::from(ticks - first_ticks);
        let before = self.sequence.load(Ordering::Relaxed);
        let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
        if before & 1 == 1
            || self.sequence.compare_exchange(before, before + 1, acquire, relaxed).is_err()
        {
            return;
        }
        fence(Ordering::Release);
        self.ticks.store(ticks, Ordering::Relaxed);
        self.ns.store(ns, Ordering::Relaxed);
        self.rate.store(rate as u64, Ordering::Relaxed);
        self.sequence.store(before + 2, Ordering::Release);
    }

    /// Samples both clocks several times and returns the fastest sample.
    fn compare(&self) -> Both {
        let attempt = || {
            let before = counter::now();
            let ns = monotonic() + self.shift;
            let after = counter::now();
            (after.wrapping_sub(before), (before + after.wrapping_sub(before) / 2, ns))
        };
        (0..8).map(|_| attempt()).min().map_or((0, 0), |(_, both)| both)
    }
}

#[inline]
fn scaled(ticks: u64, rate: u64) -> u64 {
    ((u128::from(ticks) * u128::from(rate)) >> 32) as u64
}

pub fn monotonic() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds since 1970.
pub fn wall() -> u64 {
    read(libc::CLOCK_REALTIME)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid structure, which the call overwrites.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod counter {
    /// Returns whether the counter runs at a constant rate on all cores and in all power states:
    /// the processor's flags say so, and the kernel uses it for its own clock, directly or through
    /// a hypervisor clock that is based on it.
    pub(super) fn is_steady() -> bool {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let flags = text.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
        let has = |flag| flags.split_whitespace().any(|f| f == flag);
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        let source = std::fs::read_to_string(source).unwrap_or_default();
        has("constant_tsc")
            && has("nonstop_tsc")
            && matches!(source.trim(), "tsc" | "kvm-clock" | "hyperv_clocksource_tsc_page")
    }

    #[inline(always)]
    pub(super) fn now() -> u64 {
        // SAFETY: every x86-64 processor has this instruction.
        unsafe { std::arch::x86_64::_rdtsc() }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod counter {
    pub(super) fn is_steady() -> bool {
        false
    }

    pub(super) fn now() -> u64 {
        crate::trace::clock::monotonic()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_tell_the_monotonic_time() {
        let shift = Duration::from_secs(5);
        for may_count in [false, true] {
            let clock = Clock::start(may_count, shift);
            for _ in 0..3 {
                let before = monotonic() + shift.as_nanos() as u64;
                let now = clock.now();
                let after = monotonic() + shift.as_nanos() as u64;
                // The slope between samples 5 ms apart is exact to about 10 ppm.
                assert!(
                    now + 1_000_000 > before && now < after + 1_000_000,
                    "{before} {now} {after}"
                );
                clock.refine();
            }
            let begun = clock.ticks();
            std::thread::sleep(Duration::from_millis(2));
            let length = clock.ticks() - begun;
            assert!(clock.time(begun, length).1 >= 1_900_000);
            assert_eq!(clock.time(begun, length).1, clock.length(length));
        }
    }
}
