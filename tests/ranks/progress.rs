//! Tests progress without the target's help.

use crate::child::{Ctx, compute_until, own, step};
use portolan_base::layout::Shape;
use portolan_engine::atomics::Rmw;
use portolan_engine::path::kernel::Scale;
use portolan_engine::transfer::{Transfer, TransferKind};
use std::time::{Duration, Instant};

const DONE: (usize, u8) = (199_999, 9);

/// Rank 1 computes and makes no call until rank 0 is done. Rank 0 performs one operation of each
/// kind with it. An operation that needed rank 1's help would never end.
pub fn progress(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let segment = ctx.allocate(200_000);
    own(&segment).fill(1);
    let set = engine.create_mutexes(engine.world(), Ok(1)).expect("mutexes");
    let at = segment.part(1).address();
    ctx.barrier();
    if ctx.me == 1 {
        step("progress: compute");
        compute_until(&segment, DONE.0, DONE.1);
    } else if ctx.me == 0 {
        step("progress: get");
        assert_eq!(ctx.get(1, at, 100), vec![1; 100]);
        assert_eq!(ctx.get(1, at + 1000, 150_000).len(), 150_000);
        step("progress: put");
        ctx.put(1, at + 1000, &[1; 150_000]);
        engine.fence(1).expect("fence");
        step("progress: accumulate");
        let one = 1i32;
        let (source, shape) = ((&raw const one).cast::<u8>().cast_mut(), Shape::contiguous(4));
        // SAFETY: an accumulate only reads its source, which has four bytes.
        unsafe {
            engine.blocking(&Transfer::new(
                TransferKind::Accumulate(Scale::Int(1)),
                1,
                at + 400,
                source,
                &shape,
            ))
        }
        .expect("acc");
        engine.fence(1).expect("fence");
        step("progress: read-modify-write");
        engine.rmw(1, at + 400, Rmw::add::<i32>(1)).expect("rmw");
        step("progress: lock");
        engine.lock(&set, 0, 1).expect("lock");
        engine.unlock(&set, 0, 1).expect("unlock");
        assert!(engine.try_lock(&set, 0, 1).expect("try"));
        engine.unlock(&set, 0, 1).expect("unlock");
        ctx.put(1, at + DONE.0, &[DONE.1]);
    }
    ctx.barrier();
    engine.destroy_mutexes(&set).expect("destroy");
    ctx.free(segment);
}

/// Rank 1 sends a long put to rank 0 and computes until rank 2 is done. Rank 0 waits in a call, so
/// rank 2 is served whether or not rank 1's bytes have arrived.
pub fn bystander(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let segment = ctx.allocate(500_000);
    own(&segment).fill(0);
    let at = segment.part(0).address();
    let source = vec![1u8; 400_000];
    for bytes in [5000, 15_000, 60_000, 400_000] {
        own(&segment)[DONE.0] = 0;
        ctx.barrier();
        step(format!("bystander: {bytes} bytes"));
        match ctx.me {
            1 => {
                let shape = Shape::contiguous(bytes);
                let local = source.as_ptr().cast_mut();
                // SAFETY: `source` lives until the wait below.
                unsafe { engine.implicit(&Transfer::new(TransferKind::Put, 0, at, local, &shape)) }
                    .expect("put");
                compute_until(&segment, DONE.0, DONE.1);
                engine.wait_implicit().expect("wait");
            }
            2 => {
                assert_eq!(ctx.get(0, at + 450_000, 8), [0; 8]);
                engine.rmw(0, at + 450_008, Rmw::add::<i32>(1)).expect("rmw");
                ctx.put(1, segment.part(1).address() + DONE.0, &[DONE.1]);
            }
            _ => {}
        }
        ctx.barrier();
    }
    ctx.free(segment);
}

/// A rank that polls in a loop naps if ranks outnumber cores.
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
    // About 2,500 naps fit into this time, or a few hundred thousand polls without naps. Messages
    // that others still send may prevent naps for some time.
    let least = (0..5).map(|_| count()).find(|looks| *looks < 50_000);
    assert!(!engine.is_crowded() || least.is_some(), "too many looks in {LONG:?}, five times");
    ctx.barrier();
}
