//! A segment, as its users see it: one part on each rank of its group.

use super::arena::{Arena, Region};
use super::per_rank::PerRank;
use super::registry::SegmentId;
use crate::collective::group::Group;
use std::sync::Arc;

/// A rank's block of a segment. The arena is meaningless if the length is 0.
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

/// The use of a segment. Compositions that are loaded from a file may name only some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Elements of the safe Rust interface, which any rank may write at any time.
    Elements,
    /// Memory of the C interfaces, which the program addresses directly.
    Addresses,
    /// State of the library, and parts lent exclusively to their owners by the Rust interface.
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

    /// Returns the address in the owner's address space, or 0 if empty.
    pub fn address(&self) -> usize {
        self.arena.map_or(0, |arena| arena.base(self.rank) + self.place.offset)
    }

    pub fn len(&self) -> usize {
        self.place.len
    }

    pub fn is_empty(&self) -> bool {
        self.place.len == 0
    }

    /// Returns the address in this process, or null if empty or not mapped here.
    pub fn local(&self) -> *mut u8 {
        match self.region() {
            Some(region) if !region.local.is_null() => region.local.wrapping_add(self.place.offset),
            _ => std::ptr::null_mut(),
        }
    }
}

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

    /// Panics if the rank is outside the group.
    #[inline]
    pub fn part(&self, rank: usize) -> SegmentPart<'_> {
        debug_assert!(rank < self.group.size());
        let place = self.places.at(rank);
        SegmentPart { arena: self.arena(&place), rank, place }
    }

    pub fn parts(&self) -> impl Iterator<Item = SegmentPart<'_>> + Clone {
        (0..self.group.size()).map(|rank| self.part(rank))
    }

    #[inline]
    pub fn len_at(&self, rank: usize) -> usize {
        self.places.at(rank).len
    }

    /// Returns the address of this rank's own part, or null if empty.
    pub fn my_base(&self) -> *mut u8 {
        let place = self.places.at(self.group.rank());
        match self.arena(&place) {
            Some(arena) => arena.my_base().wrapping_add(place.offset),
            None => std::ptr::null_mut(),
        }
    }

    /// Zeroes this rank's own part after the allocation, except zeros fresh from the system.
    ///
    /// # Safety
    /// Nothing may have been written to the part, and no other access may happen during the call.
    pub unsafe fn clear(&self) {
        let place = self.places.at(self.group.rank());
        if let Some(arena) = self.arena(&place) {
            let stale = arena.own.stale(place.offset, place.len);
            // SAFETY: the part has at least `stale` bytes here. The caller excludes other accesses.
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
