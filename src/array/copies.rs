//! Copies between arrays with different distributions, and transposes. Each rank gets the elements
//! that it owns straight into its part.

use super::dist_array::DistArray;
use super::distribution::OwnBox;
use super::patch::Patch;
use crate::Element;
use crate::in_call::InCall;
use ndarray::Dimension;
use portolan_base::error::{Result, fail};
use portolan_base::thread::PublicCall;

impl<'rt, T: Element, D: Dimension> DistArray<'rt, T, D> {
    /// Copies all elements of another array, which may have another distribution. Collective.
    ///
    /// # Errors
    /// Returns `Argument` if the shapes or groups differ, and `Mpi` if a transfer fails.
    #[track_caller]
    #[doc(alias = "copy_from")]
    pub fn assign(&mut self, other: &DistArray<'_, T, D>) -> Result<()> {
        let call = PublicCall::enter("DistArray::assign");
        self.check_alike(other).in_call(call.name())?;
        self.fetch(other, false).in_call(call.name())
    }

    /// Creates an array with the same elements and the distribution of `options`. Collective.
    ///
    /// # Errors
    /// Returns the same errors as [`DistArray::with`].
    #[track_caller]
    pub fn redistribute(
        &self,
        options: super::dist_array::Options,
    ) -> Result<DistArray<'rt, T, D>> {
        let call = PublicCall::enter("DistArray::redistribute");
        let shape = super::dist_array::dimension::<D>(self.shape());
        let mut made = DistArray::with(self.group(), shape, options).in_call(call.name())?;
        made.fetch(self, false).in_call(call.name())?;
        Ok(made)
    }

    /// Makes this array the transpose of another one: element `[i, j]` becomes element `[j, i]` of
    /// `other`. With more than two axes, the order of the axes is reversed. Collective.
    ///
    /// # Errors
    /// Returns `Argument` if this shape is not the reverse of the other one or the groups differ,
    /// and `Mpi` if a transfer fails.
    #[track_caller]
    pub fn transpose_from(&mut self, other: &DistArray<'_, T, D>) -> Result<()> {
        let call = PublicCall::enter("DistArray::transpose_from");
        self.check_group(other).in_call(call.name())?;
        if !self.shape().iter().eq(other.shape().iter().rev()) {
            let refused = || {
                fail!(
                    Argument,
                    "array \"{}\" of shape {:?} cannot be the transpose of array \"{}\" of shape {:?}",
                    self.name(),
                    self.shape(),
                    other.name(),
                    other.shape()
                )
            };
            return refused().in_call(call.name());
        }
        self.fetch(other, true).in_call(call.name())
    }

    #[track_caller]
    fn fetch(&mut self, other: &DistArray<'_, T, D>, reversed: bool) -> Result<()> {
        let boxes = self.own_boxes();
        let mut mine = self.access_inner()?;
        let mut view = mine.local_mut();
        for OwnBox { mut global, local } in boxes {
            let part = view.slice_each_axis_mut(|a| local[a.axis.index()].clone().into());
            let mut part = if reversed { part.reversed_axes() } else { part };
            if reversed {
                global.reverse();
            }
            let get = |p: &[_]| other.inner.part.get_view(p, &mut part);
            other.inner.layout.partition(&Patch::from(&global[..]), get)?;
        }
        mine.release()
    }
}
