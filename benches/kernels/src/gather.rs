//! bale index gather: each rank reads random elements of a distributed table.
//!
//! *Aggregated* sends requests as items, whose handlers push the answers. Items arrive in any
//! order, so each carries its place. *In order* sends batches of positions, and the handler of a
//! batch sends the elements back in the same order. *Direct* is one get for each element. The
//! version of MPI exchanges all requests and all answers by `MPI_Alltoallv`.

use crate::histogram::{BATCH, DIRECT};
use crate::job::Sample;
use crate::memory::{Memory, segment, window};
use crate::{Job, Kernel, Outcome, Result, Side, rng::Rng, version};
use portolan::messages::{Delivery, Handlers, Item, Message};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// The kernel.
pub const KERNEL: Kernel = Kernel {
    name: "gather",
    size_is: "reads of a rank",
    size: 1 << 20,
    small: 4000,
    unit: "million/s",
    versions: &[
        version(Side::Portolan, "aggregated", items),
        version(Side::Portolan, "in order", batches),
        version(Side::Portolan, "direct", |job, size| direct(job, size, |len| segment(job, len))),
        version(Side::TwoSided, "alltoallv", messages),
        version(Side::Window, "direct", |job, size| direct(job, size, |len| window(job, len))),
    ],
};

/// Elements of a rank, as in bale.
const TABLE: usize = 1000;
const TOGETHER: usize = 256;
/// Reads in a batch.
const ASKS: usize = 8192;

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

/// Asks for the elements at the positions of the payload.
#[derive(Serialize, Deserialize)]
struct Ask {
    batch: u32,
}

/// The payload holds the elements of a batch, in the order of its positions.
#[derive(Serialize, Deserialize)]
struct Answer {
    batch: u32,
}

struct Ends {
    table: Vec<u64>,
    got: Vec<AtomicU64>,
    /// The reads of the batches under way.
    asked: Mutex<Vec<Vec<u32>>>,
}

impl Ends {
    fn new(job: &Job<'_>, count: usize) -> Arc<Ends> {
        Arc::new(Ends {
            table: (0..TABLE).map(|at| value(job.me(), at)).collect(),
            got: (0..count).map(|_| AtomicU64::new(0)).collect(),
            asked: Mutex::default(),
        })
    }
}

impl Message for Ask {
    type Reply = ();
    fn handle(self, delivery: &Delivery<'_>) {
        let table = &delivery.state::<Ends>().table[..];
        let value = |at: &[u8]| table[bytemuck::pod_read_unaligned::<u32>(at) as usize];
        let values: Vec<u64> = delivery.payload().chunks_exact(4).map(value).collect();
        let answer = Answer { batch: self.batch };
        let bytes = bytemuck::cast_slice::<u64, u8>(&values);
        delivery.spawn_with(delivery.origin(), &answer, bytes).expect("an answer");
    }
}

impl Message for Answer {
    type Reply = ();
    fn handle(self, delivery: &Delivery<'_>) {
        let ends = delivery.state::<Ends>();
        let slots = std::mem::take(&mut ends.asked.lock().expect("no panic")[self.batch as usize]);
        for (slot, value) in slots.iter().zip(delivery.payload().chunks_exact(8)) {
            ends.got[*slot as usize].store(bytemuck::pod_read_unaligned(value), Relaxed);
        }
    }
}

fn batches(job: &Job<'_>, count: usize) -> Result<Outcome> {
    let list = reads(job, count);
    let ends = Ends::new(job, count);
    let handlers = Handlers::new().state(ends.clone());
    let messages = handlers.message::<Ask>().message::<Answer>().register(job.rt()?)?;
    let ask = |rank: usize, (positions, slots): &mut (Vec<u32>, Vec<u32>)| -> Result<()> {
        let mut asked = ends.asked.lock().expect("no panic");
        let batch = asked.len() as u32;
        asked.push(std::mem::replace(slots, Vec::with_capacity(ASKS)));
        drop(asked);
        messages.spawn_with(rank, &Ask { batch }, bytemuck::cast_slice::<u32, u8>(positions))?;
        positions.clear();
        Ok(())
    };
    let empty = || (Vec::with_capacity(ASKS), Vec::with_capacity(ASKS));
    let samples = job.repeat(|| {
        let mut batches: Vec<_> = (0..job.n()).map(|_| empty()).collect();
        for (slot, (rank, at)) in list.iter().enumerate() {
            let batch = &mut batches[*rank as usize];
            batch.0.push(*at);
            batch.1.push(slot as u32);
            if batch.0.len() == ASKS {
                ask(*rank as usize, batch)?;
            }
        }
        batches.iter_mut().enumerate().try_for_each(|(rank, batch)| ask(rank, batch))?;
        messages.quiesce()?;
        ends.asked.lock().expect("no panic").clear();
        Ok(())
    })?;
    messages.free()?;
    outcome(job, samples, &list, |slot| ends.got[slot].load(Relaxed))
}

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct AskOne {
    at: u32,
    slot: u32,
}

/// An element, and the slot of the read that it answers.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct AnswerOne {
    value: u64,
    slot: u64,
}

impl Item for AskOne {
    fn apply(batch: &[AskOne], delivery: &Delivery<'_>) {
        let table = &delivery.state::<Ends>().table[..];
        let answers = delivery.batches::<AnswerOne>().expect("a registered type");
        let answer = |AskOne { at, slot }: &AskOne| {
            let answer = AnswerOne { value: table[*at as usize], slot: u64::from(*slot) };
            (delivery.origin(), answer)
        };
        answers.push_all(batch.iter().map(answer)).expect("answers");
    }
}

impl Item for AnswerOne {
    fn apply(batch: &[AnswerOne], delivery: &Delivery<'_>) {
        let got = &delivery.state::<Ends>().got[..];
        for AnswerOne { value, slot } in batch {
            got[*slot as usize].store(*value, Relaxed);
        }
    }
}

fn items(job: &Job<'_>, count: usize) -> Result<Outcome> {
    let list = reads(job, count);
    let ends = Ends::new(job, count);
    let handlers = Handlers::new().state(ends.clone());
    let messages =
        handlers.item_with::<AskOne>(BATCH).item_with::<AnswerOne>(BATCH).register(job.rt()?)?;
    let asks = messages.batches::<AskOne>()?;
    let samples = job.repeat(|| {
        let ask = |(slot, (rank, at)): (usize, &(u32, u32))| {
            (*rank as usize, AskOne { at: *at, slot: slot as u32 })
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
