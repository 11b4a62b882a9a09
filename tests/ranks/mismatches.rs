//! Ranks that make different collective calls: every rank gets an error that names both calls, no
//! result is delivered, and no rank hangs.

use crate::child::{Ctx, refused, step};
use crate::rng::Rng;
use num_complex::Complex;
use portolan::{ErrorKind, Result};
use portolan_engine::collective::group::Group;
use portolan_engine::collective::{Kind, Operator};
use portolan_engine::runtime::Engine;
use std::sync::Arc;

/// Lengths are in elements.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Call {
    Barrier,
    Sum(usize, Option<usize>),
    Max(usize, Option<usize>),
    SumOfInts(usize, Option<usize>),
    Broadcast(usize, usize),
    GatherByte,
    GatherMany,
    Scan(usize),
    Gather(usize, usize),
    Scatter(usize, usize),
    AllToAll(usize),
    AllToAllVaried,
    Allocate,
    Mutexes,
}

/// The contents of buffers that a result would overwrite.
const UNTOUCHED: u8 = 0x5a;

impl Call {
    fn text(self) -> String {
        let reduced = |n: usize, ty: &str, op: &str, root: Option<usize>| match root {
            Some(root) => format!("reduce of {n} {ty} ({op}) to rank {root}"),
            None => format!("all_reduce of {n} {ty} ({op})"),
        };
        match self {
            Call::Barrier => "barrier".into(),
            Call::Sum(n, root) => reduced(n, "f64", "sum", root),
            Call::Max(n, root) => reduced(n, "f64", "max", root),
            Call::SumOfInts(n, root) => reduced(n, "i64", "sum", root),
            Call::Broadcast(n, root) => format!("broadcast of {n} u8 from rank {root}"),
            Call::GatherByte => "all_gather of 1 u8".into(),
            Call::GatherMany => "all_gather of 1 elements of 1600 bytes".into(),
            Call::Scan(n) => format!("scan of {n} f64 (sum)"),
            Call::Gather(n, root) => format!("gather of {n} Complex<f32> to rank {root}"),
            Call::Scatter(n, root) => format!("scatter of {n} u16 from rank {root}"),
            Call::AllToAll(n) => format!("all_to_all of {n} u64"),
            Call::AllToAllVaried => "all_to_all_varied of any u64".into(),
            Call::Allocate => "allocation".into(),
            Call::Mutexes => "creation of mutexes".into(),
        }
    }

    /// Makes the call. If a reduction fails, its data must be unchanged.
    fn make(self, ctx: &Ctx, group: &Arc<Group>) -> Result<()> {
        let engine = &*ctx.engine;
        let sum = |data: &mut [f64], op, root| {
            let done = group.reduce(engine, data, op, root);
            assert!(done.is_ok() || data.iter().all(|x| *x == 1.5), "{self:?} has a result");
            done
        };
        match self {
            Call::Barrier => group.barrier(engine),
            Call::Sum(n, root) => sum(&mut vec![1.5; n], Operator::Sum, root),
            Call::Max(n, root) => sum(&mut vec![1.5; n], Operator::Max, root),
            Call::SumOfInts(n, root) => {
                group.reduce(engine, &mut vec![7i64; n], Operator::Sum, root)
            }
            Call::Broadcast(n, root) => group.broadcast(engine, &mut vec![UNTOUCHED; n], root),
            Call::GatherByte => group.allgather(engine, &1u8).map(drop),
            Call::GatherMany => group.allgather(engine, &[9u64; 200]).map(drop),
            Call::Scan(n) => {
                let mut data = vec![1.5; n];
                let done = group.scan(engine, Kind::Scan, &mut data, Operator::Sum);
                assert!(done.is_ok() || data.iter().all(|x| *x == 1.5), "{self:?} has a result");
                done
            }
            Call::Gather(n, root) => {
                group.gather(engine, &vec![Complex::new(1.0f32, 0.0); n], root).map(drop)
            }
            Call::Scatter(n, root) => {
                group.scatter(engine, &vec![7u16; n * ctx.n], &mut vec![0; n], root)
            }
            Call::AllToAll(n) => group.all_to_all(engine, &vec![1u64; n]).map(drop),
            Call::AllToAllVaried => {
                group.all_to_all_varied(engine, &vec![1u64; ctx.n], &vec![1; ctx.n]).map(drop)
            }
            Call::Allocate => engine.allocate(group, 64).map(drop),
            Call::Mutexes => engine.create_mutexes(group, Ok(2)).map(drop),
        }
    }
}

fn draw(rng: &mut Rng, n: usize) -> Call {
    // Numbers of elements around the sizes of slots, blocks and messages, and around the length
    // from which MPI's own collectives take over.
    const COUNTS: [usize; 7] = [1, 2, 8, 9, 40, 2000, 9000];
    let count = COUNTS[rng.below(COUNTS.len())];
    let root = rng.below(n);
    let maybe = (rng.below(2) == 0).then_some(root);
    match rng.below(9) {
        0 => Call::Barrier,
        1 | 2 => Call::Sum(count, maybe),
        3 => Call::Max(count, maybe),
        4 => Call::SumOfInts(count, maybe),
        5 | 6 => Call::Broadcast(8 * count, root),
        7 => Call::GatherByte,
        _ => [Call::GatherMany, Call::Allocate, Call::Mutexes][rng.below(3)],
    }
}

/// Creates a group of all ranks. A rank that lags learns here that the others have already gone on
/// and made different calls.
fn group_of_all(ctx: &Ctx) -> Option<Arc<Group>> {
    let all: Vec<usize> = (0..ctx.n).collect();
    match ctx.engine.create_group(ctx.engine.world(), &all) {
        Ok(made) => Some(made.expect("all are members")),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Mismatch, "a group: {error}");
            None
        }
    }
}

/// Rank `which` makes the call `odd`, and the other ranks make the call `common`.
fn one_differs(ctx: &Ctx, (common, odd): (Call, Call), which: usize, before: &[Call]) {
    let Some(group) = group_of_all(ctx) else {
        ctx.barrier();
        return ctx.barrier();
    };
    step(format!("mismatches: {common:?}, but {odd:?} on rank {which}"));
    let mine = if ctx.me == which { odd } else { common };
    // A rank that the others need not wait for may learn of the mismatch in an earlier call. A rank
    // that only sends learns of it in its next call.
    let mut calls = before.iter().chain([&mine]);
    let made = calls.try_for_each(|call| call.make(ctx, &group));
    let made = made.and_then(|()| group.barrier(&*ctx.engine));
    let text = refused(ErrorKind::Mismatch, "different calls", made);
    assert!(text.contains(&format!("rank {which}: {}", odd.text())), "{text}");
    assert!(text.contains(&common.text()), "{text}");
    // The group reports the same mismatch until its ranks resume it.
    let again = refused(ErrorKind::Mismatch, "a broken group", group.barrier(&*ctx.engine));
    assert_eq!(again.split(": rank").nth(1), text.split(": rank").nth(1));
    assert!(again.contains("an earlier mismatch"), "{again}");
    // Other groups are not affected.
    ctx.barrier();
    resumed(ctx, &group);
    ctx.barrier();
    ctx.engine.free_group(&group).expect("free");
    ctx.barrier();
}

/// All ranks resume the group. Messages and results of the different calls do not reach the next ones.
fn resumed(ctx: &Ctx, group: &Arc<Group>) {
    let engine = &*ctx.engine;
    engine.resume_group(group).expect("resume");
    assert!(!group.has_mismatch());
    refused(ErrorKind::State, "a group without a mismatch", engine.resume_group(group));
    for len in [1, 9000] {
        let mut data = vec![ctx.me as f64; len];
        group.reduce(engine, &mut data, Operator::Sum, None).expect("a sum");
        assert!(data.iter().all(|x| *x == (ctx.n * (ctx.n - 1) / 2) as f64), "{data:?}");
        let root = ctx.n - 1;
        let mut bytes = vec![ctx.me as u8; 8 * len];
        group.broadcast(engine, &mut bytes, root).expect("a broadcast");
        assert!(bytes.iter().all(|x| *x == root as u8));
    }
    let all = group.allgather(engine, &(ctx.me as u64)).expect("a gather");
    assert_eq!(all, (0..ctx.n as u64).collect::<Vec<_>>());
    group.barrier(engine).expect("a barrier");
}

/// Tests pairs of calls that were once accepted as matching, all pairs of calls that take different
/// steps, and random pairs.
pub fn mismatches(ctx: &Ctx) {
    if ctx.n == 1 {
        return;
    }
    let fixed = [
        (Call::Sum(4, None), Call::Sum(2, None)),
        (Call::Sum(2, None), Call::Sum(4, None)),
        (Call::Sum(400, None), Call::Sum(4, None)),
        (Call::Sum(9000, None), Call::Sum(2, None)),
        (Call::Sum(9000, None), Call::Sum(9001, None)),
        (Call::Barrier, Call::Sum(1, None)),
        (Call::Sum(1, None), Call::SumOfInts(1, None)),
        (Call::Sum(1, None), Call::Max(1, None)),
        (Call::Sum(3, Some(0)), Call::Sum(3, Some(ctx.n - 1))),
        (Call::Sum(3, Some(0)), Call::Sum(3, None)),
        (Call::Broadcast(8, 0), Call::Broadcast(8, ctx.n - 1)),
        (Call::Broadcast(8, 0), Call::Broadcast(100_000, 0)),
        (Call::Broadcast(100_000, 0), Call::Broadcast(8, 0)),
        (Call::GatherByte, Call::GatherMany),
        (Call::GatherByte, Call::Barrier),
        (Call::Scan(3), Call::Sum(3, None)),
        (Call::Scan(3), Call::Scan(70_000)),
        (Call::Gather(3, 0), Call::Gather(3, ctx.n - 1)),
        (Call::Gather(3, 0), Call::Gather(4, 0)),
        (Call::Scatter(3, 0), Call::Scatter(3, ctx.n - 1)),
        (Call::Scatter(3, 0), Call::Broadcast(6, 0)),
        (Call::AllToAll(0), Call::AllToAll(ctx.n)),
        (Call::AllToAll(ctx.n), Call::Gather(ctx.n, 0)),
        (Call::AllToAll(ctx.n), Call::AllToAllVaried),
        (Call::Allocate, Call::Sum(3, None)),
        (Call::Barrier, Call::Allocate),
        (Call::Mutexes, Call::Allocate),
    ];
    let by_steps = [
        Call::Barrier,
        Call::Sum(2, None),
        Call::Sum(700, None),
        Call::Broadcast(8, 1),
        Call::Sum(2, Some(ctx.n - 1)),
    ];
    let pairs = by_steps.into_iter().flat_map(|a| by_steps.map(|b| (a, b)));
    let all = fixed.into_iter().chain(pairs.filter(|(a, b)| a != b));
    for (n, pair) in all.enumerate() {
        one_differs(ctx, pair, n % ctx.n, &[]);
    }
    let mut rng = Rng::new(ctx.seed, &[77]);
    for _ in 0..if ctx.quick { 10 } else { 40 } {
        let mut before: Vec<Call> = (0..rng.below(4)).map(|_| draw(&mut rng, ctx.n)).collect();
        // Memory and mutexes would stay with the group, so these calls are left out.
        before.retain(|call| !matches!(call, Call::Allocate | Call::Mutexes));
        let (common, odd) = (draw(&mut rng, ctx.n), draw(&mut rng, ctx.n));
        let which = rng.below(ctx.n);
        if common != odd {
            one_differs(ctx, (common, odd), which, &before);
        }
    }
}

/// The ranks create a group of the same ranks, but in different orders.
pub fn orders(ctx: &Ctx) {
    if ctx.n == 1 {
        return;
    }
    step("mismatches: orders of a group");
    let mut ranks: Vec<usize> = (0..ctx.n).collect();
    if ctx.me == 0 {
        ranks.reverse();
    }
    let made = ctx.engine.create_group(ctx.engine.world(), &ranks);
    let text = refused(ErrorKind::Mismatch, "different lists of ranks", made);
    assert!(text.contains("creation of a group of the ranks 0, 1"), "{text}");
    ctx.barrier();
    // The ranks have no common group to report the mismatch, so creating groups stays broken.
    let all: Vec<usize> = (0..ctx.n).collect();
    let again = ctx.engine.create_group(ctx.engine.world(), &all);
    refused(ErrorKind::Mismatch, "another group", again);
    ctx.barrier();
}

/// The ranks free different groups of the same ranks.
pub fn frees_alone() {
    let ctx = Ctx::new(crate::child::start());
    let groups = [(); 2].map(|()| group_of_all(&ctx).expect("a group"));
    let mine = &groups[usize::from(ctx.me > 0)];
    let text = refused(ErrorKind::Mismatch, "different groups", ctx.engine.free_group(mine));
    assert!(text.contains("rank 0: free of a group (number "), "{text}");
    assert!(!mine.is_freed());
    drop(groups);
    drop(ctx);
    Engine::stop().expect("stop");
}

pub fn orders_alone() {
    let ctx = Ctx::new(crate::child::start());
    orders(&ctx);
    drop(ctx);
    Engine::stop().expect("stop");
}
