//! Accesses, and the views of own elements.
//!
//! Every NumPy array over a rank's own elements has a [`Lease`] as its base. The lease counts the
//! view and keeps the array, so the memory stays mapped while any view lives. At the end of the access,
//! the views that it has given to the program become read-only, because other ranks may write to the
//! elements then.

use crate::array::PyArray;
use crate::call::{Error_, Pinned, VIEWS, was_interrupted};
use crate::core::Core;
use numpy::{IntoPyArray, PyArray1, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The base of a view.
#[pyclass(module = "portolan._native", frozen)]
pub(crate) struct Lease {
    views: Arc<AtomicUsize>,
    _core: Pinned<Rc<Core>>,
}

impl Lease {
    pub(crate) fn new(core: &Rc<Core>) -> Lease {
        core.views.fetch_add(1, Ordering::AcqRel);
        VIEWS.fetch_add(1, Ordering::AcqRel);
        Lease { views: core.views.clone(), _core: Pinned::new(core.clone()) }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.views.fetch_sub(1, Ordering::AcqRel);
        VIEWS.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Exclusive access to this rank's own elements; see `Array.access`.
#[pyclass(name = "Access", module = "portolan", frozen)]
pub struct PyAccess {
    core: Pinned<Rc<Core>>,
    /// The number of this access of the array.
    number: u64,
}

impl PyAccess {
    fn open(&self) -> PyResult<&Rc<Core>> {
        let core = self.core.get()?;
        if !core.is_open(self.number) {
            return Err(Error_::new_err("the access has been released"));
        }
        Ok(core)
    }

    fn view<'py>(&self, py: Python<'py>, padded: bool) -> PyResult<Bound<'py, PyAny>> {
        let core = self.open()?;
        let view = core.view(py, padded)?;
        core.give(&view)?;
        Ok(view)
    }

    /// Stores a value in a view. The value may be such a view that was changed in place.
    fn assign(&self, value: &Bound<'_, PyAny>, padded: bool) -> PyResult<()> {
        let py = value.py();
        let view = self.open()?.view(py, padded)?;
        let is_view = match value.cast::<PyUntypedArray>() {
            Ok(array) => is_same(array, view.cast()?),
            Err(_) => false,
        };
        if is_view { Ok(()) } else { view.set_item(py.Ellipsis(), value) }
    }
}

/// Returns whether two NumPy arrays have the same elements of memory.
fn is_same(a: &Bound<'_, PyUntypedArray>, b: &Bound<'_, PyUntypedArray>) -> bool {
    // SAFETY: the objects are arrays of NumPy, so the pointers are valid.
    let (at, to) = unsafe { ((*a.as_array_ptr()).data, (*b.as_array_ptr()).data) };
    at == to
        && a.dtype().is_equiv_to(&b.dtype())
        && (a.shape(), a.strides()) == (b.shape(), b.strides())
}

#[pymethods]
impl PyAccess {
    #[new]
    fn new(py: Python<'_>, array: &Bound<'_, PyArray>) -> PyResult<PyAccess> {
        let core = array.get().core()?;
        let number = core.open(py)?;
        Ok(PyAccess { core: Pinned::new(core.clone()), number })
    }

    /// A numpy array over this rank's elements, without ghost cells. Not a copy.
    #[getter]
    fn local<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.view(py, false)
    }

    /// A numpy array over this rank's elements and the ghost cells around them. Not a copy.
    #[getter]
    fn padded<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.view(py, true)
    }

    /// Set this rank's elements. Makes `mine.local += 1` possible.
    #[setter]
    fn set_local(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.assign(value, false)
    }

    /// Set this rank's elements and the ghost cells around them.
    #[setter]
    fn set_padded(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.assign(value, true)
    }

    /// Return the global indices of this rank's elements along an axis, as a numpy array.
    ///
    /// Raises IndexError for an axis that the array does not have.
    fn indices<'py>(&self, py: Python<'py>, axis: isize) -> PyResult<Bound<'py, PyArray1<isize>>> {
        let indices = self.open()?.with_mut(|a| {
            a.finish_update(py)?;
            let ndim = a.facts().shape.len();
            let known = if axis < 0 { axis.checked_add_unsigned(ndim) } else { Some(axis) };
            match known.and_then(|axis| usize::try_from(axis).ok()).filter(|axis| *axis < ndim) {
                Some(axis) => a.indices(axis),
                None => Err(PyIndexError::new_err(format!(
                    "axis {axis} is out of bounds for array \"{}\" of {ndim} axes",
                    a.facts().name
                ))),
            }
        })?;
        Ok(indices.into_pyarray(py))
    }

    /// Fill the ghost cells with the elements of the neighbours. Collective.
    fn update_ghosts(&self, py: Python<'_>) -> PyResult<()> {
        self.open()?.with_mut(|a| a.update_ghosts(py))
    }

    /// Start to fill the ghost cells. Collective. Raises BufferError while views are alive.
    ///
    /// `local` and `padded` wait until the ghost cells are filled. To compute meanwhile, use
    /// `portolan.stencil` instead.
    fn start_update(&self, py: Python<'_>) -> PyResult<()> {
        let core = self.open()?;
        core.no_views("an update of ghost cells is started")?;
        core.with_mut(|a| a.start_update(py))
    }

    /// Wait until the ghost cells are filled.
    fn finish_update(&self, py: Python<'_>) -> PyResult<()> {
        self.open()?.with_mut(|a| a.finish_update(py))
    }

    fn _stencil(
        &self,
        py: Python<'_>,
        to: &Bound<'_, PyAccess>,
        step: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (from, to) = (self.open()?, to.get().open()?);
        let keepers = [from, to].map(|core| Bound::new(py, Lease::new(core)));
        let [a, b] = keepers;
        let keepers = [a?.into_any(), b?.into_any()];
        from.with_mut(|a| to.with_mut(|b| a.stencil(b, step, keepers)))
    }

    /// End the access. Collective. `local` and `padded` that are alive become read-only.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        if was_interrupted() {
            return Ok(()); // so that `finally` lets the exception of the signal handler pass
        }
        let core = self.core.get()?;
        if core.is_open(self.number) { core.release(py) } else { Ok(()) }
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<bool> {
        // The other ranks may not raise, so a collective call would wait for them.
        let raised = !exception.get_item(0)?.is_none();
        let released = if raised { Ok(()) } else { self.release(py) };
        if let Ok(core) = self.core.get()
            && core.is_open(self.number)
        {
            core.leave();
        }
        released.map(|()| false)
    }
}
