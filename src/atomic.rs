//! Atomic operations on segments.
//!
//! Accumulates and the functions of this module are atomic with respect to each other on one
//! element, from any rank.
//!
//! The bounds on `T` are at the functions, so that the compiler shows the messages of the traits.

use crate::in_call::InCall;
use crate::{Accumulate, Atomic, Element, Segment};
use portolan_base::error::Result;
use portolan_base::layout::Shape;
use portolan_engine::atomics::{Combine, Rmw};
use portolan_engine::transfer::{Transfer, TransferKind};

impl<T: Element> Segment<'_, T> {
    /// Adds `scale * source` to the part of `rank`, element by element, from element `offset` on.
    /// Each element is updated atomically. On return `source` may be reused.
    ///
    /// # Errors
    /// Returns `Rank` if `rank` is outside the group, or `Address` if the elements do not all lie
    /// in the part. No element changes in either case.
    pub fn accumulate(&self, rank: usize, offset: usize, scale: T, source: &[T]) -> Result<()>
    where
        T: Accumulate,
    {
        self.accumulate_inner(rank, offset, scale, source).in_call("Segment::accumulate")
    }

    pub(crate) fn accumulate_inner(
        &self,
        rank: usize,
        offset: usize,
        scale: T,
        source: &[T],
    ) -> Result<()>
    where
        T: Accumulate,
    {
        let place = self.place(rank, offset, source.len())?;
        let shape = &Shape::contiguous(size_of_val(source));
        let local = source.as_ptr().cast_mut().cast();
        let kind = TransferKind::Accumulate(scale.scale());
        let (target, remote) = (place.world, place.address);
        // SAFETY: `source` stays borrowed until the call returns, and an accumulate only reads it.
        unsafe { self.engine().blocking(&Transfer { kind, target, remote, local, shape }) }
    }
}

/// Atomic operations on one element.
///
/// `rank` is the owner of the element, and `index` is its number in the part of the owner. On
/// return the new value is at the target and visible to all ranks. The operations of all ranks on
/// one element, accumulates included, take effect one after the other. They are not atomic with
/// respect to puts, or to accesses of the owner through [`Local`](crate::transfer::Local).
impl<T: Element> Segment<'_, T> {
    #[inline]
    fn rmw(&self, call: &'static str, rank: usize, index: usize, op: Rmw) -> Result<T>
    where
        T: Atomic,
    {
        let place = self.place(rank, index, 1).in_call(call)?;
        let old = self.engine().rmw(place.world, place.address, op).in_call(call)?;
        Ok(T::from_old(old))
    }

    /// Returns the value of an element.
    ///
    /// # Errors
    /// Fails as [`Segment::fetch_add`] does.
    #[inline]
    pub fn load(&self, rank: usize, index: usize) -> Result<T>
    where
        T: Atomic,
    {
        let op = Rmw::new(Combine::Load, T::zeroed().number());
        self.rmw("Segment::load", rank, index, op)
    }

    /// Replaces an element. Unlike [`Segment::put_value`], the call is atomic with respect to the
    /// other functions here, and the value is visible to all ranks on return.
    ///
    /// # Errors
    /// Fails as [`Segment::fetch_add`] does.
    #[inline]
    pub fn store(&self, rank: usize, index: usize, value: T) -> Result<()>
    where
        T: Atomic,
    {
        let op = Rmw::new(Combine::Swap, value.number());
        self.rmw("Segment::store", rank, index, op).map(drop)
    }

    /// Replaces an element and returns the previous value.
    ///
    /// # Errors
    /// Fails as [`Segment::fetch_add`] does.
    #[inline]
    pub fn swap(&self, rank: usize, index: usize, value: T) -> Result<T>
    where
        T: Atomic,
    {
        self.rmw("Segment::swap", rank, index, Rmw::new(Combine::Swap, value.number()))
    }

    /// Replaces an element by `new` if it equals `expected`. Returns the previous value, which is
    /// `expected` if the element was replaced.
    ///
    /// ```no_run
    /// # fn claim(owners: &portolan::Segment<'_, u32>, slot: usize) -> portolan::Result<bool> {
    /// // The first rank that names itself owns the slot. 0 means that it is free.
    /// let me = owners.group().rank() as u32 + 1;
    /// Ok(owners.compare_swap(0, slot, 0, me)? == 0)
    /// # }
    /// ```
    ///
    /// # Errors
    /// Fails as [`Segment::fetch_add`] does.
    #[inline]
    pub fn compare_swap(&self, rank: usize, index: usize, expected: T, new: T) -> Result<T>
    where
        T: Atomic,
    {
        let op = Rmw::compare_swap(expected.number(), new.number());
        self.rmw("Segment::compare_swap", rank, index, op)
    }

    /// Adds `value` to an element and returns the previous value. Sums wrap.
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
    /// Returns `Rank` if `rank` is outside the group, `Address` if `index` is outside the part, or
    /// `Mpi` if communication fails.
    #[inline]
    pub fn fetch_add(&self, rank: usize, index: usize, value: T) -> Result<T>
    where
        T: Atomic,
    {
        self.rmw("Segment::fetch_add", rank, index, Rmw::add(value.number()))
    }

    /// Combines an element with `value` by bitwise and, and returns the previous value.
    ///
    /// # Errors
    /// Fails as [`Segment::fetch_add`] does.
    #[inline]
    pub fn fetch_and(&self, rank: usize, index: usize, value: T) -> Result<T>
    where
        T: Atomic,
    {
        let op = Rmw::new(Combine::And, value.number());
        self.rmw("Segment::fetch_and", rank, index, op)
    }

    /// Combines an element with `value` by bitwise or, and returns the previous value.
    ///
    /// # Errors
    /// Fails as [`Segment::fetch_add`] does.
    #[inline]
    pub fn fetch_or(&self, rank: usize, index: usize, value: T) -> Result<T>
    where
        T: Atomic,
    {
        let op = Rmw::new(Combine::Or, value.number());
        self.rmw("Segment::fetch_or", rank, index, op)
    }

    /// Combines an element with `value` by bitwise exclusive or, and returns the previous value.
    ///
    /// # Errors
    /// Fails as [`Segment::fetch_add`] does.
    #[inline]
    pub fn fetch_xor(&self, rank: usize, index: usize, value: T) -> Result<T>
    where
        T: Atomic,
    {
        let op = Rmw::new(Combine::Xor, value.number());
        self.rmw("Segment::fetch_xor", rank, index, op)
    }

    /// Replaces an element by the minimum of it and `value`, and returns the previous value.
    ///
    /// # Errors
    /// Fails as [`Segment::fetch_add`] does.
    #[inline]
    pub fn fetch_min(&self, rank: usize, index: usize, value: T) -> Result<T>
    where
        T: Atomic,
    {
        let op = Rmw::new(Combine::Min, value.number());
        self.rmw("Segment::fetch_min", rank, index, op)
    }

    /// Replaces an element by the maximum of it and `value`, and returns the previous value.
    ///
    /// # Errors
    /// Fails as [`Segment::fetch_add`] does.
    #[inline]
    pub fn fetch_max(&self, rank: usize, index: usize, value: T) -> Result<T>
    where
        T: Atomic,
    {
        let op = Rmw::new(Combine::Max, value.number());
        self.rmw("Segment::fetch_max", rank, index, op)
    }
}
