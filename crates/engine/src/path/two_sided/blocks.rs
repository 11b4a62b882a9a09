//! A batch of small blocks in one request. The request lists the blocks at the target. The payload
//! or the answer has their bytes in order.

use super::wire::{self, RequestHeader, RequestKind as Request};
use super::{Action, TwoSided};
use crate::core::peer::CompletionCounter;
use crate::memory::runs::{self, Direction};
use crate::path::kernel;
use crate::path::ops::TransferKind;
use crate::path::{Batch, Paths};
use portolan_base::error::Result;
use portolan_base::layout::Shape;
use std::sync::Arc;

impl TwoSided {
    /// Sends the batch, which is then empty. A get's `counter` ends when the blocks have arrived.
    /// After the blocks of a put, the target increments the number at `then`. Returns whether
    /// a message does this.
    ///
    /// # Safety
    /// The local blocks must be valid: for reads until this returns in a put or accumulate, for
    /// writes until the counter is done in a get.
    pub unsafe fn send_blocks(
        &self,
        paths: &Paths,
        batch: &mut Batch,
        counter: &Arc<CompletionCounter>,
        then: Option<usize>,
    ) -> Result<bool> {
        if batch.is_empty() {
            return Ok(false);
        }
        let mut header = match batch.kind {
            TransferKind::Put => RequestHeader::new(Request::PutBlocks, batch.first),
            TransferKind::Get => RequestHeader::new(Request::GetBlocks, batch.first),
            TransferKind::Accumulate(scale) => {
                RequestHeader::new(Request::AccumulateBlocks, batch.first).with_scale(scale)
            }
        };
        header.operand[2] = batch.remote.len() as u64;
        header = header.then_increment(then);
        let list: &[u8] = bytemuck::cast_slice(&batch.remote);
        let mut buffer = self.buffer(wire::MAX_HEAD + list.len() + batch.bytes);
        if batch.kind == TransferKind::Get {
            header.tag = self.tag();
            counter.begin();
            let (request, buffer) = self.receive(batch.target, header.tag, batch.bytes)?;
            let (counter, to) = (counter.clone(), std::mem::take(&mut batch.local));
            self.started(request, Action::Scatter { counter, buffer, to })?;
        }
        wire::encode(header, &Shape::contiguous(0), &mut buffer);
        buffer.extend_from_slice(list);
        let bytes: usize = batch.local.iter().map(|run| run.len).sum();
        // SAFETY: the caller guarantees the blocks, and the buffer has capacity for all.
        unsafe {
            let end = buffer.as_mut_ptr().add(buffer.len());
            kernel::copy_spans(runs::beside(batch.local.drain(..), end as usize), Direction::Get);
            buffer.set_len(buffer.len() + bytes);
        }
        batch.remote.clear();
        batch.bytes = 0;
        self.request(paths, batch.target, buffer)?;
        Ok(then.is_some())
    }
}
