//! Many small blocks that travel in one message, for vector and aggregate transfers.

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
        Batch { kind, target, local, first: 0, remote, bytes: 0 }
    }

    /// Whether a block of `bytes` bytes at `remote` fits into a message of `most` bytes.
    pub fn takes(&self, remote: usize, bytes: usize, most: usize) -> bool {
        let list = (self.remote.len() + 1) * size_of::<NearBlock>();
        list + self.bytes + bytes <= most && (self.is_empty() || self.offset(remote).is_some())
    }

    fn offset(&self, remote: usize) -> Option<i32> {
        i32::try_from(remote.wrapping_sub(self.first) as isize).ok()
    }

    /// Adds a block. The batch must be empty, or take the block ([`Batch::takes`]).
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_takes_blocks_near_its_first_one_until_its_message_is_full() {
        let mut batch = Batch::new(TransferKind::Put, 1);
        let (first, far) = (1usize << 40, i32::MAX as usize);
        assert!(batch.takes(first, 8, 100));
        batch.push(64, first, 8);
        for (remote, near) in [
            (first + far, true),
            (first + far + 1, false),
            (first - far - 1, true),
            (first - far - 2, false),
            (0, false),
        ] {
            assert_eq!(batch.takes(remote, 8, 100), near, "{remote:#x}");
        }
        batch.push(72, first - 16, 40);
        let offset = |block: &NearBlock| (block.offset, block.len);
        assert_eq!(batch.remote.iter().map(offset).collect::<Vec<_>>(), [(0, 8), (-16, 40)]);
        assert!(batch.takes(first, 28, 100), "three entries of 8 bytes, and 76 bytes");
        assert!(!batch.takes(first, 29, 100));
    }
}
