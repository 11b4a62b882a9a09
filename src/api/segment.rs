//! Segments: allocation, and contiguous puts and gets.
#![warn(clippy::arithmetic_side_effects)]

use super::in_call::{InCall, public};
use super::{Element, Group, Local, Remote, unfreed};
use crate::error::{Result, fail};
use crate::memory::segment::{self, Purpose};
use crate::memory::slab;
use crate::runtime::Engine;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

/// An array of which every rank of a group owns a part, in memory that all of
/// them reach.
///
/// Ranks are numbers in the group, offsets and lengths count elements. Every
/// rank may ask for a part of its own length, also for none.
///
/// [`Segment::free`] gives the memory back and is collective. Dropping a segment
/// is not, and must not wait for other ranks, so the memory of one that is
/// dropped goes only when the runtime ends; a warning says so.
#[derive(Debug)]
pub struct Segment<'rt, T: Element> {
    group: Group<'rt>,
    inner: Arc<segment::Segment>,
    /// What [`Segment::lens`] has given out.
    lens: OnceLock<Box<[usize]>>,
    freed: bool,
    /// What the user knows it as.
    pub(super) what: &'static str,
    _elements: PhantomData<T>,
}

/// A checked place in a rank's part, as the engine names it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Rank of the world.
    pub world: usize,
    /// Address in its memory.
    pub address: usize,
}

impl<T: Element> Segment<'_, T> {
    /// Its number among those of the group, the same on all ranks.
    pub(crate) fn number(&self) -> u64 {
        self.inner.id().number
    }
}

/// The number of elements in `bytes` of a part.
#[inline]
fn elements<T: Element>(bytes: usize) -> usize {
    bytes.checked_div(size_of::<T>()).unwrap_or(0)
}

impl<'rt> Group<'rt> {
    /// Allocates a segment with `here` elements on this rank and as many as the
    /// others ask for on theirs. All elements are zero. Collective.
    ///
    /// # Errors
    /// `Memory` on all ranks where it cannot be had on one, naming the rank, what
    /// it asked for and what was free; `State` after the group was freed.
    #[track_caller]
    pub fn allocate<T: Element>(&self, here: usize) -> Result<Segment<'rt, T>> {
        public("Group::allocate", || self.allocate_one(here, true, Purpose::Elements))
    }

    /// Allocates a segment that no composition of a file can name. Its elements are zero, or what
    /// the memory held before, which costs neither the time to write them nor a barrier. Collective.
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

    /// Allocates as many segments as `here` has numbers of elements, in about the time of one.
    /// Otherwise as that many calls of [`Group::allocate`]; the segments are freed one by one.
    ///
    /// # Errors
    /// As for [`Group::allocate`], with no segment allocated; `Argument` on all ranks where they
    /// ask for different numbers of segments.
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
                align_of::<T>() <= slab::ALIGN,
                "a segment's elements are aligned to 64 bytes at most"
            );
        }
        // More bytes than can be counted are asked for too, so that the request
        // fails on all ranks and not on this one alone.
        let bytes: Vec<usize> = here.iter().map(|n| n.saturating_mul(size_of::<T>())).collect();
        let made = self.engine().allocate_many_for(purpose, self.inner(), Ok(&bytes))?;
        if zeros {
            // SAFETY: no other rank touches the parts before the barrier below.
            made.iter().for_each(|segment| unsafe { segment.clear() });
        }
        let wrap = |inner| Segment {
            group: self.clone(),
            inner,
            lens: OnceLock::new(),
            freed: false,
            what: "a segment",
            _elements: PhantomData,
        };
        let segments = made.into_iter().map(wrap).collect();
        if zeros {
            self.engine().barrier_of(self.inner())?;
        }
        Ok(segments)
    }
}

impl<'rt, T: Element> Segment<'rt, T> {
    /// Completes all transfers and frees the memory. Collective.
    ///
    /// While a transfer of a scope uses the segment it cannot be freed:
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
    /// `Mpi`, where the transfers cannot be completed.
    #[track_caller]
    pub fn free(mut self) -> Result<()> {
        self.freed = true;
        public("Segment::free", || self.engine().release(self.inner.clone()))
    }

    #[inline]
    pub(super) fn engine(&self) -> &'rt Engine {
        self.group.engine()
    }

    /// The group that allocated the segment.
    pub fn group(&self) -> &Group<'rt> {
        &self.group
    }

    /// The number of elements of `rank`'s part.
    ///
    /// # Errors
    /// `Rank` outside the group.
    #[inline]
    pub fn len_at(&self, rank: usize) -> Result<usize> {
        if rank >= self.group.size() {
            fail!(Rank, "rank {rank} is outside the group of {} ranks", self.group.size());
        }
        Ok(elements::<T>(self.inner.len_at(rank)))
    }

    /// The numbers of elements of all parts, by rank.
    pub fn lens(&self) -> &[usize] {
        self.lens.get_or_init(|| self.inner.parts().map(|p| elements::<T>(p.len())).collect())
    }

    /// The memory, for compositions, which outlive the borrow.
    pub(super) fn inner(&self) -> &Arc<segment::Segment> {
        &self.inner
    }

    fn my_len(&self) -> usize {
        elements::<T>(self.inner.len_at(self.group.rank()))
    }

    /// This rank's own part.
    pub fn local(&self) -> Local<'_, T> {
        let len = self.my_len();
        // SAFETY: our part has `len` elements at `my_base`, which is aligned for
        // any element (`allocate` checked), and stays mapped while `inner` does.
        unsafe { Local::new(self.inner.my_base().cast(), len) }
    }

    /// A rank's part, to be sliced.
    ///
    /// # Errors
    /// `Rank` outside the group.
    pub fn at(&self, rank: usize) -> Result<Remote<'_, 'rt, T>> {
        let len = self.len_at(rank).in_call("Segment::at")?;
        Ok(Remote::new(self, rank, 0, len))
    }

    /// Where `count` elements at `offset` of `rank` lie.
    #[inline]
    pub(super) fn place(&self, rank: usize, offset: usize, count: usize) -> Result<Place> {
        let len = self.len_at(rank)?;
        if len.checked_sub(offset).is_none_or(|rest| count > rest) {
            fail!(
                Address,
                "{count} elements at {offset} leave the part of rank {rank}, which has {len}"
            );
        }
        Ok(Place {
            world: self.group.members()[rank],
            // Inside the part, as was checked.
            address: self.part_address(rank).wrapping_add(offset.wrapping_mul(size_of::<T>())),
        })
    }

    /// Where the part of a rank of the group begins; 0 where it has none.
    #[inline]
    pub(super) fn part_address(&self, rank: usize) -> usize {
        self.inner.part(rank).address()
    }

    /// Puts `source` to `offset` of `rank`. On return the source may be reused;
    /// a fence or a barrier makes sure that the elements are there.
    ///
    /// # Errors
    /// `Rank`, or `Address` where the elements do not all lie in the part;
    /// nothing has moved then.
    #[inline]
    pub fn put(&self, rank: usize, offset: usize, source: &[T]) -> Result<()> {
        self.put_inner(rank, offset, source).in_call("Segment::put")
    }

    #[inline]
    pub(super) fn put_inner(&self, rank: usize, offset: usize, source: &[T]) -> Result<()> {
        let place = self.place(rank, offset, source.len())?;
        let bytes = size_of_val(source);
        // SAFETY: the source is a live slice, read until the call returns.
        unsafe { self.engine().put(place.world, place.address, source.as_ptr().cast(), bytes) }
    }

    /// Gets elements at `offset` of `rank`, as many as `target` has. They are
    /// there on return.
    ///
    /// # Errors
    /// As for [`Segment::put`].
    #[inline]
    pub fn get(&self, rank: usize, offset: usize, target: &mut [T]) -> Result<()> {
        self.get_inner(rank, offset, target).in_call("Segment::get")
    }

    #[inline]
    pub(super) fn get_inner(&self, rank: usize, offset: usize, target: &mut [T]) -> Result<()> {
        let place = self.place(rank, offset, target.len())?;
        let bytes = size_of_val(target);
        // SAFETY: the target is a live slice, exclusively ours until the call
        // returns; any bytes are values of its elements.
        unsafe { self.engine().get(place.world, place.address, target.as_mut_ptr().cast(), bytes) }
    }

    /// Puts one element.
    ///
    /// # Errors
    /// As for [`Segment::put`].
    #[inline]
    pub fn put_value(&self, rank: usize, index: usize, value: T) -> Result<()> {
        self.put_inner(rank, index, &[value]).in_call("Segment::put_value")
    }

    /// Gets one element.
    ///
    /// # Errors
    /// As for [`Segment::put`].
    #[inline]
    pub fn get_value(&self, rank: usize, index: usize) -> Result<T> {
        let mut value = [T::zeroed()];
        self.get_inner(rank, index, &mut value).in_call("Segment::get_value")?;
        Ok(value[0])
    }

    /// Returns when everything that this rank has issued to `rank`, in any
    /// segment, is done and visible there.
    ///
    /// # Errors
    /// `Rank` outside the group, `Mpi`.
    #[inline]
    pub fn fence(&self, rank: usize) -> Result<()> {
        const CALL: &str = "Segment::fence";
        let world = self.group.inner().world_rank(rank).in_call(CALL)?;
        self.engine().fence(world).in_call(CALL)
    }
}

impl<T: Element> Drop for Segment<'_, T> {
    fn drop(&mut self) {
        if !self.freed && !std::thread::panicking() && crate::runtime::is_running() {
            unfreed::note(format!("{} with {} elements here", self.what, self.my_len()));
        }
    }
}
