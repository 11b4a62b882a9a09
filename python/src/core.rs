//! The owner of an array.
//!
//! The array object, its access, its views and its transfers share a [`Core`], so the memory stays
//! until the last of them is gone. The core counts views and transfers, and refuses to free the array
//! while there are some. Views become read-only at the end of the access. When the last reference is
//! dropped, the array goes to the list of its group ([`crate::home`]).
//!
//! A call borrows the array while it runs code of Python, such as a conversion or a garbage
//! collection. This code may use the same array. Every borrow therefore goes through
//! [`Core::with`] or [`Core::with_mut`], which fail if the array is in use and make a panic an error.
//! They keep the turn of the thread ([`crate::call`]) until the call ends.

use crate::access::Lease;
use crate::call::{Error_, Turn, caught};
use crate::dtype::DType;
use crate::elements::Elements;
use crate::home::{Home, SPARE_BYTES, bytes_of};
use crate::views::seal;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::PyWeakrefReference;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

type Axes = SmallVec<[usize; 4]>;

/// The answers to queries. They do not change, so queries work during calls that change the whole
/// array, such as a stencil step.
pub struct Known {
    pub name: String,
    pub shape: Axes,
    pub grid: Axes,
    pub ghosts: Axes,
}

/// An array, and the objects that use it.
pub struct Core {
    array: RefCell<Option<Box<dyn Elements>>>,
    known: Known,
    pub home: Rc<Home>,
    pub number: u64,
    pub dtype: DType,
    /// The views of own elements that Python holds.
    pub views: Arc<AtomicUsize>,
    /// The views that the access has given to the program, to find those that are alive at its end.
    given: RefCell<Vec<Py<PyWeakrefReference>>>,
    /// The transfers in progress that Python holds.
    pub transfers: Cell<usize>,
    lent: Cell<Lent>,
    /// The number of accesses so far.
    opened: Cell<u64>,
}

/// Whether the array is in an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lent {
    No,
    Open,
    /// An exception has ended the block of the access. Other ranks may not have raised and may wait
    /// in the release, so the next collective call on the array releases the access.
    Left,
}

fn in_use<E>(_: E) -> PyErr {
    Error_::new_err(
        "the array is in use by a call in progress: it is both source and target, a stencil step \
         uses it, or the call converts an object that uses the array",
    )
}

impl Drop for Core {
    fn drop(&mut self) {
        if let Some(array) = self.array.take() {
            self.home.drop_array(self.number, array, self.dtype);
        }
    }
}

impl Core {
    pub fn new(array: Box<dyn Elements>, home: Rc<Home>, number: u64, dtype: DType) -> Core {
        home.made();
        let facts = array.facts();
        let known = Known {
            name: facts.name.to_string(),
            shape: facts.shape.into(),
            grid: facts.grid.into(),
            ghosts: facts.ghosts.into(),
        };
        Core {
            array: RefCell::new(Some(array)),
            known,
            home,
            number,
            dtype,
            views: Arc::default(),
            given: RefCell::default(),
            transfers: Cell::new(0),
            lent: Cell::new(Lent::No),
            opened: Cell::new(0),
        }
    }

    /// Takes the array out, for its end. Returns `None` if that has happened before.
    pub fn take(&self, py: Python<'_>) -> PyResult<Option<Box<dyn Elements>>> {
        if self.array.try_borrow().is_ok_and(|array| array.is_none()) {
            return Ok(None);
        }
        self.settle(py)?;
        self.no_views("the array is freed")?;
        self.change("the array is freed", |_| Ok(()))?;
        self.home.freed();
        Ok(self.array.take())
    }

    /// Returns whether the array exceeds the size of spare arrays and is without ghost cells.
    pub fn is_large(&self) -> PyResult<bool> {
        let known = self.known()?;
        let bytes = bytes_of(&known.shape, self.dtype);
        Ok(bytes > SPARE_BYTES && known.ghosts.iter().all(|width| *width == 0))
    }

    /// Returns whether no other object uses the array, and no call.
    pub fn is_unused(self: &Rc<Core>) -> bool {
        Rc::strong_count(self) == 1
            && self.transfers.get() == 0
            && self.lent.get() == Lent::No
            && self.array.try_borrow_mut().is_ok()
    }

    /// Runs a call that only reads the array or writes patches.
    pub fn with<R>(&self, body: impl FnOnce(&dyn Elements) -> PyResult<R>) -> PyResult<R> {
        let _turn = Turn::take()?;
        match &*self.array.try_borrow().map_err(in_use)? {
            Some(array) => caught(|| body(&**array)),
            None => Err(Error_::new_err("the array has been freed")),
        }
    }

    /// Returns the answers to queries of an array that is not freed.
    pub fn known(&self) -> PyResult<&Known> {
        match self.array.try_borrow() {
            Ok(array) if array.is_none() => Err(Error_::new_err("the array has been freed")),
            _ => Ok(&self.known),
        }
    }

    /// Runs a query of the owners of elements. It does not wait for a call of another thread, unless
    /// this call changes the whole array.
    pub fn query<R>(&self, body: impl FnOnce(&dyn Elements) -> PyResult<R>) -> PyResult<R> {
        match self.array.try_borrow() {
            Ok(array) if array.is_some() => body(&**array.as_ref().expect("there is one")),
            _ => self.with(body),
        }
    }

    /// Runs a call of the access, or one that needs the whole array.
    pub fn with_mut<R>(&self, body: impl FnOnce(&mut dyn Elements) -> PyResult<R>) -> PyResult<R> {
        let _turn = Turn::take()?;
        match &mut *self.array.try_borrow_mut().map_err(in_use)? {
            Some(array) => caught(|| body(&mut **array)),
            None => Err(Error_::new_err("the array has been freed")),
        }
    }

    /// Returns the array for a call that runs no code of Python.
    pub fn lock(&self) -> PyResult<RefMut<'_, Box<dyn Elements>>> {
        let array = self.array.try_borrow_mut().map_err(in_use)?;
        RefMut::filter_map(array, Option::as_mut)
            .map_err(|_| Error_::new_err("the array has been freed"))
    }

    /// Fails if views of own elements are alive.
    pub fn no_views(&self, what: &str) -> PyResult<()> {
        match self.views.load(Ordering::Acquire) {
            0 => Ok(()),
            views => Err(PyBufferError::new_err(format!(
                "array \"{}\": {views} numpy view(s) of this rank's elements are alive; delete \
                 them before {what}",
                self.known.name
            ))),
        }
    }

    /// Fails if transfers are in progress.
    pub fn no_transfers(&self, what: &str) -> PyResult<()> {
        match self.transfers.get() {
            0 => Ok(()),
            n => Err(PyBufferError::new_err(format!(
                "array \"{}\": {n} transfer(s) are in progress; wait for them before {what}",
                self.known.name
            ))),
        }
    }

    /// Runs a call that changes the whole array, outside of accesses.
    pub fn change<R>(
        &self,
        what: &str,
        body: impl FnOnce(&mut dyn Elements) -> PyResult<R>,
    ) -> PyResult<R> {
        self.may_change(what)?;
        self.with_mut(body)
    }

    /// Fails in an access, and if transfers are in progress.
    pub fn may_change(&self, what: &str) -> PyResult<()> {
        if self.lent.get() != Lent::No {
            return Err(Error_::new_err(format!(
                "array \"{}\": an access is open; release it before {what}",
                self.known.name
            )));
        }
        self.no_transfers(what)
    }

    /// Opens an access and returns its number. Collective.
    pub fn open(&self, py: Python<'_>) -> PyResult<u64> {
        self.settle(py)?;
        self.change("another access", |a| a.access(py))?;
        self.opened();
        Ok(self.opened.get())
    }

    /// Notes that an access was opened.
    pub fn opened(&self) {
        self.lent.set(Lent::Open);
        self.opened.set(self.opened.get() + 1);
    }

    /// Notes that the access was released.
    pub fn released(&self) {
        self.lent.set(Lent::No);
    }

    /// Returns a NumPy array over this rank's elements, with or without ghost cells, in an access.
    pub fn view<'py>(
        self: &Rc<Core>,
        py: Python<'py>,
        padded: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let lease = Bound::new(py, Lease::new(self))?.into_any();
        self.with_mut(|a| {
            // A started update is waited for here, where other threads and Ctrl-C can interrupt.
            a.finish_update(py)?;
            a.view(padded, lease)
        })
    }

    /// Returns a NumPy array over this rank's elements, in an access that has just begun.
    pub fn first_view<'py>(self: &Rc<Core>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let lease = Bound::new(py, Lease::new(self))?.into_any();
        self.with_mut(|a| a.view(false, lease))
    }

    /// Notes that the program gets a view.
    pub fn give(&self, view: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut given = self.given.borrow_mut();
        if given.len() > 2 * self.views.load(Ordering::Acquire) + 8 {
            given.retain(|weak| weak.bind(view.py()).upgrade().is_some());
        }
        given.push(PyWeakrefReference::new(view)?.unbind());
        Ok(())
    }

    /// Makes the views that are alive read-only, before the access ends.
    fn close_views(&self, py: Python<'_>) -> PyResult<()> {
        let given = self.given.take();
        given.iter().filter_map(|weak| weak.bind(py).upgrade()).try_for_each(|view| seal(&view))
    }

    pub fn is_open(&self, number: u64) -> bool {
        self.lent.get() != Lent::No && self.opened.get() == number
    }

    /// Ends the access. Collective.
    pub fn release(&self, py: Python<'_>) -> PyResult<()> {
        self.close_views(py)?;
        self.with_mut(|a| a.release(py))?;
        self.released();
        Ok(())
    }

    /// Leaves the end of the open access to the next collective call.
    pub fn leave(&self) {
        self.lent.set(Lent::Left);
    }

    /// Ends an access whose block has ended by an exception. Collective calls on the array begin
    /// with this.
    pub fn settle(&self, py: Python<'_>) -> PyResult<()> {
        if self.lent.get() == Lent::Left { self.release(py) } else { Ok(()) }
    }
}
