//! Sets of mutexes: how they are created and destroyed, and how a rank reaches each mutex.

use super::super::node_queue::{NodeFile, NodeQueue};
use crate::collective::group::Group;
use crate::collective::{self, Kind};
use crate::memory::registry::SegmentId;
use crate::memory::segment::{Purpose, Segment};
use crate::ops::Ops;
use crate::ops::traced::number_of;
use crate::path::lock_stripe;
use crate::path::mutex_service::MutexName;
use crate::path::mutex_service::state::{MutexState, state_bytes};
use crate::path::two_sided::wire::{RequestHeader, RequestKind};
use portolan_base::error::{Result, fail};
use portolan_base::trace::{Awaited, Call, CallInfo, Cause, PathTaken, Place, SegmentKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Debug)]
pub struct MutexSet {
    segment: Arc<Segment>,
    /// Bytes of the state of a mutex.
    each: usize,
    counts: Vec<usize>,
    places: Vec<OwnerMutexes>,
    held: Vec<AtomicU64>,
    live: AtomicBool,
}

#[derive(Debug)]
pub(super) struct OwnerMutexes {
    pub(super) world: usize,
    address: usize,
    /// Address of the owner's region here, or null, and the offset of the first mutex.
    region: *mut u8,
    offset: usize,
    queues: Option<NodeFile>,
    before: usize,
}

// SAFETY: the segment of the set keeps the mapping behind the pointer alive.
unsafe impl Send for OwnerMutexes {}
// SAFETY: the segment keeps the mapping alive, which changes only through atomics.
unsafe impl Sync for OwnerMutexes {}

pub(super) struct FoundMutex<'a> {
    pub(super) place: &'a OwnerMutexes,
    pub(super) name: MutexName,
    /// The holding thread of this rank (`super::thread_number`), possibly with [`BY_QUEUE`], or 0.
    pub(super) held: &'a AtomicU64,
    at: usize,
}

impl FoundMutex<'_> {
    #[inline]
    fn address(&self) -> usize {
        self.place.address + self.at
    }

    #[inline]
    fn offset(&self) -> usize {
        self.place.offset + self.at
    }

    #[inline]
    pub(super) fn queue(&self) -> Option<NodeQueue> {
        const KIND: u64 = 2;
        self.place.queues.map(|file| file.queue(self.place.world, self.address(), KIND))
    }

    /// Whether this rank changes the state itself, under its lock stripe, and sends no requests.
    #[inline]
    pub(super) fn is_mapped(&self) -> bool {
        !self.place.region.is_null()
    }

    pub(super) fn request(&self, kind: RequestKind) -> RequestHeader {
        let mut header = RequestHeader::new(kind, self.address());
        header.operand = self.name.operand();
        header
    }

    #[inline]
    pub(super) fn state(&self) -> (MutexState, lock_stripe::LockStripeGuard) {
        let region = self.place.region;
        // SAFETY: the set keeps its segment, and so the state, mapped.
        unsafe {
            let state = MutexState::at(region.wrapping_add(self.offset()));
            (state, lock_stripe::take(region, lock_stripe::of(self.offset())))
        }
    }

    fn place_in_traces(&self) -> Place {
        let id = SegmentId { group: self.name.group, number: self.name.set };
        Place { segment: Some(number_of(id)), offset: u64::from(self.name.index) }
    }

    pub(super) fn call_info(&self, call: Call) -> CallInfo {
        let path = if self.is_mapped() { PathTaken::Direct } else { PathTaken::Message };
        let call_info = CallInfo::new(call).to(self.place.world).by(path);
        call_info.at(Some(self.place_in_traces()))
    }

    pub(super) fn awaited(&self) -> Awaited {
        let place = Some(self.place_in_traces());
        Awaited { place, ..Awaited::of(Cause::Lock, self.place.world) }
    }
}

/// Flag in the number of a holding thread: the mutex came through the node's queue.
pub(super) const BY_QUEUE: u64 = 1 << 63;
/// Instead of a thread: a wait of this rank was interrupted, and a grant may still arrive.
pub(super) const INTERRUPTED: u64 = BY_QUEUE - 1;

impl MutexSet {
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    pub fn group(&self) -> &Arc<Group> {
        self.segment.group()
    }

    #[inline]
    pub(super) fn find(&self, index: usize, rank: usize) -> Result<FoundMutex<'_>> {
        if !self.live.load(Ordering::Acquire) {
            fail!(State, "the mutexes were destroyed");
        }
        let Some(place) = self.places.get(rank) else {
            fail!(Rank, "rank {rank} is outside the group of {} ranks", self.places.len());
        };
        if index >= self.counts[rank] {
            fail!(
                Argument,
                "mutex {index} of rank {rank}, which has {} mutexes",
                self.counts[rank]
            );
        }
        Ok(self.at(place, index))
    }

    #[inline]
    fn at<'a>(&'a self, place: &'a OwnerMutexes, index: usize) -> FoundMutex<'a> {
        let id = self.segment.id();
        let owner = place.world as u32;
        FoundMutex {
            place,
            name: MutexName { group: id.group, set: id.number, owner, index: index as u32 },
            held: &self.held[place.before + index],
            at: index * self.each,
        }
    }

    fn held(&self) -> Vec<FoundMutex<'_>> {
        let all = self.places.iter().zip(&self.counts);
        let all = all.flat_map(|(place, &count)| (0..count).map(move |i| self.at(place, i)));
        all.filter(|found| found.held.load(Ordering::Relaxed) != 0).collect()
    }
}

impl Ops {
    /// `count` is the number on this rank. Collective. Counts may differ. If `count` is an error on
    /// one rank, all ranks fail and none waits.
    pub fn create_mutexes(
        &self,
        group: &Arc<Group>,
        count: Result<usize>,
    ) -> Result<Arc<MutexSet>> {
        self.observed(
            || CallInfo::new(Call::Allocate),
            || collective::scope(Kind::CreateMutexes, 0, || self.make_mutexes(group, count)),
        )
    }

    fn make_mutexes(&self, group: &Arc<Group>, count: Result<usize>) -> Result<Arc<MutexSet>> {
        let each = state_bytes(self.size());
        // If a count is too large, the allocation fails on all ranks.
        let asked = count.map(|count| each.saturating_mul(count));
        let bytes = asked.as_ref().copied().unwrap_or(0);
        let segment = self.allocate_for(Purpose::Internal, group, asked)?;
        let base = segment.my_base();
        if !base.is_null() {
            // SAFETY: this rank's part has `bytes` bytes, which no rank uses before the barrier.
            unsafe { std::ptr::write_bytes(base, 0, bytes) };
        }
        self.barrier_of(group)?;
        let counts: Vec<usize> = segment.parts().map(|p| p.len() / each).collect();
        let mut before = 0;
        let mut places = Vec::new();
        for (rank, part) in segment.parts().enumerate() {
            let mut place = OwnerMutexes {
                world: group.members()[rank],
                address: part.address(),
                region: std::ptr::null_mut(),
                offset: 0,
                queues: None,
                before,
            };
            if !part.is_empty() {
                let hit = self.memory.registry.find(place.world, part.address(), part.len())?;
                (place.region, place.offset) = (hit.region(), hit.offset);
                place.queues = NodeFile::of(self, hit.arena());
            }
            places.push(place);
            before += counts[rank];
        }
        let held = (0..before).map(|_| AtomicU64::new(0)).collect();
        let mine = counts.get(group.rank()).copied().unwrap_or(0) as u64;
        let (number, ranks) = (number_of(segment.id()), group.size() as u64);
        self.observer().made(number, mine, ranks, SegmentKind::Mutexes);
        Ok(Arc::new(MutexSet { segment, each, counts, places, held, live: AtomicBool::new(true) }))
    }

    /// Collective. Fails with `State` if the set was destroyed before, or if this rank still holds
    /// a mutex of it. Other ranks succeed, and the set is destroyed in any case.
    pub fn destroy_mutexes(&self, set: &MutexSet) -> Result<()> {
        if !set.live.swap(false, Ordering::AcqRel) {
            fail!(State, "the mutexes were destroyed already");
        }
        let number = set.segment.id().number;
        self.observed(
            || CallInfo::new(Call::Free),
            || collective::scope(Kind::FreeMutexes, number, || self.unmake_mutexes(set)),
        )
    }

    fn unmake_mutexes(&self, set: &MutexSet) -> Result<()> {
        let held = set.held();
        self.barrier_of(set.group())?;
        // The state of a later set may have the same addresses, so the queues must be free.
        for found in held.iter().filter(|f| f.held.load(Ordering::Relaxed) & BY_QUEUE != 0) {
            if let Some(queue) = found.queue() {
                queue.leave();
            }
        }
        self.release(set.segment.clone())?;
        let held = held.len();
        if held > 0 {
            fail!(State, "{held} mutexes of the set were destroyed while this rank held them");
        }
        Ok(())
    }
}
