//! Counters and mutexes.

use crate::call::{Error_, Pinned, wait};
use crate::group::{PyGroup, home_of};
use crate::home::Home;
use portolan::Segment;
use portolan::mutex::{MutexGuard, MutexSet};
use pyo3::prelude::*;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// The segment of a counter, until it is freed.
struct Counted {
    segment: RefCell<Option<Segment<'static, i64>>>,
    home: Rc<Home>,
    number: u64,
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(segment) = self.segment.take() {
            self.home.drop_later(self.number, Box::new(|py| wait(py, || segment.free())));
        }
    }
}

/// An integer on rank 0 of a group that all ranks increment. Creation is collective. The memory is
/// freed when the group creates its next object after all ranks have dropped the counter.
#[pyclass(name = "Counter", module = "portolan", frozen)]
pub struct PyCounter(Pinned<Counted>);

impl PyCounter {
    /// Creates a counter. `call` is the call of the program, with the arguments that all ranks
    /// share.
    fn make(
        py: Python<'_>,
        start: i64,
        group: Option<&Bound<'_, PyGroup>>,
        call: &str,
    ) -> PyResult<PyCounter> {
        let home = home_of(group)?;
        let (group, number) = (home.group()?, home.number(py)?);
        let make = || {
            let segment = group.allocate(usize::from(group.rank() == 0))?;
            if group.rank() == 0 && start != 0 {
                segment.store(0, 0, start)?;
            }
            group.barrier()?;
            Ok::<_, portolan::Error>(segment)
        };
        let segment = wait(py, || group.described(call, make))?;
        home.made();
        Ok(PyCounter(Pinned::new(Counted { segment: RefCell::new(Some(segment)), home, number })))
    }

    fn with<R>(
        &self,
        py: Python<'_>,
        body: impl FnOnce(&Segment<'static, i64>) -> portolan::Result<R>,
    ) -> PyResult<R> {
        match &*self.0.get()?.segment.borrow() {
            Some(segment) => wait(py, || body(segment)),
            None => Err(Error_::new_err("the counter has been freed")),
        }
    }
}

#[pymethods]
impl PyCounter {
    #[new]
    #[pyo3(signature = (start=0, group=None))]
    fn new(py: Python<'_>, start: i64, group: Option<&Bound<'_, PyGroup>>) -> PyResult<PyCounter> {
        PyCounter::make(py, start, group, &format!("Counter({start})"))
    }

    /// Return a counter that begins with 0, and that a call of the program creates.
    #[staticmethod]
    #[pyo3(signature = (call, group=None))]
    fn _described(
        py: Python<'_>,
        call: &str,
        group: Option<&Bound<'_, PyGroup>>,
    ) -> PyResult<PyCounter> {
        PyCounter::make(py, 0, group, call)
    }

    /// Add `step` and return the previous value, atomically.
    #[pyo3(signature = (step=1))]
    fn next(&self, py: Python<'_>, step: i64) -> PyResult<i64> {
        self.with(py, |s| s.fetch_add(0, 0, step))
    }

    /// The value. Setting it is not atomic with respect to `next` of other ranks.
    #[getter]
    fn value(&self, py: Python<'_>) -> PyResult<i64> {
        self.with(py, |s| s.load(0, 0))
    }

    #[setter]
    fn set_value(&self, py: Python<'_>, value: i64) -> PyResult<()> {
        self.with(py, |s| s.store(0, 0, value))
    }

    /// Free the memory. Collective.
    fn free(&self, py: Python<'_>) -> PyResult<()> {
        let freed = || Error_::new_err("the counter has been freed");
        let counted = self.0.get()?;
        let segment = counted.segment.take().ok_or_else(freed)?;
        counted.home.freed();
        wait(py, || segment.free())
    }
}

/// A set of mutexes, and the guards of those that this rank holds.
struct Held {
    /// The guards borrow from `set`, so they are dropped first.
    guards: RefCell<HashMap<(usize, usize), MutexGuard<'static>>>,
    set: RefCell<Option<Box<MutexSet<'static>>>>,
    home: Rc<Home>,
    number: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.guards.borrow_mut().clear();
        if let Some(set) = self.set.take() {
            self.home.drop_later(self.number, Box::new(|py| wait(py, || set.free())));
        }
    }
}

/// The native part of `portolan.Mutex`.
#[pyclass(name = "Mutexes", module = "portolan._native", subclass, frozen)]
pub struct PyMutexes(Pinned<Held>);

impl PyMutexes {
    /// Returns the set for a guard.
    fn set(&self) -> PyResult<&'static MutexSet<'static>> {
        match &*self.0.get()?.set.borrow() {
            // SAFETY: the box is dropped only by `free`, which refuses while guards exist, and with
            // `Held`, after its guards.
            Some(set) => Ok(unsafe { &*std::ptr::from_ref(&**set) }),
            None => Err(Error_::new_err("the mutexes have been freed")),
        }
    }
}

#[pymethods]
impl PyMutexes {
    #[new]
    #[pyo3(signature = (here, group=None))]
    fn new(py: Python<'_>, here: usize, group: Option<&Bound<'_, PyGroup>>) -> PyResult<PyMutexes> {
        let home = home_of(group)?;
        let (group, number) = (home.group()?, home.number(py)?);
        let set = RefCell::new(Some(Box::new(wait(py, || group.mutexes(here))?)));
        home.made();
        Ok(PyMutexes(Pinned::new(Held { guards: RefCell::default(), set, home, number })))
    }

    fn _lock(&self, py: Python<'_>, rank: usize, index: usize) -> PyResult<()> {
        let set = self.set()?;
        if self.0.get()?.guards.borrow().contains_key(&(rank, index)) {
            // Another thread cannot unlock it while this one waits.
            return Err(Error_::new_err("this rank already holds the mutex"));
        }
        let guard = wait(py, || set.lock(rank, index))?;
        self.0.get()?.guards.borrow_mut().insert((rank, index), guard);
        Ok(())
    }

    fn _try_lock(&self, py: Python<'_>, rank: usize, index: usize) -> PyResult<bool> {
        let set = self.set()?;
        let guard = wait(py, || set.try_lock(rank, index))?;
        let got = guard.is_some();
        self.0.get()?.guards.borrow_mut().extend(guard.map(|guard| ((rank, index), guard)));
        Ok(got)
    }

    fn _unlock(&self, py: Python<'_>, rank: usize, index: usize) -> PyResult<()> {
        let guard = self.0.get()?.guards.borrow_mut().remove(&(rank, index));
        match guard {
            Some(guard) => wait(py, || guard.unlock()),
            None => Err(Error_::new_err("this rank does not hold the mutex")),
        }
    }

    /// Free the memory. Collective.
    fn free(&self, py: Python<'_>) -> PyResult<()> {
        let held = self.0.get()?;
        if !held.guards.borrow().is_empty() {
            return Err(Error_::new_err("this rank holds a mutex of the set"));
        }
        let freed = || Error_::new_err("the mutexes have been freed");
        let set = held.set.take().ok_or_else(freed)?;
        held.home.freed();
        wait(py, || set.free())
    }
}
