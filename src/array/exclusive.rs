//! A segment to whose parts the owners can have exclusive access.
//!
//! A part is memory that other ranks write, so a slice of it is sound only while they do not.
//! [`Exclusive`] has two states, which change collectively. *Shared*: every rank may put, accumulate
//! and get, and no rank has a slice. *Exclusive*: the owner has slices and views of its part, and
//! every rank rejects the functions of this module that write to other ranks. Each change of state
//! is a barrier: when an exclusive access begins, all writes to the part are complete, and when the
//! next write begins, all owners have ended their accesses. Gets are allowed in both states: a get
//! from a part in exclusive access returns old or new elements, or a mixture, which is still a value
//! of the element type.
//!
//! For this reason [`Exclusive::view_mut`] is safe and [`Local::as_mut_slice`] is not. The barriers
//! carry the kind of change and the segment ([`portolan_engine::collective`]). If another rank is
//! in any other collective call, the change fails on both ranks, and no view is created.
//!
//! [`Local::as_mut_slice`]: super::Local::as_mut_slice

use crate::{Element, Group, Segment};
use ndarray::{ArrayView, ArrayViewMut, Dimension, ShapeBuilder};
use portolan_base::error::{Result, fail};
use portolan_engine::collective::{self, Kind};
use std::cell::Cell;

#[derive(Debug)]
pub(crate) struct Exclusive<'rt, T: Element> {
    segment: Segment<'rt, T>,
    exclusive: Cell<bool>,
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
    /// Allocates `here` elements on this rank, in a shared segment. They are zero if `zeros` is set,
    /// otherwise they have the previous contents of the memory. Collective.
    pub(crate) fn new(group: &Group<'rt>, here: usize, zeros: bool) -> Result<Exclusive<'rt, T>> {
        let mut segment = group.allocate_internal(here, zeros)?;
        segment.what = "an array";
        Ok(Exclusive { segment, exclusive: Cell::new(false) })
    }

    /// For reads, and for writes that the caller orders against views.
    pub(crate) fn segment(&self) -> &Segment<'rt, T> {
        &self.segment
    }

    /// Collective.
    pub(crate) fn free(self) -> Result<()> {
        self.segment.free()
    }

    /// Completes all writes to all parts and gives each owner exclusive access. Collective.
    pub(crate) fn make_exclusive(&mut self) -> Result<()> {
        let number = self.segment.number();
        collective::scope(Kind::Access, number, || self.segment.group().barrier())?;
        self.exclusive.set(true);
        Ok(())
    }

    /// Ends the exclusive access to all parts. Collective.
    pub(crate) fn make_shared(&mut self) -> Result<()> {
        let number = self.segment.number();
        collective::scope(Kind::Release, number, || self.segment.group().barrier())?;
        self.exclusive.set(false);
        Ok(())
    }

    /// Completes all writes to all parts, and runs a function that views this rank's part. No code
    /// of the program runs meanwhile except functions of elements. Collective. Afterwards the
    /// caller makes an exchange of all ranks before it returns, so that no rank writes to a part
    /// that its owner still reads. A scope of the caller distinguishes both from other calls.
    pub(crate) fn while_exclusive<R>(&self, read: impl FnOnce() -> Result<R>) -> Result<R> {
        self.segment.group().barrier()?;
        self.as_exclusive(read)
    }

    /// Runs a function as in an exclusive access, inside [`Exclusive::while_exclusive`] of this part
    /// or of another one of the same group.
    pub(crate) fn as_exclusive<R>(&self, read: impl FnOnce() -> R) -> R {
        struct Restore<'a>(&'a Cell<bool>, bool);
        impl Drop for Restore<'_> {
            fn drop(&mut self) {
                self.0.set(self.1);
            }
        }
        let _restore = Restore(&self.exclusive, self.exclusive.replace(true));
        read()
    }

    /// Changes the state. The caller makes the barrier of [`Exclusive::make_exclusive`] before, or the
    /// barrier of [`Exclusive::make_shared`] afterwards.
    pub(crate) fn set_exclusive(&mut self, exclusive: bool) {
        self.exclusive.set(exclusive);
    }

    pub(crate) fn is_exclusive(&self) -> bool {
        self.exclusive.get()
    }

    /// Fails unless the parts are shared.
    #[inline]
    pub(crate) fn check_shared(&self) -> Result<()> {
        if self.exclusive.get() {
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
    /// If the access is not exclusive, or if the window leaves the part.
    pub(crate) fn view<D: Dimension>(&self, window: &Window<D>) -> ArrayView<'_, T, D> {
        let shape = self.checked(window);
        let first = self.segment.local().as_ptr().wrapping_add(window.start);
        // SAFETY: all elements of the window lie in this rank's part, which is mapped and aligned
        // while `self` is borrowed. The access is exclusive, so no other rank writes it. This rank writes
        // it only through `&mut self` or while the segment is shared.
        unsafe { ArrayView::from_shape_ptr(shape, first) }
    }

    /// Returns a mutable view of elements of this rank's own part.
    ///
    /// # Panics
    /// If the access is not exclusive, the window leaves the part, or it contains an element twice.
    pub(crate) fn view_mut<D: Dimension>(&mut self, window: &Window<D>) -> ArrayViewMut<'_, T, D> {
        let shape = self.checked(window);
        let first = self.segment.local().as_ptr().wrapping_add(window.start);
        // SAFETY: all elements of the window lie in this rank's part, which is mapped and aligned
        // while `self` is borrowed. The access is exclusive, so no other rank writes it. The borrow is
        // exclusive, and `checked` asserts that the window contains each element only once.
        unsafe { ArrayViewMut::from_shape_ptr(shape, first) }
    }

    fn checked<D: Dimension>(&self, window: &Window<D>) -> ndarray::StrideShape<D> {
        assert!(self.exclusive.get(), "a view of a part that is shared with all ranks");
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
