//! Determines which rank arrives last at each collective call, and how long the others wait for it.
//!
//! The n-th collective call of one rank is matched with the n-th call of every other rank. This is
//! correct only if all ranks take part in every call, and groups of ranks may have barriers of
//! their own. Each match is therefore checked: no rank may leave the call before the last one has
//! arrived. Calls that pass are counted if they are at least 80 % of all.

use crate::model::{Activity, TraceSpan};
use portolan_trace_format::kinds::Call;

/// Maximum number of calls recorded per rank; later calls are ignored.
const MOST: usize = 1 << 20;

#[derive(Debug, Clone, Copy)]
struct CollectiveCall {
    ranks: u32,
    /// The latest arrival: its time, and the rank.
    latest: (u64, u32),
    /// The latest arrival before it.
    second: u64,
    earliest: u64,
    sum: u64,
    first_end: u64,
}

#[derive(Debug, Clone, Copy)]
pub struct LastTwo {
    pub latest: (u64, u32),
    pub second: u64,
}

/// Start and end of each collective call of one rank.
#[derive(Debug, Default)]
pub struct Visits(Vec<(u64, u64)>);

impl Visits {
    pub fn take(&mut self, span: &TraceSpan) {
        let Activity::Call(Call::Barrier | Call::Quiesce | Call::Reduce | Call::Exchange) =
            span.what
        else {
            return;
        };
        if self.0.len() < MOST {
            self.0.push((span.begin, span.end));
        }
    }
}

#[derive(Debug, Default)]
pub struct Arrivals {
    meetings: Vec<CollectiveCall>,
    ranks: u32,
}

/// Results of the arrival analysis. Times are nanoseconds.
#[derive(Debug, Default, Clone)]
pub struct Lateness {
    /// Number of counted calls whose arrivals differ by more than the clock error.
    pub meetings: u64,
    /// Time spent waiting for the last rank, summed over ranks and calls.
    pub waited: u64,
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
        for (number, &(begin, end)) in visits.0.iter().enumerate() {
            let Some(meeting) = self.meetings.get_mut(number) else {
                self.meetings.push(CollectiveCall {
                    ranks: 1,
                    latest: (begin, rank),
                    second: 0,
                    earliest: begin,
                    sum: begin,
                    first_end: end,
                });
                continue;
            };
            meeting.ranks += 1;
            meeting.second = meeting.second.max(meeting.latest.0.min(begin));
            meeting.latest = meeting.latest.max((begin, rank));
            meeting.earliest = meeting.earliest.min(begin);
            meeting.sum += begin;
            meeting.first_end = meeting.first_end.min(end);
        }
    }

    /// Returns the last two arrivals at each call of all ranks, in the order of time.
    pub fn last_two(&self) -> Vec<LastTwo> {
        let all = self.meetings.iter().filter(|meeting| meeting.ranks == self.ranks);
        let sound = all.filter(|meeting| meeting.latest.0 <= meeting.first_end);
        let mut calls: Vec<LastTwo> = sound
            .map(|meeting| LastTwo { latest: meeting.latest, second: meeting.second })
            .collect();
        calls.sort_unstable_by_key(|call| call.latest);
        calls
    }

    /// Computes the lateness in a job of `ranks` ranks, whose clocks may differ by `bound` ns.
    pub fn lateness(&self, ranks: usize, bound: u64) -> Lateness {
        let mut found = Lateness { last: vec![(0, 0); ranks], ..Lateness::default() };
        let all: Vec<&CollectiveCall> =
            self.meetings.iter().filter(|m| m.ranks == self.ranks).collect();
        let sound = |m: &&&CollectiveCall| m.latest.0 <= m.first_end.saturating_add(bound);
        let good: Vec<&&CollectiveCall> = all.iter().filter(sound).collect();
        if self.ranks < 2
            || good.len() * 5 < all.len() * 4
            || good.len() * 5 < self.meetings.len() * 4
        {
            return found;
        }
        for meeting in good {
            let (latest, rank) = meeting.latest;
            if latest - meeting.earliest <= bound {
                continue;
            }
            let waited = latest * u64::from(meeting.ranks) - meeting.sum;
            found.meetings += 1;
            found.waited += waited;
            found.wall += waited as f64 / f64::from(meeting.ranks);
            if let Some((times, ns)) = found.last.get_mut(rank as usize) {
                *times += 1;
                *ns += waited;
            }
            found.worst = found.worst.max((waited, rank, meeting.earliest, latest));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visits(all: &[(u64, u64)]) -> Visits {
        Visits(all.to_vec())
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
    fn calls_of_groups_are_not_taken_for_one() {
        let mut arrivals = Arrivals::default();
        arrivals.merge(0, &visits(&[(10, 20), (30, 40)]));
        arrivals.merge(1, &visits(&[(1000, 1010), (2000, 2010)]));
        assert_eq!(arrivals.lateness(2, 0).waited, 0);
    }
}
