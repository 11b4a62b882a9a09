//! The objects of a group that Python has dropped: arrays, counters and mutexes.
//!
//! Freeing such an object is collective, but ranks drop their references at different times. A
//! dropped object therefore goes to the list of its group. The next creation of an object in the
//! group, which is collective, compares the lists of the ranks and frees the objects that all ranks
//! have dropped, in the order of their numbers. The numbers count the creations, so they agree on
//! all ranks.
//!
//! The result of a universal function takes over a small array of the same distribution that all
//! ranks have dropped, instead of freeing it and creating another one. Such *spare* arrays belong to
//! no object of Python. The result of an operator takes over an operand of any size if all ranks
//! offer it, because only the expression refers to it ([`crate::temporary`]). An array that is taken
//! over begins with an access, whose barrier completes earlier writes to it. All ranks decide alike,
//! because they compare only what is equal on all.
//!
//! If a group is freed before its objects, it ends when the last object is freed. The creation of
//! an object in the world also collects the objects of such groups.
//!
//! Freeing a group is collective, too. A group that Python has dropped is therefore kept, and the
//! next one of the same ranks is the same group. So the number of groups, and of MPI's
//! communicators, is limited by the number of different lists of ranks.

use crate::Dist;
use crate::call::{Error_, Pinned, runtime, wait};
use crate::core::Core;
use crate::dtype::{DType, Scalar, with_type};
use crate::elements::Elements;
use portolan::Group;
use portolan::internals::binding::{self, are_distributed_alike};
use portolan::reduce::Max;
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::OnceLock;

/// Frees an object. Collective.
pub type Free = Box<dyn FnOnce(Python<'_>) -> PyResult<()>>;

/// An object that Python has dropped.
enum Dropped {
    Array(Spare),
    Other(Free),
}

impl Dropped {
    /// Collective.
    fn free(self, py: Python<'_>) -> PyResult<()> {
        match self {
            Dropped::Array(spare) => spare.array.free(py),
            Dropped::Other(free) => free(py),
        }
    }
}

/// An array without a Python object.
struct Spare {
    array: Box<dyn Elements>,
    dtype: DType,
}

impl Spare {
    /// Returns whether to keep the array. Arrays with ghost cells are freed, because ghost cells of a
    /// new array are zero.
    fn is_useful(&self) -> bool {
        let facts = self.array.facts();
        bytes_of(facts.shape, self.dtype) <= SPARE_BYTES && facts.ghosts.iter().all(|w| *w == 0)
    }
}

/// Returns the bytes of an array, on all ranks together.
pub fn bytes_of(shape: &[usize], dtype: DType) -> usize {
    shape.iter().fold(with_type!(dtype, T => size_of::<T>()), |all, n| all.saturating_mul(*n))
}

/// Limit on the bytes of a spare array, on all ranks together.
pub const SPARE_BYTES: usize = 1 << 20;
/// Limit on the spare arrays of a group.
const SPARES: usize = 16;
/// Number of dropped objects that the ranks compare in one exchange of a message.
const COMPARED: usize = 7;

/// A group, and what belongs to it.
pub struct Home {
    group: RefCell<Option<Group<'static>>>,
    /// Number of times that the group was requested and not freed. It changes only in collective
    /// calls, so it agrees on all ranks.
    requested: Cell<usize>,
    created: Cell<u64>,
    /// Number of objects that are not freed. It agrees on all ranks, too.
    live: Cell<usize>,
    dropped: RefCell<BTreeMap<u64, Dropped>>,
    /// The oldest first.
    spares: RefCell<VecDeque<Spare>>,
    /// The operand that a result may take over.
    offered: RefCell<Option<Rc<Core>>>,
}

/// Groups, by the world ranks of their members.
type Homes = RefCell<BTreeMap<Vec<usize>, Rc<Home>>>;

/// The groups of this rank except the world. All members have a group here, or none.
static HOMES: OnceLock<Pinned<Homes>> = OnceLock::new();

fn homes() -> PyResult<&'static Homes> {
    HOMES.get_or_init(|| Pinned::new(RefCell::default())).get()
}

static WORLD: OnceLock<Pinned<Rc<Home>>> = OnceLock::new();

impl Home {
    fn new(group: Group<'static>) -> Rc<Home> {
        Rc::new(Home {
            group: RefCell::new(Some(group)),
            requested: Cell::new(1),
            created: Cell::new(0),
            live: Cell::new(0),
            dropped: RefCell::default(),
            spares: RefCell::default(),
            offered: RefCell::default(),
        })
    }

    /// Returns the group of all ranks.
    pub fn world() -> PyResult<Rc<Home>> {
        let group = runtime()?.world();
        Ok(WORLD.get_or_init(|| Pinned::new(Home::new(group))).get()?.clone())
    }

    /// Returns the group of some ranks of a parent, a new one if there is none yet. Collective over
    /// these ranks.
    pub fn of(py: Python<'_>, parent: &Group<'static>, ranks: &[usize]) -> PyResult<Rc<Home>> {
        // A rank with another list may know its group, and would wait in another call.
        let no_member = || Error_::new_err("this rank is not a member of the group");
        if !wait(py, || binding::agree_on_ranks(parent, ranks))? {
            return Err(no_member());
        }
        let members: Vec<usize> = ranks.iter().map(|rank| parent.members()[*rank]).collect();
        let known = match members.iter().copied().eq(0..runtime()?.size()) {
            true => Some(Home::world()?),
            false => homes()?.borrow().get(&members).cloned(),
        };
        if let Some(home) = known {
            home.collect(py)?;
            home.requested.set(home.requested.get() + 1);
            return Ok(home);
        }
        let home = Home::new(wait(py, || parent.subgroup(ranks))?.ok_or_else(no_member)?);
        homes()?.borrow_mut().insert(members, home.clone());
        Ok(home)
    }

    /// Withdraws a request of the group. Collective.
    pub fn free(&self, py: Python<'_>) -> PyResult<()> {
        self.collect(py)?;
        self.requested.set(self.requested.get().saturating_sub(1));
        self.end(py)
    }

    /// Frees the group if no request is left and nothing belongs to it. Collective.
    pub fn end(&self, py: Python<'_>) -> PyResult<()> {
        if self.requested.get() > 0 || self.live.get() > 0 {
            return Ok(());
        }
        let group = self.group()?;
        let members = group.members().to_vec();
        wait(py, || group.free())?;
        homes()?.borrow_mut().remove(&members);
        self.group.borrow_mut().take();
        Ok(())
    }

    /// Returns the group, unless it was freed.
    pub fn group(&self) -> PyResult<Group<'static>> {
        let freed = || Error_::new_err("the group has been freed");
        self.group.borrow().clone().ok_or_else(freed)
    }

    /// Returns the groups of this rank except the world, in the order that all ranks use.
    pub fn others() -> PyResult<Vec<Rc<Home>>> {
        Ok(homes()?.borrow().values().cloned().collect())
    }

    /// Notes that an object was made. All ranks of the group make it.
    pub fn made(&self) {
        self.live.set(self.live.get() + 1);
    }

    /// Notes that an object was freed, other than by [`Home::collect`]. All ranks of the group free
    /// it.
    pub fn freed(&self) {
        self.live.set(self.live.get().saturating_sub(1));
    }

    /// Returns the number of a new object. Collective, if it succeeds. The world also frees what
    /// was dropped after its group was freed.
    pub fn number(&self, py: Python<'_>) -> PyResult<u64> {
        self.collect(py)?;
        self.next(py)
    }

    fn next(&self, py: Python<'_>) -> PyResult<u64> {
        if std::ptr::eq(self, &*Home::world()?) {
            for other in Home::others()?.iter().filter(|home| home.requested.get() == 0) {
                other.collect(py)?;
                other.end(py)?;
            }
        }
        self.created.set(self.created.get() + 1);
        Ok(self.created.get())
    }

    /// Keeps an object that Python has dropped.
    pub fn drop_later(&self, number: u64, free: Free) {
        self.dropped.borrow_mut().insert(number, Dropped::Other(free));
    }

    /// Keeps an array that Python has dropped.
    pub fn drop_array(&self, number: u64, array: Box<dyn Elements>, dtype: DType) {
        self.dropped.borrow_mut().insert(number, Dropped::Array(Spare { array, dtype }));
    }

    /// Runs a call that may create an array, which may take over an operand. The operand has the
    /// distribution and dtype of this array.
    pub fn offering<R>(&self, operand: Option<&Rc<Core>>, call: impl FnOnce() -> R) -> R {
        *self.offered.borrow_mut() = operand.cloned();
        let result = call();
        self.offered.take();
        result
    }

    /// Returns an array that is placed like `model`, and its number. Its elements are not set, unless it
    /// is an offered operand. With `reuse`, the caller begins with an access to it. Collective.
    pub fn like(
        &self,
        py: Python<'_>,
        model: &Core,
        dtype: DType,
        name: &str,
        reuse: bool,
    ) -> PyResult<(Box<dyn Elements>, u64)> {
        let new = || model.with(|a| Ok(with_type!(dtype, T => placed_like::<T>(py, a, name)?)));
        if !reuse {
            let number = self.number(py)?;
            return Ok((new()?, number));
        }
        let offered = self.offered.take();
        let (dropped, all_offer) = self.compare(py, offered.as_ref().map(|core| core.number))?;
        for number in dropped {
            let Some(dropped) = self.dropped.borrow_mut().remove(&number) else { continue };
            self.freed();
            match dropped {
                Dropped::Array(spare) if spare.is_useful() => {
                    let oldest = match self.spares.borrow_mut() {
                        spares if spares.len() < SPARES => None,
                        mut spares => spares.pop_front(),
                    };
                    self.spares.borrow_mut().push_back(spare);
                    oldest.map_or(Ok(()), |spare| spare.array.free(py))?;
                }
                other => other.free(py)?,
            }
        }
        let number = self.next(py)?;
        let taken = match offered.filter(|_| all_offer) {
            Some(operand) => operand.take(py)?,
            None => model.with(|model| {
                let fits = |spare: &Spare| {
                    let array = spare.array.as_part();
                    spare.dtype == dtype && are_distributed_alike(array, model.as_part())
                };
                let at = self.spares.borrow().iter().position(fits);
                Ok(at.and_then(|at| self.spares.borrow_mut().remove(at)).map(|spare| spare.array))
            })?,
        };
        match taken {
            Some(mut array) => {
                array.set_name(name);
                Ok((array, number))
            }
            None => Ok((new()?, number)),
        }
    }

    /// Makes equal what has to agree on all ranks, after a call that was not made by all. Spare arrays
    /// may differ, so they are left to the end of the runtime. Collective.
    pub fn level(&self, py: Python<'_>) -> PyResult<()> {
        let group = self.group()?;
        let mut most = [self.created.get(), self.live.get() as u64, self.requested.get() as u64];
        wait(py, || group.all_reduce(&mut most, Max))?;
        self.created.set(most[0]);
        self.live.set(most[1] as usize);
        self.requested.set(most[2] as usize);
        std::mem::forget(self.spares.take());
        Ok(())
    }

    /// Returns the numbers of the objects that all ranks have dropped, and whether all ranks offer the
    /// same operand. Collective.
    fn compare(&self, py: Python<'_>, offered: Option<u64>) -> PyResult<(Vec<u64>, bool)> {
        let group = self.group()?;
        let mine: Vec<u64> = self.dropped.borrow().keys().copied().collect();
        wait(py, || -> portolan::Result<(Vec<u64>, bool)> {
            let mut few = [u64::MAX; COMPARED + 2];
            few[0] = mine.len() as u64;
            few[1] = offered.unwrap_or(u64::MAX);
            few[2..].iter_mut().zip(&mine).for_each(|(to, number)| *to = *number);
            let all = group.all_gather(few)?;
            let all_offer = offered.is_some_and(|number| all.iter().all(|few| few[1] == number));
            if all.iter().any(|few| few[0] == 0) {
                return Ok((Vec::new(), all_offer));
            }
            let of_all = |all: &[&[u64]]| {
                mine.iter().copied().filter(|n| all.iter().all(|a| a.contains(n))).collect()
            };
            if all.iter().all(|few| few[0] <= COMPARED as u64) {
                let all = all.iter().map(|few| &few[2..]).collect::<Vec<_>>();
                return Ok((of_all(&all), all_offer));
            }
            let all = group.all_to_all_varied(&vec![&mine[..]; group.size()])?;
            Ok((of_all(&all.iter().map(|a| &a[..]).collect::<Vec<_>>()), all_offer))
        })
    }

    /// Frees the objects that all ranks have dropped. Collective. Returns their number, with that
    /// of spare arrays.
    pub fn collect(&self, py: Python<'_>) -> PyResult<usize> {
        let (common, _) = self.compare(py, None)?;
        for number in &common {
            let dropped = self.dropped.borrow_mut().remove(number);
            if let Some(dropped) = dropped {
                self.freed();
                dropped.free(py)?;
            }
        }
        let spares = std::mem::take(&mut *self.spares.borrow_mut());
        let number = common.len() + spares.len();
        spares.into_iter().try_for_each(|spare| spare.array.free(py))?;
        Ok(number)
    }
}

/// Creates an array that is placed like another one, of another element type. Collective.
fn placed_like<T: Scalar>(
    py: Python<'_>,
    model: &dyn Elements,
    name: &str,
) -> PyResult<Box<dyn Elements>> {
    // Ghost cells beyond open edges are never written, so they start as zero.
    let zeros = model.facts().ghosts.iter().any(|width| *width > 0);
    let made: Dist<T> = wait(py, || binding::placed_like(model.as_part(), name, zeros))?;
    Ok(Box::new(made))
}
