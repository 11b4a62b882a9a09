//! Compares collectives with results that the test computes itself.

use crate::child::{Ctx, refused, step};
use crate::rng::Rng;
use portolan::{Error, ErrorKind};
use portolan_engine::collective::{self, Operator, Reducible};
use portolan_engine::mpi::Comm;

fn duplicate(ctx: &Ctx) -> Comm {
    let handle = ctx.engine.world().comm_handle().expect("the world's communicator");
    // SAFETY: the world's communicator lives until the engine stops.
    unsafe { collective::dup_of(handle) }.expect("a duplicate")
}

pub fn collectives(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let comm = duplicate(ctx);
    for root in 0..ctx.n {
        for bytes in [0, 1, 7, 1000, 70_000, 3_000_000] {
            step(format!("collectives: broadcast of {bytes} bytes from {root}"));
            let want = Rng::new(ctx.seed, &[root as u64, bytes as u64]).bytes(bytes);
            let mut data = if ctx.me == root { want.clone() } else { vec![0; bytes] };
            collective::broadcast(&comm, engine, &mut data, root).expect("broadcast");
            assert!(data == want, "broadcast of {bytes} bytes from {root}");
        }
    }
    step("collectives: allgather");
    for i in 0..20u64 {
        let mine = [ctx.me as u64 * 1000 + i, i];
        let all = collective::allgather(&comm, engine, &mine).expect("allgather");
        let want: Vec<[u64; 2]> = (0..ctx.n as u64).map(|r| [r * 1000 + i, i]).collect();
        assert_eq!(all, want);
    }
    step("collectives: agreement");
    collective::agree(&comm, engine, Ok(())).expect("all agree");
    for failing in 0..ctx.n {
        let mine = if ctx.me >= failing {
            Err(Error::new(ErrorKind::Memory, format!("rank {} has no room", ctx.me)))
        } else {
            Ok(())
        };
        let text =
            refused(ErrorKind::Memory, "an agreement", collective::agree(&comm, engine, mine));
        let named = if ctx.me >= failing { ctx.me } else { failing };
        assert!(text.contains(&format!("rank {named} has no room")), "{text}");
    }
    comm.free().expect("free");
}

const OPERATORS: [(Operator, &str); 8] = [
    (Operator::Sum, "+"),
    (Operator::Product, "*"),
    (Operator::Min, "min"),
    (Operator::Max, "max"),
    (Operator::AbsMin, "absmin"),
    (Operator::AbsMax, "absmax"),
    (Operator::Abs, "abs"),
    (Operator::Or, "or"),
];

/// A type with arithmetic that the check computes itself.
trait Number: Reducible + PartialEq + std::fmt::Debug {
    fn of(value: i64) -> Self;
    fn expected(name: &str, all: &[i64], mine: i64) -> Self;
}

fn by_name(name: &str, all: &[i64], mine: i64, float: bool) -> i64 {
    match name {
        "+" => all.iter().sum(),
        "*" => all.iter().product(),
        "min" => *all.iter().min().expect("some"),
        "max" => *all.iter().max().expect("some"),
        "absmin" => all.iter().map(|x| x.abs()).min().expect("some"),
        "absmax" => all.iter().map(|x| x.abs()).max().expect("some"),
        "abs" => mine.abs(),
        _ if float => i64::from(all.iter().any(|&x| x != 0)),
        _ => all.iter().fold(0, |a, b| a | b),
    }
}

macro_rules! number {
    ($($ty:ty = $float:expr),+) => {$(
        impl Number for $ty {
            fn of(value: i64) -> Self {
                value as $ty
            }
            fn expected(name: &str, all: &[i64], mine: i64) -> Self {
                by_name(name, all, mine, $float) as $ty
            }
        }
    )+};
}
number!(i32 = false, i64 = false, f32 = true, f64 = true);

fn reductions_of<T: Number>(ctx: &Ctx, comm: &Comm, what: &str) {
    for count in [0usize, 1, 5, 20_000] {
        // The values of each element, by rank: small integers, exact in every type, and zeros.
        let mut rngs: Vec<Rng> =
            (0..ctx.n).map(|rank| Rng::new(ctx.seed, &[rank as u64, count as u64])).collect();
        let columns: Vec<Vec<i64>> = (0..count)
            .map(|_| rngs.iter_mut().map(|rng| rng.below(21) as i64 - 10).collect())
            .collect();
        for (operator, name) in OPERATORS {
            for root in [None, Some(0), Some(ctx.n - 1)] {
                step(format!("reductions: {name} of {count} {what}, root {root:?}"));
                let mut data: Vec<T> = columns.iter().map(|column| T::of(column[ctx.me])).collect();
                collective::reduce(comm, &*ctx.engine, &mut data, operator, root).expect("reduce");
                let result_here = root.is_none_or(|r| r == ctx.me);
                for (column, got) in columns.iter().zip(&data) {
                    let mine = column[ctx.me];
                    let want =
                        if result_here { T::expected(name, column, mine) } else { T::of(mine) };
                    assert_eq!(*got, want, "{name} of {what} {column:?}, root {root:?}");
                }
            }
        }
    }
}

pub fn reductions(ctx: &Ctx) {
    let comm = duplicate(ctx);
    reductions_of::<i32>(ctx, &comm, "ints");
    reductions_of::<i64>(ctx, &comm, "longs");
    reductions_of::<f32>(ctx, &comm, "floats");
    reductions_of::<f64>(ctx, &comm, "doubles");
    let mut wrapped = [i32::MAX];
    collective::reduce(&comm, &*ctx.engine, &mut wrapped, Operator::Sum, None).expect("reduce");
    assert_eq!(
        wrapped[0],
        (0..ctx.n).fold(0i32, |a, _| a.wrapping_add(i32::MAX)),
        "a sum that wraps"
    );
    let mut far = [i64::MIN + ctx.me as i64];
    collective::reduce(&comm, &*ctx.engine, &mut far, Operator::Max, None).expect("reduce");
    assert_eq!(far[0], i64::MIN + ctx.n as i64 - 1, "the largest of very negative longs");
    comm.free().expect("free");
}
