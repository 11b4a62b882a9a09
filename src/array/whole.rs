//! Operations on all elements, collective over the array's group. Each begins and ends with a sync.
//! Each rank computes its own elements. It gets the elements of arrays with another distribution in
//! slabs that fit in the cache.

use super::dist_array::DistArray;
use super::distribution::OwnBox;
use super::patch::Patch;
use crate::Element;
use crate::in_call::InCall;
use ndarray::{Array, Dimension, LinalgScalar, Zip};
use num_complex::Complex;
use portolan_engine::collective::{self, Kind};
use portolan_engine::error::{Result, fail};
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
    /// Sets all elements to a value. Collective: all ranks pass the same value.
    ///
    /// # Errors
    /// Returns `Mismatch` on all ranks if their values differ, and `Mpi` if communication fails.
    #[track_caller]
    pub fn fill(&mut self, value: T) -> Result<()> {
        const CALL: &str = "DistArray::fill";
        let number = self.inner.part.segment().number();
        let text = format!("with {}, \"{}\" (number {number})", shown(&value), self.name());
        let mut mine =
            collective::scope_of(Kind::FillArray, &text, || self.access_inner()).in_call(CALL)?;
        mine.local_mut().fill(value);
        mine.release().in_call(CALL)
    }

    /// Sets each element to the value of a function of its global index. Collective.
    ///
    /// ```no_run
    /// # fn make(a: &mut portolan::array::DistArray<'_, f64, ndarray::Ix2>) -> portolan::Result<()> {
    /// a.fill_with(|index| (index[0] + index[1]) as f64)
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns `Mpi` if communication fails.
    #[track_caller]
    pub fn fill_with(&mut self, mut value: impl FnMut(&[usize]) -> T) -> Result<()> {
        const CALL: &str = "DistArray::fill_with";
        let mut mine = self.access_inner().in_call(CALL)?;
        mine.for_each(|index, element| *element = value(index));
        mine.release().in_call(CALL)
    }

    /// Applies a function to each element in place. Collective.
    ///
    /// # Errors
    /// Returns `Mpi` if communication fails.
    #[track_caller]
    pub fn map_inplace(&mut self, mut function: impl FnMut(T) -> T) -> Result<()> {
        const CALL: &str = "DistArray::map_inplace";
        let mut mine = self.access_inner().in_call(CALL)?;
        mine.local_mut().map_inplace(|element| *element = function(*element));
        mine.release().in_call(CALL)
    }

    /// Creates an array whose elements are a function of the elements of this array, with the same
    /// distribution. Collective.
    ///
    /// # Errors
    /// Returns `Memory` on all ranks if an allocation fails, and `Mpi` if communication fails.
    #[track_caller]
    pub fn map<U: Element>(
        &self,
        name: &str,
        mut function: impl FnMut(T) -> U,
    ) -> Result<DistArray<'rt, U, D>> {
        const CALL: &str = "DistArray::map";
        let mut made = self.like(name).in_call(CALL)?;
        made.combine(self, |new, old| *new = function(old)).in_call(CALL)?;
        Ok(made)
    }

    /// Replaces each element with the result of a function of it and of the element of `other` at
    /// the same index. Collective.
    ///
    /// # Errors
    /// Returns `Argument` if the shapes or groups differ, and `Mpi` if communication fails.
    #[track_caller]
    pub fn zip<U: Element>(
        &mut self,
        other: &DistArray<'_, U, D>,
        mut function: impl FnMut(T, U) -> T,
    ) -> Result<()> {
        self.combine(other, |mine, theirs| *mine = function(*mine, theirs))
            .in_call("DistArray::zip")
    }

    #[track_caller]
    fn combine<U: Element>(
        &mut self,
        other: &DistArray<'_, U, D>,
        mut function: impl FnMut(&mut T, U),
    ) -> Result<()> {
        self.check_alike(other)?;
        let boxes = self.own_boxes();
        let mut mine = self.access_inner()?;
        let mut view = mine.local_mut();
        for slab in boxes.iter().flat_map(|b| b.slabs(SLAB)) {
            let theirs = other.slab(&slab)?;
            let part = view.slice_each_axis_mut(|a| slab.local[a.axis.index()].clone().into());
            Zip::from(part).and(&theirs).for_each(|mine, theirs| function(mine, *theirs));
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
        self.map_inplace(|x| alpha * x).in_call("DistArray::scale")
    }

    /// Computes `self = alpha * self + beta * other`. Collective.
    ///
    /// # Errors
    /// Returns the same errors as [`DistArray::zip`].
    #[track_caller]
    pub fn scaled_add(&mut self, alpha: T, beta: T, other: &DistArray<'_, T, D>) -> Result<()> {
        self.combine(other, |x, y| *x = alpha * *x + beta * y).in_call("DistArray::scaled_add")
    }
}
