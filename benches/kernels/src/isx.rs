//! ISx: sorts random integers by buckets. Each rank owns a range of keys. The ranks exchange keys,
//! and each then counts the keys of its range.
//!
//! Portolan's version reserves room at the owner of a range by one atomic operation and puts the
//! keys there. The version of MPI calls `MPI_Alltoall` and `MPI_Alltoallv`, as the reference
//! program does.

use crate::job::Sample;
use crate::memory::{Memory, Words, segment, window};
use crate::{Job, Kernel, Outcome, Result, Side, rng::Rng, version};

/// The kernel.
pub const KERNEL: Kernel = Kernel {
    name: "isx",
    size_is: "keys of a rank",
    size: 1 << 21,
    small: 3000,
    unit: "million keys/s",
    versions: &[
        version(Side::Portolan, "put", |job, size| {
            one_sided(job, size, segment(job, 1)?, |len| segment(job, len))
        }),
        version(Side::TwoSided, "alltoallv", messages),
        version(Side::Window, "put", |job, size| {
            one_sided(job, size, window(job, 1)?, |len| window(job, len))
        }),
    ],
};

/// Keys of the range of a rank.
const WIDTH: usize = 1 << 16;

fn keys(job: &Job<'_>, rank: usize, count: usize) -> Vec<u32> {
    let mut rng = Rng::new(0x15, rank);
    (0..count).map(|_| rng.below(WIDTH * job.n()) as u32).collect()
}

/// Sorts keys by owner. Returns the index of each rank's first key.
fn by_owner(n: usize, keys: &[u32], sorted: &mut [u32]) -> Vec<usize> {
    let mut next = vec![0; n + 1];
    keys.iter().for_each(|key| next[*key as usize / WIDTH + 1] += 1);
    (0..n).for_each(|rank| next[rank + 1] += next[rank]);
    let starts = next.clone();
    for key in keys {
        let next = &mut next[*key as usize / WIDTH];
        sorted[*next] = *key;
        *next += 1;
    }
    starts
}

fn count_keys(job: &Job<'_>, counts: &mut [u32]) -> impl FnMut(u32) {
    counts.fill(0);
    let first = (job.me() * WIDTH) as u32;
    move |key| counts[(key - first) as usize] += 1
}

fn outcome(job: &Job<'_>, size: usize, samples: Vec<Sample>, counts: &[u32]) -> Result<Outcome> {
    let mut expected = vec![0; WIDTH];
    for rank in 0..job.n() {
        let own = keys(job, rank, size).into_iter().map(|key| key as usize);
        own.filter(|key| key / WIDTH == job.me()).for_each(|key| expected[key % WIDTH] += 1);
    }
    let work = (size * job.n()) as f64 / 1e6;
    Ok(Outcome { samples, work, verified: job.all_true(counts == expected)? })
}

fn messages(job: &Job<'_>, size: usize) -> Result<Outcome> {
    let keys = keys(job, job.me(), size);
    let (mut sorted, mut counts) = (vec![0; size], vec![0; WIDTH]);
    let samples = job.repeat(|| {
        let starts = by_owner(job.n(), &keys, &mut sorted);
        let (here, _) = job.world.exchange_flat(&sorted, &starts);
        here.into_iter().for_each(count_keys(job, &mut counts));
        Ok(())
    })?;
    outcome(job, size, samples, &counts)
}

fn one_sided<C: Words, M: Memory<u32>>(
    job: &Job<'_>,
    size: usize,
    cursor: C,
    make: impl FnOnce(usize) -> Result<M>,
) -> Result<Outcome> {
    let keys = keys(job, job.me(), size);
    let most = 2 * size + 1000;
    let room = make(most)?;
    let (mut sorted, mut counts) = (vec![0; size], vec![0; WIDTH]);
    let samples = job.repeat(|| {
        cursor.write(0, 0);
        job.barrier()?;
        let starts = by_owner(job.n(), &keys, &mut sorted);
        for i in 0..job.n() {
            let rank = (job.me() + i) % job.n();
            let part = &sorted[starts[rank]..starts[rank + 1]];
            let at = cursor.fetch_add(rank, 0, part.len() as u64)?;
            room.put(rank, at as usize, part)?;
        }
        room.fence()?;
        job.barrier()?;
        let here = cursor.load(job.me(), 0)? as usize;
        room.each_own(here, count_keys(job, &mut counts));
        job.barrier()
    })?;
    cursor.free()?;
    room.free()?;
    outcome(job, size, samples, &counts)
}
