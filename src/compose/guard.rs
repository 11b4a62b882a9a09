//! Whether the segments that a plan was made for still live.
//!
//! A plan holds addresses that were resolved when it was made. The slabs that they
//! lie in are kept, so that a stale plan could never touch memory that is unmapped;
//! but a freed segment's bytes may belong to another one by now. Each performance
//! therefore compares the number of segments that were freed so far, and only where
//! it has changed looks every segment up again.

use super::locate::{Located, Locator};
use crate::error::{Result, fail};
use crate::memory::registry::SegmentId;
use crate::memory::slab::Slab;
use crate::runtime::Engine;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A piece of a segment that a plan touches.
#[derive(Debug)]
struct Pin {
    rank: usize,
    start: usize,
    segment: SegmentId,
    _slab: Arc<Slab>,
}

/// The pieces that a plan touches.
#[derive(Debug)]
pub struct Guard {
    pins: Vec<Pin>,
    known: HashSet<(usize, usize)>,
    /// How many segments had been freed when all pieces were known to live.
    freed: AtomicU64,
}

impl Guard {
    /// Watches nothing yet.
    pub fn new(engine: &Engine) -> Guard {
        let freed = AtomicU64::new(engine.memory.freed());
        Guard { pins: Vec::new(), known: HashSet::new(), freed }
    }

    /// Watches a piece of a rank.
    pub fn pin(&mut self, engine: &Engine, rank: usize, piece: &Located) {
        if !self.known.insert((rank, piece.span.start)) {
            return;
        }
        if let Some(hit) = engine.memory.registry.lookup(rank, piece.span.start, 1) {
            self.pins.push(Pin {
                rank,
                start: piece.span.start,
                segment: piece.segment,
                _slab: hit.slab().clone(),
            });
        }
    }

    /// Watches the pieces in which addresses of this rank lie; those outside of
    /// segments are the caller's.
    pub fn pin_own(&mut self, engine: &Engine, addresses: impl Iterator<Item = usize>) {
        let me = engine.rank();
        let mut locator = Locator::new(engine);
        let mut last = 0..0;
        for at in addresses {
            if last.contains(&at) {
                continue;
            }
            if let Some(piece) = locator.find(me, at) {
                last = piece.span.clone();
                self.pin(engine, me, piece);
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
        for pin in &self.pins {
            if engine.memory.registry.segment_at(pin.rank, pin.start) != Some(pin.segment) {
                fail!(
                    State,
                    "the segment at {:#x} of rank {}, which the composition was mapped to, was \
                     freed; map the composition again, to memory that lives",
                    pin.start,
                    pin.rank
                );
            }
        }
        self.freed.store(now, Ordering::Relaxed);
        Ok(())
    }
}
