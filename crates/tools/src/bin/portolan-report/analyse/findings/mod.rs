//! Describes what costs time: at most ten findings, in the order that [`ORDER`] defines.
//!
//! A finding states its largest possible gain ([`Finding::worth`]), and the cost summed over all
//! ranks. It is reported only if the gain is at least [`LEAST`] of the wall time and no other
//! finding explains the cost. Each finding has a condition that a well-behaved program does not meet. Tests cover
//! both a program that meets it and one that does not.
//!
//! If ranks wait for cores, this is the first finding, and the others exclude what it explains
//! ([`Finding::without`]).

mod cores;
mod objects;
mod transfers;
mod waits;

use super::Analysis;
use super::patterns::is_transfer;
use super::sums::Sums;
use crate::model::{Activity, MpiPeers, percent};
use crate::read::Trace;
use portolan_trace_format::kinds::Call;

const MOST: usize = 10;
/// The order of the findings, for the page and the text.
pub const ORDER: &str = "Findings are sorted by their largest possible gain: the most time by which the job could become shorter. If ranks wait for cores, that is the first finding.";
/// Smallest gain that is reported, as a fraction of the wall time.
const LEAST: f64 = 0.01;
/// Smallest gain that is reported, in nanoseconds. In a short job, less is noise.
const LEAST_NS: f64 = 100_000.0;
/// Calls per rank. A counter with fewer is not hot, however long they take.
const OFTEN: u64 = 50;
/// Minimum mean wait of a rank's requests, in nanoseconds, for the rank to count as late.
const LATE: u64 = 20_000;
/// Bandwidth assumed for a path without large transfers, in bytes per nanosecond.
const ASSUMED: f64 = 1.0;

#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Identifier shared by all findings of a kind.
    pub kind: &'static str,
    pub title: String,
    pub text: String,
    pub advice: String,
    /// The largest possible gain: the most time by which the job could become shorter, in
    /// nanoseconds.
    pub worth: f64,
    /// Cost summed over all ranks, in nanoseconds.
    pub sum: f64,
    /// An example in the trace: rank, start, end.
    pub at: (u32, u64, u64),
}

/// Returns the findings that are worth reporting, in the order of [`ORDER`].
pub fn findings(trace: &Trace, analysis: &Analysis) -> Vec<Finding> {
    let mut finder = Finder { trace, analysis, starving: Vec::new(), delayed: false };
    finder.starving = finder.starving();
    let cores = finder.cores();
    finder.delayed = cores.is_some();
    let mut all: Vec<Finding> = [
        finder.small(),
        finder.starved(),
        finder.late(),
        finder.locks(),
        finder.counter(),
        finder.strided(),
        finder.hot(),
        finder.unknown(),
        finder.sender(),
        finder.fences(),
        finder.imbalance(),
        finder.allocations(),
        finder.room(),
    ]
    .into_iter()
    .flatten()
    .collect();
    let least = (trace.wall as f64 * LEAST).max(LEAST_NS);
    all.retain(|finding| finding.worth >= least);
    all.sort_by(|a, b| b.worth.total_cmp(&a.worth));
    for finding in &mut all {
        finder.name_line(finding);
    }
    all.splice(..0, cores);
    all.truncate(MOST);
    all
}

struct Finder<'a> {
    trace: &'a Trace,
    analysis: &'a Analysis,
    /// Ranks without a progress thread, each with the time in nanoseconds that others waited for it
    /// while it was in no call. Sorted by rank.
    starving: Vec<(usize, f64)>,
    delayed: bool,
}

impl Finding {
    /// Excludes a fraction of the cost that delays of ranks explain.
    fn without(mut self, delayed: f64) -> Finding {
        self.worth *= 1.0 - delayed;
        self.sum *= 1.0 - delayed;
        if delayed >= 0.01 {
            self.text += &format!(
                " {} of the cost is not counted here, because threads waited for a core.",
                percent(delayed, 1.0)
            );
        }
        self
    }
}

impl Finder<'_> {
    fn wall(&self) -> f64 {
        self.trace.wall as f64
    }

    fn name_line(&self, finding: &mut Finding) {
        let concerns = |what: Activity| match (finding.kind, what) {
            ("small" | "strided", Activity::Call(call)) => is_transfer(call),
            ("counter", Activity::Call(call)) => call == Call::Rmw,
            ("lock", Activity::Call(call)) => call == Call::Lock,
            ("fences", Activity::Call(call)) => matches!(call, Call::Fence | Call::FenceAll),
            ("allocation", Activity::Call(call)) => matches!(call, Call::Allocate | Call::Free),
            ("imbalance", Activity::Call(call)) => {
                matches!(call, Call::Barrier | Call::Reduce | Call::Exchange)
            }
            ("imbalance", Activity::Mpi(call)) => MpiPeers::of(call).is_collective(),
            ("sender", Activity::Mpi(call)) => MpiPeers::of(call) == MpiPeers::Source,
            ("unknown", Activity::Mpi(call)) => MpiPeers::of(call) == MpiPeers::Unknown,
            _ => false,
        };
        if let Some((line, part)) = self.analysis.sites.busiest(concerns) {
            finding.text +=
                &format!(" {} of the time of such calls is spent at `{line}`.", percent(part, 1.0));
        }
    }

    /// Returns the fraction of the cost of a rank's own calls that its delays explain.
    fn delayed_main(&self, rank: usize) -> f64 {
        if self.delayed { self.analysis.cores.main_part(rank) } else { 0.0 }
    }

    /// Returns the fraction of the waits for a rank that the delays of its threads explain.
    fn delayed(&self, rank: usize) -> f64 {
        if self.delayed { self.analysis.cores.part(rank) } else { 0.0 }
    }

    fn delayed_anywhere(&self) -> f64 {
        if self.delayed { self.analysis.cores.mean_part() } else { 0.0 }
    }

    /// Estimates how long others waited for each rank while it was in no call. Considers only ranks
    /// without another thread that serves requests. The result is sorted by rank.
    fn starving(&self) -> Vec<(usize, f64)> {
        let grid = self.analysis.levels.grid;
        let alone = self.analysis.ranks.iter().enumerate().filter(|(_, totals)| {
            totals.awaited > 0
                && !totals.has_thread
                && totals.served[0] > 0
                && totals.served[1] == 0
        });
        alone
            .map(|(rank, totals)| {
                let row = rank / grid.each;
                let of_row = &self.analysis.awaited[row * grid.columns..][..grid.columns];
                let (mut ns, mut all) = (0.0, 0.0);
                for (column, waited) in of_row.iter().enumerate().filter(|(_, w)| **w > 0) {
                    let part = self.analysis.levels.computing(row, column);
                    // If less than half of the column was computing, the waits may fall into the
                    // other half.
                    ns += if part >= 0.5 { *waited as f64 * part } else { 0.0 };
                    all += *waited as f64;
                }
                (rank, totals.awaited as f64 * ns / f64::max(all, 1.0))
            })
            .collect()
    }

    /// Returns the gain of the job if no rank waited for these targets. Ranks wait concurrently, so
    /// this is the gain of the rank that waits longest.
    fn gain(&self, by_target: &Sums<usize>) -> f64 {
        let of_rank = |(rank, ns): &(usize, f64)| {
            let of = &self.analysis.ranks[*rank];
            of.awaited_most.0 as f64 * ns / of.awaited.max(1) as f64
        };
        by_target.all.iter().map(of_rank).fold(0.0, f64::max)
    }

    fn starved_part(&self, owner: u32) -> f64 {
        let found = self.starving.binary_search_by_key(&(owner as usize), |(rank, _)| *rank);
        found.map_or(0.0, |at| {
            let (rank, ns) = self.starving[at];
            ns / self.analysis.ranks[rank].awaited.max(1) as f64
        })
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests;
