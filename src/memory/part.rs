//! A segment, as those who use it see it: a part on each rank of its group.

use super::registry::SegmentId;
use super::slab::Slab;
use crate::group::Group;
use std::sync::Arc;

/// One rank's piece of a segment.
#[derive(Debug, Clone)]
pub struct Part {
    pub(super) slab: Option<Arc<Slab>>,
    pub(super) offset: usize,
    pub(super) len: usize,
    pub(super) address: usize,
    pub(super) local: *mut u8,
}

// SAFETY: the pointer is an address in the slab's mapping, which `slab` keeps.
unsafe impl Send for Part {}
// SAFETY: as above.
unsafe impl Sync for Part {}

impl Part {
    /// Address in the owner's space; 0 where the rank has no bytes.
    pub fn address(&self) -> usize {
        self.address
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the rank has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Address here, null where the rank shares no memory with us.
    pub fn local(&self) -> *mut u8 {
        self.local
    }
}

/// A collectively allocated piece of memory on every rank of a group.
#[derive(Debug)]
pub struct Segment {
    pub(super) id: SegmentId,
    pub(super) group: Arc<Group>,
    pub(super) parts: Vec<Part>,
}

impl Segment {
    /// The group.
    pub fn group(&self) -> &Arc<Group> {
        &self.group
    }

    /// The pieces, by rank of the group.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// This rank's own memory.
    pub fn my_base(&self) -> *mut u8 {
        let part = &self.parts[self.group.rank()];
        match &part.slab {
            Some(slab) => slab.my_base().wrapping_add(part.offset),
            None => std::ptr::null_mut(),
        }
    }

    /// The segment's name.
    pub fn id(&self) -> SegmentId {
        self.id
    }
}
