//! A distributed array whose element type is known only at run time.
//!
//! [`Elements`] is the object-safe interface of [`Dist`] for all [`Scalar`] types. Its functions
//! convert between NumPy arrays and views of `ndarray`, and run the library's call, without the
//! interpreter lock if the call may wait ([`wait`], [`transfer`]). NumPy arrays of values have the
//! right dtype and shape: `portolan._values` has cast and broadcast them.

use crate::Dist;
use crate::call::{raise, transfer, wait};
use crate::dtype::{Scalar, scalar};
use crate::index::Selection;
use crate::text::Tuple;
use crate::transfer::{Flight, Moved, Transfer};
use crate::views::{Keeper, SOURCE, bytes_of, elements, elements_mut, flat, lend, seal};
use ndarray::{Array, ArrayView2, ArrayViewMut, IxDyn};
use numpy::{PyArray1, PyArrayDyn, PyArrayMethods};
use portolan::Group;
use portolan::array::{Matmul, Patch, Tiles};
use portolan::internals::binding::{self, AnyArray};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::any::Any;
use std::ops::Range;
use std::path::Path;

/// The properties of an array that do not depend on the element type.
pub struct Facts<'a> {
    pub name: &'a str,
    pub shape: &'a [usize],
    pub grid: &'a [usize],
    pub ghosts: &'a [usize],
    pub group: &'a Group<'static>,
}

/// A distributed array.
pub trait Elements {
    fn as_any(&self) -> &dyn Any;
    fn as_part(&self) -> &dyn AnyArray<'static>;
    fn as_part_mut(&mut self) -> &mut dyn AnyArray<'static>;
    fn set_name(&mut self, name: &str);
    fn facts(&self) -> Facts<'_>;
    fn owner(&self, index: &[usize]) -> portolan::Result<usize>;
    fn owners(&self, patch: Patch) -> portolan::Result<Vec<usize>>;
    fn bounds(&self, rank: usize) -> portolan::Result<Option<Vec<Range<usize>>>>;

    fn get_value<'py>(&self, py: Python<'py>, index: &[usize]) -> PyResult<Bound<'py, PyAny>>;
    fn put_value(&self, value: &Bound<'_, PyAny>, index: &[usize]) -> PyResult<()>;
    fn get<'py>(
        &self,
        selection: &Selection,
        py: Python<'py>,
        into: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>>;
    fn put(&self, selection: &Selection, source: &Bound<'_, PyAny>) -> PyResult<()>;
    fn add(
        &self,
        selection: &Selection,
        source: &Bound<'_, PyAny>,
        alpha: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()>;
    fn start_get(&self, py: Python<'_>, selection: Selection) -> PyResult<Box<dyn Transfer + '_>>;
    fn start_put(
        &self,
        selection: Selection,
        source: &Bound<'_, PyAny>,
    ) -> PyResult<Box<dyn Transfer + '_>>;
    fn start_add(
        &self,
        selection: Selection,
        source: &Bound<'_, PyAny>,
        alpha: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Box<dyn Transfer + '_>>;
    fn gather<'py>(&self, py: Python<'py>, list: &Listed<'_>) -> PyResult<Bound<'py, PyAny>>;
    fn scatter(&self, list: &Listed<'_>, values: &Bound<'_, PyAny>) -> PyResult<()>;
    fn scatter_add(
        &self,
        list: &Listed<'_>,
        values: &Bound<'_, PyAny>,
        alpha: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()>;
    fn start_gather(
        &self,
        py: Python<'_>,
        list: &Listed<'_>,
        shape: &[usize],
    ) -> PyResult<Box<dyn Transfer + '_>>;
    fn start_scatter(
        &self,
        list: &Listed<'_>,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<Box<dyn Transfer + '_>>;
    fn start_scatter_add(
        &self,
        list: &Listed<'_>,
        values: &Bound<'_, PyAny>,
        alpha: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Box<dyn Transfer + '_>>;
    fn fetch_add<'py>(
        &self,
        py: Python<'py>,
        index: &[usize],
        value: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>>;

    fn sync(&self, py: Python<'_>) -> PyResult<()>;
    fn free(self: Box<Self>, py: Python<'_>) -> PyResult<()>;
    fn copy_from(&mut self, py: Python<'_>, other: &dyn Elements, how: Copying) -> PyResult<()>;
    fn matmul(&mut self, py: Python<'_>, a: &dyn Elements, b: &dyn Elements) -> PyResult<()>;
    fn sum<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>;
    fn dot<'py>(&self, py: Python<'py>, other: &dyn Elements) -> PyResult<Bound<'py, PyAny>>;
    fn norm(&self, py: Python<'_>) -> PyResult<f64>;
    fn extremum<'py>(&self, py: Python<'py>, max: bool) -> PyResult<Option<Found<'py>>>;
    fn save(&self, py: Python<'_>, path: &Path) -> PyResult<()>;
    fn tiles(&self, py: Python<'_>, shape: Vec<usize>) -> PyResult<Tiles<'static>>;

    fn access(&mut self, py: Python<'_>) -> PyResult<()>;
    fn release(&mut self, py: Python<'_>) -> PyResult<()>;
    /// Returns a NumPy array of this rank's elements, with or without ghost cells. The array must
    /// not outlive the access, which `keeper` ensures.
    fn view<'py>(&mut self, padded: bool, keeper: Keeper<'py>) -> PyResult<Bound<'py, PyAny>>;
    /// Returns the global indices of this rank's elements along an axis.
    fn indices(&mut self, axis: usize) -> PyResult<Vec<isize>>;
    fn update_ghosts(&mut self, py: Python<'_>) -> PyResult<()>;
    fn start_update(&mut self, py: Python<'_>) -> PyResult<()>;
    fn finish_update(&mut self, py: Python<'_>) -> PyResult<()>;
    fn stencil<'py>(
        &mut self,
        to: &mut dyn Elements,
        step: &Bound<'py, PyAny>,
        keepers: [Keeper<'py>; 2],
    ) -> PyResult<()>;
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

/// The elements that an index with arrays selects: runs of `len` consecutive elements, one from
/// each row of `starts` on.
pub struct Listed<'a> {
    pub starts: ArrayView2<'a, usize>,
    pub len: usize,
}

/// A least or largest element, and its index.
pub type Found<'py> = (Bound<'py, PyAny>, Vec<usize>);

/// The order of the axes of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copying {
    Straight,
    Transposed,
}

/// Returns the other operand if it has the same element type.
fn alike<T: Scalar>(other: &dyn Elements) -> PyResult<&Dist<T>> {
    other.as_any().downcast_ref().ok_or_else(|| unlike::<T>(other))
}

/// Like [`alike`], for an operand that the call changes.
pub fn alike_mut<T: Scalar>(other: &mut dyn Elements) -> PyResult<&mut Dist<T>> {
    if !other.as_any().is::<Dist<T>>() {
        return Err(unlike::<T>(other));
    }
    Ok(other.as_any_mut().downcast_mut().expect("the type has been checked"))
}

fn unlike<T: Scalar>(other: &dyn Elements) -> PyErr {
    let name = other.facts().name;
    PyTypeError::new_err(format!("array \"{name}\" has another dtype than {}", T::NAME))
}

/// Returns a number of the program, or one.
fn alpha_of<T: Scalar>(alpha: Option<&Bound<'_, PyAny>>) -> PyResult<T> {
    alpha.map_or(Ok(T::ONE), T::from_py)
}

impl<T: Scalar> Elements for Dist<T> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn as_part(&self) -> &dyn AnyArray<'static> {
        self
    }

    fn as_part_mut(&mut self) -> &mut dyn AnyArray<'static> {
        self
    }

    fn set_name(&mut self, name: &str) {
        Dist::set_name(self, name);
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            name: self.name(),
            shape: self.shape(),
            grid: self.grid(),
            ghosts: self.ghosts(),
            group: self.group(),
        }
    }

    fn owner(&self, index: &[usize]) -> portolan::Result<usize> {
        self.owner(index)
    }

    fn owners(&self, patch: Patch) -> portolan::Result<Vec<usize>> {
        self.owners(patch)
    }

    fn bounds(&self, rank: usize) -> portolan::Result<Option<Vec<Range<usize>>>> {
        self.bounds(rank)
    }

    fn get_value<'py>(&self, py: Python<'py>, index: &[usize]) -> PyResult<Bound<'py, PyAny>> {
        scalar(py, transfer(py, size_of::<T>(), || self.get_value(index))?)
    }

    fn put_value(&self, value: &Bound<'_, PyAny>, index: &[usize]) -> PyResult<()> {
        let number = T::from_py(value)?;
        transfer(value.py(), size_of::<T>(), || self.put_value(index, number))
    }

    fn get<'py>(
        &self,
        selection: &Selection,
        py: Python<'py>,
        into: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let patch = selection.patch().map_err(|e| raise(e.into()))?;
        if let Some(target) = into {
            let view = elements_mut::<T>(&target, "`out`")?;
            let shape = selection.shape();
            if view.shape() != &shape[..] {
                return Err(PyValueError::new_err(format!(
                    "array \"{}\": `out` of shape {} for elements of shape {}",
                    self.name(),
                    Tuple(view.shape()),
                    Tuple(&shape),
                )));
            }
            let view = selection.to_patch(view);
            transfer(py, bytes_of(&view), || self.get_into(patch, view))?;
            return Ok(target);
        }
        // SAFETY: the array is fresh, any bytes are elements, and the get writes all of them before
        // Python sees the array.
        let array = unsafe { PyArrayDyn::<T>::new(py, &selection.shape()[..], false) };
        // SAFETY: any bytes are elements, and nothing else refers to the fresh array.
        let view = selection.to_patch(unsafe { array.as_array_mut() });
        transfer(py, bytes_of(&view), || self.get_into(patch, view))?;
        Ok(array.into_any())
    }

    fn put(&self, selection: &Selection, source: &Bound<'_, PyAny>) -> PyResult<()> {
        let view = selection.to_patch(elements::<T>(source, SOURCE)?);
        transfer(source.py(), bytes_of(&view), || self.put(selection.patch()?, &view))
    }

    fn add(
        &self,
        selection: &Selection,
        source: &Bound<'_, PyAny>,
        alpha: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (array, alpha) = (elements::<T>(source, SOURCE)?, alpha_of(alpha)?);
        let view = selection.to_patch(array);
        wait(source.py(), || self.accumulate(selection.patch()?, alpha, &view))
    }

    fn start_get(&self, py: Python<'_>, selection: Selection) -> PyResult<Box<dyn Transfer + '_>> {
        let pending = wait(py, || self.start_get(selection.patch()?))?;
        Ok(Box::new(Flight { pending, result: Moved::Patch(selection) }))
    }

    fn start_put(
        &self,
        selection: Selection,
        source: &Bound<'_, PyAny>,
    ) -> PyResult<Box<dyn Transfer + '_>> {
        let copy = selection.to_patch(elements::<T>(source, SOURCE)?).to_owned();
        let pending = wait(source.py(), || self.start_put(selection.patch()?, copy))?;
        Ok(Box::new(Flight { pending, result: Moved::Nothing }))
    }

    fn start_add(
        &self,
        selection: Selection,
        source: &Bound<'_, PyAny>,
        alpha: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Box<dyn Transfer + '_>> {
        let alpha = alpha_of(alpha)?;
        let copy: Array<T, IxDyn> = selection.to_patch(elements::<T>(source, SOURCE)?).to_owned();
        let start = || self.start_accumulate(selection.patch()?, alpha, copy);
        let pending = wait(source.py(), start)?;
        Ok(Box::new(Flight { pending, result: Moved::Nothing }))
    }

    fn gather<'py>(&self, py: Python<'py>, list: &Listed<'_>) -> PyResult<Bound<'py, PyAny>> {
        let count = list.starts.nrows().saturating_mul(list.len);
        // SAFETY: the array is fresh, any bytes are elements, and the gather writes all of them
        // before Python sees the array.
        let array = unsafe { PyArray1::<T>::new(py, count, false) };
        // SAFETY: any bytes are elements, and nothing else refers to the fresh array.
        let target = unsafe { array.as_slice_mut()? };
        wait(py, || self.gather_runs(list.starts, list.len, target))?;
        Ok(array.into_any())
    }

    fn scatter(&self, list: &Listed<'_>, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let view = elements::<T>(values, SOURCE)?;
        let flat = flat(&view)?;
        wait(values.py(), || self.scatter_runs(list.starts, list.len, flat))
    }

    fn scatter_add(
        &self,
        list: &Listed<'_>,
        values: &Bound<'_, PyAny>,
        alpha: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (view, alpha) = (elements::<T>(values, SOURCE)?, alpha_of(alpha)?);
        let flat = flat(&view)?;
        wait(values.py(), || self.scatter_add_runs(list.starts, list.len, alpha, flat))
    }

    fn start_gather(
        &self,
        py: Python<'_>,
        list: &Listed<'_>,
        shape: &[usize],
    ) -> PyResult<Box<dyn Transfer + '_>> {
        let target = Array::from_elem(IxDyn(shape), T::zeroed());
        let pending = wait(py, || self.start_gather_runs(list.starts, list.len, target))?;
        Ok(Box::new(Flight { pending, result: Moved::List }))
    }

    fn start_scatter(
        &self,
        list: &Listed<'_>,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<Box<dyn Transfer + '_>> {
        let copy = elements::<T>(values, SOURCE)?.to_owned();
        let pending = wait(values.py(), || self.start_scatter_runs(list.starts, list.len, copy))?;
        Ok(Box::new(Flight { pending, result: Moved::Nothing }))
    }

    fn start_scatter_add(
        &self,
        list: &Listed<'_>,
        values: &Bound<'_, PyAny>,
        alpha: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Box<dyn Transfer + '_>> {
        let (copy, alpha) = (elements::<T>(values, SOURCE)?.to_owned(), alpha_of(alpha)?);
        let start = || self.start_scatter_add_runs(list.starts, list.len, alpha, copy);
        let pending = wait(values.py(), start)?;
        Ok(Box::new(Flight { pending, result: Moved::Nothing }))
    }

    fn fetch_add<'py>(
        &self,
        py: Python<'py>,
        index: &[usize],
        value: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let value = alpha_of(value)?;
        scalar(py, wait(py, || T::fetch_add(self, index, value))?)
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, || self.sync())
    }

    fn free(self: Box<Self>, py: Python<'_>) -> PyResult<()> {
        wait(py, || (*self).free())
    }

    fn copy_from(&mut self, py: Python<'_>, other: &dyn Elements, how: Copying) -> PyResult<()> {
        let other = alike::<T>(other)?;
        wait(py, || match how {
            Copying::Straight => self.assign(other),
            Copying::Transposed => self.transpose_from(other),
        })
    }

    fn matmul(&mut self, py: Python<'_>, a: &dyn Elements, b: &dyn Elements) -> PyResult<()> {
        let (a, b) = (alike::<T>(a)?, alike::<T>(b)?);
        wait(py, || self.matmul(T::one(), a, b, T::zero(), Matmul::Auto))
    }

    fn sum<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        scalar(py, wait(py, || self.sum())?)
    }

    fn dot<'py>(&self, py: Python<'py>, other: &dyn Elements) -> PyResult<Bound<'py, PyAny>> {
        let other = alike::<T>(other)?;
        scalar(py, wait(py, || self.dot(other))?)
    }

    fn norm(&self, py: Python<'_>) -> PyResult<f64> {
        wait(py, || self.norm())
    }

    fn extremum<'py>(&self, py: Python<'py>, max: bool) -> PyResult<Option<Found<'py>>> {
        match wait(py, || T::extremum(self, max))? {
            Some(found) => Ok(Some((scalar(py, found.value)?, found.index))),
            None => Ok(None),
        }
    }

    fn save(&self, py: Python<'_>, path: &Path) -> PyResult<()> {
        wait(py, || self.save(path))
    }

    fn tiles(&self, py: Python<'_>, shape: Vec<usize>) -> PyResult<Tiles<'static>> {
        wait(py, || self.tiles(shape))
    }

    fn access(&mut self, py: Python<'_>) -> PyResult<()> {
        wait(py, || self.access().map(drop))
    }

    fn release(&mut self, py: Python<'_>) -> PyResult<()> {
        wait(py, || binding::resume(self).map_or(Ok(()), |access| access.release()))
    }

    fn view<'py>(&mut self, padded: bool, keeper: Keeper<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut access = resumed(self)?;
        let view = if padded { access.padded_mut() } else { access.local_mut() };
        // SAFETY: the part stays mapped and lent while `keeper` lives, because the access is not
        // released before.
        unsafe { lend(&view.view(), keeper, true) }
    }

    fn indices(&mut self, axis: usize) -> PyResult<Vec<isize>> {
        Ok(resumed(self)?.globals(axis).map(|index| index as isize).collect())
    }

    fn update_ghosts(&mut self, py: Python<'_>) -> PyResult<()> {
        let mut access = resumed(self)?;
        wait(py, || access.update_ghosts())
    }

    fn start_update(&mut self, py: Python<'_>) -> PyResult<()> {
        let mut access = resumed(self)?;
        wait(py, || access.start_update().map(drop))
    }

    fn finish_update(&mut self, py: Python<'_>) -> PyResult<()> {
        let mut access = resumed(self)?;
        wait(py, || access.finish_update())
    }

    fn stencil<'py>(
        &mut self,
        to: &mut dyn Elements,
        step: &Bound<'py, PyAny>,
        keepers: [Keeper<'py>; 2],
    ) -> PyResult<()> {
        let to = alike_mut::<T>(to)?;
        let (mut old, mut new) = (resumed(self)?, resumed(to)?);
        let mut raised = Ok(());
        // The step takes the interpreter lock that `wait` has given up.
        let keepers = keepers.map(Bound::unbind);
        let function = step.clone().unbind();
        wait(step.py(), || {
            old.stencil(&mut new, |from, into: ArrayViewMut<'_, T, IxDyn>, first| {
                if raised.is_ok() {
                    raised = Python::attach(|py| {
                        let [a, b] = [&keepers[0], &keepers[1]].map(|k| k.bind(py).clone());
                        // SAFETY: both parts stay mapped and lent while the keepers live.
                        let (from, into) =
                            unsafe { (lend(&from, a, false)?, lend(&into.view(), b, true)?) };
                        let boxes = (from, &into, first.to_vec());
                        let called = function.call1(py, boxes).map(drop);
                        // The step may have kept the box.
                        seal(&into).and(called)
                    });
                }
            })
        })?;
        raised
    }
}

/// Continues the access of an array that Python holds.
fn resumed<T: Scalar>(
    array: &mut Dist<T>,
) -> PyResult<portolan::array::Access<'_, 'static, T, IxDyn>> {
    binding::resume(array)
        .ok_or_else(|| crate::call::Error_::new_err("the access has been released"))
}
