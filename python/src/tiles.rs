//! Tiles of an array, as an iterator.
//!
//! The end of the iteration frees the shared counters, which is collective. The counters of a loop
//! that is left early are freed as a dropped array is ([`crate::home`]).

use crate::call::{Error_, Pinned, wait};
use crate::home::Home;
use portolan::array::Tiles;
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};
use std::cell::RefCell;
use std::rc::Rc;

/// The tiles, until they are freed.
struct Shared {
    tiles: RefCell<Option<Tiles<'static>>>,
    home: Rc<Home>,
    number: u64,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(tiles) = self.tiles.take() {
            self.home.drop_later(self.number, Box::new(|py| wait(py, || tiles.free())));
        }
    }
}

/// Iterates over the tiles that this rank takes.
#[pyclass(name = "Tiles", module = "portolan", frozen)]
pub struct PyTiles(Pinned<Shared>);

impl PyTiles {
    pub fn new(tiles: Tiles<'static>, home: Rc<Home>, number: u64) -> PyTiles {
        home.made();
        PyTiles(Pinned::new(Shared { tiles: RefCell::new(Some(tiles)), home, number }))
    }
}

#[pymethods]
impl PyTiles {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let cell = &self.0.get()?.tiles;
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

    /// Free the counters before the end of the iteration. Collective.
    fn free(&self, py: Python<'_>) -> PyResult<()> {
        let freed = || Error_::new_err("the tiles have been freed");
        let shared = self.0.get()?;
        let tiles = shared.tiles.take().ok_or_else(freed)?;
        shared.home.freed();
        wait(py, || tiles.free())
    }
}
