//! The indices and values of a call, as transfers need them.
//!
//! [`crate::index`] interprets indices without arrays. `portolan._values` converts index arrays to
//! lists of indices, and values to arrays of the right dtype and shape. Errors get the name of the
//! array.

use crate::array::PyArray;
use crate::dtype::with_type;
use crate::elements::{Elements, Listed};
use crate::index::{Indexed, Key, Selection, parse};
use crate::views::is_addressable;
use ndarray::ArrayView2;
use numpy::{PyArrayDescrMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The elements that an index with arrays selects.
pub struct Lists<'py> {
    starts: PyReadonlyArray2<'py, isize>,
    len: usize,
    /// The shape of the result.
    pub shape: Bound<'py, PyTuple>,
}

/// The elements that an index selects.
pub enum Place<'py> {
    Patch(Selection),
    Lists(Lists<'py>),
}

impl Lists<'_> {
    pub fn listed(&self) -> PyResult<Listed<'_>> {
        let starts = self.starts.as_array();
        let flat = starts.to_slice().ok_or_else(|| PyValueError::new_err("scattered indices"))?;
        // A negative index, which `portolan._values` does not return, is out of bounds for any array.
        let starts = ArrayView2::from_shape(starts.dim(), bytemuck::cast_slice(flat));
        let starts = starts.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Listed { starts, len: self.len })
    }
}

impl PyArray {
    pub fn key(&self, array: &dyn Elements, key: &Bound<'_, PyAny>) -> PyResult<Key> {
        let facts = array.facts();
        parse(key, &Indexed { name: facts.name, shape: facts.shape })
    }

    /// Returns the selection of an index without arrays.
    pub fn selection(&self, array: &dyn Elements, key: &Bound<'_, PyAny>) -> PyResult<Selection> {
        match self.key(array, key)? {
            Key::Element(index) => Ok(Selection::element(&index)),
            Key::Patch(selection) => Ok(selection),
            Key::Arrays => {
                Err(PyTypeError::new_err("index arrays are not supported here; use a[...]"))
            }
        }
    }

    /// Returns the elements that an index with arrays selects. NumPy's errors get the name of the
    /// array.
    pub fn lists<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Lists<'py>> {
        let py = index.py();
        let facts = |a: &dyn Elements| Ok((a.facts().name.to_string(), a.facts().shape.to_vec()));
        let (name, shape) = self.core()?.with(facts)?;
        // Without the array: the index may contain it.
        let lists = py
            .import("portolan._values")?
            .call_method1("lists", (PyTuple::new(py, &shape)?, index));
        let lists = lists.map_err(|error| match error.is_instance_of::<PyIndexError>(py) {
            true => Indexed { name: &name, shape: &shape }.error(error.value(py)),
            false => error,
        })?;
        let (starts, len, shape) = lists.extract()?;
        Ok(Lists { starts, len, shape })
    }

    /// Converts the value of a put to an array of the right dtype and shape. NumPy's errors get the
    /// name of the array.
    pub fn source<'py>(
        &self,
        value: &Bound<'py, PyAny>,
        shape: &[usize],
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, dtype) = (value.py(), self.core()?.dtype);
        if let Ok(array) = value.cast::<numpy::PyUntypedArray>()
            && array.shape() == shape
            && with_type!(dtype, T => {
                array.dtype().is_equiv_to(&numpy::dtype::<T>(py))
                    && is_addressable(array, size_of::<T>(), align_of::<T>())
            })
        {
            return Ok(value.clone());
        }
        let dtype = with_type!(dtype, T => numpy::dtype::<T>(py));
        let found = py
            .import("portolan._values")?
            .call_method1("source", (value, dtype, PyTuple::new(py, shape)?));
        found.map_err(|error| self.named(py, error))
    }

    /// Adds the name of the array to an exception of NumPy's about a value.
    pub fn named(&self, py: Python<'_>, error: PyErr) -> PyErr {
        let kind = error.get_type(py);
        let of_value = [
            py.get_type::<PyTypeError>(),
            py.get_type::<PyValueError>(),
            py.get_type::<PyOverflowError>(),
        ];
        let name = self.core().and_then(|core| core.with(|a| Ok(a.facts().name.to_string())));
        match name {
            Ok(name) if of_value.iter().any(|plain| kind.is(plain)) => {
                PyErr::from_type(kind, format!("array \"{name}\": {}", error.value(py)))
            }
            _ => error,
        }
    }

    /// Returns the elements that an index selects.
    pub fn place<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Place<'py>> {
        Ok(match self.core()?.with(|a| self.key(a, index))? {
            Key::Element(index) => Place::Patch(Selection::element(&index)),
            Key::Patch(selection) => Place::Patch(selection),
            Key::Arrays => Place::Lists(self.lists(index)?),
        })
    }

    /// Converts the value of a put to the elements of a place, in row-major order for lists.
    pub fn source_of<'py>(
        &self,
        place: &Place<'_>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match place {
            Place::Patch(selection) => self.source(value, &selection.shape()),
            Place::Lists(lists) => {
                let shape: Vec<usize> = lists.shape.extract()?;
                self.source(value, &shape)?.call_method0("ravel")
            }
        }
    }
}
