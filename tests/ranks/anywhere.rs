//! Tests transfers to any memory of any rank: stack, heap, globals and segments.

use crate::child::{Ctx, refused, step};
use crate::rng::Rng;
use portolan::ErrorKind;
use portolan_base::trace::Cause;
use portolan_engine::any_memory::{Direction, Span, Within};
use portolan_engine::core::peer::CompletionCounter;
use portolan_engine::memory::registered::Registration;
use portolan_engine::memory::runs::Run;
use std::sync::Arc;

static mut GLOBAL: [u8; 4096] = [0; 4096];
static CONSTANT: [u8; 4096] = [3; 4096];

fn span(local: *const u8, remote: usize, bytes: usize) -> Span {
    Span { local: local as usize, remote, bytes }
}

/// Starts active messages, which carry transfers to memory that no other path reaches.
fn start(ctx: &Ctx) {
    ctx.engine.register_handlers(Vec::new()).expect("active messages start");
    ctx.barrier();
}

pub fn anywhere(ctx: &Ctx) {
    let engine = &*ctx.engine;
    start(ctx);
    const HEAP: usize = 600_000;
    let mut stack = [0u8; 8192];
    let mut heap = vec![0u8; HEAP];
    let segment = ctx.allocate(50_000);
    let mine = [
        (&raw mut GLOBAL as u64, 4096),
        (stack.as_mut_ptr() as u64, 8192),
        (heap.as_mut_ptr() as u64, HEAP as u64),
        (segment.part(ctx.me).address() as u64, 50_000),
    ];
    for (address, bytes) in mine {
        // SAFETY: the regions belong to this rank, and no rank writes to them before the barrier.
        unsafe { std::ptr::write_bytes(address as *mut u8, 0, bytes as usize) };
    }
    let flat = mine.map(|(a, b)| [a, b]).concat();
    let flat: [u64; 8] = flat.try_into().expect("eight numbers");
    let all: Vec<[u64; 8]> = engine.world().allgather(engine, &flat).expect("allgather");
    ctx.barrier();
    // Each rank writes only to the next one, so it knows the expected contents.
    let target = (ctx.me + 1) % ctx.n;
    let mut model: Vec<Vec<u8>> =
        (0..4).map(|r| vec![0; all[target][r * 2 + 1] as usize]).collect();
    let mut rng = Rng::new(ctx.seed, &[ctx.me as u64, 3]);
    let rounds = if ctx.quick { 60 } else { 300 };
    for round in 0..rounds {
        step(format!("anywhere: round {round}"));
        let put = rng.one_in(2);
        let started = rng.one_in(3);
        let n = rng.range(1, 12);
        let (mut spans, mut places) = (Vec::new(), Vec::new());
        let mut buffers: Vec<Vec<u8>> = Vec::new();
        for _ in 0..n {
            let region = rng.below(4);
            let size = model[region].len();
            let most = if rng.one_in(10) { size } else { size.min(300) };
            let bytes = rng.below(most + 1);
            let offset = rng.below(size - bytes + 1);
            let buffer: Vec<u8> =
                (0..bytes).map(|_| if put { rng.next() as u8 } else { 0 }).collect();
            let remote = all[target][region * 2] as usize + offset;
            spans.push(span(buffer.as_ptr(), remote, bytes));
            places.push((region, offset));
            buffers.push(buffer);
        }
        // Random spans may overlap, so each put gets its own call, which keeps their order.
        let counter = Arc::new(CompletionCounter::default());
        // SAFETY: the buffers live until the waits below; only this rank writes to the regions.
        unsafe {
            match (put, started) {
                (true, false) => spans.iter().for_each(|s| {
                    engine.move_anywhere(target, &[*s], Direction::Put).expect("put")
                }),
                (true, true) => {
                    for s in &spans {
                        engine
                            .start_anywhere(target, &[*s], Direction::Put, &counter)
                            .expect("put");
                        engine
                            .wait_for(Cause::Other, &String::new, || counter.check())
                            .expect("wait");
                    }
                }
                (false, false) => {
                    engine.move_anywhere(target, &spans, Direction::Get).expect("get")
                }
                (false, true) => {
                    engine.start_anywhere(target, &spans, Direction::Get, &counter).expect("get")
                }
            }
        }
        engine.wait_for(Cause::Other, &|| "spans".into(), || counter.check()).expect("wait");
        for ((region, offset), buffer) in places.into_iter().zip(&buffers) {
            let known = &mut model[region][offset..offset + buffer.len()];
            if put {
                known.copy_from_slice(buffer);
            } else {
                assert!(
                    known == &buffer[..],
                    "{} bytes at {offset} of region {region}",
                    buffer.len()
                );
            }
        }
    }
    step("anywhere: lists of puts that do not overlap");
    let words: Vec<u64> = (0..1000).map(|i| i * 7 + ctx.me as u64).collect();
    let heap_there = all[target][4] as usize;
    let spans: Vec<Span> =
        (0..1000).map(|i| span(words[i..].as_ptr().cast(), heap_there + i * 24, 8)).collect();
    // SAFETY: `words` lives until the call returns, and only this rank writes to the target's heap.
    unsafe { engine.move_anywhere(target, &spans, Direction::Put) }.expect("put");
    let mut back = vec![0u8; 24_000];
    // SAFETY: `back` has 24,000 bytes, and only this rank writes to the target's heap.
    unsafe {
        engine.move_anywhere(target, &[span(back.as_mut_ptr(), heap_there, 24_000)], Direction::Get)
    }
    .expect("get");
    for (i, word) in words.iter().enumerate() {
        assert_eq!(back[i * 24..i * 24 + 8], word.to_ne_bytes());
    }
    ctx.barrier();
    std::hint::black_box((&stack, &heap));
    ctx.free(segment);
}

fn there_and_back(ctx: &Ctx, target: usize, local: &mut [u8], spans: &[Span]) {
    let mut expected = vec![0; local.len()];
    for span in spans {
        let at = span.local - local.as_ptr() as usize;
        expected[at..at + span.bytes].copy_from_slice(&local[at..at + span.bytes]);
    }
    // SAFETY: the spans lie in `local` and in memory of the target that no other rank uses.
    unsafe {
        ctx.engine.move_anywhere(target, spans, Direction::Put).expect("put");
        local.fill(0);
        ctx.engine.move_anywhere(target, spans, Direction::Get).expect("get");
    }
    assert!(*local == expected, "{} spans do not come back", spans.len());
}

/// Long transfers while the other rank waits, and therefore copies a part itself; then long
/// transfers between ranks that are all busy with transfers.
pub fn together(ctx: &Ctx) {
    const HEAP: usize = 4 << 20;
    let engine = &*ctx.engine;
    start(ctx);
    let mut heap = vec![0u8; HEAP];
    let mine = heap.as_mut_ptr() as u64;
    let all: Vec<u64> = engine.world().allgather(engine, &mine).expect("allgather");
    let target = (ctx.me + 1) % ctx.n;
    let there = all[target] as usize;
    let mut rng = Rng::new(ctx.seed, &[ctx.me as u64, 5]);
    let mut local = vec![0u8; HEAP];
    let mut round = |bytes: usize, piece: usize, gap: usize| {
        local.iter_mut().for_each(|byte| *byte = rng.next() as u8);
        let base = local.as_ptr();
        let span = |n: usize| {
            let here = n * (piece + gap % 7);
            span(base.wrapping_add(here), there + n * (piece + gap), piece)
        };
        let spans: Vec<Span> = (0..bytes / piece).map(span).collect();
        there_and_back(ctx, target, &mut local, &spans);
    };
    let shapes = [
        (192 << 10, 192 << 10, 0),
        (HEAP, HEAP, 0),
        (3_000_001, 3_000_001, 17),
        (2_000_000, 1000, 24),
        (1_500_000, 300, 301),
        (3 << 20, 1 << 20, 4096),
    ];
    for origin in 0..ctx.n {
        for (bytes, piece, gap) in shapes {
            step(format!("together: rank {origin}, {bytes} bytes in runs of {piece}"));
            if ctx.me == origin {
                round(bytes, piece, gap);
            }
            ctx.barrier();
        }
    }
    for (bytes, piece, gap) in shapes {
        step(format!("together: all ranks, {bytes} bytes in runs of {piece}"));
        round(bytes, piece, gap);
    }
    ctx.barrier();
    // A rank that waits copies a part sooner or later.
    if ctx.me == 0 && ctx.n > 1 && engine.may_help(target) {
        step("together: until the other has copied something");
        while engine.pieces_by_others() == 0 {
            round(HEAP, HEAP, 0);
        }
    }
    ctx.barrier();
    std::hint::black_box(&heap);
}

/// A rank copies its own registered memory only while it is registered, also if the table of the
/// node has no entry for it.
pub fn withdrawn(ctx: &Ctx) {
    const ID: u64 = u64::MAX - 1;
    let engine = &*ctx.engine;
    start(ctx);
    let (mut there, mut here) = (vec![7u8; 64], vec![0u8; 64]);
    let (local, remote) = (here.as_mut_ptr(), there.as_mut_ptr() as usize);
    let run = Run { address: remote, len: 64 };
    let registration = Registration::new(ID, vec![run], (true, false), None);
    registration.open();
    assert_eq!(registration.describe(0, || None), 0, "an entry in no table");
    let copy = |bytes, direction| {
        let (counter, spans) = (Arc::default(), [span(local, remote, bytes)]);
        let whose = (Within { id: ID, place: 0 }, &counter);
        // SAFETY: both vectors have the bytes of the calls that are not refused.
        unsafe { engine.start_registered(ctx.me, &spans, direction, whose, |_, _| 0, || false) }
    };
    copy(64, Direction::Get).expect("registered");
    assert!(here.iter().all(|&byte| byte == 7));
    refused(ErrorKind::Address, "more than is registered", copy(65, Direction::Get));
    refused(ErrorKind::Address, "a write", copy(64, Direction::Put));
    registration.withdraw(engine, || ());
    refused(ErrorKind::Handle, "withdrawn", copy(64, Direction::Get));
}

pub fn errors(ctx: &Ctx) {
    let engine = &*ctx.engine;
    start(ctx);
    let mut here = vec![1u8; 300_000];
    let constant = &raw const CONSTANT as u64;
    let all: Vec<u64> = engine.world().allgather(engine, &constant).expect("allgather");
    let target = (ctx.me + 1) % ctx.n;
    // SAFETY: each call is refused or has no bytes, so nothing is read or written.
    unsafe {
        let zero = span(std::ptr::null(), 0, 0);
        engine.move_anywhere(target, &[zero], Direction::Put).expect("no bytes");
        engine.move_anywhere(target, &[zero, zero], Direction::Get).expect("no bytes");
        let null = engine
            .move_anywhere(target, &[span(here.as_ptr(), 0, 8)], Direction::Put)
            .expect_err("null");
        assert_eq!(null.kind(), ErrorKind::Argument);
        let null = engine
            .move_anywhere(target, &[span(std::ptr::null(), 64, 8)], Direction::Get)
            .expect_err("null");
        assert_eq!(null.kind(), ErrorKind::Argument);
        let rank = engine
            .move_anywhere(ctx.n, &[span(here.as_ptr(), 64, 8)], Direction::Put)
            .expect_err("rank");
        assert_eq!(rank.kind(), ErrorKind::Rank);
    }
    if ctx.n > 1 {
        for bytes in [8, 1000, 300_000] {
            step(format!("anywhere: {bytes} bytes that are not there"));
            let nowhere = span(here.as_mut_ptr(), 64, bytes);
            // SAFETY: the local bytes belong to the vector. The remote ones are not mapped, so the
            // calls fail.
            unsafe {
                let error =
                    engine.move_anywhere(target, &[nowhere], Direction::Get).expect_err("unmapped");
                assert_eq!(error.kind(), ErrorKind::Address, "{error}");
                let error =
                    engine.move_anywhere(target, &[nowhere], Direction::Put).expect_err("unmapped");
                assert_eq!(error.kind(), ErrorKind::Address, "{error}");
            }
        }
        step("anywhere: constants");
        let there = all[target] as usize;
        // SAFETY: the local bytes belong to the vector, and the put to the constant is refused.
        unsafe {
            engine
                .move_anywhere(target, &[span(here.as_mut_ptr(), there, 4096)], Direction::Get)
                .expect("get");
            assert!(here[..4096].iter().all(|&b| b == 3));
            let error = engine
                .move_anywhere(target, &[span(here.as_ptr(), there, 16)], Direction::Put)
                .expect_err("constant");
            assert_eq!(error.kind(), ErrorKind::Address, "{error}");
        }
    }
    ctx.barrier();
    assert!(CONSTANT.iter().all(|&b| b == 3));
}
