//! Tests groups: subsets of ranks with memory of their own.

use crate::child::{Ctx, own, refused, step};
use crate::rng::Rng;
use portolan::ErrorKind;
use portolan_base::layout::Shape;
use portolan_engine::collective::group::Group;
use portolan_engine::path::kernel::Scale;
use portolan_engine::transfer::{Transfer, TransferKind};
use std::sync::Arc;

fn create(ctx: &Ctx, ranks: &[usize]) -> Option<Arc<Group>> {
    let group = ctx.engine.create_group(ctx.engine.world(), ranks).expect("create a group");
    assert_eq!(group.is_some(), ranks.contains(&ctx.me), "membership in {ranks:?}");
    group
}

fn use_group(ctx: &Ctx, group: &Arc<Group>, ranks: &[usize]) {
    let engine = &*ctx.engine;
    assert_eq!(group.members(), ranks);
    assert_eq!(group.world_rank(group.rank()).expect("my rank"), ctx.me);
    assert_eq!(group.rank_of(ctx.me), Some(group.rank()));
    refused(ErrorKind::Rank, "a rank outside the group", group.world_rank(ranks.len()));
    let segment = engine.allocate(group, 1000 + 8 * group.rank()).expect("allocate");
    own(&segment).fill(0);
    engine.barrier_of(group).expect("barrier");
    let right = (group.rank() + 1) % ranks.len();
    let (world, at) = (ranks[right], segment.part(right).address());
    assert_eq!(segment.part(right).len(), 1000 + 8 * right);
    let data = Rng::new(ctx.seed, &[world as u64, ranks.len() as u64]).bytes(992);
    ctx.put(world, at, &data);
    for &member in ranks {
        let part = segment.part(group.rank_of(member).expect("a member"));
        let (one, shape) = (1i64, Shape::contiguous(8));
        let source = (&raw const one).cast::<u8>().cast_mut();
        let add = TransferKind::Accumulate(Scale::Long(2));
        // SAFETY: an accumulate only reads its source, which has eight bytes.
        unsafe {
            engine.blocking(&Transfer::new(add, member, part.address() + 992, source, &shape))
        }
        .expect("acc");
    }
    let set = engine.create_mutexes(group, Ok(1)).expect("mutexes");
    for _ in 0..5 {
        engine.lock(&set, 0, right).expect("lock");
        engine.unlock(&set, 0, right).expect("unlock");
    }
    engine.destroy_mutexes(&set).expect("destroy");
    engine.barrier_of(group).expect("barrier");
    let mine = Rng::new(ctx.seed, &[ctx.me as u64, ranks.len() as u64]).bytes(992);
    assert!(own(&segment)[..992] == mine, "data of the left neighbour");
    assert_eq!(
        own(&segment)[992..1000],
        (2 * ranks.len() as i64).to_ne_bytes(),
        "accumulates of all"
    );
    // A fence to any rank, member or not, is legal.
    for rank in 0..ctx.n {
        engine.fence(rank).expect("fence");
    }
    engine.fence_all().expect("fence");
    engine.release(segment).expect("release");
}

/// Returns the sets of ranks that the checks use: all, reversed, single ranks, halves and overlaps.
fn sets(n: usize) -> Vec<Vec<usize>> {
    let all: Vec<usize> = (0..n).collect();
    let mut sets = vec![all.clone(), all.iter().rev().copied().collect()];
    sets.extend(all.iter().map(|&r| vec![r]));
    if n > 2 {
        sets.push(all.iter().copied().filter(|r| r % 2 == 0).collect());
        sets.push(all.iter().copied().filter(|r| r % 2 == 1).collect());
        sets.push(all[1..].to_vec());
        sets.push(all[..n - 1].to_vec());
    }
    sets
}

/// Uses one group after the other, then all at once; then passes bad arguments.
pub fn groups(ctx: &Ctx) {
    let engine = &*ctx.engine;
    for ranks in sets(ctx.n) {
        step(format!("groups: {ranks:?}"));
        if let Some(group) = create(ctx, &ranks) {
            use_group(ctx, &group, &ranks);
            engine.free_group(&group).expect("free");
            let allocated = engine.allocate(&group, 8);
            refused(ErrorKind::State, "memory of a freed group", allocated);
            refused(ErrorKind::State, "a barrier of a freed group", engine.barrier_of(&group));
            refused(ErrorKind::State, "freeing a group twice", engine.free_group(&group));
        }
    }
    step("groups: all at once");
    let live: Vec<_> = sets(ctx.n).into_iter().map(|ranks| (create(ctx, &ranks), ranks)).collect();
    for (group, ranks) in &live {
        if let Some(group) = group {
            step(format!("groups: {ranks:?} among others"));
            use_group(ctx, group, ranks);
            // A subgroup of a subgroup.
            if ranks.len() > 1 {
                let last = [ranks.len() - 1];
                let inner = engine.create_group(group, &last).expect("create");
                assert_eq!(inner.is_some(), group.rank() == last[0]);
                if let Some(inner) = inner {
                    use_group(ctx, &inner, &[ctx.me]);
                    engine.free_group(&inner).expect("free");
                }
            }
        }
    }
    for (group, _) in live.into_iter().rev() {
        if let Some(group) = group {
            engine.free_group(&group).expect("free");
        }
    }
    step("groups: bad arguments");
    let world = engine.world();
    refused(ErrorKind::Rank, "rank outside", engine.create_group(world, &[0, ctx.n]));
    refused(ErrorKind::Rank, "rank named twice", engine.create_group(world, &[0, 0]));
    refused(ErrorKind::Argument, "freeing the world", engine.free_group(world));
    let none = engine.create_group(world, &[]).expect("nobody's group");
    assert!(none.is_none());
}

/// A group may be freed before its memory, which lives on.
pub fn orders(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let all: Vec<usize> = (0..ctx.n).collect();
    for (i, ranks) in
        [all.clone(), all[..ctx.n - 1].to_vec(), all[1..].to_vec()].into_iter().enumerate()
    {
        step(format!("group_orders: {ranks:?}"));
        let outer = create(ctx, &all).expect("a member");
        let kept = engine.allocate(&outer, 64).expect("allocate");
        if let Some(group) = create(ctx, &ranks) {
            let first = engine.allocate(&group, 256).expect("allocate");
            let second = engine.allocate(&group, 100_000).expect("allocate");
            engine.free_group(&group).expect("free");
            refused(ErrorKind::State, "freeing a group twice", engine.free_group(&group));
            refused(ErrorKind::State, "memory of a freed group", engine.allocate(&group, 8));
            for segment in [&first, &second] {
                let right = (group.rank() + 1) % ranks.len();
                let at = segment.part(right).address();
                ctx.put(ranks[right], at, &[i as u8 + 1; 64]);
                assert_eq!(ctx.get(ranks[right], at, 64), [i as u8 + 1; 64]);
            }
            engine.release(first).expect("release");
            if i % 2 == 0 {
                engine.release(second).expect("release");
            } else {
                let mine = second.part(group.rank()).address();
                engine.release_at(&group, Some(mine)).expect("release by address");
            }
        }
        // Ranks outside the inner group continue at once, and the outer group still works.
        engine.barrier_of(&outer).expect("barrier");
        engine.release(kept).expect("release");
        engine.free_group(&outer).expect("free");
    }
    // A rank that already frees a group must still serve ranks that come late.
    step("group_orders: late for a free");
    let segment = ctx.allocate(64);
    own(&segment).fill(0);
    let group = create(ctx, &all).expect("a member");
    let inner = engine.allocate(&group, 64).expect("allocate");
    engine.release(inner).expect("release");
    ctx.barrier();
    let one = 1i32;
    for _ in 0..if ctx.me == 0 { 0 } else { 20 } {
        let (at, source) = (segment.part(0).address(), (&raw const one).cast());
        // SAFETY: an accumulate only reads its source, which has four bytes.
        unsafe { engine.accumulate(0, at, source, 4, Scale::Int(1)) }.expect("acc");
        engine.fence(0).expect("fence");
    }
    engine.free_group(&group).expect("free");
    ctx.barrier();
    if ctx.me == 0 {
        assert_eq!(own(&segment)[..4], (20 * (ctx.n as i32 - 1)).to_ne_bytes());
    }
    ctx.barrier();
    ctx.free(segment);
    // All other ranks access a rank while it creates and frees a group alone.
    step("group_orders: one rank alone");
    let segment = ctx.allocate(64);
    own(&segment).fill(0);
    ctx.barrier();
    for i in 0..10 {
        if ctx.me == 0 {
            let group = create(ctx, &[0]).expect("a member");
            let own = engine.allocate(&group, 1000).expect("allocate");
            engine.release(own).expect("release");
            engine.free_group(&group).expect("free");
        } else {
            let at = segment.part(0).address();
            engine.rmw(0, at, portolan_engine::atomics::Rmw::add::<i32>(1)).expect("rmw");
            ctx.put(0, at + 8, &[i; 8]);
            assert_eq!(ctx.get(0, at + 16, 8), [0; 8]);
        }
    }
    ctx.barrier();
    if ctx.me == 0 {
        assert_eq!(own(&segment)[..4], (10 * (ctx.n as i32 - 1)).to_ne_bytes());
    }
    ctx.free(segment);
}
