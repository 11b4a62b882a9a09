//! Ghost cells: copies of the neighbours' elements around a rank's own elements.
//!
//! Each rank knows which of its elements its neighbours need: faces, edges and corners. The first
//! update of an array describes them once, as a composition ([`Composer`]). Each update performs it
//! in three steps: a sync, after which ghost cells may be written; stores into the neighbours'
//! parts, or messages; and a wait for one performance from each neighbour. The sync of a composer
//! is collective over all ranks of the job, so arrays of smaller groups put patches between two
//! barriers of their group instead.
//!
//! Views and updates do not overlap. Starting an update takes `&mut`, and no rank writes the ghost
//! cells of another rank before that rank has started its next update. During an update, only a
//! view without ghost cells is available; taking a view with ghost cells first waits for the end of
//! the update ([`DistArray::settle`]).

use super::axis::Dims;
use super::dist_array::DistArray;
use super::dist_array::Inner;
use super::distribution::Layout;
use crate::Element;
use crate::compose::{Composer, Composition, Mapped};
use crate::in_call::public;
use crate::transfer::Block;
use ndarray::{ArrayView, Dimension};
use portolan_base::error::{Result, fail};
use portolan_engine::collective::{self, Kind};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug)]
pub(super) struct Halo<'rt> {
    by: By<'rt>,
    /// Performances that arrive in each update, one from each neighbour.
    arrivals: u32,
    under_way: AtomicBool,
}

#[derive(Debug)]
enum By<'rt> {
    Composition(Box<(Composer<'rt>, Option<Mapped<'rt>>)>),
    Puts(Vec<Strip>),
}

/// A box of elements that goes to one neighbour: its origin on both sides and its extents.
#[derive(Debug, Clone)]
struct Strip {
    rank: usize,
    count: Dims,
    from: Dims,
    to: Dims,
    from_strides: Dims,
    to_extents: Dims,
}

impl Strip {
    /// Returns the elements here and at the neighbour.
    fn blocks(&self) -> Result<(Block, Block)> {
        let start = self.from.iter().zip(&self.from_strides).map(|(i, s)| i * s).sum();
        let strides: Vec<isize> = self.from_strides.iter().map(|s| *s as isize).collect();
        let ranges: Vec<_> = self.to.iter().zip(&self.count).map(|(t, n)| *t..t + n).collect();
        let from = Block::strided(start, &self.count, &strides)?;
        Ok((from, Block::of(&self.to_extents, &ranges)?))
    }
}

impl Halo<'_> {
    pub(super) fn free(self) -> Result<()> {
        match self.by {
            By::Composition(both) => both.0.free(),
            By::Puts(_) => Ok(()),
        }
    }
}

/// An update of ghost cells in progress; created by [`Access::start_update`].
///
/// Dropping it does not cancel the update: the next view, update or release waits for it.
///
/// [`Access::start_update`]: super::Access::start_update
#[derive(Debug)]
#[must_use = "the ghost cells are filled when the update is finished"]
pub struct GhostUpdate<'a, 'rt, T: Element, D: Dimension> {
    pub(super) array: &'a DistArray<'rt, T, D>,
}

impl<T: Element, D: Dimension> GhostUpdate<'_, '_, T, D> {
    /// Returns a view of this rank's elements without the ghost cells.
    pub fn interior(&self) -> ArrayView<'_, T, D> {
        self.array.inner.part.view(&self.array.window(false))
    }

    /// Returns [`GhostUpdate::interior`], extended by the ghost cells on sides without a neighbour,
    /// which no update writes, and the widths of these extensions at the low and high end of each
    /// axis.
    pub(super) fn settled(&self) -> (ArrayView<'_, T, D>, Vec<(usize, usize)>) {
        let (inner, mut window) = (&self.array.inner, self.array.window(false));
        let (layout, mut sides) = (&inner.layout, Vec::new());
        for axis in 0..layout.ndim() {
            let (at, n) = (inner.coords.as_ref().map_or(0, |c| c[axis]), layout.grid[axis]);
            let g = layout.ghosts[axis];
            let low = if at == 0 && !inner.periodic[axis] { g } else { 0 };
            let high = if at + 1 == n && !inner.periodic[axis] { g } else { 0 };
            sides.push((low, high));
            if !window.shape.slice().contains(&0) {
                window.start -= low * window.strides[axis];
                window.shape[axis] += low + high;
            }
        }
        (inner.part.view(&window), sides)
    }

    /// Waits until the ghost cells are filled.
    ///
    /// # Errors
    /// Returns `Mpi` if a transfer fails.
    #[track_caller]
    pub fn finish(self) -> Result<()> {
        public("GhostUpdate::finish", || self.array.finish_ghosts())
    }
}

impl<'rt, T: Element, D: Dimension> DistArray<'rt, T, D> {
    /// # Panics
    /// Panics if the update failed, because the ghost cells are then invalid.
    pub(super) fn settle(&self) {
        if self.inner.halo.get().is_some_and(|h| h.under_way.load(Ordering::Relaxed))
            && let Err(error) = self.finish_ghosts()
        {
            panic!("array \"{}\": the update of ghost cells failed: {error}", self.name());
        }
    }

    pub(super) fn finish_ghosts(&self) -> Result<()> {
        let Some(halo) = self.inner.halo.get().filter(|h| h.under_way.load(Ordering::Relaxed))
        else {
            return Ok(());
        };
        match &halo.by {
            By::Composition(both) => both.0.wait_for(halo.arrivals)?,
            By::Puts(_) => self.ghost_barrier()?,
        }
        // If the wait fails, the update is still under way: other ranks may still write the ghost
        // cells.
        halo.under_way.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn ghost_barrier(&self) -> Result<()> {
        let Inner { group, part, .. } = &*self.inner;
        collective::scope(Kind::Ghosts, part.segment().number(), || group.barrier())
    }

    pub(super) fn start_ghosts(&self) -> Result<()> {
        self.finish_ghosts()?;
        let halo = match self.inner.halo.get() {
            Some(halo) => halo,
            None => {
                let made = self.inner.make_halo()?;
                self.inner.halo.get_or_init(|| made)
            }
        };
        match &halo.by {
            By::Composition(both) => {
                let (composer, mapped) = &**both;
                composer.sync()?;
                // From here on other ranks may write the ghost cells.
                halo.under_way.store(true, Ordering::Relaxed);
                if let Some(mapped) = mapped {
                    composer.perform(mapped)?;
                }
            }
            By::Puts(boxes) => {
                self.ghost_barrier()?;
                halo.under_way.store(true, Ordering::Relaxed);
                self.inner.put_boxes(boxes)?;
            }
        }
        Ok(())
    }
}

/// Checks that each block has enough elements to fill the ghost cells of its nearest neighbours.
pub(super) fn check(name: &str, layout: &Layout, periodic: &[bool]) -> Result<()> {
    for rank in (0..layout.ranks()).filter(|_| layout.ghosts.iter().any(|g| *g > 0)) {
        for (axis, (&n, &g)) in layout.extents(rank).iter().zip(&layout.ghosts).enumerate() {
            if n < g && (layout.grid[axis] > 1 || periodic[axis]) {
                fail!(
                    Argument,
                    "array \"{name}\": rank {rank} has {n} elements along axis {axis}, fewer than \
                     the {g} ghost cells of its neighbours"
                );
            }
        }
    }
    Ok(())
}

/// Returns the grid coordinates one `step` away from `at`, or `None` beyond a non-periodic end.
fn neighbour(layout: &Layout, periodic: &[bool], at: &[usize], step: &[isize]) -> Option<Dims> {
    let mut there: Dims = at.into();
    for (axis, (&step, &n)) in step.iter().zip(&layout.grid).enumerate() {
        let to = there[axis] as isize + step;
        if !(0..n as isize).contains(&to) && !periodic[axis] {
            return None;
        }
        there[axis] = to.rem_euclid(n as isize) as usize;
    }
    Some(there)
}

/// Returns all nonzero directions, with steps of -1, 0 or 1, along the axes that have ghost cells.
fn directions(ghosts: &[usize]) -> Vec<Vec<isize>> {
    let mut all = vec![Vec::new()];
    for &g in ghosts {
        let steps: &[isize] = if g > 0 { &[0, -1, 1] } else { &[0] };
        let longer = all.iter().flat_map(|d| {
            steps.iter().map(|s| d.iter().copied().chain([*s]).collect::<Vec<isize>>())
        });
        all = longer.collect();
    }
    all.retain(|d| d.iter().any(|s| *s != 0));
    all
}

impl<'rt, T: Element> Inner<'rt, T> {
    /// Returns the strips that this rank sends in an update.
    fn boxes(&self) -> Vec<Strip> {
        let layout = &self.layout;
        let Some(coords) = &self.coords else {
            return Vec::new();
        };
        let (ghosts, mine) = (&layout.ghosts, layout.extents(self.group.rank()));
        let (_, from_strides) = layout.part(coords);
        let towards = |direction: Vec<isize>| {
            let there = neighbour(layout, &self.periodic, coords, &direction)?;
            let rank = layout.rank_at(&there);
            let theirs = layout.extents(rank);
            let (to_extents, _) = layout.part(&there);
            let each = direction.iter().enumerate();
            let mut one = Strip {
                rank,
                count: Dims::new(),
                from: Dims::new(),
                to: Dims::new(),
                from_strides: from_strides.clone(),
                to_extents,
            };
            for (axis, step) in each {
                let g = ghosts[axis];
                let (count, from, to) = match step {
                    1 => (g, mine[axis], 0),
                    -1 => (g, g, g + theirs[axis]),
                    _ => (mine[axis], g, g),
                };
                one.count.push(count);
                one.from.push(from);
                one.to.push(to);
            }
            (!one.count.contains(&0)).then_some(one)
        };
        directions(ghosts).into_iter().filter_map(towards).collect()
    }

    fn make_halo(&self) -> Result<Halo<'rt>> {
        let boxes = self.boxes();
        let neighbours: BTreeSet<usize> = boxes.iter().map(|b| b.rank).collect();
        let (rt, arrivals) = (self.group.runtime(), neighbours.len() as u32);
        let under_way = AtomicBool::new(false);
        if self.group.members().len() < rt.size() {
            return Ok(Halo { by: By::Puts(boxes), arrivals, under_way });
        }
        // The ranks compare the array once, here. Later syncs compare the composer.
        let (name, number, key) = (&self.name, self.part.segment().number(), self.group.key());
        let text = format!("of the array \"{name}\" (number {number} of group {key:#x})");
        let composer = collective::scope_of(Kind::Ghosts, &text, || Composer::new(rt))?;
        let segment = self.part.segment();
        let mut all: Option<Composition<'rt>> = None;
        for rank in neighbours {
            let mut one = composer.simple(self.group.members()[rank])?;
            for part in boxes.iter().filter(|b| b.rank == rank) {
                let (from, to) = part.blocks()?;
                one.add_block(segment, &from, segment, part.rank, &to)?;
            }
            all = Some(match all {
                Some(all) => all.merge(&one)?,
                None => one,
            });
        }
        let mapped = all.map(|all| all.map()).transpose()?;
        Ok(Halo { by: By::Composition(Box::new((composer, mapped))), arrivals, under_way })
    }

    fn put_boxes(&self, boxes: &[Strip]) -> Result<()> {
        let segment = self.part.segment();
        for part in boxes {
            let (from, to) = part.blocks()?;
            let local = segment.local();
            let elements: Vec<T> = from.indices().map(|i| local.read(i as usize)).collect();
            segment.put_block(part.rank, &to, &elements, &(0..elements.len()).into())?;
        }
        Ok(())
    }
}
