//! Compositions: which elements go where, said once and performed many times.
//!
//! **Why performing is safe.** A composition has addresses of segments of this interface alone,
//! in which any rank may write any bytes at any time. It holds these segments; mapping checks that
//! every byte lies in one of them, and performing that all of them live. Compositions with raw
//! addresses are marked, and are performed by the unsafe call alone; a file cannot hold one, since
//! the mark would be lost. What is loaded from a file names segments of this interface alone, never
//! the library's own state or parts of distributed arrays (`compose::store`).
#![warn(clippy::arithmetic_side_effects)]

use super::in_call::InCall;
use super::{Element, Runtime, Segment};
use crate::compose::plan::Plan;
use crate::compose::{self, Blocks};
use crate::error::{Result, fail};
use std::ops::Range;
use std::sync::Arc;

pub use crate::compose::Kind;

/// Performs compositions, and knows what has arrived.
///
/// A *phase* lies between two calls of [`Composer::sync`]. In it every rank performs
/// what it likes, and waits for as many performances as have elements for it:
///
/// ```no_run
/// use portolan::{Composer, Runtime};
///
/// fn main() -> portolan::Result<()> {
///     let rt = Runtime::init()?;
///     let field = rt.world().allocate::<f64>(100)?;
///     let mut composer = Composer::new(&rt)?;
///     let next = (rt.rank() + 1) % rt.size();
///     let mut edge = composer.simple(next)?;
///     edge.add(&field, 98..99, &field, next, 0)?; // my last to its first
///     let edge = edge.map()?;
///     for _ in 0..1000 {
///         composer.sync()?; // the destination may be written
///         composer.perform(&edge)?;
///         composer.wait_for(1)?; // the other neighbour's has arrived
///     }
///     composer.free()?;
///     field.free()?;
///     rt.finalize()
/// }
/// ```
///
/// What a performance reads must not be what it, or another one of the same phase,
/// writes: the elements are then old, new, or a mixture.
#[derive(Debug)]
pub struct Composer<'rt> {
    rt: &'rt Runtime,
    inner: compose::Composer,
}

/// A set of (element here, rank, element there) that can be merged and mapped.
///
/// Maps and merges of a composition do not change when it does.
#[derive(Debug, Clone)]
pub struct Composition<'rt> {
    rt: &'rt Runtime,
    inner: compose::Composition,
    /// Some address was given without a segment.
    raw: bool,
}

/// A composition in the form that can be performed.
#[derive(Debug, Clone)]
pub struct Mapped<'rt> {
    inner: compose::Composition,
    plan: Arc<Plan>,
    raw: bool,
    _rt: &'rt Runtime,
}

/// A loaded composition.
#[derive(Debug, Clone)]
pub enum Loaded<'rt> {
    /// Simple or merged.
    Composition(Composition<'rt>),
    /// Mapped.
    Mapped(Mapped<'rt>),
}

/// Elements at a distance: one side of [`Composition::add_slice`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// The first element.
    pub start: usize,
    /// Elements of a block.
    pub block: usize,
    /// Elements from the start of a block to that of the next one.
    pub stride: usize,
    /// Blocks.
    pub count: usize,
}

impl Slice {
    /// The elements from the first to the last one.
    fn range(&self) -> Option<Range<usize>> {
        if self.block == 0 || self.count == 0 {
            return Some(self.start..self.start);
        }
        let last = self.count.checked_sub(1)?.checked_mul(self.stride)?.checked_add(self.start)?;
        Some(self.start..last.checked_add(self.block)?)
    }
}

impl<'rt> Composer<'rt> {
    /// Begins to count arrivals. Collective over all ranks.
    ///
    /// # Errors
    /// `Memory`, on all ranks.
    pub fn new(rt: &'rt Runtime) -> Result<Composer<'rt>> {
        let inner = compose::Composer::new().confined();
        inner.prepare(rt.engine()).in_call("Composer::new")?;
        Ok(Composer { rt, inner })
    }

    /// As [`Composer::new`], with files of compositions in `directory` instead of
    /// where `PORTOLAN_COMPOSE_DIR` says. Collective.
    ///
    /// # Errors
    /// `Memory`, on all ranks.
    pub fn with_directory(rt: &'rt Runtime, directory: &str) -> Result<Composer<'rt>> {
        let inner = compose::Composer::with_directory(directory).confined();
        inner.prepare(rt.engine()).in_call("Composer::with_directory")?;
        Ok(Composer { rt, inner })
    }

    /// An empty composition towards `rank` (of the world).
    ///
    /// # Errors
    /// `Rank` outside the job.
    pub fn simple(&self, rank: usize) -> Result<Composition<'rt>> {
        let inner =
            compose::Composition::simple(self.rt.engine(), rank).in_call("Composer::simple")?;
        Ok(Composition { rt: self.rt, inner, raw: false })
    }

    /// Completes what this rank has performed and begins a new phase. Collective.
    ///
    /// # Errors
    /// What a performance failed with that had not left yet.
    pub fn sync(&self) -> Result<()> {
        self.inner.sync(self.rt.engine()).in_call("Composer::sync")
    }

    /// Performs a composition whose memory is in segments. On a node the elements
    /// are there on return; elsewhere this rank's own must not change before the next
    /// [`Composer::wait_for`] or [`Composer::sync`], or what arrives is a mixture.
    ///
    /// # Errors
    /// `State` where a segment of the composition was freed; `Handle` where it has
    /// addresses that were added by [`Composition::add_raw`].
    #[inline]
    pub fn perform(&self, mapped: &Mapped<'rt>) -> Result<()> {
        const CALL: &str = "Composer::perform";
        if mapped.raw {
            return raw_refused().in_call(CALL);
        }
        // SAFETY: mapping has checked that all addresses lie in segments which the composition
        // holds, and the call checks that these live; any bytes are values of their elements.
        unsafe { self.inner.perform(self.rt.engine(), &mapped.plan) }.in_call(CALL)
    }

    /// Performs any composition.
    ///
    /// # Errors
    /// `State` as for [`Composer::perform`]; `Address` where a rank has no memory at an
    /// address: the other ranks have been served.
    ///
    /// # Safety
    /// Addresses that were added by [`Composition::add_raw`] must be valid: here for
    /// reads until the next wait or sync, and there for writes of any bytes.
    #[inline]
    pub unsafe fn perform_raw(&self, mapped: &Mapped<'rt>) -> Result<()> {
        // SAFETY: passed on from the caller; the rest as in `perform`.
        let done = unsafe { self.inner.perform(self.rt.engine(), &mapped.plan) };
        done.in_call("Composer::perform_raw")
    }

    /// Waits until `n` performances that have elements for this rank have arrived
    /// whole since the last sync, and this rank's own have left.
    ///
    /// # Errors
    /// What a performance failed with that had not left yet.
    pub fn wait_for(&self, n: u32) -> Result<()> {
        self.inner.wait_for(self.rt.engine(), n).in_call("Composer::wait_for")
    }

    /// How many performances have arrived since the last sync.
    pub fn arrived(&self) -> Result<u32> {
        self.inner.arrived().in_call("Composer::arrived")
    }

    /// Loads the next composition that this rank stored under a number, in this run
    /// or in another one with the same segments.
    ///
    /// Nothing of the file is trusted: it may name elements of live segments that
    /// [`Group::allocate`](super::Group::allocate) and
    /// [`Group::allocate_many`](super::Group::allocate_many) made, and nothing else. Performing what
    /// a file holds can therefore change elements of such segments, as any put can.
    ///
    /// # Errors
    /// `Argument` where there is none or the file is damaged or not this rank's;
    /// `Address` if the segments are not the same, or if one of them holds mutexes, counters of tiles,
    /// a distributed array, or memory that a C interface allocated; `Memory`.
    pub fn load(&self, number: i32) -> Result<Loaded<'rt>> {
        let inner = self.inner.load(self.rt.engine(), number).in_call("Composer::load")?;
        let rt = self.rt;
        if inner.kind() == Kind::Mapped {
            let plan = inner.plan()?.clone();
            return Ok(Loaded::Mapped(Mapped { inner, plan, raw: false, _rt: rt }));
        }
        Ok(Loaded::Composition(Composition { rt, inner, raw: false }))
    }

    /// Makes the next [`Composer::load`] of a number begin with the first one.
    ///
    /// # Errors
    /// `Argument` for a negative number.
    pub fn rewind(&self, number: i32) -> Result<()> {
        self.inner.rewind(number).in_call("Composer::rewind")
    }

    /// Stores a composition. The first one that a run stores under a number begins
    /// the file anew.
    ///
    /// # Errors
    /// `Handle` if [`Composition::add_raw`] has added addresses to it; `State` if a segment of it was
    /// freed; `Argument` if the file cannot be written; `Memory`.
    pub fn store(&self, number: i32, composition: &Composition<'rt>) -> Result<()> {
        self.store_inner(number, &composition.inner, composition.raw).in_call("Composer::store")
    }

    fn store_inner(&self, number: i32, inner: &compose::Composition, raw: bool) -> Result<()> {
        if raw {
            fail!(
                Handle,
                "the composition has raw addresses, which a file cannot hold; add elements of \
                 segments, and store that"
            );
        }
        self.inner.store(self.rt.engine(), number, inner)
    }

    /// [`Composer::store`] of a mapped composition.
    ///
    /// # Errors
    /// As for [`Composer::store`].
    pub fn store_mapped(&self, number: i32, mapped: &Mapped<'rt>) -> Result<()> {
        self.store_inner(number, &mapped.inner, mapped.raw).in_call("Composer::store_mapped")
    }

    /// Completes everything and stops counting. Collective.
    ///
    /// # Errors
    /// What a performance failed with that had not left yet.
    pub fn free(self) -> Result<()> {
        self.inner.free(self.rt.engine()).in_call("Composer::free")
    }
}

#[cold]
fn raw_refused() -> Result<()> {
    fail!(Handle, "the composition has raw addresses; perform it by perform_raw")
}

impl<'rt> Composition<'rt> {
    /// Whether the composition is simple, so that elements can be added, or merged.
    pub fn kind(&self) -> Kind {
        self.inner.kind()
    }

    /// Adds a row of elements: `from` of this rank's part of `here` goes to `to` and
    /// on in `rank`'s part of `there`, where `rank` is the rank of `there`'s group that
    /// the composition is towards.
    ///
    /// # Errors
    /// `Rank`; `Address` where elements lie outside their part; `Handle` where the
    /// composition is merged.
    pub fn add<T: Element>(
        &mut self,
        here: &Segment<'rt, T>,
        from: Range<usize>,
        there: &Segment<'rt, T>,
        rank: usize,
        to: usize,
    ) -> Result<()> {
        const CALL: &str = "Composition::add";
        let count = from.end.saturating_sub(from.start);
        let (local, remote) =
            self.places(here, from.start, count, there, rank, to, count).in_call(CALL)?;
        // In bounds of a segment, so that the product is.
        let bytes = count.saturating_mul(size_of::<T>());
        self.inner.add(local, remote, bytes).in_call(CALL)?;
        self.hold_both(here, there);
        Ok(())
    }

    /// Adds blocks at strides. The elements of both sides are paired in their order;
    /// the sides may be cut differently.
    ///
    /// # Errors
    /// As for [`Composition::add`]; `Argument` where the sides have different numbers
    /// of elements.
    pub fn add_slice<T: Element>(
        &mut self,
        here: &Segment<'rt, T>,
        from: Slice,
        there: &Segment<'rt, T>,
        rank: usize,
        to: Slice,
    ) -> Result<()> {
        const CALL: &str = "Composition::add_slice";
        let (Some(f), Some(t)) = (from.range(), to.range()) else {
            let refused = || fail!(Argument, "the slice has more elements than an address space");
            return refused().in_call(CALL);
        };
        let (local, remote) =
            self.places(here, f.start, f.len(), there, rank, t.start, t.len()).in_call(CALL)?;
        let blocks = |start: usize, s: Slice| {
            if s.block == 0 || s.count == 0 {
                return Blocks { start, stride: 0, block: 0, count: 0 };
            }
            // In bounds of a segment, so that the products are: of several blocks the strides lie
            // between the first and the last one.
            let size = size_of::<T>();
            let stride = isize::try_from(s.stride.saturating_mul(size)).unwrap_or(isize::MAX);
            let stride = if s.count > 1 { stride } else { 0 };
            Blocks { start, stride, block: s.block.saturating_mul(size), count: s.count }
        };
        self.inner.add_slice(blocks(local, from), blocks(remote, to)).in_call(CALL)?;
        self.hold_both(here, there);
        Ok(())
    }

    /// Adds bytes by address, inside segments or not. Such a composition, and what it is merged
    /// into, is performed by [`Composer::perform_raw`] and cannot be stored.
    ///
    /// # Errors
    /// `Argument` for a null address with bytes; `Handle` where it is merged.
    pub fn add_raw(&mut self, local: *const u8, remote: usize, bytes: usize) -> Result<()> {
        self.inner.add(local as usize, remote, bytes).in_call("Composition::add_raw")?;
        self.raw = true;
        Ok(())
    }

    /// The elements of both, as they are now.
    pub fn merge(&self, other: &Composition<'rt>) -> Result<Composition<'rt>> {
        let inner = self.inner.merge(&other.inner).in_call("Composition::merge")?;
        Ok(Composition { rt: self.rt, inner, raw: self.raw || other.raw })
    }

    /// The form that can be performed.
    ///
    /// # Errors
    /// `Argument`, naming the addresses, where two elements go to one place; `State`
    /// where a segment of it was freed; `Memory` if there is no memory for the list of copies, which
    /// grows with the blocks of slices that lie in each other.
    pub fn map(&self) -> Result<Mapped<'rt>> {
        const CALL: &str = "Composition::map";
        let engine = self.rt.engine();
        let mapped = if self.raw { self.inner.map(engine) } else { self.inner.map_inside(engine) };
        let inner = mapped.in_call(CALL)?;
        let plan = inner.plan().in_call(CALL)?.clone();
        Ok(Mapped { inner, plan, raw: self.raw, _rt: self.rt })
    }

    /// The addresses of both sides, in bounds.
    #[expect(clippy::too_many_arguments, reason = "two sides, described whole")]
    fn places<T: Element>(
        &self,
        here: &Segment<'rt, T>,
        from: usize,
        here_count: usize,
        there: &Segment<'rt, T>,
        rank: usize,
        to: usize,
        there_count: usize,
    ) -> Result<(usize, usize)> {
        let local = here.place(here.group().rank(), from, here_count)?;
        let remote = there.place(rank, to, there_count)?;
        if let Some(target) = self.inner.target()
            && target != remote.world
        {
            fail!(
                Rank,
                "the composition is towards rank {target}, and the elements are those of rank {}",
                remote.world
            );
        }
        Ok((local.address, remote.address))
    }

    /// Keeps the segments of both sides.
    fn hold_both<T: Element>(&mut self, here: &Segment<'rt, T>, there: &Segment<'rt, T>) {
        self.inner.hold(here.inner());
        self.inner.hold(there.inner());
    }
}
