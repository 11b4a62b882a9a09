//! Segments: allocation, and contiguous puts and gets.

use super::in_call::InCall;
use super::{Element, Group, Local, Remote};
use crate::error::{Result, fail};
use crate::memory::{segment, slab};
use crate::runtime::Engine;
use std::marker::PhantomData;
use std::sync::Arc;

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
    lens: Box<[usize]>,
    freed: bool,
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

impl<'rt> Group<'rt> {
    /// Allocates a segment with `here` elements on this rank and as many as the
    /// others ask for on theirs. All elements are zero. Collective.
    ///
    /// # Errors
    /// `Memory` on all ranks where it cannot be had on one, naming the rank, what
    /// it asked for and what was free; `State` after the group was freed.
    pub fn allocate<T: Element>(&self, here: usize) -> Result<Segment<'rt, T>> {
        const CALL: &str = "Group::allocate";
        const {
            assert!(size_of::<T>() > 0, "a segment's elements must have a size");
            assert!(
                align_of::<T>() <= slab::ALIGN,
                "a segment's elements are aligned to 64 bytes at most"
            );
        }
        // More bytes than can be counted are asked for too, so that the request
        // fails on all ranks and not on this one alone.
        let bytes = here.saturating_mul(size_of::<T>());
        let inner = self.engine().allocate(self.inner(), bytes).in_call(CALL)?;
        let base = inner.my_base();
        if !base.is_null() {
            // SAFETY: the part has this many bytes, and no other rank touches it
            // before the barrier below.
            unsafe { base.write_bytes(0, bytes) };
        }
        let lens = inner.parts().iter().map(|p| p.len() / size_of::<T>()).collect();
        let segment =
            Segment { group: self.clone(), inner, lens, freed: false, _elements: PhantomData };
        self.engine().barrier_of(self.inner()).in_call(CALL)?;
        Ok(segment)
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
    pub fn free(mut self) -> Result<()> {
        self.freed = true;
        self.engine().release(self.inner.clone()).in_call("Segment::free")
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
        match self.lens.get(rank) {
            Some(&len) => Ok(len),
            None => fail!(Rank, "rank {rank} is outside the group of {} ranks", self.lens.len()),
        }
    }

    /// The numbers of elements of all parts, by rank.
    pub fn lens(&self) -> &[usize] {
        &self.lens
    }

    /// This rank's own part.
    pub fn local(&self) -> Local<'_, T> {
        let len = self.lens[self.group.rank()];
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
        if offset > len || count > len - offset {
            fail!(
                Address,
                "{count} elements at {offset} leave the part of rank {rank}, which has {len}"
            );
        }
        Ok(Place {
            world: self.group.members()[rank],
            address: self.part_address(rank) + offset * size_of::<T>(),
        })
    }

    /// Where the part of a rank of the group begins; 0 where it has none.
    #[inline]
    pub(super) fn part_address(&self, rank: usize) -> usize {
        self.inner.parts()[rank].address()
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
            log::warn!(
                "[{}] a segment with {} elements here is dropped and not freed; its memory goes \
                 when the runtime ends",
                self.group.runtime().rank(),
                self.lens[self.group.rank()]
            );
        }
    }
}
