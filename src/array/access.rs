//! Accesses: between two collective calls, every rank has exclusive access to its own elements.

use super::axis::Dims;
use super::check::Kind;
use super::dist_array::{DistArray, dimension};
use super::distribution::OwnBox;
use super::ghosts::GhostUpdate;
use crate::Element;
use crate::in_call::public;
use ndarray::{ArrayView, ArrayViewMut, Dimension};
use portolan_base::error::Result;
use std::ops::Range;

/// Exclusive access to this rank's own elements; created by [`DistArray::access`].
///
/// [`Access::release`] ends the access. If the value is dropped instead, the access goes on: this
/// rank cannot write patches until a later access is released.
#[derive(Debug)]
#[must_use = "an access ends by its release on all ranks"]
pub struct Access<'a, 'rt, T: Element, D: Dimension> {
    pub(super) array: &'a mut DistArray<'rt, T, D>,
}

impl<'rt, T: Element, D: Dimension> DistArray<'rt, T, D> {
    /// Completes all transfers and gives every rank exclusive access to its own part. Collective.
    ///
    /// # Errors
    /// Returns `Mpi` if the transfers cannot be completed, and `State` if `PORTOLAN_CHECK` detects
    /// a race.
    #[track_caller]
    pub fn access(&mut self) -> Result<Access<'_, 'rt, T, D>> {
        public("DistArray::access", || self.access_inner())
    }

    pub(super) fn access_inner(&mut self) -> Result<Access<'_, 'rt, T, D>> {
        self.inner.part.make_exclusive()?;
        self.check_races()?;
        Ok(Access { array: self })
    }
}

impl<'rt, T: Element, D: Dimension> DistArray<'rt, T, D> {
    /// See [`binding::resume`](crate::binding::resume).
    pub(crate) fn resume(&mut self) -> Option<Access<'_, 'rt, T, D>> {
        self.inner.part.is_exclusive().then_some(Access { array: self })
    }
}

impl<'rt, T: Element, D: Dimension> Access<'_, 'rt, T, D> {
    /// Returns the array, for gets and queries.
    pub fn array(&self) -> &DistArray<'rt, T, D> {
        self.array
    }

    /// Returns the global indices of this rank's elements, or `None` if a block-cyclic layout
    /// spreads them over several boxes.
    pub fn bounds(&self) -> Option<Vec<Range<usize>>> {
        self.array.inner.layout.bounds(self.array.inner.group.rank())
    }

    /// Converts a local index on one axis to a global index.
    ///
    /// # Panics
    /// Panics if this rank has no element with that index on the axis.
    pub fn global(&self, axis: usize, local: usize) -> usize {
        let inner = &*self.array.inner;
        let extents = inner.layout.extents(inner.group.rank());
        assert!(
            local < extents[axis],
            "array \"{}\": local index {local} on axis {axis}, where this rank has {}",
            inner.name,
            extents[axis]
        );
        inner.layout.global(axis, inner.coords.as_ref().map_or(0, |c| c[axis]), local)
    }

    /// Returns the global indices of this rank's elements on one axis.
    ///
    /// # Panics
    /// Panics if the array does not have the axis.
    pub fn globals(&self, axis: usize) -> impl ExactSizeIterator<Item = usize> {
        let inner = &*self.array.inner;
        let count = inner.layout.extents(inner.group.rank())[axis];
        let coord = inner.coords.as_ref().map_or(0, |c| c[axis]);
        (0..count).map(move |local| inner.layout.global(axis, coord, local))
    }

    /// Returns a view of this rank's elements, without ghost cells. No element is copied.
    ///
    /// # Panics
    /// Panics if an update of the ghost cells is in progress and fails.
    #[track_caller]
    pub fn local(&self) -> ArrayView<'_, T, D> {
        self.view(false)
    }

    /// Returns a mutable view of this rank's elements, without ghost cells. No element is copied.
    ///
    /// # Panics
    /// Panics as [`Access::local`] does.
    #[track_caller]
    pub fn local_mut(&mut self) -> ArrayViewMut<'_, T, D> {
        self.view_mut(false)
    }

    /// Returns a view of this rank's elements and the ghost cells around them. The first element
    /// has index `[g, ..]`, where `g` is the width of the ghost cells.
    ///
    /// # Panics
    /// Panics as [`Access::local`] does.
    #[track_caller]
    pub fn padded(&self) -> ArrayView<'_, T, D> {
        self.view(true)
    }

    /// Returns a mutable view of this rank's elements and the ghost cells around them.
    ///
    /// # Panics
    /// Panics as [`Access::local`] does.
    #[track_caller]
    pub fn padded_mut(&mut self) -> ArrayViewMut<'_, T, D> {
        self.view_mut(true)
    }

    #[track_caller]
    fn view(&self, ghosts: bool) -> ArrayView<'_, T, D> {
        self.array.settle();
        self.array.note_own(Kind::Get);
        self.array.inner.part.view(&self.array.window(ghosts))
    }

    #[track_caller]
    fn view_mut(&mut self, ghosts: bool) -> ArrayViewMut<'_, T, D> {
        self.array.settle();
        self.array.note_own(Kind::Put);
        let window = self.array.window(ghosts);
        self.array.inner.part.view_mut(&window)
    }

    /// Calls `each` for each of this rank's elements, with the element's global index and a mutable
    /// reference to the element. The index has the form that `ndarray` uses for `D`, as in
    /// `|(i, j), x|`.
    ///
    /// # Panics
    /// Panics as [`Access::local`] does.
    #[track_caller]
    pub fn for_each(&mut self, mut each: impl FnMut(D::Pattern, &mut T)) {
        let boxes = self.array.own_boxes();
        let mut view = self.local_mut();
        for OwnBox { global, local } in boxes {
            let mut part = view.slice_each_axis_mut(|a| local[a.axis.index()].clone().into());
            let starts: Dims = global.iter().map(|r| r.start).collect();
            let mut next = dimension::<D>(&starts);
            for element in part.iter_mut() {
                each(next.clone().into_pattern(), element);
                // Advance to the next index; the last axis varies fastest.
                let index = next.slice_mut();
                for axis in (0..index.len()).rev() {
                    index[axis] += 1;
                    if index[axis] < global[axis].end || axis == 0 {
                        break;
                    }
                    index[axis] = global[axis].start;
                }
            }
        }
    }

    /// Fills the ghost cells with the elements of the neighbours. Collective. To compute while the
    /// elements are in flight, use [`Access::start_update`].
    ///
    /// # Errors
    /// Returns `Mpi` if the transfers fail, and, at the first update of an array, `Memory` on all
    /// ranks if the exchange cannot be allocated.
    #[track_caller]
    pub fn update_ghosts(&mut self) -> Result<()> {
        public("Access::update_ghosts", || {
            self.array.start_ghosts()?;
            self.array.finish_ghosts()
        })
    }

    /// Starts to fill the ghost cells. Collective. Until the update is finished, only a view
    /// without ghost cells is available, [`GhostUpdate::interior`].
    ///
    /// # Errors
    /// Returns the same errors as [`Access::update_ghosts`].
    #[track_caller]
    pub fn start_update(&mut self) -> Result<GhostUpdate<'_, 'rt, T, D>> {
        public("Access::start_update", || self.array.start_ghosts())?;
        Ok(GhostUpdate { array: self.array })
    }

    /// Waits for an update that [`Access::start_update`] has started. Returns at once without one.
    ///
    /// # Errors
    /// Returns `Mpi` if a transfer fails.
    #[track_caller]
    pub fn finish_update(&mut self) -> Result<()> {
        public("Access::finish_update", || self.array.finish_ghosts())
    }

    /// Ends the access: every rank may write patches again. Collective.
    ///
    /// # Errors
    /// Returns `Mpi` if the barrier or an update of the ghost cells fails, and `State` if
    /// `PORTOLAN_CHECK` detects a race.
    #[track_caller]
    pub fn release(self) -> Result<()> {
        public("Access::release", || {
            self.array.finish_ghosts()?;
            self.array.inner.part.make_shared()?;
            self.array.check_races()
        })
    }
}

impl<'rt, T: Element, D: Dimension> DistArray<'rt, T, D> {
    /// Fills the ghost cells as [`Access::update_ghosts`] does, in an access of its own.
    /// Collective: first completes all puts of all ranks.
    ///
    /// # Errors
    /// Fails as [`Access::update_ghosts`] does.
    #[track_caller]
    pub fn update_ghosts(&mut self) -> Result<()> {
        public("DistArray::update_ghosts", || {
            let mut access = self.access_inner()?;
            access.update_ghosts()?;
            access.release()
        })
    }
}
