//! What a group holds: the slabs that its segments are cut from, and their numbers.
//!
//! Kept by the group's key, for groups know nothing of memory. The ranks of a group make,
//! fill and unmake slabs in the same order, so that their numbers agree.

use super::slab::{KEEP_EMPTY_BYTES, Neighbours, Slab};
use crate::error::{Result, fail};
use crate::group::Group;
use crate::topology::Topology;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The slabs of a group, and how many segments live.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    /// In the order in which they were made.
    pub slabs: Mutex<Vec<Arc<Slab>>>,
    next_segment: AtomicU64,
    next_slab: AtomicU32,
    live_segments: AtomicUsize,
    neighbours: OnceLock<Neighbours>,
}

impl Holdings {
    /// The ranks of the group on this rank's node.
    pub(super) fn neighbours(&self, group: &Group, topology: &Topology) -> &Neighbours {
        self.neighbours.get_or_init(|| Neighbours::new(group, topology))
    }

    /// The number of the next slab.
    pub(super) fn next_slab(&self) -> u32 {
        self.next_slab.fetch_add(1, Ordering::Relaxed)
    }

    /// A segment begins to live; its number.
    pub(super) fn begin_segment(&self) -> u64 {
        self.live_segments.fetch_add(1, Ordering::Relaxed);
        self.next_segment.fetch_add(1, Ordering::Relaxed)
    }

    /// A segment is freed.
    pub(super) fn end_segment(&self) {
        self.live_segments.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many segments live.
    pub(super) fn live_segments(&self) -> usize {
        self.live_segments.load(Ordering::Relaxed)
    }

    /// The slab of a number.
    ///
    /// # Errors
    /// `Internal` where this rank has none of that number, which others name.
    pub(super) fn numbered(&self, number: u64) -> Result<Arc<Slab>> {
        match self.slabs.lock().iter().find(|s| u64::from(s.number()) == number) {
            Some(slab) => Ok(slab.clone()),
            None => fail!(
                Internal,
                "another rank names slab {number} of the group, which this rank does not hold: \
                 the ranks of the group have not allocated and freed in the same order"
            ),
        }
    }

    /// Takes out slabs in which no segment lives, as far as they are not kept for the next
    /// one. Every rank decides the same: it depends on capacities and counts that all know.
    pub(super) fn take_empty(&self, keep: bool) -> Vec<Arc<Slab>> {
        let mut kept = 0;
        let mut gone = Vec::new();
        self.slabs.lock().retain(|slab| {
            if slab.live.load(Ordering::Relaxed) > 0 {
                return true;
            }
            let widest = slab.widest();
            if keep && kept + widest <= KEEP_EMPTY_BYTES {
                kept += widest;
                return true;
            }
            gone.push(slab.clone());
            false
        });
        gone
    }
}
