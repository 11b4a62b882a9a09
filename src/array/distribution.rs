//! Distributions: the owner of each element, and the offset of the element in the owner's part.
//!
//! A [`Distribution`] is the program's request. A [`Layout`] is the result for one shape and one
//! number of ranks: a grid of ranks, one [`AxisMap`] for each axis, and the padding of ghost cells.
//! The part of a rank is a row-major array of the elements that it owns, surrounded by the ghost
//! cells. The module does not communicate.
//!
//! **Invariant.** The whole array and the largest part with its ghost cells have at most
//! `isize::MAX` bytes, where an axis of length 0 counts as length 1 ([`Layout::new`] checks this).
//! Element counts, offsets and strides are products of some of these extents and therefore do not
//! overflow.

use super::axis::{AxisMap, AxisRun, Dims, Runs};
use super::patch::Patch;
use super::views::{BlockAxis, Fragment, MAX_LEVELS};
use portolan_base::error::{Error, ErrorKind, Result, fail, reserve};
use std::ops::Range;

/// The distribution of an array's elements over ranks.
///
/// The ranks of the group form a grid in which the last axis varies fastest. Ranks outside the grid
/// own no elements.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Distribution {
    /// Gives each rank one block, in nearly equal sizes. The grid is chosen to minimise the surface
    /// of the blocks.
    #[default]
    Block,
    /// Gives each rank one block, on the given grid of ranks, such as `[2, 3]` for six ranks.
    Grid(Vec<usize>),
    /// Gives each rank one block of rows (indices of the first axis).
    Rows,
    /// Gives each rank one block, with explicit bounds: for each axis, the indices at which its
    /// blocks begin, in ascending order and starting with 0.
    Irregular(Vec<Vec<usize>>),
    /// Deals out blocks of a fixed shape cyclically along each axis, as ScaLAPACK does.
    BlockCyclic {
        /// The shape of a block, in elements.
        block: Vec<usize>,
        /// The grid of ranks, or `None` to have one chosen.
        grid: Option<Vec<usize>>,
    },
}

impl Distribution {
    /// Creates a [`Distribution::Grid`].
    pub fn grid(grid: impl Into<Vec<usize>>) -> Distribution {
        Distribution::Grid(grid.into())
    }

    /// Creates a [`Distribution::BlockCyclic`] on a grid that is chosen automatically.
    pub fn block_cyclic(block: impl Into<Vec<usize>>) -> Distribution {
        Distribution::BlockCyclic { block: block.into(), grid: None }
    }
}

const MOST_AXES: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    pub shape: Dims,
    pub grid: Dims,
    axes: Vec<AxisMap>,
    /// Width on both sides of each axis.
    pub ghosts: Dims,
    /// Length of a part including ghost cells, by axis and coordinate.
    padded: Vec<Vec<usize>>,
}

/// Returns the bytes of an array, with an empty axis counted as length 1, or `None` on overflow.
fn bytes_of(mut extents: impl Iterator<Item = usize>, size: usize) -> Option<usize> {
    extents.try_fold(size, |all, n| all.checked_mul(n.max(1)))
}

impl Layout {
    /// The elements have `size` bytes.
    pub(super) fn new(
        shape: &[usize],
        size: usize,
        ranks: usize,
        distribution: &Distribution,
        ghosts: &[usize],
    ) -> Result<Layout> {
        if shape.is_empty() || bytes_of(shape.iter().copied(), size).is_none() {
            fail!(
                Argument,
                "a shape of {shape:?}: no axes, or more bytes than an address space has"
            );
        }
        // The search for a grid takes time and stack that grow with the number of axes.
        if shape.len() > MOST_AXES {
            fail!(Argument, "a shape of {} axes; {MOST_AXES} are the most", shape.len());
        }
        let chosen: Dims;
        let grid: &[usize] = match distribution {
            Distribution::Grid(grid) | Distribution::BlockCyclic { grid: Some(grid), .. } => grid,
            Distribution::Rows => {
                chosen = std::iter::once(ranks).chain(shape.iter().skip(1).map(|_| 1)).collect();
                &chosen
            }
            Distribution::Irregular(starts) => {
                chosen = starts.iter().map(Vec::len).collect();
                &chosen
            }
            Distribution::Block => {
                chosen = choose_grid(shape, ranks);
                &chosen
            }
            Distribution::BlockCyclic { block, grid: None } => {
                same_axes("blocks of", block, shape)?;
                let blocks: Dims =
                    shape.iter().zip(block).map(|(n, b)| n.div_ceil((*b).max(1))).collect();
                chosen = choose_grid(&blocks, ranks);
                &chosen
            }
        };
        same_axes("a grid of", grid, shape)?;
        same_axes("ghost cells of", ghosts, shape)?;
        let wanted = grid.iter().try_fold(1usize, |all, n| all.checked_mul(*n));
        if grid.contains(&0) || wanted.is_none_or(|n| n > ranks) {
            fail!(Argument, "a grid of {grid:?} ranks in a group of {ranks}");
        }
        let axes: Vec<AxisMap> = match distribution {
            Distribution::Irregular(starts) => {
                let each = shape.iter().zip(starts);
                each.map(|(&n, starts)| AxisMap::irregular(n, starts)).collect::<Result<_>>()?
            }
            Distribution::BlockCyclic { block, .. } => {
                same_axes("blocks of", block, shape)?;
                if block.contains(&0) {
                    fail!(Argument, "blocks of {block:?} have no elements");
                }
                let each = shape.iter().zip(block).zip(grid);
                each.map(|((&n, &block), &parts)| match parts {
                    1 => AxisMap::even(n, 1),
                    // A longer block covers the whole axis, so its length may be clamped.
                    _ => AxisMap::Cyclic { n, block: block.min(n.max(1)), parts },
                })
                .collect()
            }
            _ => shape.iter().zip(grid).map(|(&n, &parts)| AxisMap::even(n, parts)).collect(),
        };
        if ghosts.iter().zip(&axes).any(|(g, a)| *g > 0 && a.range(0).is_none()) {
            fail!(Argument, "ghost cells of {ghosts:?} with a block-cyclic distribution");
        }
        let pad = |(axis, g): (&AxisMap, &usize)| -> Vec<usize> {
            (0..axis.parts()).map(|c| axis.extent(c).saturating_add(g.saturating_mul(2))).collect()
        };
        let padded: Vec<Vec<usize>> = axes.iter().zip(ghosts).map(pad).collect();
        let layout =
            Layout { shape: shape.into(), grid: grid.into(), axes, ghosts: ghosts.into(), padded };
        layout.check_bytes(size)?;
        Ok(layout)
    }

    /// Fails with `Argument` if the array or a part exceeds the address space at `size` bytes each.
    pub(super) fn check_bytes(&self, size: usize) -> Result<()> {
        let largest = self.padded.iter().map(|axis| axis.iter().copied().max().unwrap_or(0));
        let fits = |extents: Option<usize>| extents.is_some_and(|n| isize::try_from(n).is_ok());
        if !fits(bytes_of(self.shape.iter().copied(), size)) || !fits(bytes_of(largest, size)) {
            fail!(
                Argument,
                "a shape of {:?} with ghost cells of {:?} has more bytes than an address space",
                self.shape,
                self.ghosts
            );
        }
        Ok(())
    }

    /// Returns whether each rank owns the same elements in both layouts.
    pub(super) fn owns_like(&self, other: &Layout) -> bool {
        (&self.shape, &self.grid, &self.axes) == (&other.shape, &other.grid, &other.axes)
    }

    pub(super) fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// Returns the number of ranks in the grid. Some of them may own no elements.
    pub(super) fn ranks(&self) -> usize {
        self.grid.iter().product()
    }

    pub(super) fn coords(&self, rank: usize) -> Option<Dims> {
        let mut rest = rank;
        let mut coords: Dims = self.grid.clone();
        for (coord, &n) in coords.iter_mut().zip(&self.grid).rev() {
            (*coord, rest) = (rest % n, rest / n);
        }
        (rest == 0).then_some(coords)
    }

    pub(super) fn rank_at(&self, coords: &[usize]) -> usize {
        coords.iter().zip(&self.grid).fold(0, |rank, (c, n)| rank * n + c)
    }

    /// Returns the number of elements of a rank along each axis, without ghost cells.
    pub(super) fn extents(&self, rank: usize) -> Dims {
        match self.coords(rank) {
            Some(coords) => self.axes.iter().zip(&coords).map(|(a, c)| a.extent(*c)).collect(),
            None => self.shape.iter().map(|_| 0).collect(),
        }
    }

    /// Returns the global indices of a rank, or `None` on all ranks if the distribution is
    /// block-cyclic.
    pub(super) fn bounds(&self, rank: usize) -> Option<Vec<Range<usize>>> {
        match self.coords(rank) {
            Some(coords) => self.axes.iter().zip(&coords).map(|(a, c)| a.range(*c)).collect(),
            None => self.bounds(0).map(|all| vec![0..0; all.len()]),
        }
    }

    pub(super) fn own_boxes(&self, rank: usize) -> Vec<OwnBox> {
        let extents = self.extents(rank);
        let Some(coords) = self.coords(rank).filter(|_| !extents.contains(&0)) else {
            return Vec::new();
        };
        let mut boxes = vec![OwnBox::default()];
        for axis in 0..self.ndim() {
            let blocks = self.axes[axis].blocks(coords[axis]);
            let longer = boxes.iter().flat_map(|b| {
                blocks.iter().map(|(global, local)| {
                    let mut next: OwnBox = b.clone();
                    next.global.push(global.clone());
                    next.local.push(local.clone());
                    next
                })
            });
            boxes = longer.collect();
        }
        boxes
    }

    /// Converts a local index at coordinate `coord` to a global index.
    pub(super) fn global(&self, axis: usize, coord: usize, local: usize) -> usize {
        self.axes[axis].global(coord, local)
    }

    /// Returns the extents of the part at `coords`, including ghost cells, and its strides.
    pub(super) fn part(&self, coords: &[usize]) -> (Dims, Dims) {
        let extents: Dims = self.padded.iter().zip(coords).map(|(p, c)| p[*c]).collect();
        let mut strides = extents.clone();
        let mut row = 1usize;
        for (stride, n) in strides.iter_mut().zip(&extents).rev() {
            *stride = row;
            row = row.saturating_mul(*n);
        }
        (extents, strides)
    }

    /// Returns the number of elements of a rank's part, including ghost cells.
    pub(super) fn part_len(&self, rank: usize) -> usize {
        match self.coords(rank) {
            Some(_) if self.extents(rank).contains(&0) => 0,
            Some(coords) => self.part(&coords).0.iter().fold(1, |n, e| n.saturating_mul(*e)),
            None => 0,
        }
    }

    /// Returns the owner of an element and its offset in the owner's part.
    #[inline]
    pub(super) fn locate(&self, index: &[usize]) -> (usize, usize) {
        let (mut rank, mut offset) = (0, 0);
        for (axis, &i) in index.iter().enumerate() {
            let (coord, local) = self.axes[axis].owner(i);
            rank = rank * self.grid[axis] + coord;
            offset = offset * self.padded[axis][coord] + local + self.ghosts[axis];
        }
        (rank, offset)
    }

    /// Returns the first of the last axes whose elements of one owner are contiguous in its part: the
    /// axes after it are whole on every owner, without ghost cells.
    pub(super) fn joined_from(&self) -> usize {
        let is_whole = |axis: &usize| self.grid[*axis] == 1 && self.ghosts[*axis] == 0;
        self.ndim() - 1 - (1..self.ndim()).rev().take_while(is_whole).count()
    }

    /// Returns how many elements from an index on are contiguous in the part of its owner, in
    /// row-major order. `axis` is the result of [`Layout::joined_from`].
    pub(super) fn joined_len(&self, axis: usize, index: &[usize]) -> usize {
        let map = &self.axes[axis];
        let end = map.block_end(map.owner(index[axis]).0, index[axis]);
        let inner = self.shape[axis + 1..].iter().zip(&index[axis + 1..]);
        let (row, within) = inner.fold((1, 0), |(row, at), (n, i)| (row * n, at * n + i));
        (end - index[axis]) * row - within
    }

    /// Splits a patch, which must have been checked, into transfers and calls `then` with them.
    /// Each owner has one transfer; in a block-cyclic layout it has up to three along each axis,
    /// for its full blocks and for the two ends. The transfers are passed by reference, because
    /// moving them would cost as much as transferring a few elements. Fails with the errors of
    /// `then`, and with `Memory` if a periodic patch wraps around an axis so often that the list of
    /// transfers cannot be allocated.
    #[inline]
    pub(super) fn partition<R>(
        &self,
        patch: &Patch,
        then: impl FnOnce(&[Fragment]) -> Result<R>,
    ) -> Result<R> {
        let mut fragment = Fragment { rank: 0, offset: 0, axes: smallvec::SmallVec::new() };
        if self.only_block(patch, &mut fragment) {
            return then(std::slice::from_ref(&fragment));
        }
        then(&self.fragments(patch)?)
    }

    fn fragments(&self, patch: &Patch) -> Result<Vec<Fragment>> {
        let mut fragments = Vec::new();
        if patch.is_empty() {
            return Ok(fragments);
        }
        let mut runs: smallvec::SmallVec<[Runs; 3]> = smallvec::SmallVec::new();
        for (axis, map) in self.axes.iter().enumerate() {
            let mut list = Runs::new();
            let parts = patch.most_parts(axis, self.shape[axis]);
            if parts > 1 && list.try_reserve(parts.saturating_mul(map.parts())).is_err() {
                let detail = format!("the patch {patch} wraps around axis {axis} too many times");
                return Err(Error::new(ErrorKind::Memory, detail));
            }
            patch.straight(axis, self.shape[axis], |start, count, step, at| {
                map.runs(start, count, step, at, &mut list);
            });
            runs.push(list);
        }
        // A transfer has at most `MAX_LEVELS` strides. If the runs need more, the repetitions along
        // the outermost axes become separate transfers.
        let repeats = |list: &Runs| list.iter().any(|run| run.repeat > 1);
        let mut strides = runs.len() + runs.iter().filter(|list| repeats(list)).count();
        for list in runs.iter_mut().filter(|list| repeats(list)) {
            if strides <= MAX_LEVELS {
                break;
            }
            *list = list.iter().flat_map(AxisRun::apart).collect();
            strides -= 1;
        }
        let mut chosen: Dims = smallvec::smallvec![0; runs.len()];
        let combinations = runs.iter().fold(1, |all: usize, list| all.saturating_mul(list.len()));
        reserve(&mut fragments, combinations, "transfers")?;
        loop {
            fragments.push(self.fragment(&runs, &chosen));
            // Advance to the next combination of runs; the last axis varies fastest.
            let Some(axis) = (0..runs.len()).rev().find(|a| chosen[*a] + 1 < runs[*a].len()) else {
                return Ok(fragments);
            };
            chosen[axis] += 1;
            chosen[axis + 1..].fill(0);
        }
    }

    /// The most common case: fills in the transfer of a contiguous patch that lies in one block.
    /// Returns false for other patches.
    fn only_block(&self, patch: &Patch, fragment: &mut Fragment) -> bool {
        let Some(spans) = patch.plain() else { return false };
        for span in spans {
            let (n, stride) = (span.count, 1);
            fragment.axes.push(BlockAxis { n, stride, repeat: 1, ..BlockAxis::default() });
        }
        // The last axis varies fastest, both in the grid of ranks and in a part.
        let (mut ranks, mut row) = (1, 1);
        for (axis, part) in fragment.axes.iter_mut().enumerate().rev() {
            let (start, map) = (spans[axis].start as usize, &self.axes[axis]);
            if part.n == 0 {
                return false;
            }
            let (coord, local) = map.owner(start);
            if map.range(coord).is_none_or(|range| range.end < start.saturating_add(part.n)) {
                return false;
            }
            fragment.rank += ranks * coord;
            fragment.offset += row * (local + self.ghosts[axis]);
            part.stride = row;
            ranks *= self.grid[axis];
            row *= self.padded[axis][coord];
        }
        true
    }

    fn fragment(&self, runs: &[Runs], chosen: &[usize]) -> Fragment {
        let (mut rank, mut offset) = (0, 0);
        let mut axes = smallvec::SmallVec::new();
        for (axis, (list, &which)) in runs.iter().zip(chosen).enumerate() {
            let run = &list[which];
            rank = rank * self.grid[axis] + run.coord;
            offset = offset * self.padded[axis][run.coord] + run.local + self.ghosts[axis];
            axes.push(BlockAxis {
                at: run.at,
                n: run.n,
                stride: run.step,
                repeat: run.repeat,
                at_stride: run.at_stride,
                repeat_stride: run.local_stride,
            });
        }
        // Until here each stride counts along its own axis. Convert it to elements of the part.
        let mut row = 1;
        for (axis, part) in axes.iter_mut().enumerate().rev() {
            let BlockAxis { stride, repeat_stride, .. } = part;
            // The step of a run of one element is arbitrary, so the product may overflow.
            *stride = stride.saturating_mul(row);
            *repeat_stride = repeat_stride.saturating_mul(row);
            row *= self.padded[axis][runs[axis][chosen[axis]].coord];
        }
        Fragment { rank, offset, axes }
    }
}

/// A box of a rank's own elements, by global and by local indices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OwnBox {
    pub global: Vec<Range<usize>>,
    pub local: Vec<Range<usize>>,
}

impl OwnBox {
    /// Splits the box along its first axis into slabs of at most `most` elements, or of one row.
    pub(super) fn slabs(&self, most: usize) -> impl Iterator<Item = OwnBox> + '_ {
        let row: usize = self.global[1..].iter().map(Range::len).product();
        let (n, rows) = (self.global[0].len(), (most / row.max(1)).max(1));
        (0..n).step_by(rows).map(move |at| {
            let mut slab = self.clone();
            let end = (at + rows).min(n);
            let crop = |r: &Range<usize>| r.start + at..r.start + end;
            slab.global[0] = crop(&self.global[0]);
            slab.local[0] = crop(&self.local[0]);
            slab
        })
    }
}

fn same_axes(what: &str, numbers: &[usize], shape: &[usize]) -> Result<()> {
    if numbers.len() != shape.len() {
        fail!(Argument, "{what} {numbers:?} for an array of shape {shape:?}: the axes differ");
    }
    Ok(())
}

/// Chooses the grid of all ranks whose blocks have the least surface for their volume. Among equal
/// grids, it prefers to split the axes with the largest strides in memory, so that rows stay long.
fn choose_grid(shape: &[usize], ranks: usize) -> Dims {
    fn search(shape: &[usize], ranks: usize, grid: &mut Dims, best: &mut (f64, Dims)) {
        let axis = grid.len();
        if axis + 1 == shape.len() {
            grid.push(ranks);
            let cost = grid.iter().zip(shape).map(|(&g, &n)| {
                // A rank without elements costs more than any surface.
                let idle = if g > n { 1e6 * g as f64 } else { 0.0 };
                g as f64 / n.max(1) as f64 + idle
            });
            let cost = cost.sum();
            if best.1.is_empty() || cost < best.0 * (1.0 - 1e-12) {
                *best = (cost, grid.clone());
            }
            grid.pop();
            return;
        }
        for parts in (1..=ranks).rev().filter(|parts| ranks.is_multiple_of(*parts)) {
            grid.push(parts);
            search(shape, ranks / parts, grid, best);
            grid.pop();
        }
    }
    let mut best = (f64::INFINITY, Dims::new());
    search(shape, ranks, &mut Dims::new(), &mut best);
    best.1
}
