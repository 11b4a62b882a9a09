//! bale index gather: each rank reads random elements of a distributed table.
//!
//! *Aggregated* sends requests in batches; their handlers push the answers into batches. *Direct*
//! is one get for each element. The version of MPI exchanges all requests and all answers by
//! `MPI_Alltoallv`.

use crate::histogram::{BATCH, DIRECT};
use crate::job::Sample;
use crate::memory::{Memory, segment, window};
use crate::{Job, Kernel, Outcome, Result, Side, rng::Rng, version};
use portolan::messages::{Context, Handlers, Item};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The kernel.
pub const KERNEL: Kernel = Kernel {
    name: "gather",
    size_is: "reads of a rank",
    size: 1 << 20,
    small: 4000,
    unit: "million/s",
    versions: &[
        version(Side::Portolan, "aggregated", aggregated),
        version(Side::Portolan, "direct", |job, size| direct(job, size, |len| segment(job, len))),
        version(Side::TwoSided, "alltoallv", messages),
        version(Side::Window, "direct", |job, size| direct(job, size, |len| window(job, len))),
    ],
};

/// Elements of a rank, as in bale.
const TABLE: usize = 1000;
const TOGETHER: usize = 256;

fn value(rank: usize, at: usize) -> u64 {
    (at * 4096 + rank) as u64 * 3 + 1
}

/// Returns the reads of this rank: rank and position.
fn reads(job: &Job<'_>, count: usize) -> Vec<(u32, u32)> {
    let mut rng = Rng::new(0x16, job.me());
    let mut read = || {
        let at = rng.below(TABLE * job.n());
        ((at % job.n()) as u32, (at / job.n()) as u32)
    };
    (0..count).map(|_| read()).collect()
}

fn outcome(
    job: &Job<'_>,
    samples: Vec<Sample>,
    list: &[(u32, u32)],
    got: impl Fn(usize) -> u64,
) -> Result<Outcome> {
    let mut reads = list.iter().enumerate();
    let right = reads.all(|(i, (rank, at))| got(i) == value(*rank as usize, *at as usize));
    let work = (list.len() * job.n()) as f64 / 1e6;
    Ok(Outcome { samples, work, verified: job.all_true(right)? })
}

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Ask {
    at: u32,
    slot: u32,
}

/// An element, and the slot of the read that it answers.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Answer {
    value: u64,
    slot: u64,
}

struct Ends {
    table: Vec<u64>,
    got: Vec<AtomicU64>,
}

impl Item for Ask {
    fn apply(batch: &[Ask], context: &Context<'_>) {
        let table = &context.state::<Ends>().table[..];
        let answers = context.batches::<Answer>().expect("a registered type");
        let answer = |Ask { at, slot }: &Ask| {
            let answer = Answer { value: table[*at as usize], slot: u64::from(*slot) };
            (context.origin(), answer)
        };
        answers.push_all(batch.iter().map(answer)).expect("answers");
    }
}

impl Item for Answer {
    fn apply(batch: &[Answer], context: &Context<'_>) {
        let got = &context.state::<Ends>().got[..];
        for Answer { value, slot } in batch {
            got[*slot as usize].store(*value, Relaxed);
        }
    }
}

fn aggregated(job: &Job<'_>, count: usize) -> Result<Outcome> {
    let list = reads(job, count);
    let ends = Arc::new(Ends {
        table: (0..TABLE).map(|at| value(job.me(), at)).collect(),
        got: (0..count).map(|_| AtomicU64::new(0)).collect(),
    });
    let handlers = Handlers::new().state(ends.clone());
    let messages =
        handlers.item_with::<Ask>(BATCH).item_with::<Answer>(BATCH).register(job.rt()?)?;
    let asks = messages.batches::<Ask>()?;
    let samples = job.repeat(|| {
        let ask = |(slot, (rank, at)): (usize, &(u32, u32))| {
            (*rank as usize, Ask { at: *at, slot: slot as u32 })
        };
        asks.push_all(list.iter().enumerate().map(ask))?;
        Ok(messages.quiesce()?)
    })?;
    messages.free()?;
    outcome(job, samples, &list, |slot| ends.got[slot].load(Relaxed))
}

fn messages(job: &Job<'_>, count: usize) -> Result<Outcome> {
    let list = reads(job, count);
    let table: Vec<u64> = (0..TABLE).map(|at| value(job.me(), at)).collect();
    let mut got = vec![0; count];
    let samples = job.repeat(|| {
        let mut asks = vec![Vec::with_capacity(count / job.n() + count / 16); job.n()];
        for (rank, at) in &list {
            asks[*rank as usize].push(*at);
        }
        let (asked, starts) = job.world.exchange(&asks);
        let answer = |rank: usize| {
            asked[starts[rank]..starts[rank + 1]].iter().map(|at| table[*at as usize]).collect()
        };
        let answers: Vec<Vec<u64>> = (0..job.n()).map(answer).collect();
        let (answered, mut starts) = job.world.exchange(&answers);
        for (got, (rank, _)) in got.iter_mut().zip(&list) {
            let next = &mut starts[*rank as usize];
            *got = answered[*next];
            *next += 1;
        }
        Ok(())
    })?;
    outcome(job, samples, &list, |slot| got[slot])
}

fn direct<M: Memory<u64>>(
    job: &Job<'_>,
    count: usize,
    make: impl FnOnce(usize) -> Result<M>,
) -> Result<Outcome> {
    let list = reads(job, count / DIRECT);
    let table = make(TABLE)?;
    (0..TABLE).for_each(|at| table.write(at, value(job.me(), at)));
    let mut got = vec![0; list.len()];
    let samples = job.repeat(|| {
        for (list, got) in list.chunks(TOGETHER).zip(got.chunks_mut(TOGETHER)) {
            let each = list.iter().zip(got.chunks_mut(1));
            table.get_all(
                each.map(|((rank, at), to)| (*rank as usize, *at as usize, to)).collect(),
            )?;
        }
        job.barrier()
    })?;
    table.free()?;
    outcome(job, samples, &list, |slot| got[slot])
}
