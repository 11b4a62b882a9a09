//! Tests several threads of a rank at once.

use crate::child::{Ctx, own, step};
use crate::fences::{receive_number, send_number};
use crate::rng::Rng;
use portolan_base::layout::Shape;
use portolan_engine::atomics::Rmw;
use portolan_engine::atomics::notifications::Notifications;
use portolan_engine::memory::segment::Segment;
use portolan_engine::path::kernel::Scale;
use portolan_engine::transfer::{Handle, Transfer, TransferKind};
use std::sync::atomic::{AtomicBool, Ordering};

const THREADS: usize = 3;
const SLOT: usize = 50_000;

/// Threads share counters and mutexes, and each thread has bytes of its own.
pub fn threads(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let segment = ctx.allocate(64 + SLOT * THREADS * ctx.n);
    own(&segment).fill(0);
    let set = engine.create_mutexes(engine.world(), Ok(1)).expect("mutexes");
    ctx.barrier();
    let rounds = if ctx.quick { 30 } else { 120 / ctx.n };
    step("threads: all at once");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (segment, set) = (&segment, &set);
            scope.spawn(move || {
                for round in 0..rounds {
                    let target = (ctx.me + round + thread) % ctx.n;
                    let at = segment.part(target).address();
                    engine.rmw(target, at, Rmw::add::<i64>(1)).expect("rmw");
                    add_one(ctx, target, at);
                    engine.lock(set, 0, target).expect("lock");
                    let value: i64 = ctx.load(target, at + 8);
                    ctx.store(target, at + 8, value + 1);
                    engine.unlock(set, 0, target).expect("unlock");
                    bytes_of_ones_own(ctx, segment, thread, round, target);
                    if round % 8 == 0 {
                        engine.fence_all().expect("fence");
                    }
                }
            });
        }
    });
    step("threads: totals");
    ctx.barrier();
    let (mut adds, mut locked) = (0, 0);
    for target in 0..ctx.n {
        let at = segment.part(target).address();
        adds += ctx.load::<i64>(target, at);
        locked += ctx.load::<i64>(target, at + 8);
    }
    let all = (ctx.n * THREADS * rounds) as i64;
    assert_eq!(adds, 2 * all, "fetch-and-adds and accumulates of threads");
    assert_eq!(locked, all, "updates of threads under mutexes");
    engine.destroy_mutexes(&set).expect("destroy");
    ctx.free(segment);
}

/// Threads notify a rank at the same time. No notification is lost, and each one arrives after the
/// put before it.
pub fn notifications(ctx: &Ctx) {
    const TIMES: usize = 300;
    let engine = &**ctx.engine;
    let words = Notifications::create(engine).expect("notifications");
    let segment = ctx.allocate(8 * THREADS);
    own(&segment).fill(0);
    ctx.barrier();
    let (right, left) = ((ctx.me + 1) % ctx.n, (ctx.me + ctx.n - 1) % ctx.n);
    step("notifications: all at once");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let at = segment.part(right).address() + 8 * thread;
            let words = &words;
            scope.spawn(move || {
                for round in 1..=TIMES {
                    ctx.store(right, at, round as i64);
                    words.notify(engine, right).expect("notify");
                }
            });
        }
    });
    step("notifications: wait");
    let sent = THREADS * TIMES;
    for number in 1..=sent {
        let come = words.wait(engine, left, number as u32).expect("wait");
        assert!((number..=sent).contains(&(come as usize)), "{come} at number {number}");
    }
    for thread in 0..THREADS {
        let at = segment.part(ctx.me).address() + 8 * thread;
        assert_eq!(ctx.load::<i64>(ctx.me, at), TIMES as i64, "the last put of thread {thread}");
    }
    ctx.barrier();
    words.free(engine).expect("free");
    ctx.free(segment);
}

fn add_one(ctx: &Ctx, target: usize, at: usize) {
    let one = 1i64;
    let source = (&raw const one).cast::<u8>().cast_mut();
    // SAFETY: an accumulate only reads its source, which has eight bytes.
    unsafe {
        ctx.engine.blocking(&Transfer::new(
            TransferKind::Accumulate(Scale::Long(1)),
            target,
            at,
            source,
            &Shape::contiguous(8),
        ))
    }
    .expect("acc");
}

fn bytes_of_ones_own(ctx: &Ctx, segment: &Segment, thread: usize, round: usize, target: usize) {
    let engine = &*ctx.engine;
    let at = segment.part(target).address() + 64 + SLOT * (ctx.me * THREADS + thread);
    let bytes = [8, 700, 6000, SLOT][round % 4];
    let mut data = Rng::new(ctx.seed, &[ctx.me as u64, thread as u64, round as u64]).bytes(bytes);
    if round.is_multiple_of(2) {
        ctx.put(target, at, &data);
    } else {
        let mut handle = Handle::default();
        let shape = Shape::strided(&[4, bytes / 4], &[4], &[4]).expect("a shape");
        // SAFETY: `data` lives until the wait.
        unsafe {
            handle.issue(
                engine,
                &Transfer::new(TransferKind::Put, target, at, data.as_mut_ptr(), &shape),
            )
        }
        .expect("put");
        handle.wait(engine).expect("wait");
    }
    assert!(ctx.get(target, at, bytes) == data, "put; get of thread {thread} in round {round}");
}

/// A thread's fence covers its own operations, even if another thread of the rank is in a fence.
pub fn fences(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let segment = ctx.allocate(4096);
    own(&segment).fill(0);
    ctx.barrier();
    let rounds = if ctx.quick { 300 } else { 1000 };
    let at = segment.part(1).address();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        if ctx.me == 0 {
            for other in 1..THREADS {
                let done = &done;
                scope.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        ctx.put(1, at + 64 * other, &[1; 8]);
                        engine.fence_all().expect("fence");
                        // If this thread waits for no other rank, only the yield lets another
                        // simulated thread run.
                        std::thread::yield_now();
                    }
                });
            }
        }
        for round in 1..=rounds {
            step(format!("thread_fences: round {round}"));
            if ctx.me == 0 {
                ctx.store(1, at, round);
                engine.fence_all().expect("fence");
                send_number(1, round);
                receive_number(ctx, 1);
            } else if ctx.me == 1 {
                receive_number(ctx, 0);
                let found = &own(&segment)[..4];
                assert_eq!(found, round.to_ne_bytes(), "what the fence covers, in round {round}");
                send_number(0, round);
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    ctx.barrier();
    ctx.free(segment);
}
