//! Tiles of an array, as an iterator.
//!
//! The end of the iteration frees the shared counters, which is collective.

use crate::call::{Error_, Pinned, wait};
use portolan::array::Tiles;
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};
use std::cell::RefCell;

/// Iterates over the tiles that this rank takes.
#[pyclass(name = "Tiles", module = "portolan", frozen)]
pub struct PyTiles(Pinned<RefCell<Option<Tiles<'static>>>>);

impl PyTiles {
    pub fn new(tiles: Tiles<'static>) -> PyTiles {
        PyTiles(Pinned::new(RefCell::new(Some(tiles))))
    }
}

#[pymethods]
impl PyTiles {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let cell = self.0.get()?;
        let taken = match &mut *cell.borrow_mut() {
            Some(tiles) => wait(py, || tiles.take())?,
            None => return Ok(None),
        };
        if let Some(tile) = taken {
            let slice =
                |r: &std::ops::Range<usize>| PySlice::new(py, r.start as isize, r.end as isize, 1);
            return Ok(Some(PyTuple::new(py, tile.ranges.iter().map(slice))?));
        }
        self.free(py)?;
        Ok(None)
    }

    /// Frees the counters before the end of the iteration. Collective.
    fn free(&self, py: Python<'_>) -> PyResult<()> {
        let freed = || Error_::new_err("the tiles have been freed");
        let tiles = self.0.get()?.take().ok_or_else(freed)?;
        wait(py, || tiles.free())
    }
}
