//! Operations on all elements, collective over the array's group. Each begins and ends with a sync.
//! Each rank computes its own elements. It gets the elements of arrays with another distribution in
//! slabs that fit in the cache.

use super::dist_array::{DistArray, Options};
use super::distribution::OwnBox;
use super::patch::Patch;
use crate::in_call::InCall;
use crate::{Element, Group};
use ndarray::{Array, Dimension, IntoDimension, LinalgScalar, Zip};
use num_complex::Complex;
use portolan_base::error::{Result, fail};
use portolan_base::thread::PublicCall;
use portolan_engine::collective::{self, Kind};
use std::any::Any;

/// Maximum number of elements of a slab. A single row may be longer.
pub(super) const SLAB: usize = 1 << 14;

/// Returns a number as text, and the bytes of an element of another type.
fn shown<T: Element>(value: &T) -> String {
    macro_rules! number {
        ($($ty:ty)+) => {
            $(if let Some(number) = (value as &dyn Any).downcast_ref::<$ty>() {
                return number.to_string();
            })+
        };
    }
    number!(i8 u8 i16 u16 i32 u32 i64 u64 f32 f64 Complex<f32> Complex<f64>);
    format!("the bytes {:?}", bytemuck::bytes_of(value))
}

impl<'rt, T: Element, D: Dimension> DistArray<'rt, T, D> {
    /// Creates an array, as [`DistArray::zeros`] does, whose elements have the given value.
    /// Collective: all ranks pass the same shape and value.
    ///
    /// # Errors
    /// Returns the errors of [`DistArray::zeros`] and of [`DistArray::fill`].
    #[track_caller]
    pub fn from_elem(
        group: &Group<'rt>,
        shape: impl IntoDimension<Dim = D>,
        value: T,
    ) -> Result<DistArray<'rt, T, D>> {
        let call = PublicCall::enter("DistArray::from_elem");
        let mut made = DistArray::unfilled(group, shape).in_call(call.name())?;
        made.fill_inner(value).in_call(call.name())?;
        Ok(made)
    }

    /// Creates an array, as [`DistArray::zeros`] does, whose elements are a function of their
    /// global indices. Collective: all ranks pass the same shape.
    ///
    /// ```no_run
    /// # use portolan::array::DistArray;
    /// # fn make(world: &portolan::Group<'_>) -> portolan::Result<()> {
    /// let sums = DistArray::from_shape_fn(world, [1000, 2000], |(i, j)| (i + j) as f64)?;
    /// # sums.free()
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns the same errors as [`DistArray::zeros`].
    #[track_caller]
    pub fn from_shape_fn(
        group: &Group<'rt>,
        shape: impl IntoDimension<Dim = D>,
        value: impl FnMut(D::Pattern) -> T,
    ) -> Result<DistArray<'rt, T, D>> {
        let call = PublicCall::enter("DistArray::from_shape_fn");
        let mut made = DistArray::unfilled(group, shape).in_call(call.name())?;
        made.fill_with(value).in_call(call.name())?;
        Ok(made)
    }

    fn unfilled(
        group: &Group<'rt>,
        shape: impl IntoDimension<Dim = D>,
    ) -> Result<DistArray<'rt, T, D>> {
        DistArray::with(group, shape, Options::default().unfilled())
    }

    /// Sets all elements to a value. Collective: all ranks pass the same value.
    ///
    /// # Errors
    /// Returns `Mismatch` on all ranks if their values differ, and `Mpi` if communication fails.
    #[track_caller]
    pub fn fill(&mut self, value: T) -> Result<()> {
        let call = PublicCall::enter("DistArray::fill");
        self.fill_inner(value).in_call(call.name())
    }

    #[track_caller]
    fn fill_inner(&mut self, value: T) -> Result<()> {
        let number = self.inner.part.segment().number();
        let text = format!("with {}, \"{}\" (number {number})", shown(&value), self.name());
        let mut mine = collective::scope_of(Kind::FillArray, &text, || self.access_inner())?;
        mine.local_mut().fill(value);
        mine.release()
    }

    /// Sets each element to the value of a function of its global index. The index has the form
    /// that `ndarray` uses for `D`: `i` of a vector, `(i, j)` of a matrix, and a dimension of
    /// `IxDyn`. Collective.
    ///
    /// ```no_run
    /// # fn make(a: &mut portolan::array::DistArray<'_, f64, ndarray::Ix2>) -> portolan::Result<()> {
    /// a.fill_with(|(i, j)| (i + j) as f64)
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns `Mpi` if communication fails.
    #[track_caller]
    pub fn fill_with(&mut self, mut value: impl FnMut(D::Pattern) -> T) -> Result<()> {
        let call = PublicCall::enter("DistArray::fill_with");
        let mut mine = self.access_inner().in_call(call.name())?;
        mine.for_each(|index, element| *element = value(index));
        mine.release().in_call(call.name())
    }

    /// Applies a function to each element in place. Collective.
    ///
    /// # Errors
    /// Returns `Mpi` if communication fails.
    #[track_caller]
    pub fn mapv_inplace(&mut self, mut function: impl FnMut(T) -> T) -> Result<()> {
        let call = PublicCall::enter("DistArray::mapv_inplace");
        let mut mine = self.access_inner().in_call(call.name())?;
        mine.local_mut().map_inplace(|element| *element = function(*element));
        mine.release().in_call(call.name())
    }

    /// Creates an array whose elements are a function of the elements of this array, with the same
    /// distribution. Collective.
    ///
    /// # Errors
    /// Returns `Memory` on all ranks if an allocation fails, and `Mpi` if communication fails.
    #[track_caller]
    pub fn mapv<U: Element>(
        &self,
        name: &str,
        mut function: impl FnMut(T) -> U,
    ) -> Result<DistArray<'rt, U, D>> {
        let call = PublicCall::enter("DistArray::mapv");
        let mut made = self.like(name).in_call(call.name())?;
        made.combine(self, |new, old| *new = function(*old)).in_call(call.name())?;
        Ok(made)
    }

    /// Calls a function with a mutable reference to each element and the element of `other` at the
    /// same index. Collective.
    ///
    /// # Errors
    /// Returns `Argument` if the shapes or groups differ, and `Mpi` if communication fails.
    #[track_caller]
    pub fn zip_mut_with<U: Element>(
        &mut self,
        other: &DistArray<'_, U, D>,
        function: impl FnMut(&mut T, &U),
    ) -> Result<()> {
        let call = PublicCall::enter("DistArray::zip_mut_with");
        self.combine(other, function).in_call(call.name())
    }

    #[track_caller]
    fn combine<U: Element>(
        &mut self,
        other: &DistArray<'_, U, D>,
        mut function: impl FnMut(&mut T, &U),
    ) -> Result<()> {
        self.check_alike(other)?;
        let boxes = self.own_boxes();
        let mut mine = self.access_inner()?;
        let mut view = mine.local_mut();
        for slab in boxes.iter().flat_map(|b| b.slabs(SLAB)) {
            let theirs = other.slab(&slab)?;
            let part = view.slice_each_axis_mut(|a| slab.local[a.axis.index()].clone().into());
            Zip::from(part).and(&theirs).for_each(&mut function);
        }
        mine.release()
    }

    pub(super) fn check_alike<U: Element>(&self, other: &DistArray<'_, U, D>) -> Result<()> {
        if self.shape() != other.shape() {
            fail!(
                Argument,
                "array \"{}\" has the shape {:?}, array \"{}\" {:?}",
                self.name(),
                self.shape(),
                other.name(),
                other.shape()
            );
        }
        self.check_group(other)
    }

    pub(super) fn check_group<U: Element, E: Dimension>(
        &self,
        other: &DistArray<'_, U, E>,
    ) -> Result<()> {
        if self.group().members() != other.group().members() {
            fail!(
                Argument,
                "array \"{}\" belongs to the ranks {:?}, array \"{}\" to {:?}",
                self.name(),
                self.group().members(),
                other.name(),
                other.group().members()
            );
        }
        Ok(())
    }

    pub(super) fn slab(&self, slab: &OwnBox) -> Result<Array<T, D>> {
        let patch = Patch::from(&slab.global[..]);
        let mut copy = self.empty(&patch)?;
        let get = |p: &[_]| self.inner.part.get_view(p, &mut copy.view_mut());
        self.inner.layout.partition(&patch, get)?;
        Ok(copy)
    }
}

impl<'rt, T: Element + LinalgScalar, D: Dimension> DistArray<'rt, T, D> {
    /// Multiplies all elements by `alpha`. Collective.
    ///
    /// # Errors
    /// Returns `Mpi` if communication fails.
    #[track_caller]
    pub fn scale(&mut self, alpha: T) -> Result<()> {
        let call = PublicCall::enter("DistArray::scale");
        self.mapv_inplace(|x| alpha * x).in_call(call.name())
    }

    /// Computes `self = self + alpha * other`. Collective.
    ///
    /// # Errors
    /// Returns the same errors as [`DistArray::zip_mut_with`].
    #[track_caller]
    pub fn scaled_add(&mut self, alpha: T, other: &DistArray<'_, T, D>) -> Result<()> {
        let call = PublicCall::enter("DistArray::scaled_add");
        self.combine(other, |x, y| *x = *x + alpha * *y).in_call(call.name())
    }
}
