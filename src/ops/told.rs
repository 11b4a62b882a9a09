//! What operations tell the observer ([`crate::trace`]): which path they took, and where.
//!
//! Each of the functions by which faces reach memory has its body in a function of its own; where nothing is observed
//! the body is all that runs. A body says which path it took; that of lists of blocks is found by one more look-up.

use super::Ops;
use crate::layout::Shape;
use crate::memory::registry::SegmentId;
use crate::path::ops::TransferKind;
use crate::path::{self, Path};
use crate::trace::{About, Call, Entered, PathTaken};
use std::ops::Range;

impl From<Path> for PathTaken {
    fn from(path: Path) -> PathTaken {
        match path {
            Path::Direct => PathTaken::Direct,
            Path::Rma => PathTaken::Rma,
            Path::Message => PathTaken::Message,
        }
    }
}

/// The path of a call that may have taken none.
pub(crate) fn path_taken(path: Option<Path>) -> PathTaken {
    path.map_or(PathTaken::None, PathTaken::from)
}

/// The number of a segment in traces: from its name, so that it is the same on all ranks.
pub(crate) fn number_of(id: SegmentId) -> u64 {
    let group = id.group ^ id.group >> 24;
    (group & 0xff_ffff) << 24 ^ id.number
}

/// Which call a transfer is; `blocking` where its source or its bytes are the caller's again.
pub(crate) fn call_of(kind: TransferKind, blocking: bool) -> Call {
    match (kind, blocking) {
        (TransferKind::Put, true) => Call::Put,
        (TransferKind::Put, false) => Call::PutNb,
        (TransferKind::Get, true) => Call::Get,
        (TransferKind::Get, false) => Call::GetNb,
        (TransferKind::Accumulate(_), true) => Call::Acc,
        (TransferKind::Accumulate(_), false) => Call::AccNb,
    }
}

impl Ops {
    /// The path of a transfer to memory at an address.
    pub(crate) fn path_to(&self, kind: TransferKind, target: usize, remote: usize) -> PathTaken {
        let hit = self.memory.registry.lookup(target, remote, 1);
        let path = hit.map(|hit| {
            let (slab, slice) = (hit.slab(), hit.slice());
            match kind {
                TransferKind::Accumulate(scale) => {
                    path::for_accumulate(slab, slice, remote.is_multiple_of(scale.alignment()))
                }
                _ => path::for_transfer(slab, slice),
            }
        });
        path_taken(path)
    }

    /// The number of the segment in which an address of a rank lies, and the addresses that it has there.
    pub(crate) fn piece_of(&self, target: usize, remote: usize) -> Option<(u64, Range<usize>)> {
        let (id, piece) = self.memory.registry.locate(target, remote)?;
        Some((number_of(id), piece))
    }

    /// A transfer along a shape, that took this path. Accumulates have a place: ranks may meet there.
    #[inline(always)]
    pub(crate) fn about_shape(
        &self,
        entered: &Entered<'_>,
        call: Call,
        target: usize,
        remote: usize,
        shape: &Shape,
        path: Option<Path>,
    ) -> About {
        let place = match call {
            Call::Acc | Call::AccNb => {
                entered.place(target, remote, || self.piece_of(target, remote))
            }
            _ => None,
        };
        let bytes = shape.bytes();
        let blocks = if shape.is_contiguous() { 1 } else { bytes / shape.block().max(1) };
        About { blocks, ..About::new(call).to(target).moves(bytes).by(path_taken(path)).at(place) }
    }

    /// A list of blocks, that has gone: the path is that of the first.
    pub(crate) fn about_blocks(
        &self,
        call: Call,
        kind: TransferKind,
        target: usize,
        list: &[crate::layout::Vector<'_>],
    ) -> About {
        let first = list.iter().find_map(|vector| vector.remote.first());
        let path = first.map_or(PathTaken::None, |&remote| self.path_to(kind, target, remote));
        let bytes = list.iter().map(|vector| vector.block * vector.remote.len()).sum();
        let blocks = list.iter().map(|vector| vector.remote.len()).sum();
        About { blocks, ..About::new(call).to(target).moves(bytes).by(path) }
    }
}
