//! The matrix operations of a Hartree-Fock program: pairs of tiles of uneven cost, distributed
//! dynamically.
//!
//! A pair reads a tile of the density matrix and accumulates into a tile of the Fock matrix. The
//! "integrals" are a formula that falls off with distance. So most pairs of distant tiles are
//! screened out, and a single rank can compute the whole matrix to check the result.
//!
//! Usage: scf_like [functions, 96] [tile, 8]

use ndarray::{Array2, Ix2};
use portolan::Runtime;
use portolan::array::DistArray;
use portolan::reduce::{Max, Sum};
use std::error::Error;
use std::ops::Range;
use std::process::ExitCode;

const SMALL: f64 = 1e-9;

/// Returns the overlap of functions `i` and `j`.
fn overlap(i: usize, j: usize) -> f64 {
    (-0.2 * (i as f64 - j as f64).powi(2)).exp()
}

/// Returns the largest overlap of functions of two tiles.
fn bound(rows: &Range<usize>, columns: &Range<usize>) -> f64 {
    let gap = rows.start.saturating_sub(columns.end - 1);
    overlap(0, gap.max(columns.start.saturating_sub(rows.end - 1)))
}

/// Adds Coulomb-like and exchange-like sums over one tile of the density matrix to one tile of the
/// Fock matrix.
fn contract(
    fock: &mut Array2<f64>,
    (rows, columns): (&Range<usize>, &Range<usize>),
    density: &Array2<f64>,
    (k0, l0): (usize, usize),
) {
    for ((i, j), f) in fock.indexed_iter_mut() {
        let (i, j) = (rows.start + i, columns.start + j);
        for ((k, l), d) in density.indexed_iter() {
            let (k, l) = (k0 + k, l0 + l);
            let coulomb = overlap(i, j) * overlap(k, l) / (1.0 + (i + j).abs_diff(k + l) as f64);
            let exchange = overlap(i, k) * overlap(j, l) / (1.0 + (i + k).abs_diff(j + l) as f64);
            *f += d * (2.0 * coulomb - exchange);
        }
    }
}

fn cut(n: usize, tile: usize) -> Vec<Range<usize>> {
    (0..n).step_by(tile).map(|i| i..(i + tile).min(n)).collect()
}

fn build(rt: &Runtime, n: usize, tile: usize) -> Result<(), Box<dyn Error>> {
    let mut density = DistArray::<f64, Ix2>::zeros(&rt.world(), [n, n])?;
    let fock = density.like::<f64>("fock")?;
    density.fill_with(|(i, j)| overlap(i, j) / (1.0 + (i + j) as f64))?;

    let (mut done, mut screened) = (0i64, 0i64);
    let mut tiles = fock.tiles([tile, tile])?;
    while let Some(mine) = tiles.take()? {
        let (rows, columns) = (&mine.ranges[0], &mine.ranges[1]);
        let mut sums = Array2::zeros((rows.len(), columns.len()));
        for k in cut(n, tile) {
            for l in cut(n, tile) {
                let coulomb = bound(rows, columns) * bound(&k, &l);
                if coulomb.max(bound(rows, &k) * bound(columns, &l)) < SMALL {
                    screened += 1;
                    continue;
                }
                done += 1;
                let part = density.get([k.clone(), l.clone()])?;
                contract(&mut sums, (rows, columns), &part, (k.start, l.start));
            }
        }
        // The matrix is symmetric: add half to the tile and half to its transpose.
        fock.accumulate(&mine, 0.5, &sums)?;
        fock.accumulate([columns.clone(), rows.clone()], 0.5, &sums.t())?;
    }
    tiles.free()?;
    fock.sync()?;
    let energy = fock.dot(&density)?;
    let most = rt.world().all_reduce_value(done, Max)?;
    let all = rt.world().all_reduce_value(done, Sum)?;
    let screened = rt.world().all_reduce_value(screened, Sum)?;

    let mut worst = 0.0f64;
    if rt.rank() == 0 {
        let d = density.get(density.whole())?;
        let mut expected = Array2::zeros((n, n));
        contract(&mut expected, (&(0..n), &(0..n)), &d, (0, 0));
        let difference = fock.get(fock.whole())? - &expected;
        worst = difference.iter().fold(0.0, |e, x| if x.abs() <= e { e } else { x.abs() });
        println!(
            "scf_like: {n} functions, energy {energy:.6}, {all} pairs of tiles (at most {most} on a \
             rank), {screened} screened away, largest error {worst:e}"
        );
    }
    let worst = rt.world().all_reduce_value(worst, Max)?;
    density.free()?;
    fock.free()?;
    if worst < 1e-6 { Ok(()) } else { Err(format!("wrong by {worst:e}").into()) }
}

fn main() -> ExitCode {
    let number =
        |i: usize, or: usize| std::env::args().nth(i).and_then(|a| a.parse().ok()).unwrap_or(or);
    portolan::run(|rt| build(rt, number(1, 96), number(2, 8)))
}
