//! Tests aggregated items: all sizes, from handlers and threads, sent by a flush and by age.

use crate::am_typed::{Seen, sum_over};
use crate::child::{Ctx, refused, step};
use crate::rng::Rng;
use bytemuck::{Pod, Zeroable};
use portolan::ErrorKind;
use portolan::internals::RegisterIn;
use portolan::messages::{Delivery, Handlers, Item, Messages};
use portolan_base::trace::Cause;
use std::sync::Arc;
use std::sync::atomic::Ordering;

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(transparent)]
pub struct Add(pub u64);

impl Item for Add {
    fn apply(batch: &[Add], delivery: &Delivery<'_>) {
        let seen = delivery.state::<Seen>();
        seen.count.fetch_add(batch.len() as u64, Ordering::Relaxed);
        seen.sum.fetch_add(batch.iter().map(|a| a.0).sum(), Ordering::Relaxed);
    }
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Odd([u8; 13]);

impl Item for Odd {
    fn apply(batch: &[Odd], delivery: &Delivery<'_>) {
        for item in batch {
            assert!(item.0.windows(2).all(|w| w[1] == w[0].wrapping_add(1)), "{item:?}");
            delivery.state::<Seen>().note(item.0[0].into());
        }
    }
}

/// An item with a stricter alignment than the transferred bytes.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(transparent)]
struct Wide(u128);

impl Item for Wide {
    fn apply(batch: &[Wide], delivery: &Delivery<'_>) {
        assert!(batch.as_ptr().is_aligned());
        for item in batch {
            assert_eq!(item.0 >> 64, item.0 & u128::from(u64::MAX));
            delivery.state::<Seen>().note(item.0 as u64);
        }
    }
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Tick;

impl Item for Tick {
    fn apply(batch: &[Tick], delivery: &Delivery<'_>) {
        delivery.state::<Seen>().count.fetch_add(batch.len() as u64, Ordering::Relaxed);
    }
}

/// An item that handlers forward to random ranks until `left` is 0.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Hop {
    seed: u64,
    left: u64,
}

impl Item for Hop {
    fn apply(batch: &[Hop], delivery: &Delivery<'_>) {
        let hops = delivery.batches::<Hop>().expect("batches");
        let seen = delivery.state::<Seen>();
        for hop in batch {
            seen.note(1);
            if hop.left > 0 {
                let mut rng = Rng::new(hop.seed, &[]);
                let next = Hop { seed: rng.next(), left: hop.left - 1 };
                hops.push(rng.below(delivery.size()), next).expect("push");
            }
        }
    }
}

fn totals(ctx: &Ctx, messages: &Messages<'_>, what: &str, count: u64, sum: u64) {
    messages.quiesce().expect("quiesce");
    let seen = messages.state::<Seen>().expect("the state");
    let world = ctx.engine.world();
    let expected = world.allgather(&*ctx.engine, &[count, sum]).expect("allgather");
    assert_eq!(
        sum_over(ctx, &seen.count),
        expected.iter().map(|e| e[0]).sum::<u64>(),
        "{what}: count"
    );
    assert_eq!(sum_over(ctx, &seen.sum), expected.iter().map(|e| e[1]).sum::<u64>(), "{what}: sum");
    seen.count.store(0, Ordering::Relaxed);
    seen.sum.store(0, Ordering::Relaxed);
    ctx.barrier();
}

pub fn items(ctx: &Ctx) {
    let messages = Handlers::new()
        .state(Arc::new(Seen::default()))
        .item::<Add>()
        .item::<Odd>()
        .item_with::<Wide>(100)
        .item::<Tick>()
        .item::<Hop>()
        .register_in(&ctx.engine)
        .expect("register");
    let mut rng = Rng::new(ctx.seed, &[ctx.me as u64, 5]);
    let many = if ctx.quick { 30_000 } else { 200_000 };
    step("items: numbers");
    let adds = messages.batches::<Add>().expect("batches");
    let mut sum = 0;
    for _ in 0..many {
        let value = rng.next() >> 32;
        sum += value;
        adds.push(rng.below(ctx.n), Add(value)).expect("push");
    }
    totals(ctx, &messages, "numbers", many, sum);
    step("items: numbers from an iterator");
    (sum, rng) = (0, Rng::new(ctx.seed, &[ctx.me as u64, 6]));
    let draw = |i| {
        let value = rng.next() >> 32;
        sum += value;
        if i % 1000 == 0 {
            // The iterator may push and flush too.
            sum += value;
            adds.push(rng.below(ctx.n), Add(value)).expect("push");
            if i % 7000 == 0 {
                adds.flush().expect("flush");
            }
        }
        (rng.below(ctx.n), Add(value))
    };
    adds.push_all((0..many).map(draw)).expect("push_all");
    totals(ctx, &messages, "numbers from an iterator", many + many.div_ceil(1000), sum);
    step("items: an iterator with a wrong rank");
    let wrong = adds.push_all([(ctx.me, Add(1)), (ctx.n, Add(7)), (ctx.me, Add(1))]);
    refused(ErrorKind::Rank, "Batches::push_all", wrong);
    totals(ctx, &messages, "before a wrong rank", 1, 1);
    step("items: odd sizes");
    sum = 0;
    for _ in 0..many / 10 {
        let first = rng.next() as u8;
        sum += u64::from(first);
        let item = Odd(std::array::from_fn(|i| first.wrapping_add(i as u8)));
        messages.aggregate(rng.below(ctx.n), item).expect("push");
    }
    totals(ctx, &messages, "odd sizes", many / 10, sum);
    step("items: wide");
    sum = 0;
    for _ in 0..many / 10 {
        let half = rng.next() >> 20;
        sum += half;
        messages
            .aggregate(rng.below(ctx.n), Wide(u128::from(half) << 64 | u128::from(half)))
            .expect("push");
    }
    totals(ctx, &messages, "wide", many / 10, sum);
    step("items: without bytes");
    for _ in 0..many / 10 {
        messages.aggregate(rng.below(ctx.n), Tick).expect("push");
    }
    totals(ctx, &messages, "without bytes", many / 10, 0);
    step("items: from handlers");
    for _ in 0..many / 100 {
        let hop = Hop { seed: rng.next(), left: 9 };
        messages.aggregate(rng.below(ctx.n), hop).expect("push");
    }
    totals(ctx, &messages, "from handlers", many / 10, many / 10);
    if let Ok(endpoint) = messages.endpoint() {
        step("items: from threads");
        std::thread::scope(|scope| {
            for thread in 0..3usize {
                let seed = rng.next();
                scope.spawn(move || {
                    let mut rng = Rng::new(seed, &[]);
                    for i in 0..many / 30 {
                        endpoint.aggregate(rng.below(ctx.n), Add(1)).expect("push");
                        if i % 1000 == thread as u64 {
                            endpoint.flush().expect("flush");
                        }
                    }
                });
            }
            for _ in 0..many / 10 {
                adds.push(rng.below(ctx.n), Add(1)).expect("push");
            }
        });
        let count = many / 30 * 3 + many / 10;
        totals(ctx, &messages, "from threads", count, count);
        step("items: an iterator that waits for another thread's flush");
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for _ in 0..10 {
                    endpoint.aggregate(ctx.me, Add(1)).expect("push");
                    endpoint.flush().expect("flush");
                    send.send((ctx.me, Add(1))).expect("the iterator is there");
                }
            });
            adds.push_all(receive).expect("push_all");
        });
        totals(ctx, &messages, "an iterator that waits", 20, 20);
    } else {
        assert!(ctx.engine.thread_level() != portolan_engine::mpi::init::ThreadLevel::Multiple);
    }
    step("items: flushed");
    adds.push((ctx.me + 1) % ctx.n, Add(3)).expect("push");
    adds.flush().expect("flush");
    let seen = messages.state::<Seen>().expect("the state");
    let what = || "a flushed item".to_string();
    let come = || Ok(seen.count.load(Ordering::Relaxed) == 1);
    ctx.engine.wait_for(Cause::Other, &what, come).expect("wait");
    ctx.barrier();
    step("items: aged");
    seen.count.store(0, Ordering::Relaxed);
    ctx.barrier();
    adds.push((ctx.me + 1) % ctx.n, Add(3)).expect("push");
    let come = || Ok(seen.count.load(Ordering::Relaxed) == 1);
    ctx.engine.wait_for(Cause::Other, &what, come).expect("wait");
    ctx.barrier();
    if ctx.engine.has_thread() {
        step("items: aged while an iterator waits");
        seen.count.store(0, Ordering::Relaxed);
        seen.sum.store(0, Ordering::Relaxed);
        ctx.barrier();
        adds.push(ctx.me, Add(3)).expect("push");
        let waiting = std::iter::once_with(|| {
            while seen.count.load(Ordering::Relaxed) == 0 {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            (ctx.me, Add(4))
        });
        adds.push_all(waiting).expect("push_all");
        totals(ctx, &messages, "aged while an iterator waits", 2, 7);
    }
    messages.free().expect("free");
}
