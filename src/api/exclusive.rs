//! A segment whose parts are at times lent to their owners.
//!
//! A part is memory that other ranks write, so a slice of it is sound only while they do not.
//! [`Exclusive`] has two states that change collectively. *Open*: every rank puts, accumulates and
//! gets, and nobody has a slice. *Lent*: the owner has slices and views of its part, and all
//! functions here that write to other ranks are refused on every rank. The change is a barrier in
//! both directions: when a part is lent, all writes to it are complete; when the next write
//! begins, all owners have given their parts back. Gets are always allowed, for they disturb
//! nobody: what is got from a part in the hands of its owner is old, new, or a mixture, and a
//! value of the element type all the same.
//!
//! That is the reason why [`Exclusive::view_mut`] is safe where [`Local::as_mut_slice`] is not. The
//! barriers of the two changes name the change and the segment ([`crate::collective`]). If another
//! rank is in any other collective call, then the change fails on both, and there is no view.
//!
//! [`Local::as_mut_slice`]: super::Local::as_mut_slice

use super::{Element, Group, Segment};
use crate::collective::{self, Kind};
use crate::error::{Result, fail};
use ndarray::{ArrayView, ArrayViewMut, Dimension, ShapeBuilder};
use std::cell::Cell;

/// A segment that is open to all ranks, or lent to its owners.
#[derive(Debug)]
pub(crate) struct Exclusive<'rt, T: Element> {
    segment: Segment<'rt, T>,
    lent: Cell<bool>,
}

/// Elements of one's own part: the first, and how many at which strides along each axis.
#[derive(Debug, Clone)]
pub(crate) struct Window<D> {
    pub start: usize,
    pub shape: D,
    pub strides: D,
}

impl<D: Dimension> Window<D> {
    /// Whether all elements lie in a part of `len`.
    fn fits(&self, len: usize) -> bool {
        if self.shape.slice().contains(&0) {
            return true;
        }
        let far = self.shape.slice().iter().zip(self.strides.slice());
        let last = far
            .map(|(&n, &stride)| n.checked_sub(1)?.checked_mul(stride))
            .try_fold(self.start, |sum, far| sum.checked_add(far?));
        last.is_some_and(|last| last < len)
    }
}

impl<'rt, T: Element> Exclusive<'rt, T> {
    /// Allocates `here` elements on this rank, zeros or what the memory held before, open to all.
    /// Collective.
    pub(crate) fn new(group: &Group<'rt>, here: usize, zeros: bool) -> Result<Exclusive<'rt, T>> {
        let mut segment = group.allocate_internal(here, zeros)?;
        segment.what = "an array";
        Ok(Exclusive { segment, lent: Cell::new(false) })
    }

    /// The segment, for reading, and for writes that its user orders against views itself: see
    /// the module's page.
    pub(crate) fn segment(&self) -> &Segment<'rt, T> {
        &self.segment
    }

    /// Frees the memory. Collective.
    pub(crate) fn free(self) -> Result<()> {
        self.segment.free()
    }

    /// Completes all writes to all parts, and lends each to its owner. Collective.
    pub(crate) fn lend(&mut self) -> Result<()> {
        let number = self.segment.number();
        collective::scope(Kind::Access, number, || self.segment.group().barrier())?;
        self.lent.set(true);
        Ok(())
    }

    /// Opens all parts to all ranks. Collective.
    pub(crate) fn open(&mut self) -> Result<()> {
        let number = self.segment.number();
        collective::scope(Kind::Release, number, || self.segment.group().barrier())?;
        self.lent.set(false);
        Ok(())
    }

    /// Writing is allowed.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.lent.get() {
            fail!(
                State,
                "the parts are lent to their owners: release the access on all ranks before \
                 elements are put, accumulated or scattered"
            );
        }
        Ok(())
    }

    /// Elements of this rank's own part.
    ///
    /// # Panics
    /// Where the parts are not lent, or the window leaves the part.
    pub(crate) fn view<D: Dimension>(&self, window: &Window<D>) -> ArrayView<'_, T, D> {
        let shape = self.checked(window);
        let first = self.segment.local().as_ptr().wrapping_add(window.start);
        // SAFETY: all elements of the window lie in our part, which is mapped and aligned while
        // `self` is borrowed. It is lent, so that no other rank writes it, and what this rank
        // writes needs `&mut self` or an open segment.
        unsafe { ArrayView::from_shape_ptr(shape, first) }
    }

    /// Elements of this rank's own part, to be changed.
    ///
    /// # Panics
    /// As for [`Exclusive::view`].
    pub(crate) fn view_mut<D: Dimension>(&mut self, window: &Window<D>) -> ArrayViewMut<'_, T, D> {
        let shape = self.checked(window);
        let first = self.segment.local().as_ptr().wrapping_add(window.start);
        // SAFETY: as in `view`; the borrow is exclusive, and the windows that callers make have
        // each element once, as is asserted.
        unsafe { ArrayViewMut::from_shape_ptr(shape, first) }
    }

    fn checked<D: Dimension>(&self, window: &Window<D>) -> ndarray::StrideShape<D> {
        assert!(self.lent.get(), "a view of a part that is open to all ranks");
        let len = self.segment.local().len();
        assert!(window.fits(len), "{window:?} leaves this rank's part, which has {len}");
        // Where there is no element no stride is looked at; ndarray takes some of them for overlaps.
        if window.shape.slice().contains(&0) {
            return window.shape.clone().into();
        }
        // Nested strides: no two indices are one element.
        let (mut inner, axes) = (1, window.shape.slice().iter().zip(window.strides.slice()));
        for (&n, &stride) in axes.rev().filter(|(n, _)| **n > 1) {
            assert!(stride >= inner, "{window:?} has elements twice");
            inner = stride.saturating_mul(n);
        }
        window.shape.clone().strides(window.strides.clone())
    }
}
