//! Progress without the target's help.

use crate::child::{Ctx, own, step};
use portolan::internals::atomics::Rmw;
use portolan::internals::layout::Shape;
use portolan::internals::path::kernel::Scale;
use portolan::internals::transfer::TransferKind;
use std::time::{Duration, Instant};

/// How long the target computes.
const COMPUTES: Duration = Duration::from_millis(1000);
/// The origin must be done long before that.
const BOUND: Duration = Duration::from_millis(700);

/// What `rank` says, for all: whether another attempt is needed.
fn agreed(ctx: &Ctx, rank: usize, says: bool) -> bool {
    let all = ctx.engine.world().allgather(&*ctx.engine, &u64::from(says)).expect("allgather");
    all[rank] == 1
}

/// Rank 1 computes and calls nothing; rank 0 does one of each kind of operation
/// with it. The machine may be busy with other work, so one of three attempts
/// has to be in time.
pub fn progress(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let segment = ctx.allocate(200_000);
    own(&segment).fill(1);
    let set = engine.create_mutexes(engine.world(), 1).expect("mutexes");
    let at = segment.part(1).address();
    let mut times = Vec::new();
    for attempt in 0..3 {
        ctx.barrier();
        step(format!("progress: attempt {attempt}"));
        let begun = Instant::now();
        if ctx.me == 1 {
            while begun.elapsed() < COMPUTES {
                std::hint::spin_loop();
            }
        } else {
            // The target is to be computing by now.
            std::thread::sleep(Duration::from_millis(50));
            let mut took = Vec::new();
            let mut note = |what: &'static str, since: Instant| took.push((what, since.elapsed()));
            let t = Instant::now();
            assert_eq!(ctx.get(1, at, 100), vec![1; 100]);
            note("get", t);
            let t = Instant::now();
            assert_eq!(ctx.get(1, at + 1000, 150_000).len(), 150_000);
            note("long get", t);
            let t = Instant::now();
            ctx.put(1, at + 1000, &[1; 150_000]);
            engine.fence(1).expect("fence");
            note("long put and fence", t);
            let (t, one) = (Instant::now(), 1i32);
            let (source, shape) = ((&raw const one).cast::<u8>().cast_mut(), Shape::contiguous(4));
            // SAFETY: an accumulate only reads its source, four bytes.
            unsafe {
                engine.blocking(
                    TransferKind::Accumulate(Scale::Int(1)),
                    1,
                    at + 400,
                    source,
                    &shape,
                )
            }
            .expect("acc");
            engine.fence(1).expect("fence");
            note("acc and fence", t);
            let t = Instant::now();
            engine.rmw(1, at + 400, Rmw::AddInt(1)).expect("rmw");
            note("rmw", t);
            let t = Instant::now();
            engine.lock(&set, 0, 1).expect("lock");
            engine.unlock(&set, 0, 1).expect("unlock");
            assert!(engine.try_lock(&set, 0, 1).expect("try"));
            engine.unlock(&set, 0, 1).expect("unlock");
            note("lock", t);
            times.push((begun.elapsed(), took));
        }
        ctx.barrier();
        let in_time = times.last().is_some_and(|(all, _)| *all < BOUND);
        if agreed(ctx, 0, in_time) {
            break;
        }
    }
    if ctx.me == 0 {
        let best = times.iter().min_by_key(|t| t.0).expect("an attempt");
        assert!(best.0 < BOUND, "a computing target delays its peer: {best:?}");
    }
    engine.destroy_mutexes(&set).expect("destroy");
    ctx.free(segment);
}

/// Rank 1 sends something long to rank 0 and computes. Rank 0 waits in a call, so
/// rank 2 is served at once, whether or not rank 1's bytes have come.
pub fn bystander(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let segment = ctx.allocate(500_000);
    own(&segment).fill(0);
    let at = segment.part(0).address();
    let source = vec![1u8; 400_000];
    for bytes in [5000, 15_000, 60_000, 400_000] {
        let mut best = COMPUTES;
        for attempt in 0..3 {
            ctx.barrier();
            step(format!("bystander: {bytes} bytes, attempt {attempt}"));
            let begun = Instant::now();
            match ctx.me {
                1 => {
                    let shape = Shape::contiguous(bytes);
                    let local = source.as_ptr().cast_mut();
                    // SAFETY: the source lives until the wait below.
                    unsafe { engine.implicit(TransferKind::Put, 0, at, local, &shape) }
                        .expect("put");
                    while begun.elapsed() < COMPUTES / 2 {
                        std::hint::spin_loop();
                    }
                    engine.wait_implicit().expect("wait");
                }
                2 => {
                    std::thread::sleep(Duration::from_millis(50));
                    assert_eq!(ctx.get(0, at + 450_000, 8), [0; 8]);
                    engine.rmw(0, at + 450_008, Rmw::AddInt(1)).expect("rmw");
                    best = best.min(begun.elapsed());
                }
                _ => {}
            }
            ctx.barrier();
            if agreed(ctx, 2, best < COMPUTES / 3) {
                break;
            }
        }
        if ctx.me == 2 {
            assert!(best < COMPUTES / 3, "a third rank's {bytes} bytes delay a get: {best:?}");
        }
    }
    ctx.free(segment);
}

/// Who looks in a loop naps where ranks outnumber cores.
pub fn looks(ctx: &Ctx) {
    const LONG: Duration = Duration::from_millis(50);
    let engine = &*ctx.engine;
    step("looks: in a loop");
    ctx.barrier();
    let count = || {
        let (begun, mut looks) = (Instant::now(), 0);
        while begun.elapsed() < LONG {
            engine.probe().expect("probe");
            looks += 1;
        }
        looks
    };
    // 2500 naps have room, and some hundred thousand looks without naps. What others still
    // send may make for some time without.
    let least = (0..5).map(|_| count()).find(|looks| *looks < 50_000);
    assert!(!engine.is_crowded() || least.is_some(), "too many looks in {LONG:?}, five times");
    ctx.barrier();
}
