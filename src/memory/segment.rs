//! All memory of the runtime: the live segments, and their freeing.
//!
//! How segments are allocated is told in [`super::allocation`]. Freeing: operations on the segment
//! are complete (the caller fences), one allgather agrees on which segment it is, and the pieces
//! return.

use super::holdings::Holdings;
use super::local::LocalMemory;
pub use super::part::{Purpose, Segment};
use super::registry::{Registry, SegmentId};
use super::slab::{ALIGN, Policy};
use crate::error::{Result, fail};
use crate::group::Group;
use crate::topology::Topology;
use crate::wait::Progress;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// All memory of the runtime.
#[derive(Debug)]
pub struct Memory {
    /// Addresses of all ranks.
    pub registry: Registry,
    /// Memory of this rank alone.
    pub local: LocalMemory,
    pub(super) policy: Policy,
    pub(super) topology: Arc<Topology>,
    pub(super) segments: Mutex<HashMap<SegmentId, Arc<Segment>>>,
    /// By the key of the group.
    holdings: Mutex<HashMap<u64, Arc<Holdings>>>,
    /// How many segments were freed.
    freed: AtomicU64,
}

/// What a piece of `len` bytes takes of its slice.
pub(super) fn rounded(len: usize) -> usize {
    len.next_multiple_of(ALIGN)
}

impl Memory {
    /// No segments yet.
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

    /// How slabs are made.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The number of live segments.
    pub fn live_segments(&self) -> usize {
        self.segments.lock().len()
    }

    /// [`Memory::allocate_many`] of one segment.
    ///
    /// # Errors
    /// As there.
    pub fn allocate(
        &self,
        group: &Arc<Group>,
        asked: Result<usize>,
        purpose: Purpose,
        progress: &impl Progress,
    ) -> Result<Arc<Segment>> {
        let len = asked.as_ref().copied().unwrap_or(0);
        let asked = asked.map(|_| std::slice::from_ref(&len));
        let mut made = self.allocate_many(group, asked, purpose, progress)?;
        match made.pop() {
            Some(segment) => Ok(segment),
            None => fail!(Internal, "a segment was asked for, and none was made"),
        }
    }

    /// The live segment that begins at `address` on this rank.
    pub fn segment_at(&self, address: usize) -> Option<Arc<Segment>> {
        let id = self.registry.segment_at(self.topology.me(), address)?;
        self.segments.lock().get(&id).cloned()
    }

    /// Which segment the ranks of `group` mean to free: the one that they all
    /// name, where ranks without a piece name none. Collective, and a barrier.
    ///
    /// # Errors
    /// `Address`, on all ranks, where one named an address that begins no
    /// segment of the group, two named different segments, or one with a piece named none.
    pub fn agree_on(
        &self,
        group: &Arc<Group>,
        mine: Option<usize>,
        progress: &impl Progress,
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
                "{of} on rank {} begins no live segment of the group; nothing was freed",
                group.members()[rank]
            );
        }
        let Some(&number) = all.iter().find(|&&n| n != NONE) else {
            return Ok(None);
        };
        if let Some(rank) = all.iter().position(|&n| n != NONE && n != number) {
            fail!(
                Address,
                "rank {} frees another segment than the ranks before it; nothing was freed",
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
                "rank {} has bytes of the segment that others free, but names no address; nothing \
                 was freed",
                group.members()[rank]
            );
        }
        Ok(found)
    }

    /// Frees a segment that all ranks of its group have agreed on and fenced.
    /// Collective in effect: all ranks must do it, in the same order.
    pub fn release(&self, segment: Arc<Segment>) -> Result<()> {
        let group = segment.group.clone();
        if self.segments.lock().remove(&segment.id).is_none() {
            fail!(State, "the segment was freed already");
        }
        self.registry.remove_segment(&segment);
        self.freed.fetch_add(1, Ordering::Release);
        let mine = segment.places.at(group.rank());
        if let Some(slab) = segment.slab(&mine) {
            slab.own.give_back(mine.offset, rounded(mine.len));
        }
        for slab in &segment.slabs {
            slab.live.fetch_sub(1, Ordering::Relaxed);
        }
        drop(segment);
        let holdings = self.of(&group);
        holdings.end_segment();
        self.trim(&group, &holdings)
    }

    /// A live segment.
    pub fn segment_by_id(&self, id: SegmentId) -> Option<Arc<Segment>> {
        self.segments.lock().get(&id).cloned()
    }

    /// How many segments were freed so far: callers that keep addresses check whether it has
    /// changed.
    #[inline]
    pub fn freed(&self) -> u64 {
        self.freed.load(Ordering::Acquire)
    }

    /// What a group holds.
    pub(super) fn of(&self, group: &Group) -> Arc<Holdings> {
        self.holdings.lock().entry(group.key()).or_default().clone()
    }

    /// Whether segments of a group live.
    pub fn any_live_of(&self, group: &Group) -> bool {
        self.of(group).live_segments() > 0
    }

    /// Whether a group has windows.
    pub fn has_windows(&self, group: &Group) -> bool {
        self.of(group).slabs.lock().iter().any(|slab| slab.window().is_some())
    }

    /// Unmakes empty slabs beyond what the group keeps.
    fn trim(&self, group: &Group, holdings: &Holdings) -> Result<()> {
        for slab in holdings.take_empty(!group.is_freed() || holdings.live_segments() > 0) {
            self.registry.remove_slab(&slab);
            slab.close()?;
        }
        Ok(())
    }

    /// Unmakes all slabs of a group in which nothing lives. Collective.
    pub fn close_group(&self, group: &Arc<Group>) -> Result<()> {
        let holdings = self.holdings.lock().remove(&group.key()).unwrap_or_default();
        for slab in std::mem::take(&mut *holdings.slabs.lock()) {
            self.registry.remove_slab(&slab);
            slab.close()?;
        }
        Ok(())
    }

    /// Takes every segment of a group out, for closing down.
    pub fn segments_of(&self, group: &Group) -> Vec<Arc<Segment>> {
        let mut list: Vec<_> =
            self.segments.lock().values().filter(|s| s.id.group == group.key()).cloned().collect();
        list.sort_by_key(|s| s.id.number);
        list
    }

    /// Bytes that this rank's slices of a group hold.
    pub fn committed(&self, group: &Group) -> usize {
        self.of(group).slabs.lock().iter().map(|s| s.own.committed()).sum()
    }
}
