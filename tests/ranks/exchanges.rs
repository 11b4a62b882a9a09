//! Reductions and scans of every element type, and collectives that move a different part to each
//! rank, compared with results that the test computes itself.

use crate::child::{Ctx, refused, step};
use crate::rng::Rng;
use num_complex::Complex;
use portolan::internals::runtime;
use portolan::reduce::{And, Max, Min, Operator, Or, Product, Reducible, Sum, Xor};
use portolan::{Element, ErrorKind, Group};
use std::fmt::Debug;

/// Numbers of elements: none, a few, more than a cache line, and enough for MPI's own collectives.
const COUNTS: [usize; 5] = [0, 1, 9, 700, 70_000];

trait Value: Reducible + Element + PartialEq + Debug {
    fn of(value: i64) -> Self;
}

macro_rules! values {
    ($($ty:ty: $of:expr;)+) => {
        $(impl Value for $ty {
            fn of(value: i64) -> Self {
                $of(value)
            }
        })+
    };
}

values! {
    i8: |v| v as i8;
    u8: |v| v as u8;
    i16: |v| v as i16;
    u16: |v| v as u16;
    i32: |v| v as i32;
    u32: |v| v as u32;
    i64: |v| v;
    u64: |v| v as u64;
    isize: |v| v as isize;
    usize: |v| v as usize;
    f32: |v| (v % 4) as f32;
    f64: |v| (v % 4) as f64;
    Complex<f32>: |v| Complex::new((v % 3) as f32, (v % 2) as f32);
    Complex<f64>: |v| Complex::new((v % 3) as f64, (v % 2) as f64);
}

/// Returns the values of a rank: the same on whichever rank this is called.
fn values_of<T: Value>(ctx: &Ctx, rank: usize, count: usize) -> Vec<T> {
    let mut rng = Rng::new(ctx.seed, &[rank as u64, count as u64]);
    (0..count).map(|_| T::of(rng.next() as i64)).collect()
}

/// Combines the values of some ranks, which must not be empty.
fn folded<T: Value>(
    ctx: &Ctx,
    ranks: std::ops::Range<usize>,
    count: usize,
    op: fn(T, T) -> T,
) -> Vec<T> {
    let all = ranks.map(|rank| values_of::<T>(ctx, rank, count));
    let combine = |a: Vec<T>, b: Vec<T>| a.into_iter().zip(b).map(|(a, b)| op(a, b)).collect();
    all.reduce(combine).expect("some ranks")
}

/// Compares all reductions and scans by one operator. `first` is the result of the first rank of an
/// exclusive scan.
fn by<T: Value, O: Operator<T> + Debug>(
    ctx: &Ctx,
    group: &Group<'_>,
    operator: O,
    op: fn(T, T) -> T,
    first: T,
) {
    let (me, n) = (group.rank(), group.size());
    for (round, count) in COUNTS.into_iter().enumerate() {
        let what = format!("{operator:?} of {count} {}", std::any::type_name::<T>());
        step(format!("exchanges: {what}"));
        let own = values_of::<T>(ctx, me, count);
        let total = folded(ctx, 0..n, count, op);
        let mut data = own.clone();
        group.all_reduce(&mut data, operator).expect("all_reduce");
        assert!(data == total, "all_reduce: {what}");
        let (root, mut data) = (round % n, own.clone());
        group.reduce(root, &mut data, operator).expect("reduce");
        assert!(data == if me == root { total } else { own.clone() }, "reduce: {what}");
        let mut data = own.clone();
        group.scan(&mut data, operator).expect("scan");
        assert!(data == folded(ctx, 0..me + 1, count, op), "scan: {what}");
        let mut data = own;
        group.scan_exclusive(&mut data, operator).expect("scan_exclusive");
        let want = if me > 0 { folded(ctx, 0..me, count, op) } else { vec![first; count] };
        assert!(data == want, "scan_exclusive: {what}");
    }
}

pub fn operators(ctx: &Ctx) {
    let rt = runtime(&ctx.engine);
    let group = rt.world();
    macro_rules! integers {
        ($($ty:ty)+) => {$(
            by::<$ty, _>(ctx, &group, Sum, <$ty>::wrapping_add, 0);
            by::<$ty, _>(ctx, &group, Product, <$ty>::wrapping_mul, 1);
            by::<$ty, _>(ctx, &group, Min, <$ty>::min, <$ty>::MAX);
            by::<$ty, _>(ctx, &group, Max, <$ty>::max, <$ty>::MIN);
            by::<$ty, _>(ctx, &group, And, |a, b| a & b, !0);
            by::<$ty, _>(ctx, &group, Or, |a, b| a | b, 0);
            by::<$ty, _>(ctx, &group, Xor, |a, b| a ^ b, 0);
        )+};
    }
    integers!(i8 u8 i16 u16 i32 u32 i64 u64 isize usize);
    macro_rules! floats {
        ($($ty:ty)+) => {$(
            by::<$ty, _>(ctx, &group, Sum, |a, b| a + b, 0.0);
            by::<$ty, _>(ctx, &group, Product, |a, b| a * b, 1.0);
            by::<$ty, _>(ctx, &group, Min, <$ty>::min, <$ty>::INFINITY);
            by::<$ty, _>(ctx, &group, Max, <$ty>::max, <$ty>::NEG_INFINITY);
            let (zero, one) = (Complex::new(0.0, 0.0), Complex::new(1.0, 0.0));
            by::<Complex<$ty>, _>(ctx, &group, Sum, |a, b| a + b, zero);
            by::<Complex<$ty>, _>(ctx, &group, Product, |a, b| a * b, one);
        )+};
    }
    floats!(f32 f64);
}

/// Moves parts of an element type with a size that no MPI datatype has.
fn parts(ctx: &Ctx, group: &Group<'_>) {
    type Triple = [u16; 3];
    let (me, n) = (group.rank(), group.size());
    // The part that goes from one rank to another.
    let part = |from: usize, to: usize, len: usize| -> Vec<Triple> {
        (0..len).map(|i| [from as u16, to as u16, i as u16]).collect()
    };
    for (round, len) in [0, 1, 5, 3000].into_iter().cycle().take(8).enumerate() {
        step(format!("exchanges: parts of {len} elements, round {round}"));
        let root = round % n;
        let all: Vec<Triple> = (0..n).flat_map(|from| part(from, root, len)).collect();
        let got = group.gather(root, &part(me, root, len)).expect("gather");
        assert!(got == (me == root).then_some(all), "gather of {len} at {root}");
        let data: Vec<Triple> = (0..n).flat_map(|to| part(root, to, len)).collect();
        let mut mine = vec![[9; 3]; len];
        let given = if me == root { &data[..] } else { &[] };
        group.scatter(root, given, &mut mine).expect("scatter");
        assert!(mine == part(root, me, len), "scatter of {len} from {root}");
        let data: Vec<Triple> = (0..n).flat_map(|to| part(me, to, len)).collect();
        let want: Vec<Triple> = (0..n).flat_map(|from| part(from, me, len)).collect();
        assert!(group.all_to_all(&data).expect("all_to_all") == want, "all_to_all of {len}");
        let len_of = |from: usize, to: usize| {
            Rng::new(ctx.seed, &[from as u64, to as u64, round as u64]).below(2 * len + 1)
        };
        let data: Vec<_> = (0..n).map(|to| part(me, to, len_of(me, to))).collect();
        let want: Vec<_> = (0..n).map(|from| part(from, me, len_of(from, me))).collect();
        let got = group.all_to_all_varied(&data).expect("all_to_all_varied");
        assert!(got == want, "all_to_all_varied of up to {}", 2 * len);
    }
}

/// Lengths that are wrong on one rank are errors on all ranks, and the group stays usable.
fn wrong_lengths(group: &Group<'_>) {
    let (me, n) = (group.rank(), group.size());
    for root in 0..n {
        let mut part = [7u32; 2];
        let data = vec![0; 2 * n + 1];
        let text = refused(
            ErrorKind::Argument,
            "a scatter of too much",
            group.scatter(root, if me == root { &data } else { &[] }, &mut part),
        );
        assert!(text.contains(&format!("{} elements", 2 * n + 1)), "{text}");
        assert_eq!(part, [7; 2], "a refused scatter changes nothing");
        let parts = vec![vec![1u8]; if me == root { n + 1 } else { n }];
        let exchanged = group.all_to_all_varied(&parts);
        refused(ErrorKind::Argument, "a part for a rank that is not there", exchanged);
    }
    if n > 1 {
        refused(ErrorKind::Argument, "an uneven exchange", group.all_to_all(&vec![1.0; n + 1]));
    }
    // Elements without bytes.
    let gathered = group.gather(0, &[(); 5]).expect("gather");
    assert_eq!(gathered.map(|all| all.len()), (me == 0).then_some(5 * n));
    assert_eq!(group.all_to_all(&vec![(); 2 * n]).expect("all_to_all").len(), 2 * n);
    let varied = group.all_to_all_varied(&vec![vec![(); me + 1]; n]).expect("all_to_all_varied");
    assert!(varied.iter().enumerate().all(|(rank, part)| part.len() == rank + 1));
    // Bytes, which some ranks have none of: an empty vector of bytes has the address 1.
    for len in [3, 5000] {
        let part =
            |from: usize, to: usize| vec![(from + to) as u8; if to == 0 { from * len } else { 0 }];
        let parts: Vec<_> = (0..n).map(|to| part(me, to)).collect();
        let varied = group.all_to_all_varied(&parts).expect("all_to_all_varied");
        assert!(varied == (0..n).map(|from| part(from, me)).collect::<Vec<_>>(), "of {len} bytes");
    }
    assert!(group.all_to_all::<u8>(&[]).expect("all_to_all").is_empty());
    assert!(group.gather::<u8>(0, &[]).expect("gather").is_none_or(|all| all.is_empty()));
    group.scatter::<u8>(0, &[], &mut []).expect("scatter");
    group.broadcast::<u8>(0, &mut []).expect("broadcast");
    refused(ErrorKind::Rank, "a root outside", group.gather(n, &[1]));
    group.barrier().expect("the group is usable");
}

pub fn exchanges(ctx: &Ctx) {
    let rt = runtime(&ctx.engine);
    let world = rt.world();
    parts(ctx, &world);
    wrong_lengths(&world);
    let backwards: Vec<usize> = (0..ctx.n).rev().collect();
    let some: Vec<usize> = (0..ctx.n.div_ceil(2)).collect();
    for ranks in [backwards, some] {
        let Some(group) = world.subgroup(&ranks).expect("subgroup") else { continue };
        parts(ctx, &group);
        wrong_lengths(&group);
        by::<u32, _>(ctx, &group, Sum, u32::wrapping_add, 0);
        group.free().expect("free");
    }
    split(ctx, &world);
    world.barrier().expect("barrier");
}

/// The last rank joins no group. The others form two, the odd one in reverse order.
fn split(ctx: &Ctx, world: &Group<'_>) {
    let (me, last) = (ctx.me, ctx.n - 1);
    let color = (me != last).then_some(me % 2);
    let made = world.split(color, if me % 2 == 1 { last - me } else { 7 }).expect("split");
    let Some(group) = made else { return assert_eq!(me, last) };
    let mut members: Vec<usize> = (0..last).filter(|rank| rank % 2 == me % 2).collect();
    if me % 2 == 1 {
        members.reverse();
    }
    assert_eq!(group.members(), members);
    assert_eq!(group.all_gather(me).expect("gather"), members);
    group.free().expect("free");
}
