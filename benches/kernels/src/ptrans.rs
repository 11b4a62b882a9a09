//! HPC Challenge PTRANS: `C += A^T` of a matrix in square blocks that are dealt out to a grid of
//! ranks.
//!
//! Portolan's version gets the blocks of A that a rank needs, several with one request, and adds
//! their transposes. The version of MPI packs all blocks for each rank and exchanges them by
//! `MPI_Alltoallv`.

use crate::job::{Sample, grid};
use crate::memory::{Memory, segment, window};
use crate::{Job, Kernel, Outcome, Result, Side, version};

/// The kernel.
pub const KERNEL: Kernel = Kernel {
    name: "ptrans",
    size_is: "rows and columns of the matrix",
    size: 2048,
    small: 150,
    unit: "GB/s",
    versions: &[
        version(Side::Portolan, "get", |job, size| one_sided(job, size, |len| segment(job, len))),
        version(Side::TwoSided, "alltoallv", messages),
        version(Side::Window, "get", |job, size| one_sided(job, size, |len| window(job, len))),
    ],
};

const BLOCK: usize = 64;
const AREA: usize = BLOCK * BLOCK;
/// Most blocks under way together.
const TOGETHER: usize = 32;

/// The distribution of blocks over the grid of ranks. Blocks are stored one after the other.
#[derive(Clone, Copy)]
struct Blocks {
    side: usize,
    grid: [usize; 2],
    me: usize,
}

impl Blocks {
    fn new(job: &Job<'_>, size: usize) -> Blocks {
        Blocks { side: size.div_ceil(BLOCK), grid: grid(job.n()), me: job.me() }
    }

    fn owner(self, [i, j]: [usize; 2]) -> usize {
        i % self.grid[0] * self.grid[1] + j % self.grid[1]
    }

    fn slot(self, [i, j]: [usize; 2]) -> usize {
        i / self.grid[0] * self.side.div_ceil(self.grid[1]) + j / self.grid[1]
    }

    fn slots(self) -> usize {
        self.side.div_ceil(self.grid[0]) * self.side.div_ceil(self.grid[1])
    }

    fn all(self) -> impl Iterator<Item = [usize; 2]> {
        (0..self.side * self.side).map(move |k| [k / self.side, k % self.side])
    }

    fn own(self) -> impl Iterator<Item = [usize; 2]> {
        self.all().filter(move |block| self.owner(*block) == self.me)
    }

    /// Returns the elements of one of the two matrices, with integers that identify each.
    fn matrix(self, scale: f64) -> Vec<f64> {
        let mut elements = vec![0.0; self.slots() * AREA];
        for block in self.own() {
            let to = &mut elements[self.slot(block) * AREA..][..AREA];
            for (k, element) in to.iter_mut().enumerate() {
                *element = scale * self.element(block, k);
            }
        }
        elements
    }

    fn element(self, [i, j]: [usize; 2], k: usize) -> f64 {
        ((i * BLOCK + k / BLOCK) * self.side * BLOCK + j * BLOCK + k % BLOCK) as f64
    }

    fn verify(self, job: &Job<'_>, samples: Vec<Sample>, c: &[f64]) -> Result<Outcome> {
        let right = self.own().all(|[i, j]| {
            (0..AREA).all(|k| {
                let transposed = self.element([j, i], k % BLOCK * BLOCK + k / BLOCK);
                let expected = 2.0 * self.element([i, j], k) + job.repeats as f64 * transposed;
                c[self.slot([i, j]) * AREA + k] == expected
            })
        });
        let work = 8.0 * ((self.side * BLOCK) as f64).powi(2) / 1e9;
        Ok(Outcome { samples, work, verified: job.all_true(right)? })
    }
}

fn add_transposed(c: &mut [f64], a: &[f64]) {
    const SMALL: usize = 8;
    // The known length saves a check of the bounds for each element.
    let c: &mut [f64; AREA] = c.try_into().expect("a block");
    let a: &[f64; AREA] = a.try_into().expect("a block");
    for i in (0..BLOCK).step_by(SMALL) {
        for j in (0..BLOCK).step_by(SMALL) {
            for k in i..i + SMALL {
                for l in j..j + SMALL {
                    c[k * BLOCK + l] += a[l * BLOCK + k];
                }
            }
        }
    }
}

fn one_sided<M: Memory<f64>>(
    job: &Job<'_>,
    size: usize,
    make: impl FnOnce(usize) -> Result<M>,
) -> Result<Outcome> {
    let blocks = Blocks::new(job, size);
    let own_a = blocks.matrix(1.0);
    let a = make(own_a.len())?;
    a.put(job.me(), 0, &own_a)?;
    a.fence()?;
    let mut c = blocks.matrix(2.0);
    // By owner of the block to get, beginning with the next rank.
    let mut own: Vec<[usize; 2]> = blocks.own().collect();
    own.sort_by_key(|&[i, j]| (blocks.owner([j, i]) + job.n() - job.me() - 1) % job.n());
    let of = |&[i, j]: &[usize; 2]| (blocks.owner([j, i]), blocks.slot([j, i]) * AREA);
    let places: Vec<(usize, usize)> = own.iter().map(of).collect();
    let mut buffer = vec![0.0; TOGETHER * AREA];
    let samples = job.repeat(|| {
        a.get_each(&places, AREA, &mut buffer, |k, got| {
            add_transposed(&mut c[blocks.slot(own[k]) * AREA..][..AREA], got);
        })?;
        job.barrier()
    })?;
    a.free()?;
    blocks.verify(job, samples, &c)
}

fn messages(job: &Job<'_>, size: usize) -> Result<Outcome> {
    let blocks = Blocks::new(job, size);
    let (a, mut c) = (blocks.matrix(1.0), blocks.matrix(2.0));
    // In the order of their use by the other rank.
    let mut order: Vec<Vec<[usize; 2]>> = vec![Vec::new(); job.n()];
    for [i, j] in blocks.all().filter(|[i, j]| blocks.owner([*j, *i]) == job.me()) {
        order[blocks.owner([i, j])].push([j, i]);
    }
    let mut sent = vec![0.0; order.iter().map(Vec::len).sum::<usize>() * AREA];
    let starts: Vec<usize> = std::iter::once(0)
        .chain(order.iter().scan(0, |sum, list| {
            *sum += list.len() * AREA;
            Some(*sum)
        }))
        .collect();
    let samples = job.repeat(|| {
        for (block, to) in order.iter().flatten().zip(sent.chunks_mut(AREA)) {
            to.copy_from_slice(&a[blocks.slot(*block) * AREA..][..AREA]);
        }
        let (here, mut next) = job.world.exchange_flat(&sent, &starts);
        for [i, j] in blocks.own() {
            let from = &mut next[blocks.owner([j, i])];
            let to = &mut c[blocks.slot([i, j]) * AREA..][..AREA];
            add_transposed(to, &here[*from..*from + AREA]);
            *from += AREA;
        }
        Ok(())
    })?;
    blocks.verify(job, samples, &c)
}
