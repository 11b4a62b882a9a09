//! Atomic operations of the Rust interface on one element: each result, and the order on all ranks.

use crate::child::{Ctx, step};
use crate::rng::Rng;
use portolan::internals::runtime;
use portolan::{Atomic, ErrorKind, Segment};
use std::collections::{HashMap, HashSet};

/// The operations, each with an operand. A compare-and-swap expects the first value.
#[derive(Debug, Clone, Copy)]
enum Op<T> {
    Load,
    Store(T),
    Swap(T),
    Add(T),
    And(T),
    Or(T),
    Xor(T),
    Min(T),
    Max(T),
    CompareSwap(T, T),
}

/// An integer type with its own arithmetic, which the results are compared with.
trait Word: Atomic + Ord + std::hash::Hash + std::fmt::Debug {
    fn of(bits: u64) -> Self;
    fn sum(self, other: Self) -> Self;
    fn bits(self, other: Self) -> [Self; 3];
}

macro_rules! words {
    ($($ty:ty)+) => {
        $(impl Word for $ty {
            fn of(bits: u64) -> Self {
                bits as $ty
            }
            fn sum(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn bits(self, other: Self) -> [Self; 3] {
                [self & other, self | other, self ^ other]
            }
        })+
    };
}

words!(i32 u32 i64 u64 isize usize);

impl<T: Word> Op<T> {
    /// Draws an operation. Most operands are small, so that values meet again.
    fn draw(rng: &mut Rng) -> Op<T> {
        let mut value = || match rng.below(4) {
            0 => T::of(rng.next()),
            1 => T::of(u64::MAX - rng.next() % 4),
            _ => T::of(rng.next() % 4),
        };
        let (a, b) = (value(), value());
        match rng.below(10) {
            0 => Op::Load,
            1 => Op::Store(a),
            2 => Op::Swap(a),
            3 => Op::Add(a),
            4 => Op::And(a),
            5 => Op::Or(a),
            6 => Op::Xor(a),
            7 => Op::Min(a),
            8 => Op::Max(a),
            _ => Op::CompareSwap(a, b),
        }
    }

    fn after(self, old: T) -> T {
        match self {
            Op::Load => old,
            Op::Store(v) | Op::Swap(v) => v,
            Op::Add(v) => old.sum(v),
            Op::And(v) => old.bits(v)[0],
            Op::Or(v) => old.bits(v)[1],
            Op::Xor(v) => old.bits(v)[2],
            Op::Min(v) => old.min(v),
            Op::Max(v) => old.max(v),
            Op::CompareSwap(expected, new) => {
                if old == expected {
                    new
                } else {
                    old
                }
            }
        }
    }

    /// Returns the previous value, unless the operation is a store.
    fn perform(self, segment: &Segment<'_, T>, rank: usize, index: usize) -> Option<T> {
        let old = match self {
            Op::Load => segment.load(rank, index),
            Op::Store(v) => {
                segment.store(rank, index, v).expect("store");
                return None;
            }
            Op::Swap(v) => segment.swap(rank, index, v),
            Op::Add(v) => segment.fetch_add(rank, index, v),
            Op::And(v) => segment.fetch_and(rank, index, v),
            Op::Or(v) => segment.fetch_or(rank, index, v),
            Op::Xor(v) => segment.fetch_xor(rank, index, v),
            Op::Min(v) => segment.fetch_min(rank, index, v),
            Op::Max(v) => segment.fetch_max(rank, index, v),
            Op::CompareSwap(expected, new) => segment.compare_swap(rank, index, expected, new),
        };
        Some(old.expect("an atomic operation"))
    }
}

/// Each rank changes an element of its own at every rank, by all kinds of operations, and by puts,
/// gets and accumulates between them. The neighbouring elements belong to other ranks.
fn one_by_one<T: Word>(ctx: &Ctx, what: &str) {
    let rt = runtime(&ctx.engine);
    let segment = rt.world().allocate::<T>(ctx.n).expect("allocate");
    let mut rng = Rng::new(ctx.seed, &[ctx.me as u64, size_of::<T>() as u64]);
    let mut mine = vec![T::zeroed(); ctx.n];
    for round in 0..if ctx.quick { 100 } else { 400 } {
        let target = rng.below(ctx.n);
        let value = &mut mine[target];
        step(format!("words: round {round} of {what} at rank {target}"));
        match rng.below(8) {
            0 => {
                *value = T::of(rng.next());
                segment.put_value(target, ctx.me, *value).expect("put");
            }
            1 => assert_eq!(segment.get_value(target, ctx.me).expect("get"), *value, "a get"),
            2 => {
                let add = T::of(rng.next());
                segment.accumulate(target, ctx.me, T::ONE, &[add]).expect("accumulate");
                *value = value.sum(add);
            }
            _ => {
                let op = Op::<T>::draw(&mut rng);
                if let Some(old) = op.perform(&segment, target, ctx.me) {
                    assert_eq!(old, *value, "{op:?} of {what}");
                }
                *value = op.after(*value);
            }
        }
    }
    rt.world().barrier().expect("barrier");
    for (target, &value) in mine.iter().enumerate() {
        assert_eq!(segment.load(target, ctx.me).expect("load"), value, "the last value of {what}");
    }
    let refused = |kind, result: portolan::Result<T>| {
        assert_eq!(result.expect_err("a wrong element").kind(), kind);
    };
    refused(ErrorKind::Address, segment.compare_swap(ctx.me, ctx.n, T::ONE, T::ONE));
    refused(ErrorKind::Rank, segment.load(ctx.n, 0));
    segment.free().expect("free");
}

pub fn results(ctx: &Ctx) {
    one_by_one::<i32>(ctx, "i32");
    one_by_one::<u32>(ctx, "u32");
    one_by_one::<i64>(ctx, "i64");
    one_by_one::<u64>(ctx, "u64");
}

/// All ranks change one element at once, and note the value before and after each operation. A
/// sequence of all operations exists if and only if the changes, as edges between values, form one
/// path from the first value to the last: every value is left as often as it is reached, apart from
/// these two, and all edges hang together.
fn all_at_once<T: Word>(ctx: &Ctx, what: &str) {
    let rt = runtime(&ctx.engine);
    let world = rt.world();
    let segment = world.allocate::<T>(2).expect("allocate");
    let rounds = if ctx.quick { 40 } else { 100 };
    let notes = world.allocate::<T>(2 * rounds * ctx.n).expect("allocate");
    let mut rng = Rng::new(ctx.seed, &[ctx.me as u64, 77, size_of::<T>() as u64]);
    for target in 0..ctx.n {
        step(format!("words: all at once on {what} of rank {target}"));
        let mut changes = Vec::new();
        while changes.len() < 2 * rounds {
            let op = match Op::<T>::draw(&mut rng) {
                // A store returns no value to note.
                Op::Store(value) => Op::Swap(value),
                op => op,
            };
            let old = op.perform(&segment, target, 1).expect("a value");
            changes.extend([old, op.after(old)]);
        }
        notes.put(0, 2 * rounds * ctx.me, &changes).expect("put");
        world.barrier().expect("barrier");
        if ctx.me == 0 {
            let all = notes.at(0).expect("rank 0").to_vec().expect("notes");
            let last = segment.load(target, 1).expect("load");
            is_a_path(&all, T::zeroed(), last, what);
        }
        world.barrier().expect("barrier");
    }
    segment.free().expect("free");
    notes.free().expect("free");
}

fn is_a_path<T: Word>(changes: &[T], first: T, last: T, what: &str) {
    let mut balance: HashMap<T, i64> = HashMap::new();
    let mut next: HashMap<T, Vec<T>> = HashMap::new();
    for change in changes.chunks(2) {
        *balance.entry(change[0]).or_default() += 1;
        *balance.entry(change[1]).or_default() -= 1;
        next.entry(change[0]).or_default().push(change[1]);
    }
    *balance.entry(first).or_default() -= 1;
    *balance.entry(last).or_default() += 1;
    let odd: Vec<_> = balance.iter().filter(|(_, count)| **count != 0).collect();
    assert!(odd.is_empty(), "{what}: values that are not left as often as reached: {odd:?}");
    let (mut seen, mut open) = (HashSet::from([first]), vec![first]);
    while let Some(value) = open.pop() {
        open.extend(next.get(&value).into_iter().flatten().filter(|to| seen.insert(**to)));
    }
    let lost: Vec<_> = next.keys().filter(|value| !seen.contains(value)).collect();
    assert!(lost.is_empty(), "{what}: values that nothing leads to: {lost:?}");
}

pub fn order(ctx: &Ctx) {
    all_at_once::<u32>(ctx, "u32");
    all_at_once::<i64>(ctx, "i64");
}

/// A counter that grows by `fetch_add` and by `compare_swap`. Every value is handed out once, and
/// the values that a rank sees grow.
pub fn counters(ctx: &Ctx) {
    let rt = runtime(&ctx.engine);
    let world = rt.world();
    let segment = world.allocate::<u64>(1).expect("allocate");
    let rounds = if ctx.quick { 60 } else { 200 };
    let taken = world.allocate::<u32>(rounds * ctx.n).expect("allocate");
    for target in 0..ctx.n {
        step(format!("words: a counter of rank {target}"));
        let mut least = None;
        for round in 0..rounds {
            let value = match round % 2 {
                0 => segment.fetch_add(target, 0, 1).expect("fetch_add"),
                _ => {
                    let mut seen = segment.load(target, 0).expect("load");
                    loop {
                        let old = segment.compare_swap(target, 0, seen, seen + 1).expect("cas");
                        if old == seen {
                            break old;
                        }
                        assert!(old > seen, "the counter went from {seen} to {old}");
                        seen = old;
                    }
                }
            };
            assert!(least.is_none_or(|least| value > least), "{least:?}, then {value}");
            least = Some(value);
            taken.fetch_add(0, value as usize, 1).expect("fetch_add");
        }
        world.barrier().expect("barrier");
        let all = rounds as u64 * ctx.n as u64;
        assert_eq!(segment.load(target, 0).expect("load"), all, "the last value");
        let times = taken.at(0).expect("rank 0").to_vec().expect("get");
        assert_eq!(
            times,
            vec![target as u32 + 1; rounds * ctx.n],
            "how often each value was taken"
        );
        world.barrier().expect("barrier");
    }
    segment.free().expect("free");
    taken.free().expect("free");
}

/// A lock of one word, taken by `compare_swap` and released by `store`, orders its holders' puts.
pub fn lock(ctx: &Ctx) {
    let rt = runtime(&ctx.engine);
    let world = rt.world();
    let segment = world.allocate::<u32>(2).expect("allocate");
    let guarded = world.allocate::<f64>(1).expect("allocate");
    let rounds = if ctx.quick { 20 } else { 60 };
    let target = ctx.n - 1;
    for round in 0..rounds {
        step(format!("words: lock {round}"));
        while segment.compare_swap(target, 1, 0, ctx.me as u32 + 1).expect("cas") != 0 {
            std::thread::yield_now();
        }
        let value = guarded.get_value(target, 0).expect("get");
        guarded.put_value(target, 0, value + 1.0).expect("put");
        guarded.fence(target).expect("fence");
        segment.store(target, 1, 0).expect("store");
    }
    world.barrier().expect("barrier");
    let total = (rounds * ctx.n) as f64;
    assert_eq!(guarded.get_value(target, 0).expect("get"), total, "turns under the lock");
    segment.free().expect("free");
    guarded.free().expect("free");
}
