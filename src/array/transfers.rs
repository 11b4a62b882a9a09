//! Get, put and accumulate of patches.

use super::check::Kind;
use super::dist_array::DistArray;
use super::fresh_array::zeros;
use super::patch::Patch;
use super::views::Fragment;
use crate::in_call::InCall;
use crate::transfer::Pending;
use crate::{Accumulate, Element};
use ndarray::{Array, ArrayBase, ArrayViewMut, Data, Dimension, IntoDimension};
use portolan_base::error::{Result, fail};
use portolan_base::thread::PublicCall;

impl<T: Element, D: Dimension> DistArray<'_, T, D> {
    /// Gets a patch into a new array of the patch's shape. The elements have arrived on return.
    ///
    /// ```no_run
    /// # use portolan::array::{DistArray, Patch};
    /// # fn some(a: &DistArray<'_, f64, ndarray::Ix2>) -> portolan::Result<()> {
    /// let block = a.get([10..20, 30..50])?; // 10 by 20
    /// let every_third = a.get(Patch::strided([0..90, 0..10], [3, 1])?)?; // 30 by 10
    /// let around = a.get(Patch::periodic([-1..2, 0..10]))?; // 3 by 10
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns `Argument` if the patch has another number of axes or exceeds the address space, and
    /// `Address` if it leaves the array. Both errors name the array, its shape and the patch.
    /// Returns `Memory` if the new array cannot be allocated.
    #[track_caller]
    pub fn get(&self, patch: impl Into<Patch>) -> Result<Array<T, D>> {
        let call = PublicCall::enter("DistArray::get");
        let (patch, part) = (patch.into(), &self.inner.part);
        self.partition(&patch, Kind::Get, |p| part.get_owned(p, patch.dimension()))
            .in_call(call.name())
    }

    /// Gets a patch into a view of the same shape, with any strides. Returns after the arrival.
    ///
    /// # Errors
    /// Returns the same errors as [`DistArray::get`], and `Argument` if the shapes differ.
    #[track_caller]
    pub fn get_into(
        &self,
        patch: impl Into<Patch>,
        mut target: ArrayViewMut<'_, T, D>,
    ) -> Result<()> {
        let call = PublicCall::enter("DistArray::get_into");
        let (patch, part, shape) = (patch.into(), &self.inner.part, target.raw_dim());
        self.partition_like(&patch, shape.slice(), Kind::Get, |p| part.get_view(p, &mut target))
            .in_call(call.name())
    }

    /// Puts an array or a view of any strides to a patch of the same shape. The source may be
    /// reused on return; [`DistArray::sync`] makes the elements visible to other ranks.
    ///
    /// # Errors
    /// Returns the same errors as [`DistArray::get_into`], and `State` during an access.
    #[track_caller]
    pub fn put<S: Data<Elem = T>>(
        &self,
        patch: impl Into<Patch>,
        source: &ArrayBase<S, D>,
    ) -> Result<()> {
        let call = PublicCall::enter("DistArray::put");
        let (patch, part) = (patch.into(), &self.inner.part);
        self.partition_like(&patch, source.shape(), Kind::Put, |p| part.put_view(p, source))
            .in_call(call.name())
    }

    /// Gets one element.
    ///
    /// # Errors
    /// Returns `Address` if the index lies outside the array.
    #[track_caller]
    pub fn get_value(&self, index: impl IntoDimension<Dim = D>) -> Result<T> {
        const CALL: &str = "DistArray::get_value";
        let index = index.into_dimension();
        let (rank, offset) = self.locate(index.slice()).in_call(CALL)?;
        self.note_index(Kind::Get, index.slice());
        self.inner.part.segment().get_value(rank, offset).in_call(CALL)
    }

    /// Puts one element.
    ///
    /// # Errors
    /// Returns `Address` if the index lies outside the array, and `State` during an access.
    #[track_caller]
    pub fn put_value(&self, index: impl IntoDimension<Dim = D>, value: T) -> Result<()> {
        const CALL: &str = "DistArray::put_value";
        let index = index.into_dimension();
        let (rank, offset) = self.locate(index.slice()).in_call(CALL)?;
        self.check_shared().in_call(CALL)?;
        self.note_index(Kind::Put, index.slice());
        self.inner.part.segment().put_value(rank, offset, value).in_call(CALL)
    }

    /// Starts to get a patch. [`Pending::wait`] returns the array.
    ///
    /// The distributed array can be neither freed nor accessed meanwhile:
    ///
    /// ```compile_fail,E0505
    /// # use portolan::array::DistArray;
    /// # use ndarray::Ix1;
    /// fn early(a: DistArray<'_, f64, Ix1>) -> portolan::Result<()> {
    ///     let pending = a.start_get([0..8])?;
    ///     a.free()?;
    ///     pending.wait().map(drop)
    /// }
    /// ```
    ///
    /// # Errors
    /// Returns the same errors as [`DistArray::get`].
    #[track_caller]
    pub fn start_get(&self, patch: impl Into<Patch>) -> Result<Pending<'_, Array<T, D>>> {
        let call = PublicCall::enter("DistArray::start_get");
        let (patch, part) = (patch.into(), &self.inner.part);
        self.partition(&patch, Kind::Get, |p| part.start_get(p, self.empty(&patch)?))
            .in_call(call.name())
    }

    /// Starts to put an array to a patch. [`Pending::wait`] returns the array for reuse.
    ///
    /// # Errors
    /// Returns the same errors as [`DistArray::put`].
    #[track_caller]
    pub fn start_put(
        &self,
        patch: impl Into<Patch>,
        source: Array<T, D>,
    ) -> Result<Pending<'_, Array<T, D>>> {
        let call = PublicCall::enter("DistArray::start_put");
        let (patch, part, shape) = (patch.into(), &self.inner.part, source.raw_dim());
        self.partition_like(&patch, shape.slice(), Kind::Put, |p| part.start_put(p, source))
            .in_call(call.name())
    }

    /// Checks and records an access to a patch, and calls `then` with its transfers.
    #[track_caller]
    pub(super) fn partition<R>(
        &self,
        patch: &Patch,
        kind: Kind,
        then: impl FnOnce(&[Fragment]) -> Result<R>,
    ) -> Result<R> {
        self.check(patch, kind)?;
        self.note_patch(kind, patch);
        self.inner.layout.partition(patch, then)
    }

    #[inline]
    fn check(&self, patch: &Patch, kind: Kind) -> Result<()> {
        patch.check(self.name(), self.shape())?;
        if kind == Kind::Get { Ok(()) } else { self.check_shared() }
    }

    /// [`DistArray::partition`] for a transfer with a local array of shape `shape`.
    #[track_caller]
    pub(super) fn partition_like<R>(
        &self,
        patch: &Patch,
        shape: &[usize],
        kind: Kind,
        then: impl FnOnce(&[Fragment]) -> Result<R>,
    ) -> Result<R> {
        self.check(patch, kind)?;
        if !patch.counts().eq(shape.iter().copied()) {
            fail!(
                Argument,
                "array \"{}\": the patch {patch} has the shape {:?}, but the local array has {shape:?}",
                self.name(),
                patch.shape()
            );
        }
        self.note_patch(kind, patch);
        self.inner.layout.partition(patch, then)
    }

    #[inline]
    pub(super) fn check_shared(&self) -> Result<()> {
        self.inner.part.check_shared().map_err(|e| {
            crate::Error::new(e.kind(), format!("array \"{}\": {}", self.name(), e.detail()))
        })
    }

    pub(super) fn empty(&self, patch: &Patch) -> Result<Array<T, D>> {
        zeros(patch.dimension::<D>())
    }
}

impl<T: Accumulate, D: Dimension> DistArray<'_, T, D> {
    /// Adds `alpha` times an array to a patch of the same shape, each element atomically. The
    /// source may be reused on return.
    ///
    /// # Errors
    /// Returns the same errors as [`DistArray::put`].
    #[track_caller]
    pub fn accumulate<S: Data<Elem = T>>(
        &self,
        patch: impl Into<Patch>,
        alpha: T,
        source: &ArrayBase<S, D>,
    ) -> Result<()> {
        let call = PublicCall::enter("DistArray::accumulate");
        let (patch, part) = (patch.into(), &self.inner.part);
        self.partition_like(&patch, source.shape(), Kind::Add, |p| part.add_view(p, alpha, source))
            .in_call(call.name())
    }

    /// Starts to add `alpha` times an array to a patch. [`Pending::wait`] returns the array.
    ///
    /// # Errors
    /// Returns the same errors as [`DistArray::put`].
    #[track_caller]
    pub fn start_accumulate(
        &self,
        patch: impl Into<Patch>,
        alpha: T,
        source: Array<T, D>,
    ) -> Result<Pending<'_, Array<T, D>>> {
        let call = PublicCall::enter("DistArray::start_accumulate");
        let (patch, part, shape) = (patch.into(), &self.inner.part, source.raw_dim());
        self.partition_like(&patch, shape.slice(), Kind::Add, |p| part.start_add(p, alpha, source))
            .in_call(call.name())
    }
}
