//! A segment, as those who use it see it: a part on each rank of its group.

use super::per_rank::PerRank;
use super::registry::SegmentId;
use super::slab::{Slab, Slice};
use crate::group::Group;
use std::sync::Arc;

/// Where one rank's piece of a segment lies: of which slab, by its number in the group, at which
/// offset of the rank's slice. The slab means nothing where there are no bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub slab: u32,
    pub offset: usize,
    pub len: usize,
}

impl Place {
    pub(super) fn new(slab: u32, offset: usize, len: usize) -> Place {
        if len == 0 { Place { slab: 0, offset: 0, len } } else { Place { slab, offset, len } }
    }
}

/// Whose a segment is. Compositions that come from files are confined by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Elements of the safe Rust interface: any rank may write any bytes to them at any time.
    Elements,
    /// Memory of a program that has addresses of it: what the C interfaces allocate.
    Addresses,
    /// The library's own state, and parts that are lent to their owners.
    Internal,
}

/// One rank's part of a segment.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    slab: Option<&'a Arc<Slab>>,
    /// The rank in the group.
    rank: usize,
    place: Place,
}

impl Part<'_> {
    fn slice(&self) -> Option<Slice> {
        self.slab.and_then(|slab| slab.slice(self.rank))
    }

    /// Address in the owner's space; 0 where the rank has no bytes.
    pub fn address(&self) -> usize {
        self.slab.map_or(0, |slab| slab.base(self.rank) + self.place.offset)
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.place.len
    }

    /// Whether the rank has no bytes.
    pub fn is_empty(&self) -> bool {
        self.place.len == 0
    }

    /// Address here, null where the rank shares no memory with us.
    pub fn local(&self) -> *mut u8 {
        match self.slice() {
            Some(slice) if !slice.local.is_null() => slice.local.wrapping_add(self.place.offset),
            _ => std::ptr::null_mut(),
        }
    }
}

/// A collectively allocated piece of memory on every rank of a group.
///
/// Nothing in it grows with the ranks where all of them have asked for the same length and cut
/// it at the same offset.
#[derive(Debug)]
pub struct Segment {
    pub(super) id: SegmentId,
    pub(super) group: Arc<Group>,
    pub(super) purpose: Purpose,
    /// Those in which some rank has bytes.
    pub(super) slabs: Box<[Arc<Slab>]>,
    pub(super) places: PerRank<Place>,
}

impl Segment {
    /// The group.
    pub fn group(&self) -> &Arc<Group> {
        &self.group
    }

    pub(super) fn slab(&self, place: &Place) -> Option<&Arc<Slab>> {
        if place.len == 0 {
            return None;
        }
        self.slabs.iter().find(|slab| slab.number() == place.slab)
    }

    /// The part of a rank of the group.
    ///
    /// # Panics
    /// For a rank outside the group.
    #[inline]
    pub fn part(&self, rank: usize) -> Part<'_> {
        debug_assert!(rank < self.group.size());
        let place = self.places.at(rank);
        Part { slab: self.slab(&place), rank, place }
    }

    /// The parts, by rank of the group.
    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> + Clone {
        (0..self.group.size()).map(|rank| self.part(rank))
    }

    /// Length in bytes of the part of a rank of the group.
    #[inline]
    pub fn len_at(&self, rank: usize) -> usize {
        self.places.at(rank).len
    }

    /// This rank's own memory, null where it has none.
    pub fn my_base(&self) -> *mut u8 {
        let place = self.places.at(self.group.rank());
        match self.slab(&place) {
            Some(slab) => slab.my_base().wrapping_add(place.offset),
            None => std::ptr::null_mut(),
        }
    }

    /// Makes this rank's own memory zero, right after the segment was allocated: memory that the
    /// system has just given is not written.
    ///
    /// # Safety
    /// Nobody else uses this rank's part meanwhile, and nobody has written to it before.
    pub unsafe fn clear(&self) {
        let place = self.places.at(self.group.rank());
        if let Some(slab) = self.slab(&place) {
            let stale = slab.own.stale(place.offset, place.len);
            // SAFETY: no more bytes than the piece has; it is ours, as the caller says.
            unsafe { slab.my_base().add(place.offset).write_bytes(0, stale) };
        }
    }

    /// The segment's name.
    pub fn id(&self) -> SegmentId {
        self.id
    }

    /// Whose it is.
    pub fn purpose(&self) -> Purpose {
        self.purpose
    }
}
