//! Order and completion (invariants 1 and 3): the change of path, fences, waits without handles.
//!
//! What is done directly is done when it returns. What is outstanding towards a target by way
//! of windows or messages its [`crate::peer::Peer`] knows, in a summary that is read with one
//! load; an operation that takes another way completes it first ([`Ops::settle`]), and so does
//! a fence.

use super::Ops;
use crate::error::Result;
use crate::path::Path;
use crate::peer::{DIRTY_MESSAGE, DIRTY_RMA};
use std::sync::atomic::Ordering;

impl Ops {
    /// Before an operation takes `path` to `target`: completes what went there
    /// by another one.
    #[inline]
    pub(crate) fn settle(&self, target: usize, path: Path) -> Result<()> {
        self.serve_sometimes()?;
        let dirty = self.peer(target).dirty();
        let own = match path {
            Path::Direct => 0,
            Path::Rma => DIRTY_RMA,
            Path::Message => DIRTY_MESSAGE,
        };
        if dirty & !own == 0 { Ok(()) } else { self.settle_others(target, dirty & !own) }
    }

    #[cold]
    fn settle_others(&self, target: usize, bits: u8) -> Result<()> {
        if bits & DIRTY_RMA != 0 {
            self.flush_windows(target)?;
        }
        if bits & DIRTY_MESSAGE != 0 {
            self.flush_messages(target)?;
        }
        Ok(())
    }

    fn flush_windows(&self, target: usize) -> Result<()> {
        let peer = self.peer(target);
        let mut pending = peer.rma.lock();
        pending.flush()?;
        self.mark_clean(target, DIRTY_RMA);
        Ok(())
    }

    fn flush_messages(&self, target: usize) -> Result<()> {
        let messenger = self.messenger()?;
        let count = messenger.ask_confirmation(self, target)?;
        messenger.confirmed(self, target, count)?;
        let peer = self.peer(target);
        let sent = peer.sent.lock();
        if sent.count == count {
            self.mark_clean(target, DIRTY_MESSAGE);
        }
        Ok(())
    }

    /// Returns when everything issued to `target` is done and visible there.
    #[inline]
    pub fn fence(&self, target: usize) -> Result<()> {
        self.check_rank(target)?;
        // Drains the stores of direct operations.
        std::sync::atomic::fence(Ordering::SeqCst);
        let dirty = self.peer(target).dirty();
        if dirty == 0 { Ok(()) } else { self.settle_others(target, dirty) }
    }

    /// [`Ops::fence`] for all targets.
    #[inline]
    pub fn fence_all(&self) -> Result<()> {
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.any_dirty() { self.fence_dirty() } else { Ok(()) }
    }

    fn fence_dirty(&self) -> Result<()> {
        // All are asked before any is waited for.
        let mut asked = Vec::new();
        for (rank, peer) in self.peers().iter().enumerate() {
            if peer.dirty() & DIRTY_RMA != 0 {
                self.flush_windows(rank)?;
            }
            if peer.dirty() & DIRTY_MESSAGE != 0 {
                asked.push((rank, self.messenger()?.ask_confirmation(self, rank)?));
            }
        }
        for (rank, count) in asked {
            self.messenger()?.confirmed(self, rank, count)?;
            let sent = self.peer(rank).sent.lock();
            if sent.count == count {
                self.mark_clean(rank, DIRTY_MESSAGE);
            }
        }
        Ok(())
    }

    /// Waits for all operations without a handle to any target.
    pub fn wait_implicit(&self) -> Result<()> {
        for rank in 0..self.size() {
            self.wait_implicit_to(rank)?;
        }
        Ok(())
    }

    /// Waits for all operations without a handle to `target`.
    pub fn wait_implicit_to(&self, target: usize) -> Result<()> {
        self.check_rank(target)?;
        let tally = &self.peer(target).implicit;
        crate::wait::until(
            self,
            &|| format!("{} operations without handle to rank {target}", tally.outstanding()),
            || tally.check(),
        )
    }
}
