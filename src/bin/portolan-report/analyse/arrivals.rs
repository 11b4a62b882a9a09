//! Who comes last to a barrier, and how long the others wait for it.
//!
//! The n-th collective call of a rank is the n-th of each other one, as long as all take part in all
//! of them. That is not believed but checked: nobody leaves such a call before the last has come. Where
//! most pass the check, those that do are counted; else, as where groups of ranks have barriers
//! of their own, none.

use crate::model::{Span, What};
use portolan::internals::trace::kinds::Call;

/// Calls that are followed; later ones are not.
const MOST: usize = 1 << 20;

#[derive(Debug, Clone, Copy)]
struct Meeting {
    ranks: u32,
    /// The latest begin, and whose.
    latest: (u64, u32),
    earliest: u64,
    sum: u64,
    first_end: u64,
}

/// The collective calls of one rank: begins and ends.
#[derive(Debug, Default)]
pub struct Visits(Vec<(u64, u64)>);

impl Visits {
    pub fn take(&mut self, span: &Span) {
        let What::Call(Call::Barrier | Call::Reduce | Call::Exchange) = span.what else { return };
        if self.0.len() < MOST {
            self.0.push((span.begin, span.end));
        }
    }
}

/// Those of all ranks.
#[derive(Debug, Default)]
pub struct Arrivals {
    meetings: Vec<Meeting>,
    ranks: u32,
}

/// What they come to.
#[derive(Debug, Default, Clone)]
pub struct Lateness {
    /// Calls that count.
    pub meetings: u64,
    /// What all ranks waited for the last one, summed over ranks.
    pub waited: u64,
    /// The same if each rank came when the average does: time of the whole job.
    pub wall: f64,
    /// By rank: how often it was last, and what others waited for it.
    pub last: Vec<(u64, u64)>,
    /// The longest: what was waited, the last rank, first and last arrival.
    pub worst: (u64, u32, u64, u64),
}

impl Arrivals {
    pub fn merge(&mut self, rank: u32, visits: &Visits) {
        self.ranks += 1;
        for (number, &(begin, end)) in visits.0.iter().enumerate() {
            let Some(meeting) = self.meetings.get_mut(number) else {
                self.meetings.push(Meeting {
                    ranks: 1,
                    latest: (begin, rank),
                    earliest: begin,
                    sum: begin,
                    first_end: end,
                });
                continue;
            };
            meeting.ranks += 1;
            meeting.latest = meeting.latest.max((begin, rank));
            meeting.earliest = meeting.earliest.min(begin);
            meeting.sum += begin;
            meeting.first_end = meeting.first_end.min(end);
        }
    }

    /// With clocks that may be apart by `bound`.
    pub fn lateness(&self, ranks: usize, bound: u64) -> Lateness {
        let mut found = Lateness { last: vec![(0, 0); ranks], ..Lateness::default() };
        let all: Vec<&Meeting> = self.meetings.iter().filter(|m| m.ranks == self.ranks).collect();
        let sound = |m: &&&Meeting| m.latest.0 <= m.first_end.saturating_add(bound);
        let good: Vec<&&Meeting> = all.iter().filter(sound).collect();
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
        // Apart by no more than the clocks.
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
