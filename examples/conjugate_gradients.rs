//! Conjugate gradients on a sparse matrix, with distributed vectors and gathered elements.
//!
//! The matrix describes a grid of resistors with additional long-range connections. It is symmetric
//! and positive definite. Each rank has the rows that match its part of the vectors, and gathers
//! the other vector elements that these rows need. The solution is known, so the program can check
//! the result.
//!
//! Usage: conjugate_gradients [nodes along a side, 60]

use ndarray::Ix1;
use portolan::Runtime;
use portolan::array::DistArray;
use std::collections::BTreeMap;
use std::error::Error;
use std::ops::Range;
use std::process::ExitCode;

/// The rows of a rank, and the columns that they need.
struct Rows {
    own: Range<usize>,
    /// Off-diagonal entries: row, position in `columns`, value.
    entries: Vec<(usize, usize, f64)>,
    diagonal: Vec<f64>,
    columns: Vec<[usize; 1]>,
}

impl Rows {
    fn new(n: usize, own: Range<usize>) -> Rows {
        let mut positions = BTreeMap::new();
        let (mut entries, mut columns) = (Vec::new(), Vec::new());
        let mut diagonal = vec![0.01; own.len()];
        for row in own.clone() {
            let (i, j) = (row / n, row % n);
            // The neighbours in the grid, and the mirror image of the node.
            let near = [(i.wrapping_sub(1), j), (i + 1, j), (i, j.wrapping_sub(1)), (i, j + 1)];
            let near = near.into_iter().filter(|(i, j)| *i < n && *j < n).map(|(i, j)| i * n + j);
            for column in near.chain([n * n - 1 - row]).filter(|c| *c != row) {
                let at = *positions.entry(column).or_insert_with(|| {
                    columns.push([column]);
                    columns.len() - 1
                });
                entries.push((row - own.start, at, -1.0));
                diagonal[row - own.start] += 1.0;
            }
        }
        Rows { own, entries, diagonal, columns }
    }

    /// Computes `y = A x`.
    fn apply(
        &self,
        x: &DistArray<'_, f64, Ix1>,
        y: &mut DistArray<'_, f64, Ix1>,
    ) -> portolan::Result<()> {
        let there = x.gather(&self.columns)?;
        let mut sums = x.get([self.own.clone()])?;
        sums.iter_mut().zip(&self.diagonal).for_each(|(x, d)| *x *= d);
        for &(row, at, value) in &self.entries {
            sums[row] += value * there[at];
        }
        let mut mine = y.access()?;
        mine.local_mut().assign(&sums);
        mine.release()
    }
}

fn solve(rt: &Runtime, n: usize) -> Result<(), Box<dyn Error>> {
    let mut x = DistArray::<f64, Ix1>::zeros(&rt.world(), [n * n])?;
    let own = x.bounds(rt.rank())?.ok_or("blocks")?[0].clone();
    let rows = Rows::new(n, own);
    let (mut r, mut p, mut q) = (x.like::<f64>("r")?, x.like::<f64>("p")?, x.like::<f64>("q")?);
    let mut known = x.like::<f64>("known")?;
    known.fill_with(|i| (i % 10) as f64)?;

    rows.apply(&known, &mut r)?; // the right-hand side, which is also the first residual
    p.assign(&r)?;
    let mut square = r.dot(&r)?;
    let (begin, mut steps) = (square, 0);
    while square > 1e-20 * begin && steps < 10 * n {
        rows.apply(&p, &mut q)?;
        let alpha = square / p.dot(&q)?;
        x.scaled_add(alpha, &p)?;
        r.scaled_add(-alpha, &q)?;
        let next = r.dot(&r)?;
        let beta = next / square;
        p.zip_mut_with(&r, |p, r| *p = beta * *p + r)?;
        (square, steps) = (next, steps + 1);
    }
    x.scaled_add(-1.0, &known)?;
    let error = x.norm()? / known.norm()?;
    if rt.rank() == 0 {
        println!(
            "conjugate gradients: {} unknowns, {steps} steps, relative error {error:e}",
            n * n
        );
    }
    for array in [x, r, p, q, known] {
        array.free()?;
    }
    if error < 1e-6 { Ok(()) } else { Err(format!("wrong by {error:e}").into()) }
}

fn main() -> ExitCode {
    let n = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(60);
    portolan::run(|rt| solve(rt, n))
}
