//! bale histogram: each rank increments random counters of a distributed table.
//!
//! *Aggregated* sends the positions in batches to the owner, which increments. *Direct* is one
//! atomic operation for each update. A rank's updates of its own counters go the same way.

use crate::job::Sample;
use crate::memory::{Words, segment, window};
use crate::{Job, Kernel, Outcome, Result, Side, pushes::Pushes, rng::Rng, version};
use portolan::messages::{Delivery, Handlers, Item};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The kernel.
pub const KERNEL: Kernel = Kernel {
    name: "histogram",
    size_is: "updates of a rank",
    size: 1 << 21,
    small: 5000,
    unit: "million/s",
    versions: &[
        version(Side::Portolan, "aggregated", aggregated),
        version(Side::Portolan, "direct", |job, size| direct(job, size, |len| segment(job, len))),
        version(Side::TwoSided, "aggregated", messages),
        version(Side::Window, "direct", |job, size| direct(job, size, |len| window(job, len))),
    ],
};

/// Counters of a rank, as in bale.
const TABLE: usize = 1000;
/// Bytes of a batch, which MPI sends over TCP without waiting for the receiver.
pub(crate) const BATCH: usize = 60 << 10;
/// Direct versions do this part of the updates, because MPI's take microseconds each.
pub(crate) const DIRECT: usize = 32;

/// An update: its rank and position.
type Update = (u32, u32);

fn updates(job: &Job<'_>, rank: usize, count: usize) -> impl Iterator<Item = Update> + use<> {
    let (n, mut rng) = (job.n(), Rng::new(0x4157, rank));
    (0..count).map(move |_| {
        let at = rng.below(TABLE * n);
        ((at % n) as u32, (at / n) as u32)
    })
}

fn outcome(
    job: &Job<'_>,
    count: usize,
    samples: Vec<Sample>,
    table: impl Fn(usize) -> u64,
) -> Result<Outcome> {
    let mut expected = vec![0; TABLE];
    for rank in 0..job.n() {
        for (owner, at) in updates(job, rank, count) {
            expected[at as usize] +=
                if owner as usize == job.me() { job.repeats as u64 } else { 0 };
        }
    }
    let right = (0..TABLE).all(|at| table(at) == expected[at]);
    let work = (count * job.n()) as f64 / 1e6;
    Ok(Outcome { samples, work, verified: job.all_true(right)? })
}

/// The position of a counter at its owner.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
struct Count(u64);

struct Table(Vec<AtomicU64>);

impl Item for Count {
    fn apply(batch: &[Count], delivery: &Delivery<'_>) {
        let table = &delivery.state::<Table>().0[..];
        for Count(at) in batch {
            let counter = &table[*at as usize];
            // A rank handles one batch at a time.
            counter.store(counter.load(Relaxed) + 1, Relaxed);
        }
    }
}

fn aggregated(job: &Job<'_>, count: usize) -> Result<Outcome> {
    let table = Arc::new(Table((0..TABLE).map(|_| AtomicU64::new(0)).collect()));
    let handlers = Handlers::new().state(table.clone()).item_with::<Count>(BATCH);
    let messages = handlers.register(job.rt()?)?;
    let list: Vec<Update> = updates(job, job.me(), count).collect();
    let counts = messages.batches::<Count>()?;
    let samples = job.repeat(|| {
        counts.push_all(list.iter().map(|(owner, at)| (*owner as usize, Count(u64::from(*at)))))?;
        Ok(messages.quiesce()?)
    })?;
    messages.free()?;
    outcome(job, count, samples, |at| table.0[at].load(Relaxed))
}

fn messages(job: &Job<'_>, count: usize) -> Result<Outcome> {
    let mut table = vec![0u64; TABLE];
    let list: Vec<Update> = updates(job, job.me(), count).collect();
    let samples = job.repeat(|| {
        let mut counts = Pushes::new(job.world, BATCH / 8, |batch: &[u64]| {
            batch.iter().for_each(|at| table[*at as usize] += 1);
        });
        for (owner, at) in &list {
            counts.push(*owner as usize, u64::from(*at));
        }
        counts.finish();
        Ok(())
    })?;
    outcome(job, count, samples, |at| table[at])
}

fn direct<M: Words>(
    job: &Job<'_>,
    count: usize,
    make: impl FnOnce(usize) -> Result<M>,
) -> Result<Outcome> {
    let count = count / DIRECT;
    let table = make(TABLE)?;
    let list: Vec<Update> = updates(job, job.me(), count).collect();
    let samples = job.repeat(|| {
        table.add_all(list.iter().map(|(owner, at)| (*owner as usize, *at as usize, 1)))?;
        table.fence()?;
        job.barrier()
    })?;
    let outcome = outcome(job, count, samples, |at| table.read(at))?;
    table.free()?;
    Ok(outcome)
}
