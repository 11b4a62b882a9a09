//! All memory of the runtime: the live segments, and how they are freed. To free a segment, the
//! caller first fences it so that all operations on it are complete. One allgather then agrees on
//! the segment, and each rank frees its block.

use super::arena::{ALIGN, Policy};
use super::group_arenas::GroupArenas;
use super::local::LocalMemory;
pub use super::part::{Purpose, Segment};
use super::registry::{Registry, SegmentId};
use crate::collective::group::Group;
use crate::topology::Topology;
use parking_lot::Mutex;
use portolan_base::error::{Result, fail};
use portolan_base::wait::Progress;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
pub struct Memory {
    pub registry: Registry,
    pub local: LocalMemory,
    pub(super) policy: Policy,
    pub(super) topology: Arc<Topology>,
    pub(super) segments: Mutex<HashMap<SegmentId, Arc<Segment>>>,
    holdings: Mutex<HashMap<u64, Arc<GroupArenas>>>,
    freed: AtomicU64,
}

pub(super) fn rounded(len: usize) -> usize {
    len.next_multiple_of(ALIGN)
}

impl Memory {
    pub fn new(policy: Policy, topology: Arc<Topology>) -> Memory {
        Memory {
            registry: Registry::new(topology.size()),
            local: LocalMemory::default(),
            policy,
            topology,
            segments: Mutex::default(),
            holdings: Mutex::default(),
            freed: AtomicU64::new(0),
        }
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    pub fn live_segments(&self) -> usize {
        self.segments.lock().len()
    }

    pub fn segment_at(&self, address: usize) -> Option<Arc<Segment>> {
        let id = self.registry.segment_at(self.topology.me(), address)?;
        self.segments.lock().get(&id).cloned()
    }

    /// Returns the segment that the ranks of `group` want to free. Each rank with a part of it
    /// passes the part's address. Returns `None` if all pass `None`. Collective, and a barrier.
    /// Fails on all ranks with `Address` if an address is not the start of a segment of the group,
    /// if two ranks name different segments, or if a rank with a part passes `None`.
    pub fn agree_on(
        &self,
        group: &Arc<Group>,
        mine: Option<usize>,
        progress: &dyn Progress,
    ) -> Result<Option<Arc<Segment>>> {
        const NONE: u64 = u64::MAX;
        const BAD: u64 = u64::MAX - 1;
        let number = match mine {
            None => NONE,
            Some(address) => match self.registry.segment_at(self.topology.me(), address) {
                Some(id) if id.group == group.key() => id.number,
                _ => BAD,
            },
        };
        let all = group.allgather(progress, &number)?;
        if let Some(rank) = all.iter().position(|&n| n == BAD) {
            let of = if rank == group.rank() {
                format!("{:#x}", mine.unwrap_or(0))
            } else {
                "the address given".into()
            };
            fail!(
                Address,
                "{of} on rank {} is not the start of a live segment of the group; nothing was freed",
                group.members()[rank]
            );
        }
        let Some(&number) = all.iter().find(|&&n| n != NONE) else {
            return Ok(None);
        };
        if let Some(rank) = all.iter().position(|&n| n != NONE && n != number) {
            fail!(
                Address,
                "rank {} frees a different segment from the ranks before it; nothing was freed",
                group.members()[rank]
            );
        }
        let found = self.segments.lock().get(&SegmentId { group: group.key(), number }).cloned();
        let silent = |segment: &Arc<Segment>| {
            let mut ranks = all.iter().enumerate();
            ranks.position(|(rank, &n)| n == NONE && segment.len_at(rank) > 0)
        };
        if let Some(rank) = found.as_ref().and_then(silent) {
            fail!(
                Address,
                "rank {} has bytes of the segment that other ranks free, but passed no address; \
                 nothing was freed",
                group.members()[rank]
            );
        }
        Ok(found)
    }

    /// Frees a segment that all ranks of its group have agreed on and fenced. All of them free
    /// segments in the same order. Fails with `State` if the segment was freed already, and with
    /// `Mpi` if a window cannot be freed.
    pub fn release(&self, segment: Arc<Segment>) -> Result<()> {
        let group = segment.group.clone();
        if self.segments.lock().remove(&segment.id).is_none() {
            fail!(State, "the segment was freed already");
        }
        self.registry.remove_segment(&segment);
        self.freed.fetch_add(1, Ordering::Release);
        let mine = segment.places.at(group.rank());
        if let Some(arena) = segment.arena(&mine) {
            arena.own.give_back(mine.offset, rounded(mine.len));
            if self.of(&group).unused() > self.policy.keep_bytes {
                arena.own.trim();
            }
        }
        for arena in &segment.arenas {
            arena.live.fetch_sub(1, Ordering::Relaxed);
        }
        drop(segment);
        self.trim(&group, &self.of(&group))
    }

    pub fn segment_by_id(&self, id: SegmentId) -> Option<Arc<Segment>> {
        self.segments.lock().get(&id).cloned()
    }

    /// Number of segments freed so far. Callers that cache addresses compare it.
    #[inline]
    pub fn freed(&self) -> u64 {
        self.freed.load(Ordering::Acquire)
    }

    pub fn of(&self, group: &Group) -> Arc<GroupArenas> {
        self.holdings.lock().entry(group.key()).or_default().clone()
    }

    pub fn any_live_of(&self, group: &Group) -> bool {
        self.segments.lock().keys().any(|id| id.group == group.key())
    }

    pub fn has_windows(&self, group: &Group) -> bool {
        self.of(group).arenas.lock().iter().any(|arena| arena.window().is_some())
    }

    fn trim(&self, group: &Group, holdings: &GroupArenas) -> Result<()> {
        let is_over = group.is_freed() && !self.any_live_of(group);
        for arena in holdings.take_empty(if is_over { 0 } else { self.policy.keep_bytes }) {
            self.registry.remove_arena(&arena);
            arena.close()?;
        }
        Ok(())
    }

    /// Releases the memory that this rank keeps, of all groups. The arenas stay.
    pub(super) fn release_unused(&self) {
        for holdings in self.holdings.lock().values() {
            holdings.arenas.lock().iter().for_each(|arena| arena.own.trim());
        }
    }

    /// Removes all arenas of a group, which must be empty. Collective.
    pub fn close_group(&self, group: &Arc<Group>) -> Result<()> {
        let holdings = self.holdings.lock().remove(&group.key()).unwrap_or_default();
        for arena in std::mem::take(&mut *holdings.arenas.lock()) {
            self.registry.remove_arena(&arena);
            arena.close()?;
        }
        Ok(())
    }

    /// Returns the live segments of a group by number, the order in which all ranks free them.
    pub fn segments_of(&self, group: &Group) -> Vec<Arc<Segment>> {
        let mut list: Vec<_> =
            self.segments.lock().values().filter(|s| s.id.group == group.key()).cloned().collect();
        list.sort_by_key(|s| s.id.number);
        list
    }

    pub fn committed(&self, group: &Group) -> usize {
        self.of(group).arenas.lock().iter().map(|s| s.own.committed()).sum()
    }
}
