//! The critical path: the chain of work and waits that determines how long the job takes.
//!
//! The path is followed backwards from the rank that ends last. While a rank works, the path stays
//! on it. From a wait in a collective call, it continues on the rank that arrived last. A wait for
//! an answer is a part that belongs to the rank that answers. Notifications lead to their sender.
//!
//! Each rank keeps a bounded number of its longest waits. Shorter waits count as work.

use super::answers::is_answered;
use super::arrivals::Arrivals;
use super::matrix::keep_most;
use crate::model::{Activity, TraceSpan};
use portolan_trace_format::format::Role;
use portolan_trace_format::kinds::Cause;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const WAITS: usize = 1 << 17;
const PARTS: usize = 1 << 17;

/// A wait: length, begin, awaited rank, and whether a collective call or notification ends it.
type Wait = (u64, u64, Option<u32>, Ends);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ends {
    Answer,
    Sender,
    Collective,
}

#[derive(Debug, Default)]
pub struct LongWaits {
    heap: BinaryHeap<Reverse<Wait>>,
    end: u64,
}

impl LongWaits {
    pub fn take(&mut self, span: &TraceSpan, ranks: usize) {
        if span.role != Role::Program {
            return;
        }
        self.end = self.end.max(span.end);
        let Activity::Wait(cause) = span.what else { return };
        let ends = match cause {
            Cause::Barrier | Cause::Collective => Ends::Collective,
            Cause::Notify | Cause::Message => Ends::Sender,
            Cause::Start => return,
            _ => Ends::Answer,
        };
        let known = span.peer.is_some_and(|peer| peer != span.rank);
        if (ends == Ends::Collective || known) && (is_answered(cause) || ends != Ends::Answer) {
            let most = (WAITS / ranks.max(1)).max(64);
            keep_most(&mut self.heap, (span.length(), span.begin, span.peer, ends), most);
        }
    }
}

/// `answers` is whether another rank waited for an answer of this rank meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub rank: u32,
    pub begin: u64,
    pub end: u64,
    pub answers: bool,
}

/// The critical path. Times are nanoseconds.
#[derive(Debug, Default)]
pub struct CriticalPath {
    /// The parts in the order of time.
    pub parts: Vec<Part>,
    /// By rank: the time of its parts.
    pub time: Vec<u64>,
    /// By rank: how much shorter the job would be if the rank took no time for its parts. At a
    /// collective call it would then end with the rank that arrived before.
    pub gain: Vec<u64>,
}

impl CriticalPath {
    pub fn of(all: Vec<LongWaits>, arrivals: &Arrivals) -> CriticalPath {
        let ranks = all.len();
        let last = all.iter().enumerate().max_by_key(|(rank, of)| (of.end, Reverse(*rank)));
        let Some((mut rank, mut now)) = last.map(|(rank, of)| (rank, of.end)) else {
            return CriticalPath::default();
        };
        let waits: Vec<Vec<Wait>> = all
            .into_iter()
            .map(|of| {
                let mut waits: Vec<Wait> = of.heap.into_iter().map(|Reverse(wait)| wait).collect();
                waits.sort_by_key(|(length, begin, ..)| begin + length);
                waits
            })
            .collect();
        let meetings = arrivals.last_two();
        let mut path =
            CriticalPath { parts: Vec::new(), time: vec![0; ranks], gain: vec![0; ranks] };
        // If a part becomes shorter by more than this, another rank is the last.
        let mut limit = u64::MAX;
        while now > 0 && path.parts.len() < PARTS {
            let of_rank = &waits[rank];
            let before = of_rank.partition_point(|(length, begin, ..)| begin + length <= now);
            let Some(&(length, begin, peer, ends)) = of_rank[..before].last() else {
                path.add(rank, 0, now, false, &mut limit);
                break;
            };
            path.add(rank, begin + length, now, false, &mut limit);
            let end = begin + length;
            match (ends, peer.map(|peer| peer as usize).filter(|peer| *peer < ranks)) {
                (Ends::Collective, _) => {
                    // The last arrival during the wait ended it.
                    let found = meetings.partition_point(|meeting| meeting.latest.0 <= end);
                    let meeting = meetings[..found].last().filter(|m| m.latest.0 > begin);
                    match meeting {
                        Some(meeting) => {
                            // The collective call itself takes the rest of the time.
                            let (arrived, by) = (meeting.latest.0, meeting.latest.1 as usize);
                            path.add(by, arrived, end, false, &mut limit);
                            (rank, now) = (by, arrived);
                            limit = arrived - meeting.second;
                        }
                        None => {
                            path.add(rank, begin, end, false, &mut limit);
                            now = begin;
                        }
                    }
                }
                (Ends::Sender, Some(sender)) if end < now || rank != sender => {
                    // The sender's own waits that end later do not matter.
                    (rank, now) = (sender, end.saturating_sub(1));
                }
                (_, Some(answering)) => {
                    path.add(answering, begin, end, true, &mut limit);
                    now = begin;
                }
                (_, None) => {
                    path.add(rank, begin, end, false, &mut limit);
                    now = begin;
                }
            }
        }
        path.parts.reverse();
        path
    }

    fn add(&mut self, rank: usize, begin: u64, end: u64, answers: bool, limit: &mut u64) {
        let length = end.saturating_sub(begin);
        if length == 0 || rank >= self.time.len() {
            return;
        }
        self.time[rank] += length;
        // Other ranks wait for the same answers, so these gain in full.
        let gained = if answers { length } else { length.min(*limit) };
        self.gain[rank] += gained;
        if !answers {
            *limit -= gained;
        }
        match self.parts.last_mut() {
            // Parts are added backwards.
            Some(part)
                if part.rank as usize == rank && part.answers == answers && part.begin == end =>
            {
                part.begin = begin;
            }
            _ => self.parts.push(Part { rank: rank as u32, begin, end, answers }),
        }
    }

    /// Returns the ranks with time on the path, the most first.
    pub fn ranks(&self) -> Vec<(u32, u64)> {
        let mut ranks: Vec<(u32, u64)> =
            (0..).zip(self.time.iter().copied()).filter(|(_, ns)| *ns > 0).collect();
        ranks.sort_by_key(|&(rank, ns)| (Reverse(ns), rank));
        ranks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::arrivals::Visits;
    use crate::sample::span;
    use portolan_trace_format::kinds::Call;

    fn wait(cause: Cause, rank: u32, begin: u64, end: u64, peer: Option<u32>) -> TraceSpan {
        TraceSpan { peer, ..span(Activity::Wait(cause), rank, begin, end - begin) }
    }

    #[test]
    fn the_path_goes_through_the_last_rank_and_the_one_that_answers() {
        // Rank 1 arrives last at the barrier at 100, rank 0 at 40, rank 2 at 70. After it, rank 0
        // waits for rank 2 from 130 to 180 and ends last, at 200.
        let (mut arrivals, mut all) = (Arrivals::default(), Vec::new());
        for (rank, arrived) in [(0u32, 40u64), (1, 100), (2, 70)] {
            let (mut visits, mut waits) = (Visits::default(), LongWaits::default());
            visits.take(&span(Activity::Call(Call::Barrier), rank, arrived, 102 - arrived));
            waits.take(&wait(Cause::Barrier, rank, arrived, 102, None), 3);
            if rank == 0 {
                waits.take(&wait(Cause::Answer, 0, 130, 180, Some(2)), 3);
                waits.take(&span(Activity::Call(Call::Get), 0, 125, 75), 3);
            }
            arrivals.merge(rank, &visits);
            all.push(waits);
        }
        let path = CriticalPath::of(all, &arrivals);
        let part = |rank, begin, end, answers| Part { rank, begin, end, answers };
        assert_eq!(
            path.parts,
            [
                part(1, 0, 102, false),
                part(0, 102, 130, false),
                part(2, 130, 180, true),
                part(0, 180, 200, false)
            ]
        );
        assert_eq!(path.time, [48, 102, 50]);
        // If rank 1 took no time, the barrier would end with rank 2, 30 earlier.
        assert_eq!(path.gain, [48, 32, 50]);
        assert_eq!(path.ranks()[0], (1, 102));
    }

    #[test]
    fn it_ends_whatever_the_waits_are() {
        // Two ranks wait for notifications of each other that end at the same times.
        let mut all = Vec::new();
        for rank in 0..2u32 {
            let mut waits = LongWaits::default();
            for begin in 0..1000 {
                waits.take(
                    &wait(Cause::Notify, rank, begin * 10, begin * 10 + 10, Some(1 - rank)),
                    2,
                );
            }
            all.push(waits);
        }
        let path = CriticalPath::of(all, &Arrivals::default());
        assert!(path.time.iter().sum::<u64>() <= 10_000);
        assert!(CriticalPath::of(Vec::new(), &Arrivals::default()).parts.is_empty());
    }
}
