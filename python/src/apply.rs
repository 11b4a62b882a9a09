//! Functions of NumPy on this rank's elements of several arrays.
//!
//! [`apply`] gives the ranks access to all arrays with one exchange. A second exchange ends the
//! accesses, and all ranks learn from it whether the function has raised on one of them. A universal
//! function therefore costs two exchanges, for any number of arrays.

use crate::array::PyArray;
use crate::call::wait;
use crate::core::Core;
use crate::elements::Elements;
use crate::group::broadcast;
use portolan::internals::binding::{AnyArray, access_all, release_all};
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use smallvec::SmallVec;
use std::cell::RefMut;
use std::rc::Rc;

pub type Operands<'py> = SmallVec<[Bound<'py, PyAny>; 4]>;
type Cores<'a> = SmallVec<[&'a Rc<Core>; 4]>;

/// Runs a call of the library on all arrays.
fn with_all<R>(
    py: Python<'_>,
    cores: &Cores<'_>,
    body: impl FnOnce(&mut [&mut dyn AnyArray<'static>]) -> portolan::Result<R>,
) -> PyResult<R> {
    let mut arrays: SmallVec<[RefMut<'_, Box<dyn Elements>>; 4]> =
        cores.iter().map(|core| core.lock()).collect::<PyResult<_>>()?;
    let mut parts: SmallVec<[&mut dyn AnyArray<'static>; 4]> =
        arrays.iter_mut().map(|array| array.as_part_mut()).collect();
    wait(py, || body(&mut parts))
}

/// For `portolan._ufuncs`; see [`apply`].
#[pyfunction]
#[pyo3(signature = (function, operands, outs, mask=None, options=None))]
pub fn _apply(
    function: &Bound<'_, PyAny>,
    operands: &Bound<'_, PyTuple>,
    outs: &Bound<'_, PyTuple>,
    mask: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let [operands, outs] = [operands, outs].map(|all| all.iter().collect::<Operands<'_>>());
    apply(function, &operands, &outs, mask, options)
}

/// Applies `function(*operands, out=outs, where=mask, **options)` to this rank's elements. Collective
/// over the group of the arrays. Operands that are distributed arrays stand for this rank's
/// elements. `outs` has at least one array. If the function raises on one rank, it raises on all
/// ranks.
pub fn apply<'py>(
    function: &Bound<'py, PyAny>,
    operands: &[Bound<'py, PyAny>],
    outs: &[Bound<'py, PyAny>],
    mask: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<()> {
    let py = function.py();
    let mut cores = Cores::new();
    // The position in `cores` of each array.
    let mut places: SmallVec<[Option<usize>; 4]> = SmallVec::new();
    for value in operands.iter().chain(outs).chain(mask) {
        let Ok(array) = value.cast::<PyArray>() else {
            places.push(None);
            continue;
        };
        let core = array.get().core()?;
        let known = cores.iter().position(|other| Rc::ptr_eq(other, core));
        places.push(Some(known.unwrap_or_else(|| {
            cores.push(core);
            cores.len() - 1
        })));
    }
    let Some(group) = cores.first().map(|core| core.with(|a| Ok(a.facts().group.clone()))) else {
        return Err(PyValueError::new_err("no distributed array"));
    };
    let group = group?;
    for core in &cores {
        core.settle(py)?;
        core.may_change("another access")?;
    }
    with_all(py, &cores, |arrays| access_all(arrays))?;
    cores.iter().for_each(|core| core.opened());
    let called = || -> PyResult<()> {
        let views: SmallVec<[Bound<'_, PyAny>; 4]> =
            cores.iter().map(|core| core.first_view(py)).collect::<PyResult<_>>()?;
        let part = |value: &Bound<'py, PyAny>, place: &Option<usize>| match place {
            Some(place) => views[*place].clone(),
            None => value.clone(),
        };
        let parts = |values: &[Bound<'py, PyAny>], places: &[Option<usize>]| {
            let all: Operands<'py> =
                values.iter().zip(places).map(|(value, place)| part(value, place)).collect();
            PyTuple::new(py, all)
        };
        let named = options.map_or_else(|| Ok(PyDict::new(py)), |options| options.copy())?;
        named.set_item(intern!(py, "out"), parts(outs, &places[operands.len()..])?)?;
        if let Some((mask, place)) = mask.zip(places.last()) {
            named.set_item(intern!(py, "where"), part(mask, place))?;
        }
        function.call(parts(operands, &places)?, Some(&named)).map(drop)
    };
    let called = called();
    let has_failed = |error: &PyErr| error.is_instance_of::<PyException>(py);
    let failed = called.as_ref().err().filter(|error| has_failed(error));
    let mine = if failed.is_some() { group.rank() } else { group.size() } as u64;
    let first = with_all(py, &cores, |arrays| release_all(arrays, mine))? as usize;
    cores.iter().for_each(|core| core.released());
    if first == group.size() {
        return called;
    }
    let operands_of = py.import("portolan._operands")?;
    let text: Vec<u8> = match failed {
        Some(error) => operands_of.call_method1("description", (error.value(py),))?.extract()?,
        None => Vec::new(),
    };
    let text = wait(py, || broadcast(&group, first, &text))?;
    called?;
    operands_of.call_method1("raise_of_rank", (first, PyBytes::new(py, &text))).map(drop)
}
