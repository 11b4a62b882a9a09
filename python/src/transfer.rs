//! Transfers in progress.

use crate::array::PyArray;
use crate::call::{Error_, Pinned, raise, wait};
use crate::core::Core;
use crate::dtype::Scalar;
use crate::elements::Elements;
use crate::index::Selection;
use ndarray::{Array, IxDyn};
use numpy::IntoPyArray;
use portolan::transfer::Pending;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::cell::RefCell;
use std::rc::Rc;

/// A transfer in progress, of an array of any element type.
pub trait Transfer {
    fn is_done(&self) -> portolan::Result<bool>;
    /// Returns the result of a get, and None for other transfers.
    fn finish<'py>(self: Box<Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>;
}

/// A transfer in progress.
pub struct Flight<'a, T: Scalar> {
    pub pending: Pending<'a, Array<T, IxDyn>>,
    pub result: Moved,
}

/// How the elements of a transfer become its result.
pub enum Moved {
    Nothing,
    Patch(Selection),
    List,
}

impl<T: Scalar> Transfer for Flight<'_, T> {
    fn is_done(&self) -> portolan::Result<bool> {
        self.pending.is_done()
    }

    fn finish<'py>(self: Box<Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Flight { pending, result } = *self;
        let array = wait(py, || pending.wait())?;
        let array = match result {
            Moved::Nothing => return Ok(py.None().into_bound(py)),
            Moved::Patch(selection) => selection.to_result(array),
            Moved::List => array,
        };
        let is_scalar = array.ndim() == 0;
        let found = array.into_pyarray(py);
        if is_scalar { found.get_item(PyTuple::empty(py)) } else { Ok(found.into_any()) }
    }
}

/// A transfer in progress.
#[pyclass(name = "Transfer", module = "portolan", frozen)]
pub struct PyTransfer {
    state: Pinned<Moving>,
}

struct Moving {
    /// Borrows from the array in `core`, so it is dropped first.
    transfer: RefCell<Option<Box<dyn Transfer>>>,
    core: Rc<Core>,
}

impl Drop for Moving {
    fn drop(&mut self) {
        if self.transfer.take().is_some() {
            self.core.transfers.set(self.core.transfers.get() - 1);
        }
    }
}

impl PyTransfer {
    pub fn new(
        array: &Bound<'_, PyArray>,
        start: impl FnOnce(&dyn Elements) -> PyResult<Box<dyn Transfer + '_>>,
    ) -> PyResult<PyTransfer> {
        let core = array.get().core()?;
        core.with(|a| {
            let transfer: Box<dyn Transfer + '_> = start(a)?;
            // SAFETY: the transfer borrows the array behind the box in `core.array`. `Moving` keeps
            // the core, and `Core::transfers` keeps the array from being moved or changed.
            let transfer: Box<dyn Transfer + 'static> = unsafe { std::mem::transmute(transfer) };
            core.transfers.set(core.transfers.get() + 1);
            let transfer = RefCell::new(Some(transfer));
            Ok(PyTransfer { state: Pinned::new(Moving { transfer, core: core.clone() }) })
        })
    }
}

#[pymethods]
impl PyTransfer {
    /// Wait until the transfer is complete locally. Return the elements of a get, or None.
    fn wait<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Moving { transfer, core } = self.state.get()?;
        let taken = transfer.take();
        let transfer =
            taken.ok_or_else(|| Error_::new_err("the transfer has already been waited for"))?;
        core.transfers.set(core.transfers.get() - 1);
        transfer.finish(py)
    }

    /// Return whether `wait` would return at once.
    fn done(&self) -> PyResult<bool> {
        let moving = self.state.get()?;
        match &*moving.transfer.borrow() {
            Some(transfer) => transfer.is_done().map_err(|e| raise(e.into())),
            None => Ok(true),
        }
    }
}
