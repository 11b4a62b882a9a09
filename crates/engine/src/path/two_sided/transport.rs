//! The message path as a transport.

use super::TwoSided;
use super::blocks::Batch;
use super::prepared::Schedule;
use crate::core::peer::CompletionCounter;
use crate::error::Result;
use crate::layout::Shape;
use crate::layout::pairs::Pairs;
use crate::memory::arena::Arena;
use crate::mutation::{self, Fault};
use crate::path::ops::{Rmw, TransferKind};
use crate::path::{Capabilities, Flush, Path, Paths, Prepared, RemotePlace, Transport};
use std::sync::Arc;

impl Transport for TwoSided {
    fn path(&self) -> Path {
        Path::Message
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::TRANSFER
            | Capabilities::ATOMIC
            | Capabilities::BATCH
            | Capabilities::ORDERED
            | Capabilities::COPIES_SOURCE
            | Capabilities::BY_OWNER
    }

    unsafe fn start(
        &self,
        paths: &Paths,
        kind: TransferKind,
        place: &RemotePlace,
        local: *mut u8,
        shape: &Shape,
        counter: Option<&Arc<CompletionCounter>>,
    ) -> Result<Option<Arc<CompletionCounter>>> {
        let (target, remote) = (place.world, place.address);
        if let TransferKind::Accumulate(scale) = kind {
            // SAFETY: the caller guarantees `local`, which is copied before this returns.
            unsafe { self.accumulate(paths, target, remote, local, shape, scale) }?;
            return Ok(None);
        }
        let fresh = counter.is_none().then(Arc::<CompletionCounter>::default);
        let counted = counter.or(fresh.as_ref()).expect("one of the two is there");
        // SAFETY: the caller guarantees the remote extent, and `local` until the counter is done.
        unsafe {
            if kind == TransferKind::Get {
                self.get(paths, target, remote, local, shape, counted)
            } else {
                self.put(paths, target, remote, local, shape, counted)
            }
        }?;
        Ok(fresh)
    }

    unsafe fn send_batch(
        &self,
        paths: &Paths,
        batch: &mut Batch,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        // SAFETY: the caller guarantees the local blocks.
        unsafe { batch.send(paths, counter) }
    }

    fn rmw(&self, paths: &Paths, place: &RemotePlace, op: Rmw) -> Result<i64> {
        TwoSided::rmw(self, paths, place.world, place.address, op)
    }

    fn is_idle(&self, paths: &Paths, target: usize) -> bool {
        let peer = paths.peer(target);
        let sent = peer.sent.lock().count;
        peer.confirmed() >= sent || mutation::is(Fault::JoinedEarly)
    }

    fn begin_flush(&self, paths: &Paths, target: usize, what: Flush) -> Result<Option<u64>> {
        let peer = paths.peer(target);
        if what == Flush::Data && peer.confirmed() >= peer.sent.lock().data() {
            return Ok(None);
        }
        self.ask_confirmation(paths, target).map(Some)
    }

    /// If another thread has sent more requests meanwhile, the target stays marked as pending.
    fn end_flush(&self, paths: &Paths, target: usize, count: u64) -> Result<()> {
        self.confirmed(paths, target, count)?;
        mutation::window(Fault::FenceOfOthers);
        let sent = paths.peer(target).sent.lock();
        if sent.count == count || mutation::is(Fault::FenceOfOthers) {
            paths.peers().mark_complete(target, Path::Message.pending_bit());
        }
        Ok(())
    }

    fn prepare(&self, arena: Arc<Arena>, _: usize, pairs: Pairs) -> Result<Box<dyn Prepared>> {
        Ok(Box::new(Schedule::new(arena, pairs)?))
    }
}
