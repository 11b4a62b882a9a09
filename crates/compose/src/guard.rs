//! Guards: detect whether the segments of a plan were freed.
//!
//! A plan holds addresses that were resolved when it was made. The guard keeps the memory of their
//! segments allocated, so a stale plan never touches unmapped memory. However, the bytes of a freed
//! segment may belong to another segment by now. Each performance therefore compares the number of
//! segments freed so far with the number at its last check, and looks up every segment again only
//! if that number has changed.
//!
//! **Invariant.** Every byte of a plan lies in a segment of its guard, or is recorded as outside.
//! Spans are followed to their end, because a joined run can cross the border of two segments.
#![warn(clippy::arithmetic_side_effects)]

use super::locate::{Located, Locator};
use portolan_base::error::{Result, fail};
use portolan_engine::memory::registry::SegmentId;
use portolan_engine::memory::segment::Segment;
use portolan_engine::runtime::Engine;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
pub struct Guard {
    /// `None` for a segment that was freed while the plan was made.
    segments: HashMap<SegmentId, Option<Arc<Segment>>>,
    /// Rank and address of the first recorded byte that lies in no segment.
    outside: Option<(usize, usize)>,
    /// Number of freed segments at the last successful check.
    freed: AtomicU64,
}

impl Guard {
    pub fn new(engine: &Engine) -> Guard {
        let freed = AtomicU64::new(engine.memory.freed());
        Guard { segments: HashMap::new(), outside: None, freed }
    }

    pub fn pin(&mut self, engine: &Engine, strided_block: &Located) {
        let live = || engine.memory.segment_by_id(strided_block.segment);
        self.segments.entry(strided_block.segment).or_insert_with(live);
    }

    pub fn pass_outside(&mut self, rank: usize, address: usize) {
        self.outside.get_or_insert((rank, address));
    }

    /// Adds the segments of all bytes of some spans (first address, one past the last) of `rank`.
    pub fn pin_spans(
        &mut self,
        engine: &Engine,
        rank: usize,
        spans: impl Iterator<Item = (usize, usize)>,
    ) {
        let mut locator = Locator::new(engine);
        let mut last = 0..0;
        for (mut at, end) in spans {
            while at < end {
                if !last.contains(&at) {
                    let Some(strided_block) = locator.find(rank, at) else {
                        self.pass_outside(rank, at);
                        break;
                    };
                    last = strided_block.span.clone();
                    self.pin(engine, strided_block);
                }
                at = last.end;
            }
        }
    }

    /// Fails with `State` if a segment of the guard was freed.
    #[inline]
    pub fn check(&self, engine: &Engine) -> Result<()> {
        let now = engine.memory.freed();
        if now == self.freed.load(Ordering::Relaxed) {
            Ok(())
        } else {
            self.find_freed(engine, now)
        }
    }

    #[cold]
    fn find_freed(&self, engine: &Engine, now: u64) -> Result<()> {
        // Segment numbers are never reused.
        let lives = |id: &SegmentId| engine.memory.segment_by_id(*id).is_some();
        if let Some(gone) = self.segments.keys().find(|id| !lives(id)) {
            fail!(
                State,
                "segment {} of its group, which the composition was mapped to, was freed; map the \
                 composition again, to memory that is allocated",
                gone.number
            );
        }
        self.freed.store(now, Ordering::Relaxed);
        Ok(())
    }

    /// Fails with `Address` if a byte lies in another segment, or in none.
    pub fn check_inside(&self, segments: &[Arc<Segment>]) -> Result<()> {
        if let Some((rank, address)) = self.outside {
            fail!(Address, "{address:#x} of rank {rank} lies in no segment of the composition");
        }
        let known = |id: &SegmentId| segments.iter().any(|segment| segment.id() == *id);
        if let Some(other) = self.segments.keys().find(|id| !known(id)) {
            fail!(
                Address,
                "the composition has addresses in segment {} of its group, which was not given to it",
                other.number
            );
        }
        Ok(())
    }
}
