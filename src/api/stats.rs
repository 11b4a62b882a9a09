//! Statistics, regions and marks of Rust programs.

use super::Runtime;
use crate::runtime::statistics::Statistics;
use crate::trace::counters::Spent;
use crate::trace::{Call, Cause, PathTaken, Served};
use std::time::Duration;

/// What a rank has counted since the runtime started, or since [`Runtime::reset_stats`].
///
/// Without `PORTOLAN_STATS=1` calls are not counted, and waits only where the thread rested.
#[derive(Debug, Clone, PartialEq)]
pub struct Stats(Statistics);

/// Calls of one kind whose bytes took one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallStats {
    /// Which call: `put`, `read-modify-write`, `fence` and others.
    pub call: &'static str,
    /// How its bytes travelled: `direct`, `rma`, `message`, `ring` and others.
    pub path: &'static str,
    /// How many.
    pub calls: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their time, of which that of short calls is estimated from some of them.
    pub time: Duration,
}

/// Time that went into one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeStats {
    /// What it is: what was waited for, or served.
    pub what: &'static str,
    /// How often.
    pub number: u64,
    /// How long together.
    pub time: Duration,
    /// The longest.
    pub longest: Duration,
}

fn times(names: impl Iterator<Item = &'static str>, spent: &[Spent]) -> Vec<TimeStats> {
    let of = |(what, spent): (&'static str, &Spent)| TimeStats {
        what,
        number: spent.count,
        time: Duration::from_nanos(spent.ns),
        longest: Duration::from_nanos(spent.longest),
    };
    names.zip(spent).filter(|(_, spent)| spent.count > 0).map(of).collect()
}

impl Stats {
    /// Whether all calls were counted.
    pub fn is_complete(&self) -> bool {
        self.0.complete
    }

    /// The time in which was counted.
    pub fn elapsed(&self) -> Duration {
        Duration::from_secs_f64(self.0.seconds)
    }

    /// The calls that there were.
    pub fn calls(&self) -> Vec<CallStats> {
        let all =
            Call::ALL.iter().flat_map(|call| PathTaken::ALL.iter().map(move |path| (call, path)));
        let counted = all.map(|(call, path)| {
            let of = self.0.sum.calls[*call as usize][*path as usize];
            let time = Duration::from_nanos(of.ns);
            CallStats {
                call: call.name(),
                path: path.name(),
                calls: of.calls,
                bytes: of.bytes,
                time,
            }
        });
        counted.filter(|of| of.calls > 0).collect()
    }

    /// What was waited for.
    pub fn waits(&self) -> Vec<TimeStats> {
        times(Cause::ALL.iter().map(|cause| cause.name()), &self.0.sum.waits)
    }

    /// For which ranks this one waited, and how long; the longest first.
    pub fn waited_for(&self) -> Vec<(usize, Duration)> {
        let all = self.0.sum.waited_for.iter();
        let mut all: Vec<_> =
            all.map(|(&rank, &ns)| (rank as usize, Duration::from_nanos(ns))).collect();
        all.sort_by_key(|&(rank, time)| (std::cmp::Reverse(time), rank));
        all
    }

    /// What this rank did for others.
    pub fn served(&self) -> Vec<TimeStats> {
        times(Served::ALL.iter().map(|kind| kind.name()), &self.0.sum.served)
    }

    /// A request of another rank had waited here for at most this long.
    pub fn longest_delay(&self) -> Duration {
        Duration::from_nanos(self.0.sum.delays.longest)
    }

    /// Naps of threads that waited.
    pub fn naps(&self) -> u64 {
        self.0.naps
    }

    /// Messages whose data stayed here until their targets asked for it.
    pub fn rendezvous(&self) -> u64 {
        self.0.rendezvous
    }

    /// Messages of aggregated items, and the items.
    pub fn aggregated(&self) -> (u64, u64) {
        (self.0.aggregated_messages, self.0.aggregated_items)
    }

    /// The most memory that the process has had, in bytes.
    pub fn peak_memory(&self) -> u64 {
        self.0.peak_memory
    }

    /// Events that the trace has not, because the disk was slow or the file full.
    pub fn dropped_events(&self) -> u64 {
        self.0.dropped_events
    }
}

/// A region of the program in the trace, which ends when this is dropped.
#[derive(Debug)]
#[must_use = "the region ends when this is dropped"]
pub struct Region<'a>(&'a Runtime);

impl Drop for Region<'_> {
    fn drop(&mut self) {
        self.0.engine().observer().region_ends();
    }
}

impl Runtime {
    /// What this rank has counted.
    pub fn stats(&self) -> Stats {
        Stats(self.engine().statistics())
    }

    /// Counts from now on.
    pub fn reset_stats(&self) {
        self.engine().reset_statistics();
    }

    /// Begins a region of the program in the trace of `PORTOLAN_TRACE`.
    ///
    /// ```no_run
    /// fn step(runtime: &portolan::Runtime) {
    ///     let _region = runtime.region("SCF iteration");
    ///     // communicate and compute
    ///     runtime.mark("converged");
    /// }
    /// ```
    pub fn region(&self, name: &str) -> Region<'_> {
        self.engine().observer().region_begins(name);
        Region(self)
    }

    /// Sets a mark in the trace.
    pub fn mark(&self, name: &str) {
        self.engine().observer().mark(name);
    }
}
