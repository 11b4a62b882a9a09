//! The message path as a transport.

use super::TwoSided;
use super::prepared::Schedule;
use super::wire::{RequestHeader, RequestKind};
use crate::memory::arena::Arena;
use crate::path::ops::{Rmw, Transfer, TransferKind};
use crate::path::{Completion, Flush, Path, Paths, Prepared, RemotePlace, Transport};
use portolan_base::error::Result;
use portolan_base::layout::pairs::Pairs;
use portolan_base::mutation::{self, Fault};
use std::sync::Arc;

impl Transport for TwoSided {
    fn path(&self) -> Path {
        Path::Message
    }

    fn keeps_order(&self) -> bool {
        true
    }

    unsafe fn start(
        &self,
        paths: &Paths,
        transfer: &Transfer<'_>,
        _: &RemotePlace,
        completion: &Completion<'_>,
    ) -> Result<()> {
        // SAFETY: the caller guarantees the remote extent, and the local one until the counter is
        // done. The source of an accumulate is copied before this returns.
        unsafe {
            match transfer.kind {
                TransferKind::Put => self.put(paths, transfer, completion.counter()),
                TransferKind::Get => self.get(paths, transfer, completion.counter()),
                TransferKind::Accumulate(scale) => self.accumulate(paths, transfer, scale),
            }
        }
    }

    fn rmw(&self, paths: &Paths, place: &RemotePlace, op: Rmw) -> Result<i64> {
        let header = RequestHeader::new(RequestKind::Rmw, place.address).with_rmw(op);
        self.ask(paths, place.world, header)
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
        // Recorded for predictions of fences.
        peer.sent.lock().fenced();
        self.ask_for_ack(paths, target).map(Some)
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
