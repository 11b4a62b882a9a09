//! Views of NumPy arrays, and NumPy arrays over the memory of views.

use crate::dtype::Scalar;
use ndarray::{ArrayBase, ArrayView, ArrayViewMut, IxDyn, RawData};
use numpy::npyffi::NPY_ARRAY_WRITEABLE;
use numpy::{PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// The object that keeps the memory of a view alive.
pub type Keeper<'py> = Bound<'py, PyAny>;

/// Returns a NumPy array whose elements Rust can address: it has the dtype, and the elements are
/// aligned and at distances that are multiples of their size. Fields of structured arrays may not
/// be.
fn addressable<'a, 'py, T: Scalar>(
    array: &'a Bound<'py, PyAny>,
    what: &str,
) -> PyResult<&'a Bound<'py, PyArrayDyn<T>>> {
    let array = array.cast::<PyArrayDyn<T>>().map_err(|_| {
        PyTypeError::new_err(format!("{what} must be a numpy array of dtype {}", T::NAME))
    })?;
    if !is_addressable(array.as_untyped(), size_of::<T>(), align_of::<T>()) {
        return Err(PyValueError::new_err(format!(
            "{what} is a numpy array with elements that are not aligned, or at distances that are no \
             multiples of their size"
        )));
    }
    Ok(array)
}

/// Returns whether the elements of a NumPy array are aligned and at multiples of their size.
pub fn is_addressable(array: &Bound<'_, numpy::PyUntypedArray>, size: usize, align: usize) -> bool {
    // SAFETY: the object is an array of NumPy, so the pointer is valid.
    let start = unsafe { (*array.as_array_ptr()).data };
    start.addr().is_multiple_of(align)
        && array.strides().iter().all(|stride| stride.unsigned_abs().is_multiple_of(size))
}

/// Returns a view of the elements of a NumPy array, for the length of a call.
///
/// Other threads of Python may change the elements meanwhile, as during a call of NumPy. The
/// borrows that the crate numpy counts do not prevent this, and they cost as much as a small
/// transfer.
pub fn elements<'a, T: Scalar>(
    array: &'a Bound<'_, PyAny>,
    what: &str,
) -> PyResult<ArrayView<'a, T, IxDyn>> {
    let array = addressable::<T>(array, what)?;
    // SAFETY: the array lives as long as the view, and `addressable` has checked its layout. A
    // value of any bytes is an element.
    Ok(unsafe { array.as_array() })
}

/// Returns a view of the elements of a NumPy array that a call writes; see [`elements`].
pub fn elements_mut<'a, T: Scalar>(
    array: &'a Bound<'_, PyAny>,
    what: &str,
) -> PyResult<ArrayViewMut<'a, T, IxDyn>> {
    let array = addressable::<T>(array, what)?;
    // SAFETY: the object is an array of NumPy, so the pointer is valid.
    if unsafe { (*array.as_array_ptr()).flags } & NPY_ARRAY_WRITEABLE == 0 {
        return Err(PyValueError::new_err(format!("{what} is a read-only numpy array")));
    }
    // SAFETY: the array lives as long as the view, and `addressable` has checked its layout. A
    // value of any bytes is an element, and the elements may be written.
    Ok(unsafe { array.as_array_mut() })
}

/// The name of an array that is read, for errors.
pub const SOURCE: &str = "the source";

pub fn flat<'a, T: Scalar>(values: &'a ArrayView<'_, T, IxDyn>) -> PyResult<&'a [T]> {
    values.as_slice().ok_or_else(|| PyValueError::new_err("the values are not contiguous"))
}

/// Returns the size of a view's elements in bytes.
pub fn bytes_of<S: RawData>(view: &ArrayBase<S, IxDyn>) -> usize {
    view.len() * size_of::<S::Elem>()
}

/// Returns a NumPy array over the memory of a view.
///
/// # Safety
/// The memory must be valid as long as `keeper` lives.
pub unsafe fn lend<'py, T: Scalar>(
    view: &ArrayView<'_, T, IxDyn>,
    keeper: Keeper<'py>,
    writeable: bool,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: by the contract of this function; NumPy keeps a reference to `keeper`.
    let array = unsafe { PyArrayDyn::borrow_from_array(view, keeper) }.into_any();
    if !writeable {
        seal(&array)?;
    }
    Ok(array)
}

/// Makes a NumPy array read-only.
pub fn seal(array: &Bound<'_, PyAny>) -> PyResult<()> {
    array.getattr("flags")?.setattr("writeable", false)
}
