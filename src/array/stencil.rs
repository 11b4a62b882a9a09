//! Stencil steps: compute the interior while the ghost cells are in flight, then the rim.

use super::access::Access;
use super::dist_array::DistArray;
use super::distribution::OwnBox;
use crate::Element;
use crate::in_call::InCall;
use ndarray::{ArrayView, ArrayViewMut, Dimension};
use portolan_base::error::{Result, fail};
use portolan_base::thread::PublicCall;
use std::ops::Range;

impl<'rt, T: Element, D: Dimension> Access<'_, 'rt, T, D> {
    /// Computes this rank's elements of `to` from the same elements of this array and their
    /// neighbours. Updates the ghost cells of this array once. Collective.
    ///
    /// `step(old, new, first)` is called with boxes that together cover this rank's elements
    /// exactly once: first with the interior, which needs no ghost cells and is computed while they
    /// are in flight, then with the rim. `new` is a box of `to`, and `first` is the global index of
    /// its first element. `old` is the same box of this array, extended on all sides by the width
    /// of the ghost cells `g`: the neighbour of `new[[i, j]]` at distance `(di, dj)` is
    /// `old[[i + g + di, j + g + dj]]`.
    ///
    /// ```no_run
    /// # use portolan::array::Access;
    /// # use ndarray::Ix1;
    /// # fn smooth(old: &mut Access<'_, '_, f64, Ix1>, new: &mut Access<'_, '_, f64, Ix1>) -> portolan::Result<()> {
    /// old.stencil(new, |old, mut new, _| {
    ///     for i in 0..new.len() {
    ///         new[i] = (old[i] + old[i + 1] + old[i + 2]) / 3.0;
    ///     }
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns `Argument` if `to` has another shape, distribution or group or the distribution is
    /// block-cyclic, and `Mpi` if a transfer fails.
    #[track_caller]
    pub fn stencil<U: Element>(
        &mut self,
        to: &mut Access<'_, '_, U, D>,
        mut step: impl FnMut(ArrayView<'_, T, D>, ArrayViewMut<'_, U, D>, &[usize]),
    ) -> Result<()> {
        let call = PublicCall::enter("Access::stencil");
        self.check_stencil(to.array).in_call(call.name())?;
        let ghosts: Vec<usize> = self.array.ghosts().to_vec();
        let boxes = self.array.own_boxes();
        let update = self.start_update().in_call(call.name())?;
        let mut new = to.local_mut();
        let mut rim = Vec::new();
        if let Some(OwnBox { global, local }) = boxes.into_iter().next() {
            let first = |part: &[Range<usize>]| -> Vec<usize> {
                part.iter().zip(&global).map(|(r, g)| r.start + g.start).collect()
            };
            let (old, sides) = update.settled();
            let inside = |axis: usize| {
                let ((low, high), g) = (sides[axis], ghosts[axis]);
                let start = g - low;
                start..(local[axis].end + high).saturating_sub(g).max(start)
            };
            let interior: Vec<Range<usize>> = (0..local.len()).map(inside).collect();
            if interior.iter().all(|r| !r.is_empty()) {
                let part = new.slice_each_axis_mut(|a| interior[a.axis.index()].clone().into());
                step(old, part, &first(&interior));
                rim.extend(rims(&local, &interior).into_iter().map(|r| (first(&r), r)));
            } else {
                rim.push((first(&local), local.clone()));
            }
        }
        update.finish().in_call(call.name())?;
        let old = self.padded();
        for (first, part) in rim {
            let around = old.slice_each_axis(|a| {
                let axis = a.axis.index();
                (part[axis].start..part[axis].end + 2 * ghosts[axis]).into()
            });
            let part = new.slice_each_axis_mut(|a| part[a.axis.index()].clone().into());
            step(around, part, &first);
        }
        Ok(())
    }

    fn check_stencil<U: Element>(&self, to: &DistArray<'_, U, D>) -> Result<()> {
        let (ours, theirs) = (&self.array.inner.layout, &to.inner.layout);
        self.array.check_group(to)?;
        if !ours.owns_like(theirs) {
            fail!(
                Argument,
                "array \"{}\" and array \"{}\" are not distributed alike",
                self.array.name(),
                to.name()
            );
        }
        if ours.bounds(0).is_none() {
            let name = self.array.name();
            fail!(
                Argument,
                "array \"{name}\" is block-cyclic; a stencil needs one block on each rank"
            );
        }
        Ok(())
    }
}

/// Returns boxes that together cover the elements of `whole` outside `inner` exactly once.
fn rims(whole: &[Range<usize>], inner: &[Range<usize>]) -> Vec<Vec<Range<usize>>> {
    let mut boxes = Vec::new();
    for axis in 0..whole.len() {
        let ends = [whole[axis].start..inner[axis].start, inner[axis].end..whole[axis].end];
        for end in ends.into_iter().filter(|r| !r.is_empty()) {
            let mut part = inner[..axis].to_vec();
            part.push(end);
            part.extend_from_slice(&whole[axis + 1..]);
            boxes.push(part);
        }
    }
    boxes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rims_and_the_inner_box_are_the_whole() {
        let (whole, inner) = ([0..5, 0..7, 0..4], [1..4, 2..5, 1..3]);
        let mut seen = vec![0; 5 * 7 * 4];
        for part in rims(&whole, &inner).into_iter().chain([inner.to_vec()]) {
            for i in part[0].clone() {
                for j in part[1].clone() {
                    part[2].clone().for_each(|k| seen[(i * 7 + j) * 4 + k] += 1);
                }
            }
        }
        assert!(seen.iter().all(|n| *n == 1));
    }
}
