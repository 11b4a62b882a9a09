//! Transfers between `ndarray` views and the parts of several ranks.
//!
//! A transfer is a list of [`Fragment`]s. Each is a box of indices of the view, with the elements
//! of one rank that correspond to them. All are checked against the view and the rank's part before
//! any data moves, and are then in flight at the same time. A [`Fragment`] contains indices instead
//! of addresses, so no list of them can leave the memory of the view.
#![warn(clippy::arithmetic_side_effects)]

use super::exclusive::Exclusive;
use super::fresh_array;
use crate::transfer::Scope;
use crate::transfer::pending::{self, Pending, PendingBuffer, sealed};
use crate::{Accumulate, Element, Segment};
use ndarray::{Array, ArrayBase, ArrayViewMut, Dimension, RawArrayViewMut, RawData};
use portolan_base::error::{Result, fail};
pub(crate) use portolan_base::layout::MAX_LEVELS;
use portolan_base::layout::{Shape, Vector};
use portolan_engine::core::peer::CompletionCounter;
use portolan_engine::transfer::{Transfer, TransferKind};
use smallvec::SmallVec;
use std::sync::Arc;

/// The indices of one axis of a view, and the strides of their elements in a rank's part: `n`
/// consecutive indices from `at` on, and this run `repeat` times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BlockAxis {
    pub at: usize,
    pub n: usize,
    pub stride: usize,
    pub repeat: usize,
    /// The number of indices from one repetition to the next.
    pub at_stride: usize,
    /// The number of elements of the part from one repetition to the next.
    pub repeat_stride: usize,
}

/// The elements that one transfer moves from or to one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fragment {
    /// The rank in the group.
    pub rank: usize,
    /// The offset of the first element in the part of the rank, in elements.
    pub offset: usize,
    /// An entry for each axis of the view. Every entry has at least one index.
    pub axes: SmallVec<[BlockAxis; 3]>,
}

/// Runs of `len` consecutive elements of one rank: their offsets in its part, and their positions in
/// the caller's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Runs {
    pub rank: usize,
    pub len: usize,
    pub offsets: Vec<usize>,
    pub places: Vec<usize>,
}

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

struct Checked {
    world: usize,
    address: usize,
    local: *mut u8,
    shape: Shape,
}

impl Checked {
    /// For [`Segment::check_block`] to fill in place: moving a returned value costs about as much
    /// as transferring a few elements.
    fn none() -> Checked {
        Checked { world: 0, address: 0, local: std::ptr::null_mut(), shape: Shape::contiguous(0) }
    }
}

impl<T: Element> Segment<'_, T> {
    fn checked(&self, fragment: &Fragment, memory: &Memory<'_, T>) -> Result<Checked> {
        let mut checked = Checked::none();
        self.check_block(fragment, memory, &mut checked)?;
        Ok(checked)
    }

    fn check_block(
        &self,
        fragment: &Fragment,
        memory: &Memory<'_, T>,
        checked: &mut Checked,
    ) -> Result<()> {
        let size = size_of::<T>();
        let mut counts = [0usize; MAX_LEVELS + 1];
        let (mut here, mut there) = ([0isize; MAX_LEVELS], [0isize; MAX_LEVELS]);
        counts[0] = size;
        let (mut levels, mut first, mut last) = (0, 0isize, fragment.offset);
        if fragment.axes.len() != memory.shape.len() {
            fail!(
                Internal,
                "an intersection of {} axes for {:?}",
                fragment.axes.len(),
                memory.shape
            );
        }
        // Sums saturate if a `Fragment` is out of bounds, and the checks below reject it. Extents
        // within the bounds of the view and of the part can be counted in bytes.
        let bytes =
            |stride: usize| isize::try_from(stride.saturating_mul(size)).unwrap_or(isize::MAX);
        let reach = |n: usize, stride: usize| n.saturating_sub(1).saturating_mul(stride);
        let here_bytes = |stride: isize| stride.saturating_mul(size.cast_signed());
        for (axis, (&len, &stride)) in
            fragment.axes.iter().zip(memory.shape.iter().zip(memory.strides)).rev()
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
        // All elements from the first to the last must belong to the part.
        let span = last.saturating_sub(fragment.offset).saturating_add(1);
        let place = self.place(fragment.rank, fragment.offset, span)?;
        checked.shape.set_strided(&counts[..=levels], &here[..levels], &there[..levels])?;
        (checked.world, checked.address) = (place.world, place.address);
        checked.local = memory.first.wrapping_offset(first).cast();
        Ok(())
    }

    /// Returns when the view may be reused.
    ///
    /// # Safety
    /// The memory must be valid until the call returns: for writes in a get, otherwise for reads.
    unsafe fn blocking(
        &self,
        kind: TransferKind,
        fragments: &[Fragment],
        memory: &Memory<'_, T>,
    ) -> Result<()> {
        let engine = self.engine();
        let [fragment] = fragments else {
            let counter = Arc::default();
            // SAFETY: by contract, the memory is valid until this call returns. The wait below
            // lasts until the transfers no longer access it.
            let issued = unsafe { self.issue_all(kind, fragments, memory, &counter) };
            return pending::wait_for(engine, &counter).and(issued);
        };
        let mut checked = Checked::none();
        self.check_block(fragment, memory, &mut checked)?;
        let Checked { world, address, local, ref shape } = checked;
        // SAFETY: `check_block` has checked that the elements lie in the view. By contract, its
        // memory is valid until the call returns.
        unsafe {
            if !shape.is_contiguous() {
                let (target, remote) = (world, address);
                return engine.blocking(&Transfer { kind, target, remote, local, shape });
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

    /// Issues all transfers on `counter`.
    ///
    /// # Safety
    /// The memory must be valid until the counter is done: for writes in a get, else for reads.
    unsafe fn issue_all(
        &self,
        kind: TransferKind,
        fragments: &[Fragment],
        memory: &Memory<'_, T>,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        pending::may_start(self.engine())?;
        let checked: SmallVec<[Checked; 4]> =
            fragments.iter().map(|p| self.checked(p, memory)).collect::<Result<_>>()?;
        for &Checked { world: target, address: remote, local, ref shape } in &checked {
            let transfer = Transfer { kind, target, remote, local, shape };
            // SAFETY: `checked` has checked that the elements lie in the view. By contract, its
            // memory is valid until the counter is done.
            unsafe { self.engine().issue(&transfer, counter) }?;
        }
        Ok(())
    }
}

impl<T: Element> Exclusive<'_, T> {
    /// Gets elements into a view. They are there on return.
    pub(crate) fn get_view<D: Dimension>(
        &self,
        fragments: &[Fragment],
        target: &mut ArrayViewMut<'_, T, D>,
    ) -> Result<()> {
        // SAFETY: the view is borrowed exclusively until the call returns, and any bytes are valid
        // values of its elements.
        unsafe { self.segment().blocking(TransferKind::Get, fragments, &Memory::of(target)) }
    }

    /// Gets elements into a new array. Elements that `fragments` do not cover are zero.
    pub(crate) fn get_owned<D: Dimension>(
        &self,
        fragments: &[Fragment],
        shape: D,
    ) -> Result<Array<T, D>> {
        let whole = |fragment: &Fragment| {
            let covers = fragment.axes.iter().map(|a| (a.at, a.n, a.repeat));
            covers.eq(shape.slice().iter().map(|n| (0, *n, 1)))
        };
        if !matches!(fragments, [fragment] if whole(fragment)) {
            let mut target = fresh_array::zeros(shape)?;
            return self.get_view(fragments, &mut target.view_mut()).map(|()| target);
        }
        let mut target = fresh_array::uninit::<T, D>(shape)?;
        let first = target.as_mut_ptr().cast();
        let memory = Memory { first, shape: target.shape(), strides: target.strides() };
        // SAFETY: this function owns the array, and the single `Fragment` covers all of its
        // elements, so the transfer writes each before the call returns. Any bytes are valid
        // values.
        unsafe {
            self.segment().blocking(TransferKind::Get, fragments, &memory)?;
            Ok(target.assume_init())
        }
    }

    /// Puts elements of a view. The view may be reused on return.
    pub(crate) fn put_view<S: RawData<Elem = T> + ndarray::Data, D: Dimension>(
        &self,
        fragments: &[Fragment],
        source: &ArrayBase<S, D>,
    ) -> Result<()> {
        self.check_shared()?;
        // SAFETY: the view is borrowed until the call returns, and a put only reads it.
        unsafe { self.segment().blocking(TransferKind::Put, fragments, &Memory::of(source)) }
    }

    pub(crate) fn start_get<D: Dimension>(
        &self,
        fragments: &[Fragment],
        buffer: Array<T, D>,
    ) -> Result<Pending<'_, Array<T, D>>> {
        self.start(TransferKind::Get, fragments, buffer)
    }

    pub(crate) fn start_put<D: Dimension>(
        &self,
        fragments: &[Fragment],
        buffer: Array<T, D>,
    ) -> Result<Pending<'_, Array<T, D>>> {
        self.check_shared()?;
        self.start(TransferKind::Put, fragments, buffer)
    }

    fn start<D: Dimension>(
        &self,
        kind: TransferKind,
        fragments: &[Fragment],
        buffer: Array<T, D>,
    ) -> Result<Pending<'_, Array<T, D>>> {
        let (segment, counter) = (self.segment(), Arc::default());
        // Created before the transfers are issued: if issuing fails half-way, the destructor waits.
        let mut pending =
            Pending::<Array<T, D>>::new(segment.engine(), Some(Arc::clone(&counter)), buffer);
        let buffer = pending.buffer_mut();
        let first = buffer.as_mut_ptr();
        let memory = Memory { first, ..Memory::of(buffer) };
        // SAFETY: the elements lie on the heap, so moving the array does not move them. They are
        // not accessed until the counter is done. If `pending` is forgotten, they stay allocated
        // forever.
        unsafe { segment.issue_all(kind, fragments, &memory, &counter) }?;
        Ok(pending)
    }

    /// Gets elements of several ranks, by the offsets in `lists`, into the elements of `target` at
    /// the positions in `lists`.
    pub(crate) fn gather(&self, lists: Vec<Runs>, target: &mut [T]) -> Result<()> {
        // SAFETY: `target` is borrowed exclusively until the call returns, and any bytes are valid
        // values of its elements.
        unsafe { self.vectors(TransferKind::Get, lists, target.as_mut_ptr(), target.len()) }
    }

    /// Puts the elements of `source` at the positions in `lists` to elements of several ranks, by
    /// the offsets in `lists`.
    pub(crate) fn scatter(&self, lists: Vec<Runs>, source: &[T]) -> Result<()> {
        self.check_shared()?;
        let first = source.as_ptr().cast_mut();
        // SAFETY: `source` is borrowed until the call returns, and a put only reads it.
        unsafe { self.vectors(TransferKind::Put, lists, first, source.len()) }
    }

    /// Transfers runs of elements. Returns when the slice may be reused.
    ///
    /// # Safety
    /// `first` must be valid for `len` elements until the call returns: for writes in a get,
    /// otherwise for reads.
    unsafe fn vectors(
        &self,
        kind: TransferKind,
        lists: Vec<Runs>,
        first: *mut T,
        len: usize,
    ) -> Result<()> {
        let counter = Arc::default();
        // SAFETY: by contract, the elements are valid until this call returns. The wait below lasts
        // until the transfers no longer access them.
        let issued = unsafe { self.issue_runs(kind, lists, first, len, &counter) };
        pending::wait_for(self.segment().engine(), &counter).and(issued)
    }

    /// Starts a transfer of runs between several ranks and the elements of an array, in row-major
    /// order.
    fn start_runs<D: Dimension>(
        &self,
        kind: TransferKind,
        lists: Vec<Runs>,
        buffer: Array<T, D>,
    ) -> Result<Pending<'_, Array<T, D>>> {
        if !buffer.is_standard_layout() {
            fail!(Argument, "a local array whose elements are not in row-major order");
        }
        let (segment, counter) = (self.segment(), Arc::default());
        pending::may_start(segment.engine())?;
        // Created before the transfers are issued: if issuing fails half-way, the destructor waits.
        let mut pending =
            Pending::<Array<T, D>>::new(segment.engine(), Some(Arc::clone(&counter)), buffer);
        let buffer = pending.buffer_mut();
        let (first, len) = (buffer.as_mut_ptr(), buffer.len());
        // SAFETY: the array has `len` elements from `first` on, because it is in row-major order.
        // They lie on the heap, so moving the array does not move them. They are not accessed until
        // the counter is done. If `pending` is forgotten, they stay allocated forever.
        unsafe { self.issue_runs(kind, lists, first, len, &counter) }?;
        Ok(pending)
    }

    pub(crate) fn start_gather<D: Dimension>(
        &self,
        lists: Vec<Runs>,
        buffer: Array<T, D>,
    ) -> Result<Pending<'_, Array<T, D>>> {
        self.start_runs(TransferKind::Get, lists, buffer)
    }

    pub(crate) fn start_scatter<D: Dimension>(
        &self,
        lists: Vec<Runs>,
        buffer: Array<T, D>,
    ) -> Result<Pending<'_, Array<T, D>>> {
        self.check_shared()?;
        self.start_runs(TransferKind::Put, lists, buffer)
    }

    /// Issues transfers of runs of elements on `counter`.
    ///
    /// # Safety
    /// `first` must be valid for `len` elements until the counter is done: for writes in a get,
    /// otherwise for reads.
    unsafe fn issue_runs(
        &self,
        kind: TransferKind,
        mut lists: Vec<Runs>,
        first: *mut T,
        len: usize,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        let (segment, size) = (self.segment(), size_of::<T>());
        // Converts offsets and positions to addresses, in place.
        for Runs { rank, len: run, offsets, places } in &mut lists {
            let (part, base) = (segment.len_at(*rank)?, segment.part_address(*rank));
            let leaves = |firsts: &[usize], whole: usize| {
                let far = firsts.iter().copied().max().unwrap_or(0);
                !firsts.is_empty() && far.checked_add(*run).is_none_or(|end| end > whole)
            };
            if leaves(offsets, part) {
                fail!(Internal, "elements outside the part of rank {rank}, which has {part}");
            }
            if offsets.len() != places.len() || leaves(places, len) {
                fail!(Internal, "places outside a list of {len} elements");
            }
            // The checks above keep this in bounds, so nothing wraps.
            let at = |from: usize, n: usize| from.wrapping_add(n.wrapping_mul(size));
            offsets.iter_mut().for_each(|o| *o = at(base, *o));
            places.iter_mut().for_each(|p| *p = at(first as usize, *p));
        }
        lists.iter().try_for_each(|runs| {
            let world = segment.group().members()[runs.rank];
            let block = runs.len.wrapping_mul(size);
            let list = [Vector { block, local: &runs.places, remote: &runs.offsets }];
            // SAFETY: the positions lie in the slice, which by contract is valid until the counter
            // is done.
            unsafe { segment.engine().issue_vectors(kind, world, &list, counter) }
        })
    }
}

impl<T: Accumulate> Exclusive<'_, T> {
    /// Adds `scale` times elements of a view. The view may be reused on return.
    pub(crate) fn add_view<S: RawData<Elem = T> + ndarray::Data, D: Dimension>(
        &self,
        fragments: &[Fragment],
        scale: T,
        source: &ArrayBase<S, D>,
    ) -> Result<()> {
        self.check_shared()?;
        let kind = TransferKind::Accumulate(scale.scale());
        // SAFETY: the view is borrowed until the call returns, and an accumulate only reads it.
        unsafe { self.segment().blocking(kind, fragments, &Memory::of(source)) }
    }

    pub(crate) fn start_add<D: Dimension>(
        &self,
        fragments: &[Fragment],
        scale: T,
        buffer: Array<T, D>,
    ) -> Result<Pending<'_, Array<T, D>>> {
        self.check_shared()?;
        self.start(TransferKind::Accumulate(scale.scale()), fragments, buffer)
    }

    pub(crate) fn start_scatter_add<D: Dimension>(
        &self,
        lists: Vec<Runs>,
        scale: T,
        buffer: Array<T, D>,
    ) -> Result<Pending<'_, Array<T, D>>> {
        self.check_shared()?;
        self.start_runs(TransferKind::Accumulate(scale.scale()), lists, buffer)
    }

    /// Adds `scale` times the elements of `source` where [`Exclusive::scatter`] would put them.
    pub(crate) fn scatter_add(&self, lists: Vec<Runs>, scale: T, source: &[T]) -> Result<()> {
        self.check_shared()?;
        let kind = TransferKind::Accumulate(scale.scale());
        let first = source.as_ptr().cast_mut();
        // SAFETY: `source` is borrowed until the call returns, and an accumulate only reads it.
        unsafe { self.vectors(kind, lists, first, source.len()) }
    }
}

impl<T: Element, D: Dimension> sealed::Sealed for Array<T, D> {}
/// A transfer of a patch that owns its array.
impl<T: Element, D: Dimension> PendingBuffer for Array<T, D> {
    type Raw = Array<T, D>;
    const OWNED: bool = true;

    unsafe fn from_raw(raw: Array<T, D>) -> Array<T, D> {
        raw
    }
}

impl<T: Element, D: Dimension> sealed::Sealed for ArrayViewMut<'_, T, D> {}
/// A get of a scope from a patch.
impl<T: Element, D: Dimension> PendingBuffer for ArrayViewMut<'_, T, D> {
    type Raw = RawArrayViewMut<T, D>;
    const OWNED: bool = false;

    unsafe fn from_raw(raw: RawArrayViewMut<T, D>) -> Self {
        // SAFETY: by contract, the raw view comes from a view that is still borrowed exclusively.
        // Only the engine has used it since, and its transfers are complete.
        unsafe { raw.deref_into_view_mut() }
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    pub(crate) fn start_view<T: Element, D: Dimension>(
        &'scope self,
        from: &'env Exclusive<'_, T>,
        fragments: &[Fragment],
        mut target: ArrayViewMut<'env, T, D>,
    ) -> Result<Pending<'scope, ArrayViewMut<'env, T, D>>> {
        let target = target.raw_view_mut();
        // SAFETY: the view is borrowed exclusively for 'env, which outlives the flights; only a
        // wait for this counter returns it earlier. Any bytes are valid values of its elements.
        let counter = unsafe {
            let memory = Memory {
                first: target.as_ptr().cast_mut(),
                shape: target.shape(),
                strides: target.strides(),
            };
            self.fly(TransferKind::Get, from.segment(), fragments, &memory)
        }?;
        Ok(Pending::new(self.flights().engine(), counter, target))
    }

    pub(crate) fn start_write<T: Element, S: RawData<Elem = T> + ndarray::Data, D: Dimension>(
        &'scope self,
        to: &'env Exclusive<'_, T>,
        kind: TransferKind,
        fragments: &[Fragment],
        source: &'env ArrayBase<S, D>,
    ) -> Result<Pending<'scope, ()>> {
        to.check_shared()?;
        // SAFETY: the view is borrowed for 'env, which outlives the flights, and is only read.
        let counter = unsafe { self.fly(kind, to.segment(), fragments, &Memory::of(source)) }?;
        Ok(Pending::new(self.flights().engine(), counter, ()))
    }

    /// Issues the transfers on one counter. Returns it, or `None` if they are already complete.
    ///
    /// # Safety
    /// The memory must be valid until the counter is done: exclusively and for writes in a get,
    /// otherwise for reads.
    unsafe fn fly<T: Element>(
        &'scope self,
        kind: TransferKind,
        segment: &Segment<'_, T>,
        fragments: &[Fragment],
        memory: &Memory<'_, T>,
    ) -> Result<Option<Arc<CompletionCounter>>> {
        // SAFETY: by contract, the memory is valid until the counter is done.
        self.flights()
            .list(|counter| unsafe { segment.issue_all(kind, fragments, memory, counter) })
    }
}
