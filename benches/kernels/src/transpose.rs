//! PRK transpose: `B += A^T` and then `A += 1`, of a square matrix that is distributed by columns.
//!
//! Portolan's version transposes tiles of A, which fit in the cache, and accumulates them into the
//! owner's columns of B. Tiles for another node are larger, because each is a message. Accumulates
//! commute, so the ranks meet only at the end. The versions of MPI send whole transposed blocks,
//! which the receiver adds, as the reference program does.

use crate::job::Sample;
use crate::two_sided::{Requests, World};
use crate::{Job, Kernel, Outcome, Result, Side, version, window::Window};
use portolan::Segment;
use portolan::transfer::Block;

/// The kernel.
pub const KERNEL: Kernel = Kernel {
    name: "transpose",
    size_is: "rows and columns of the matrix",
    size: 2048,
    small: 100,
    unit: "GB/s",
    versions: &[
        version(Side::Portolan, "accumulate", segments),
        version(Side::TwoSided, "messages", messages),
        version(Side::Window, "put", windows),
    ],
};

const ITERATIONS: usize = 4;
const TILE: usize = 32;
/// The side of a tile for another node.
const FAR_TILE: usize = 256;

/// The distribution: rank r owns columns `r * b .. (r + 1) * b`, stored one after the other.
#[derive(Clone, Copy)]
struct Columns {
    /// Rows.
    n: usize,
    /// Columns of a rank.
    b: usize,
    me: usize,
}

impl Columns {
    /// Rounds the size to a multiple of the number of ranks.
    fn new(world: World, size: usize) -> Columns {
        let b = (size / world.n).max(1);
        Columns { n: b * world.n, b, me: world.me }
    }

    fn matrix(self) -> Vec<f64> {
        (0..self.b * self.n).map(|k| (self.n * self.me * self.b + k) as f64).collect()
    }

    fn verify(self, job: &Job<'_>, samples: Vec<Sample>, b: &[f64]) -> Result<Outcome> {
        let iterations = (ITERATIONS * job.repeats) as f64;
        let added = iterations * (iterations - 1.0) / 2.0;
        let right = (0..self.b).all(|j| {
            (0..self.n).all(|i| {
                let expected = iterations * (self.n * i + self.me * self.b + j) as f64 + added;
                (b[j * self.n + i] - expected).abs() < 1e-8 * expected.abs().max(1.0)
            })
        });
        let work = 16.0 * (self.n * self.n * ITERATIONS) as f64 / 1e9;
        Ok(Outcome { samples, work, verified: job.all_true(right)? })
    }
}

/// Calls `each` with the ranges of the tiles of a block of `b` rows and columns.
fn tiles(
    side: usize,
    b: usize,
    mut each: impl FnMut(std::ops::Range<usize>, std::ops::Range<usize>) -> Result<()>,
) -> Result<()> {
    for i in (0..b).step_by(side) {
        for j in (0..b).step_by(side) {
            each(i..(i + side).min(b), j..(j + side).min(b))?;
        }
    }
    Ok(())
}

/// Transposes block `rows` into `out`, which has `b` columns of `b` elements, and adds 1 to A.
fn transpose_block(own: Columns, a: &mut [f64], other: usize, out: &mut [f64]) -> Result<()> {
    let first = other * own.b;
    tiles(TILE, own.b, |columns, rows| {
        for i in columns {
            for j in rows.clone() {
                let element = &mut a[i * own.n + first + j];
                out[j * own.b + i] = *element;
                *element += 1.0;
            }
        }
        Ok(())
    })
}

/// Adds the transpose of block `of` to block `to` of the columns of B, and 1 to the block of A.
fn add_block(own: Columns, a: &mut [f64], of: usize, b: &mut [f64], to: usize) -> Result<()> {
    tiles(TILE, own.b, |columns, rows| {
        for i in columns {
            for j in rows.clone() {
                let element = &mut a[i * own.n + of * own.b + j];
                b[j * own.n + to * own.b + i] += *element;
                *element += 1.0;
            }
        }
        Ok(())
    })
}

/// Adds a received block, from `other`, to the columns of B.
fn add_received(own: Columns, b: &mut [f64], other: usize, block: &[f64]) {
    for j in 0..own.b {
        let to = &mut b[j * own.n + other * own.b..][..own.b];
        for (to, value) in to.iter_mut().zip(&block[j * own.b..][..own.b]) {
            *to += value;
        }
    }
}

/// Transposes tiles of A in the cache, and adds them to B at its owner.
fn push_block(
    own: Columns,
    a: &mut [f64],
    other: usize,
    b: &Segment<'_, f64>,
    side: usize,
) -> Result<()> {
    let mut tile = vec![0.0; side * side];
    tiles(side, own.b, |columns, rows| {
        let (width, height) = (columns.len(), rows.len());
        for first in (0..height).step_by(TILE) {
            let part = first..(first + TILE).min(height);
            for (i, column) in columns.clone().enumerate() {
                let from = &mut a[column * own.n + other * own.b..][rows.clone()][part.clone()];
                let to = tile[part.start * width + i..].iter_mut().step_by(width);
                for (to, element) in to.zip(from) {
                    *to = *element;
                    *element += 1.0;
                }
            }
        }
        let at = rows.start * own.n + own.me * own.b + columns.start;
        let there = Block::strided(at, &[height, width], &[own.n as isize, 1])?;
        let here = Block::contiguous(0..width * height);
        b.accumulate_block(other, &there, 1.0, &tile, &here)?;
        Ok(())
    })
}

fn segments(job: &Job<'_>, size: usize) -> Result<Outcome> {
    let own = Columns::new(job.world, size);
    let rt = job.rt()?;
    let group = rt.world();
    let b = group.allocate::<f64>(own.b * own.n)?;
    let mut a = own.matrix();
    let samples = job.repeat(|| {
        for _ in 0..ITERATIONS {
            // Each rank begins with another owner.
            for i in 0..job.n() {
                let other = (job.me() + i) % job.n();
                let side = if rt.same_node(other)? { TILE } else { FAR_TILE };
                push_block(own, &mut a, other, &b, side)?;
            }
        }
        Ok(group.barrier()?)
    })?;
    let outcome = own.verify(job, samples, &b.local().to_vec())?;
    b.free()?;
    Ok(outcome)
}

fn messages(job: &Job<'_>, size: usize) -> Result<Outcome> {
    let own = Columns::new(job.world, size);
    let (mut a, mut b) = (own.matrix(), vec![0.0; own.b * own.n]);
    let (mut out, mut here) = (vec![0.0; own.b * own.b], vec![0.0; own.b * own.b]);
    let samples = job.repeat(|| {
        for _ in 0..ITERATIONS {
            add_block(own, &mut a, own.me, &mut b, own.me)?;
            for phase in 1..job.n() {
                let to = (job.me() + job.n() - phase) % job.n();
                let from = (job.me() + phase) % job.n();
                let mut requests = Requests::default();
                requests.receive(from, phase as i32, &mut here);
                transpose_block(own, &mut a, to, &mut out)?;
                requests.send(to, phase as i32, &out);
                requests.wait();
                add_received(own, &mut b, from, &here);
            }
        }
        Ok(())
    })?;
    own.verify(job, samples, &b)
}

fn windows(job: &Job<'_>, size: usize) -> Result<Outcome> {
    let own = Columns::new(job.world, size);
    let (mut a, mut b) = (own.matrix(), vec![0.0; own.b * own.n]);
    let block = own.b * own.b;
    let window = Window::<f64>::new(job.world, block * job.n())?;
    let mut out = vec![0.0; block];
    let samples = job.repeat(|| {
        for _ in 0..ITERATIONS {
            add_block(own, &mut a, own.me, &mut b, own.me)?;
            for phase in 1..job.n() {
                let to = (job.me() + job.n() - phase) % job.n();
                transpose_block(own, &mut a, to, &mut out)?;
                // SAFETY: the buffer is left alone until the flush.
                unsafe { window.put(to, own.me * block, &out) };
                window.flush(to);
            }
            job.world.barrier();
            window.sync();
            for other in (0..job.n()).filter(|other| *other != own.me) {
                // SAFETY: the other ranks put again only after the next barrier.
                add_received(own, &mut b, other, unsafe {
                    &window.local()[other * block..][..block]
                });
            }
            job.world.barrier();
        }
        Ok(())
    })?;
    window.free();
    own.verify(job, samples, &b)
}
