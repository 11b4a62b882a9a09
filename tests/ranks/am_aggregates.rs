//! Tests aggregated items, and sends from several threads.

use crate::am::{pattern, register, unregister};
use crate::child::{Ctx, step};
use crate::rng::Rng;
use portolan_base::trace::Cause;
use portolan_engine::am::aggregate::Aggregator;
use portolan_engine::am::{Accept, Am, Arrival, Completion, Destination, Then};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Aggregated items arrive after a full buffer, a flush, their age limit or quiescence. Handlers
/// aggregate items too.
pub fn aggregates(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let (sum, items) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let counted = (sum.clone(), items.clone());
    let again: Arc<OnceLock<Arc<Aggregator>>> = Arc::default();
    let nested = again.clone();
    let n = ctx.n;
    let id = register(ctx, "aggregates", |_| {
        move |engine: &Am, m: &Arrival<'_>| {
            let data = m.data.expect("batches come whole");
            let count = u64::from_ne_bytes(m.header[2..10].try_into().expect("a count"));
            assert_eq!((&m.header[..2], data.len() as u64), (b"hd".as_slice(), count * 8));
            for item in data.chunks_exact(8) {
                let value = u64::from_ne_bytes(item.try_into().expect("a word"));
                counted.0.fetch_add(value, Ordering::Relaxed);
                counted.1.fetch_add(1, Ordering::Relaxed);
                if value > 0 && value.is_multiple_of(64) {
                    nested.get().expect("set").push_value(
                        engine,
                        value as usize / 64 % n,
                        value / 2,
                    )?;
                }
            }
            Ok(Accept::DONE)
        }
    });
    let aggregator = Aggregator::new(engine, id, b"hd", 8, 4096).expect("aggregator");
    assert!(again.set(aggregator.clone()).is_ok());
    ctx.barrier();
    let mut rng = Rng::new(ctx.seed, &[ctx.me as u64, 5]);
    let (mut expected, mut number) = (0u64, 0u64);
    let mut push = |target: usize| {
        let mut value = rng.below(100_000) as u64;
        aggregator.push_value(engine, target, value).expect("push");
        loop {
            (expected, number) = (expected + value, number + 1);
            if value == 0 || !value.is_multiple_of(64) {
                break;
            }
            value /= 2;
        }
    };
    for i in 0..if ctx.quick { 20_000 } else { 200_000 } {
        push(i % ctx.n);
        if i % 5000 == 0 {
            step(format!("aggregates: item {i}"));
            aggregator.flush(engine).expect("flush");
        }
    }
    assert!(aggregator.push(engine, ctx.n, &[0; 8]).is_err(), "a rank outside");
    assert!(aggregator.push(engine, 0, &[0; 7]).is_err(), "an item of another size");
    engine.quiesce().expect("quiesce");
    let mine = [sum.load(Ordering::Relaxed), items.load(Ordering::Relaxed), expected, number];
    let all: Vec<[u64; 4]> = engine.world().allgather(engine, &mine).expect("allgather");
    let total = |i: usize| all.iter().map(|x| x[i]).sum::<u64>();
    assert_eq!((total(0), total(1)), (total(2), total(3)), "sums and items");
    step("aggregates: by age");
    // Read the count before any rank can push again: the item may arrive during the barrier.
    let before = items.load(Ordering::Relaxed);
    ctx.barrier();
    aggregator.push_value(engine, (ctx.me + 1) % ctx.n, 1u64).expect("push");
    engine
        .wait_for(Cause::Other, &|| "an item that nobody flushes".into(), || {
            Ok(items.load(Ordering::Relaxed) > before)
        })
        .expect("wait");
    ctx.barrier();
    drop(again);
    unregister(ctx, id);
}

/// Completion handlers flush the items of a thread that may be sending a batch of them.
pub fn flushes(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let items = Arc::new(AtomicU64::new(0));
    let count = items.clone();
    let item = register(ctx, "flushed items", |_| {
        move |_: &Am, m: &Arrival<'_>| {
            count.fetch_add(m.len as u64 / 8, Ordering::Relaxed);
            Ok(Accept::DONE)
        }
    });
    let aggregator = Aggregator::new(engine, item, b"", 8, 64).expect("aggregator");
    let flushed = aggregator.clone();
    let flush = register(ctx, "flushes", |_| {
        move |_: &Am, m: &Arrival<'_>| {
            let flushed = flushed.clone();
            let run: Completion = Box::new(move |am, _| flushed.flush(am).expect("flush"));
            let then = if m.header[0] == 0 { Then::Inline(run) } else { Then::Later(run) };
            Ok(Accept { to: Destination::Taken, then })
        }
    });
    let (right, rounds) = ((ctx.me + 1) % ctx.n, if ctx.quick { 2000 } else { 20_000 });
    for round in 0..rounds {
        step(format!("flushes: round {round}"));
        (0..10).for_each(|_| aggregator.push_value(engine, right, 1u64).expect("push"));
        engine.send_message(right, flush, &[(round % 2) as u8], &[]).expect("send");
    }
    engine.quiesce().expect("quiesce");
    assert_eq!(items.load(Ordering::Relaxed), 10 * rounds);
    unregister(ctx, flush);
    unregister(ctx, item);
}

pub fn senders(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let sum = Arc::new(AtomicU64::new(0));
    let count = sum.clone();
    let id = register(ctx, "senders", |_| {
        move |_: &Am, m: &Arrival<'_>| {
            count.fetch_add(m.len as u64 + 1, Ordering::Relaxed);
            Ok(Accept { to: Destination::Buffer, then: Then::Nothing })
        }
    });
    let rounds = if ctx.quick { 300 } else { 2000 };
    step("senders: three threads");
    std::thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || {
                for i in 0..rounds {
                    let data = pattern(if i % 50 == 0 { 150_000 } else { i % 100 }, 0);
                    engine.send_message((i + thread) % ctx.n, id, &[0; 16], &data).expect("send");
                }
            });
        }
    });
    engine.quiesce().expect("quiesce");
    let one: u64 =
        (0..rounds as u64).map(|i| 1 + if i % 50 == 0 { 150_000 } else { i % 100 }).sum();
    let all: Vec<u64> =
        engine.world().allgather(engine, &sum.load(Ordering::Relaxed)).expect("allgather");
    assert_eq!(all.iter().sum::<u64>(), one * 3 * ctx.n as u64);
    unregister(ctx, id);
}
