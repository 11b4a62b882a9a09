//! Groups, and the arrays, counters and mutexes that Python has dropped.
//!
//! Freeing such an object is collective, but ranks drop their references at different times. A
//! dropped object therefore goes to the list of its group. The next creation of an object in the
//! group, which is collective, compares the lists of the ranks and frees the objects that all ranks
//! have dropped, in the order of their numbers. The numbers count the creations, so they agree on all
//! ranks.

use crate::call::{Error_, Pinned, enter, raise, runtime, wait};
use crate::dtype::{DType, Op, with_type};
use crate::elements;
use portolan::Group;
use portolan::reduce::Min;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::OnceLock;

/// Frees an object. Collective.
pub type Free = Box<dyn FnOnce(Python<'_>) -> PyResult<()>>;

/// A group, and what belongs to it.
pub struct Home {
    group: RefCell<Option<Group<'static>>>,
    created: Cell<u64>,
    dropped: RefCell<BTreeMap<u64, Free>>,
}

static WORLD: OnceLock<Pinned<Rc<Home>>> = OnceLock::new();

impl Home {
    fn new(group: Group<'static>) -> Rc<Home> {
        Rc::new(Home {
            group: RefCell::new(Some(group)),
            created: Cell::new(0),
            dropped: RefCell::default(),
        })
    }

    /// Returns the group of all ranks.
    pub fn world() -> PyResult<Rc<Home>> {
        let group = runtime()?.world();
        Ok(WORLD.get_or_init(|| Pinned::new(Home::new(group))).get()?.clone())
    }

    /// Returns the group, unless it was freed.
    pub fn group(&self) -> PyResult<Group<'static>> {
        let freed = || Error_::new_err("the group has been freed");
        self.group.borrow().clone().ok_or_else(freed)
    }

    /// Returns the number of a new object. Collective, if it succeeds.
    pub fn number(&self, py: Python<'_>) -> PyResult<u64> {
        self.collect(py)?;
        self.created.set(self.created.get() + 1);
        Ok(self.created.get())
    }

    /// Keeps an object that Python has dropped.
    pub fn drop_later(&self, number: u64, free: Free) {
        self.dropped.borrow_mut().insert(number, free);
    }

    /// Frees the objects that all ranks have dropped. Collective. Returns their number.
    pub fn collect(&self, py: Python<'_>) -> PyResult<usize> {
        let group = self.group()?;
        let mine: Vec<u64> = self.dropped.borrow().keys().copied().collect();
        let common = wait(py, || -> portolan::Result<Vec<u64>> {
            if group.all_reduce_value(mine.len() as u64, Min)? == 0 {
                return Ok(Vec::new());
            }
            let all = group.all_to_all_varied(&vec![&mine[..]; group.size()])?;
            Ok(mine.iter().copied().filter(|n| all.iter().all(|a| a.contains(n))).collect())
        })?;
        for number in &common {
            let free = self.dropped.borrow_mut().remove(number);
            if let Some(free) = free {
                free(py)?;
            }
        }
        Ok(common.len())
    }
}

/// A group of ranks.
#[pyclass(name = "Group", module = "portolan._native", subclass, weakref, frozen)]
pub struct PyGroup(Pinned<Rc<Home>>);

/// Returns the home that an optional group means.
pub fn home_of(group: Option<&Bound<'_, PyGroup>>) -> PyResult<Rc<Home>> {
    match group {
        Some(group) => Ok(group.get().0.get()?.clone()),
        None => Home::world(),
    }
}

impl PyGroup {
    fn group(&self) -> PyResult<Group<'static>> {
        self.0.get()?.group()
    }
}

#[pymethods]
impl PyGroup {
    /// The group of `ranks` of a parent group, or the world.
    #[new]
    #[pyo3(signature = (parent=None, ranks=None))]
    fn new(
        py: Python<'_>,
        parent: Option<&Bound<'_, PyGroup>>,
        ranks: Option<Vec<usize>>,
    ) -> PyResult<PyGroup> {
        let home = home_of(parent)?;
        let Some(ranks) = ranks else { return Ok(PyGroup(Pinned::new(home))) };
        let parent = home.group()?;
        match wait(py, || parent.subgroup(&ranks))? {
            Some(group) => Ok(PyGroup(Pinned::new(Home::new(group)))),
            None => Err(Error_::new_err("this rank is not a member of the group")),
        }
    }

    /// The number of this rank in the group.
    #[getter]
    fn rank(&self) -> PyResult<usize> {
        Ok(self.group()?.rank())
    }

    /// The number of ranks.
    #[getter]
    fn size(&self) -> PyResult<usize> {
        Ok(self.group()?.size())
    }

    /// The world ranks of the members, in the order of the group.
    #[getter]
    fn members(&self) -> PyResult<Vec<usize>> {
        Ok(self.group()?.members().to_vec())
    }

    /// Complete the operations of all ranks of the group, and wait for all of them. Collective.
    fn barrier(&self, py: Python<'_>) -> PyResult<()> {
        let group = self.group()?;
        wait(py, || group.barrier())
    }

    /// Free the arrays that no rank references any more, and return their number. Collective.
    fn collect(&self, py: Python<'_>) -> PyResult<usize> {
        self.0.get()?.collect(py)
    }

    /// Free the group. Its arrays stay valid. Collective. Raises ValueError for the world.
    fn free(&self, py: Python<'_>) -> PyResult<()> {
        let home = self.0.get()?;
        let group = home.group()?;
        home.collect(py)?;
        wait(py, || group.free())?;
        home.group.borrow_mut().take();
        Ok(())
    }

    fn _all_reduce<'py>(
        &self,
        values: &Bound<'py, PyAny>,
        op: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (group, op) = (self.group()?, Op::of(op)?);
        let dtype = DType::of(&values.getattr("dtype")?)?;
        with_type!(dtype, T => elements::all_reduce::<T>(&group, values, op))
    }

    fn _broadcast<'py>(
        &self,
        py: Python<'py>,
        data: &[u8],
        root: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let group = self.group()?;
        let mut bytes = data.to_vec();
        wait(py, || -> portolan::Result<()> {
            let mut len = [bytes.len() as u64];
            group.broadcast(root, &mut len)?;
            bytes.resize(len[0] as usize, 0);
            group.broadcast(root, &mut bytes)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn _all_gather<'py>(&self, py: Python<'py>, data: &[u8]) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let group = self.group()?;
        let all = wait(py, || group.all_to_all_varied(&vec![data; group.size()]))?;
        Ok(all.iter().map(|bytes| PyBytes::new(py, bytes)).collect())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        match other.cast::<PyGroup>() {
            Ok(other) => Ok(Rc::ptr_eq(self.0.get()?, other.get().0.get()?)),
            Err(_) => Ok(false),
        }
    }

    fn __hash__(&self) -> PyResult<usize> {
        Ok(Rc::as_ptr(self.0.get()?).addr())
    }
}

/// Makes an error of the library an exception, for calls that do not wait.
pub fn at_once<R>(result: portolan::Result<R>) -> PyResult<R> {
    enter()?;
    result.map_err(|error| raise(error.into()))
}
