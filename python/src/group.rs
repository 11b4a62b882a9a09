//! Groups of ranks.

use crate::call::{Error_, Pinned, raise, wait};
use crate::dtype::{DType, Op, Outcome, Scalar, with_type};
use crate::home::Home;
use crate::views::{SOURCE, elements};
use numpy::IntoPyArray;
use portolan::Group;
use portolan::internals::binding;
use portolan::reduce::Min;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;

/// A group of ranks, as one that requested it sees it.
struct Request {
    home: Rc<Home>,
    freed: Cell<bool>,
    /// Whether this is `portolan.world`, which is never freed.
    permanent: bool,
}

/// A group of ranks.
#[pyclass(name = "Group", module = "portolan._native", subclass, weakref, frozen)]
pub struct PyGroup(Pinned<Request>);

/// Returns the home that an optional group means.
pub fn home_of(group: Option<&Bound<'_, PyGroup>>) -> PyResult<Rc<Home>> {
    match group {
        Some(group) => Ok(group.get().home()?.clone()),
        None => Home::world(),
    }
}

impl PyGroup {
    fn new_request(home: Rc<Home>, permanent: bool) -> PyGroup {
        PyGroup(Pinned::new(Request { home, freed: Cell::new(false), permanent }))
    }

    fn home(&self) -> PyResult<&Rc<Home>> {
        self.0.get()?;
        self.known_home()
    }

    /// Returns the home for a query.
    fn known_home(&self) -> PyResult<&Rc<Home>> {
        let request = self.0.peek();
        match request.freed.get() {
            true => Err(Error_::new_err("the group has been freed")),
            false => Ok(&request.home),
        }
    }

    fn group(&self) -> PyResult<Group<'static>> {
        self.home()?.group()
    }
}

#[pymethods]
impl PyGroup {
    /// The group of `ranks` of a parent group, by default of all its ranks, or the world.
    /// Collective over these ranks, unless it is the world.
    #[new]
    #[pyo3(signature = (parent=None, ranks=None))]
    fn new(
        py: Python<'_>,
        parent: Option<&Bound<'_, PyGroup>>,
        ranks: Option<Vec<usize>>,
    ) -> PyResult<PyGroup> {
        if parent.is_none() && ranks.is_none() {
            return Ok(PyGroup::new_request(Home::world()?, true));
        }
        let group = home_of(parent)?.group()?;
        let ranks = ranks.unwrap_or_else(|| (0..group.size()).collect());
        Ok(PyGroup::new_request(Home::of(py, &group, &ranks)?, false))
    }

    /// The number of this rank in the group.
    #[getter]
    fn rank(&self) -> PyResult<usize> {
        Ok(self.known_home()?.group()?.rank())
    }

    /// The number of ranks.
    #[getter]
    fn size(&self) -> PyResult<usize> {
        Ok(self.known_home()?.group()?.size())
    }

    /// The world ranks of the members, in the order of the group.
    #[getter]
    fn members(&self) -> PyResult<Vec<usize>> {
        Ok(self.known_home()?.group()?.members().to_vec())
    }

    /// Complete the operations of all ranks of the group, and wait for all of them. Collective.
    fn barrier(&self, py: Python<'_>) -> PyResult<()> {
        let group = self.group()?;
        wait(py, || group.barrier())
    }

    /// Returns the ranks of this group that pass the same color, in the order of their keys, or None
    /// without a color. Collective.
    fn _ranks_of_color(
        &self,
        py: Python<'_>,
        color: Option<i64>,
        key: i64,
    ) -> PyResult<Option<Vec<usize>>> {
        let group = self.group()?;
        // The unsigned numbers have the order of the signed ones.
        let [color, key] = [color, Some(key)].map(|n| n.map(|n| (n ^ i64::MIN) as usize));
        wait(py, || binding::ranks_of_color(&group, color, key.unwrap_or_default()))
    }

    /// Free the objects that no rank references any more, and return their number. Collective. The
    /// world includes the objects of all groups.
    fn collect(&self, py: Python<'_>) -> PyResult<usize> {
        let home = self.home()?;
        let mut freed = home.collect(py)?;
        if Rc::ptr_eq(home, &Home::world()?) {
            for other in Home::others()? {
                freed += other.collect(py)?;
                other.end(py)?;
            }
        }
        Ok(freed)
    }

    /// Make collective calls possible again after a mismatch that all ranks have caught. Collective.
    ///
    /// The group's arrays can be used again, too. Arrays that only some ranks were about to free stay.
    /// Raises Error if no calls have differed, or if the mismatch was in the creation or the free of a
    /// group.
    fn resume(&self, py: Python<'_>) -> PyResult<()> {
        let home = self.home()?;
        let group = home.group()?;
        wait(py, || group.resume())?;
        home.level(py)
    }

    /// Free the group. Its arrays stay valid until they are freed or dropped. Collective. Raises
    /// ValueError for the world.
    fn free(&self, py: Python<'_>) -> PyResult<()> {
        let (home, request) = (self.home()?, self.0.get()?);
        if request.permanent {
            let group = home.group()?;
            return wait(py, || group.free());
        }
        home.free(py)?;
        request.freed.set(true);
        Ok(())
    }

    #[pyo3(signature = (values, op, call=None))]
    fn _all_reduce<'py>(
        &self,
        values: &Bound<'py, PyAny>,
        op: &str,
        call: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (group, op) = (self.group()?, Op::of(op)?);
        let dtype = DType::of(&values.getattr("dtype")?)?;
        with_type!(dtype, T => all_reduce::<T>(&group, values, op, call))
    }

    fn _broadcast<'py>(
        &self,
        py: Python<'py>,
        data: &[u8],
        root: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let group = self.group()?;
        Ok(PyBytes::new(py, &wait(py, || broadcast(&group, root, data))?))
    }

    fn _all_gather<'py>(&self, py: Python<'py>, data: &[u8]) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let group = self.group()?;
        let all = wait(py, || group.all_to_all_varied(&vec![data; group.size()]))?;
        Ok(all.iter().map(|bytes| PyBytes::new(py, bytes)).collect())
    }

    /// Returns the first rank that passes a text, and this text, or None if no rank passes one.
    /// Collective.
    fn _first_failure(
        &self,
        py: Python<'_>,
        mine: Option<&[u8]>,
    ) -> PyResult<Option<(usize, Cow<'static, [u8]>)>> {
        let group = self.group()?;
        let found = wait(py, || first_failure(&group, mine))?;
        Ok(found.map(|(rank, text)| (rank, text.into())))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        match other.cast::<PyGroup>() {
            Ok(other) => Ok(Rc::ptr_eq(&self.0.peek().home, &other.get().0.peek().home)),
            Err(_) => Ok(false),
        }
    }

    fn __hash__(&self) -> PyResult<usize> {
        Ok(Rc::as_ptr(&self.0.peek().home).addr())
    }
}

/// Returns the combined values of all ranks, as a new array of the same shape. `call` describes the
/// call of the program that this is a part of.
fn all_reduce<'py, T: Scalar>(
    group: &Group<'static>,
    values: &Bound<'py, PyAny>,
    op: Op,
    call: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    let mut copy = elements::<T>(values, SOURCE)?.as_standard_layout().into_owned();
    let combined = copy.as_slice_mut().expect("the standard layout is contiguous");
    let mut reduce = || -> Outcome<()> { T::all_reduce(group, combined, op) };
    wait(py, || match call {
        Some(call) => group.described(call, reduce),
        None => reduce(),
    })?;
    Ok(copy.into_pyarray(py).into_any())
}

/// Returns the bytes of a rank. Collective.
pub fn broadcast(group: &Group<'static>, root: usize, data: &[u8]) -> portolan::Result<Vec<u8>> {
    let (mut len, mut bytes) = ([data.len() as u64], data.to_vec());
    group.broadcast(root, &mut len)?;
    bytes.resize(len[0] as usize, 0);
    group.broadcast(root, &mut bytes)?;
    Ok(bytes)
}

/// Returns the first rank that has failed, and its text, or `None` if no rank has. Collective.
fn first_failure(
    group: &Group<'static>,
    mine: Option<&[u8]>,
) -> portolan::Result<Option<(usize, Vec<u8>)>> {
    let failed = if mine.is_some() { group.rank() } else { group.size() };
    let first = group.all_reduce_value(failed as u64, Min)? as usize;
    if first == group.size() {
        return Ok(None);
    }
    Ok(Some((first, broadcast(group, first, mine.unwrap_or_default())?)))
}

/// Makes an error of the library an exception, for queries.
pub fn at_once<R>(result: portolan::Result<R>) -> PyResult<R> {
    result.map_err(|error| raise(error.into()))
}
