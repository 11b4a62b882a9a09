//! Counters and mutexes that ranks share: which are hot, and how many ranks use them.
//!
//! A program may have millions of them. Each rank keeps a bounded number. If there are more, it
//! drops those with the least time, which are not hot.

use crate::model::{Activity, TraceSpan};
use portolan_trace_format::event::Place;
use portolan_trace_format::kinds::{Call, Cause, PathTaken};
use std::collections::{HashMap, HashSet};

/// Number of objects that a rank keeps. It drops objects when their number exceeds twice this.
const MOST: usize = 16 << 10;

/// A counter or a mutex, identified by its owner and its location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SharedObject {
    pub owner: u32,
    pub place: Place,
    /// True for a mutex, false for a word of memory.
    pub mutex: bool,
}

/// Use of one object. Times are nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Use {
    pub calls: u64,
    pub paths: [u64; PathTaken::ALL.len()],
    pub ns: u64,
    pub waited: u64,
    pub first: u64,
    pub last: u64,
    pub origins: HashSet<u32>,
    /// Longest call or wait: length, rank, start.
    pub longest: (u64, u32, u64),
    /// Most time that one rank spent here, and that rank.
    pub worst: (u64, u32),
}

impl Use {
    fn take(&mut self, span: &TraceSpan) {
        if self.calls == 0 && self.waited == 0 {
            (self.first, self.last) = (span.begin, span.end);
        }
        self.first = self.first.min(span.begin);
        self.last = self.last.max(span.end);
        self.longest = self.longest.max((span.length(), span.rank, span.begin));
        if matches!(span.what, Activity::Wait(_)) {
            self.waited += span.length();
        } else {
            self.calls += 1;
            self.paths[span.path as usize] += 1;
            self.ns += span.length();
        }
    }

    fn merge(&mut self, rank: u32, other: &Use) {
        if self.origins.is_empty() {
            (self.first, self.last) = (other.first, other.last);
        }
        self.calls += other.calls;
        self.paths.iter_mut().zip(other.paths).for_each(|(to, calls)| *to += calls);
        self.ns += other.ns;
        self.waited += other.waited;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.longest = self.longest.max(other.longest);
        self.origins.insert(rank);
        self.worst = self.worst.max((other.ns.max(other.waited), rank));
    }

    /// Returns the time of all calls without contention. `base` returns that of one call on a path.
    pub fn alone(&self, base: impl Fn(PathTaken) -> f64) -> f64 {
        PathTaken::ALL
            .iter()
            .zip(self.paths)
            .filter(|(_, n)| *n > 0)
            .map(|(path, n)| n as f64 * base(*path))
            .sum()
    }

    /// Returns the mean number of ranks that were in a call here at the same time.
    pub fn crowd(&self) -> f64 {
        self.ns.max(self.waited) as f64 / (self.last - self.first).max(1) as f64
    }
}

#[derive(Debug, Default)]
pub struct SharedObjects(pub HashMap<SharedObject, Use>);

impl SharedObjects {
    pub fn take(&mut self, span: &TraceSpan) {
        let mutex = match span.what {
            Activity::Call(Call::Rmw) => false,
            Activity::Call(Call::Lock) | Activity::Wait(Cause::Lock) => true,
            _ => return,
        };
        let (Some(owner), Some(place)) = (span.peer, span.place) else { return };
        self.0.entry(SharedObject { owner, place, mutex }).or_default().take(span);
        if self.0.len() > 2 * MOST {
            self.forget();
        }
    }

    fn forget(&mut self) {
        let mut times: Vec<u64> = self.0.values().map(|u| u.ns.max(u.waited)).collect();
        let at = times.len() - MOST;
        let least = *times.select_nth_unstable(at).1;
        // Any number of objects may share the least time.
        let more = self.0.values().filter(|u| u.ns.max(u.waited) > least).count();
        let mut equal = MOST - more;
        self.0.retain(|_, u| {
            let ns = u.ns.max(u.waited);
            let kept = ns > least || ns == least && equal > 0;
            equal -= usize::from(ns == least && kept);
            kept
        });
    }

    pub fn merge(&mut self, rank: u32, other: &SharedObjects) {
        for (object, used) in &other.0 {
            self.0.entry(*object).or_default().merge(rank, used);
        }
        if self.0.len() > 8 * MOST {
            self.forget();
        }
    }

    /// Returns the objects with the most time in calls or waits first.
    pub fn hottest(&self) -> Vec<(SharedObject, &Use)> {
        let mut all: Vec<(SharedObject, &Use)> = self.0.iter().map(|(o, u)| (*o, u)).collect();
        all.sort_by_key(|(object, u)| (std::cmp::Reverse(u.ns.max(u.waited)), *object));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::span;

    #[test]
    fn a_hot_counter_outlives_millions_of_cold_ones() {
        let mut objects = SharedObjects::default();
        let rmw = |offset, length| {
            let place = Some(Place { segment: Some(0), offset });
            let call = span(Activity::Call(Call::Rmw), 0, 0, length);
            TraceSpan { peer: Some(1), place, ..call }
        };
        for n in 0..200_000u64 {
            objects.take(&rmw(n * 8 + 8, 100 + n % 7));
            objects.take(&rmw(0, 200));
        }
        assert!(objects.0.len() <= 2 * MOST + 1);
        let mut all = SharedObjects::default();
        all.merge(0, &objects);
        all.merge(3, &objects);
        // Cold ones that all take the same time are dropped, and hot ones are kept.
        let mut equal = SharedObjects::default();
        (0..100).for_each(|_| equal.take(&rmw(0, 200)));
        (1..200_000).for_each(|n| equal.take(&rmw(n * 8, 100)));
        assert!((MOST..=2 * MOST).contains(&equal.0.len()));
        assert_eq!(equal.hottest()[0].1.calls, 100);
        let (object, used) = &all.hottest()[0];
        assert_eq!((object.place.offset, object.owner, object.mutex), (0, 1, false));
        assert_eq!((used.calls, used.origins.len()), (400_000, 2));
    }
}
