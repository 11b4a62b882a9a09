//! PRK stencil: a star-shaped stencil of radius 1 or 4 on a square grid.
//!
//! An iteration adds the stencil of `in` to `out`, and then 1 to `in`. Portolan's version lets
//! [`Access::stencil`] exchange ghost cells while it computes the interior. The version of MPI
//! exchanges them by messages before it computes, as the reference program does.

use crate::job::{Sample, grid, share};
use crate::two_sided::Requests;
use crate::{Job, Kernel, Outcome, Result, Side, Version, version, window::Window};
use ndarray::{ArrayView2, ArrayViewMut2, Axis, Ix2, s};
use portolan::array::{Access, DistArray, Distribution, Options};
use std::ops::Range;

const fn versions<const R: usize>() -> [Version; 3] {
    [
        version(Side::Portolan, "ghosts", arrays::<R>),
        version(Side::TwoSided, "messages", messages::<R>),
        version(Side::Window, "put", windows::<R>),
    ]
}

/// The kernel with radius 1.
pub const KERNEL_1: Kernel = Kernel {
    name: "stencil-r1",
    size_is: "rows and columns of the grid",
    size: 2000,
    small: 37,
    unit: "GFlop/s",
    versions: &versions::<1>(),
};

/// The kernel with radius 4.
pub const KERNEL_4: Kernel =
    Kernel { name: "stencil-r4", small: 48, versions: &versions::<4>(), ..KERNEL_1 };

const ITERATIONS: usize = 4;

/// Returns the weight of the neighbours at each distance, from 1 on.
const fn weights<const R: usize>() -> [f64; R] {
    let mut weights = [0.0; R];
    let mut d = 0;
    while d < R {
        weights[d] = 1.0 / (2.0 * (d + 1) as f64 * R as f64);
        d += 1;
    }
    weights
}

fn start(i: usize, j: usize) -> f64 {
    (i + j) as f64
}

/// Adds the stencil of `old` to the elements of `new` with these indices in both axes of the grid.
/// `old` is larger by `R` on all sides.
fn apply<const R: usize>(
    old: ArrayView2<'_, f64>,
    mut new: ArrayViewMut2<'_, f64>,
    first: [usize; 2],
    n: usize,
) {
    // The stencil is not applied closer than R to the edge of the grid.
    let inside = |axis: usize, len: usize| -> Range<usize> {
        let from = R.saturating_sub(first[axis]).min(len);
        from..(n - R).saturating_sub(first[axis]).min(len).max(from)
    };
    let (rows, columns) = (inside(0, new.nrows()), inside(1, new.ncols()));
    for i in rows {
        let row = |d: usize| {
            let row = old.index_axis_move(Axis(0), i + d);
            row.to_slice().expect("rows are contiguous")
        };
        let mut out = new.index_axis_mut(Axis(0), i);
        let out = &mut out.as_slice_mut().expect("rows are contiguous")[columns.clone()];
        let above: [&[f64]; R] = std::array::from_fn(|d| &row(R - 1 - d)[R + columns.start..]);
        let below: [&[f64]; R] = std::array::from_fn(|d| &row(R + 1 + d)[R + columns.start..]);
        apply_to_row(out, &row(R)[columns.start..], &above, &below);
    }
}

/// Adds the stencil to a row. `middle` begins `R` elements before it. The compiler vectorises this
/// only in a function of its own, because it then knows that `out` overlaps no other row.
#[inline(never)]
fn apply_to_row<const R: usize>(
    out: &mut [f64],
    middle: &[f64],
    above: &[&[f64]; R],
    below: &[&[f64]; R],
) {
    let weights = const { weights::<R>() };
    let m = out.len();
    let middle = &middle[..m + 2 * R];
    let (above, below) = (above.map(|row| &row[..m]), below.map(|row| &row[..m]));
    for j in 0..m {
        let mut sum = 0.0;
        for d in 0..R {
            let (left, right) = (middle[j + R - 1 - d], middle[j + R + 1 + d]);
            sum += weights[d] * ((right - left) + (below[d][j] - above[d][j]));
        }
        out[j] += sum;
    }
}

/// Returns the outcome, from the sum of the absolute values of this rank's `out`.
fn outcome<const R: usize>(
    job: &Job<'_>,
    n: usize,
    samples: Vec<Sample>,
    own: f64,
) -> Result<Outcome> {
    let points = ((n - 2 * R) * (n - 2 * R)) as f64;
    let norm = job.sum(own)? / points;
    let expected = 2.0 * (ITERATIONS * job.repeats) as f64;
    let flops = (8 * R) as f64 * points * ITERATIONS as f64 / 1e9;
    let verified = (norm - expected).abs() < 1e-8 * expected;
    Ok(Outcome { samples, work: flops, verified })
}

fn arrays<const R: usize>(job: &Job<'_>, n: usize) -> Result<Outcome> {
    let group = job.rt()?.world();
    let grid = Distribution::grid(grid(job.n()));
    let options = Options::named("in").distribution(grid).ghosts([R, R]);
    let mut from = DistArray::<f64, Ix2>::with(&group, [n, n], options)?;
    let mut to = from.like::<f64>("out")?;
    from.fill_with(|(i, j)| start(i, j))?;
    let (mut old, mut new) = (from.access()?, to.access()?);
    let samples = job.repeat(|| {
        for _ in 0..ITERATIONS {
            old.stencil(&mut new, |old, new, first| {
                apply::<R>(old, new, [first[0], first[1]], n);
            })?;
            old.local_mut().rows_mut().into_iter().for_each(|mut row| row += 1.0);
        }
        Ok(())
    })?;
    let own = new.local().iter().map(|v| v.abs()).sum();
    [old, new].into_iter().try_for_each(Access::release)?;
    let outcome = outcome::<R>(job, n, samples, own)?;
    [from, to].into_iter().try_for_each(DistArray::free)?;
    Ok(outcome)
}

/// A rank's tile of the grid, in private memory.
struct Tile<const R: usize> {
    /// Global indices.
    bounds: [Range<usize>; 2],
    /// The tile with R ghost cells on all sides.
    old: ndarray::Array2<f64>,
    new: ndarray::Array2<f64>,
    /// The ranks above, below, left and right.
    near: [Option<usize>; 4],
    n: usize,
}

impl<const R: usize> Tile<R> {
    fn new(job: &Job<'_>, n: usize) -> Tile<R> {
        let grid = grid(job.n());
        let at = [job.me() / grid[1], job.me() % grid[1]];
        let bounds = [share(n, grid[0], at[0]), share(n, grid[1], at[1])];
        let (rows, columns) = (bounds[0].len(), bounds[1].len());
        let index = |i: usize, axis: usize| (bounds[axis].start + i).wrapping_sub(R);
        let old = ndarray::Array2::from_shape_fn((rows + 2 * R, columns + 2 * R), |(i, j)| {
            let (i, j) = (index(i, 0), index(j, 1));
            if bounds[0].contains(&i) && bounds[1].contains(&j) { start(i, j) } else { 0.0 }
        });
        let rank = |row: usize, column: usize| {
            (row < grid[0] && column < grid[1]).then_some(row * grid[1] + column)
        };
        let near = [
            rank(at[0].wrapping_sub(1), at[1]),
            rank(at[0] + 1, at[1]),
            rank(at[0], at[1].wrapping_sub(1)),
            rank(at[0], at[1] + 1),
        ];
        Tile { bounds, old, new: ndarray::Array2::zeros((rows, columns)), near, n }
    }

    /// Returns the elements for the neighbour on a side, or the ghost cells from it.
    fn strip(&self, side: usize, ghosts: bool) -> [Range<usize>; 2] {
        let (rows, columns) = (self.new.nrows(), self.new.ncols());
        let along = |len: usize| match (side.is_multiple_of(2), ghosts) {
            (true, true) => 0..R,
            (true, false) => R..2 * R,
            (false, true) => R + len..2 * R + len,
            (false, false) => len..R + len,
        };
        if side < 2 { [along(rows), R..R + columns] } else { [R..R + rows, along(columns)] }
    }

    fn pack(&self, side: usize, buffer: &mut Vec<f64>) {
        let [rows, columns] = self.strip(side, false);
        buffer.clear();
        buffer.extend(self.old.slice(s![rows, columns]));
    }

    fn unpack(&mut self, side: usize, buffer: &[f64]) {
        let [rows, columns] = self.strip(side, true);
        for (ghost, value) in self.old.slice_mut(s![rows, columns]).iter_mut().zip(buffer) {
            *ghost = *value;
        }
    }

    fn strip_len(&self, side: usize) -> usize {
        self.strip(side, true).iter().map(Range::len).product()
    }

    fn compute(&mut self) {
        let first = [self.bounds[0].start, self.bounds[1].start];
        apply::<R>(self.old.view(), self.new.view_mut(), first, self.n);
        let (rows, columns) = (self.new.nrows(), self.new.ncols());
        let mut own = self.old.slice_mut(s![R..R + rows, R..R + columns]);
        own.rows_mut().into_iter().for_each(|mut row| row += 1.0);
    }

    fn finish(self, job: &Job<'_>, samples: Vec<Sample>) -> Result<Outcome> {
        outcome::<R>(job, self.n, samples, self.new.iter().map(|v| v.abs()).sum())
    }
}

fn messages<const R: usize>(job: &Job<'_>, n: usize) -> Result<Outcome> {
    let mut tile = Tile::<R>::new(job, n);
    let mut out: [Vec<f64>; 4] = Default::default();
    let mut here: [Vec<f64>; 4] = std::array::from_fn(|side| vec![0.0; tile.strip_len(side)]);
    let samples = job.repeat(|| {
        for _ in 0..ITERATIONS {
            let mut requests = Requests::default();
            for (side, buffer) in here.iter_mut().enumerate() {
                if let Some(rank) = tile.near[side] {
                    requests.receive(rank, side as i32 ^ 1, buffer);
                }
            }
            for (side, buffer) in out.iter_mut().enumerate() {
                if let Some(rank) = tile.near[side] {
                    tile.pack(side, buffer);
                    requests.send(rank, side as i32, buffer);
                }
            }
            requests.wait();
            for (side, buffer) in here.iter().enumerate() {
                if tile.near[side].is_some() {
                    tile.unpack(side, buffer);
                }
            }
            tile.compute();
        }
        Ok(())
    })?;
    tile.finish(job, samples)
}

/// Strips are put into a window, one place for each side, between two barriers.
fn windows<const R: usize>(job: &Job<'_>, n: usize) -> Result<Outcome> {
    let mut tile = Tile::<R>::new(job, n);
    let most = R * n;
    let window = Window::<f64>::new(job.world, 4 * most)?;
    let mut out: [Vec<f64>; 4] = Default::default();
    let samples = job.repeat(|| {
        for _ in 0..ITERATIONS {
            for (side, buffer) in out.iter_mut().enumerate() {
                if let Some(rank) = tile.near[side] {
                    tile.pack(side, buffer);
                    // SAFETY: the buffer is left alone until the flush.
                    unsafe { window.put(rank, (side ^ 1) * most, buffer) };
                }
            }
            window.flush_all();
            job.world.barrier();
            window.sync();
            for side in (0..4).filter(|side| tile.near[*side].is_some()).collect::<Vec<_>>() {
                let len = tile.strip_len(side);
                // SAFETY: the neighbours write again only after the next barrier.
                tile.unpack(side, unsafe { &window.local()[side * most..][..len] });
            }
            job.world.barrier();
            tile.compute();
        }
        Ok(())
    })?;
    window.free();
    tile.finish(job, samples)
}
