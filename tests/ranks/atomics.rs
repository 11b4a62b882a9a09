//! All ranks update the same locations, and no update is lost, whatever operations mix.

use crate::child::{Ctx, own, step};
use num_complex::Complex;
use portolan_base::layout::{Shape, Vector};
use portolan_engine::atomics::Rmw;
use portolan_engine::path::kernel::Scale;
use portolan_engine::transfer::{Handle, Transfer, TransferKind};

/// Accumulates and fetch-and-adds are atomic against each other.
pub fn totals(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let segment = ctx.allocate(64);
    own(&segment).fill(0);
    ctx.barrier();
    let rounds: i32 = if ctx.quick { 200 } else { 1000 / ctx.n as i32 };
    let shape = Shape::contiguous(4);
    let (mut one, mut big) = (1i32, 1i64);
    let add = TransferKind::Accumulate(Scale::Int(3));
    let (mut seen, mut handle) = (vec![i64::MIN; ctx.n], Handle::default());
    for i in 0..rounds {
        step(format!("totals: round {i} of {rounds}"));
        for turn in 0..ctx.n {
            let target = (ctx.me + turn) % ctx.n;
            let at = segment.part(target).address();
            // SAFETY: the sources live until the wait below.
            unsafe {
                engine
                    .blocking(&Transfer::new(add, target, at, (&raw mut one).cast(), &shape))
                    .expect("acc");
                let long = TransferKind::Accumulate(Scale::Long(1));
                let shape = Shape::contiguous(8);
                handle
                    .issue(
                        engine,
                        &Transfer::new(long, target, at + 16, (&raw mut big).cast(), &shape),
                    )
                    .expect("acc");
            }
            let old = engine.rmw(target, at, Rmw::add::<i32>(5)).expect("rmw");
            assert!(
                old > seen[target],
                "a counter that only grows went from {} to {old}",
                seen[target]
            );
            seen[target] = old;
            engine.rmw(target, at + 16, Rmw::add::<i64>(1 << 32)).expect("rmw");
        }
    }
    handle.wait(engine).expect("wait");
    ctx.barrier();
    let all = ctx.n as i64 * i64::from(rounds);
    for target in 0..ctx.n {
        let at = segment.part(target).address();
        assert_eq!(
            i64::from(ctx.load::<i32>(target, at)),
            8 * all,
            "acc and fetch-and-add of ints"
        );
        assert_eq!(ctx.load::<i64>(target, at + 16), all + (all << 32), "of longs");
    }
    ctx.free(segment);
}

/// Counters that receive only additions, so that ranks of one node may carry each other's
/// additions. Each value is handed out once, and the values that a rank receives grow.
///
/// Then each rank accumulates to a number and adds to it, while the other ranks add 0 to the same
/// number. Whichever rank carries the addition, it takes effect after the accumulate.
pub fn combined(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let words = 4 + ctx.n;
    let segment = ctx.allocate(8 * words);
    own(&segment).fill(0);
    ctx.barrier();
    let rounds: i64 = if ctx.quick { 60 } else { 400 };
    let mut mine: Vec<Vec<i64>> = vec![Vec::new(); 3 * ctx.n];
    for i in 0..rounds {
        step(format!("combined: round {i} of {rounds}"));
        for target in 0..ctx.n {
            let at = segment.part(target).address();
            mine[3 * target].push(engine.rmw(target, at, Rmw::add::<i64>(1)).expect("rmw"));
            // Adjacent counters. The ranks of a node ask for different ones at the same time.
            for k in [ctx.me % 2, 1 - ctx.me % 2] {
                let small = engine.rmw(target, at + 8 + 4 * k, Rmw::add::<i32>(1)).expect("rmw");
                mine[3 * target + 1 + k].push(small);
            }
        }
    }
    for (i, values) in mine.iter().enumerate() {
        assert!(values.is_sorted_by(|a, b| a < b), "the values of counter {i} grow: {values:?}");
    }
    ctx.barrier();
    // Each value was handed out once: each rank adds its part of the sum and of the sum of squares.
    for (i, values) in mine.iter().enumerate() {
        let at = segment.part(i / 3).address() + 16;
        let sum: i64 = values.iter().sum();
        let squares: i64 = values.iter().map(|v| v * v).sum();
        engine.rmw(i / 3, at, Rmw::add::<i64>(sum)).expect("rmw");
        engine.rmw(i / 3, at + 8, Rmw::add::<i64>(squares)).expect("rmw");
        ctx.barrier();
        let all = rounds * ctx.n as i64;
        let of_all: i64 = (0..all).sum();
        let squares_of_all: i64 = (0..all).map(|v| v * v).sum();
        assert_eq!(ctx.load::<i64>(i / 3, at), of_all, "counter {i}");
        assert_eq!(ctx.load::<i64>(i / 3, at + 8), squares_of_all, "counter {i}");
        ctx.barrier();
        for word in 0..2 {
            if ctx.me == i / 3 {
                own(&segment)[16 + 8 * word..][..8].fill(0);
            }
        }
        ctx.barrier();
    }
    for i in 0..rounds {
        step(format!("combined: word {i} of {rounds}"));
        for target in 0..ctx.n {
            for rank in 0..ctx.n {
                let at = segment.part(target).address() + 16 + 8 * rank;
                if rank != ctx.me {
                    engine.rmw(target, at, Rmw::add::<i64>(0)).expect("rmw");
                    continue;
                }
                ctx.accumulate(target, at, &[1000i64], Scale::Long(1));
                let old = engine.rmw(target, at, Rmw::add::<i64>(1)).expect("rmw");
                assert_eq!(old, 1001 * i + 1000, "a rank's addition behind its own accumulate");
            }
        }
    }
    ctx.barrier();
    ctx.free(segment);
}

/// Long and strided accumulates of all ranks to the same elements, which span several of the lock
/// stripes that make accumulates atomic.
pub fn lock_stripes(ctx: &Ctx) {
    const ELEMENTS: usize = 10_000;
    let engine = &*ctx.engine;
    let segment = ctx.allocate(8 * ELEMENTS + 8);
    own(&segment).fill(0);
    ctx.barrier();
    let ones = vec![1.0f64; ELEMENTS];
    let source = ones.as_ptr().cast::<u8>().cast_mut();
    let rounds = if ctx.quick { 4 } else { 10 };
    let odd = Shape::strided(&[8, ELEMENTS / 2], &[16], &[16]).expect("a shape");
    let rows = Shape::strided(&[800, ELEMENTS / 100], &[800], &[800]).expect("a shape");
    let remote_offsets: Vec<usize> = (0..ELEMENTS / 10).rev().map(|i| 80 * i + 24).collect();
    let local: Vec<usize> = (0..ELEMENTS / 10).map(|i| source as usize + 8 * i).collect();
    for round in 0..rounds {
        for turn in 0..ctx.n {
            step(format!("stripes: round {round}, turn {turn}"));
            let target = (ctx.me + turn) % ctx.n;
            let at = segment.part(target).address();
            let acc = |by: f64| TransferKind::Accumulate(Scale::Double(by));
            let remote: Vec<usize> = remote_offsets.iter().map(|o| at + o).collect();
            // SAFETY: `ones` holds all elements and lives until the end of the function.
            unsafe {
                engine.blocking(&Transfer::new(acc(1.0), target, at, source, &rows)).expect("acc");
                engine
                    .implicit(&Transfer::new(acc(2.0), target, at + 8, source, &odd))
                    .expect("acc");
                let list = [Vector { block: 8, local: &local, remote: &remote }];
                engine.vector(acc(4.0), target, &list).expect("acc");
            }
        }
    }
    engine.wait_implicit().expect("wait");
    ctx.barrier();
    let times = (ctx.n * rounds) as f64;
    let mut want = vec![1.0; ELEMENTS];
    want.iter_mut().skip(1).step_by(2).for_each(|w| *w += 2.0);
    want.iter_mut().skip(3).step_by(10).for_each(|w| *w += 4.0);
    for target in 0..ctx.n {
        let got: Vec<f64> = ctx.loads(target, segment.part(target).address(), ELEMENTS);
        for (i, (g, w)) in got.iter().zip(&want).enumerate() {
            assert_eq!(*g, w * times, "element {i} at rank {target}");
        }
    }
    ctx.free(segment);
}

/// Bytes of the segment: enough for rows at every position relative to the lock stripes.
const UNALIGNED: usize = 48 << 10;

#[derive(Debug, Clone, Copy)]
struct Rows {
    at: usize,
    block: usize,
    stride: usize,
}

impl Rows {
    fn count(self) -> usize {
        (UNALIGNED - self.at - self.block) / self.stride + 1
    }

    fn shape(self) -> Shape {
        let (local, remote) = ([self.block as isize], [self.stride as isize]);
        Shape::strided(&[self.block, self.count()], &local, &remote).expect("a shape")
    }

    fn places(self, from: usize) -> Vec<usize> {
        (0..self.count()).map(|i| from + self.at + i * self.stride).collect()
    }
}

/// All ranks accumulate at once to unaligned elements: along strides, in vectors and row by row.
/// Some rows happen to be aligned.
pub fn unaligned(ctx: &Ctx) {
    let segment = ctx.allocate(UNALIGNED);
    for (block, scale) in [
        (16, Scale::Int(1)),
        (12, Scale::Int(3)),
        (24, Scale::Double(2.0)),
        (8, Scale::Double(1.0)),
        (16, Scale::Long(-1)),
        (20, Scale::Float(1.0)),
        (8, Scale::FloatComplex(Complex::new(0.0, 1.0))),
        (32, Scale::DoubleComplex(Complex::new(2.0, 0.0))),
    ] {
        for (at, pad) in [(0, 15), (1, 1), (3, 0), (8, 4), (2, 8)] {
            let rows = Rows { at, block, stride: block + pad };
            all_at_once(ctx, &segment, rows, scale);
        }
    }
    in_order(ctx, &segment);
    ctx.free(segment);
}

/// Small integers, which are exact in every type.
fn source(rows: Rows, scale: Scale) -> Vec<u8> {
    let mut bytes = Vec::new();
    for i in 0..rows.count() * rows.block / scale.element() {
        let x = (i % 7) as i32 + 1;
        match scale {
            Scale::Bool(_) => bytes.push(1),
            Scale::Byte(_) => bytes.push(x as u8),
            Scale::Short(_) => bytes.extend((x as i16).to_ne_bytes()),
            Scale::Int(_) => bytes.extend(x.to_ne_bytes()),
            Scale::Long(_) => bytes.extend(i64::from(x).to_ne_bytes()),
            Scale::Float(_) => bytes.extend((x as f32).to_ne_bytes()),
            Scale::Double(_) => bytes.extend(f64::from(x).to_ne_bytes()),
            Scale::FloatComplex(_) => bytes.extend([x as f32, 1.0].map(f32::to_ne_bytes).concat()),
            Scale::DoubleComplex(_) => {
                bytes.extend([f64::from(x), 1.0].map(f64::to_ne_bytes).concat());
            }
        }
    }
    bytes
}

fn all_at_once(
    ctx: &Ctx,
    segment: &portolan_engine::memory::segment::Segment,
    rows: Rows,
    scale: Scale,
) {
    let engine = &*ctx.engine;
    step(format!("unaligned: {rows:?}, {scale:?}"));
    let (kind, shape, mut from) =
        (TransferKind::Accumulate(scale), rows.shape(), source(rows, scale));
    let p = from.as_mut_ptr();
    own(segment).fill(0);
    ctx.barrier();
    let locals: Vec<usize> = (0..rows.count()).map(|i| p as usize + i * rows.block).collect();
    let rounds = if ctx.quick { 1 } else { 3 };
    for turn in 0..ctx.n * rounds {
        let target = (ctx.me + turn) % ctx.n;
        let base = segment.part(target).address();
        let places = rows.places(base);
        // SAFETY: `from` holds the bytes of all rows and lives until the wait.
        unsafe {
            engine
                .blocking(&Transfer::new(kind, target, base + rows.at, p, &shape))
                .expect("strided");
            engine
                .implicit(&Transfer::new(kind, target, base + rows.at, p, &shape))
                .expect("without handle");
            let list = [Vector { block: rows.block, local: &locals, remote: &places }];
            engine.vector(kind, target, &list).expect("vector");
            for i in (0..rows.count()).step_by(97) {
                let row = p.add(i * rows.block);
                engine.accumulate(target, places[i], row, rows.block, scale).expect("a row");
            }
        }
    }
    engine.wait_implicit().expect("wait");
    ctx.barrier();
    // Add each row once per accumulate above, so that floats are summed in the same steps.
    let mut want = vec![0u8; UNALIGNED];
    for (i, at) in rows.places(0).into_iter().enumerate() {
        let times = ctx.n * rounds * if i % 97 == 0 { 4 } else { 3 };
        for _ in 0..times {
            let row = &from[i * rows.block..(i + 1) * rows.block];
            // SAFETY: both rows have `rows.block` bytes.
            unsafe {
                let to = want.as_mut_ptr().add(at);
                portolan_engine::path::kernel::accumulate(row.as_ptr(), to, rows.block, &scale);
            }
        }
    }
    assert!(own(segment) == want, "{rows:?}, {scale:?}: a sum is wrong");
    ctx.barrier();
}

/// Operations of one rank on one location take effect in program order, whatever their paths.
fn in_order(ctx: &Ctx, segment: &portolan_engine::memory::segment::Segment) {
    let engine = &*ctx.engine;
    let target = (ctx.me + 1) % ctx.n;
    let base = segment.part(target).address();
    let one = 1i64;
    for at in [0, 1, 4, 7, (16 << 10) - 5, (16 << 10) - 8] {
        step(format!("unaligned: in order at {at}"));
        for i in 0..5i64 {
            let (first, mut got) = (10 * i, 0i64);
            // SAFETY: every local number has eight bytes and lives until the calls return.
            unsafe {
                engine.put(target, base + at, (&raw const first).cast(), 8).expect("put");
                for _ in 0..2 {
                    let p = (&raw const one).cast();
                    engine.accumulate(target, base + at, p, 8, Scale::Long(3)).expect("acc");
                }
                engine.get(target, base + at, (&raw mut got).cast(), 8).expect("get");
            }
            assert_eq!(got, first + 6, "at {at}");
        }
    }
    ctx.barrier();
}
