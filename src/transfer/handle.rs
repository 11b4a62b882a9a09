//! Handles of non-blocking transfers.
//!
//! A handle may carry any number of transfers; waiting for it waits for all. It
//! can be used again afterwards, and one that was never used is done at once.
//!
//! An *aggregate* handle collects contiguous puts, or gets, of any sizes to any
//! targets, and issues them when it is waited for: neighbours on both sides are
//! joined first, and what goes to one target by message travels together. What
//! goes direct is cheaper done than collected, and is done at once.

use super::TransferKind;
use crate::error::{Result, fail};
use crate::layout::Shape;
use crate::ops::Ops;
use crate::ops::told::call_of;
use crate::peer::CompletionCounter;
use crate::trace::{About, Call, Cause, PathTaken};
use crate::wait;
use std::sync::Arc;

/// A handle of non-blocking transfers.
#[derive(Debug, Default)]
pub struct Handle {
    counter: Option<Arc<CompletionCounter>>,
    aggregate: Option<Aggregate>,
    /// Sources that the handle keeps for the caller.
    values: Vec<Box<[u8]>>,
}

/// One transfer that waits on an aggregate handle.
#[derive(Debug, Clone, Copy)]
struct Item {
    target: usize,
    remote: usize,
    local: *mut u8,
    bytes: usize,
}

// SAFETY: the addresses are not dereferenced without the caller's promise that
// they stay valid until the handle is waited for.
unsafe impl Send for Item {}

/// What an aggregate handle has collected.
#[derive(Debug, Default)]
pub(crate) struct Aggregate {
    items: Vec<Item>,
    put: Option<bool>,
}

impl Aggregate {
    /// An aggregate handle issues what it holds when it holds this many.
    pub(crate) const MOST: usize = 4096;
}

impl Handle {
    /// Whether the handle collects transfers instead of issuing them.
    pub fn is_aggregate(&self) -> bool {
        self.aggregate.is_some()
    }

    /// Makes the handle collect.
    ///
    /// # Errors
    /// `Handle` while transfers of it are unfinished.
    pub fn set_aggregate(&mut self) -> Result<()> {
        if self.counter.as_ref().is_some_and(|t| t.outstanding() > 0) {
            fail!(
                Handle,
                "a handle with unfinished transfers cannot become aggregate; wait for it first"
            );
        }
        self.aggregate.get_or_insert_default();
        Ok(())
    }

    /// Issues what was collected and makes the handle an ordinary one.
    pub fn unset_aggregate(&mut self, ops: &Ops) -> Result<()> {
        self.flush(ops)?;
        self.aggregate = None;
        Ok(())
    }

    /// Issues a transfer on the handle.
    ///
    /// # Errors
    /// As for the blocking forms; `Handle` for a mix of puts and gets on an
    /// aggregate handle.
    ///
    /// # Safety
    /// `local` must stay valid for the shape's local extent until the handle was
    /// waited for; a get's must not be read before, a put's not be changed.
    pub unsafe fn issue(
        &mut self,
        ops: &Ops,
        kind: TransferKind,
        target: usize,
        remote: usize,
        local: *mut u8,
        shape: &Shape,
    ) -> Result<()> {
        if self.aggregate.is_some()
            && shape.is_contiguous()
            && !matches!(kind, TransferKind::Accumulate(_))
        {
            let bytes = shape.block();
            // SAFETY: passed on from the caller.
            let direct = || unsafe { ops.try_direct(kind, target, remote, local, bytes) };
            let about = About::new(call_of(kind, false)).to(target).moves(bytes);
            let body = || match direct()? {
                true => Ok(PathTaken::Direct),
                false => self
                    .collect(ops, kind, target, remote, local, bytes)
                    .map(|()| PathTaken::Buffer),
            };
            return ops.observed_often(|| true, |&path| about.by(path), body).map(drop);
        }
        if self.aggregate.is_some() {
            // What cannot be merged is issued in its order.
            self.flush(ops)?;
        }
        let counter = self.counter.get_or_insert_default();
        // SAFETY: passed on from the caller.
        unsafe { ops.issue(kind, target, remote, local, shape, counter) }
    }

    fn collect(
        &mut self,
        ops: &Ops,
        kind: TransferKind,
        target: usize,
        remote: usize,
        local: *mut u8,
        bytes: usize,
    ) -> Result<()> {
        ops.check_rank(target)?;
        if bytes == 0 {
            return Ok(());
        }
        super::check_local(local)?;
        drop(ops.memory.registry.find(target, remote, bytes)?);
        let aggregate = self.aggregate.as_mut().expect("the caller checked");
        let put = kind == TransferKind::Put;
        if *aggregate.put.get_or_insert(put) != put {
            fail!(
                Handle,
                "puts and gets are mixed on one aggregate handle; wait for it in between"
            );
        }
        // Bytes that go on in the next segment stay a piece of their own.
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

    /// Puts a value that the handle keeps until it was waited for.
    pub fn put_value(
        &mut self,
        ops: &Ops,
        target: usize,
        remote: usize,
        bytes: &[u8],
    ) -> Result<()> {
        let kept: Box<[u8]> = bytes.into();
        let (local, shape) = (kept.as_ptr().cast_mut(), Shape::contiguous(kept.len()));
        // SAFETY: the boxed bytes do not move and stay until `wait` or `test` has
        // seen the put done. (A handle that is dropped unfinished: see `drop`.)
        unsafe { self.issue(ops, TransferKind::Put, target, remote, local, &shape) }?;
        if self.is_pending() {
            self.values.push(kept);
        }
        Ok(())
    }

    /// Issues vector transfers on the handle.
    ///
    /// # Safety
    /// The local blocks must stay valid until the handle was waited for.
    pub unsafe fn issue_vectors(
        &mut self,
        ops: &Ops,
        kind: TransferKind,
        target: usize,
        list: &[crate::layout::Vector<'_>],
    ) -> Result<()> {
        self.flush(ops)?;
        let counter = self.counter.get_or_insert_default();
        // SAFETY: passed on from the caller.
        unsafe { ops.issue_vectors(kind, target, list, counter) }
    }

    /// Issues what an aggregate handle has collected.
    pub fn flush(&mut self, ops: &Ops) -> Result<()> {
        let Some(aggregate) = &mut self.aggregate else {
            return Ok(());
        };
        let items = std::mem::take(&mut aggregate.items);
        let Some(put) = aggregate.put.take() else {
            return Ok(());
        };
        let kind = if put { TransferKind::Put } else { TransferKind::Get };
        let counter = self.counter.get_or_insert_default().clone();
        let mut rest = &items[..];
        while let Some(first) = rest.first() {
            // What goes to one target goes together.
            let run = rest.iter().take_while(|i| i.target == first.target).count();
            let blocks = rest[..run].iter().map(|i| (i.local as usize, i.remote, i.bytes));
            // SAFETY: `issue` promised for each item that its memory stays valid
            // until the handle is waited for.
            unsafe { ops.issue_blocks(kind, first.target, blocks, &counter) }?;
            rest = &rest[run..];
        }
        Ok(())
    }

    /// Waits for all transfers of the handle.
    pub fn wait(&mut self, ops: &Ops) -> Result<()> {
        let (done, about) = (!self.is_pending(), |(): &()| About::new(Call::Wait));
        ops.observed_often(|| done, about, || self.wait_for_all(ops))
    }

    fn wait_for_all(&mut self, ops: &Ops) -> Result<()> {
        self.flush(ops)?;
        let Some(counter) = &self.counter else {
            return Ok(());
        };
        let what = || format!("{} transfers of a handle", counter.outstanding());
        let done = wait::until(ops, Cause::Handle, &what, || counter.check());
        self.forget_values();
        done
    }

    /// Lets go of kept sources once nothing uses them.
    fn forget_values(&mut self) {
        if !self.is_pending() {
            self.values.clear();
        }
    }

    /// Whether all transfers of the handle are done. Makes progress.
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

    /// Whether transfers are unfinished or collected.
    pub fn is_pending(&self) -> bool {
        self.counter.as_ref().is_some_and(|t| t.outstanding() > 0)
            || self.aggregate.as_ref().is_some_and(|a| !a.items.is_empty())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // MPI may still read the sources of a handle that was not waited for:
        // they stay for good.
        if self.is_pending() {
            std::mem::forget(std::mem::take(&mut self.values));
        }
    }
}
