//! Trace records of operations ([`portolan_base::trace`]). Each operation that the interfaces call
//! has its body in a separate function, which returns the path that it took. If calls are not
//! observed, only the body runs. Block lists need a second lookup.

use super::Ops;
use crate::memory::registry::SegmentId;
use crate::path::ops::{Transfer, TransferKind};
use crate::path::{self, Path};
use portolan_base::trace::{Call, CallInfo, Entered, PathTaken, Place};

impl From<Path> for PathTaken {
    fn from(path: Path) -> PathTaken {
        match path {
            Path::Direct => PathTaken::Direct,
            Path::Rma => PathTaken::Rma,
            // The trace format has no name for an installed transport.
            Path::Message | Path::Installed => PathTaken::Message,
        }
    }
}

pub(crate) fn path_taken(path: Option<Path>) -> PathTaken {
    path.map_or(PathTaken::None, PathTaken::from)
}

/// Returns the number of a segment in traces, the same on all ranks.
pub fn number_of(id: SegmentId) -> u64 {
    let group = id.group ^ id.group >> 24;
    (group & 0xff_ffff) << 24 ^ id.number
}

/// A `blocking` transfer returns when its memory is reusable.
pub fn call_of(kind: TransferKind, blocking: bool) -> Call {
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
    pub fn path_to(&self, kind: TransferKind, target: usize, remote: usize) -> PathTaken {
        let hit = self.memory.registry.lookup(target, remote, 1);
        path_taken(hit.map(|hit| path::for_kind(&kind, hit.arena(), hit.region())))
    }

    pub(crate) fn place_of(
        &self,
        entered: &Entered<'_>,
        target: usize,
        remote: usize,
    ) -> Option<Place> {
        entered.place(self.memory.freed(), (target, remote), || {
            let (id, found) = self.memory.registry.locate(target, remote)?;
            Some((number_of(id), found))
        })
    }

    /// An accumulate has a place, because ranks may contend there.
    #[inline(always)]
    pub(crate) fn call_info_of_shape(
        &self,
        entered: &Entered<'_>,
        call: Call,
        transfer: &Transfer<'_>,
        path: Option<Path>,
    ) -> CallInfo {
        let &Transfer { target, remote, shape, .. } = transfer;
        let place = match call {
            Call::Acc | Call::AccNb => self.place_of(entered, target, remote),
            _ => None,
        };
        let bytes = shape.bytes();
        let blocks = if shape.is_contiguous() { 1 } else { bytes / shape.block().max(1) };
        CallInfo {
            blocks,
            ..CallInfo::new(call).to(target).moves(bytes).by(path_taken(path)).at(place)
        }
    }

    /// With the path of the first block.
    pub(crate) fn call_info_of_blocks(
        &self,
        call: Call,
        kind: TransferKind,
        target: usize,
        list: &[portolan_base::layout::Vector<'_>],
    ) -> CallInfo {
        let first = list.iter().find_map(|vector| vector.remote.first());
        let path = first.map_or(PathTaken::None, |&remote| self.path_to(kind, target, remote));
        let bytes = list.iter().map(|vector| vector.block * vector.remote.len()).sum();
        let blocks = list.iter().map(|vector| vector.remote.len()).sum();
        CallInfo { blocks, ..CallInfo::new(call).to(target).moves(bytes).by(path) }
    }
}
