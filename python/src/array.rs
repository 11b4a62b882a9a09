//! The class of arrays that `portolan.Array` extends: creation, queries, indexing, and operations
//! on whole arrays.

use crate::Dist;
use crate::call::{Pinned, wait};
use crate::core::Core;
use crate::dtype::{DType, Scalar, with_type};
use crate::elements::{Copying, Elements, alike_mut};
use crate::group::{PyGroup, at_once, home_of};
use crate::index::Key;
use crate::operators::Operators;
use crate::tiles::PyTiles;
use crate::transfer::PyTransfer;
use crate::values::Place;
use ndarray::IxDyn;
use portolan::array::{Boundary, DistArray, Distribution, Options};
use portolan::internals::binding::are_distributed_alike;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyEllipsis, PySlice, PyTuple};
use std::path::PathBuf;
use std::rc::Rc;

/// The native part of `portolan.Array`.
#[pyclass(
    name = "ArrayBase", module = "portolan._native", extends = Operators, subclass, weakref, frozen
)]
pub struct PyArray(pub Pinned<Rc<Core>>);

/// A distribution in the notation of the Python part: its kind, and up to two lists.
fn distribution(spec: &Bound<'_, PyTuple>) -> PyResult<Distribution> {
    let kind: String = spec.get_item(0)?.extract()?;
    Ok(match kind.as_str() {
        "block" => Distribution::Block,
        "rows" => Distribution::Rows,
        "grid" => Distribution::grid(spec.get_item(1)?.extract::<Vec<usize>>()?),
        "irregular" => Distribution::Irregular(spec.get_item(1)?.extract()?),
        "cyclic" => {
            let (block, grid) = (spec.get_item(1)?.extract()?, spec.get_item(2)?.extract()?);
            Distribution::BlockCyclic { block, grid }
        }
        _ => return Err(PyValueError::new_err(format!("distribution '{kind}'"))),
    })
}

impl PyArray {
    fn owning(core: Core) -> PyClassInitializer<PyArray> {
        let array = PyArray(Pinned::new(Rc::new(core)));
        PyClassInitializer::from(Operators).add_subclass(array)
    }

    pub fn core(&self) -> PyResult<&Rc<Core>> {
        self.0.get()
    }
}

#[pymethods]
impl PyArray {
    /// Creates an array, or one that is placed like another one: then the elements are not set, and
    /// with `unfilled` the caller begins with an access.
    #[new]
    #[pyo3(signature = (
        shape, dtype, name, spec, ghosts=vec![], periodic=vec![], unfilled=false, group=None,
        path=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "called only by portolan.Array")]
    fn new(
        py: Python<'_>,
        shape: Vec<usize>,
        dtype: &Bound<'_, PyAny>,
        name: String,
        spec: &Bound<'_, PyAny>,
        ghosts: Vec<usize>,
        periodic: Vec<bool>,
        unfilled: bool,
        group: Option<&Bound<'_, PyGroup>>,
        path: Option<PathBuf>,
    ) -> PyResult<PyClassInitializer<PyArray>> {
        let dtype = DType::of(dtype)?;
        if let Ok(model) = spec.cast::<PyArray>() {
            let model = model.get().settled(py)?;
            let home = &model.home;
            let (array, number) = home.like(py, model, dtype, &name, unfilled)?;
            return Ok(PyArray::owning(Core::new(array, home.clone(), number, dtype)));
        }
        let (home, spec) = (home_of(group)?, spec.cast::<PyTuple>()?);
        let edge = |p: &bool| if *p { Boundary::Periodic } else { Boundary::Open };
        let mut options = Options::named(name)
            .distribution(distribution(spec)?)
            .ghosts(ghosts)
            .boundaries(periodic.iter().map(edge).collect::<Vec<_>>());
        if unfilled {
            options = options.unfilled();
        }
        let (group, number) = (home.group()?, home.number(py)?);
        let array: Box<dyn Elements> = with_type!(dtype, T => {
            let made: Dist<T> = wait(py, || match path {
                Some(path) => DistArray::load(&group, path, options),
                None => DistArray::with(&group, IxDyn(&shape), options),
            })?;
            Box::new(made)
        });
        Ok(PyArray::owning(Core::new(array, home, number, dtype)))
    }

    /// The name, for errors and reports.
    #[getter]
    fn name(&self) -> PyResult<&str> {
        Ok(&self.0.peek().known()?.name)
    }

    /// The number of elements along each axis.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.peek().known()?.shape)
    }

    /// The number of axes.
    #[getter]
    fn ndim(&self) -> PyResult<usize> {
        Ok(self.0.peek().known()?.shape.len())
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> PyResult<usize> {
        Ok(self.0.peek().known()?.shape.iter().product())
    }

    /// The number of ranks along each axis.
    #[getter]
    fn grid<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.peek().known()?.grid)
    }

    /// The width of the ghost cells along each axis.
    #[getter]
    fn ghosts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.peek().known()?.ghosts)
    }

    /// The element type.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, numpy::PyArrayDescr>> {
        Ok(with_type!(self.0.peek().dtype, T => numpy::dtype::<T>(py)))
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.0.peek().known()?.shape[0])
    }

    /// Return the rank, in the array's group, that owns an element.
    fn owner(&self, index: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.0.peek().query(|a| match self.key(a, index)? {
            Key::Element(index) => at_once(a.owner(&index)),
            _ => Err(PyTypeError::new_err("owner() needs the index of one element")),
        })
    }

    /// Return the ranks, in the array's group, that own elements of a patch.
    ///
    /// The index of the patch must have no arrays.
    fn owners(&self, index: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
        self.0.peek().query(|a| {
            let selection = self.selection(a, index)?;
            at_once(selection.patch().and_then(|patch| a.owners(patch)))
        })
    }

    /// Return the slices of the elements that a rank of the array's group owns.
    ///
    /// The default is this rank. Returns None if the array is block-cyclic over several ranks.
    #[pyo3(signature = (rank=None))]
    fn bounds<'py>(
        &self,
        py: Python<'py>,
        rank: Option<usize>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.0.peek().query(|a| {
            let rank = rank.unwrap_or_else(|| a.facts().group.rank());
            let slice =
                |r: std::ops::Range<usize>| PySlice::new(py, r.start as isize, r.end as isize, 1);
            let bounds = at_once(a.bounds(rank))?;
            bounds.map(|ranges| PyTuple::new(py, ranges.into_iter().map(slice))).transpose()
        })
    }

    /// Return whether both arrays have the same group, shape and distribution, so that every rank
    /// owns the same elements in both.
    fn _is_alike(&self, other: &Bound<'_, PyArray>) -> PyResult<bool> {
        let other = other.get().core()?;
        self.core()?.with(|a| other.with(|b| Ok(are_distributed_alike(a.as_part(), b.as_part()))))
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let found = self.core()?.with(|a| match self.key(a, index)? {
            Key::Element(index) => a.get_value(py, &index).map(Some),
            Key::Patch(selection) => a.get(&selection, py, None).map(Some),
            Key::Arrays => Ok(None),
        })?;
        match found {
            Some(found) => Ok(found),
            None => {
                let shape = self.shape(py)?;
                let values = py.import("portolan._values")?;
                if values.call_method1("is_dense", (shape, index))?.extract()? {
                    return self.__getitem__(py, &PyEllipsis::get(py).to_owned())?.get_item(index);
                }
                let lists = self.lists(index)?;
                let shape = &lists.shape;
                let found = self.core()?.with(|a| a.gather(py, &lists.listed()?))?;
                match shape.is_empty() {
                    true => found.get_item(0), // a scalar, as in NumPy
                    false => found.call_method1("reshape", (shape,)),
                }
            }
        }
    }

    fn __setitem__(&self, index: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let core = self.core()?;
        if value.cast::<numpy::PyUntypedArray>().is_err()
            && let Key::Element(index) = core.with(|a| self.key(a, index))?
        {
            let put = core.with(|a| a.put_value(value, &index));
            return put.map_err(|error| self.named(value.py(), error));
        }
        let place = self.place(index)?;
        let source = self.source_of(&place, value)?;
        core.with(|a| match &place {
            Place::Patch(selection) => a.put(selection, &source),
            Place::Lists(lists) => a.scatter(&lists.listed()?, &source),
        })
    }

    /// Add `alpha` times a value to the elements that an index selects, each atomically.
    ///
    /// The value broadcasts to the shape of the selection. Index arrays may name an element more
    /// than once. Sums of integers wrap, and a sum of bools is a logical or. Raises Error during an
    /// access. Not collective; `sync` makes the sums visible to all ranks.
    #[pyo3(signature = (index, value, alpha=None))]
    fn add(
        &self,
        index: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        alpha: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let place = self.place(index)?;
        let source = self.source_of(&place, value)?;
        self.core()?.with(|a| match &place {
            Place::Patch(selection) => a.add(selection, &source, alpha),
            Place::Lists(lists) => a.scatter_add(&lists.listed()?, &source, alpha),
        })
    }

    /// Return the elements that an index selects, as `a[index]` does.
    ///
    /// With `out`, a numpy array of the right dtype and shape, the elements are written to it, and
    /// it is returned; the index must have no arrays then. Not collective.
    #[pyo3(signature = (index, out=None))]
    fn get<'py>(
        &self,
        index: &Bound<'py, PyAny>,
        out: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = index.py();
        match out {
            None => self.__getitem__(py, index),
            out => self.core()?.with(|a| a.get(&self.selection(a, index)?, py, out)),
        }
    }

    /// Start to get the elements that an index selects. Not collective.
    ///
    /// `Transfer.wait` returns what `a[index]` does.
    fn start_get(slf: &Bound<'_, Self>, index: &Bound<'_, PyAny>) -> PyResult<PyTransfer> {
        let py = slf.py();
        match slf.get().place(index)? {
            Place::Patch(selection) => PyTransfer::new(slf, |a| a.start_get(py, selection)),
            Place::Lists(lists) => {
                let shape: Vec<usize> = lists.shape.extract()?;
                PyTransfer::new(slf, |a| a.start_gather(py, &lists.listed()?, &shape))
            }
        }
    }

    /// Start to put a copy of a value to the elements that an index selects.
    ///
    /// Not collective. The elements are visible to all ranks after `sync`.
    fn start_put(
        slf: &Bound<'_, Self>,
        index: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<PyTransfer> {
        let place = slf.get().place(index)?;
        let source = slf.get().source_of(&place, value)?;
        PyTransfer::new(slf, |a| match place {
            Place::Patch(selection) => a.start_put(selection, &source),
            Place::Lists(lists) => a.start_scatter(&lists.listed()?, &source),
        })
    }

    /// Start to add `alpha` times a copy of a value, atomically; see `add`. Not collective.
    #[pyo3(signature = (index, value, alpha=None))]
    fn start_add(
        slf: &Bound<'_, Self>,
        index: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        alpha: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTransfer> {
        let place = slf.get().place(index)?;
        let source = slf.get().source_of(&place, value)?;
        PyTransfer::new(slf, |a| match place {
            Place::Patch(selection) => a.start_add(selection, &source, alpha),
            Place::Lists(lists) => a.start_scatter_add(&lists.listed()?, &source, alpha),
        })
    }

    /// Add to an element of int32, int64, uint32 or uint64, and return its previous value.
    ///
    /// The default is one. Atomic with respect to other ranks. Not collective.
    #[pyo3(signature = (index, value=None))]
    fn fetch_add<'py>(
        &self,
        index: &Bound<'py, PyAny>,
        value: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.core()?.with(|a| match self.key(a, index)? {
            Key::Element(at) => a.fetch_add(index.py(), &at, value),
            _ => Err(PyTypeError::new_err("fetch_add() needs the index of one element")),
        })
    }

    /// Complete the operations of all ranks of the group, on any array, and wait for these ranks.
    ///
    /// Collective. Afterwards all ranks see the same elements. With PORTOLAN_CHECK=1, raises Error
    /// on all ranks if two of them have used an element without a sync in between, and one of them
    /// has written it.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.settled(py)?.with(|a| a.sync(py))
    }

    /// Ends an access that a block has left. Collective calls begin with this.
    fn _settle(&self, py: Python<'_>) -> PyResult<()> {
        self.settled(py).map(drop)
    }

    /// Free the memory. Collective. Raises BufferError while views or transfers are alive.
    fn free(&self, py: Python<'_>) -> PyResult<()> {
        let array = self.core()?.take(py)?;
        array.map_or(Ok(()), |array| array.free(py))
    }

    /// Set all elements to a value. Collective.
    fn fill(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, core) = (value.py(), self.settled(value.py())?);
        // The conversion may run code that uses this array.
        let filled = with_type!(core.dtype, T => T::from_py(value).and_then(|number| {
            core.change("fill()", |a| {
                let array = alike_mut::<T>(a)?;
                wait(py, || array.fill(number))
            })
        }));
        filled.map_err(|error| self.named(py, error))
    }

    /// Copy all elements of an array of the same shape and dtype, and any distribution. Collective.
    ///
    /// Raises ValueError if the shapes or groups differ, and TypeError if the dtypes differ.
    fn copy_from(&self, py: Python<'_>, other: &Bound<'_, PyArray>) -> PyResult<()> {
        let other = other.get().settled(py)?;
        let copy = |a: &mut dyn Elements| other.with(|b| a.copy_from(py, b, Copying::Straight));
        self.distinct(py, other)?.change("copy_from()", copy)
    }

    /// Make this array the transpose of another one: its axes in reverse order. Collective.
    fn transpose_from(&self, py: Python<'_>, other: &Bound<'_, PyArray>) -> PyResult<()> {
        let other = other.get().settled(py)?;
        let copy = |a: &mut dyn Elements| other.with(|b| a.copy_from(py, b, Copying::Transposed));
        self.distinct(py, other)?.change("transpose_from()", copy)
    }

    /// Make this array the matrix product `a @ b`. Collective. Any distributions.
    fn matmul_from(
        &self,
        py: Python<'_>,
        a: &Bound<'_, PyArray>,
        b: &Bound<'_, PyArray>,
    ) -> PyResult<()> {
        let (a, b) = (a.get().settled(py)?, b.get().settled(py)?);
        self.distinct(py, a)?;
        let multiply = |c: &mut dyn Elements| a.with(|a| b.with(|b| c.matmul(py, a, b)));
        self.distinct(py, b)?.change("matmul_from()", multiply)
    }

    fn _sum<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.settled(py)?.with(|a| a.sum(py))
    }

    fn _dot<'py>(
        &self,
        py: Python<'py>,
        other: &Bound<'_, PyArray>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let other = other.get().settled(py)?;
        self.settled(py)?.with(|a| other.with(|b| a.dot(py, b)))
    }

    fn _norm(&self, py: Python<'_>) -> PyResult<f64> {
        self.settled(py)?.with(|a| a.norm(py))
    }

    fn _extremum<'py>(
        &self,
        py: Python<'py>,
        max: bool,
    ) -> PyResult<Option<(Bound<'py, PyAny>, Vec<usize>)>> {
        self.settled(py)?.with(|a| a.extremum(py, max))
    }

    fn _save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.settled(py)?.with(|a| a.save(py, &path))
    }

    /// Return an iterator over tiles of at most the given shape. Collective.
    ///
    /// Each tile, a tuple of slices, is handed out to one rank, its owner if possible. The end of
    /// the iteration is collective. If all ranks leave the loop early, its memory is freed like
    /// that of an array.
    fn tiles(slf: &Bound<'_, Self>, shape: Vec<usize>) -> PyResult<PyTiles> {
        let (py, core) = (slf.py(), slf.get().settled(slf.py())?);
        let number = core.home.number(py)?;
        let tiles = core.with(|a| a.tiles(py, shape))?;
        Ok(PyTiles::new(tiles, core.home.clone(), number))
    }
}

impl PyArray {
    /// Returns the core for a collective call.
    fn settled(&self, py: Python<'_>) -> PyResult<&Rc<Core>> {
        let core = self.core()?;
        core.settle(py)?;
        Ok(core)
    }

    /// Returns this array's core for a collective call if `other` is another array.
    fn distinct(&self, py: Python<'_>, other: &Rc<Core>) -> PyResult<&Rc<Core>> {
        let core = self.settled(py)?;
        if Rc::ptr_eq(core, other) {
            return Err(PyValueError::new_err("an array is both source and target"));
        }
        Ok(core)
    }
}
