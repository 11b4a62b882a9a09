//! Many small blocks that travel together, for vector and aggregate transfers.

use super::Path;
use super::ops::TransferKind;
use crate::memory::runs::Run;
use bytemuck::{Pod, Zeroable};

/// A block at the target, as a message lists it: half the bytes of a [`Run`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct NearBlock {
    /// In bytes from the first block of the batch.
    pub offset: i32,
    pub len: u32,
}

#[derive(Debug)]
pub struct Batch {
    pub path: Path,
    pub(super) kind: TransferKind,
    pub(super) target: usize,
    pub(super) local: Vec<Run>,
    /// Address of the first remote block.
    pub(super) first: usize,
    pub(super) remote: Vec<NearBlock>,
    pub(super) bytes: usize,
}

impl Batch {
    /// Maximum length in bytes of a block.
    pub const MAX_BLOCK: usize = 2048;

    pub fn new(kind: TransferKind, target: usize) -> Batch {
        let (local, remote) = (Vec::new(), Vec::new());
        Batch { path: Path::Message, kind, target, local, first: 0, remote, bytes: 0 }
    }

    /// Whether a block of `bytes` bytes at `remote` fits into a message of `most` bytes.
    pub fn takes(&self, remote: usize, bytes: usize, most: usize) -> bool {
        let list = (self.remote.len() + 1) * size_of::<NearBlock>();
        list + self.bytes + bytes <= most && (self.is_empty() || self.offset(remote).is_some())
    }

    fn offset(&self, remote: usize) -> Option<i32> {
        i32::try_from(remote.wrapping_sub(self.first) as isize).ok()
    }

    /// Adds a block that the batch is empty for or takes ([`Batch::takes`]).
    pub fn push(&mut self, local: usize, remote: usize, bytes: usize) {
        if self.is_empty() {
            self.first = remote;
        }
        let offset = self.offset(remote).unwrap_or_else(|| unreachable!("the batch is full"));
        self.local.push(Run { address: local, len: bytes });
        self.remote.push(NearBlock { offset, len: bytes as u32 });
        self.bytes += bytes;
    }

    pub fn is_empty(&self) -> bool {
        self.remote.is_empty()
    }
}
