//! The native module of the Python package `portolan`.
//!
//! The package is a thin layer over the crate `portolan`, mainly over its module `array`. This
//! crate makes the types usable without borrows and without static element types. The Python files
//! in `portolan/` add ufuncs, operators, index arrays and conversions of values as in NumPy, and
//! choose the MPI library.
//!
//! | module | contents |
//! |---|---|
//! | `call` | turns of threads, the interpreter lock, interrupts, errors |
//! | `dtype`, `boolean` | element types |
//! | `index` | NumPy's notation of indices |
//! | `elements` | arrays of an element type that is known only at run time |
//! | `views` | NumPy arrays as views of `ndarray`, and the reverse |
//! | `array`, `core` | the class of arrays, and the owner of an array |
//! | `values` | indices and values as transfers need them |
//! | `transfer` | transfers in progress |
//! | `access`, `apply` | accesses and views, functions of NumPy on own elements |
//! | `ufunc`, `operators`, `temporary` | universal functions of small arrays, operators |
//! | `group`, `home` | groups, and dropped arrays |
//! | `sync`, `tiles` | counters, mutexes, work sharing |
//! | `text` | the library's texts in Python's notation |

mod access;
mod apply;
mod array;
mod boolean;
mod call;
mod core;
mod dtype;
mod elements;
mod group;
mod home;
mod index;
mod operators;
mod sync;
mod temporary;
mod text;
mod tiles;
mod transfer;
mod ufunc;
mod values;
mod views;

use ndarray::IxDyn;
use portolan::Runtime;
use portolan::array::DistArray;
use pyo3::prelude::*;

/// An array of the process's runtime, which lives until the process ends.
pub(crate) type Dist<T> = DistArray<'static, T, IxDyn>;

/// Starts MPI, if it does not run, and the runtime. Collective.
#[pyfunction]
fn start(py: Python<'_>) -> PyResult<()> {
    call::start(py).map(drop)
}

/// Ends the runtime, and MPI if `start` started it. Collective.
#[pyfunction]
fn end(py: Python<'_>) -> PyResult<()> {
    call::end(py)
}

/// Ends all ranks of the job.
#[pyfunction]
fn abort(code: i32) {
    Runtime::abort(code)
}

/// Return the number of this rank in the job, from 0.
#[pyfunction]
fn rank() -> PyResult<usize> {
    Ok(call::known_runtime()?.rank())
}

/// Return the number of ranks of the job.
#[pyfunction]
fn size() -> PyResult<usize> {
    Ok(call::known_runtime()?.size())
}

/// Return the number of the node of this rank.
#[pyfunction]
fn node() -> PyResult<usize> {
    Ok(call::known_runtime()?.node())
}

/// Return the number of nodes.
#[pyfunction]
fn nodes() -> PyResult<usize> {
    Ok(call::known_runtime()?.nodes())
}

/// Return the ranks of this rank's node.
#[pyfunction]
fn node_ranks() -> PyResult<Vec<usize>> {
    Ok(call::known_runtime()?.node_ranks().to_vec())
}

#[pymodule]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("Error", m.py().get_type::<call::Error_>())?;
    m.add_class::<array::PyArray>()?;
    m.add_class::<transfer::PyTransfer>()?;
    m.add_class::<access::PyAccess>()?;
    m.add_class::<group::PyGroup>()?;
    m.add_class::<sync::PyCounter>()?;
    m.add_class::<sync::PyMutexes>()?;
    m.add_class::<tiles::PyTiles>()?;
    for function in [
        wrap_pyfunction!(start, m)?,
        wrap_pyfunction!(end, m)?,
        wrap_pyfunction!(abort, m)?,
        wrap_pyfunction!(rank, m)?,
        wrap_pyfunction!(size, m)?,
        wrap_pyfunction!(node, m)?,
        wrap_pyfunction!(nodes, m)?,
        wrap_pyfunction!(node_ranks, m)?,
        wrap_pyfunction!(apply::_apply, m)?,
        wrap_pyfunction!(ufunc::_learn, m)?,
        wrap_pyfunction!(ufunc::_recall, m)?,
    ] {
        m.add_function(function)?;
    }
    Ok(())
}
