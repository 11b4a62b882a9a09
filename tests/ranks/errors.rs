//! Bad arguments: each call returns its kind of error and changes nothing.

use crate::child::{Ctx, own, refused, step};
use portolan::{ErrorKind, Result};
use portolan_base::layout::{Shape, Vector};
use portolan_engine::atomics::Rmw;
use portolan_engine::path::Path;
use portolan_engine::path::kernel::Scale;
use portolan_engine::transfer::{Handle, Transfer, TransferKind};

const BYTES: usize = 1000;

/// Makes a transfer of every kind by every form of call. All must have the same outcome.
fn every_call(
    ctx: &Ctx,
    target: usize,
    at: usize,
    local: *mut u8,
    bytes: usize,
) -> Vec<(String, Result<()>)> {
    let engine = &*ctx.engine;
    let mut all = Vec::new();
    let shape = Shape::contiguous(bytes);
    // SAFETY: `local` has `bytes` bytes, or the calls refuse it before any byte moves.
    unsafe {
        all.push(("put".to_string(), engine.put(target, at, local, bytes)));
        all.push(("get".to_string(), engine.get(target, at, local, bytes)));
        for kind in [TransferKind::Put, TransferKind::Get, TransferKind::Accumulate(Scale::Int(1))]
        {
            all.push((
                format!("blocking {kind:?}"),
                engine.blocking(&Transfer::new(kind, target, at, local, &shape)),
            ));
            all.push((
                format!("implicit {kind:?}"),
                engine.implicit(&Transfer::new(kind, target, at, local, &shape)),
            ));
            let mut handle = Handle::default();
            let issued = handle.issue(engine, &Transfer::new(kind, target, at, local, &shape));
            all.push((format!("handle {kind:?}"), issued.and_then(|()| handle.wait(engine))));
            let mut handle = Handle::default();
            handle.set_aggregate().expect("a fresh handle");
            let issued = handle.issue(engine, &Transfer::new(kind, target, at, local, &shape));
            all.push((format!("aggregate {kind:?}"), issued.and_then(|()| handle.wait(engine))));
            let (l, r) = ([local as usize], [at]);
            let list = [Vector { block: bytes, local: &l, remote: &r }];
            all.push((format!("vector {kind:?}"), engine.vector(kind, target, &list)));
        }
    }
    engine.wait_implicit().expect("nothing is left to wait for");
    all
}

pub fn errors(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let segment = ctx.allocate(BYTES);
    own(&segment).fill(7);
    ctx.barrier();
    let mut local = vec![3u8; 2 * BYTES];
    let p = local.as_mut_ptr();
    let outside = local.as_ptr() as usize;
    for target in 0..ctx.n {
        let at = segment.part(target).address();
        step(format!("errors: at rank {target}"));
        let must_fail =
            |kind: ErrorKind, what: &str, t: usize, at: usize, p: *mut u8, bytes: usize| {
                for (call, result) in every_call(ctx, t, at, p, bytes) {
                    refused(kind, &format!("{what}: {call} of {bytes} bytes"), result);
                }
            };
        must_fail(ErrorKind::Rank, "rank outside", ctx.n, at, p, 8);
        must_fail(ErrorKind::Rank, "rank far outside", usize::MAX, at, p, 8);
        must_fail(ErrorKind::Address, "address outside", target, outside, p, 8);
        must_fail(ErrorKind::Argument, "null remote address", target, 0, p, 8);
        must_fail(ErrorKind::Address, "highest address", target, usize::MAX - 3, p, 8);
        must_fail(ErrorKind::Address, "one byte over the end", target, at + BYTES - 7, p, 8);
        must_fail(ErrorKind::Address, "all beyond the end", target, at + BYTES, p, 4);
        must_fail(ErrorKind::Address, "all but one byte over", target, at + BYTES - 1, p, BYTES);
        must_fail(
            ErrorKind::Address,
            "one byte before the start",
            target,
            at.wrapping_sub(1),
            p,
            8,
        );
        must_fail(ErrorKind::Address, "longer than the segment", target, at, p, BYTES + 4);
        must_fail(ErrorKind::Argument, "null local address", target, at, std::ptr::null_mut(), 8);

        step(format!("errors: nothing at rank {target}"));
        for at in [at, at + BYTES, 0, 1, outside, usize::MAX] {
            for p in [p, std::ptr::null_mut()] {
                for (call, result) in every_call(ctx, target, at, p, 0) {
                    result.unwrap_or_else(|e| panic!("{call} of no bytes at {at:#x}: {e}"));
                }
            }
        }
        numbers(ctx, target, at, p);
        vectors(ctx, target, at, p);
    }
    for target in [ctx.n, usize::MAX] {
        refused(ErrorKind::Rank, "fence", engine.fence(target));
        refused(ErrorKind::Rank, "wait for a target", engine.wait_implicit_to(target));
        refused(ErrorKind::Rank, "rmw", engine.rmw(target, 0, Rmw::add::<i32>(1)));
    }
    ctx.barrier();
    assert!(own(&segment).iter().all(|&b| b == 7), "a refused call changed memory");
    assert!(local.iter().all(|&b| b == 3), "a refused call changed local memory");
    freed(ctx, segment);
}

fn numbers(ctx: &Ctx, target: usize, at: usize, p: *mut u8) {
    let engine = &*ctx.engine;
    step(format!("errors: numbers at rank {target}"));
    for op in [Rmw::add::<i32>(1), Rmw::swap::<i32>(1), Rmw::add::<i64>(1), Rmw::swap::<i64>(1)] {
        let rmw = |at| engine.rmw(target, at, op);
        refused(ErrorKind::Type, "misaligned rmw", rmw(at + 2));
        refused(ErrorKind::Address, "rmw beyond the end", rmw(at + BYTES));
        refused(ErrorKind::Argument, "rmw of nowhere", rmw(0));
        refused(ErrorKind::Address, "rmw of nowhere", rmw(16));
        if op.size() == 8 {
            refused(ErrorKind::Type, "misaligned rmw of a long", rmw(at + 4));
            refused(ErrorKind::Address, "rmw half beyond the end", rmw(at + BYTES - 4));
        }
    }
    let scales = [(Scale::Int(1), 2), (Scale::Double(1.0), 12), (Scale::Long(2), 4)];
    for (scale, bytes) in scales {
        let (kind, shape) = (TransferKind::Accumulate(scale), Shape::contiguous(bytes));
        let rows = Shape::strided(&[bytes, 3], &[32], &[64]).expect("a shape");
        // SAFETY: the calls are refused before any byte is read.
        unsafe {
            refused(
                ErrorKind::Type,
                "odd accumulate",
                engine.blocking(&Transfer::new(kind, target, at, p, &shape)),
            );
            refused(
                ErrorKind::Type,
                "odd accumulate",
                engine.blocking(&Transfer::new(kind, target, at, p, &rows)),
            );
            let (l, r) = ([p as usize], [at]);
            let list = [Vector { block: bytes, local: &l, remote: &r }];
            refused(ErrorKind::Type, "odd accumulate", engine.vector(kind, target, &list));
        }
    }
}

fn vectors(ctx: &Ctx, target: usize, at: usize, p: *mut u8) {
    let engine = &*ctx.engine;
    step(format!("errors: vectors at rank {target}"));
    let l = [p as usize, p as usize + 8, p as usize + 16];
    for kind in [TransferKind::Put, TransferKind::Get, TransferKind::Accumulate(Scale::Long(1))] {
        let good = Vector { block: 8, local: &l, remote: &[at, at + 8, at + 16] };
        let bad = Vector { block: 8, local: &l, remote: &[at + 24, at + BYTES - 7, at + 32] };
        let uneven = Vector { block: 8, local: &l[..2], remote: &[at, at + 8, at + 16] };
        let null = Vector { block: 8, local: &[p as usize, 0, p as usize], remote: good.remote };
        let mut handle = Handle::default();
        // SAFETY: the calls are refused before any byte moves.
        unsafe {
            refused(ErrorKind::Address, "a bad block", engine.vector(kind, target, &[bad]));
            refused(ErrorKind::Address, "a bad list", engine.vector(kind, target, &[good, bad]));
            refused(
                ErrorKind::Address,
                "a bad list",
                engine.implicit_vectors(kind, target, &[good, bad]),
            );
            let issued = handle.issue_vectors(engine, kind, target, &[good, bad]);
            refused(ErrorKind::Address, "a bad list", issued);
            refused(ErrorKind::Argument, "uneven lists", engine.vector(kind, target, &[uneven]));
            refused(ErrorKind::Argument, "a null block", engine.vector(kind, target, &[null]));
            refused(ErrorKind::Rank, "rank outside", engine.vector(kind, ctx.n, &[good]));
        }
        assert!(!handle.is_pending(), "a refused vector is pending");
        handle.wait(engine).expect("nothing to wait for");
    }
    // An aggregate handle does not mix puts and gets.
    let mut handle = Handle::default();
    handle.set_aggregate().expect("a fresh handle");
    let (shape, mut buffer) = (Shape::contiguous(8), [7u8; 8]);
    // SAFETY: the buffer lives until the wait, and the put writes the bytes that are already there.
    unsafe {
        handle
            .issue(
                engine,
                &Transfer::new(TransferKind::Put, target, at, buffer.as_mut_ptr(), &shape),
            )
            .expect("put");
        let mixed = handle.issue(
            engine,
            &Transfer::new(TransferKind::Get, target, at, buffer.as_mut_ptr(), &shape),
        );
        if engine.path_between(ctx.me, target) != Path::Direct {
            refused(ErrorKind::Handle, "a get on a handle of puts", mixed);
        }
    }
    handle.wait(engine).expect("wait");
}

fn freed(ctx: &Ctx, segment: std::sync::Arc<portolan_engine::memory::segment::Segment>) {
    let engine = &*ctx.engine;
    step("errors: freeing");
    let mine = segment.part(ctx.me).address();
    let theirs = segment.part((ctx.me + 1) % ctx.n).address();
    // If one rank passes an address at which no segment begins, no rank frees anything.
    for wrong in [mine + 64, 16, usize::MAX] {
        let given = if ctx.me == ctx.n - 1 { wrong } else { mine };
        refused(
            ErrorKind::Address,
            "freeing nothing",
            engine.release_at(engine.world(), Some(given)),
        );
    }
    let other = ctx.allocate(64);
    if ctx.n > 1 {
        let given = if ctx.me == 0 { other.part(0).address() } else { mine };
        let mixed = engine.release_at(engine.world(), Some(given));
        refused(ErrorKind::Address, "freeing two segments at once", mixed);
    }
    assert_eq!(engine.memory.live_segments(), 2, "a refused free freed something");
    let other_mine = other.part(ctx.me).address();
    engine.release_at(engine.world(), Some(other_mine)).expect("free by address");
    refused(ErrorKind::State, "freeing again", engine.release(other));
    ctx.free(segment.clone());
    refused(ErrorKind::State, "freeing again", engine.release(segment));
    let again = engine.release_at(engine.world(), Some(mine));
    refused(ErrorKind::Address, "freeing an address again", again);
    let mut byte = 0u8;
    // SAFETY: the calls are refused before any byte moves.
    unsafe {
        let target = (ctx.me + 1) % ctx.n;
        refused(ErrorKind::Address, "a put to freed memory", engine.put(target, theirs, &byte, 1));
        refused(
            ErrorKind::Address,
            "a get of freed memory",
            engine.get(target, theirs, &mut byte, 1),
        );
    }
    refused(
        ErrorKind::Address,
        "rmw of freed memory",
        engine.rmw(ctx.me, mine, Rmw::add::<i32>(1)),
    );
}

pub fn shapes(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let segment = ctx.allocate(BYTES);
    own(&segment).fill(7);
    ctx.barrier();
    refused(ErrorKind::Argument, "nine levels", Shape::strided(&[1; 10], &[1; 9], &[1; 9]));
    refused(ErrorKind::Argument, "no counts", Shape::strided(&[], &[], &[]));
    refused(ErrorKind::Argument, "too few strides", Shape::strided(&[8, 2], &[8], &[]));
    refused(ErrorKind::Argument, "too many bytes", Shape::strided(&[1 << 40, 1 << 40], &[0], &[0]));
    refused(ErrorKind::Argument, "too long a span", Shape::strided(&[8, 3], &[8], &[isize::MAX]));
    let mut local = vec![3u8; 4 * BYTES];
    let p = local.as_mut_ptr();
    for target in 0..ctx.n {
        let at = segment.part(target).address();
        step(format!("shape_errors: at rank {target}"));
        // The last block ends one byte after the segment, or the first begins one byte before it.
        let over = Shape::strided(&[8, 10], &[8], &[111]).expect("a shape");
        let under = Shape::strided(&[8, 10], &[8], &[-111]).expect("a shape");
        let deep =
            Shape::strided(&[8, 2, 2, 2, 2, 2, 2, 2], &[8; 7], &[8, 16, 32, 64, 128, 256, 489])
                .expect("a shape");
        for kind in [TransferKind::Put, TransferKind::Get, TransferKind::Accumulate(Scale::Long(1))]
        {
            let even = Shape::strided(&[8, 10], &[8], &[112]).expect("a shape");
            // SAFETY: the calls are refused before any byte moves.
            unsafe {
                let (long, back) = (at, at.wrapping_sub(8));
                refused(
                    ErrorKind::Address,
                    "8 over",
                    engine.blocking(&Transfer::new(kind, target, long, p, &even)),
                );
                refused(
                    ErrorKind::Address,
                    "8 under",
                    engine.blocking(&Transfer::new(kind, target, back, p, &even)),
                );
            }
            for (shape, at) in
                [(&over, at), (&under, at + 998), (&deep, at), (&over, at - 64), (&under, at)]
            {
                // SAFETY: the calls are refused before any byte moves.
                unsafe {
                    let result = engine.blocking(&Transfer::new(kind, target, at, p, shape));
                    refused(ErrorKind::Address, "an extent that leaves its segment", result);
                    let result = engine.implicit(&Transfer::new(kind, target, at, p, shape));
                    refused(ErrorKind::Address, "an extent that leaves its segment", result);
                }
            }
            // SAFETY: the shape has no blocks, so nothing is accessed.
            unsafe {
                let nothing = Shape::strided(&[8, 0, 3], &[8, 8], &[1 << 50, 8]).expect("a shape");
                engine
                    .blocking(&Transfer::new(kind, target, 0, std::ptr::null_mut(), &nothing))
                    .expect("no blocks");
            }
        }
    }
    ctx.barrier();
    assert!(own(&segment).iter().all(|&b| b == 7), "a refused call changed memory");
    assert!(local.iter().all(|&b| b == 3), "a refused call changed local memory");
    // Shapes that just fit.
    for kind in [TransferKind::Put, TransferKind::Get] {
        let over = Shape::strided(&[8, 10], &[8], &[110]).expect("a shape");
        let under = Shape::strided(&[8, 10], &[8], &[-110]).expect("a shape");
        let at = segment.part(ctx.me).address();
        for (shape, at) in [(&over, at), (&over, at + 2), (&under, at + 990), (&under, at + 992)] {
            // SAFETY: the shape accesses 80 bytes of the local buffer, which has more.
            unsafe { engine.blocking(&Transfer::new(kind, ctx.me, at, p, shape)) }
                .expect("an extent that fits");
        }
    }
    ctx.barrier();
    ctx.free(segment);
}
