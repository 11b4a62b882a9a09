//! In which segment an address lies.
//!
//! The last answer for each rank is tried first, so addresses that come in order
//! cost one comparison.

use crate::memory::registry::SegmentId;
use crate::runtime::Engine;
use std::collections::HashMap;
use std::ops::Range;

/// A rank's piece of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// Its segment.
    pub segment: SegmentId,
    /// Its addresses at the rank.
    pub span: Range<usize>,
}

/// Finds pieces, and remembers the last one of each rank.
#[derive(Debug)]
pub(crate) struct Locator<'e> {
    engine: &'e Engine,
    last: HashMap<usize, Located>,
}

impl<'e> Locator<'e> {
    /// Knows nothing yet.
    pub(crate) fn new(engine: &'e Engine) -> Locator<'e> {
        Locator { engine, last: HashMap::new() }
    }

    /// The piece of `rank` in which the byte at `address` lies.
    pub(crate) fn find(&mut self, rank: usize, address: usize) -> Option<&Located> {
        let known = self.last.get(&rank).is_some_and(|l| l.span.contains(&address));
        if !known {
            let (segment, span) = self.engine.memory.registry.locate(rank, address)?;
            if !span.contains(&address) {
                return None; // just behind it
            }
            self.last.insert(rank, Located { segment, span });
        }
        self.last.get(&rank)
    }

    /// Whether all bytes from `first` to `end` lie in one piece of `rank`.
    pub(crate) fn whole(&mut self, rank: usize, first: usize, end: usize) -> bool {
        self.find(rank, first).is_some_and(|l| end <= l.span.end)
    }
}
