//! Look-up of the segment that contains an address. Tries the last result for each rank first:
//! ascending addresses mostly cost one comparison.

use portolan_engine::memory::registry::SegmentId;
use portolan_engine::runtime::Engine;
use std::collections::HashMap;
use std::ops::Range;

/// The part of a segment at one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    pub segment: SegmentId,
    pub span: Range<usize>,
}

#[derive(Debug)]
pub(crate) struct Locator<'e> {
    engine: &'e Engine,
    last: HashMap<usize, Located>,
}

impl<'e> Locator<'e> {
    pub fn new(engine: &'e Engine) -> Locator<'e> {
        Locator { engine, last: HashMap::new() }
    }

    pub fn find(&mut self, rank: usize, address: usize) -> Option<&Located> {
        let known = self.last.get(&rank).is_some_and(|l| l.span.contains(&address));
        if !known {
            let (segment, span) = self.engine.memory.registry.locate(rank, address)?;
            if !span.contains(&address) {
                return None; // one past the end
            }
            self.last.insert(rank, Located { segment, span });
        }
        self.last.get(&rank)
    }

    pub fn whole(&mut self, rank: usize, first: usize, end: usize) -> bool {
        self.find(rank, first).is_some_and(|l| end <= l.span.end)
    }
}
