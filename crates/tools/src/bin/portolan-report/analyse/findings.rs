//! Describes what costs time: at most ten findings, sorted by how much the job could gain.
//!
//! A finding states how much time the job could gain, and the cost summed over all ranks. It is
//! reported only if the gain is at least [`LEAST`] of the wall time and no other finding explains
//! the cost. Each finding has a condition that a well-behaved program does not meet. Tests cover
//! both a program that meets it and one that does not.

use super::objects::{SharedObject, Use};
use super::patterns::{SHORT_RUN, SMALL, Tally};
use super::sums::Sums;
use super::{Analysis, RankTotals};
use crate::model::{bytes, count, percent, three, time};
use crate::read::Trace;
use portolan_trace_format::kinds::{Call, SegmentKind};

/// Maximum number of findings in a report.
const MOST: usize = 10;
/// Smallest gain that is reported, as a fraction of the wall time.
const LEAST: f64 = 0.01;
/// Smallest gain that is reported, in nanoseconds. In a short job, less is noise.
const LEAST_NS: f64 = 100_000.0;
/// Minimum number of calls per rank at a hot counter. A counter with fewer calls is not hot,
/// however long they take.
const OFTEN: u64 = 50;
/// Minimum mean wait of a rank's requests, in nanoseconds, for the rank to count as late.
const LATE: u64 = 20_000;
/// Bandwidth assumed for a path without large transfers, in bytes per nanosecond.
const ASSUMED: f64 = 1.0;

/// A finding of the report.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Identifier shared by all findings of a kind.
    pub kind: &'static str,
    pub title: String,
    pub text: String,
    pub advice: String,
    /// Upper bound of the time that the whole job could gain, in nanoseconds.
    pub worth: f64,
    /// Cost summed over all ranks, in nanoseconds.
    pub sum: f64,
    /// An example in the trace: rank, start, end.
    pub at: (u32, u64, u64),
}

/// Returns the findings that are worth reporting, most expensive first.
pub fn findings(trace: &Trace, analysis: &Analysis) -> Vec<Finding> {
    let mut finder = Finder { trace, analysis, starving: Vec::new() };
    finder.starving = finder.starving();
    let mut all: Vec<Finding> = [
        finder.small(),
        finder.starved(),
        finder.late(),
        finder.locks(),
        finder.counter(),
        finder.strided(),
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
    all.truncate(MOST);
    all
}

struct Finder<'a> {
    trace: &'a Trace,
    analysis: &'a Analysis,
    /// Ranks without a progress thread, each with the time in nanoseconds that others waited for it
    /// while it was in no call. Sorted by rank.
    starving: Vec<(usize, f64)>,
}

impl Finder<'_> {
    fn wall(&self) -> f64 {
        self.trace.wall as f64
    }

    /// Detects many short transfers to one target.
    fn small(&self) -> Option<Finding> {
        let ranks = &self.analysis.ranks;
        let by_rank = Sums::of(ranks.iter().enumerate().map(|(rank, totals)| {
            // The cost of a target that does not answer belongs to another finding.
            let of_target =
                |(peer, tally): (&u32, &Tally)| tally.saved * (1.0 - self.starved_part(*peer));
            (rank, totals.patterns.small.iter().map(of_target).sum())
        }));
        let (rank, worth) = by_rank.first()?;
        let of = &ranks[*rank].patterns;
        let (target, tally) = of.small.iter().max_by_key(|(peer, tally)| (tally.ns, **peer))?;
        let all = ranks.iter().flat_map(|r| r.patterns.small.values());
        let (n, size) = all.fold((0, 0), |(n, size), t| (n + t.count, size + t.bytes));
        let ((call, path), _) = of.small_calls.iter().max_by_key(|(key, n)| (**n, **key))?;
        let advice = match call {
            Call::Send => {
                "Send them as aggregated items (in Rust `Messages::batches`, in X10Lib aggregated asyncs), which are combined to messages of 64 KiB."
            }
            Call::Get | Call::GetNb => {
                "Fetch them through an aggregate handle (`ARMCI_SET_AGGREGATE_HANDLE`), by one vector get (`ARMCI_GetV`), or fetch the block that contains them at once."
            }
            _ => {
                "Issue them through an aggregate handle (`ARMCI_SET_AGGREGATE_HANDLE`) or by one vector put (`ARMCI_PutV`), which sends them together; in Rust, send them as items that the owner stores (`Messages::batches`)."
            }
        };
        Some(Finding {
            kind: "small",
            title: format!(
                "Many short transfers, one by one: {} {}s of {} on average",
                count(n),
                call.name(),
                bytes(size as f64 / n.max(1) as f64)
            ),
            text: format!(
                "Rank {rank} alone makes {} transfers of at most {SMALL} bytes to rank {target}, without a fence or a barrier between them. They use the {} path and take {}, {} each.",
                count(tally.count),
                path.name(),
                time(tally.ns as f64),
                time(tally.ns as f64 / tally.count.max(1) as f64)
            ),
            advice: advice.into(),
            worth: *worth,
            sum: by_rank.sum(),
            at: (*rank as u32, tally.peak.1, tally.peak.2),
        })
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

    /// Detects waits for a rank that computes without a progress thread.
    fn starved(&self) -> Option<Finding> {
        let by_target = Sums::of(self.starving.iter().copied());
        let (target, ns) = *by_target.first()?;
        let of = &self.analysis.ranks[target];
        let part = ns / of.awaited.max(1) as f64;
        let (length, origin, begin) = of.awaited_longest;
        let others = match by_target.all.iter().filter(|(_, ns)| *ns > 0.0).count() {
            0 | 1 => String::new(),
            n => format!(" The same holds for {n} ranks in all."),
        };
        Some(Finding {
            kind: "progress",
            title: format!("Waiting for rank {target}, which computes and has no progress thread"),
            text: format!(
                "Other ranks waited {} for answers of rank {target}; for {} of that time it was outside of calls of the library, and it had no thread to serve them. The longest wait is {}, of rank {origin}.{others}",
                time(of.awaited as f64), percent(part, 1.0), time(length as f64)
            ),
            advice: "Let the progress thread run (`PORTOLAN_PROGRESS_THREAD=1`, and an MPI with MPI_THREAD_MULTIPLE); or call the library from time to time during the computation.".into(),
            worth: self.gain(&by_target),
            sum: by_target.sum(),
            at: (origin, begin, begin + length),
        })
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

    /// Returns the fraction of the waits for an owner that the missing progress thread causes.
    fn starved_part(&self, owner: u32) -> f64 {
        let found = self.starving.binary_search_by_key(&(owner as usize), |(rank, _)| *rank);
        found.map_or(0.0, |at| {
            let (rank, ns) = self.starving[at];
            ns / self.analysis.ranks[rank].awaited.max(1) as f64
        })
    }

    /// Detects waits for a rank that serves requests, but polls for them late.
    fn late(&self) -> Option<Finding> {
        let ranks = &self.analysis.ranks;
        let late =
            ranks.iter().enumerate().filter(|(_, of)| of.delays.0 >= LATE * of.delays.1.max(1));
        let by_target = Sums::of(late.map(|(rank, of)| {
            // Waits for credit or ring space belong to another finding.
            let room = |of: &RankTotals| of.patterns.room.get(&(rank as u32)).map_or(0, |t| t.ns);
            let answers = of.awaited.saturating_sub(self.analysis.sum(room)) as f64;
            (rank, f64::min(answers * (1.0 - self.starved_part(rank as u32)), of.delays.0 as f64))
        }));
        let (target, ns) = *by_target.first()?;
        let of = &ranks[target];
        let (length, origin, begin) = of.awaited_longest;
        let advice = if of.has_thread {
            "Its progress thread is scheduled too late: leave one core of each node to the progress threads, with fewer ranks or threads there, and do not bind a rank and its threads to one core. Fewer and longer transfers depend on it less."
        } else {
            "The rank has no progress thread: let it run (`PORTOLAN_PROGRESS_THREAD=1`, and an MPI with MPI_THREAD_MULTIPLE), or let the rank call the library more often."
        };
        Some(Finding {
            kind: "late",
            title: format!("Rank {target} answers late"),
            text: format!(
                "Other ranks waited {} for answers of rank {target}, and {} of that for it to begin serving them: {} requests waited there for up to {} before they were served, {} on average. The longest wait is {}, of rank {origin}.",
                time(of.awaited as f64),
                percent(ns, of.awaited.max(1) as f64),
                count(of.delays.1),
                time(of.queued as f64),
                time(of.delays.0 as f64 / of.delays.1.max(1) as f64),
                time(length as f64)
            ),
            advice: advice.into(),
            worth: self.gain(&by_target),
            sum: by_target.sum(),
            at: (origin, begin, begin + length),
        })
    }

    fn place(&self, object: &SharedObject) -> String {
        let kinds = self.trace.files.first().map(|file| &file.segments);
        match object.place.segment {
            None => format!("address {:#x} of rank {}", object.place.offset, object.owner),
            Some(segment) if object.mutex => {
                format!(
                    "mutex {} of set {segment}, owned by rank {}",
                    object.place.offset, object.owner
                )
            }
            Some(segment) => {
                let kind = kinds.and_then(|k| k.get(&segment)).copied();
                let what =
                    if kind == Some(SegmentKind::Mutexes) { "set of mutexes" } else { "segment" };
                format!(
                    "byte {} of {what} {segment}, owned by rank {}",
                    object.place.offset, object.owner
                )
            }
        }
    }

    /// Returns the object that costs most beyond the uncontended time of its calls. The array holds
    /// this cost, the cost of all objects, and the uncontended time of one call.
    fn hot(&self, call: Call, mutex: bool, least: u64) -> Option<(SharedObject, &Use, [f64; 3])> {
        let objects = self.analysis.objects.hottest();
        let met = objects.into_iter().filter(|(object, used)| {
            let ranks = used.origins.len() as u64;
            object.mutex == mutex && ranks >= 2 && used.calls >= least * ranks
        });
        let costs = Sums::of(met.map(|(object, used)| {
            let alone = used.alone(|path| self.analysis.calls.quick(call, path));
            let over = used.ns.max(used.waited) as f64 - alone;
            ((object, used, alone), over * (1.0 - self.starved_part(object.owner)))
        }));
        let ((object, used, alone), cost) = *costs.first()?;
        let sum = costs.all.iter().map(|(_, ns)| ns.max(0.0)).sum();
        Some((object, used, [cost, sum, alone / used.calls.max(1) as f64]))
    }

    /// Detects a mutex that ranks contend for.
    fn locks(&self) -> Option<Finding> {
        let (object, used, [cost, sum, alone]) = self.hot(Call::Lock, true, 1)?;
        // With barely more than one rank at a time, the mutex is not contended.
        if used.crowd() < 1.2 {
            return None;
        }
        let (length, rank, begin) = used.longest;
        let (all, calls) = (used.ns.max(used.waited) as f64, used.calls.max(1) as f64);
        Some(Finding {
            kind: "lock",
            title: format!("{} ranks contend for one mutex", used.origins.len()),
            text: format!(
                "{} was taken {} times by {} ranks, which spent {} on it, {} each; without contention it takes {}. On average {} ranks waited for it.",
                capital(&self.place(&object)),
                count(used.calls),
                used.origins.len(),
                time(all),
                time(all / calls),
                time(alone),
                three(used.crowd())
            ),
            advice: "Hold it for less, spread the data over several mutexes, or replace the critical section: an accumulate or a fetch-and-add needs no mutex.".into(),
            worth: cost * used.worst.0 as f64 / all.max(1.0),
            sum,
            at: (rank, begin, begin + length),
        })
    }

    /// Detects a counter that ranks update concurrently.
    fn counter(&self) -> Option<Finding> {
        let (object, used, [cost, sum, alone]) = self.hot(Call::Rmw, false, OFTEN)?;
        // A counter that ranks use one after the other is not hot.
        if used.crowd() < 1.2 {
            return None;
        }
        let (length, rank, begin) = used.longest;
        let a_call = used.ns / used.calls.max(1);
        Some(Finding {
            kind: "counter",
            title: format!(
                "A hot counter: {} ranks, {} read-modify-writes of one word",
                used.origins.len(),
                count(used.calls)
            ),
            text: format!(
                "{} took {} in all, {} each; without contention such a call takes {}. On average {} ranks were in a call there.",
                capital(&self.place(&object)),
                time(used.ns as f64),
                time(a_call as f64),
                time(alone),
                three(used.crowd())
            ),
            advice: "Take several numbers with each fetch-and-add (tasks in chunks), or give each node its own counter, which takes numbers from the common one when it is exhausted.".into(),
            worth: cost * used.worst.0 as f64 / used.ns.max(1) as f64,
            sum,
            at: (rank, begin, begin + length.max(20 * a_call)),
        })
    }

    /// Detects strided transfers with short runs.
    fn strided(&self) -> Option<Finding> {
        let calls = &self.analysis.calls;
        let by_rank = Sums::of(self.analysis.ranks.iter().enumerate().map(|(rank, totals)| {
            let of_path = totals.patterns.strided.iter().map(|(path, tally)| {
                (tally.ns as f64 - tally.bytes as f64 / calls.bandwidth(*path).unwrap_or(ASSUMED))
                    .max(0.0)
            });
            (rank, of_path.sum())
        }));
        let (rank, worth) = *by_rank.first()?;
        let of = &self.analysis.ranks[rank].patterns;
        let (path, tally) = of.strided.iter().max_by_key(|(path, tally)| (tally.ns, **path))?;
        let run = tally.bytes as f64 / of.strided_blocks.max(1) as f64;
        let base = match calls.bandwidth(*path) {
            Some(rate) => format!("contiguous transfers reached {} GB/s on this path", three(rate)),
            None => format!(
                "{} GB/s are assumed for contiguous transfers, because there were none",
                three(ASSUMED)
            ),
        };
        Some(Finding {
            kind: "strided",
            title: format!("Strided transfers with runs of {}", bytes(run)),
            text: format!(
                "Rank {rank} moved {} with {} strided transfers on path {}, in runs of less than {SHORT_RUN} bytes: {} took {}, which is {} GB/s; {base}.",
                bytes(tally.bytes as f64), count(tally.count), path.name(), bytes(tally.bytes as f64), time(tally.ns as f64),
                three(tally.bytes as f64 / tally.ns.max(1) as f64)
            ),
            advice: "Turn the arrays so that the longest dimension is contiguous, fetch whole rows and use the needed part, or pack at the source.".into(),
            worth,
            sum: by_rank.sum(),
            at: (rank as u32, tally.peak.1, tally.peak.2),
        })
    }

    /// Detects a fence after each put.
    fn fences(&self) -> Option<Finding> {
        let ranks = &self.analysis.ranks;
        let by_rank =
            Sums::of(ranks.iter().enumerate().map(|(rank, t)| (rank, t.patterns.fences.saved)));
        let (rank, worth) = *by_rank.first()?;
        let tally = &ranks[rank].patterns.fences;
        let n: u64 = ranks.iter().map(|t| t.patterns.fences.count).sum();
        let to_all = self.analysis.sum(|t| t.patterns.to_all);
        let all = if to_all > 0 {
            format!(
                " {} of them were to all ranks, and at most one had been written to.",
                count(to_all.min(n))
            )
        } else {
            String::new()
        };
        Some(Finding {
            kind: "fences",
            title: format!("{} fences, of which few are needed", count(n)),
            text: format!(
                "Rank {rank} fences {} times with at most one transfer before each and nothing between them that another rank could observe or wait for; this takes {}, {} per fence.{all}",
                count(tally.count), time(tally.ns as f64), time(tally.ns as f64 / tally.count.max(1) as f64)
            ),
            advice: "Fence once after the last transfer, before the barrier or the message that notifies other ranks. Transfers to one location stay in order without a fence.".into(),
            worth,
            sum: by_rank.sum(),
            at: (rank as u32, tally.peak.1, tally.peak.2),
        })
    }

    /// Detects ranks that arrive at barriers at different times.
    fn imbalance(&self) -> Option<Finding> {
        let bound = self.trace.clock_bound.unwrap_or(0);
        let late = self.analysis.arrivals.lateness(self.trace.ranks, bound);
        let (rank, (times, kept)) = late.last.iter().enumerate().max_by_key(|(_, l)| l.1)?;
        if late.meetings == 0 {
            return None;
        }
        let (waited, last, from, to) = late.worst;
        let of = &self.analysis.ranks[rank];
        let computing = self.trace.wall.saturating_sub(of.in_calls());
        Some(Finding {
            kind: "imbalance",
            title: format!("Imbalance: ranks wait for others at {} collective calls", count(late.meetings)),
            text: format!(
                "All ranks together waited {} for the last one to arrive. Rank {rank} was last at {} of them and kept the others waiting for {}; it spent {} outside of calls. In the longest case, rank {last} kept them waiting for {}.",
                time(late.waited as f64), count(*times), time(*kept as f64), percent(computing as f64, self.wall()), time(waited as f64)
            ),
            advice: "Give each rank the same work, or distribute tasks with a counter, so that a rank that has finished takes the next one.".into(),
            worth: late.wall,
            sum: late.waited as f64,
            at: (last, from, to),
        })
    }

    /// Detects memory that is allocated and freed in a loop.
    fn allocations(&self) -> Option<Finding> {
        let ranks = &self.analysis.ranks;
        let often = ranks.iter().enumerate().filter(|(_, t)| t.patterns.again >= 8);
        let by_rank = Sums::of(often.map(|(rank, t)| (rank, t.patterns.allocations.saved)));
        let (rank, worth) = *by_rank.first()?;
        let of = &ranks[rank].patterns;
        let tally = &of.allocations;
        let a_call = tally.ns / tally.count.max(1);
        Some(Finding {
            kind: "allocation",
            title: format!("Memory is allocated {} times after it was freed", count(of.again)),
            text: format!(
                "Allocating and freeing is collective and maps pages anew. Rank {rank} does so {} times, which takes {} in all, {} per call.",
                count(tally.count), time(tally.ns as f64), time(a_call as f64)
            ),
            advice: "Allocate once before the loop, as much as the largest step needs, and free after it.".into(),
            worth,
            sum: by_rank.sum(),
            at: (rank as u32, tally.peak.1, tally.peak.2.max(tally.peak.1 + 8 * a_call)),
        })
    }

    /// Detects a target that receives requests faster than it serves them.
    fn room(&self) -> Option<Finding> {
        let ranks = &self.analysis.ranks;
        let by_rank =
            Sums::of(ranks.iter().enumerate().map(|(rank, t)| {
                (rank, t.patterns.room.values().map(|tally| tally.ns as f64).sum())
            }));
        let (rank, worth) = *by_rank.first()?;
        let (peer, tally) = ranks[rank].patterns.room.iter().max_by_key(|(p, t)| (t.ns, **p))?;
        // If the target computes and no thread serves its requests, `starved` reports this wait.
        let starved = self.starved_part(*peer);
        let busy = ranks[*peer as usize % ranks.len()].serving() as f64;
        let advice = if busy < 0.2 * self.wall() {
            "The amount of work is not the problem; the progress thread is scheduled late: if all cores are busy, leave one for the progress threads of a node. Fewer and longer transfers depend on it less."
        } else {
            "Send less to this one rank at a time: spread its data over more ranks, or aggregate items. More credit only moves the wait."
        };
        Some(Finding {
            kind: "room",
            title: format!("Rank {peer} gets requests faster than it serves them"),
            text: format!(
                "Rank {rank} waited {} times for buffer space at rank {peer}, {} in all. Rank {peer} spent {} of its time on requests of others.",
                count(tally.count),
                time(tally.ns as f64),
                percent(busy, self.wall())
            ),
            advice: advice.into(),
            worth: worth * (1.0 - starved),
            sum: by_rank.sum() * (1.0 - starved),
            at: (rank as u32, tally.peak.1, tally.peak.2),
        })
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
#[path = "findings_tests.rs"]
mod tests;
