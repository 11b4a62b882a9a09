//! Many small blocks that travel together, for vector and aggregate transfers.

use super::Path;
use super::ops::TransferKind;
use crate::memory::runs::Run;

#[derive(Debug)]
pub struct Batch {
    pub path: Path,
    pub(super) kind: TransferKind,
    pub(super) target: usize,
    pub(super) local: Vec<Run>,
    pub(super) remote: Vec<Run>,
    pub(super) bytes: usize,
}

impl Batch {
    /// Maximum length in bytes of a block.
    pub const MAX_BLOCK: usize = 2048;

    pub fn new(kind: TransferKind, target: usize) -> Batch {
        Batch { path: Path::Message, kind, target, local: Vec::new(), remote: Vec::new(), bytes: 0 }
    }

    pub fn has_room(&self, bytes: usize, most: usize) -> bool {
        let list = (self.remote.len() + 1) * size_of::<Run>();
        list + self.bytes + bytes <= most
    }

    pub fn push(&mut self, local: usize, remote: usize, bytes: usize) {
        self.local.push(Run { address: local, len: bytes });
        self.remote.push(Run { address: remote, len: bytes });
        self.bytes += bytes;
    }

    pub fn is_empty(&self) -> bool {
        self.remote.is_empty()
    }
}
