//! Regions of the program: their number, duration, and time in waits.

use super::largest::Largest;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Maximum number of regions that the page contains individually.
const MOST: usize = 12_000;
/// Further names are merged. A program that creates a name for each step exceeds this.
const MOST_NAMES: usize = 500;

/// A single execution of a region. Times are nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RegionExecution {
    pub length: u64,
    pub begin: u64,
    pub rank: u32,
    /// Index in [`ProgramRegions::names`].
    pub name: u32,
}

/// Totals of all regions with the same name. Times are nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct RegionStats {
    pub count: u64,
    pub ns: u64,
    pub waited: u64,
    /// Time by rank.
    pub ranks: BTreeMap<u32, u64>,
}

#[derive(Debug, Default)]
pub struct ProgramRegions {
    pub names: Vec<String>,
    numbers: HashMap<String, u32>,
    pub stats: Vec<RegionStats>,
    longest: Largest<RegionExecution>,
    pub marks: Vec<(u32, u64, String)>,
}

/// The open regions of one rank's threads.
#[derive(Debug, Default)]
pub struct Open {
    threads: HashMap<u32, Vec<(u64, String, u64)>>,
    /// Time that each thread has waited so far.
    waited: HashMap<u32, u64>,
    last: u64,
    done: Vec<(String, u64, u64, u64)>,
    pub marks: Vec<(u64, String)>,
}

impl Open {
    pub fn waits(&mut self, thread: u32, own: u64) {
        *self.waited.entry(thread).or_default() += own;
    }

    pub fn begin(&mut self, time: u64, thread: u32, name: &str) {
        let before = self.waited.get(&thread).copied().unwrap_or(0);
        self.threads.entry(thread).or_default().push((time, name.to_string(), before));
        self.last = self.last.max(time);
    }

    pub fn end(&mut self, time: u64, thread: u32) {
        // The start of the region was dropped or is in a damaged block.
        let Some((begin, name, before)) = self.threads.entry(thread).or_default().pop() else {
            return;
        };
        let waited = self.waited.get(&thread).copied().unwrap_or(0) - before;
        self.done.push((name, begin, time.max(begin), waited));
        self.last = self.last.max(time);
    }

    pub fn mark(&mut self, time: u64, text: &str) {
        if self.marks.len() < 200 {
            self.marks.push((time, text.to_string()));
        }
    }

    /// Ends the regions that are open at the end of the file, for example if the rank was killed.
    pub fn close(&mut self, end: u64) {
        let threads: Vec<u32> = self.threads.keys().copied().collect();
        for thread in threads {
            while self.threads.get(&thread).is_some_and(|open| !open.is_empty()) {
                self.end(end.max(self.last), thread);
            }
        }
    }

    /// Removes and returns the finished regions, which bounds the memory that they take.
    pub fn drain(&mut self) -> Vec<(String, u64, u64, u64)> {
        std::mem::take(&mut self.done)
    }

    pub fn is_full(&self) -> bool {
        self.done.len() >= 4096
    }
}

impl ProgramRegions {
    pub fn take(&mut self, rank: u32, done: Vec<(String, u64, u64, u64)>) {
        for (name, begin, end, waited) in done {
            let number = self.number(name);
            let stats = &mut self.stats[number as usize];
            stats.count += 1;
            stats.ns += end - begin;
            stats.waited += waited;
            *stats.ranks.entry(rank).or_default() += end - begin;
            let one = RegionExecution { length: end - begin, begin, rank, name: number };
            self.longest.take(one, MOST);
        }
    }

    fn number(&mut self, name: String) -> u32 {
        let name = if self.names.len() >= MOST_NAMES && !self.numbers.contains_key(&name) {
            "other regions".to_string()
        } else {
            name
        };
        if let Some(number) = self.numbers.get(&name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        self.stats.push(RegionStats::default());
        number
    }

    /// Returns the longest regions, sorted by rank and start, enclosing ones first.
    pub fn longest(&self) -> Vec<RegionExecution> {
        let mut all: Vec<RegionExecution> = self.longest.iter().copied().collect();
        all.sort_by_key(|r| (r.rank, r.begin, Reverse(r.length)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_nest_and_have_their_waiting() {
        let (mut open, mut regions) = (Open::default(), ProgramRegions::default());
        open.waits(0, 5);
        open.begin(10, 0, "outer");
        open.begin(20, 0, "inner");
        open.waits(0, 7);
        open.waits(1, 100);
        open.end(30, 0);
        open.end(40, 9); // a thread without an open region
        open.close(50);
        regions.take(3, open.drain());
        let of = |name: &str| {
            let at = regions.names.iter().position(|n| n == name).expect("it is there");
            let stats = &regions.stats[at];
            (stats.count, stats.ns, stats.waited, stats.ranks[&3])
        };
        assert_eq!(of("inner"), (1, 10, 7, 10));
        assert_eq!(of("outer"), (1, 40, 7, 40));
        assert_eq!(regions.longest().len(), 2);
    }
}
