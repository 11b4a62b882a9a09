//! Atomic operations on segments.
//!
//! Accumulate, fetch-and-add and swap on one location are atomic with respect to each other, from
//! any rank. They are not atomic with respect to puts, or to accesses of the owner through
//! [`Local`](super::Local).

use super::in_call::InCall;
use super::{Accumulate, Atomic, Segment};
use portolan_engine::error::Result;
use portolan_engine::layout::Shape;
use portolan_engine::transfer::TransferKind;

impl<T: Accumulate> Segment<'_, T> {
    /// Adds `scale * source` to the part of `rank`, element by element, from element `offset` on.
    ///
    /// Each element is updated atomically. On return `source` may be reused.
    ///
    /// # Errors
    /// Returns `Rank` if `rank` is outside the group, or `Address` if the elements do not all lie
    /// in the part. No element changes in either case.
    pub fn accumulate(&self, rank: usize, offset: usize, scale: T, source: &[T]) -> Result<()> {
        self.accumulate_inner(rank, offset, scale, source).in_call("Segment::accumulate")
    }

    pub(super) fn accumulate_inner(
        &self,
        rank: usize,
        offset: usize,
        scale: T,
        source: &[T],
    ) -> Result<()> {
        let place = self.place(rank, offset, source.len())?;
        let shape = Shape::contiguous(size_of_val(source));
        let from = source.as_ptr().cast_mut().cast();
        let kind = TransferKind::Accumulate(scale.scale());
        // SAFETY: `source` is a live slice that stays borrowed until the call returns, and an
        // accumulate only reads it.
        unsafe { self.engine().blocking(kind, place.world, place.address, from, &shape) }
    }
}

impl<T: Atomic> Segment<'_, T> {
    /// Atomically adds `value` to element `index` of the part of `rank` and returns the previous
    /// value. Complete on return. Sums wrap.
    ///
    /// ```no_run
    /// # fn tasks(counter: &portolan::Segment<'_, i64>) -> portolan::Result<()> {
    /// // Every task number is given out once, to whoever comes first.
    /// loop {
    ///     let task = counter.fetch_add(0, 0, 1)?;
    ///     if task >= 1000 {
    ///         break Ok(());
    ///     }
    ///     // work on the task
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns `Rank` if `rank` is outside the group, or `Address` if `index` is outside the part.
    #[inline]
    pub fn fetch_add(&self, rank: usize, index: usize, value: T) -> Result<T> {
        const CALL: &str = "Segment::fetch_add";
        let place = self.place(rank, index, 1).in_call(CALL)?;
        let old = self.engine().rmw(place.world, place.address, value.add()).in_call(CALL)?;
        Ok(T::from_old(old))
    }

    /// Atomically replaces element `index` of the part of `rank` and returns the previous value.
    /// Complete on return.
    ///
    /// # Errors
    /// Returns `Rank` if `rank` is outside the group, or `Address` if `index` is outside the part.
    #[inline]
    pub fn swap(&self, rank: usize, index: usize, value: T) -> Result<T> {
        const CALL: &str = "Segment::swap";
        let place = self.place(rank, index, 1).in_call(CALL)?;
        let old = self.engine().rmw(place.world, place.address, value.replace()).in_call(CALL)?;
        Ok(T::from_old(old))
    }
}
