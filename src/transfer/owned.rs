//! Non-blocking transfers that own their buffers. Forgetting one leaks the buffer, so that late
//! data has a valid destination.

use super::pending::{self, Order};
use super::scope;
use crate::in_call::InCall;
use crate::{Accumulate, Element, Segment};
use portolan_engine::error::Result;
use portolan_engine::peer::CompletionCounter;
use portolan_engine::runtime::Engine;
use portolan_engine::transfer::TransferKind;
use std::sync::Arc;

/// A transfer that may be in flight and owns its buffer. Created by [`Segment::get_owned`],
/// [`Segment::put_owned`] and [`Segment::accumulate_owned`].
///
/// ```no_run
/// # fn ahead(segment: &portolan::Segment<'_, f64>) -> portolan::Result<()> {
/// let mut next = segment.get_owned(1, 0, vec![0.0; 1000])?;
/// for piece in 1..10 {
///     let current = next.wait()?;
///     next = segment.get_owned(1, piece * 1000, vec![0.0; 1000])?;
///     // compute on `current` while the next piece comes
///     # drop(current);
/// }
/// # next.wait().map(drop)
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping a transfer waits for it"]
pub struct PendingVec<'a, T: Element> {
    segment: &'a Segment<'a, T>,
    counter: Arc<CompletionCounter>,
    buffer: Vec<T>,
}

impl<T: Element> PendingVec<'_, T> {
    /// Waits until the transfer is complete locally and returns the buffer. After a get it holds
    /// the elements; after a put or accumulate it may be reused.
    ///
    /// # Errors
    /// Returns `Address` or `Mpi` if the transfer failed. The buffer is then lost.
    pub fn wait(mut self) -> Result<Vec<T>> {
        pending::wait_for(self.engine(), &self.counter).in_call("PendingVec::wait")?;
        Ok(std::mem::take(&mut self.buffer))
    }

    /// Returns whether [`PendingVec::wait`] would return at once. Makes progress.
    ///
    /// # Errors
    /// Returns `Mpi` if making progress fails.
    pub fn is_done(&self) -> Result<bool> {
        pending::is_done(self.engine(), &self.counter).in_call("PendingVec::is_done")
    }

    fn engine(&self) -> &Engine {
        self.segment.engine()
    }
}

impl<T: Element> Drop for PendingVec<'_, T> {
    fn drop(&mut self) {
        if let Err(error) = pending::wait_for(self.engine(), &self.counter) {
            log::error!("a non-blocking transfer failed: {error:#}");
        }
    }
}

impl<'rt, T: Element> Segment<'rt, T> {
    /// Starts to fill `buffer` with elements from the part of `rank`, from element `offset` on.
    ///
    /// The buffer is inaccessible until [`PendingVec::wait`] returns it:
    ///
    /// ```compile_fail,E0382
    /// fn early(segment: &portolan::Segment<'_, f64>) -> portolan::Result<f64> {
    ///     let buffer = vec![0.0; 10];
    ///     let pending = segment.get_owned(0, 0, buffer)?;
    ///     let first = buffer[0];
    ///     pending.wait()?;
    ///     Ok(first)
    /// }
    /// ```
    ///
    /// # Errors
    /// Fails as [`Segment::get`] does.
    pub fn get_owned(
        &self,
        rank: usize,
        offset: usize,
        buffer: Vec<T>,
    ) -> Result<PendingVec<'_, T>> {
        self.start(TransferKind::Get, rank, offset, buffer).in_call("Segment::get_owned")
    }

    /// Starts to put `buffer` into the part of `rank`, from element `offset` on.
    ///
    /// # Errors
    /// Fails as [`Segment::put`] does.
    pub fn put_owned(
        &self,
        rank: usize,
        offset: usize,
        buffer: Vec<T>,
    ) -> Result<PendingVec<'_, T>> {
        self.start(TransferKind::Put, rank, offset, buffer).in_call("Segment::put_owned")
    }

    fn start(
        &self,
        kind: TransferKind,
        rank: usize,
        offset: usize,
        buffer: Vec<T>,
    ) -> Result<PendingVec<'_, T>> {
        pending::may_start(self.engine())?;
        let order = scope::contiguous(kind, self, rank, offset, buffer.len())?;
        // Created before the transfer is issued: if issuing fails half-way, the destructor waits.
        let mut pending = PendingVec { segment: self, counter: Arc::default(), buffer };
        let local = pending.buffer.as_mut_ptr().cast();
        let Order { kind, world, address, shape } = &order;
        // SAFETY: the buffer has the bytes of the order. It is not accessed until the counter is
        // done, and moving the vector does not move its elements. If `pending` is forgotten, they
        // stay allocated forever.
        unsafe { self.engine().issue(*kind, *world, *address, local, shape, &pending.counter) }?;
        Ok(pending)
    }
}

impl<T: Accumulate> Segment<'_, T> {
    /// Starts to add `scale * buffer` to the part of `rank`, from element `offset` on.
    ///
    /// # Errors
    /// Fails as [`Segment::accumulate`] does.
    pub fn accumulate_owned(
        &self,
        rank: usize,
        offset: usize,
        scale: T,
        buffer: Vec<T>,
    ) -> Result<PendingVec<'_, T>> {
        let kind = TransferKind::Accumulate(scale.scale());
        self.start(kind, rank, offset, buffer).in_call("Segment::accumulate_owned")
    }
}
