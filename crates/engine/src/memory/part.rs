//! A segment, as its users see it: one part on each rank of its group.

use super::arena::{Arena, Region};
use super::per_rank::PerRank;
use super::registry::SegmentId;
use crate::group::Group;
use std::sync::Arc;

/// A rank's block of a segment: arena of the group, offset in the rank's region, length in bytes.
/// The arena is meaningless if the length is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PartPlace {
    pub arena: u32,
    pub offset: usize,
    pub len: usize,
}

impl PartPlace {
    pub fn new(arena: u32, offset: usize, len: usize) -> PartPlace {
        if len == 0 {
            PartPlace { arena: 0, offset: 0, len }
        } else {
            PartPlace { arena, offset, len }
        }
    }
}

/// The use of a segment. It limits the segments that a composition loaded from a file can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Elements of the safe Rust interface. Any rank may write any bytes to them at any time.
    Elements,
    /// Memory that the program addresses directly, allocated by the C interfaces.
    Addresses,
    /// State of the library, and parts that the Rust interface lends to their owners exclusively.
    Internal,
}

#[derive(Debug, Clone, Copy)]
pub struct SegmentPart<'a> {
    arena: Option<&'a Arc<Arena>>,
    rank: usize,
    place: PartPlace,
}

impl SegmentPart<'_> {
    fn region(&self) -> Option<Region> {
        self.arena.and_then(|arena| arena.region(self.rank))
    }

    /// Returns the address in the owner's address space, or 0 if the part is empty.
    pub fn address(&self) -> usize {
        self.arena.map_or(0, |arena| arena.base(self.rank) + self.place.offset)
    }

    pub fn len(&self) -> usize {
        self.place.len
    }

    pub fn is_empty(&self) -> bool {
        self.place.len == 0
    }

    /// Returns the address in this process, or null if the part is empty or not mapped here.
    pub fn local(&self) -> *mut u8 {
        match self.region() {
            Some(region) if !region.local.is_null() => region.local.wrapping_add(self.place.offset),
            _ => std::ptr::null_mut(),
        }
    }
}

/// Memory on every rank of a group, allocated collectively. Its size does not depend on the number
/// of ranks if all requested the same length and got the same offset of the same arena.
#[derive(Debug)]
pub struct Segment {
    pub(super) id: SegmentId,
    pub(super) group: Arc<Group>,
    pub(super) purpose: Purpose,
    pub(super) arenas: Box<[Arc<Arena>]>,
    pub(super) places: PerRank<PartPlace>,
}

impl Segment {
    pub fn group(&self) -> &Arc<Group> {
        &self.group
    }

    pub(super) fn arena(&self, place: &PartPlace) -> Option<&Arc<Arena>> {
        if place.len == 0 {
            return None;
        }
        self.arenas.iter().find(|arena| arena.number() == place.arena)
    }

    /// Returns the part of a rank of the group.
    ///
    /// # Panics
    /// Panics if the rank is outside the group.
    #[inline]
    pub fn part(&self, rank: usize) -> SegmentPart<'_> {
        debug_assert!(rank < self.group.size());
        let place = self.places.at(rank);
        SegmentPart { arena: self.arena(&place), rank, place }
    }

    /// Returns the parts in the order of the ranks of the group.
    pub fn parts(&self) -> impl Iterator<Item = SegmentPart<'_>> + Clone {
        (0..self.group.size()).map(|rank| self.part(rank))
    }

    /// Returns the length in bytes of the part of a rank of the group.
    #[inline]
    pub fn len_at(&self, rank: usize) -> usize {
        self.places.at(rank).len
    }

    /// Returns the address of this rank's own part, or null if it is empty.
    pub fn my_base(&self) -> *mut u8 {
        let place = self.places.at(self.group.rank());
        match self.arena(&place) {
            Some(arena) => arena.my_base().wrapping_add(place.offset),
            None => std::ptr::null_mut(),
        }
    }

    /// Zeroes this rank's own part after the allocation of the segment, except for zeros that are
    /// fresh from the system.
    ///
    /// # Safety
    /// No other access to the part may happen during the call, and nothing may have been written to
    /// it.
    pub unsafe fn clear(&self) {
        let place = self.places.at(self.group.rank());
        if let Some(arena) = self.arena(&place) {
            let stale = arena.own.stale(place.offset, place.len);
            // SAFETY: `stale` does not exceed the length of the part, which lies at this offset of
            // the arena. The caller guarantees that no other access happens.
            unsafe { arena.my_base().add(place.offset).write_bytes(0, stale) };
        }
    }

    pub fn id(&self) -> SegmentId {
        self.id
    }

    pub fn purpose(&self) -> Purpose {
        self.purpose
    }
}
