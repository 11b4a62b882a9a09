//! Access: between two collective calls every rank has its own elements for itself.

use super::array::DistArray;
use super::check::Kind;
use super::common::InCall;
use super::distribution::OwnBox;
use super::ghosts::GhostUpdate;
use crate::api::Element;
use crate::api::in_call::public;
use crate::error::Result;
use ndarray::{ArrayView, ArrayViewMut, Dimension};
use std::ops::Range;

/// Views of one's own elements; made by [`DistArray::access`].
///
/// It ends by [`Access::release`]. One that is dropped without leaves the parts lent: writes of
/// patches are refused on this rank until a later access was released.
#[derive(Debug)]
#[must_use = "an access ends by its release on all ranks"]
pub struct Access<'a, 'rt, T: Element, D: Dimension> {
    pub(super) array: &'a mut DistArray<'rt, T, D>,
}

impl<'rt, T: Element, D: Dimension> DistArray<'rt, T, D> {
    /// Completes all transfers and gives every rank its own part. Collective.
    ///
    /// # Errors
    /// `Mpi`; `State` where `PORTOLAN_CHECK` finds a race.
    #[track_caller]
    pub fn access(&mut self) -> Result<Access<'_, 'rt, T, D>> {
        public("DistArray::access", || self.access_inner())
    }

    #[track_caller]
    pub(super) fn access_inner(&mut self) -> Result<Access<'_, 'rt, T, D>> {
        self.inner.part.lend()?;
        self.check_races()?;
        Ok(Access { array: self })
    }
}

impl<'rt, T: Element, D: Dimension> Access<'_, 'rt, T, D> {
    /// The array, for gets and for questions.
    pub fn array(&self) -> &DistArray<'rt, T, D> {
        self.array
    }

    /// The global indices of this rank's elements; `None` where blocks are dealt out in turns.
    pub fn bounds(&self) -> Option<Vec<Range<usize>>> {
        self.array.inner.layout.bounds(self.array.inner.group.rank())
    }

    /// The global index of a local index, one axis at a time.
    ///
    /// # Panics
    /// Where this rank has no element of that index on the axis.
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

    /// This rank's elements, without ghost cells. Nothing is copied.
    #[track_caller]
    pub fn local(&self) -> ArrayView<'_, T, D> {
        self.view(false)
    }

    /// This rank's elements, to be changed. Nothing is copied.
    #[track_caller]
    pub fn local_mut(&mut self) -> ArrayViewMut<'_, T, D> {
        self.view_mut(false)
    }

    /// This rank's elements with the ghost cells around them: index `[g, ..]` is the first element,
    /// where `g` is the width.
    #[track_caller]
    pub fn padded(&self) -> ArrayView<'_, T, D> {
        self.view(true)
    }

    /// This rank's elements with the ghost cells around them, to be changed.
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

    /// Calls with each of this rank's elements and its global index.
    pub fn for_each(&mut self, mut each: impl FnMut(&[usize], &mut T)) {
        let boxes = self.array.own_boxes();
        let mut view = self.local_mut().into_dyn();
        for OwnBox { global, local } in boxes {
            let mut part = view.slice_each_axis_mut(|a| local[a.axis.index()].clone().into());
            let mut index: Vec<usize> = global.iter().map(|r| r.start).collect();
            for element in part.iter_mut() {
                each(&index, element);
                // The next index, the last axis running fastest.
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

    /// Fills the ghost cells with their neighbours' elements. Collective. See
    /// [`Access::start_update`] for computing meanwhile.
    ///
    /// # Errors
    /// `Mpi`, and `Memory` on all ranks at the first update of an array.
    pub fn update_ghosts(&mut self) -> Result<()> {
        const CALL: &str = "Access::update_ghosts";
        self.array.start_ghosts().in_call(CALL)?;
        self.array.finish_ghosts().in_call(CALL)
    }

    /// Starts to fill the ghost cells. Collective. While it is under way there is a view without
    /// them, [`GhostUpdate::interior`].
    ///
    /// # Errors
    /// As for [`Access::update_ghosts`].
    pub fn start_update(&mut self) -> Result<GhostUpdate<'_, 'rt, T, D>> {
        self.array.start_ghosts().in_call("Access::start_update")?;
        Ok(GhostUpdate { array: self.array })
    }

    /// Ends the access: every rank may write patches again. Collective.
    ///
    /// # Errors
    /// `Mpi`; `State` where `PORTOLAN_CHECK` finds a race.
    #[track_caller]
    pub fn release(self) -> Result<()> {
        const CALL: &str = "Access::release";
        public(CALL, || {
            self.array.settle();
            self.array.inner.part.open()?;
            self.array.check_races()
        })
    }
}

impl<'rt, T: Element, D: Dimension> DistArray<'rt, T, D> {
    /// Fills the ghost cells with their neighbours' elements. Collective: completes what all ranks
    /// have put before.
    ///
    /// # Errors
    /// As for [`Access::update_ghosts`].
    #[track_caller]
    pub fn update_ghosts(&mut self) -> Result<()> {
        const CALL: &str = "DistArray::update_ghosts";
        let mut access = self.access_inner().in_call(CALL)?;
        access.update_ghosts().in_call(CALL)?;
        access.release().in_call(CALL)
    }
}
