//! Scoped transfers between patches and borrowed views.

use super::check::Kind;
use super::dist_array::DistArray;
use super::patch::Patch;
use super::views::Fragment;
use crate::in_call::InCall;
use crate::transfer::{Pending, Scope};
use crate::{Accumulate, Element};
use ndarray::{ArrayBase, ArrayViewMut, Data, Dimension};
use portolan_base::error::Result;
use portolan_base::thread::PublicCall;
use portolan_engine::transfer::TransferKind;

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Starts to get a patch into a view. The view is borrowed until [`Pending::wait`] returns
    /// it, or until the end of the scope.
    ///
    /// ```no_run
    /// # use portolan::array::DistArray;
    /// # fn two(rt: &portolan::Runtime, a: &DistArray<'_, f64, ndarray::Ix2>) -> portolan::Result<()> {
    /// let mut both = ndarray::Array2::zeros((10, 20));
    /// let (left, right) = both.view_mut().split_at(ndarray::Axis(1), 10);
    /// rt.scope(|s| {
    ///     s.get_patch(a, [0..10, 0..10], left)?;
    ///     s.get_patch(a, [50..60, 0..10], right)?;
    ///     // compute on something else meanwhile
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// Reading the target before the end of the scope does not compile:
    ///
    /// ```compile_fail,E0502
    /// # use portolan::array::DistArray;
    /// # fn early(rt: &portolan::Runtime, a: &DistArray<'_, f64, ndarray::Ix1>) -> portolan::Result<f64> {
    /// let mut target = ndarray::Array1::zeros(10);
    /// rt.scope(|s| {
    ///     s.get_patch(a, [0..10], target.view_mut())?;
    ///     Ok(target[0])
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns the same errors as [`DistArray::get_into`].
    #[track_caller]
    pub fn get_patch<T: Element, D: Dimension>(
        &'scope self,
        array: &'env DistArray<'_, T, D>,
        patch: impl Into<Patch>,
        target: ArrayViewMut<'env, T, D>,
    ) -> Result<Pending<'scope, ArrayViewMut<'env, T, D>>> {
        let call = PublicCall::enter("Scope::get_patch");
        let (patch, part, shape) = (patch.into(), &array.inner.part, target.raw_dim());
        array
            .partition_like(&patch, shape.slice(), Kind::Get, |p| self.start_view(part, p, target))
            .in_call(call.name())
    }

    /// Starts to put an array or a view to a patch. The source is borrowed until the scope ends.
    ///
    /// # Errors
    /// Returns the same errors as [`DistArray::put`].
    #[track_caller]
    pub fn put_patch<T: Element, S: Data<Elem = T>, D: Dimension>(
        &'scope self,
        array: &'env DistArray<'_, T, D>,
        patch: impl Into<Patch>,
        source: &'env ArrayBase<S, D>,
    ) -> Result<Pending<'scope, ()>> {
        let call = PublicCall::enter("Scope::put_patch");
        let (patch, part, kind) = (patch.into(), &array.inner.part, TransferKind::Put);
        let write = |p: &[Fragment]| self.start_write(part, kind, p, source);
        array.partition_like(&patch, source.shape(), Kind::Put, write).in_call(call.name())
    }

    /// Starts to add `alpha` times an array or a view to a patch. The source is borrowed until the
    /// end of the scope.
    ///
    /// # Errors
    /// Returns the same errors as [`DistArray::put`].
    #[track_caller]
    pub fn accumulate_patch<T: Accumulate, S: Data<Elem = T>, D: Dimension>(
        &'scope self,
        array: &'env DistArray<'_, T, D>,
        patch: impl Into<Patch>,
        alpha: T,
        source: &'env ArrayBase<S, D>,
    ) -> Result<Pending<'scope, ()>> {
        let call = PublicCall::enter("Scope::accumulate_patch");
        let (patch, part) = (patch.into(), &array.inner.part);
        let kind = TransferKind::Accumulate(alpha.scale());
        let write = |p: &[Fragment]| self.start_write(part, kind, p, source);
        array.partition_like(&patch, source.shape(), Kind::Add, write).in_call(call.name())
    }
}
