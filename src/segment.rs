//! Segments: allocation, and contiguous puts and gets.
#![warn(clippy::arithmetic_side_effects)]

use crate::in_call::{InCall, public};
use crate::transfer::Local;
use crate::{Element, Group, unfreed};
use portolan_base::error::{Result, fail};
use portolan_engine::memory::arena;
use portolan_engine::memory::segment::{self, Purpose};
use portolan_engine::runtime::Engine;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

/// An array distributed over the ranks of a group. Every rank owns a part, and all ranks of the
/// group can access all parts.
///
/// Ranks are numbered within the group. Offsets and lengths are in elements. Each rank chooses the
/// length of its own part, which may be zero. [`Segment::free`] releases the memory and is
/// collective. Dropping a segment must not wait for other ranks, so its memory is then released
/// only when the runtime ends, and a warning is logged.
#[derive(Debug)]
#[must_use = "the memory of a dropped segment is released only when the runtime ends; call `free`"]
pub struct Segment<'rt, T: Element> {
    group: Group<'rt>,
    inner: Arc<segment::Segment>,
    /// Part lengths in elements, computed by the first call of [`Segment::lens`].
    lens: OnceLock<Box<[usize]>>,
    freed: bool,
    /// The name of the object in warnings.
    pub(crate) what: &'static str,
    _elements: PhantomData<T>,
}

/// A bounds-checked location in a rank's part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ElementPlace {
    /// The world rank of the owner.
    pub world: usize,
    pub address: usize,
}

impl<T: Element> Segment<'_, T> {
    /// Returns the number of the segment in its group, the same on all ranks.
    #[cfg(feature = "array")]
    pub(crate) fn number(&self) -> u64 {
        self.inner.id().number
    }
}

#[inline]
fn elements<T: Element>(bytes: usize) -> usize {
    bytes.checked_div(size_of::<T>()).unwrap_or(0)
}

impl<'rt> Group<'rt> {
    /// Allocates a segment with `here` elements on this rank. Each rank passes the length of its
    /// own part. All elements are zero on return. Collective.
    ///
    /// The program does not compile if elements have no size or an alignment above 64 bytes.
    ///
    /// # Errors
    /// Returns `Memory` on all ranks if the allocation fails on one of them. The error names that
    /// rank, the requested size and the free memory. Returns `State` if the group was freed.
    #[track_caller]
    pub fn allocate<T: Element>(&self, here: usize) -> Result<Segment<'rt, T>> {
        public("Group::allocate", || self.allocate_one(here, true, Purpose::Elements))
    }

    /// Allocates a segment that a composition loaded from a file cannot name. The elements are zero
    /// if `zeros` is set. Otherwise they have the previous contents of the memory, which saves the
    /// time to clear them and a barrier. Collective.
    #[cfg(feature = "array")]
    pub(crate) fn allocate_internal<T: Element>(
        &self,
        here: usize,
        zeros: bool,
    ) -> Result<Segment<'rt, T>> {
        self.allocate_one(here, zeros, Purpose::Internal)
    }

    fn allocate_one<T: Element>(
        &self,
        here: usize,
        zeros: bool,
        purpose: Purpose,
    ) -> Result<Segment<'rt, T>> {
        match self.allocate_inner(&[here], zeros, purpose)?.pop() {
            Some(segment) => Ok(segment),
            None => fail!(Internal, "a segment was asked for, and none was made"),
        }
    }

    /// Allocates one segment for each element of `here`, in about the time of a single allocation.
    /// `here[i]` is the number of elements on this rank of segment `i`. Each segment is freed
    /// separately. Collective.
    ///
    /// # Errors
    /// Fails as [`Group::allocate`] does, and then allocates no segment. Returns `Argument` on all
    /// ranks if they pass different numbers of segments.
    #[track_caller]
    pub fn allocate_many<T: Element>(&self, here: &[usize]) -> Result<Vec<Segment<'rt, T>>> {
        public("Group::allocate_many", || self.allocate_inner(here, true, Purpose::Elements))
    }

    fn allocate_inner<T: Element>(
        &self,
        here: &[usize],
        zeros: bool,
        purpose: Purpose,
    ) -> Result<Vec<Segment<'rt, T>>> {
        unfreed::warn();
        const {
            assert!(size_of::<T>() > 0, "a segment's elements must have a size");
            assert!(
                align_of::<T>() <= arena::ALIGN,
                "a segment's elements are aligned to 64 bytes at most"
            );
        }
        // A byte count that overflows saturates, so that the request fails on all ranks.
        let bytes: Vec<usize> = here.iter().map(|n| n.saturating_mul(size_of::<T>())).collect();
        let made = self.engine().allocate_many(purpose, self.inner(), Ok(&bytes))?;
        if zeros {
            // SAFETY: no other rank accesses the parts before the barrier below.
            made.iter().for_each(|segment| unsafe { segment.clear() });
        }
        let wrap = |inner| Segment::over(self, inner, false);
        let segments = made.into_iter().map(wrap).collect();
        if zeros {
            self.engine().barrier_of(self.inner())?;
        }
        Ok(segments)
    }
}

impl<'rt, T: Element> Segment<'rt, T> {
    /// Returns the elements of `inner`, a segment of the group. With `freed`, another owner frees it.
    pub(crate) fn over(group: &Group<'rt>, inner: Arc<segment::Segment>, freed: bool) -> Self {
        let group = group.clone();
        let (lens, what) = (OnceLock::new(), "a segment");
        Segment { group, inner, lens, freed, what, _elements: PhantomData }
    }

    /// Completes all transfers and frees the memory. Collective.
    ///
    /// A segment cannot be freed while a transfer of a scope uses it:
    ///
    /// ```compile_fail,E0505
    /// fn early(rt: &portolan::Runtime, segment: portolan::Segment<'_, f64>) -> portolan::Result<()> {
    ///     let mut buffer = vec![0.0; 8];
    ///     rt.scope(|s| {
    ///         s.get(&segment, 0, 0, &mut buffer)?;
    ///         segment.free()
    ///     })
    /// }
    /// ```
    ///
    /// # Errors
    /// Returns `Mpi` if the transfers cannot be completed.
    #[track_caller]
    pub fn free(mut self) -> Result<()> {
        self.freed = true;
        public("Segment::free", || self.engine().release(self.inner.clone()))
    }

    #[inline]
    pub(crate) fn engine(&self) -> &'rt Engine {
        self.group.engine()
    }

    /// Returns the group that allocated the segment.
    pub fn group(&self) -> &Group<'rt> {
        &self.group
    }

    /// Returns the number of elements in the part of `rank`.
    ///
    /// # Errors
    /// Returns `Rank` if `rank` is outside the group.
    #[inline]
    pub fn len_at(&self, rank: usize) -> Result<usize> {
        if rank >= self.group.size() {
            fail!(Rank, "rank {rank} is outside the group of {} ranks", self.group.size());
        }
        Ok(elements::<T>(self.inner.len_at(rank)))
    }

    /// Returns the number of elements in each part, indexed by rank.
    pub fn lens(&self) -> &[usize] {
        self.lens.get_or_init(|| self.inner.parts().map(|p| elements::<T>(p.len())).collect())
    }

    /// For compositions, which outlive the borrow of `self`.
    #[cfg(feature = "compose")]
    pub(crate) fn inner(&self) -> &Arc<segment::Segment> {
        &self.inner
    }

    fn my_len(&self) -> usize {
        elements::<T>(self.inner.len_at(self.group.rank()))
    }

    /// Returns this rank's own part.
    pub fn local(&self) -> Local<'_, T> {
        let len = self.my_len();
        // SAFETY: this rank's part has `len` elements at `my_base`, is aligned for `T` (checked by
        // `allocate_inner`), and stays mapped as long as `inner` lives.
        unsafe { Local::new(self.inner.my_base().cast(), len) }
    }

    /// Checks the bounds of `count` elements at `offset` in the part of `rank`, and returns their
    /// location.
    #[inline]
    pub(crate) fn place(&self, rank: usize, offset: usize, count: usize) -> Result<ElementPlace> {
        let len = self.len_at(rank)?;
        if len.checked_sub(offset).is_none_or(|rest| count > rest) {
            fail!(
                Address,
                "{count} elements at {offset} exceed the part of rank {rank}, which has {len}"
            );
        }
        Ok(ElementPlace {
            world: self.group.members()[rank],
            // The check above keeps this inside the part, so nothing wraps.
            address: self.part_address(rank).wrapping_add(offset.wrapping_mul(size_of::<T>())),
        })
    }

    /// Returns the address of the part of `rank`, or 0 if the part is empty.
    #[inline]
    pub(crate) fn part_address(&self, rank: usize) -> usize {
        self.inner.part(rank).address()
    }

    /// Puts `source` into the part of `rank`, from element `offset` on. On return `source` may be
    /// reused. The elements are visible at the target after a fence or a barrier.
    ///
    /// # Errors
    /// Returns `Rank` if `rank` is outside the group, or `Address` if the elements do not all lie
    /// in the part. No data moves in either case.
    #[inline]
    pub fn put(&self, rank: usize, offset: usize, source: &[T]) -> Result<()> {
        self.put_inner(rank, offset, source).in_call("Segment::put")
    }

    #[inline]
    pub(crate) fn put_inner(&self, rank: usize, offset: usize, source: &[T]) -> Result<()> {
        let place = self.place(rank, offset, source.len())?;
        let bytes = size_of_val(source);
        // SAFETY: `source` stays borrowed until the call returns.
        unsafe { self.engine().put(place.world, place.address, source.as_ptr().cast(), bytes) }
    }

    /// Fills `target` with elements from the part of `rank`, from element `offset` on. The elements
    /// are in `target` on return.
    ///
    /// # Errors
    /// Fails as [`Segment::put`] does.
    #[inline]
    pub fn get(&self, rank: usize, offset: usize, target: &mut [T]) -> Result<()> {
        self.get_inner(rank, offset, target).in_call("Segment::get")
    }

    #[inline]
    pub(crate) fn get_inner(&self, rank: usize, offset: usize, target: &mut [T]) -> Result<()> {
        let place = self.place(rank, offset, target.len())?;
        let bytes = size_of_val(target);
        // SAFETY: `target` is borrowed exclusively until the call returns, and any bytes are valid
        // values of its elements.
        unsafe { self.engine().get(place.world, place.address, target.as_mut_ptr().cast(), bytes) }
    }

    /// Puts one element. The call completes as [`Segment::put`] does.
    ///
    /// # Errors
    /// Fails as [`Segment::put`] does.
    #[inline]
    pub fn put_value(&self, rank: usize, index: usize, value: T) -> Result<()> {
        self.put_inner(rank, index, &[value]).in_call("Segment::put_value")
    }

    /// Gets one element.
    ///
    /// # Errors
    /// Fails as [`Segment::put`] does.
    #[inline]
    pub fn get_value(&self, rank: usize, index: usize) -> Result<T> {
        let mut value = [T::zeroed()];
        self.get_inner(rank, index, &mut value).in_call("Segment::get_value")?;
        Ok(value[0])
    }

    /// Completes all operations that this rank has issued to `rank`, in any segment. On return they
    /// are visible at the target.
    ///
    /// # Errors
    /// Returns `Rank` if `rank` is outside the group, or `Mpi` if operations cannot be completed.
    #[inline]
    pub fn fence(&self, rank: usize) -> Result<()> {
        const CALL: &str = "Segment::fence";
        let world = self.group.inner().world_rank(rank).in_call(CALL)?;
        self.engine().fence(world).in_call(CALL)
    }
}

impl<T: Element> Drop for Segment<'_, T> {
    fn drop(&mut self) {
        if !self.freed && !std::thread::panicking() && portolan_engine::runtime::is_running() {
            unfreed::note(format!("{} with {} elements here", self.what, self.my_len()));
        }
    }
}
