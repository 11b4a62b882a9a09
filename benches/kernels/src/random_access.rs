//! HPC Challenge RandomAccess: updates random words of a distributed table by exclusive or. As the
//! rules demand, a rank holds back at most 1,024 updates. Repeating all updates restores the table.
//!
//! *Aggregated* sends updates in batches to the owner. *Direct* is one atomic operation for each.

use crate::histogram::DIRECT;
use crate::job::Sample;
use crate::memory::{Words, segment, window};
use crate::{Job, Kernel, Outcome, Result, Side, pushes::Pushes, version};
use portolan::messages::{Delivery, Handlers, Item};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The kernel.
pub const KERNEL: Kernel = Kernel {
    name: "random-access",
    size_is: "words of the table per rank, as a power of two",
    size: 19,
    small: 11,
    unit: "million/s",
    versions: &[
        version(Side::Portolan, "aggregated", aggregated),
        version(Side::Portolan, "direct", |job, size| direct(job, size, |len| segment(job, len))),
        version(Side::TwoSided, "aggregated", messages),
        version(Side::Window, "direct", |job, size| direct(job, size, |len| window(job, len))),
    ],
};

const HELD: usize = 1024;
const UPDATES: usize = 4;

/// Multiplies by x in the field of polynomials over GF(2) modulo x^64 + x^2 + x + 1.
fn next(power: u64) -> u64 {
    (power << 1) ^ if power >> 63 == 1 { 7 } else { 0 }
}

fn times(a: u64, b: u64) -> u64 {
    (0..64).rev().fold(0, |sum, bit| next(sum) ^ if b >> bit & 1 == 1 { a } else { 0 })
}

fn power(n: u64) -> u64 {
    (0..64).rev().fold(1, |p, bit| {
        let square = times(p, p);
        if n >> bit & 1 == 1 { next(square) } else { square }
    })
}

/// The table: `ranks` times two to the power of `bits` words. The low bits of an update select the
/// word of a part, and its high bits select the rank.
#[derive(Clone, Copy)]
struct Spread {
    bits: usize,
    ranks: u64,
}

impl Spread {
    #[inline]
    fn owner(self, update: u64) -> usize {
        // The high half of the product is uniform over any number of ranks.
        (((update >> 32) * self.ranks) >> 32) as usize
    }

    #[inline]
    fn word(self, update: u64) -> usize {
        (update & ((1 << self.bits) - 1)) as usize
    }
}

fn updates(job: &Job<'_>, count: usize) -> impl Iterator<Item = u64> + use<> {
    let first = power((job.me() * count) as u64);
    std::iter::successors(Some(next(first)), |update| Some(next(*update))).take(count)
}

/// Measures `pass`, and runs it once more if the number of passes is odd. Each second one restores
/// the table, which `word` then reads.
fn measure(
    job: &Job<'_>,
    spread: Spread,
    count: usize,
    mut pass: impl FnMut() -> Result<()>,
) -> Result<(Vec<Sample>, f64)> {
    let samples: Vec<Sample> = job.repeat(&mut pass)?;
    if job.repeats % 2 == 1 {
        pass()?;
    }
    job.barrier()?;
    Ok((samples, (count as u64 * spread.ranks) as f64 / 1e6))
}

fn verify(
    job: &Job<'_>,
    (samples, work): (Vec<Sample>, f64),
    mut words: impl Iterator<Item = u64>,
) -> Result<Outcome> {
    let mut at = 0;
    let right = words.all(|word| {
        at += 1;
        word == at - 1
    });
    Ok(Outcome { samples, work, verified: job.all_true(right)? })
}

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
struct Update(u64);

struct Table {
    words: Vec<AtomicU64>,
    spread: Spread,
}

impl Item for Update {
    fn apply(batch: &[Update], delivery: &Delivery<'_>) {
        let Table { words, spread } = delivery.state();
        let (words, spread) = (&words[..], *spread);
        for Update(update) in batch {
            let word = &words[spread.word(*update)];
            // A rank handles one batch at a time.
            word.store(word.load(Relaxed) ^ update, Relaxed);
        }
    }
}

fn aggregated(job: &Job<'_>, bits: usize) -> Result<Outcome> {
    let spread = Spread { bits, ranks: job.n() as u64 };
    let table = Arc::new(Table { words: (0..1 << bits).map(AtomicU64::new).collect(), spread });
    let handlers = Handlers::new().state(table.clone());
    let messages = handlers.item_with::<Update>(8 * HELD / job.n()).register(job.rt()?)?;
    let batches = messages.batches::<Update>()?;
    let count = UPDATES << bits;
    let measured = measure(job, spread, count, || {
        let to_owner = |update| (spread.owner(update), Update(update));
        batches.push_all(updates(job, count).map(to_owner))?;
        Ok(messages.quiesce()?)
    })?;
    messages.free()?;
    verify(job, measured, table.words.iter().map(|word| word.load(Relaxed)))
}

fn messages(job: &Job<'_>, bits: usize) -> Result<Outcome> {
    let spread = Spread { bits, ranks: job.n() as u64 };
    let mut table: Vec<u64> = (0..1 << bits).collect();
    let count = UPDATES << bits;
    let measured = measure(job, spread, count, || {
        let mut pushes = Pushes::new(job.world, HELD / job.n(), |batch: &[u64]| {
            batch.iter().for_each(|update| table[spread.word(*update)] ^= update);
        });
        updates(job, count).for_each(|update| pushes.push(spread.owner(update), update));
        pushes.finish();
        Ok(())
    })?;
    verify(job, measured, table.into_iter())
}

fn direct<M: Words>(
    job: &Job<'_>,
    bits: usize,
    make: impl FnOnce(usize) -> Result<M>,
) -> Result<Outcome> {
    let spread = Spread { bits, ranks: job.n() as u64 };
    let table = make(1 << bits)?;
    (0..1 << bits).for_each(|at| table.write(at, at as u64));
    job.barrier()?;
    let count = (UPDATES << bits) / DIRECT;
    let measured = measure(job, spread, count, || {
        table.xor_all(updates(job, count).map(|u| (spread.owner(u), spread.word(u), u)))?;
        table.fence()?;
        job.barrier()
    })?;
    let outcome = verify(job, measured, (0..1 << bits).map(|at| table.read(at)))?;
    table.free()?;
    Ok(outcome)
}
