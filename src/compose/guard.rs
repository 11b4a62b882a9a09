//! The segments that a plan was made for, and whether they still live.
//!
//! A plan holds addresses that were resolved when it was made. The segments that they
//! lie in are kept, so that a stale plan could never touch memory that is unmapped;
//! but a freed segment's bytes may belong to another one by now. Each performance
//! therefore compares the number of segments that were freed so far, and only where
//! it has changed looks every segment up again.
//!
//! **Invariant.** Every byte of a plan lies in a segment of its guard, or is noted as
//! outside: spans are followed to their end, because runs join across the border of two
//! segments that lie side by side.
#![warn(clippy::arithmetic_side_effects)]

use super::locate::{Located, Locator};
use crate::error::{Result, fail};
use crate::memory::registry::SegmentId;
use crate::memory::segment::Segment;
use crate::runtime::Engine;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The segments that a plan touches.
#[derive(Debug)]
pub struct Guard {
    /// The segments; `None` for one that was freed while the plan was made.
    segments: HashMap<SegmentId, Option<Arc<Segment>>>,
    /// Rank and address of a byte in no segment.
    outside: Option<(usize, usize)>,
    /// How many segments had been freed when all of these were known to live.
    freed: AtomicU64,
}

impl Guard {
    /// Watches nothing yet.
    pub fn new(engine: &Engine) -> Guard {
        let freed = AtomicU64::new(engine.memory.freed());
        Guard { segments: HashMap::new(), outside: None, freed }
    }

    /// Watches the segment of a piece.
    pub fn pin(&mut self, engine: &Engine, piece: &Located) {
        let live = || engine.memory.segment_by_id(piece.segment);
        self.segments.entry(piece.segment).or_insert_with(live);
    }

    /// Notes a byte that is in no segment.
    pub fn pass_outside(&mut self, rank: usize, address: usize) {
        self.outside.get_or_insert((rank, address));
    }

    /// Watches the segments of all bytes of some spans of `rank`: from the first address to
    /// the one behind the last.
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
                    let Some(piece) = locator.find(rank, at) else {
                        self.pass_outside(rank, at);
                        break;
                    };
                    last = piece.span.clone();
                    self.pin(engine, piece);
                }
                at = last.end;
            }
        }
    }

    /// # Errors
    /// `State` where a segment was freed.
    #[inline]
    pub fn check(&self, engine: &Engine) -> Result<()> {
        let now = engine.memory.freed();
        if now == self.freed.load(Ordering::Relaxed) { Ok(()) } else { self.look(engine, now) }
    }

    #[cold]
    fn look(&self, engine: &Engine, now: u64) -> Result<()> {
        // Numbers of segments are never used again.
        let lives = |id: &SegmentId| engine.memory.segment_by_id(*id).is_some();
        if let Some(gone) = self.segments.keys().find(|id| !lives(id)) {
            fail!(
                State,
                "segment {} of its group, which the composition was mapped to, was freed; map the \
                 composition again, to memory that lives",
                gone.number
            );
        }
        self.freed.store(now, Ordering::Relaxed);
        Ok(())
    }

    /// Checks that every byte lies in one of these segments.
    ///
    /// # Errors
    /// `Address` where one does not.
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
