//! Location consistency: operations of one rank on one location take effect in program order.

use crate::child::{Ctx, step};
use crate::rng::Rng;
use portolan_base::layout::Shape;
use portolan_engine::atomics::Rmw;
use portolan_engine::path::kernel::Scale;
use portolan_engine::transfer::{Handle, Transfer, TransferKind};

/// Bytes of the slot that every rank has at every rank.
const SLOT: usize = 320 << 10;

/// Runs blocking operations of every pair of kinds in tight loops.
pub fn consistency(ctx: &Ctx) {
    let segment = ctx.allocate(SLOT * ctx.n);
    let mut rng = Rng::new(ctx.seed, &[ctx.me as u64, 77]);
    for turn in 0..ctx.n {
        let target = (ctx.me + turn) % ctx.n;
        let at = segment.part(target).address() + SLOT * ctx.me;
        step(format!("consistency: bytes at rank {target}"));
        for (bytes, times) in
            [(1, 100), (8, 200), (100, 100), (5000, 40), (40_000, 10), (300_000, 3)]
        {
            for _ in 0..if ctx.quick { times / 3 + 1 } else { times / ctx.n + 1 } {
                bytes_in_order(ctx, target, at, bytes, &mut rng);
            }
        }
        step(format!("consistency: numbers at rank {target}"));
        for i in 0..if ctx.quick { 50 } else { 200 / ctx.n as i32 } {
            numbers_in_order(ctx, target, at, i);
        }
    }
    step("consistency: free");
    ctx.free(segment);
}

fn bytes_in_order(ctx: &Ctx, target: usize, at: usize, bytes: usize, rng: &mut Rng) {
    let engine = &*ctx.engine;
    let (first, second) = (rng.bytes(bytes), rng.bytes(bytes));
    ctx.put(target, at, &first);
    assert!(ctx.get(target, at, bytes) == first, "put; get of {bytes} bytes");
    ctx.put(target, at, &second);
    ctx.put(target, at, &first);
    assert!(ctx.get(target, at, bytes) == first, "put; put; get of {bytes} bytes");

    // Write and read parts of the same bytes with a strided put and a strided get.
    if bytes >= 8 {
        let (rows, row) = (bytes / 8, 3);
        let shape = Shape::strided(&[row, rows], &[row as isize], &[8]).expect("a shape");
        let mut want = first.clone();
        for i in 0..rows {
            want[8 * i..8 * i + row].copy_from_slice(&second[row * i..row * i + row]);
        }
        // SAFETY: `second` has more than `rows * row` bytes.
        unsafe {
            engine.blocking(&Transfer::new(
                TransferKind::Put,
                target,
                at,
                second.as_ptr().cast_mut(),
                &shape,
            ))
        }
        .expect("strided put");
        assert!(ctx.get(target, at, bytes) == want, "put; strided put; get of {bytes} bytes");
        let mut packed = vec![0u8; rows * row];
        // SAFETY: `packed` has the bytes of the shape.
        unsafe {
            engine.blocking(&Transfer::new(
                TransferKind::Get,
                target,
                at,
                packed.as_mut_ptr(),
                &shape,
            ))
        }
        .expect("strided get");
        assert!(packed == second[..rows * row], "put; strided get of {bytes} bytes");
    }

    // Non-blocking operations, ordered by a wait or a fence.
    let shape = Shape::contiguous(bytes);
    let mut handle = Handle::default();
    // SAFETY: the sources live and do not change until the wait or fence.
    unsafe {
        handle
            .issue(
                engine,
                &Transfer::new(TransferKind::Put, target, at, second.as_ptr().cast_mut(), &shape),
            )
            .expect("put");
        handle.wait(engine).expect("wait");
        assert!(ctx.get(target, at, bytes) == second, "handle put; wait; get of {bytes} bytes");
        engine
            .implicit(&Transfer::new(
                TransferKind::Put,
                target,
                at,
                first.as_ptr().cast_mut(),
                &shape,
            ))
            .expect("put");
        engine.fence(target).expect("fence");
        assert!(ctx.get(target, at, bytes) == first, "implicit put; fence; get of {bytes} bytes");
        engine.wait_implicit().expect("wait");
    }
}

fn numbers_in_order(ctx: &Ctx, target: usize, at: usize, i: i32) {
    let engine = &*ctx.engine;
    let rmw = |op| engine.rmw(target, at, op).expect("rmw");
    // put; acc; get
    ctx.store(target, at, 10 * i);
    ctx.accumulate(target, at, &[3i32], Scale::Int(2));
    assert_eq!(ctx.load::<i32>(target, at), 10 * i + 6, "put; acc; get");
    // acc; rmw; get
    ctx.accumulate(target, at, &[1i32], Scale::Int(1));
    assert_eq!(rmw(Rmw::add::<i32>(5)), i64::from(10 * i + 7), "acc; rmw");
    assert_eq!(ctx.load::<i32>(target, at), 10 * i + 12, "acc; rmw; get");
    // rmw; put; rmw; acc; rmw
    assert_eq!(rmw(Rmw::swap::<i32>(-1)), i64::from(10 * i + 12), "get; swap");
    ctx.store(target, at, -9i32);
    assert_eq!(rmw(Rmw::add::<i32>(1)), -9, "swap; put; rmw");
    ctx.accumulate(target, at, &[100i32], Scale::Int(1));
    assert_eq!(rmw(Rmw::swap::<i32>(0)), 92, "rmw; acc; rmw");
    // Longs and doubles, and a source that changes right after the call.
    let mut value = [1i64 << 40];
    ctx.store(target, at, 5i64);
    ctx.accumulate(target, at, &value, Scale::Long(3));
    value[0] = -77;
    assert_eq!(rmw(Rmw::add::<i64>(1)), (3 << 40) + 5, "put; acc of a long; rmw");
    assert_eq!(rmw(Rmw::swap::<i64>(value[0])), (3 << 40) + 6, "rmw; swap of a long");
    assert_eq!(ctx.load::<i64>(target, at), -77, "swap; get of a long");
    let mut many = vec![0.5f64; 300];
    ctx.put(target, at, bytemuck::cast_slice(&many));
    for _ in 0..3 {
        ctx.accumulate(target, at, &many, Scale::Double(2.0));
        ctx.accumulate(target, at, &many, Scale::Double(1.0));
        many[299] += 1.0;
    }
    let got: Vec<f64> = ctx.loads(target, at, 300);
    assert_eq!(got[..299], [5.0; 299], "put; six accs; get of doubles");
    assert_eq!(got[299], 14.0, "accs of a source that changes between them");
}
