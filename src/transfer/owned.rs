//! Non-blocking transfers that own their buffers. Forgetting one leaks the buffer, so that late
//! data has a valid destination.

use super::pending::{self, Pending};
use super::scope;
use crate::in_call::InCall;
use crate::{Accumulate, Element, Segment};
use portolan_base::error::Result;
use portolan_engine::transfer::TransferKind;
use std::sync::Arc;

impl<'rt, T: Element> Segment<'rt, T> {
    /// Starts to fill `buffer` with elements from the part of `rank`, from element `offset` on.
    ///
    /// The buffer is inaccessible until [`Pending::wait`] returns it:
    ///
    /// ```compile_fail,E0382
    /// fn early(segment: &portolan::Segment<'_, f64>) -> portolan::Result<f64> {
    ///     let buffer = vec![0.0; 10];
    ///     let pending = segment.start_get(0, 0, buffer)?;
    ///     let first = buffer[0];
    ///     pending.wait()?;
    ///     Ok(first)
    /// }
    /// ```
    ///
    /// # Errors
    /// Fails as [`Segment::get`] does.
    pub fn start_get(
        &self,
        rank: usize,
        offset: usize,
        buffer: Vec<T>,
    ) -> Result<Pending<'_, Vec<T>>> {
        self.start(TransferKind::Get, rank, offset, buffer).in_call("Segment::start_get")
    }

    /// Starts to put `buffer` into the part of `rank`, from element `offset` on.
    ///
    /// # Errors
    /// Fails as [`Segment::put`] does.
    pub fn start_put(
        &self,
        rank: usize,
        offset: usize,
        buffer: Vec<T>,
    ) -> Result<Pending<'_, Vec<T>>> {
        self.start(TransferKind::Put, rank, offset, buffer).in_call("Segment::start_put")
    }

    fn start(
        &self,
        kind: TransferKind,
        rank: usize,
        offset: usize,
        buffer: Vec<T>,
    ) -> Result<Pending<'_, Vec<T>>> {
        pending::may_start(self.engine())?;
        let order = scope::contiguous(kind, self, rank, offset, buffer.len())?;
        let counter = Arc::default();
        // Created before the transfer is issued: if issuing fails half-way, the destructor waits.
        let mut pending = Pending::<Vec<T>>::new(self.engine(), Some(Arc::clone(&counter)), buffer);
        let local = pending.buffer_mut().as_mut_ptr().cast();
        // SAFETY: the buffer has the bytes of the order. It is not accessed until the counter is
        // done, and moving the vector does not move its elements. If `pending` is forgotten, they
        // stay allocated forever.
        unsafe { self.engine().issue(&order.transfer(local), &counter) }?;
        Ok(pending)
    }
}

impl<T: Accumulate> Segment<'_, T> {
    /// Starts to add `scale * buffer` to the part of `rank`, from element `offset` on.
    ///
    /// # Errors
    /// Fails as [`Segment::accumulate`] does.
    pub fn start_accumulate(
        &self,
        rank: usize,
        offset: usize,
        scale: T,
        buffer: Vec<T>,
    ) -> Result<Pending<'_, Vec<T>>> {
        let kind = TransferKind::Accumulate(scale.scale());
        self.start(kind, rank, offset, buffer).in_call("Segment::start_accumulate")
    }
}
