//! Determines which rank arrives last at each collective call, and how long the others wait for it.
//! The calls are Portolan's and the program's MPI calls.
//!
//! The n-th collective call of one rank is matched with the n-th call of every other rank of the
//! communicator. For Portolan's calls, this is correct only if all ranks take part in every call,
//! and groups of ranks may have barriers of their own. Each match is therefore checked: no rank
//! may leave the call before the rank that it waits for has arrived. Calls that pass are counted if
//! they are at least 80 % of all of their communicator.

use crate::model::{Activity, MpiPeers, TraceSpan};
use portolan_trace_format::kinds::{Call, Cause};
use std::collections::HashMap;

/// Maximum number of calls recorded per rank; later calls are ignored.
const MOST: usize = 1 << 20;

/// Portolan's collective calls, as if they had a communicator of their own.
pub const OWN: u64 = u64::MAX;

/// A collective call of one rank. The ranks that it may wait for depend on the call.
#[derive(Debug, Clone, Copy)]
struct Visit {
    begin: u64,
    end: u64,
    peers: MpiPeers,
    root: Option<u32>,
    /// Time that the rank waited for other ranks since its last collective call.
    waited: u64,
}

#[derive(Debug, Clone, Copy)]
struct CollectiveCall {
    peers: MpiPeers,
    ranks: u32,
    /// The latest arrival: its time, and the rank.
    latest: (u64, u32),
    /// Time that the last rank had waited for others.
    latest_waited: u64,
    /// The latest arrival before it.
    second: u64,
    /// The earliest arrival, and the time that its rank had waited for others.
    earliest: (u64, u64),
    sum: u64,
    /// The arrival of the root.
    root: Option<(u64, u32)>,
    /// The first end of a rank that waits.
    first_end: u64,
}

impl CollectiveCall {
    const NEW: CollectiveCall = CollectiveCall {
        peers: MpiPeers::All,
        ranks: 0,
        latest: (0, 0),
        latest_waited: 0,
        second: 0,
        earliest: (u64::MAX, 0),
        sum: 0,
        root: None,
        first_end: u64::MAX,
    };

    fn add(&mut self, rank: u32, visit: &Visit) {
        let begin = visit.begin;
        self.peers = visit.peers;
        self.second = if self.ranks == 0 { 0 } else { self.second.max(self.latest.0.min(begin)) };
        if self.ranks == 0 || self.latest < (begin, rank) {
            (self.latest, self.latest_waited) = ((begin, rank), visit.waited);
        }
        self.ranks += 1;
        self.earliest = self.earliest.min((begin, visit.waited));
        self.sum += begin;
        if visit.root == Some(rank) {
            self.root = Some((begin, rank));
        }
        if visit.peers != MpiPeers::AtRoot || visit.root == Some(rank) {
            self.first_end = self.first_end.min(visit.end);
        }
    }

    /// Returns the arrival that the others wait for, and the latest one before it, or `None` if
    /// calls were matched that do not belong together.
    fn awaited(&self, ranks: u32, bound: u64) -> Option<LastTwo> {
        let root = self.root.filter(|root| *root != self.latest);
        let found = match (self.peers, root) {
            (MpiPeers::Root, Some(root)) => LastTwo { latest: root, second: 0 },
            _ => LastTwo { latest: self.latest, second: self.second },
        };
        let is_sound = found.latest.0 <= self.first_end.saturating_add(bound);
        (is_sound && self.ranks == ranks).then_some(found)
    }

    /// Returns the time that ranks wait for the last one. If a root that the others wait for is not
    /// the last one, the sum is unknown and 0.
    fn waited(&self) -> u64 {
        match (self.peers, self.root) {
            (MpiPeers::Root, root) if root != Some(self.latest) => 0,
            (MpiPeers::AtRoot, root) => root.map_or(0, |(begin, _)| self.latest.0 - begin),
            _ => self.latest.0 * u64::from(self.ranks) - self.sum,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct LastTwo {
    pub latest: (u64, u32),
    pub second: u64,
}

/// The collective calls of one rank, by communicator.
#[derive(Debug, Default)]
pub struct Visits {
    groups: HashMap<u64, Vec<Visit>>,
    count: usize,
    waited: u64,
}

impl Visits {
    /// Takes an event and its time without nested ones. Returns the communicator of a collective
    /// call and its number there.
    pub fn take(&mut self, span: &TraceSpan, own: u64) -> Option<(u64, u32)> {
        let (group, peers) = match span.what {
            Activity::Call(Call::Barrier | Call::Quiesce | Call::Reduce | Call::Exchange) => {
                (OWN, MpiPeers::All)
            }
            Activity::Mpi(call) if MpiPeers::of(call).is_collective() => {
                (span.communicator, MpiPeers::of(call))
            }
            Activity::Wait(Cause::Barrier | Cause::Collective | Cause::Start) => return None,
            Activity::Wait(_) | Activity::Mpi(_) => {
                self.waited += own;
                return None;
            }
            _ => return None,
        };
        let waited = std::mem::take(&mut self.waited);
        if self.count >= MOST {
            return None;
        }
        self.count += 1;
        let visits = self.groups.entry(group).or_default();
        let root = if peers == MpiPeers::All { None } else { span.peer };
        visits.push(Visit { begin: span.begin, end: span.end, peers, root, waited });
        Some((group, visits.len() as u32 - 1))
    }
}

/// The calls of one communicator.
#[derive(Debug, Default)]
struct Group {
    calls: Vec<CollectiveCall>,
    ranks: u32,
}

#[derive(Debug, Default)]
pub struct Arrivals {
    groups: HashMap<u64, Group>,
    ranks: u32,
}

/// Results of the arrival analysis. Times are nanoseconds.
#[derive(Debug, Default, Clone)]
pub struct Lateness {
    /// Number of counted calls whose arrivals differ by more than the clock error.
    pub meetings: u64,
    /// Time spent waiting for the last rank, summed over ranks and calls.
    pub waited: u64,
    /// The part of `waited` that the last rank had itself waited for others, more than the first.
    pub passed_on: f64,
    /// Time that the whole job would save if the last rank arrived at the mean arrival time.
    pub wall: f64,
    /// By rank: how often it was last, and the time that the others waited for it.
    pub last: Vec<(u64, u64)>,
    /// The call with the longest wait: time waited, last rank, first and last arrival.
    pub worst: (u64, u32, u64, u64),
}

impl Arrivals {
    pub fn merge(&mut self, rank: u32, visits: &Visits) {
        self.ranks += 1;
        for (group, visits) in &visits.groups {
            let group = self.groups.entry(*group).or_default();
            group.ranks += 1;
            if group.calls.len() < visits.len() {
                group.calls.resize(visits.len(), CollectiveCall::NEW);
            }
            group.calls.iter_mut().zip(visits).for_each(|(call, visit)| call.add(rank, visit));
        }
    }

    /// Returns the number of ranks of a communicator.
    fn ranks_of(&self, number: u64, group: &Group) -> u32 {
        if number == OWN || number == 0 { self.ranks } else { group.ranks }
    }

    /// Returns the last two arrivals at each call of Portolan by all ranks, in the order of time.
    pub fn last_two(&self) -> Vec<LastTwo> {
        let own = self.groups.get(&OWN).map_or(&[][..], |group| &group.calls);
        let mut calls: Vec<LastTwo> =
            own.iter().filter_map(|call| call.awaited(self.ranks, 0)).collect();
        calls.sort_unstable_by_key(|call| call.latest);
        calls
    }

    /// Returns the arrival that a wait in an MPI call until `end` depends on, and the one before it.
    pub fn of_mpi(&self, (number, call): (u64, u32), end: u64) -> Option<LastTwo> {
        let group = self.groups.get(&number)?;
        let call = group.calls.get(call as usize)?;
        let found = call.awaited(self.ranks_of(number, group), 0)?;
        // The data of a root may come through a rank that is later than the root.
        let last = LastTwo { latest: call.latest, second: call.second };
        Some(if last.latest.0 <= end { last } else { found })
    }

    /// Computes the lateness in a job of `ranks` ranks, whose clocks may differ by `bound` ns.
    pub fn lateness(&self, ranks: usize, bound: u64) -> Lateness {
        let mut found = Lateness { last: vec![(0, 0); ranks], ..Lateness::default() };
        for (number, group) in &self.groups {
            let members = self.ranks_of(*number, group);
            let is_good = |call: &&CollectiveCall| call.awaited(members, bound).is_some();
            let good: Vec<&CollectiveCall> = group.calls.iter().filter(is_good).collect();
            if members >= 2 && good.len() * 5 >= group.calls.len() * 4 {
                good.into_iter().for_each(|call| found.add(call, bound));
            }
        }
        found
    }
}

impl Lateness {
    fn add(&mut self, call: &CollectiveCall, bound: u64) {
        let ((latest, rank), waited) = (call.latest, call.waited());
        let (earliest, its_waits) = call.earliest;
        if latest - earliest <= bound || waited == 0 {
            return;
        }
        self.meetings += 1;
        let later_by = call.latest_waited.saturating_sub(its_waits) as f64;
        self.waited += waited;
        self.passed_on += waited as f64 * (later_by / (latest - earliest) as f64).min(1.0);
        self.wall += waited as f64 / f64::from(call.ranks);
        if let Some((times, ns)) = self.last.get_mut(rank as usize) {
            *times += 1;
            *ns += waited;
        }
        self.worst = self.worst.max((waited, rank, earliest, latest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::span;
    use portolan_trace_format::kinds::MpiCall;

    fn visits(all: &[(u64, u64)]) -> Visits {
        let mut visits = Visits::default();
        for &(begin, end) in all {
            visits.take(&span(Activity::Call(Call::Barrier), 0, begin, end - begin), 0);
        }
        visits
    }

    #[test]
    fn the_last_rank_is_found() {
        let mut arrivals = Arrivals::default();
        arrivals.merge(0, &visits(&[(10, 101), (200, 310)]));
        arrivals.merge(1, &visits(&[(100, 102), (300, 311)]));
        arrivals.merge(2, &visits(&[(40, 103), (250, 309)]));
        let late = arrivals.lateness(3, 0);
        assert_eq!((late.meetings, late.waited), (2, 90 + 60 + 100 + 50));
        assert_eq!(late.last[1], (2, 300));
        assert_eq!(late.worst, (150, 1, 200, 300));
        assert_eq!(arrivals.lateness(3, 1000).meetings, 0);
    }

    #[test]
    fn a_last_rank_that_waited_for_others_passes_the_delay_on() {
        let visit = |rank, waits: u64, begin: u64, arrivals: &mut Arrivals| {
            let mut visits = Visits::default();
            visits.take(&span(Activity::Wait(Cause::Answer), rank, 0, waits), waits);
            visits.take(&span(Activity::Call(Call::Barrier), rank, begin, 101 - begin), 0);
            arrivals.merge(rank, &visits);
        };
        for (first_waits, passed_on) in [(0, 40.0), (25, 15.0)] {
            let mut arrivals = Arrivals::default();
            visit(0, first_waits, 20, &mut arrivals);
            visit(1, 40, 100, &mut arrivals);
            let late = arrivals.lateness(2, 0);
            assert_eq!((late.waited, late.passed_on), (80, passed_on));
        }
    }

    #[test]
    fn calls_of_groups_are_not_taken_for_one() {
        let mut arrivals = Arrivals::default();
        arrivals.merge(0, &visits(&[(10, 20), (30, 40)]));
        arrivals.merge(1, &visits(&[(1000, 1010), (2000, 2010)]));
        assert_eq!(arrivals.lateness(2, 0).waited, 0);
    }

    /// Three ranks call a broadcast or a reduction with root 0 on a communicator: begin and end.
    fn rooted(call: MpiCall, times: [(u64, u64); 3]) -> Arrivals {
        let mut arrivals = Arrivals::default();
        for (rank, (begin, end)) in (0..).zip(times) {
            let mut visits = Visits::default();
            let what = span(Activity::Mpi(call), rank, begin, end - begin);
            let number = visits.take(&TraceSpan { peer: Some(0), communicator: 5, ..what }, 0);
            assert_eq!(number, Some((5, 0)));
            arrivals.merge(rank, &visits);
        }
        arrivals
    }

    #[test]
    fn a_root_and_the_others_wait_for_each_other_in_one_direction() {
        // Rank 0 broadcasts at 50. Rank 2 comes later, and no rank waits for it.
        let all = rooted(MpiCall::Bcast, [(50, 52), (10, 60), (90, 91)]);
        assert_eq!(all.of_mpi((5, 0), 60).map(|found| found.latest), Some((50, 0)));
        assert_eq!(all.lateness(3, 0).waited, 0);
        // Rank 1 leaves after rank 2 has come, so its data came through rank 2.
        assert_eq!(all.of_mpi((5, 0), 92).map(|found| found.latest), Some((90, 2)));
        let all = rooted(MpiCall::Bcast, [(50, 52), (10, 60), (20, 61)]);
        assert_eq!(all.lateness(3, 0).last[0], (1, 40 + 30));
        // Rank 1 leaves before the root arrives, so these calls do not belong to one broadcast.
        let all = rooted(MpiCall::Bcast, [(50, 52), (10, 40), (20, 61)]);
        assert!(all.of_mpi((5, 0), 60).is_none());
        // Rank 2 comes last to a reduction. Only the root waits for it.
        let all = rooted(MpiCall::Reduce, [(10, 95), (20, 25), (90, 91)]);
        assert_eq!(all.of_mpi((5, 0), 95).map(|found| found.latest), Some((90, 2)));
        assert_eq!(all.lateness(3, 0).last[2], (1, 80));
    }
}
