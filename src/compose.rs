//! Compositions: sets of element copies that are described once and performed many times.
//!
//! A [`Composition`] names elements of this rank and the elements of another rank to which they are
//! copied. Compositions towards several ranks merge into one. Mapping checks all bounds and
//! prepares the copies, and a [`Composer`] performs the [`Mapped`] composition in one call. The
//! receivers count the performances that have arrived, so they need no barrier. This suits
//! exchanges that repeat, such as halos and transposes.
//!
//! ```
//! use portolan::Runtime;
//! use portolan::compose::Composer;
//! use portolan::transfer::Block;
//!
//! fn main() -> portolan::Result<()> {
//!     let rt = Runtime::init()?;
//!     let (rows, columns) = (64, 100);
//!     let field = rt.world().allocate::<f64>(rows * columns)?; // row by row
//!     let composer = Composer::new(&rt)?;
//!     let right = (rt.rank() + 1) % rt.size();
//!     let column = |at| Block::of(&[rows, columns], &[0..rows, at..at + 1]);
//!     let mut edge = composer.simple(right)?;
//!     // My last column but one goes to the first column of the right neighbour.
//!     edge.add_block(&field, &column(columns - 2)?, &field, right, &column(0)?)?;
//!     let edge = edge.map()?;
//!     for _ in 0..1000 {
//!         composer.sync()?; // collective: the first columns may be written
//!         composer.perform(&edge)?;
//!         composer.wait_for(1)?; // the column of the left neighbour has arrived
//!         // compute
//!     }
//!     composer.free()?;
//!     field.free()?;
//!     rt.finalize()
//! }
//! ```
//!
//! # Completion
//! - A *phase* is the time between two calls of [`Composer::sync`], which is collective over all
//!   ranks. Elements may be written from the sync on.
//! - [`Composer::perform`] starts the copies. On a node they are complete on return. For other
//!   targets the local elements must not change before the next [`Composer::wait_for`] or
//!   [`Composer::sync`].
//! - [`Composer::wait_for`] returns when the given number of performances has arrived completely at
//!   this rank since the last sync, and the performances of this rank have been sent.
//! - The copies of a performance are not ordered. The elements that a performance reads must not be
//!   among those that it, or another performance of the same phase, writes.

// Why performing is safe: a composition contains only addresses in segments of this interface,
// which it holds, and any rank may write any bytes there at any time. Mapping checks that every
// byte lies in one of them, and performing checks that all of them are live. Compositions with raw
// addresses are marked, and only the unsafe call performs them. A file cannot hold one, because
// the mark would be lost. A file can name only segments of this interface, never the library's own
// state or parts of distributed arrays (`portolan_compose::store`).
#![warn(clippy::arithmetic_side_effects)]

use crate::in_call::InCall;
use crate::transfer::Block;
use crate::{Element, Runtime, Segment};
use portolan_base::error::{Result, fail};
use portolan_compose::plan::Plan;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

pub use portolan_compose::CompositionKind;

/// Performs compositions and counts the performances that have arrived.
///
/// A *phase* is the time between two calls of [`Composer::sync`]. In a phase every rank performs
/// any number of compositions, and then waits for the number of performances that have elements for
/// it. The [module documentation](self) has a program.
///
/// The elements that a performance reads must not be among those that it, or another performance of
/// the same phase, writes. Otherwise the transferred elements are old, new, or a mixture.
#[derive(Debug)]
#[must_use = "a composer is freed by `Composer::free`, which is collective"]
pub struct Composer<'rt> {
    rt: &'rt Runtime,
    inner: portolan_compose::Composer,
}

/// A set of triples (local element, rank, remote element) that can be merged and mapped.
///
/// Later changes to a composition do not affect compositions that were mapped or merged from it.
#[derive(Debug, Clone)]
#[must_use = "a composition moves no data; map it and perform it"]
pub struct Composition<'rt> {
    rt: &'rt Runtime,
    inner: portolan_compose::Composition,
    /// An address was added without a segment.
    raw: bool,
}

/// A composition in the form that can be performed.
#[derive(Debug, Clone)]
#[must_use = "a mapped composition moves no data until it is performed"]
pub struct Mapped<'rt> {
    inner: portolan_compose::Composition,
    plan: Arc<Plan>,
    raw: bool,
    _rt: &'rt Runtime,
}

/// A composition loaded from a file.
#[derive(Debug, Clone)]
#[must_use = "loading a composition moves no data"]
pub enum Loaded<'rt> {
    /// A simple or merged composition.
    Composition(Composition<'rt>),
    /// A mapped composition.
    Mapped(Mapped<'rt>),
}

impl<'rt> Composer<'rt> {
    /// Creates a composer and starts to count arrivals. Collective over all ranks.
    ///
    /// # Errors
    /// Returns `Memory` on all ranks if memory runs out on one of them.
    pub fn new(rt: &'rt Runtime) -> Result<Composer<'rt>> {
        let inner = portolan_compose::Composer::new().confined();
        inner.prepare(rt.engine()).in_call("Composer::new")?;
        Ok(Composer { rt, inner })
    }

    /// Creates a composer that keeps its files of compositions in `directory` instead of the
    /// directory in `PORTOLAN_COMPOSE_DIR`. Collective over all ranks.
    ///
    /// # Errors
    /// Fails as [`Composer::new`] does.
    pub fn with_directory(rt: &'rt Runtime, directory: impl AsRef<Path>) -> Result<Composer<'rt>> {
        let inner = portolan_compose::Composer::with_directory(directory.as_ref()).confined();
        inner.prepare(rt.engine()).in_call("Composer::with_directory")?;
        Ok(Composer { rt, inner })
    }

    /// Returns an empty composition for the target `rank` (a world rank).
    ///
    /// # Errors
    /// Returns `Rank` if `rank` is outside the job.
    pub fn simple(&self, rank: usize) -> Result<Composition<'rt>> {
        let inner = portolan_compose::Composition::simple(self.rt.engine(), rank)
            .in_call("Composer::simple")?;
        Ok(Composition { rt: self.rt, inner, raw: false })
    }

    /// Completes the performances of this rank and begins a new phase. Collective over all ranks.
    ///
    /// # Errors
    /// Returns the error of a performance that had not yet left when it failed.
    pub fn sync(&self) -> Result<()> {
        self.inner.sync(self.rt.engine()).in_call("Composer::sync")
    }

    /// Performs a composition whose memory lies in segments. On a node the elements are in place on
    /// return. For other targets the local elements must not change before the next
    /// [`Composer::wait_for`] or [`Composer::sync`]; otherwise a mixture of old and new elements
    /// arrives.
    ///
    /// # Errors
    /// Returns `State` before the first [`Composer::sync`] or if a segment of the composition was
    /// freed, or `Handle` if the composition has addresses added by [`Composition::add_raw`].
    #[inline]
    pub fn perform(&self, mapped: &Mapped<'rt>) -> Result<()> {
        const CALL: &str = "Composer::perform";
        if mapped.raw {
            return raw_refused().in_call(CALL);
        }
        // SAFETY: mapping has checked that all addresses lie in segments that the composition
        // holds, and the call checks that these are live. Any bytes are valid values of their
        // elements.
        unsafe { self.inner.perform(self.rt.engine(), &mapped.plan) }.in_call(CALL)
    }

    /// Performs any composition. It completes as [`Composer::perform`] does.
    ///
    /// # Errors
    /// Returns `State` before the first [`Composer::sync`] or if a segment of the composition was
    /// freed, or `Address` if an address is not mapped on its rank. In the latter case the
    /// performance still reaches the other ranks.
    ///
    /// # Safety
    /// Addresses added by [`Composition::add_raw`] must be valid: local ones for reads until the
    /// next wait or sync, and remote ones for writes of any bytes.
    #[inline]
    pub unsafe fn perform_raw(&self, mapped: &Mapped<'rt>) -> Result<()> {
        // SAFETY: the caller guarantees the raw addresses. For all others, mapping has checked that
        // they lie in segments that the composition holds, and the call checks that these are live.
        let done = unsafe { self.inner.perform(self.rt.engine(), &mapped.plan) };
        done.in_call("Composer::perform_raw")
    }

    /// Waits until this rank's own performances have left, and `n` performances with elements for
    /// this rank have completely arrived since the last sync.
    ///
    /// # Errors
    /// Returns `State` before the first sync, or the error of a performance that had not yet left
    /// when it failed.
    pub fn wait_for(&self, n: u32) -> Result<()> {
        self.inner.wait_for(self.rt.engine(), n).in_call("Composer::wait_for")
    }

    /// Returns the number of performances that have arrived since the last sync.
    ///
    /// # Errors
    /// Returns `State` before the first sync.
    pub fn arrived(&self) -> Result<u32> {
        self.inner.arrived().in_call("Composer::arrived")
    }

    /// Loads the next composition that this rank stored under `number`, in this run or in another
    /// run with the same segments.
    ///
    /// The file is not trusted. It can name only elements of live segments that
    /// [`Group::allocate`](super::Group::allocate) and
    /// [`Group::allocate_many`](super::Group::allocate_many) allocated. Performing a loaded
    /// composition can therefore change elements of such segments, as any put can.
    ///
    /// # Errors
    /// Returns `Argument` if the composition does not exist, or if the file is damaged or belongs
    /// to another rank. Returns `Address` if the segments differ, or if one of them holds mutexes,
    /// tile counters, a distributed array, or memory that a C interface allocated. Returns `Memory`
    /// if memory runs out.
    pub fn load(&self, number: i32) -> Result<Loaded<'rt>> {
        let inner = self.inner.load(self.rt.engine(), number).in_call("Composer::load")?;
        let rt = self.rt;
        if inner.kind() == CompositionKind::Mapped {
            let plan = inner.plan()?.clone();
            return Ok(Loaded::Mapped(Mapped { inner, plan, raw: false, _rt: rt }));
        }
        Ok(Loaded::Composition(Composition { rt, inner, raw: false }))
    }

    /// Makes the next [`Composer::load`] of `number` start at the first composition.
    ///
    /// # Errors
    /// Returns `Argument` if `number` is negative.
    pub fn rewind(&self, number: i32) -> Result<()> {
        self.inner.rewind(number).in_call("Composer::rewind")
    }

    /// Stores a composition under `number`. The first composition that a composer stores under a
    /// number replaces the file; later ones are appended.
    ///
    /// # Errors
    /// Returns `Handle` if the composition has addresses added by [`Composition::add_raw`], `State`
    /// if one of its segments was freed, `Argument` if the file cannot be written, or `Memory` if
    /// memory runs out.
    pub fn store(&self, number: i32, composition: &Composition<'rt>) -> Result<()> {
        self.store_inner(number, &composition.inner, composition.raw).in_call("Composer::store")
    }

    fn store_inner(
        &self,
        number: i32,
        inner: &portolan_compose::Composition,
        raw: bool,
    ) -> Result<()> {
        if raw {
            fail!(
                Handle,
                "the composition has raw addresses, which a file cannot hold; add elements of \
                 segments, and store that"
            );
        }
        self.inner.store(self.rt.engine(), number, inner)
    }

    /// Stores a mapped composition, as [`Composer::store`] does for others.
    ///
    /// # Errors
    /// Fails as [`Composer::store`] does.
    pub fn store_mapped(&self, number: i32, mapped: &Mapped<'rt>) -> Result<()> {
        self.store_inner(number, &mapped.inner, mapped.raw).in_call("Composer::store_mapped")
    }

    /// Completes all performances and frees the composer. Collective over all ranks.
    ///
    /// # Errors
    /// Fails as [`Composer::sync`] does.
    pub fn free(self) -> Result<()> {
        self.inner.free(self.rt.engine()).in_call("Composer::free")
    }
}

#[cold]
fn raw_refused() -> Result<()> {
    fail!(Handle, "the composition has raw addresses; perform it with perform_raw")
}

impl<'rt> Composition<'rt> {
    /// Returns the kind of the composition. Elements can be added only to a simple one.
    pub fn kind(&self) -> CompositionKind {
        self.inner.kind()
    }

    /// Adds a contiguous row: the elements `from` of this rank's part of `here` go to the elements
    /// from `to` on in the part of `rank` of `there`. `rank` is numbered in the group of `there`
    /// and must be the target of the composition.
    ///
    /// # Errors
    /// Returns `Rank` if `rank` is outside the group or is not the target, `Address` if elements
    /// lie outside their part, or `Handle` if the composition is merged.
    pub fn add<T: Element>(
        &mut self,
        here: &Segment<'rt, T>,
        from: Range<usize>,
        there: &Segment<'rt, T>,
        rank: usize,
        to: usize,
    ) -> Result<()> {
        self.add_inner(here, from, there, rank, to).in_call("Composition::add")
    }

    fn add_inner<T: Element>(
        &mut self,
        here: &Segment<'rt, T>,
        from: Range<usize>,
        there: &Segment<'rt, T>,
        rank: usize,
        to: usize,
    ) -> Result<()> {
        let count = from.end.saturating_sub(from.start);
        let local = here.place(here.group().rank(), from.start, count)?;
        let remote = there.place(rank, to, count)?;
        self.check_target(remote.world)?;
        // The elements lie in a segment, so the product does not overflow.
        let bytes = count.saturating_mul(size_of::<T>());
        self.inner.add(local.address, remote.address, bytes)?;
        self.hold_both(here, there);
        Ok(())
    }

    /// Adds a block: the block `from` of this rank's part of `here` goes to the block `to` of the
    /// part of `rank` of `there`, as [`Segment::put_block`] puts it.
    ///
    /// # Errors
    /// Fails as [`Composition::add`] and [`Segment::put_block`] do.
    #[doc(alias = "add_slice")]
    pub fn add_block<T: Element>(
        &mut self,
        here: &Segment<'rt, T>,
        from: &Block,
        there: &Segment<'rt, T>,
        rank: usize,
        to: &Block,
    ) -> Result<()> {
        self.add_block_inner(here, from, there, rank, to).in_call("Composition::add_block")
    }

    fn add_block_inner<T: Element>(
        &mut self,
        here: &Segment<'rt, T>,
        from: &Block,
        there: &Segment<'rt, T>,
        rank: usize,
        to: &Block,
    ) -> Result<()> {
        let plan = there.plan(rank, to, here.local().len(), from)?;
        self.check_target(plan.world)?;
        // The block lies in this rank's part, so nothing wraps.
        let start = plan.start.wrapping_mul(size_of::<T>());
        let local = here.part_address(here.group().rank()).wrapping_add(start);
        self.inner.add_shape(local, plan.address, plan.shape)?;
        self.hold_both(here, there);
        Ok(())
    }

    /// Adds bytes by address, inside or outside segments. The composition, and any merged
    /// composition that contains it, must be performed by [`Composer::perform_raw`] and cannot be
    /// stored.
    ///
    /// # Errors
    /// Returns `Argument` for a null address with a non-zero number of bytes, or `Handle` if the
    /// composition is merged.
    pub fn add_raw(&mut self, local: *const u8, remote: usize, bytes: usize) -> Result<()> {
        self.inner.add(local as usize, remote, bytes).in_call("Composition::add_raw")?;
        self.raw = true;
        Ok(())
    }

    /// Returns a composition with the current elements of both.
    ///
    /// # Errors
    /// Never fails at present.
    pub fn merge(&self, other: &Composition<'rt>) -> Result<Composition<'rt>> {
        let inner = self.inner.merge(&other.inner).in_call("Composition::merge")?;
        Ok(Composition { rt: self.rt, inner, raw: self.raw || other.raw })
    }

    /// Returns the composition in the form that can be performed.
    ///
    /// # Errors
    /// Returns `Argument` if two elements go to the same place; the error names the addresses.
    /// Returns `State` if a segment of the composition was freed. Returns `Memory` if there is no
    /// memory for the list of copies, which grows with the number of blocks if blocks interleave.
    pub fn map(&self) -> Result<Mapped<'rt>> {
        const CALL: &str = "Composition::map";
        let engine = self.rt.engine();
        let mapped = if self.raw { self.inner.map(engine) } else { self.inner.map_inside(engine) };
        let inner = mapped.in_call(CALL)?;
        let plan = inner.plan().in_call(CALL)?.clone();
        Ok(Mapped { inner, plan, raw: self.raw, _rt: self.rt })
    }

    fn check_target(&self, world: usize) -> Result<()> {
        if let Some(target) = self.inner.target()
            && target != world
        {
            fail!(
                Rank,
                "the composition targets rank {target}, but the elements belong to rank {world}"
            );
        }
        Ok(())
    }

    fn hold_both<T: Element>(&mut self, here: &Segment<'rt, T>, there: &Segment<'rt, T>) {
        self.inner.hold(here.inner());
        self.inner.hold(there.inner());
    }
}
