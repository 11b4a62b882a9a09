//! Flow control: a flood of small puts uses a bounded amount of memory at the target, and a message
//! that exceeds the flight limit with its head gets through.

use crate::am;
use crate::child::{self, Ctx, own, step};
use crate::rng::Rng;
use portolan_base::layout::Shape;
use portolan_engine::am::{Accept, Am, Arrival, Destination, Then};
use portolan_engine::atomics::Rmw;
use portolan_engine::path::Path;
use portolan_engine::path::kernel::Scale;
use portolan_engine::runtime::Engine;
use portolan_engine::transfer::{Handle, Transfer, TransferKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bytes allowed beyond the limit of flow control, for buffers of the MPI library.
const SLACK: usize = 48 << 20;

/// Returns a line of `/proc/self/status` in bytes.
pub fn status(line: &str) -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let found = text.lines().find_map(|l| l.strip_prefix(line)?.strip_prefix(':'));
    let kib = found.and_then(|l| l.split_whitespace().next()?.parse::<usize>().ok());
    kib.unwrap_or(0) << 10
}

/// All ranks except 0 put and accumulate small numbers at rank 0, which sleeps at first.
pub fn flood(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let segment = ctx.allocate(4096);
    own(&segment).fill(0);
    ctx.barrier();
    let slow = (1..ctx.n).any(|r| engine.path_between(r, 0) == Path::Rma);
    let total = match (slow, ctx.quick) {
        (true, _) => 10_000,
        (false, true) => 20_000,
        (false, false) => 200_000,
    };
    let each = total / (ctx.n - 1);
    // Reset the high-water mark to the memory in use now.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let before = status("VmHWM");
    if ctx.me == 0 {
        step("flood: rank 0 is away");
        std::thread::sleep(Duration::from_millis(300));
    } else {
        let at = segment.part(0).address();
        let value = ctx.me as i64;
        let (source, shape) = ((&raw const value).cast::<u8>().cast_mut(), Shape::contiguous(8));
        for i in 0..each {
            if i % 1000 == 0 {
                step(format!("flood: put {i} of {each}"));
            }
            let to = at + 8 * (i % 256);
            // SAFETY: `value` has eight bytes and lives until the wait below.
            unsafe {
                match i % 4 {
                    0 => engine.put(0, to, source, 8),
                    1 => engine.blocking(&Transfer::new(
                        TransferKind::Accumulate(Scale::Long(1)),
                        0,
                        at + 2048,
                        source,
                        &shape,
                    )),
                    _ => engine.implicit(&Transfer::new(TransferKind::Put, 0, to, source, &shape)),
                }
            }
            .expect("put");
        }
        step("flood: wait");
        engine.wait_implicit().expect("wait");
    }
    step("flood: barrier");
    ctx.barrier();
    if ctx.me == 0 {
        let adds = (each as i64 + 2) / 4;
        let want: i64 = (1..ctx.n as i64).map(|r| r * adds).sum();
        assert_eq!(ctx.load::<i64>(0, segment.part(0).address() + 2048), want, "accumulates");
        let grown = status("VmHWM").saturating_sub(before);
        let bound = 2 * engine.config.flight_bytes * (ctx.n - 1) + SLACK;
        assert!(
            grown < bound,
            "{total} small puts took {grown} bytes at the target, more than {bound}"
        );
    }
    ctx.free(segment);
}

/// All ranks send operations of all kinds to all ranks at once, and none deadlocks.
pub fn storm(ctx: &Ctx) {
    const SLOT: usize = 200_000;
    let engine = &*ctx.engine;
    let segment = ctx.allocate(SLOT);
    let mut rng = Rng::new(ctx.seed, &[ctx.me as u64, 99]);
    let source = vec![1u8; SLOT];
    let mut into = vec![0u8; SLOT];
    let mut handles: Vec<Handle> = (0..8).map(|_| Handle::default()).collect();
    for i in 0..if ctx.quick { 300 } else { 1000 / ctx.n } {
        step(format!("storm: operation {i}"));
        let target = rng.below(ctx.n);
        let at = segment.part(target).address();
        let bytes = 8 * *rng.pick(&[1, 1, 20, 500, 700, 2500, 5000, 25_000]);
        let rows = Shape::strided(&[8, bytes / 8], &[8], &[8]).expect("a shape");
        let gaps = Shape::strided(&[4, bytes / 8], &[4], &[8]).expect("a shape");
        let handle = &mut handles[i % 8];
        let get = into.as_mut_ptr();
        let put = source.as_ptr().cast_mut();
        let add = TransferKind::Accumulate(Scale::Int(1));
        // SAFETY: both buffers live until the waits below, and nothing reads the gets' bytes.
        unsafe {
            match rng.below(8) {
                0 => {
                    handle.issue(engine, &Transfer::new(TransferKind::Put, target, at, put, &rows))
                }
                1 => {
                    handle.issue(engine, &Transfer::new(TransferKind::Get, target, at, get, &rows))
                }
                2 => handle.issue(engine, &Transfer::new(add, target, at, put, &rows)),
                3 => {
                    handle.issue(engine, &Transfer::new(TransferKind::Put, target, at, put, &gaps))
                }
                4 => {
                    handle.issue(engine, &Transfer::new(TransferKind::Get, target, at, get, &gaps))
                }
                5 => engine.implicit(&Transfer::new(add, target, at, put, &gaps)),
                6 => engine.put(target, at, put, bytes),
                _ => engine.rmw(target, at, Rmw::add::<i64>(1)).map(|_| ()),
            }
        }
        .expect("an operation");
        match rng.below(40) {
            0 => engine.fence_all().expect("fence"),
            1 => engine.fence(target).expect("fence"),
            2 => handles[rng.below(8)].wait(engine).expect("wait"),
            _ => {}
        }
    }
    step("storm: wait");
    handles.iter_mut().for_each(|h| h.wait(engine).expect("wait"));
    engine.wait_implicit().expect("wait");
    step("storm: barrier");
    ctx.barrier();
    ctx.free(segment);
}

/// A request that exceeds the flight limit is sent only if no bytes are in flight. The target does
/// not confirm a small remainder by itself, so the origin must ask for the confirmation.
pub fn flight() {
    let ctx = Ctx::new(child::start());
    let engine = &*ctx.engine;
    let bytes = Arc::new(AtomicU64::new(0));
    let count = bytes.clone();
    let id = am::register(&ctx, "flight", |_| {
        move |_: &Am, m: &Arrival<'_>| {
            count.fetch_add(m.len as u64, Ordering::Relaxed);
            Ok(Accept { to: Destination::Buffer, then: Then::Nothing })
        }
    });
    // With its head, the longest eager message exceeds the limit of bytes in flight.
    let limit = engine.eager_limit((ctx.me + 1) % ctx.n);
    assert!(limit >= engine.config.flight_bytes, "{limit} bytes");
    let sizes = [5, 300, limit, 7, limit - 1, limit, 1000, 2000, 3000, limit];
    for (n, size) in sizes.into_iter().enumerate() {
        step(format!("flight: message {n} of {size} bytes"));
        let data = vec![n as u8; size];
        engine.send_message((ctx.me + 1) % ctx.n, id, &[], &data).expect("send");
    }
    engine.quiesce().expect("quiesce");
    assert_eq!(bytes.load(Ordering::Relaxed), sizes.iter().sum::<usize>() as u64);
    am::unregister(&ctx, id);
    drop(ctx);
    Engine::stop().expect("stop");
}
