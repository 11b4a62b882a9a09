//! Findings about waits for other ranks: for answers, for buffer space, and for late ranks.

use super::{Finder, Finding, LATE};
use crate::analyse::RankTotals;
use crate::analyse::answers::PARTS;
use crate::analyse::critical::Reason;
use crate::analyse::patterns::Tally;
use crate::analyse::sums::Sums;
use crate::model::{RankState, count, percent, time};
use std::collections::BTreeMap;

impl Finder<'_> {
    /// Returns the part of the waits for a target before it began to serve, from 0 to 1. It is 1 if
    /// most of the waits are not matched with requests.
    fn queued_part(&self, target: u32) -> f64 {
        let found = self.analysis.answers.iter().find(|answers| answers.target == target);
        let matched = found.map(|of| (of.parts[1] as f64, (of.total - of.parts[4]) as f64));
        let known = matched.zip(found).filter(|((_, all), of)| *all * 2.0 >= of.total as f64);
        known.map_or(1.0, |((queued, all), _)| queued / all.max(1.0))
    }

    fn parts_of_waits(&self, target: u32) -> String {
        let Some(of) = self.analysis.answers.iter().find(|answers| answers.target == target) else {
            return String::new();
        };
        let mut parts: Vec<(u64, &str)> = of.parts.into_iter().zip(PARTS).collect();
        parts.retain(|(ns, _)| ns * 100 >= of.total);
        parts.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
        let parts = parts
            .iter()
            .map(|(ns, name)| format!("{} {name}", percent(*ns as f64, of.total as f64)))
            .collect::<Vec<_>>();
        format!(
            " The requests of rank {}, which waited longest, were: {}.",
            of.origin,
            parts.join("; ")
        )
    }

    /// Detects waits for a rank that computes without a progress thread.
    pub(super) fn starved(&self) -> Option<Finding> {
        let by_target = Sums::of(self.starving.iter().copied());
        let (target, ns) = *by_target.first()?;
        let of = &self.analysis.ranks[target];
        let part = ns / of.awaited.max(1) as f64;
        let (length, origin, begin) = of.awaited_longest;
        let others = match by_target.all.iter().filter(|(_, ns)| *ns > 0.0).count() {
            0 | 1 => String::new(),
            n => format!(" The same holds for {n} ranks in all."),
        };
        let finding = Finding {
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
        };
        Some(finding.without(self.delayed(target)))
    }

    /// Detects waits for a rank that serves requests, but polls for them late.
    pub(super) fn late(&self) -> Option<Finding> {
        let ranks = &self.analysis.ranks;
        let late =
            ranks.iter().enumerate().filter(|(_, of)| of.delays.0 >= LATE * of.delays.1.max(1));
        let by_target = Sums::of(late.map(|(rank, of)| {
            // Waits for credit or ring space belong to another finding.
            let room = |of: &RankTotals| of.patterns.room.get(&(rank as u32)).map_or(0, |t| t.ns);
            let answers = of.awaited.saturating_sub(self.analysis.sum(room)) as f64;
            let queued = answers * self.queued_part(rank as u32);
            (rank, f64::min(queued * (1.0 - self.starved_part(rank as u32)), of.delays.0 as f64))
        }));
        let (target, ns) = *by_target.first()?;
        let of = &ranks[target];
        let (length, origin, begin) = of.awaited_longest;
        let advice = if of.has_thread {
            "Its progress thread is scheduled too late: leave one core of each node to the progress threads, with fewer ranks or threads there, and do not bind a rank and its threads to one core. Fewer and longer transfers depend on it less."
        } else {
            "The rank has no progress thread: let it run (`PORTOLAN_PROGRESS_THREAD=1`, and an MPI with MPI_THREAD_MULTIPLE), or let the rank call the library more often."
        };
        let finding = Finding {
            kind: "late",
            title: format!("Rank {target} answers late"),
            text: format!(
                "Other ranks waited {} for answers of rank {target}, and {} of that for it to begin serving them: {} requests waited there for up to {} before they were served, {} on average. The longest wait is {}, of rank {origin}.{}",
                time(of.awaited as f64),
                percent(ns, of.awaited.max(1) as f64),
                count(of.delays.1),
                time(of.queued as f64),
                time(of.delays.0 as f64 / of.delays.1.max(1) as f64),
                time(length as f64),
                self.parts_of_waits(target as u32)
            ),
            advice: advice.into(),
            worth: self.gain(&by_target),
            sum: by_target.sum(),
            at: (origin, begin, begin + length),
        };
        Some(finding.without(self.delayed(target)))
    }

    /// Detects ranks that arrive at barriers at different times.
    pub(super) fn imbalance(&self) -> Option<Finding> {
        let bound = self.trace.clock_bound.unwrap_or(0);
        let late = self.analysis.arrivals.lateness(self.trace.ranks, bound);
        let (rank, (times, kept)) = late.last.iter().enumerate().max_by_key(|(_, l)| l.1)?;
        if late.meetings == 0 {
            return None;
        }
        let kept_by = late.last.iter().enumerate().map(|(rank, (_, ns))| (rank, *ns as f64));
        let delayed = kept_by.map(|(rank, ns)| ns * self.delayed_main(rank)).sum::<f64>()
            / (late.waited as f64).max(1.0);
        let (waited, last, from, to) = late.worst;
        let of = &self.analysis.ranks[rank];
        let computing = self.trace.wall.saturating_sub(of.in_calls());
        let who = if self.analysis.critical.is_unknown() {
            // The last rank may have waited for another one.
            "Which rank is the cause is unknown, because most of the critical path is waits for ranks that the trace does not name.".into()
        } else {
            format!(
                "Rank {rank} was last at {} of them and kept the others waiting for {}; it spent {} outside of calls. In the longest case, rank {last} kept them waiting for {}.",
                count(*times),
                time(*kept as f64),
                percent(computing as f64, self.wall()),
                time(waited as f64)
            )
        };
        // Another finding names the ranks that the last one waited for.
        let passed_on = late.passed_on / (late.waited as f64).max(1.0);
        let passed_text = if passed_on >= 0.01 {
            format!(
                " {} of the cost is not counted here, because the last rank itself waited for others meanwhile.",
                percent(passed_on, 1.0)
            )
        } else {
            String::new()
        };
        let finding = Finding {
            kind: "imbalance",
            title: format!("Imbalance: ranks wait for others at {} collective calls", count(late.meetings)),
            text: format!("All ranks together waited {} for the last one to arrive. {who}{passed_text}", time(late.waited as f64)),
            advice: "Give each rank the same work, or distribute tasks with a counter, so that a rank that has finished takes the next one.".into(),
            worth: late.wall * (1.0 - passed_on),
            sum: late.waited as f64 - late.passed_on,
            at: (last, from, to),
        };
        Some(finding.without(delayed))
    }

    /// Detects a rank whose MPI messages come late. Only a rank on the critical path is the cause:
    /// another one may itself wait for a message.
    pub(super) fn sender(&self) -> Option<Finding> {
        let path = &self.analysis.critical;
        let mut received: BTreeMap<u32, (Sums<usize>, Tally)> = BTreeMap::new();
        for (rank, totals) in self.analysis.ranks.iter().enumerate() {
            for (source, tally) in &totals.patterns.received {
                let new = (Sums { all: Vec::new() }, Tally::default());
                let (waits, all) = received.entry(*source).or_insert(new);
                waits.all.push((rank, tally.ns as f64));
                all.merge(tally);
            }
        }
        let by_source = Sums::of(received.into_iter().map(|(source, (waits, all))| {
            let waits = Sums::of(waits.all.into_iter());
            let gain = path.gain.get(source as usize).copied().unwrap_or(0) as f64;
            let most = waits.first().map_or(0.0, |(_, ns)| *ns);
            ((source, waits, all), most.min(gain))
        }));
        let ((source, waits, all), worth) = by_source.first()?;
        let (rank, most) = waits.first()?;
        let share = path.time.get(*source as usize).copied().unwrap_or(0);
        let finding = Finding {
            kind: "sender",
            title: format!("MPI messages of rank {source} come late"),
            text: format!(
                "Ranks waited {} for {} messages of rank {source}; rank {rank} waited longest, {}. Rank {source} has {} of the critical path.",
                time(all.ns as f64), count(all.count), time(*most), percent(share as f64, path.whole() as f64)
            ),
            advice: "Send earlier, give that rank less work before it sends, or let the receivers do other work until the message arrives.".into(),
            worth: *worth,
            sum: all.ns as f64,
            at: (*rank as u32, all.peak.1, all.peak.2),
        };
        Some(finding.without(self.delayed_main(*source as usize)))
    }

    /// Reports that most of the critical path is waits for ranks that the trace does not name.
    pub(super) fn unknown(&self) -> Option<Finding> {
        let path = &self.analysis.critical;
        let parts = path.parts.iter().filter(|part| part.reason == Reason::Unknown);
        let longest = parts.max_by_key(|part| part.end - part.begin)?;
        path.is_unknown().then(|| Finding {
            kind: "unknown",
            title: "Most of the time passes in MPI calls that wait for unknown ranks".into(),
            text: format!(
                "These waits are {} of the critical path. The trace records them, but not which operation ends them, so this report names no rank as the cause. The longest takes {}, on rank {}.",
                percent(path.unknown as f64, path.whole() as f64), time((longest.end - longest.begin) as f64), longest.rank
            ),
            advice: "Look in the timeline for the ranks that are in no call meanwhile. For a run with a trace, replace the call by `MPI_Recv`, `MPI_Sendrecv` or a collective call, whose ranks are recorded.".into(),
            worth: path.unknown as f64,
            sum: self.analysis.sum(|rank| rank.states[RankState::WaitMpi as usize]) as f64,
            at: (longest.rank, longest.begin, longest.end),
        })
    }

    /// Detects a target that receives requests faster than it serves them.
    pub(super) fn room(&self) -> Option<Finding> {
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
        let finding = Finding {
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
        };
        Some(finding.without(self.delayed(*peer as usize)))
    }
}
