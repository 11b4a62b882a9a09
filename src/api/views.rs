//! Transfers between `ndarray` views and the parts of several ranks.
//!
//! A transfer is a list of [`Piece`]s, each a box of indices of the view and the elements of one
//! rank that belong to them. All pieces are checked before anything moves, against the view and
//! against the rank's part, and are then under way at once. A piece names indices, not
//! addresses, so that no list of pieces can leave the memory of the view.
#![warn(clippy::arithmetic_side_effects)]

use super::exclusive::Exclusive;
use super::fresh_array;
use super::pending::{self, Order};
use super::pending_array::PendingArray;
use super::{Accumulate, Element, Scope, Segment};
use crate::error::{Result, fail};
pub(crate) use crate::layout::MAX_LEVELS;
use crate::layout::{Shape, Vector};
use crate::peer::CompletionCounter;
use crate::transfer::TransferKind;
use ndarray::{Array, ArrayBase, ArrayViewMut, Dimension, RawData};
use smallvec::SmallVec;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// Indices of one axis of a view, and the strides of their elements in a rank's part: `n`
/// indices from `at` on, and the whole `repeat` times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PieceAxis {
    pub at: usize,
    pub n: usize,
    pub stride: usize,
    pub repeat: usize,
    /// Indices from one repetition to the next.
    pub at_stride: usize,
    /// Elements of the part from one repetition to the next.
    pub repeat_stride: usize,
}

/// What one transfer moves from or to one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Rank of the group.
    pub rank: usize,
    /// The first element in its part.
    pub offset: usize,
    /// One for each axis of the view, and none is empty.
    pub axes: SmallVec<[PieceAxis; 3]>,
}

/// Single elements of several ranks: for each its rank, offsets in its part, and places in the
/// caller's list.
pub(crate) type Lists = Vec<(usize, Vec<usize>, Vec<usize>)>;

/// The memory of a view.
#[derive(Debug)]
struct Memory<'a, T> {
    first: *mut T,
    shape: &'a [usize],
    strides: &'a [isize],
}

impl<'a, T: Element> Memory<'a, T> {
    fn of<S, D>(view: &'a ArrayBase<S, D>) -> Memory<'a, T>
    where
        S: RawData<Elem = T>,
        D: Dimension,
    {
        Memory { first: view.as_ptr().cast_mut(), shape: view.shape(), strides: view.strides() }
    }
}

/// A piece that was checked on both sides.
struct Checked {
    world: usize,
    address: usize,
    local: *mut u8,
    shape: Shape,
}

impl Checked {
    /// To be filled by [`Segment::check_piece`]: not given out by it, because moving it costs as much
    /// as moving a few elements does.
    fn none() -> Checked {
        Checked { world: 0, address: 0, local: std::ptr::null_mut(), shape: Shape::contiguous(0) }
    }
}

impl<T: Element> Segment<'_, T> {
    fn checked(&self, piece: &Piece, memory: &Memory<'_, T>) -> Result<Checked> {
        let mut checked = Checked::none();
        self.check_piece(piece, memory, &mut checked)?;
        Ok(checked)
    }

    fn check_piece(
        &self,
        piece: &Piece,
        memory: &Memory<'_, T>,
        checked: &mut Checked,
    ) -> Result<()> {
        let size = size_of::<T>();
        let mut counts = [0usize; MAX_LEVELS + 1];
        let (mut here, mut there) = ([0isize; MAX_LEVELS], [0isize; MAX_LEVELS]);
        counts[0] = size;
        let (mut levels, mut first, mut last) = (0, 0isize, piece.offset);
        if piece.axes.len() != memory.shape.len() {
            fail!(Internal, "a piece of {} axes for {:?}", piece.axes.len(), memory.shape);
        }
        // Sums of a piece that is out of bounds saturate, and it is refused; what is in bounds of
        // the view and of the part can be counted in bytes of either.
        let bytes =
            |stride: usize| isize::try_from(stride.saturating_mul(size)).unwrap_or(isize::MAX);
        let reach = |n: usize, stride: usize| n.saturating_sub(1).saturating_mul(stride);
        let here_bytes = |stride: isize| stride.saturating_mul(size.cast_signed());
        for (axis, (&len, &stride)) in
            piece.axes.iter().zip(memory.shape.iter().zip(memory.strides)).rev()
        {
            let again = reach(axis.repeat, axis.at_stride);
            let end = axis.at.saturating_add(axis.n).saturating_add(again);
            if axis.n == 0 || axis.repeat == 0 || end > len {
                fail!(Internal, "{axis:?} leaves a view of {:?}", memory.shape);
            }
            first = first.wrapping_add(axis.at.cast_signed().wrapping_mul(stride));
            last = last.saturating_add(reach(axis.n, axis.stride));
            last = last.saturating_add(reach(axis.repeat, axis.repeat_stride));
            if levels == 0 && counts[0] == size && stride == 1 && axis.stride == 1 {
                counts[0] = size.saturating_mul(axis.n);
            } else if axis.n > 1 {
                if levels == MAX_LEVELS {
                    fail!(Argument, "a transfer of more than {MAX_LEVELS} strides");
                }
                (here[levels], there[levels]) = (here_bytes(stride), bytes(axis.stride));
                levels = levels.saturating_add(1);
                counts[levels] = axis.n;
            }
            if axis.repeat > 1 {
                if levels == MAX_LEVELS {
                    fail!(Argument, "a transfer of more than {MAX_LEVELS} strides");
                }
                here[levels] = stride.saturating_mul(bytes(axis.at_stride));
                there[levels] = bytes(axis.repeat_stride);
                levels = levels.saturating_add(1);
                counts[levels] = axis.repeat;
            }
        }
        // All elements between the first and the last are the part's.
        let span = last.saturating_sub(piece.offset).saturating_add(1);
        let place = self.place(piece.rank, piece.offset, span)?;
        checked.shape.set_strided(&counts[..=levels], &here[..levels], &there[..levels])?;
        (checked.world, checked.address) = (place.world, place.address);
        checked.local = memory.first.wrapping_offset(first).cast();
        Ok(())
    }

    /// # Safety
    /// The memory must be valid until the call returns: for writes in a get, else for reads.
    unsafe fn blocking(
        &self,
        kind: TransferKind,
        pieces: &[Piece],
        memory: &Memory<'_, T>,
    ) -> Result<()> {
        let engine = self.engine();
        let [piece] = pieces else {
            let counter = Arc::default();
            // SAFETY: passed on from the caller; the wait below lasts until the memory is free.
            let issued = unsafe { self.issue_all(kind, pieces, memory, &counter) };
            return pending::wait_for(engine, &counter).and(issued);
        };
        let mut checked = Checked::none();
        self.check_piece(piece, memory, &mut checked)?;
        let Checked { world, address, local, ref shape } = checked;
        // SAFETY: the piece lies in the view; the caller vouches for that.
        unsafe {
            if !shape.is_contiguous() {
                return engine.blocking(kind, world, address, local, shape);
            }
            match kind {
                TransferKind::Put => engine.put(world, address, local, shape.bytes()),
                TransferKind::Get => engine.get(world, address, local, shape.bytes()),
                TransferKind::Accumulate(scale) => {
                    engine.accumulate(world, address, local, shape.bytes(), scale)
                }
            }
        }
    }

    /// # Safety
    /// As for `blocking`, until the counter is done.
    unsafe fn issue_all(
        &self,
        kind: TransferKind,
        pieces: &[Piece],
        memory: &Memory<'_, T>,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        let checked: SmallVec<[Checked; 4]> =
            pieces.iter().map(|p| self.checked(p, memory)).collect::<Result<_>>()?;
        for Checked { world, address, local, shape } in &checked {
            // SAFETY: passed on from the caller.
            unsafe { self.engine().issue(kind, *world, *address, *local, shape, counter) }?;
        }
        Ok(())
    }
}

impl<T: Element> Exclusive<'_, T> {
    /// Gets pieces into a view. They are there on return.
    pub(crate) fn get_view<D: Dimension>(
        &self,
        pieces: &[Piece],
        target: &mut ArrayViewMut<'_, T, D>,
    ) -> Result<()> {
        // SAFETY: the view is borrowed exclusively until the call returns; any bytes are values.
        unsafe { self.segment().blocking(TransferKind::Get, pieces, &Memory::of(target)) }
    }

    /// Gets pieces that make up an array of a shape.
    pub(crate) fn get_owned<D: Dimension>(
        &self,
        pieces: &[Piece],
        shape: D,
    ) -> Result<Array<T, D>> {
        let whole = |piece: &Piece| {
            let covers = piece.axes.iter().map(|a| (a.at, a.n, a.repeat));
            covers.eq(shape.slice().iter().map(|n| (0, *n, 1)))
        };
        if !matches!(pieces, [piece] if whole(piece)) {
            let mut target = fresh_array::zeros(shape)?;
            return self.get_view(pieces, &mut target.view_mut()).map(|()| target);
        }
        let mut target = fresh_array::uninit::<T, D>(shape)?;
        let first = target.as_mut_ptr().cast();
        let memory = Memory { first, shape: target.shape(), strides: target.strides() };
        // SAFETY: the array is ours, and the one piece writes each of its elements before the call
        // returns; any bytes are values.
        unsafe {
            self.segment().blocking(TransferKind::Get, pieces, &memory)?;
            Ok(target.assume_init())
        }
    }

    /// Puts pieces of a view, which may be reused on return.
    pub(crate) fn put_view<S: RawData<Elem = T> + ndarray::Data, D: Dimension>(
        &self,
        pieces: &[Piece],
        source: &ArrayBase<S, D>,
    ) -> Result<()> {
        self.check_open()?;
        // SAFETY: the view is borrowed until the call returns, and a put only reads.
        unsafe { self.segment().blocking(TransferKind::Put, pieces, &Memory::of(source)) }
    }

    /// Starts a get into an array of its own.
    pub(crate) fn start_get<D: Dimension>(
        &self,
        pieces: &[Piece],
        buffer: Array<T, D>,
    ) -> Result<PendingArray<'_, T, D>> {
        self.start(TransferKind::Get, pieces, buffer)
    }

    /// Starts to put an array.
    pub(crate) fn start_put<D: Dimension>(
        &self,
        pieces: &[Piece],
        buffer: Array<T, D>,
    ) -> Result<PendingArray<'_, T, D>> {
        self.check_open()?;
        self.start(TransferKind::Put, pieces, buffer)
    }

    fn start<D: Dimension>(
        &self,
        kind: TransferKind,
        pieces: &[Piece],
        buffer: Array<T, D>,
    ) -> Result<PendingArray<'_, T, D>> {
        // Made first: where issuing fails half-way, its destructor waits.
        let mut pending =
            PendingArray { segment: self.segment(), counter: Arc::default(), buffer: Some(buffer) };
        let buffer = pending.buffer.as_mut().expect("put in above");
        let first = buffer.as_mut_ptr();
        let memory = Memory { first, ..Memory::of(buffer) };
        // SAFETY: the elements lie on the heap, where moving the array does not move them, and
        // are not touched until the counter is done; if `pending` is forgotten they stay
        // allocated for ever.
        unsafe { self.segment().issue_all(kind, pieces, &memory, &pending.counter) }?;
        Ok(pending)
    }

    /// Gets the elements of one rank at `offsets` into those of `target` at `places`.
    pub(crate) fn gather(&self, lists: Lists, target: &mut [T]) -> Result<()> {
        // SAFETY: the target is borrowed exclusively until the call returns.
        unsafe { self.vectors(TransferKind::Get, lists, target.as_mut_ptr(), target.len()) }
    }

    /// Puts elements of `source` at places to those of one rank at offsets.
    pub(crate) fn scatter(&self, lists: Lists, source: &[T]) -> Result<()> {
        self.check_open()?;
        let first = source.as_ptr().cast_mut();
        // SAFETY: the source is borrowed until the call returns, and only read.
        unsafe { self.vectors(TransferKind::Put, lists, first, source.len()) }
    }

    /// Moves single elements; a list is a rank, offsets in its part, and places in the slice.
    ///
    /// # Safety
    /// `first` must be valid for `len` elements: for writes in a get, else for reads.
    unsafe fn vectors(
        &self,
        kind: TransferKind,
        mut lists: Lists,
        first: *mut T,
        len: usize,
    ) -> Result<()> {
        let (segment, size) = (self.segment(), size_of::<T>());
        // Numbers of elements become addresses, in place.
        for (rank, offsets, places) in &mut lists {
            let (part, base) = (segment.len_at(*rank)?, segment.part_address(*rank));
            if let Some(far) = offsets.iter().max().filter(|far| **far >= part) {
                fail!(Internal, "element {far} leaves the part of rank {rank}, which has {part}");
            }
            if offsets.len() != places.len() || places.iter().max().is_some_and(|p| *p >= len) {
                fail!(Internal, "places outside a list of {len} elements");
            }
            // In bounds, as was checked.
            let at = |from: usize, n: usize| from.wrapping_add(n.wrapping_mul(size));
            offsets.iter_mut().for_each(|o| *o = at(base, *o));
            places.iter_mut().for_each(|p| *p = at(first as usize, *p));
        }
        let counter = Arc::default();
        let issued = lists.iter().try_for_each(|(rank, there, here)| {
            let world = segment.group().members()[*rank];
            let list = [Vector { block: size, local: here, remote: there }];
            // SAFETY: the places are inside the slice, for which the caller vouches; the wait
            // below lasts until it is free.
            unsafe { segment.engine().issue_vectors(kind, world, &list, &counter) }
        });
        pending::wait_for(segment.engine(), &counter).and(issued)
    }
}

impl<T: Accumulate> Exclusive<'_, T> {
    /// Adds `scale` times pieces of a view, which may be reused on return.
    pub(crate) fn add_view<S: RawData<Elem = T> + ndarray::Data, D: Dimension>(
        &self,
        pieces: &[Piece],
        scale: T,
        source: &ArrayBase<S, D>,
    ) -> Result<()> {
        self.check_open()?;
        let kind = TransferKind::Accumulate(scale.scale());
        // SAFETY: the view is borrowed until the call returns, and an accumulate only reads.
        unsafe { self.segment().blocking(kind, pieces, &Memory::of(source)) }
    }

    /// Starts to add `scale` times an array.
    pub(crate) fn start_add<D: Dimension>(
        &self,
        pieces: &[Piece],
        scale: T,
        buffer: Array<T, D>,
    ) -> Result<PendingArray<'_, T, D>> {
        self.check_open()?;
        self.start(TransferKind::Accumulate(scale.scale()), pieces, buffer)
    }

    /// [`Exclusive::scatter`] that adds.
    pub(crate) fn scatter_add(&self, lists: Lists, scale: T, source: &[T]) -> Result<()> {
        self.check_open()?;
        let kind = TransferKind::Accumulate(scale.scale());
        let first = source.as_ptr().cast_mut();
        // SAFETY: as in `scatter`.
        unsafe { self.vectors(kind, lists, first, source.len()) }
    }
}

/// A transfer of a scope between a borrowed view and a patch. Dropping it waits for nothing: the
/// scope does, at its end.
pub struct PendingView<'scope, 'env, T: Element, D: Dimension> {
    engine: &'scope crate::runtime::Engine,
    counters: SmallVec<[Arc<CompletionCounter>; 2]>,
    // A raw view: the engine writes to its elements while this is moved about.
    target: ndarray::RawArrayViewMut<T, D>,
    _target: PhantomData<&'env mut [T]>,
}

impl<T: Element, D: Dimension> fmt::Debug for PendingView<'_, '_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingView").field("shape", &self.target.shape()).finish_non_exhaustive()
    }
}

impl<'env, T: Element, D: Dimension> PendingView<'_, 'env, T, D> {
    /// Waits until the elements are there and gives the view back.
    ///
    /// # Errors
    /// `Address` or `Mpi` where the transfer failed; what the view then shows is unspecified.
    pub fn wait(self) -> Result<ArrayViewMut<'env, T, D>> {
        for counter in &self.counters {
            pending::wait_for(self.engine, counter).map_err(|e| e.in_call("PendingView::wait"))?;
        }
        // SAFETY: the raw view was made of one that was borrowed for 'env, which nobody has used
        // since but the engine, and that is done with it. It is given back once, as `self` goes.
        Ok(unsafe { self.target.deref_into_view_mut() })
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Starts a get of pieces into a borrowed view.
    pub(crate) fn start_view<T: Element, D: Dimension>(
        &'scope self,
        from: &'env Exclusive<'_, T>,
        pieces: &[Piece],
        mut target: ArrayViewMut<'env, T, D>,
    ) -> Result<PendingView<'scope, 'env, T, D>> {
        let target = target.raw_view_mut();
        // SAFETY: the view is borrowed exclusively for 'env, which outlives the flights, and is
        // given back earlier only by a wait for these counters. Any bytes are values.
        let counters = unsafe {
            let memory = Memory {
                first: target.as_ptr().cast_mut(),
                shape: target.shape(),
                strides: target.strides(),
            };
            self.fly(TransferKind::Get, from.segment(), pieces, &memory)
        }?;
        Ok(PendingView { engine: from.segment().engine(), counters, target, _target: PhantomData })
    }

    /// Starts a put, or an accumulate, of pieces of a borrowed view; the scope waits for it.
    pub(crate) fn start_write<T: Element, S: RawData<Elem = T> + ndarray::Data, D: Dimension>(
        &'scope self,
        to: &'env Exclusive<'_, T>,
        kind: TransferKind,
        pieces: &[Piece],
        source: &'env ArrayBase<S, D>,
    ) -> Result<()> {
        to.check_open()?;
        // SAFETY: the view is borrowed for 'env, which outlives the flights, and only read.
        unsafe { self.fly(kind, to.segment(), pieces, &Memory::of(source)) }.map(drop)
    }

    /// # Safety
    /// The memory must be valid until the counters are done: for writes and exclusively in a
    /// get, else for reads.
    unsafe fn fly<T: Element>(
        &'scope self,
        kind: TransferKind,
        segment: &Segment<'_, T>,
        pieces: &[Piece],
        memory: &Memory<'_, T>,
    ) -> Result<SmallVec<[Arc<CompletionCounter>; 2]>> {
        let checked: SmallVec<[Checked; 4]> =
            pieces.iter().map(|p| segment.checked(p, memory)).collect::<Result<_>>()?;
        let mut counters = SmallVec::new();
        for Checked { world, address, local, shape } in checked {
            // SAFETY: passed on from the caller.
            let counter =
                unsafe { self.flights().issue(&Order { kind, world, address, shape }, local) }?;
            counters.extend(counter);
        }
        Ok(counters)
    }
}
