//! A segment whose parts are temporarily lent to their owners.
//!
//! A part is memory that other ranks write, so a slice of it is sound only while they do not.
//! [`Exclusive`] has two states, which change collectively. *Open*: every rank may put, accumulate
//! and get, and no rank has a slice. *Lent*: the owner has slices and views of its part, and every
//! rank rejects the functions of this module that write to other ranks. Each change of state is a
//! barrier: when a part is lent, all writes to it are complete, and when the next write begins, all
//! owners have returned their parts. Gets are allowed in both states: a get from a lent part
//! returns old or new elements, or a mixture, which is still a value of the element type.
//!
//! For this reason [`Exclusive::view_mut`] is safe and [`Local::as_mut_slice`] is not. The barriers
//! carry the kind of change and the segment ([`portolan_engine::collective`]). If another rank is
//! in any other collective call, the change fails on both ranks, and no view is created.
//!
//! [`Local::as_mut_slice`]: super::Local::as_mut_slice

use crate::{Element, Group, Segment};
use ndarray::{ArrayView, ArrayViewMut, Dimension, ShapeBuilder};
use portolan_engine::collective::{self, Kind};
use portolan_engine::error::{Result, fail};
use std::cell::Cell;

#[derive(Debug)]
pub(crate) struct Exclusive<'rt, T: Element> {
    segment: Segment<'rt, T>,
    lent: Cell<bool>,
}

/// Elements of this rank's own part: the offset of the first one, and a count and a stride for each
/// axis.
#[derive(Debug, Clone)]
pub(crate) struct Window<D> {
    pub start: usize,
    pub shape: D,
    pub strides: D,
}

impl<D: Dimension> Window<D> {
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
    /// Allocates `here` elements on this rank, in an open segment. They are zero if `zeros` is set,
    /// otherwise they have the previous contents of the memory. Collective.
    pub(crate) fn new(group: &Group<'rt>, here: usize, zeros: bool) -> Result<Exclusive<'rt, T>> {
        let mut segment = group.allocate_internal(here, zeros)?;
        segment.what = "an array";
        Ok(Exclusive { segment, lent: Cell::new(false) })
    }

    /// For reads, and for writes that the caller orders against views.
    pub(crate) fn segment(&self) -> &Segment<'rt, T> {
        &self.segment
    }

    /// Collective.
    pub(crate) fn free(self) -> Result<()> {
        self.segment.free()
    }

    /// Completes all writes to all parts and lends each part to its owner. Collective.
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

    /// Completes all writes to all parts, and runs a function that views this rank's part. No code
    /// of the program runs meanwhile except functions of elements. Collective. Afterwards the
    /// caller makes an exchange of all ranks before it returns, so that no rank writes to a part
    /// that its owner still reads. A scope of the caller distinguishes both from other calls.
    pub(crate) fn while_lent<R>(&self, read: impl FnOnce() -> Result<R>) -> Result<R> {
        self.segment.group().barrier()?;
        self.as_lent(read)
    }

    /// Runs a function as if the part were lent, inside [`Exclusive::while_lent`] of this part or of
    /// another one of the same group.
    pub(crate) fn as_lent<R>(&self, read: impl FnOnce() -> R) -> R {
        struct Restore<'a>(&'a Cell<bool>, bool);
        impl Drop for Restore<'_> {
            fn drop(&mut self) {
                self.0.set(self.1);
            }
        }
        let _restore = Restore(&self.lent, self.lent.replace(true));
        read()
    }

    /// After a barrier of the caller, as in [`Exclusive::lend`] and before that of
    /// [`Exclusive::open`].
    pub(crate) fn set_lent(&mut self, lent: bool) {
        self.lent.set(lent);
    }

    pub(crate) fn is_lent(&self) -> bool {
        self.lent.get()
    }

    /// Fails unless the parts are open.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.lent.get() {
            fail!(
                State,
                "the owners have exclusive access to their parts: release it on all ranks before \
                 elements are put, accumulated or scattered"
            );
        }
        Ok(())
    }

    /// Returns a view of elements of this rank's own part.
    ///
    /// # Panics
    /// If the parts are not lent, or if the window leaves the part.
    pub(crate) fn view<D: Dimension>(&self, window: &Window<D>) -> ArrayView<'_, T, D> {
        let shape = self.checked(window);
        let first = self.segment.local().as_ptr().wrapping_add(window.start);
        // SAFETY: all elements of the window lie in this rank's part, which is mapped and aligned
        // while `self` is borrowed. The part is lent, so no other rank writes it. This rank writes
        // it only through `&mut self` or while the segment is open.
        unsafe { ArrayView::from_shape_ptr(shape, first) }
    }

    /// Returns a mutable view of elements of this rank's own part.
    ///
    /// # Panics
    /// If the parts are not lent, the window leaves the part, or it contains an element twice.
    pub(crate) fn view_mut<D: Dimension>(&mut self, window: &Window<D>) -> ArrayViewMut<'_, T, D> {
        let shape = self.checked(window);
        let first = self.segment.local().as_ptr().wrapping_add(window.start);
        // SAFETY: all elements of the window lie in this rank's part, which is mapped and aligned
        // while `self` is borrowed. The part is lent, so no other rank writes it. The borrow is
        // exclusive, and `checked` asserts that the window contains each element only once.
        unsafe { ArrayViewMut::from_shape_ptr(shape, first) }
    }

    fn checked<D: Dimension>(&self, window: &Window<D>) -> ndarray::StrideShape<D> {
        assert!(self.lent.get(), "a view of a part that is open to all ranks");
        let len = self.segment.local().len();
        assert!(window.fits(len), "{window:?} exceeds this rank's part, which has {len} elements");
        // The strides of an empty window are never used, but ndarray would see overlaps in some.
        if window.shape.slice().contains(&0) {
            return window.shape.clone().into();
        }
        // The strides are nested, so no two indices denote the same element.
        let (mut inner, axes) = (1, window.shape.slice().iter().zip(window.strides.slice()));
        for (&n, &stride) in axes.rev().filter(|(n, _)| **n > 1) {
            assert!(stride >= inner, "{window:?} contains an element twice");
            inner = stride.saturating_mul(n);
        }
        window.shape.clone().strides(window.strides.clone())
    }
}
