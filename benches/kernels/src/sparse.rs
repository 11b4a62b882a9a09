//! PRK sparse: products of a vector and a sparse matrix, which describes a star-shaped stencil on a
//! periodic grid with points in bit-reversed order. Ranks own rows.
//!
//! An iteration changes the vector, so every rank needs all of it. Portolan's version gets the
//! parts of all ranks, which brings them into the cache of the rank that needs them. The version of
//! MPI calls `MPI_Allgather`.

use crate::job::Sample;
use crate::memory::{Memory, segment, window};
use crate::{Job, Kernel, Outcome, Result, Side, version};

/// The kernel.
pub const KERNEL: Kernel = Kernel {
    name: "sparse",
    size_is: "points of a side of the grid, as a power of two",
    size: 9,
    small: 5,
    unit: "GFlop/s",
    versions: &[
        version(Side::Portolan, "get", |job, size| gets(job, size, |len| segment(job, len))),
        version(Side::TwoSided, "allgather", messages),
        version(Side::Window, "get", |job, size| gets(job, size, |len| window(job, len))),
    ],
};

const RADIUS: usize = 4;
const ROW: usize = 4 * RADIUS + 1;
const ITERATIONS: usize = 4;

struct Rows {
    first: usize,
    /// Rows of all ranks. If the ranks do not divide them evenly, the last rank has fewer.
    all: usize,
    each: usize,
    columns: Vec<u32>,
    values: Vec<f64>,
    part: Vec<f64>,
    result: Vec<f64>,
}

impl Rows {
    fn new(job: &Job<'_>, size: usize) -> Rows {
        let side = 1usize << size;
        let all = side * side;
        let each = all.div_ceil(job.n());
        let first = (each * job.me()).min(all);
        let mine = first..(first + each).min(all);
        let reversed = |i: usize| {
            (i as u64).reverse_bits().checked_shr(64 - 2 * size as u32).unwrap_or(0) as usize
        };
        let mut columns = Vec::with_capacity(mine.len() * ROW);
        for row in mine.clone() {
            let (i, j) = (row % side, row / side);
            let from = columns.len();
            columns.push(reversed(row) as u32);
            for r in 1..=RADIUS {
                for (i, j) in [(i + r, j), (i + side - r, j), (i, j + r), (i, j + side - r)] {
                    columns.push(reversed(i % side + side * (j % side)) as u32);
                }
            }
            columns[from..].sort_unstable();
        }
        let values = columns.iter().map(|c| 1.0 / (f64::from(*c) + 1.0)).collect();
        let (part, result) = (vec![0.0; each], vec![0.0; mine.len()]);
        Rows { first, all, each, columns, values, part, result }
    }

    fn advance(&mut self) {
        for (i, element) in self.part.iter_mut().enumerate() {
            *element += (self.first + i + 1) as f64;
        }
    }

    fn multiply(&mut self, vector: &[f64]) {
        for (i, result) in self.result.iter_mut().enumerate() {
            let row = i * ROW..(i + 1) * ROW;
            let pairs = self.columns[row.clone()].iter().zip(&self.values[row]);
            *result += pairs.map(|(column, value)| value * vector[*column as usize]).sum::<f64>();
        }
    }

    fn finish(self, job: &Job<'_>, samples: Vec<Sample>) -> Result<Outcome> {
        let iterations = (ITERATIONS * job.repeats) as f64;
        let entries = (self.all * ROW) as f64;
        let expected = 0.5 * entries * iterations * (iterations + 1.0);
        let sum = job.sum(self.result.iter().sum())?;
        let work = 2.0 * entries * ITERATIONS as f64 / 1e9;
        Ok(Outcome { samples, work, verified: (sum - expected).abs() < 1e-8 * expected })
    }
}

fn messages(job: &Job<'_>, size: usize) -> Result<Outcome> {
    let mut rows = Rows::new(job, size);
    let mut vector = vec![0.0; rows.each * job.n()];
    let samples = job.repeat(|| {
        for _ in 0..ITERATIONS {
            rows.advance();
            job.world.all_gather_into(&rows.part, &mut vector);
            rows.multiply(&vector);
        }
        Ok(())
    })?;
    rows.finish(job, samples)
}

/// Gets the parts of all ranks from `parts`, which have two places on each rank. A rank puts its
/// part into them in turn, so one barrier per iteration is enough.
fn gets<M: Memory<f64>>(
    job: &Job<'_>,
    size: usize,
    parts: impl FnOnce(usize) -> Result<M>,
) -> Result<Outcome> {
    let mut rows = Rows::new(job, size);
    let each = rows.each;
    let parts = parts(2 * each)?;
    let mut vector = vec![0.0; each * job.n()];
    let mut turn = 0;
    let samples = job.repeat(|| {
        for _ in 0..ITERATIONS {
            rows.advance();
            turn = 1 - turn;
            parts.put(job.me(), turn * each, &rows.part)?;
            parts.fence()?;
            job.barrier()?;
            for i in 0..job.n() {
                let rank = (job.me() + i) % job.n();
                parts.get(rank, turn * each, &mut vector[rank * each..][..each])?;
            }
            rows.multiply(&vector);
        }
        Ok(())
    })?;
    parts.free()?;
    rows.finish(job, samples)
}
