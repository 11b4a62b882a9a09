//! Handles of non-blocking transfers. A handle carries any number of transfers, and a wait for it
//! waits for all of them. An *aggregate* handle collects contiguous puts, or gets, of any sizes to
//! any targets, and issues them when it is waited for. Transfers that are adjacent on both sides
//! are merged first, and small blocks to one target on the message path share messages. Direct
//! transfers cost less than collecting them, so they are performed at once.

use super::{Transfer, TransferKind};
use crate::core::peer::CompletionCounter;
use crate::ops::traced::call_of;
use crate::ops::{Ops, check_local};
use portolan_base::error::{Result, fail};
use portolan_base::layout::Shape;
use portolan_base::trace::{Call, CallInfo, PathTaken};
use portolan_base::wait;
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct Handle {
    counter: Option<Arc<CompletionCounter>>,
    aggregate: Option<Aggregate>,
    values: Vec<Box<[u8]>>,
}

#[derive(Debug, Clone, Copy)]
struct Item {
    target: usize,
    remote: usize,
    local: *mut u8,
    bytes: usize,
}

// SAFETY: the caller has promised that the address stays valid until the handle was waited for.
unsafe impl Send for Item {}

#[derive(Debug, Default)]
pub struct Aggregate {
    items: Vec<Item>,
    /// [`TransferKind::Put`] or [`TransferKind::Get`], if there are items.
    kind: Option<TransferKind>,
}

impl Aggregate {
    /// Number of collected transfers at which they are issued.
    pub const MOST: usize = 4096;
}

impl Handle {
    pub fn is_aggregate(&self) -> bool {
        self.aggregate.is_some()
    }

    /// No effect if the handle is aggregate. Fails with `Handle` if transfers are unfinished.
    pub fn set_aggregate(&mut self) -> Result<()> {
        if self.aggregate.is_none() && self.counter.as_ref().is_some_and(|t| t.outstanding() > 0) {
            fail!(
                Handle,
                "a handle with unfinished transfers cannot become aggregate; wait for it first"
            );
        }
        self.aggregate.get_or_insert_default();
        Ok(())
    }

    /// Issues the collected transfers first.
    pub fn unset_aggregate(&mut self, ops: &Ops) -> Result<()> {
        self.flush(ops)?;
        self.aggregate = None;
        Ok(())
    }

    /// Fails as the blocking calls, and with `Handle` for a mix of puts and gets on an aggregate.
    ///
    /// # Safety
    /// `local` must stay valid for the local extent of the shape until the handle was waited for.
    /// Until then the destination of a get must not be read, and the source of a put not changed.
    pub unsafe fn issue(&mut self, ops: &Ops, transfer: &Transfer<'_>) -> Result<()> {
        let &Transfer { kind, target, remote, local, shape } = transfer;
        if self.aggregate.is_some()
            && shape.is_contiguous()
            && !matches!(kind, TransferKind::Accumulate(_))
        {
            let bytes = shape.block();
            // SAFETY: the caller guarantees `local`.
            let direct = || unsafe { ops.try_direct(&kind, target, remote, local, bytes) };
            let call_info = CallInfo::new(call_of(kind, false)).to(target).moves(bytes);
            let body = || match direct()? {
                true => Ok(PathTaken::Direct),
                false => self.collect(ops, transfer).map(|()| PathTaken::Buffer),
            };
            return ops.observed_often(|| true, |&path| call_info.by(path), body).map(drop);
        }
        if self.aggregate.is_some() {
            // This transfer cannot be merged, so issue the collected ones first to keep the order.
            self.flush(ops)?;
        }
        let counter = self.counter.get_or_insert_default();
        // SAFETY: the caller keeps the local bytes valid until the handle was waited for.
        unsafe { ops.issue(transfer, counter) }
    }

    /// The transfer is a contiguous put or get.
    fn collect(&mut self, ops: &Ops, transfer: &Transfer<'_>) -> Result<()> {
        let &Transfer { kind, target, remote, local, shape } = transfer;
        let bytes = shape.block();
        ops.check_rank(target)?;
        if bytes == 0 {
            return Ok(());
        }
        check_local(local)?;
        drop(ops.memory.registry.find(target, remote, bytes)?);
        let aggregate = self.aggregate.as_mut().expect("the caller checked");
        if *aggregate.kind.get_or_insert(kind) != kind {
            fail!(
                Handle,
                "puts and gets are mixed on one aggregate handle; wait for it in between"
            );
        }
        // Bytes that continue in the next segment are a separate block.
        let one_segment = |last: &Item| {
            ops.memory.registry.lookup(target, last.remote, last.bytes + bytes).is_some()
        };
        match aggregate.items.last_mut() {
            Some(last)
                if last.target == target
                    && last.remote + last.bytes == remote
                    && last.local.wrapping_add(last.bytes) == local
                    && one_segment(last) =>
            {
                last.bytes += bytes;
            }
            _ => aggregate.items.push(Item { target, remote, local, bytes }),
        }
        if aggregate.items.len() >= Aggregate::MOST {
            self.flush(ops)?;
        }
        Ok(())
    }

    /// Puts a copy of `bytes`, which the handle keeps until the put is complete.
    pub fn put_value(
        &mut self,
        ops: &Ops,
        target: usize,
        remote: usize,
        bytes: &[u8],
    ) -> Result<()> {
        let kept: Box<[u8]> = bytes.into();
        let (local, shape) = (kept.as_ptr().cast_mut(), &Shape::contiguous(kept.len()));
        let transfer = Transfer { kind: TransferKind::Put, target, remote, local, shape };
        // SAFETY: the boxed bytes do not move, and stay until `wait` or `test` has seen the
        // completion of the put. Otherwise `drop` leaks them.
        unsafe { self.issue(ops, &transfer) }?;
        if self.is_pending() {
            self.values.push(kept);
        }
        Ok(())
    }

    /// # Safety
    /// The local blocks must stay valid until the handle was waited for.
    pub unsafe fn issue_vectors(
        &mut self,
        ops: &Ops,
        kind: TransferKind,
        target: usize,
        list: &[portolan_base::layout::Vector<'_>],
    ) -> Result<()> {
        self.flush(ops)?;
        let counter = self.counter.get_or_insert_default();
        // SAFETY: the caller keeps the blocks valid until the handle was waited for.
        unsafe { ops.issue_vectors(kind, target, list, counter) }
    }

    pub fn flush(&mut self, ops: &Ops) -> Result<()> {
        let Some(aggregate) = &mut self.aggregate else {
            return Ok(());
        };
        let items = std::mem::take(&mut aggregate.items);
        let Some(kind) = aggregate.kind.take() else {
            return Ok(());
        };
        let counter = self.counter.get_or_insert_default().clone();
        let mut rest = &items[..];
        while let Some(first) = rest.first() {
            let run = rest.iter().take_while(|i| i.target == first.target).count();
            let blocks = rest[..run].iter().map(|i| (i.local as usize, i.remote, i.bytes));
            // SAFETY: the caller of `issue` keeps the memory valid until the handle was waited for.
            unsafe { ops.issue_blocks(kind, first.target, blocks, false, &counter) }?;
            rest = &rest[run..];
        }
        Ok(())
    }

    pub fn wait(&mut self, ops: &Ops) -> Result<()> {
        let (done, call_info) = (!self.is_pending(), |(): &()| CallInfo::new(Call::Wait));
        ops.observed_often(|| done, call_info, || self.wait_for_all(ops))
    }

    fn wait_for_all(&mut self, ops: &Ops) -> Result<()> {
        self.flush(ops)?;
        let Some(counter) = &self.counter else {
            return Ok(());
        };
        let what = || format!("{} transfers of a handle", counter.outstanding());
        let done = wait::until(ops, &**counter, &what, || counter.check());
        self.forget_values();
        done
    }

    fn forget_values(&mut self) {
        if !self.is_pending() {
            self.values.clear();
        }
    }

    /// Returns whether all transfers are complete. Makes progress.
    pub fn test(&mut self, ops: &Ops) -> Result<bool> {
        self.flush(ops)?;
        let Some(counter) = &self.counter else {
            return Ok(true);
        };
        let mut done = counter.check()?;
        if !done {
            ops.probe()?;
            done = counter.check()?;
        }
        self.forget_values();
        Ok(done)
    }

    /// Includes collected transfers.
    pub fn is_pending(&self) -> bool {
        self.counter.as_ref().is_some_and(|t| t.outstanding() > 0)
            || self.aggregate.as_ref().is_some_and(|a| !a.items.is_empty())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // MPI may still read the sources of unfinished transfers, so they are leaked.
        if self.is_pending() {
            std::mem::forget(std::mem::take(&mut self.values));
        }
    }
}
