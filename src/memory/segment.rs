//! Collective allocation and freeing of segments.
//!
//! Allocation: every rank cuts its piece from a slab of the group that has room
//! and tells the others (one allgather). Where some rank has no room, all make a
//! new slab together and the ranks without a piece cut it there (a second
//! allgather). Freeing: operations on the segment are complete (the caller
//! fences), one allgather agrees on which segment it is, and the pieces return.
//!
//! A failure on one rank is a failure on all, with nothing changed on any.

use super::holdings::Holdings;
use super::local::LocalMemory;
pub(crate) use super::part::Part;
pub use super::part::Segment;
use super::piece_index::Piece;
use super::registry::{Registry, SegmentId};
use super::slab::{ALIGN, Policy, Slab, Slice};
use crate::error::{Error, ErrorKind, Result, fail};
use crate::group::Group;
use crate::shm;
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
    policy: Policy,
    topology: Arc<Topology>,
    segments: Mutex<HashMap<SegmentId, Arc<Segment>>>,
    /// By the key of the group.
    holdings: Mutex<HashMap<u64, Arc<Holdings>>>,
    /// How many segments were freed.
    freed: AtomicU64,
}

/// What a rank sends to the others about its piece.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Cut {
    asked: u64,
    /// Slab number in the group, [`NEED`] or [`FAILED`].
    slab: u64,
    offset: u64,
    /// Bytes free, where the cut failed or there may be too few.
    free: u64,
}

const NEED: u64 = u64::MAX;
const FAILED: u64 = u64::MAX - 1;
/// The rank's arguments were bad; [`Cut::free`] is the code of the error's class.
const REFUSED: u64 = u64::MAX - 2;

fn refused(error: &Error) -> Cut {
    Cut { asked: 0, slab: REFUSED, offset: 0, free: error.kind().code() as u64 }
}

fn rounded(len: usize) -> usize {
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

    /// Allocates what this rank asks for, and what the others ask for on theirs.
    /// Collective over the group. A rank whose own arguments are bad passes the
    /// error, so that the others do not wait for it and get an error too.
    ///
    /// # Errors
    /// `Memory` on all ranks where it cannot be had on one: the error names the
    /// rank, what it asked and what was free.
    pub fn allocate(
        &self,
        group: &Arc<Group>,
        asked: Result<usize>,
        progress: &impl Progress,
    ) -> Result<Arc<Segment>> {
        if group.is_freed() {
            fail!(State, "the group was freed");
        }
        let bytes = asked.as_ref().copied().unwrap_or(0);
        let mut mine = match &asked {
            Ok(_) => self.cut_existing(group, bytes),
            Err(error) => refused(error),
        };
        let mut all = group.allgather(progress, &mine)?;
        let result = if all.iter().any(|c| c.slab == NEED) {
            self.check_room(group, &all)
                .and_then(|()| self.cut_new(group, bytes, &mut mine, &mut all, progress))
        } else {
            Ok(())
        };
        if let Err(error) = result.and_then(|()| first_failure(group, &all)) {
            self.uncut(group, &mine);
            asked?;
            return Err(error);
        }
        let segment = Arc::new(self.publish(group, &all)?);
        self.segments.lock().insert(segment.id, segment.clone());
        Ok(segment)
    }

    fn cut_existing(&self, group: &Group, bytes: usize) -> Cut {
        let mut cut = Cut { asked: bytes as u64, slab: NEED, offset: 0, free: 0 };
        if bytes == 0 {
            cut.slab = 0;
            return cut;
        }
        if bytes > isize::MAX as usize / 2 {
            cut.slab = FAILED;
            cut.free = shm::room_in(&self.policy.shm_dir).unwrap_or(0) as u64;
            return cut;
        }
        for slab in self.of(group).slabs.lock().iter() {
            match slab.cut(rounded(bytes)) {
                Ok(Some(offset)) => {
                    cut.slab = u64::from(slab.number());
                    cut.offset = offset as u64;
                    return cut;
                }
                Ok(None) => {}
                Err(_) => {
                    cut.slab = FAILED;
                    break;
                }
            }
        }
        cut.free = shm::room_in(&self.policy.shm_dir).unwrap_or(usize::MAX) as u64;
        cut
    }

    /// Before anything is made: is there room on every node for what its ranks
    /// still need? Every rank computes the same answer.
    fn check_room(&self, group: &Group, all: &[Cut]) -> Result<()> {
        let waiting = || {
            let cuts = group.members().iter().zip(all).filter(|(_, cut)| cut.slab == NEED);
            cuts.map(|(&world, cut)| (world, self.topology.node_of(world), cut))
        };
        let mut needed = vec![0u64; self.topology.nodes()];
        for (_, node, cut) in waiting() {
            needed[node] = needed[node].saturating_add(cut.asked);
        }
        let short = waiting().filter(|&(_, node, cut)| cut.free < needed[node]);
        let Some(node) = short.map(|(_, node, _)| node).min() else { return Ok(()) };
        // The one that asks for most is the one to name.
        let most = waiting().filter(|&(_, at, _)| at == node).max_by_key(|(.., cut)| cut.asked);
        let (world, _, cut) = most.expect("one waits");
        Err(no_memory(world, cut, needed[node]))
    }

    fn cut_new(
        &self,
        group: &Arc<Group>,
        bytes: usize,
        mine: &mut Cut,
        all: &mut Vec<Cut>,
        progress: &impl Progress,
    ) -> Result<()> {
        first_failure(group, all)?;
        let need = if mine.slab == NEED { rounded(bytes) } else { 0 };
        let holdings = self.of(group);
        let held = holdings.slabs.lock().iter().map(|s| s.my_len()).sum();
        let number = holdings.next_slab();
        let slab = Slab::create(group, &self.topology, &self.policy, progress, number, need, held)?;
        self.registry.add_slab(&slab, group.key(), group.members());
        holdings.slabs.lock().push(slab.clone());
        if mine.slab == NEED {
            match slab.cut(rounded(bytes)) {
                Ok(Some(offset)) => {
                    mine.slab = u64::from(slab.number());
                    mine.offset = offset as u64;
                }
                _ => {
                    mine.slab = FAILED;
                    mine.free = shm::room_in(&self.policy.shm_dir).unwrap_or(0) as u64;
                }
            }
        }
        drop(slab);
        *all = group.allgather(progress, mine)?;
        if let Err(error) = first_failure(group, all) {
            // The slab that could not be filled goes back at once.
            self.uncut(group, mine);
            mine.slab = NEED;
            self.trim(group)?;
            return Err(error);
        }
        Ok(())
    }

    fn uncut(&self, group: &Group, cut: &Cut) {
        if cut.asked == 0 || cut.slab >= REFUSED {
            return;
        }
        if let Ok(slab) = self.of(group).numbered(cut.slab) {
            slab.uncut(cut.offset as usize, rounded(cut.asked as usize));
        }
    }

    fn publish(&self, group: &Arc<Group>, all: &[Cut]) -> Result<Segment> {
        let holdings = self.of(group);
        let parts: Result<Vec<Part>> = all
            .iter()
            .enumerate()
            .map(|(rank, cut)| {
                if cut.asked == 0 {
                    return Ok(Part {
                        slab: None,
                        offset: 0,
                        len: 0,
                        address: 0,
                        local: std::ptr::null_mut(),
                    });
                }
                let slab = holdings.numbered(cut.slab)?;
                let slice = slab.slices()[rank];
                let offset = cut.offset as usize;
                Ok(Part {
                    offset,
                    len: cut.asked as usize,
                    address: slice.base + offset,
                    local: if slice.local.is_null() {
                        slice.local
                    } else {
                        slice.local.wrapping_add(offset)
                    },
                    slab: Some(slab),
                })
            })
            .collect();
        let parts = parts?;
        let number = holdings.begin_segment();
        for slab in distinct_slabs(&parts) {
            slab.live.fetch_add(1, Ordering::Relaxed);
        }
        let segment =
            Segment { id: SegmentId { group: group.key(), number }, group: group.clone(), parts };
        self.registry.add_pieces(pieces(&segment).map(|(world, slice, part)| {
            (world, slice, Piece { start: part.offset, len: part.len, segment: number })
        }));
        Ok(segment)
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
            all.iter().zip(&segment.parts).position(|(&n, part)| n == NONE && part.len > 0)
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
        self.registry
            .remove_pieces(pieces(&segment).map(|(w, slice, part)| (w, slice, part.offset)));
        self.freed.fetch_add(1, Ordering::Release);
        let mine = &segment.parts[group.rank()];
        if let Some(slab) = &mine.slab {
            slab.give_back(mine.offset, rounded(mine.len));
        }
        for slab in distinct_slabs(&segment.parts) {
            slab.live.fetch_sub(1, Ordering::Relaxed);
        }
        drop(segment);
        self.of(&group).end_segment();
        self.trim(&group)
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
    fn of(&self, group: &Group) -> Arc<Holdings> {
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
    fn trim(&self, group: &Arc<Group>) -> Result<()> {
        let holdings = self.of(group);
        for slab in holdings.take_empty(!group.is_freed() || holdings.live_segments() > 0) {
            self.registry.remove_slab(&slab, group.members());
            slab.close()?;
        }
        Ok(())
    }

    /// Unmakes all slabs of a group in which nothing lives. Collective.
    pub fn close_group(&self, group: &Arc<Group>) -> Result<()> {
        let holdings = self.holdings.lock().remove(&group.key()).unwrap_or_default();
        for slab in std::mem::take(&mut *holdings.slabs.lock()) {
            self.registry.remove_slab(&slab, group.members());
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
        self.of(group).slabs.lock().iter().map(|s| s.committed()).sum()
    }
}

fn pieces(segment: &Segment) -> impl Iterator<Item = (usize, &Slice, &Part)> {
    let members = segment.group.members();
    segment.parts.iter().enumerate().filter_map(move |(rank, part)| {
        let slab = part.slab.as_ref()?;
        Some((members[rank], &slab.slices()[rank], part))
    })
}

fn distinct_slabs(parts: &[Part]) -> Vec<&Arc<Slab>> {
    let mut slabs: Vec<&Arc<Slab>> = parts.iter().filter_map(|p| p.slab.as_ref()).collect();
    slabs.sort_by_key(|s| s.number());
    slabs.dedup_by_key(|s| s.number());
    slabs
}

fn no_memory(world: usize, cut: &Cut, needed: u64) -> Error {
    Error::new(
        ErrorKind::Memory,
        format!(
            "rank {world} asked for {} bytes ({needed} on its node), but only {} are free in \
             shared memory; nothing was allocated",
            cut.asked, cut.free
        ),
    )
}

fn first_failure(group: &Group, all: &[Cut]) -> Result<()> {
    if let Some(rank) = all.iter().position(|c| c.slab == REFUSED) {
        let kind = ErrorKind::from_code(all[rank].free as i32);
        let world = group.members()[rank];
        return Err(Error::new(
            kind,
            format!("rank {world} gave bad arguments; nothing was allocated"),
        ));
    }
    match all.iter().position(|c| c.slab == FAILED) {
        Some(rank) => Err(no_memory(group.members()[rank], &all[rank], all[rank].asked)),
        None => Ok(()),
    }
}
