//! Many small blocks in one request, for vector and aggregate transfers. The request lists the
//! blocks at the target. The payload or the answer has their bytes in order.

use super::Action;
use super::wire::{self, RequestHeader, RequestKind as Request};
use crate::core::peer::CompletionCounter;
use crate::error::Result;
use crate::layout::Shape;
use crate::memory::runs::{self, Run};
use crate::path::cma::Direction;
use crate::path::kernel;
use crate::path::ops::TransferKind;
use crate::path::{Path, Paths};
use std::mem::size_of;
use std::sync::Arc;

#[derive(Debug)]
pub struct Batch {
    pub path: Path,
    kind: TransferKind,
    target: usize,
    local: Vec<Run>,
    remote: Vec<Run>,
    bytes: usize,
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

    /// Sends the batch, which is then empty. A get's `counter` ends when the blocks have arrived.
    ///
    /// # Safety
    /// The local blocks must be valid: for reads until this returns in a put or accumulate, for
    /// writes until the counter is done in a get.
    pub unsafe fn send(&mut self, paths: &Paths, counter: &Arc<CompletionCounter>) -> Result<()> {
        if self.remote.is_empty() {
            return Ok(());
        }
        let two_sided = paths.two_sided()?;
        let mut header = match self.kind {
            TransferKind::Put => RequestHeader::new(Request::PutBlocks, 0),
            TransferKind::Get => RequestHeader::new(Request::GetBlocks, 0),
            TransferKind::Accumulate(scale) => {
                RequestHeader::new(Request::AccumulateBlocks, 0).with_scale(scale)
            }
        };
        header.operand[2] = self.remote.len() as u64;
        let list = runs::as_bytes(&self.remote);
        let mut buffer = two_sided.buffer(wire::MAX_HEAD + list.len() + self.bytes);
        if self.kind == TransferKind::Get {
            header.tag = two_sided.tag();
            counter.begin();
            let (request, buffer) = two_sided.receive(self.target, header.tag, self.bytes)?;
            let (counter, to) = (counter.clone(), std::mem::take(&mut self.local));
            two_sided.started(request, Action::Scatter { counter, buffer, to })?;
        }
        wire::encode(header, &Shape::contiguous(0), &mut buffer);
        buffer.extend_from_slice(list);
        let bytes: usize = self.local.iter().map(|run| run.len).sum();
        // SAFETY: the caller guarantees the blocks, and the buffer has capacity for all.
        unsafe {
            let end = buffer.as_mut_ptr().add(buffer.len());
            kernel::copy_spans(runs::beside(self.local.drain(..), end as usize), Direction::Read);
            buffer.set_len(buffer.len() + bytes);
        }
        self.remote.clear();
        self.bytes = 0;
        two_sided.request(paths, self.target, buffer)?;
        Ok(())
    }
}
