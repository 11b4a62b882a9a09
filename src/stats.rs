//! Statistics of a rank, and marks of the program in its trace.
//!
//! [`Runtime::stats`](crate::Runtime::stats) returns the counters of the calling rank: calls by
//! kind and path, waits by cause and by rank, and work done for other ranks. No call of this module
//! is collective, and the counters of other ranks are not included.
//!
//! ```
//! fn main() -> std::process::ExitCode {
//!     portolan::run(|rt| -> portolan::Result<()> {
//!         let segment = rt.world().allocate::<f64>(1000)?;
//!         rt.reset_stats();
//!         {
//!             let _region = rt.region("exchange"); // in the trace, until it is dropped
//!             segment.put((rt.rank() + 1) % rt.size(), 0, &[1.0; 1000])?;
//!             rt.world().barrier()?;
//!         }
//!         // With `PORTOLAN_STATS=1`, these are all calls since the reset.
//!         for of in rt.stats().calls() {
//!             println!("{} by {}: {} calls, {} bytes", of.call, of.path, of.calls, of.bytes);
//!         }
//!         segment.free()
//!     })
//! }
//! ```
//!
//! # What is counted
//! If `PORTOLAN_STATS=1` or `PORTOLAN_TRACE` is set, all calls, waits and requests of other ranks
//! are counted. Otherwise ([`Stats::is_complete`] returns false):
//!
//! - [`Stats::calls`], [`Stats::served`] and [`Stats::waited_for`] are empty, and
//!   [`Stats::longest_delay`] is zero;
//! - [`Stats::waits`] has only waits that outlast their first polls, with the time after these
//!   polls, and no longest time.
//!
//! A call is counted when it returns without an error. Times are wall-clock times, and those of
//! short calls are estimated from a sample. Regions and marks have an effect only in a trace
//! (`PORTOLAN_TRACE`).
use crate::Runtime;
use portolan_base::trace::counters::Spent;
use portolan_base::trace::{Call, Cause, PathTaken, Served};
use portolan_engine::runtime::statistics::Statistics;
use std::time::Duration;

/// The counters of this rank since the runtime started, or since [`Runtime::reset_stats`]. See the
/// [module documentation](crate::stats) for what is counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Stats(Statistics);

/// The calls of one kind whose bytes took the same path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallStats {
    /// The kind of call: `put`, `read-modify-write`, `fence` and others.
    pub call: &'static str,
    /// The path of the bytes: `direct`, `rma`, `message`, `ring` and others.
    pub path: &'static str,
    /// The number of calls.
    pub calls: u64,
    /// The total number of bytes.
    pub bytes: u64,
    /// The total time. The time of short calls is estimated from a sample of them.
    pub time: Duration,
}

/// The time spent on one activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimeStats {
    /// The activity: the cause of a wait, or the kind of request served.
    pub what: &'static str,
    /// The number of occurrences.
    pub count: u64,
    /// The total time.
    pub time: Duration,
    /// The longest single time.
    pub longest: Duration,
}

/// The time that this rank spent waiting for another rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerWait {
    /// The world rank of the other rank.
    pub rank: usize,
    /// The total time.
    pub time: Duration,
}

/// The use of aggregation: items that were collected and sent in common messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Aggregated {
    /// The number of messages that carried items.
    pub messages: u64,
    /// The number of items in these messages.
    pub items: u64,
}

fn times(names: impl Iterator<Item = &'static str>, spent: &[Spent]) -> Vec<TimeStats> {
    let of = |(what, spent): (&'static str, &Spent)| TimeStats {
        what,
        count: spent.count,
        time: Duration::from_nanos(spent.ns),
        longest: Duration::from_nanos(spent.longest),
    };
    names.zip(spent).filter(|(_, spent)| spent.count > 0).map(of).collect()
}

impl Stats {
    /// Returns whether all calls were counted.
    pub fn is_complete(&self) -> bool {
        self.0.complete
    }

    /// Returns the length of the period that the counters cover.
    pub fn elapsed(&self) -> Duration {
        Duration::from_secs_f64(self.0.seconds)
    }

    /// Returns the calls, by kind and path. Combinations without calls are omitted.
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

    /// Returns the waits, by cause. Causes without waits are omitted.
    pub fn waits(&self) -> Vec<TimeStats> {
        times(Cause::ALL.iter().map(|cause| cause.name()), &self.0.sum.waits)
    }

    /// Returns the time that this rank waited for each other rank, the longest time first.
    pub fn waited_for(&self) -> Vec<PeerWait> {
        let all = self.0.sum.waited_for.iter();
        let mut all: Vec<_> = all
            .map(|(&rank, &ns)| PeerWait { rank: rank as usize, time: Duration::from_nanos(ns) })
            .collect();
        all.sort_by_key(|of| (std::cmp::Reverse(of.time), of.rank));
        all
    }

    /// Returns the work that this rank did for others, by kind. Kinds without work are omitted.
    pub fn served(&self) -> Vec<TimeStats> {
        times(Served::ALL.iter().map(|kind| kind.name()), &self.0.sum.served)
    }

    /// Returns the longest time that a request of another rank waited at this rank.
    pub fn longest_delay(&self) -> Duration {
        Duration::from_nanos(self.0.sum.delays.longest)
    }

    /// Returns how often waiting threads went to sleep.
    pub fn naps(&self) -> u64 {
        self.0.sum.naps
    }

    /// Returns the number of messages whose data stayed on this rank until the target requested it.
    pub fn rendezvous(&self) -> u64 {
        self.0.sum.rendezvous
    }

    /// Returns the number of messages that carried aggregated items, and the number of those items.
    pub fn aggregated(&self) -> Aggregated {
        Aggregated { messages: self.0.sum.aggregated_messages, items: self.0.sum.aggregated_items }
    }

    /// Returns the peak memory usage of the process, in bytes.
    pub fn peak_memory(&self) -> u64 {
        self.0.peak_memory
    }

    /// Returns the number of events that the trace lacks: the disk was slow or the file full.
    pub fn dropped_events(&self) -> u64 {
        self.0.dropped_events
    }
}

/// A region of the program in the trace. Dropping the guard ends the innermost region, so nested
/// regions end in reverse order.
#[derive(Debug)]
#[must_use = "the region ends when this is dropped"]
pub struct Region<'a>(&'a Runtime);

impl Drop for Region<'_> {
    fn drop(&mut self) {
        self.0.engine().observer().region_ends();
    }
}

impl Runtime {
    /// Returns the counters of this rank. Not collective.
    pub fn stats(&self) -> Stats {
        Stats(self.engine().statistics())
    }

    /// Resets the counters of this rank. Not collective.
    pub fn reset_stats(&self) {
        self.engine().reset_statistics();
    }

    /// Returns whether this rank writes a trace (`PORTOLAN_TRACE`).
    pub fn is_traced(&self) -> bool {
        self.engine().observer().settings().traces
    }

    /// Begins a region of the program in the trace. It ends when the returned guard is dropped.
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

    /// Records a mark in the trace.
    pub fn mark(&self, name: &str) {
        self.engine().observer().mark(name);
    }
}
