//! The heat equation in two and three dimensions, on distributed arrays with ghost cells.
//!
//! A step of the stencil computes the interior of each rank's block while the ghost cells travel,
//! then the boundary cells. The program compares the result with that of a single rank that
//! computes the whole array.
//!
//! Usage: jacobi [cells along a side in two dimensions, 512] [in three, 64] [steps, 300]

use ndarray::{
    Array, ArrayView, ArrayView2, ArrayView3, ArrayViewMut, ArrayViewMut2, ArrayViewMut3,
};
use ndarray::{Dimension, IntoDimension, Ix2, Ix3};
use portolan::Runtime;
use portolan::array::{DistArray, Options};
use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

const DIFFUSION: f64 = 0.1;

/// Computes the row `to` from the old row `here` and the rows around it, which have one more
/// element at each end.
#[inline]
fn row<const K: usize>(to: &mut [f64], here: &[f64], around: [&[f64]; K]) {
    let n = to.len();
    let (west, middle, east) = (&here[..n], &here[1..n + 1], &here[2..n + 2]);
    let around = around.map(|row| &row[1..n + 1]);
    for j in 0..n {
        let sum = around.iter().fold(west[j] + east[j], |sum, row| sum + row[j]);
        to[j] = middle[j] + DIFFUSION * (sum - (K + 2) as f64 * middle[j]);
    }
}

fn plane(old: ArrayView2<'_, f64>, mut new: ArrayViewMut2<'_, f64>, _first: &[usize]) {
    for (i, to) in new.rows_mut().into_iter().enumerate() {
        let from = |i: usize| old.row(i).to_slice().expect("rows lie in a row");
        row(to.into_slice().expect("as do these"), from(i + 1), [from(i), from(i + 2)]);
    }
}

fn space(old: ArrayView3<'_, f64>, mut new: ArrayViewMut3<'_, f64>, _first: &[usize]) {
    for (i, mut to) in new.outer_iter_mut().enumerate() {
        for (j, to) in to.rows_mut().into_iter().enumerate() {
            let from = |i: usize, j: usize| {
                let row = old.index_axis_move(ndarray::Axis(0), i);
                row.index_axis_move(ndarray::Axis(0), j).to_slice().expect("rows lie in a row")
            };
            let around = [from(i, j + 1), from(i + 2, j + 1), from(i + 1, j), from(i + 1, j + 2)];
            row(to.into_slice().expect("as do these"), from(i + 1, j + 1), around);
        }
    }
}

/// Returns the initial value of a cell: warm in the middle, cold elsewhere.
fn initial(index: &[usize], n: usize) -> f64 {
    let far: usize = index.iter().map(|i| i.abs_diff(n / 2).pow(2)).sum();
    if 16 * far < n * n { 60.0 } else { 0.0 }
}

/// Computes a box of new elements from the old elements, which have one more at each end.
type Kernel<D> = fn(ArrayView<'_, f64, D>, ArrayViewMut<'_, f64, D>, &[usize]);

/// Computes all steps on all ranks. Rank 0 compares the result with its own computation.
fn solve<D: Dimension>(
    rt: &Runtime,
    shape: D,
    steps: usize,
    kernel: Kernel<D>,
) -> Result<(), Box<dyn Error>> {
    let (n, axes) = (shape[0], shape.ndim());
    let options = Options::named("old").ghosts(vec![1; axes]);
    let mut old = DistArray::<f64, D>::with(&rt.world(), shape, options)?;
    let mut new = old.like("new")?;
    old.fill_with(|index| initial(index.into_dimension().slice(), n))?;
    let mut whole = old.get(old.whole())?;

    let (mut from, mut to) = (old.access()?, new.access()?);
    let begun = Instant::now();
    // ANCHOR: loop
    for _ in 0..steps {
        from.stencil(&mut to, kernel)?;
        std::mem::swap(&mut from, &mut to);
    }
    // ANCHOR_END: loop
    let seconds = begun.elapsed().as_secs_f64();
    from.release()?;
    to.release()?;
    let result = if steps.is_multiple_of(2) { &old } else { &new };
    if rt.rank() == 0 {
        let mut shape = D::zeros(axes);
        shape.slice_mut().fill(n + 2);
        let mut padded = Array::zeros(shape);
        for _ in 0..steps {
            padded.slice_each_axis_mut(|_| (1..n + 1).into()).assign(&whole);
            kernel(padded.view(), whole.view_mut(), &[]);
        }
        let difference = whole - result.get(result.whole())?;
        let error: f64 = difference.iter().map(|x| x.abs()).sum();
        if error.is_nan() || error > 1e-9 {
            return Err(format!("wrong by {error:e}").into());
        }
        let rate = (n.pow(axes as u32) * steps) as f64 / seconds / 1e6;
        println!("jacobi: {axes} dimensions, {n} cells a side, {rate:.1} million cells a second");
    }
    old.free()?;
    new.free()?;
    Ok(())
}

fn main() -> ExitCode {
    let number = |i: usize, or| std::env::args().nth(i).map_or(or, |a| a.parse().unwrap_or(or));
    let (n, m, steps) = (number(1, 512), number(2, 64), number(3, 300));
    portolan::run(|rt| {
        solve(rt, Ix2(n, n), steps, plane)?;
        solve(rt, Ix3(m, m, m), steps, space)
    })
}
