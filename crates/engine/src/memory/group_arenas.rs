//! The arenas of a group, and the numbering of its arenas and segments. They are found by the key
//! of the group, because [`Group`] knows nothing about memory. The ranks of a group create, fill
//! and remove arenas in the same order, so that their numbers agree.

use super::arena::{Arena, Neighbours};
use crate::collective::group::Group;
use crate::topology::Topology;
use parking_lot::Mutex;
use portolan_base::error::{Result, fail};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

#[derive(Debug, Default)]
pub struct GroupArenas {
    pub arenas: Mutex<Vec<Arc<Arena>>>,
    next_segment: AtomicU64,
    next_arena: AtomicU32,
    neighbours: OnceLock<Neighbours>,
}

impl GroupArenas {
    pub(super) fn neighbours(&self, group: &Group, topology: &Topology) -> &Neighbours {
        self.neighbours.get_or_init(|| Neighbours::new(group, topology))
    }

    pub(super) fn next_arena(&self) -> u32 {
        self.next_arena.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn next_segment(&self) -> u64 {
        self.next_segment.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the arena that another rank has named by number, or an `Internal` error.
    pub fn numbered(&self, number: u64) -> Result<Arc<Arena>> {
        match self.arenas.lock().iter().find(|s| u64::from(s.number()) == number) {
            Some(arena) => Ok(arena.clone()),
            None => fail!(
                Internal,
                "another rank refers to arena {number} of the group, which this rank does not \
                 have: the ranks of the group did not allocate and free in the same order"
            ),
        }
    }

    /// Returns the bytes of reserved memory on this rank that no segment uses.
    pub(super) fn unused(&self) -> usize {
        self.arenas.lock().iter().map(|arena| arena.own.unused()).sum()
    }

    /// Leaves those whose longest regions have at most `keep` bytes in all. All ranks decide the
    /// same.
    pub(super) fn take_empty(&self, keep: usize) -> Vec<Arc<Arena>> {
        let mut kept = 0;
        let mut gone = Vec::new();
        self.arenas.lock().retain(|arena| {
            if arena.live.load(Ordering::Relaxed) > 0 {
                return true;
            }
            let widest = arena.widest();
            if kept + widest <= keep {
                kept += widest;
                return true;
            }
            gone.push(arena.clone());
            false
        });
        gone
    }
}
