//! Compares compositions with a model: random compositions, patterns, and a million pairs.

use crate::child::{Ctx, compute_until, own, step};
use crate::rng::Rng;
use portolan::Result;
use portolan_compose::{Blocks, Composer, Composition, CompositionKind};

/// Bytes that each rank may write at each rank.
pub const REGION: usize = 6000;
/// Bytes of a rank's source buffer.
pub const SOURCE: usize = 9000;

#[derive(Debug, Clone)]
pub enum Added {
    /// Single bytes: local and remote offset.
    Pairs(Vec<(usize, usize)>),
    /// Blocks: local offset, remote offset, length in bytes.
    Runs(Vec<(usize, usize, usize)>),
    Slice(Blocks, Blocks),
}

impl Added {
    pub fn bytes(&self) -> Vec<(usize, usize, usize)> {
        match self {
            Added::Pairs(pairs) => pairs.iter().map(|&(l, r)| (l, r, 1)).collect(),
            Added::Runs(runs) => runs.clone(),
            Added::Slice(l, r) => {
                let at = |b: &Blocks, k: usize| {
                    let block = (k / b.block) as isize * b.stride;
                    b.start.wrapping_add_signed(block) + k % b.block
                };
                (0..l.block * l.count).map(|k| (at(l, k), at(r, k), 1)).collect()
            }
        }
    }

    pub fn add(&self, c: &mut Composition, local: usize, remote: usize) -> Result<()> {
        match self {
            Added::Pairs(pairs) => {
                pairs.iter().try_for_each(|&(l, r)| c.add(local + l, remote + r, 1))
            }
            Added::Runs(runs) => {
                c.add_all(runs.iter().map(|&(l, r, n)| (local + l, remote + r, n)))
            }
            Added::Slice(l, r) => c.add_slice(
                Blocks { start: local + l.start, ..*l },
                Blocks { start: remote + r.start, ..*r },
            ),
        }
    }
}

/// Returns what rank `src` sends to rank `dst` in a round; the result is the same on all ranks. No
/// byte is written twice, except by the addition that is repeated.
pub fn parcel(ctx: &Ctx, round: usize, src: usize, dst: usize) -> Vec<Added> {
    let mut rng = Rng::new(ctx.seed, &[77, round as u64, src as u64, dst as u64]);
    let mut out = Vec::new();
    if rng.one_in(5) {
        return out;
    }
    // The longest addition ends at most 2,200 bytes further on.
    let mut at = rng.below(40);
    while at < REGION - 2300 {
        let size = *rng.pick(&[1, 2, 3, 4, 8, 8, 8, 16, 24, 32, 100, 512]);
        let n = rng.range(1, 12);
        match rng.below(5) {
            0 => {
                let from = rng.below(SOURCE - 100);
                let mut pairs: Vec<_> = (0..rng.range(1, 60)).map(|i| (from + i, at + i)).collect();
                at += pairs.len();
                rng.shuffle(&mut pairs);
                out.push(Added::Pairs(pairs));
            }
            1 => {
                let step = size + rng.below(9);
                let n = n.min(1600 / step + 1);
                let from = |rng: &mut Rng| rng.below(SOURCE - size);
                let runs = (0..n).map(|i| (from(&mut rng), at + i * step, size)).collect();
                at += n * step;
                out.push(Added::Runs(runs));
            }
            2 => {
                let n = n.min(1500 / size).max(1);
                let stride = size + rng.below(20);
                let n = n.min(1500 / stride).max(1);
                let r = Blocks { start: at, stride: stride as isize, block: size, count: n };
                let room = SOURCE / n - size;
                let ls = size + rng.below(room.min(300));
                let down = rng.one_in(3);
                let l = Blocks {
                    start: if down { (n - 1) * ls } else { rng.below(SOURCE - n * ls - 1) },
                    stride: if down { -(ls as isize) } else { ls as isize },
                    block: size,
                    count: n,
                };
                at += n * stride;
                out.push(Added::Slice(l, r));
            }
            3 => {
                // Blocks of different length on the two sides.
                let (a, b) = *rng.pick(&[(2, 3), (3, 2), (1, 8), (8, 1), (6, 4), (5, 7)]);
                let unit = rng.range(1, 3);
                let (lb, rb, k) = (a * unit, b * unit, rng.range(1, 3));
                let total = a * b * unit * k;
                let (rs, ls) = (rb + rng.below(7), lb + rng.below(30));
                let r = Blocks { start: at, stride: rs as isize, block: rb, count: total / rb };
                let l = Blocks {
                    start: rng.below(SOURCE - total / lb * ls - 1),
                    stride: ls as isize,
                    block: lb,
                    count: total / lb,
                };
                at += total / rb * rs;
                out.push(Added::Slice(l, r));
            }
            _ => at += rng.below(200),
        }
    }
    if let Some(twice) = out.first().cloned() {
        out.push(twice);
    }
    rng.shuffle(&mut out);
    out
}

pub fn source_byte(src: usize, round: usize, again: usize, at: usize) -> u8 {
    (src * 101 + round * 37 + again * 59 + at * 7 + (at >> 8) * 13) as u8
}

pub fn random(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let composer = Composer::new();
    composer.sync(engine).expect("sync");
    let (to_segment, from_segment) = (ctx.allocate(ctx.n * REGION), ctx.allocate(SOURCE));
    let (mut to_heap, mut from_heap) = (vec![0u8; ctx.n * REGION], vec![0u8; SOURCE]);
    let heaps = engine
        .world()
        .allgather(engine, &(to_heap.as_mut_ptr() as u64))
        .expect("the addresses of the heaps");
    for round in 0..if ctx.quick { 6 } else { 16 } {
        step(format!("random compositions: round {round}"));
        let mut rng = Rng::new(ctx.seed, &[78, round as u64]);
        let (heap_to, heap_from) = (rng.one_in(3), rng.one_in(2));
        let local =
            if heap_from { from_heap.as_ptr() as usize } else { from_segment.my_base() as usize };
        let mut whole: Option<Composition> = None;
        let mut each = Vec::new();
        for (dst, &heap) in heaps.iter().enumerate() {
            let base = if heap_to { heap as usize } else { to_segment.part(dst).address() };
            let remote = base + ctx.me * REGION;
            let mut simple = Composition::simple(engine, dst).expect("simple");
            let mut other = Composition::simple(engine, dst).expect("simple");
            for (i, added) in parcel(ctx, round, ctx.me, dst).iter().enumerate() {
                let c = if i % 3 == 2 { &mut other } else { &mut simple };
                added.add(c, local, remote).expect("add");
            }
            let both = simple.merge(&other).expect("merge");
            // A later change of `simple` does not change the merged composition.
            simple.add(local, remote + REGION - 1, 1).expect("add");
            assert_eq!(
                (simple.kind(), both.kind()),
                (CompositionKind::Simple, CompositionKind::Merged)
            );
            whole = Some(match whole {
                Some(whole) => whole.merge(&both).expect("merge"),
                None => both.clone(),
            });
            each.push(both.map(engine).expect("map"));
        }
        let whole = whole.expect("there are ranks").map(engine).expect("map");
        assert_eq!(whole.kind(), CompositionKind::Mapped);
        for again in 0..3 {
            let bytes = |at| source_byte(ctx.me, round, again, at);
            let from: &mut [u8] = if heap_from { &mut from_heap } else { own(&from_segment) };
            from.iter_mut().enumerate().for_each(|(at, b)| *b = bytes(at));
            let to: &mut [u8] = if heap_to { &mut to_heap } else { own(&to_segment) };
            to.fill(0xa5);
            composer.sync(engine).expect("sync");
            // SAFETY: sources and destinations live until the end of the check.
            unsafe {
                if again == 1 {
                    for mapped in &each {
                        composer.perform(engine, mapped.plan().expect("mapped")).expect("perform");
                    }
                } else {
                    composer.perform(engine, whole.plan().expect("mapped")).expect("perform");
                }
            }
            let mut want = vec![0xa5u8; ctx.n * REGION];
            let mut arrivals = 0;
            for src in 0..ctx.n {
                let parcel = parcel(ctx, round, src, ctx.me);
                arrivals += u32::from(!parcel.is_empty());
                for (l, r, n) in parcel.iter().flat_map(Added::bytes) {
                    for i in 0..n {
                        want[src * REGION + r + i] = source_byte(src, round, again, l + i);
                    }
                }
            }
            composer.wait_for(engine, arrivals).expect("wait");
            let got: &[u8] = if heap_to { &to_heap } else { own(&to_segment) };
            let differs = got.iter().zip(&want).position(|(g, w)| g != w);
            assert_eq!(
                differs,
                None,
                "round {round}, performance {again}, heap {heap_from} to {heap_to}: region and offset \
                 {:?}",
                differs.map(|at| (at / REGION, at % REGION, got[at], want[at]))
            );
            assert_eq!(composer.arrived().expect("arrived"), arrivals);
        }
        composer.sync(engine).expect("sync");
    }
    composer.free(engine).expect("free");
    ctx.free(to_segment);
    ctx.free(from_segment);
}

pub fn block(ctx: &Ctx, target: usize, local: usize, remote: usize, bytes: usize) -> Composition {
    let mut c = Composition::simple(&ctx.engine, target).expect("simple");
    c.add(local, remote, bytes).expect("add");
    c.map(&ctx.engine).expect("map")
}

pub fn perform(ctx: &Ctx, composer: &Composer, c: &Composition) {
    // SAFETY: the checks keep their memory until the phase is over.
    unsafe { composer.perform(&ctx.engine, c.plan().expect("mapped")) }.expect("perform");
}

/// Ring, all-to-all, and self; many phases without a pause, so that a fast rank is one phase ahead;
/// many outstanding performances.
pub fn patterns(ctx: &Ctx) {
    const MANY: usize = 40;
    let engine = &*ctx.engine;
    let composer = Composer::new();
    let segment = ctx.allocate(8 * ctx.n * MANY);
    let mut out = vec![0u64; MANY];
    let at = |rank: usize, slot: usize| segment.part(rank).address() + 8 * slot;
    let local = |i: usize, out: &Vec<u64>| out.as_ptr() as usize + 8 * i;
    let next = (ctx.me + 1) % ctx.n;
    let ring = block(ctx, next, local(0, &out), at(next, 0), 8);
    composer.sync(engine).expect("sync");
    for phase in 0..if ctx.quick { 100 } else { 400u64 } {
        step(format!("ring: phase {phase}"));
        out[0] = phase * 1000 + ctx.me as u64;
        composer.sync(engine).expect("sync");
        perform(ctx, &composer, &ring);
        composer.wait_for(engine, 1).expect("wait");
        let before = (ctx.me + ctx.n - 1) % ctx.n;
        let got = u64::from_ne_bytes(own(&segment)[..8].try_into().expect("eight bytes"));
        assert_eq!(got, phase * 1000 + before as u64, "phase {phase}");
        assert_eq!(composer.arrived().expect("arrived"), 1);
    }
    composer.sync(engine).expect("sync");
    for phase in 0..if ctx.quick { 3 } else { 10u64 } {
        step(format!("all to all: phase {phase}"));
        let performances: Vec<Vec<Composition>> = (0..ctx.n)
            .map(|dst| {
                let slot = |i| at(dst, ctx.me * MANY + i);
                (0..MANY).map(|i| block(ctx, dst, local(i, &out), slot(i), 8)).collect()
            })
            .collect();
        for (i, o) in out.iter_mut().enumerate() {
            *o = phase << 32 | ((ctx.me << 16) + i) as u64;
        }
        composer.sync(engine).expect("sync");
        for turn in 0..ctx.n {
            let to = &performances[(ctx.me + turn) % ctx.n];
            to.iter().for_each(|c| perform(ctx, &composer, c));
        }
        composer.wait_for(engine, (ctx.n * MANY) as u32).expect("wait");
        composer.wait_for(engine, 1).expect("what has arrived has arrived");
        for (slot, bytes) in own(&segment).chunks_exact(8).enumerate() {
            let got = u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
            assert_eq!(
                got,
                phase << 32 | (((slot / MANY) << 16) + slot % MANY) as u64,
                "slot {slot}"
            );
        }
        composer.sync(engine).expect("sync");
    }
    composer.free(engine).expect("free");
    ctx.free(segment);
}

/// A composition reaches a rank that computes, and that rank finds its arrival afterwards.
pub fn computing(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let composer = Composer::new();
    let segment = ctx.allocate(100_000);
    own(&segment).fill(0);
    let out = vec![7u8; 100_000];
    let other = 1 - ctx.me;
    let c = block(ctx, other, out.as_ptr() as usize, segment.part(other).address(), out.len());
    composer.sync(engine).expect("sync");
    if ctx.me == 0 {
        step("perform to a rank that computes");
        perform(ctx, &composer, &c);
        engine.fence(1).expect("fence");
        ctx.put(1, segment.part(1).address(), &[8]);
        engine.fence(1).expect("fence");
    } else {
        step("compute, until rank 0 is done");
        compute_until(&segment, 0, 8);
        assert_eq!(composer.arrived().expect("arrived"), 1, "it was counted meanwhile");
        own(&segment)[0] = 7;
        composer.wait_for(engine, 1).expect("wait");
        assert!(own(&segment).iter().all(|&b| b == 7));
    }
    composer.sync(engine).expect("sync");
    composer.free(engine).expect("free");
    ctx.free(segment);
}

/// A million single bytes, added one by one in column order, become few steps.
pub fn million(ctx: &Ctx) {
    const ROWS: usize = 1000;
    let engine = &*ctx.engine;
    let composer = Composer::new();
    composer.sync(engine).expect("sync");
    let segment = ctx.allocate(ROWS * 1008);
    own(&segment).fill(0);
    let out: Vec<u8> = (0..ROWS * 1000).map(|i| (i * 7 + i / 1000) as u8).collect();
    let target = (ctx.me + 1) % ctx.n;
    let there = segment.part(target).address();
    let mut c = Composition::simple(engine, target).expect("simple");
    for column in 0..1000 {
        for row in 0..ROWS {
            let from = out.as_ptr() as usize + row * 1000 + column;
            c.add(from, there + row * 1008 + column, 1).expect("add");
        }
    }
    let mapped = c.map(engine).expect("map");
    if engine.reaches_directly(target, ctx.me) {
        assert_eq!(mapped.plan().expect("mapped").steps(), 1, "rows of one array");
    }
    composer.sync(engine).expect("sync");
    perform(ctx, &composer, &mapped);
    composer.wait_for(engine, 1).expect("wait");
    for (row, got) in own(&segment).chunks_exact(1008).enumerate() {
        assert!(got[..1000] == out[row * 1000..][..1000] && got[1000..] == [0; 8], "row {row}");
    }
    composer.sync(engine).expect("sync");
    composer.free(engine).expect("free");
    ctx.free(segment);
}

/// A block that continues from one segment into the next is split at the boundary.
pub fn neighbours(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let composer = Composer::new();
    composer.sync(engine).expect("sync");
    let (a, b) = (ctx.allocate(640), ctx.allocate(640));
    own(&a).fill(0);
    own(&b).fill(0);
    ctx.barrier();
    let target = (ctx.me + 1) % ctx.n;
    let (at_a, at_b) = (a.part(target).address(), b.part(target).address());
    let out: Vec<u8> = (0..=255).collect();
    if at_a + 640 == at_b {
        let c = block(ctx, target, out.as_ptr() as usize, at_a + 600, 100);
        composer.sync(engine).expect("sync");
        perform(ctx, &composer, &c);
        composer.wait_for(engine, 1).expect("wait");
        assert_eq!(own(&a)[600..], out[..40]);
        assert_eq!(own(&b)[..60], out[40..100]);
        assert!(own(&b)[60..].iter().all(|&x| x == 0));
    } else {
        composer.sync(engine).expect("sync");
    }
    composer.sync(engine).expect("sync");
    composer.free(engine).expect("free");
    ctx.free(a);
    ctx.free(b);
}
