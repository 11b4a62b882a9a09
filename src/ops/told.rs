//! What operations tell the observer ([`crate::trace`]): which way they went, and where.
//!
//! Each of the functions by which faces reach memory has its body in a function of its own; where nothing is observed
//! the body is all that runs. Where something is, the way is found by one more look-up, but for direct transfers of
//! contiguous bytes, whose body says so.

use super::Ops;
use crate::layout::Shape;
use crate::memory::registry::SegmentId;
use crate::path::ops::TransferKind;
use crate::path::{self, Path};
use crate::trace::{About, Call, Place, Way};

impl From<Path> for Way {
    fn from(path: Path) -> Way {
        match path {
            Path::Direct => Way::Direct,
            Path::Rma => Way::Rma,
            Path::Message => Way::Message,
        }
    }
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
    /// The way of a transfer to memory at an address.
    pub(crate) fn way_of(&self, kind: TransferKind, target: usize, remote: usize) -> Way {
        let hit = self.memory.registry.lookup(target, remote, 1);
        hit.map_or(Way::None, |hit| {
            let (slab, slice) = (hit.slab(), hit.slice());
            match kind {
                TransferKind::Accumulate(scale) => {
                    let aligned = remote.is_multiple_of(scale.alignment());
                    path::for_accumulate(slab, slice, aligned).into()
                }
                _ => path::for_transfer(slab, slice).into(),
            }
        })
    }

    /// Where an address of a rank lies, for calls that ranks may meet at.
    pub(crate) fn place_of(&self, target: usize, remote: usize) -> Option<Place> {
        let (id, piece) = self.memory.registry.locate(target, remote)?;
        let offset = (remote - piece.start) as u64;
        Some(Place { segment: Some(number_of(id)), offset })
    }

    /// A transfer along a shape, that has gone.
    pub(crate) fn about_shape(
        &self,
        call: Call,
        kind: TransferKind,
        target: usize,
        remote: usize,
        shape: &Shape,
    ) -> About {
        let bytes = shape.bytes();
        let about = About::new(call).to(target).moves(bytes).by(self.way_of(kind, target, remote));
        let place = match kind {
            TransferKind::Accumulate(_) => self.place_of(target, remote),
            _ => None,
        };
        About { blocks: bytes / shape.block().max(1), ..about.at(place) }
    }

    /// A list of blocks, that has gone: the way is that of the first.
    pub(crate) fn about_blocks(
        &self,
        call: Call,
        kind: TransferKind,
        target: usize,
        list: &[crate::layout::Vector<'_>],
    ) -> About {
        let first = list.iter().find_map(|vector| vector.remote.first());
        let way = first.map_or(Way::None, |&remote| self.way_of(kind, target, remote));
        let bytes = list.iter().map(|vector| vector.block * vector.remote.len()).sum();
        let blocks = list.iter().map(|vector| vector.remote.len()).sum();
        About { blocks, ..About::new(call).to(target).moves(bytes).by(way) }
    }
}
