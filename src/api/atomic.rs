//! Atomic operations on segments.
//!
//! Accumulate, fetch-and-add and swap on one location are atomic to each other,
//! whichever ranks issue them. They are not atomic to puts, nor to what the
//! owner does through [`Local`](super::Local).

use super::in_call::InCall;
use super::{Accumulate, Atomic, Segment};
use crate::error::Result;
use crate::layout::Shape;
use crate::transfer::TransferKind;

impl<T: Accumulate> Segment<'_, T> {
    /// Adds `scale * source` element by element to those at `offset` of `rank`.
    /// Each element is combined atomically. On return the source may be reused.
    ///
    /// # Errors
    /// `Rank`, or `Address` where the elements do not all lie in the part;
    /// nothing has changed then.
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
        // SAFETY: the source is a live slice; an accumulate only reads it, until
        // the call returns.
        unsafe { self.engine().blocking(kind, place.world, place.address, from, &shape) }
    }
}

impl<T: Atomic> Segment<'_, T> {
    /// Adds `value` to an element and returns what it was, in one step. Complete
    /// on return. Sums wrap.
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
    /// `Rank`, or `Address` outside the part.
    #[inline]
    pub fn fetch_add(&self, rank: usize, index: usize, value: T) -> Result<T> {
        const CALL: &str = "Segment::fetch_add";
        let place = self.place(rank, index, 1).in_call(CALL)?;
        let old = self.engine().rmw(place.world, place.address, value.add()).in_call(CALL)?;
        Ok(T::from_old(old))
    }

    /// Replaces an element and returns what it was, in one step. Complete on
    /// return.
    ///
    /// # Errors
    /// `Rank`, or `Address` outside the part.
    #[inline]
    pub fn swap(&self, rank: usize, index: usize, value: T) -> Result<T> {
        const CALL: &str = "Segment::swap";
        let place = self.place(rank, index, 1).in_call(CALL)?;
        let old = self.engine().rmw(place.world, place.address, value.replace()).in_call(CALL)?;
        Ok(T::from_old(old))
    }
}
