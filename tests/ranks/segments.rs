//! Tests segments: odd sizes, adjacent segments, very many segments, and many in one call.

use crate::child::{Ctx, own, refused, step};
use crate::rng::Rng;
use portolan::{Error, ErrorKind};
use portolan_base::layout::{Shape, Vector};
use portolan_engine::memory::segment::{Purpose, Segment};
use portolan_engine::transfer::{Handle, Transfer, TransferKind};
use std::sync::Arc;

/// Some MPIs confuse windows of odd sizes: the owner and the other ranks must see the same memory.
pub fn odd_sizes(ctx: &Ctx) {
    for bytes in [1, 8, 12, 24, 40, 100, 4104] {
        step(format!("odd_sizes: {bytes} bytes"));
        let segment = ctx.allocate(bytes);
        let content =
            |of: usize, by: u64| Rng::new(ctx.seed, &[of as u64, by, bytes as u64]).bytes(bytes);
        own(&segment).copy_from_slice(&content(ctx.me, 0));
        ctx.barrier();
        for rank in 0..ctx.n {
            let got = ctx.get(rank, segment.part(rank).address(), bytes);
            assert!(got == content(rank, 0), "rank {rank}'s own {bytes} bytes, read from here");
        }
        ctx.barrier();
        let right = (ctx.me + 1) % ctx.n;
        ctx.put(right, segment.part(right).address(), &content(right, 1));
        ctx.barrier();
        assert!(own(&segment) == content(ctx.me, 1), "own {bytes} bytes, written from elsewhere");
        for rank in 0..ctx.n {
            let part = segment.part(rank);
            if !part.local().is_null() {
                // SAFETY: the part is mapped here, and no rank writes before the barrier.
                let here = unsafe { std::slice::from_raw_parts(part.local(), bytes) };
                assert!(here == content(rank, 1), "rank {rank}'s {bytes} bytes, mapped here");
            }
        }
        ctx.barrier();
        ctx.free(segment);
    }
}

/// Large segments, which have arenas of their own, differ in the last twelve bits of the address.
pub fn staggered(ctx: &Ctx) {
    let segments: Vec<Arc<Segment>> = (0..3).map(|_| ctx.allocate(5 << 20)).collect();
    let at = |n: usize| segments[n].part(ctx.me).address() % 4096;
    for (a, b) in [(0, 1), (1, 2), (0, 2)] {
        let distance = at(a).abs_diff(at(b));
        assert!((256..=4096 - 256).contains(&distance), "segments {a} and {b}: {distance} bytes");
    }
    segments.into_iter().for_each(|segment| ctx.free(segment));
}

/// Adjacent segments stay separate. Blocks that the engine joins because they are contiguous must
/// still arrive, and a block that spans two segments is refused.
pub fn neighbours(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let segments: Vec<Arc<Segment>> = (0..6).map(|_| ctx.allocate(64)).collect();
    for target in 0..ctx.n {
        let mut at: Vec<usize> = segments.iter().map(|s| s.part(target).address()).collect();
        at.sort_unstable();
        let touching =
            at.windows(2).position(|p| p[0] + 64 == p[1]).expect("two segments in a row");
        let (a, b) = (at[touching], at[touching + 1]);
        ctx.barrier();
        if ctx.me == (target + 1) % ctx.n {
            step(format!("neighbours: at rank {target}"));
            for kind in ["vector", "handle", "implicit", "aggregate"] {
                let mut data = Rng::new(ctx.seed, &[target as u64, kind.len() as u64]).bytes(128);
                let mut back = vec![0u8; 128];
                for (kind_of, buffer) in
                    [(TransferKind::Put, &mut data), (TransferKind::Get, &mut back)]
                {
                    let local = buffer.as_mut_ptr();
                    let lists = [local as usize, local as usize + 64];
                    let list = [Vector { block: 64, local: &lists, remote: &[a, b] }];
                    let mut handle = Handle::default();
                    // SAFETY: the buffer has both blocks and lives until the wait.
                    unsafe {
                        match kind {
                            "vector" => engine.vector(kind_of, target, &list),
                            "handle" => handle.issue_vectors(engine, kind_of, target, &list),
                            "implicit" => engine.implicit_vectors(kind_of, target, &list),
                            _ => {
                                handle.set_aggregate().expect("a fresh handle");
                                let half = Shape::contiguous(64);
                                [(a, local), (b, local.add(64))].into_iter().try_for_each(
                                    |(at, l)| {
                                        handle.issue(
                                            engine,
                                            &Transfer::new(kind_of, target, at, l, &half),
                                        )
                                    },
                                )
                            }
                        }
                    }
                    .unwrap_or_else(|e| panic!("{kind} {kind_of:?} of two segments in a row: {e}"));
                    handle.wait(engine).expect("wait");
                    engine.wait_implicit().expect("wait");
                }
                assert!(data == back, "{kind}: two segments in a row");
            }
            // SAFETY: the vector has 128 bytes, and the call is refused before any byte moves.
            let across = unsafe { engine.put(target, a, vec![0u8; 128].as_ptr(), 128) };
            refused(ErrorKind::Address, "a put over two segments", across);
        }
        ctx.barrier();
    }
    segments.into_iter().for_each(|s| ctx.free(s));
}

pub fn many(ctx: &Ctx) {
    let count = if ctx.quick { 2000 } else { 10_000 };
    let mut rng = Rng::new(ctx.seed, &[5]);
    let sizes: Vec<usize> = (0..count).map(|_| rng.range(64, 1024)).collect();
    let mut segments = Vec::with_capacity(count);
    for (i, &bytes) in sizes.iter().enumerate() {
        if i % 100 == 0 {
            step(format!("many_segments: allocating {i}"));
        }
        segments.push(ctx.allocate(bytes));
    }
    assert_eq!(ctx.engine.memory.live_segments(), count);
    let peer = (ctx.me + 1) % ctx.n;
    let content = |i: usize, of: usize| Rng::new(ctx.seed, &[i as u64, of as u64]).bytes(sizes[i]);
    for (i, segment) in segments.iter().enumerate() {
        if i % 100 == 0 {
            step(format!("many_segments: writing {i}"));
        }
        ctx.put(peer, segment.part(peer).address(), &content(i, peer));
    }
    ctx.barrier();
    for (i, segment) in segments.iter().enumerate() {
        if i % 100 == 0 {
            step(format!("many_segments: reading {i}"));
        }
        assert!(own(segment) == content(i, ctx.me), "own piece of segment {i}");
        let got = ctx.get(peer, segment.part(peer).address(), sizes[i]);
        assert!(got == content(i, peer), "the peer's piece of segment {i}");
    }
    ctx.barrier();
    rng.shuffle(&mut segments);
    for (i, segment) in segments.drain(..).enumerate() {
        if i % 100 == 0 {
            step(format!("many_segments: freeing {i}"));
        }
        ctx.free(segment);
    }
    // Freed memory is allocated again.
    let again: Vec<_> = (0..100).map(|_| ctx.allocate(1024)).collect();
    again.into_iter().for_each(|s| ctx.free(s));
}

/// Many segments allocated in one call work like segments allocated one by one: with the same
/// lengths on all ranks, with different ones, with none, in an existing arena and in a new one.
pub fn together(ctx: &Ctx) {
    let world = ctx.engine.world();
    let right = (ctx.me + 1) % ctx.n;
    let count = if ctx.quick { 100 } else { 1000 };
    for same in [true, false] {
        for round in 0..3u64 {
            step(format!("together: round {round}, the same lengths {same}"));
            let len = |i: usize, rank: usize| {
                let mut rng =
                    Rng::new(ctx.seed, &[round, i as u64, if same { 0 } else { rank as u64 }]);
                *rng.pick(&[0, 1, 40, 64, 100, 5000])
            };
            let mine: Vec<usize> = (0..count).map(|i| len(i, ctx.me)).collect();
            let mut all =
                ctx.engine.allocate_many(Purpose::Addresses, world, Ok(&mine)).expect("allocate");
            assert_eq!(all.len(), count);
            let content =
                |i: usize, of: usize| Rng::new(ctx.seed, &[i as u64, of as u64]).bytes(len(i, of));
            ctx.barrier();
            for (i, segment) in all.iter().enumerate() {
                for rank in 0..ctx.n {
                    let part = segment.part(rank);
                    assert_eq!(
                        (part.len(), part.address() == 0),
                        (len(i, rank), len(i, rank) == 0)
                    );
                }
                ctx.put(right, segment.part(right).address(), &content(i, right));
            }
            ctx.barrier();
            for (i, segment) in all.iter().enumerate() {
                assert!(own(segment) == content(i, ctx.me), "own piece of segment {i}");
            }
            ctx.barrier();
            // Free in random order, and allocate another segment in the freed memory meanwhile.
            Rng::new(ctx.seed, &[round]).shuffle(&mut all);
            let rest = all.split_off(count / 2);
            all.into_iter().for_each(|segment| ctx.free(segment));
            let again = ctx.allocate(3000);
            rest.into_iter().for_each(|segment| ctx.free(segment));
            ctx.free(again);
        }
    }
    step("together: refused");
    let live = ctx.engine.memory.live_segments();
    let committed = ctx.engine.memory.committed(world);
    let last = ctx.me == ctx.n - 1;
    let none = ctx.engine.allocate_many(Purpose::Addresses, world, Ok(&[])).expect("none");
    assert!(none.is_empty());
    let other_count = ctx.engine.allocate_many(
        Purpose::Addresses,
        world,
        Ok(if last { &[8, 8][..] } else { &[8] }),
    );
    if ctx.n > 1 {
        refused(ErrorKind::Argument, "different numbers of segments", other_count);
    } else {
        other_count.expect("two").into_iter().for_each(|segment| ctx.free(segment));
    }
    let huge = ctx.engine.allocate_many(
        Purpose::Addresses,
        world,
        Ok(&[8, if last { usize::MAX } else { 8 }, 8]),
    );
    refused(ErrorKind::Memory, "more than there is", huge);
    let bad = if last {
        Err(Error::new(ErrorKind::Argument, "the lengths are wrong"))
    } else {
        Ok(&[8][..])
    };
    refused(
        ErrorKind::Argument,
        "bad arguments",
        ctx.engine.allocate_many(Purpose::Addresses, world, bad),
    );
    assert_eq!(ctx.engine.memory.live_segments(), live);
    assert!(
        ctx.engine.memory.committed(world) <= committed,
        "there is memory for what was refused"
    );
}
