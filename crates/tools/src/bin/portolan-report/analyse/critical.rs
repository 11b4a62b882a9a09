//! The critical path: the chain of work and waits that determines how long the job takes.
//!
//! The path is followed backwards from the rank that ends last. While a rank works, the path stays
//! on it. From a wait in a collective call, it continues on the rank that the others waited for: on
//! the last one, or on the root if only the root sends. A wait for an answer is a part that belongs
//! to the rank that answers. Notifications lead to their sender. Of a message between two ranks, the
//! path follows the rank that came later to its call. A wait whose rank the trace does not name is
//! a part that belongs to no rank.
//!
//! Each rank keeps a bounded number of its longest waits. Shorter waits count as work.

use super::answers::is_answered;
use super::arrivals::{Arrivals, LastTwo};
use super::largest::Largest;
use crate::model::{Activity, MpiPeers, TraceSpan};
use portolan_trace_format::format::Role;
use portolan_trace_format::kinds::Cause;
use std::cmp::Reverse;

const WAITS: usize = 1 << 17;
const PARTS: usize = 1 << 17;
/// A receive of at least this time in nanoseconds waits for a message that is sent late, if the
/// trace does not show when it is sent.
pub const LONG: u64 = 20_000;

/// A wait: length, begin, awaited rank, and what ends it.
type Wait = (u64, u64, Option<u32>, Ends);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ends {
    Answer,
    Sender,
    Collective,
    /// A collective MPI call: its communicator, and its number there.
    Mpi(u64, u32),
    /// An MPI message from the other rank, or to it.
    Message(MpiPeers),
    Unknown,
}

#[derive(Debug, Default)]
pub struct LongWaits {
    longest: Largest<Wait>,
    end: u64,
}

impl LongWaits {
    /// `visit` is the number of a collective MPI call.
    pub fn take(&mut self, span: &TraceSpan, visit: Option<(u64, u32)>, ranks: usize) {
        if span.role != Role::Program {
            return;
        }
        self.end = self.end.max(span.end);
        let known = span.peer.is_some_and(|peer| peer != span.rank);
        let ends = match span.what {
            Activity::Wait(Cause::Barrier | Cause::Collective) => Some(Ends::Collective),
            Activity::Wait(Cause::Notify | Cause::Message) => known.then_some(Ends::Sender),
            Activity::Wait(Cause::Mpi) => Some(Ends::Unknown),
            Activity::Wait(cause) => (known && is_answered(cause)).then_some(Ends::Answer),
            Activity::Mpi(call) => match (MpiPeers::of(call), visit) {
                (peers @ (MpiPeers::Source | MpiPeers::Target), _) => {
                    known.then_some(Ends::Message(peers))
                }
                (MpiPeers::Unknown, _) => Some(Ends::Unknown),
                (_, visit) => visit.map(|(group, number)| Ends::Mpi(group, number)),
            },
            _ => None,
        };
        if let Some(ends) = ends {
            let most = (WAITS / ranks.max(1)).max(64);
            self.longest.take((span.length(), span.begin, span.peer, ends), most);
        }
    }
}

/// The reason why a part belongs to the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    Works,
    /// Another rank waited for an answer of this rank meanwhile.
    Answers,
    /// The rank waited, and the trace does not name the rank that it waited for.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub rank: u32,
    pub begin: u64,
    pub end: u64,
    pub reason: Reason,
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
    /// Time of the parts that belong to no rank.
    pub unknown: u64,
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
                let mut waits: Vec<Wait> = of.longest.iter().copied().collect();
                waits.sort_by_key(|(length, begin, ..)| begin + length);
                waits
            })
            .collect();
        let meetings = arrivals.last_two();
        let mut path =
            CriticalPath { time: vec![0; ranks], gain: vec![0; ranks], ..CriticalPath::default() };
        // If a part becomes shorter by more than this, another rank is the last.
        let mut limit = u64::MAX;
        while now > 0 && path.parts.len() < PARTS {
            let of_rank = &waits[rank];
            let before = of_rank.partition_point(|(length, begin, ..)| begin + length <= now);
            let Some(&(length, begin, peer, ends)) = of_rank[..before].last() else {
                path.add(rank, 0, now, Reason::Works, &mut limit);
                break;
            };
            path.add(rank, begin + length, now, Reason::Works, &mut limit);
            let end = begin + length;
            let peer = peer.map(|peer| peer as usize).filter(|peer| *peer < ranks);
            // The rank that ended the wait, and when the path continues there.
            let mut next = None;
            let mut reason = (rank, Reason::Works);
            match (ends, peer) {
                (Ends::Collective, _) => {
                    // The last arrival during the wait ended it.
                    let found = meetings.partition_point(|meeting| meeting.latest.0 <= end);
                    next = meetings[..found].last().copied();
                }
                (Ends::Mpi(group, number), _) => {
                    next = arrivals.of_mpi((group, number), end);
                    if next.is_none() {
                        reason.1 = Reason::Unknown;
                    }
                }
                (Ends::Message(peers), Some(other)) => {
                    let met = meets(&waits[other], (begin, end), rank);
                    if let Some(arrived) = met {
                        let later = (arrived, other as u32).max((begin, rank as u32));
                        next = Some(LastTwo { latest: later, second: arrived.min(begin) });
                    } else if peers == MpiPeers::Source && length >= LONG {
                        // How long others wait for that rank's messages is unknown.
                        (rank, now, limit) = (other, end.saturating_sub(1), u64::MAX);
                        continue;
                    }
                }
                (Ends::Sender, Some(sender)) if end < now || rank != sender => {
                    // The sender's own waits that end later do not matter.
                    (rank, now) = (sender, end.saturating_sub(1));
                    continue;
                }
                (Ends::Unknown, _) => reason.1 = Reason::Unknown,
                (_, Some(answering)) => reason = (answering, Reason::Answers),
                (_, None) => {}
            }
            match next.filter(|next| next.latest.0 <= end) {
                Some(LastTwo { latest: (arrived, by), second }) if arrived > begin => {
                    // The call itself takes the rest of the time.
                    path.add(by as usize, arrived, end, Reason::Works, &mut limit);
                    (rank, now) = (by as usize, arrived);
                    limit = arrived - second.max(begin);
                }
                this_one => {
                    path.add(reason.0, begin, end, reason.1, &mut limit);
                    now = begin;
                    // The others waited for this rank, until one of them was the last.
                    if let Some(LastTwo { latest, second }) = this_one
                        && latest == (begin, rank as u32)
                    {
                        limit = begin - second;
                    }
                }
            }
        }
        path.parts.reverse();
        path
    }

    fn add(&mut self, rank: usize, begin: u64, end: u64, reason: Reason, limit: &mut u64) {
        let length = end.saturating_sub(begin);
        if length == 0 || rank >= self.time.len() {
            return;
        }
        match reason {
            Reason::Unknown => self.unknown += length,
            // Other ranks wait for the same answers, so these gain in full.
            Reason::Answers => {
                self.time[rank] += length;
                self.gain[rank] += length;
            }
            Reason::Works => {
                let gained = length.min(*limit);
                self.time[rank] += length;
                self.gain[rank] += gained;
                *limit -= gained;
            }
        }
        match self.parts.last_mut() {
            // Parts are added backwards.
            Some(part)
                if part.rank as usize == rank && part.reason == reason && part.begin == end =>
            {
                part.begin = begin;
            }
            _ => self.parts.push(Part { rank: rank as u32, begin, end, reason }),
        }
    }

    /// Returns the length of the path.
    pub fn whole(&self) -> u64 {
        self.time.iter().sum::<u64>() + self.unknown
    }

    /// Returns whether most of the path belongs to no rank.
    pub fn is_unknown(&self) -> bool {
        self.unknown * 2 > self.whole()
    }

    /// Returns the ranks with time on the path, the most first.
    pub fn ranks(&self) -> Vec<(u32, u64)> {
        let mut ranks: Vec<(u32, u64)> =
            (0..).zip(self.time.iter().copied()).filter(|(_, ns)| *ns > 0).collect();
        ranks.sort_by_key(|&(rank, ns)| (Reverse(ns), rank));
        ranks
    }
}

/// Returns when the other rank of a message came to its call, if it did so during a call of `rank`
/// from `begin` to `end`. `waits` lists the waits of the other rank in the order of time.
fn meets(waits: &[Wait], (begin, end): (u64, u64), rank: usize) -> Option<u64> {
    let from = waits.partition_point(|(length, at, ..)| at + length <= begin);
    let mut during = waits[from..].iter().take_while(|(_, at, ..)| *at < end);
    let is_with =
        |wait: &&Wait| matches!(wait, (.., Some(peer), Ends::Message(_)) if *peer as usize == rank);
    during.find(is_with).map(|(_, at, ..)| *at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::arrivals::Visits;
    use crate::sample::span;
    use portolan_trace_format::kinds::{Call, MpiCall};

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
            visits.take(&span(Activity::Call(Call::Barrier), rank, arrived, 102 - arrived), 0);
            waits.take(&wait(Cause::Barrier, rank, arrived, 102, None), None, 3);
            if rank == 0 {
                waits.take(&wait(Cause::Answer, 0, 130, 180, Some(2)), None, 3);
                waits.take(&span(Activity::Call(Call::Get), 0, 125, 75), None, 3);
            }
            arrivals.merge(rank, &visits);
            all.push(waits);
        }
        let path = CriticalPath::of(all, &arrivals);
        let part = |rank, begin, end, reason| Part { rank, begin, end, reason };
        assert_eq!(
            path.parts,
            [
                part(1, 0, 102, Reason::Works),
                part(0, 102, 130, Reason::Works),
                part(2, 130, 180, Reason::Answers),
                part(0, 180, 200, Reason::Works)
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
                let wait = wait(Cause::Notify, rank, begin * 10, begin * 10 + 10, Some(1 - rank));
                waits.take(&wait, None, 2);
            }
            all.push(waits);
        }
        let path = CriticalPath::of(all, &Arrivals::default());
        assert!(path.time.iter().sum::<u64>() <= 10_000);
        assert!(CriticalPath::of(Vec::new(), &Arrivals::default()).parts.is_empty());
    }

    /// Begin, end and peer.
    type Called = (MpiCall, u64, u64, Option<u32>);

    /// The path of ranks with these MPI calls.
    fn path_of(ranks: &[&[Called]]) -> CriticalPath {
        let (mut arrivals, mut all) = (Arrivals::default(), Vec::new());
        for (rank, calls) in (0..).zip(ranks) {
            let (mut visits, mut waits) = (Visits::default(), LongWaits::default());
            for &(call, begin, end, peer) in *calls {
                let what = span(Activity::Mpi(call), rank, begin, end - begin);
                let what = TraceSpan { peer, ..what };
                waits.take(&what, visits.take(&what, 0), ranks.len());
            }
            arrivals.merge(rank, &visits);
            all.push(waits);
        }
        CriticalPath::of(all, &arrivals)
    }

    #[test]
    fn it_goes_through_the_root_of_a_broadcast() {
        let (late, early) = ((MpiCall::Bcast, 70, 71, Some(0)), (MpiCall::Bcast, 10, 75, Some(0)));
        let path = path_of(&[&[late], &[early], &[early]]);
        assert_eq!((&path.time[..], path.unknown), (&[75, 0, 0][..], 0), "{path:?}");
        // Without the root's work, the job would wait for the arrival of rank 1.
        assert_eq!(path.gain[0], 65);
        // Rank 1 comes later than the root. Rank 2 leaves before, and ends last.
        let soon = [(MpiCall::Bcast, 10, 22, Some(0)), (MpiCall::Probe, 90, 91, Some(0))];
        let path = path_of(&[&[(MpiCall::Bcast, 20, 21, Some(0))], &[late], &soon]);
        assert_eq!(path.time, [22, 0, 69]);
    }

    #[test]
    fn it_goes_through_the_last_rank_of_an_mpi_barrier() {
        let call = |begin| (MpiCall::Barrier, begin, 100, None);
        let path = path_of(&[&[call(10)], &[call(99)], &[call(30)]]);
        assert_eq!((path.time, path.gain), (vec![0, 100, 0], vec![0, 70, 0]));
    }

    #[test]
    fn it_follows_the_later_rank_of_a_message() {
        let us = 1000;
        // Rank 1 receives what rank 0 sends late.
        let (send, receive) = (MpiCall::Send, MpiCall::Recv);
        let late = [(send, 70 * us, 71 * us, Some(1))];
        let path = path_of(&[&late, &[(receive, 10 * us, 72 * us, Some(0))]]);
        assert_eq!((path.time[0], path.gain[0]), (72 * us, 62 * us), "{path:?}");
        // Rank 0 sends a long message, which rank 1 receives late.
        let early = [(send, 10 * us, 90 * us, Some(1))];
        let path = path_of(&[&early, &[(receive, 50 * us, 91 * us, Some(0))]]);
        assert_eq!(path.time, [0, 91 * us], "{path:?}");
        // The message is there when rank 1 receives it.
        let path = path_of(&[
            &[(send, 10 * us, 11 * us, Some(1))],
            &[(receive, 90 * us, 91 * us, Some(0))],
        ]);
        assert_eq!(path.time, [0, 91 * us], "{path:?}");
        // The send is not recorded.
        let path = path_of(&[&[], &[(receive, 10 * us, 91 * us, Some(0))]]);
        assert_eq!(path.time, [91 * us - 1, 0], "{path:?}");
        // Rank 0 is late twice.
        let sends = [(send, 50 * us, 51 * us, Some(1)), (send, 100 * us, 101 * us, Some(1))];
        let receives = [(receive, us, 52 * us, Some(0)), (receive, 53 * us, 102 * us, Some(0))];
        let path = path_of(&[&sends, &receives]);
        assert_eq!((path.time[0], path.gain[0]), (102 * us, 98 * us), "{path:?}");
    }

    #[test]
    fn a_wait_for_nobody_in_particular_blames_nobody() {
        let path = path_of(&[&[(MpiCall::Waitall, 10, 90, None)], &[]]);
        assert_eq!((path.time.as_slice(), path.unknown), (&[10, 0][..], 80));
        assert!(path.is_unknown() && path.whole() == 90);
        // The calls of rank 1 are not in the trace.
        let path = path_of(&[&[(MpiCall::Barrier, 10, 90, None)], &[]]);
        assert_eq!(path.unknown, 80);
    }
}
