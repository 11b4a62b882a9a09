//! Order and completion (invariants 1 and 3): changes of path, fences, waits without handles. One
//! load reads the summary of the outstanding operations to a target through windows and messages
//! ([`crate::core::peer::Peer`]). An operation on another path completes them first
//! (`settle_before`), and so does a fence. Direct operations are complete on return.

use super::Ops;
use crate::core::peer::Peer;
use crate::memory::registry::Hit;
use crate::path::{Flush, Path};
use portolan_base::error::{Result, fail};
use portolan_base::trace::{Awaited, Call, CallInfo, Cause};
use portolan_base::wait;
use std::sync::atomic::Ordering;

impl Ops {
    /// Completes the operations to `target` on other paths than `path`.
    #[inline]
    pub fn order_before(&self, target: usize, path: Path) -> Result<()> {
        self.serve_sometimes()?;
        self.settle_before(target, path)
    }

    #[inline]
    fn settle_before(&self, target: usize, path: Path) -> Result<()> {
        let dirty = self.peers().pending(target);
        let others = dirty & !path.pending_bit();
        if others == 0 { Ok(()) } else { self.settle_others(target, others) }
    }

    /// Returns whether a direct operation must first wait for, or serve, other ranks.
    #[inline(always)]
    pub(crate) fn is_out_of_order(&self, target: usize) -> bool {
        self.peers().pending(target) != 0 || self.is_time_to_serve()
    }

    /// Waits until a direct operation may access this address range, and finds its region, which
    /// must be the same as before. The caller must not hold a read lock of the registry: a thread
    /// that changes the registry waits for all readers, and other ranks may wait for that thread.
    /// Fails as the wait and the lookup, and with `State` if the segment was freed meanwhile.
    #[cold]
    pub(crate) fn find_in_order(
        &self,
        target: usize,
        region: *mut u8,
        (remote, bytes): (usize, usize),
    ) -> Result<Hit<'_>> {
        self.serve()?;
        self.settle_before(target, Path::Direct)?;
        let again = self.memory.registry.find(target, remote, bytes)?;
        if again.region() != region {
            fail!(State, "a segment of rank {target} was freed while a call used it");
        }
        Ok(again)
    }

    #[cold]
    fn settle_others(&self, target: usize, bits: u8) -> Result<()> {
        for path in Path::REMOTE {
            if bits & path.pending_bit() != 0 {
                self.flush(path, target)?;
            }
        }
        Ok(())
    }

    /// Waits until all operations issued to `target` are complete and visible there.
    #[inline]
    pub fn fence(&self, target: usize) -> Result<()> {
        self.check_rank(target)?;
        self.observed_often(
            || self.peers().pending(target) == 0,
            |()| CallInfo::new(Call::Fence).to(target),
            || self.fence_one(target),
        )
    }

    #[inline]
    fn fence_one(&self, target: usize) -> Result<()> {
        // Drains the stores of direct operations.
        std::sync::atomic::fence(Ordering::SeqCst);
        let dirty = self.peers().pending(target);
        if dirty == 0 { Ok(()) } else { self.settle_others(target, dirty) }
    }

    /// Orders the operations issued to `target` so far before a later store there: a rank that sees
    /// the store also sees their effects. Does not wait until direct stores have left this core.
    #[inline]
    pub(crate) fn order(&self, target: usize) -> Result<()> {
        std::sync::atomic::fence(Ordering::Release);
        let dirty = self.peers().pending(target);
        if dirty == 0 { Ok(()) } else { self.settle_others(target, dirty) }
    }

    #[inline]
    pub fn fence_all(&self) -> Result<()> {
        self.observed_often(
            || !self.peers().any_dirty(),
            |()| CallInfo::new(Call::FenceAll),
            || {
                std::sync::atomic::fence(Ordering::SeqCst);
                if self.peers().any_dirty() { self.fence_dirty(false) } else { Ok(()) }
            },
        )
    }

    /// Like [`Ops::fence_all`], but requests to mutexes may still be in flight.
    pub(crate) fn fence_data(&self) -> Result<()> {
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.peers().any_dirty() { self.fence_dirty(true) } else { Ok(()) }
    }

    fn fence_dirty(&self, data: bool) -> Result<()> {
        let what = if data { Flush::Data } else { Flush::All };
        // Begin all flushes before waiting for any.
        let mut begun = Vec::new();
        for (rank, _) in self.peers().iter() {
            for path in Path::REMOTE {
                if self.peers().pending(rank) & path.pending_bit() != 0 {
                    let transport = self.transport(path)?;
                    let flush = transport.begin_flush(self, rank, what)?;
                    begun.extend(flush.map(|flush| (transport, rank, flush)));
                }
            }
        }
        begun
            .into_iter()
            .try_for_each(|(transport, rank, flush)| transport.end_flush(self, rank, flush))
    }

    pub fn wait_implicit(&self) -> Result<()> {
        self.peers().iter().try_for_each(|(rank, _)| self.wait_implicit_to(rank))
    }

    pub fn wait_implicit_to(&self, target: usize) -> Result<()> {
        self.check_rank(target)?;
        let Some(counter) = self.peers().used(target).and_then(Peer::used_implicit) else {
            return Ok(());
        };
        let what =
            || format!("{} operations without handle to rank {target}", counter.outstanding());
        self.observed(
            || CallInfo::new(Call::Wait).to(target),
            || wait::until(self, Awaited::of(Cause::Handle, target), &what, || counter.check()),
        )
    }
}
