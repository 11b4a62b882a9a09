//! The largest values of many, in bounded memory.

use crate::model::TraceSpan;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Debug)]
pub struct Largest<T>(BinaryHeap<Reverse<T>>);

impl<T: Ord> Default for Largest<T> {
    fn default() -> Largest<T> {
        Largest(BinaryHeap::new())
    }
}

impl<T: Ord> Largest<T> {
    /// Adds a value if it is one of the `most` largest.
    pub fn take(&mut self, value: T, most: usize) {
        if self.0.len() < most {
            self.0.push(Reverse(value));
        } else if self.0.peek().is_some_and(|least| least.0 < value) {
            self.0.pop();
            self.0.push(Reverse(value));
        }
    }

    pub fn merge(&mut self, other: Largest<T>, most: usize) {
        other.0.into_iter().for_each(|Reverse(value)| self.take(value, most));
    }

    /// Returns the values in no order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|Reverse(value)| value)
    }
}

/// A span, ordered by its length, and then by rank and start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByLength(pub TraceSpan);

impl Ord for ByLength {
    fn cmp(&self, other: &ByLength) -> std::cmp::Ordering {
        let key = |s: &TraceSpan| (s.length(), s.rank, s.begin, s.thread, s.end, s.what);
        key(&self.0).cmp(&key(&other.0))
    }
}

impl PartialOrd for ByLength {
    fn partial_cmp(&self, other: &ByLength) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
