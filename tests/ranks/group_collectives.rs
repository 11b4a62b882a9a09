//! Compares collectives of groups, which work node by node, with results of the test itself.

use crate::child::{Ctx, refused, step};
use crate::rng::Rng;
use portolan::{Error, ErrorKind};
use portolan_engine::collective::Operator;
use portolan_engine::collective::group::Group;

/// Lengths in bytes around the sizes of slots and blocks, and around the length from which MPI's
/// collectives take over.
const LENGTHS: [usize; 11] = [0, 1, 64, 65, 1024, 1032, 8192, 8200, 20_000, 65_536, 70_000];

fn bytes_of(ctx: &Ctx, rank: usize, round: usize, len: usize) -> Vec<u8> {
    Rng::new(ctx.seed, &[rank as u64, round as u64, len as u64]).bytes(len)
}

fn gather<const N: usize>(ctx: &Ctx, group: &Group, round: usize) {
    let item = |rank: usize| -> [u8; N] {
        bytes_of(ctx, rank, round, N).try_into().expect("as many bytes")
    };
    let all = group.allgather(&*ctx.engine, &item(group.rank())).expect("allgather");
    assert_eq!(all.len(), group.size());
    assert!(all.iter().enumerate().all(|(rank, got)| *got == item(rank)), "allgather of {N} bytes");
}

fn reduce(ctx: &Ctx, group: &Group, round: usize, len: usize, root: Option<usize>) {
    let of = |rank: usize| -> Vec<i64> {
        bytes_of(ctx, rank, round, len / 8).iter().map(|&x| i64::from(x) - 128).collect()
    };
    let (mut data, all): (_, Vec<_>) = (of(group.rank()), (0..group.size()).map(of).collect());
    let operator = [Operator::Sum, Operator::Max, Operator::AbsMin][round % 3];
    group.reduce(&*ctx.engine, &mut data, operator, root).expect("reduce");
    let want = |i: usize| {
        let column = all.iter().map(|values: &Vec<i64>| values[i]);
        match operator {
            Operator::Sum => column.sum(),
            Operator::Max => column.max().expect("some"),
            _ => column.map(i64::abs).min().expect("some"),
        }
    };
    let mine = of(group.rank());
    let here = root.is_none_or(|root| root == group.rank());
    for (i, got) in data.iter().enumerate() {
        let want = if here { want(i) } else { mine[i] };
        assert_eq!(*got, want, "{operator:?}, element {i} of {}, root {root:?}", data.len());
    }
}

/// All members get the same bits of a sum that depends on the order of its terms.
fn same_bits(ctx: &Ctx, group: &Group, count: usize) {
    let bytes = bytes_of(ctx, group.rank(), 1, 2 * count);
    let value = |pair: &[u8]| f64::from(pair[0]).powi(i32::from(pair[1] % 32) - 16) / 3.0;
    let mut data: Vec<f64> = bytes.chunks(2).map(value).collect();
    group.reduce(&*ctx.engine, &mut data, Operator::Sum, None).expect("reduce");
    let digest = data.iter().fold(0u64, |d, x| d.rotate_left(5) ^ x.to_bits());
    let all = group.allgather(&*ctx.engine, &digest).expect("allgather");
    assert!(all.iter().all(|d| *d == all[0]), "a sum of {count} doubles differs: {all:x?}");
}

fn agree(ctx: &Ctx, group: &Group) {
    group.agree(&*ctx.engine, Ok(())).expect("all agree");
    for failing in 0..group.size() {
        let mine = match group.rank() >= failing {
            true => Err(Error::new(ErrorKind::Memory, format!("{} has no room", group.rank()))),
            false => Ok(()),
        };
        let text = refused(ErrorKind::Memory, "an agreement", group.agree(&*ctx.engine, mine));
        let named = failing.max(group.rank());
        assert!(text.contains(&format!("{named} has no room")), "{text}");
    }
}

/// Runs collectives of different kinds and roots in succession, some without a wait in between.
fn one_after_the_other(ctx: &Ctx, group: &Group) {
    let engine = &*ctx.engine;
    for (round, len) in LENGTHS.into_iter().cycle().take(4 * LENGTHS.len()).enumerate() {
        let root = round % group.size();
        step(format!("group_collectives: {len} bytes of {} ranks, root {root}", group.size()));
        let want = bytes_of(ctx, root, round, len);
        let mut data = if group.rank() == root { want.clone() } else { vec![0; len] };
        group.broadcast(engine, &mut data, root).expect("broadcast");
        assert!(data == want, "broadcast of {len} bytes from {root}");
        reduce(ctx, group, round, len, Some(root));
        reduce(ctx, group, round, len, None);
        match round % 4 {
            0 => group.barrier(engine).expect("barrier"),
            1 => gather::<8>(ctx, group, round),
            2 => gather::<200>(ctx, group, round),
            _ => gather::<9000>(ctx, group, round),
        }
    }
    // A root that does not wait can be ahead only by a limited number of calls.
    for round in 0..300u64 {
        let mut value = if group.rank() == 0 { [round] } else { [0] };
        group.broadcast(engine, bytemuck::bytes_of_mut(&mut value), 0).expect("broadcast");
        assert_eq!(value, [round]);
    }
    same_bits(ctx, group, 3);
    same_bits(ctx, group, 1500);
    agree(ctx, group);
}

pub fn group_collectives(ctx: &Ctx) {
    let engine = &*ctx.engine;
    one_after_the_other(ctx, engine.world());
    let backwards: Vec<usize> = (0..ctx.n).rev().collect();
    let first: Vec<usize> = (0..ctx.n.div_ceil(2)).collect();
    let rest: Vec<usize> = (ctx.n / 2..ctx.n).collect();
    let make = |ranks: &[usize]| engine.create_group(engine.world(), ranks).expect("a group");
    let groups = [make(&backwards), make(&first), make(&rest)];
    for group in groups.iter().flatten() {
        one_after_the_other(ctx, group);
    }
    // Alternate between the groups.
    for round in 0..50 {
        for group in groups.iter().flatten() {
            reduce(ctx, group, round, 80, Some(round % group.size()));
            gather::<16>(ctx, group, round);
        }
    }
    for group in groups.iter().flatten() {
        engine.free_group(group).expect("free");
    }
}
