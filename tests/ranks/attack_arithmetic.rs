//! Blocks and patches with numbers near the ends of the address space, through the safe interface
//! alone: every call returns, and quickly.
#![forbid(unsafe_code)]

use crate::child::{Ctx, refused, step};
use portolan::ErrorKind::{Address, Argument, Memory};
use portolan::internals::runtime;
use portolan::transfer::Block;

pub fn blocks(ctx: &Ctx) {
    let rt = runtime(&ctx.engine);
    let segment = rt.world().allocate::<u64>(16).expect("allocate");
    let mut buffer = vec![0u64; 16];
    let to = ctx.n - 1;
    for (n, strides) in [
        (vec![1 << 61, 1], vec![0, 1]),
        (vec![(1 << 61) + 1], vec![0]),
        (vec![1 << 40], vec![0]),
        (vec![17], vec![0]),
        (vec![usize::MAX], vec![0]),
        (vec![1 << 32, 1 << 31], vec![0, 0]),
        (vec![1 << 31, 1 << 31], vec![0, 0]),
        (vec![8, 8, 8, 8, 8, 8, 8, 8], vec![1, 1, 1, 1, 1, 0, 0, 0]),
        (vec![1 << 60], vec![isize::MIN]),
        (vec![2], vec![isize::MIN]),
        (vec![2], vec![isize::MAX]),
        (vec![1 << 60], vec![1]),
    ] {
        step(format!("a block of {n:?} at {strides:?}"));
        for start in [0, 3, usize::MAX] {
            let Ok(block) = Block::strided(start, &n, &strides) else { continue };
            let row = Block::contiguous(0..block.len());
            block.indices().take(5).for_each(drop);
            for (remote, local) in [(&block, &block), (&block, &row), (&row, &block)] {
                let got = segment.get_block(to, remote, &mut buffer, local);
                let put = segment.put_block(to, remote, &buffer, local);
                let added = segment.accumulate_block(to, remote, 1, &buffer, local);
                for (call, result) in [("get", got), ("put", put), ("accumulate", added)] {
                    assert!(result.is_err(), "{call} of {n:?} at {strides:?} from {start}");
                }
            }
        }
    }
    step("blocks of arrays");
    for shape in [[usize::MAX, 5], [1 << 62, 1 << 62], [5, usize::MAX]] {
        let end = shape.map(|n| n - 1..n);
        if let Ok(block) = Block::of(&shape, &end) {
            refused(
                Address,
                "far away",
                segment.get_block(to, &block, &mut buffer, &(0..1).into()),
            );
        }
    }
    // Repeat one element 16 times, once for each value.
    let same = Block::strided(0, &[16], &[0]).expect("a block");
    rt.world().barrier().expect("barrier");
    segment.accumulate_block(to, &same, 1, &[1; 16], &(0..16).into()).expect("sixteen times");
    rt.world().barrier().expect("barrier");
    assert_eq!(segment.get_value(to, 0).expect("get"), 16 * ctx.n as u64);
    refused(Address, "far", segment.get(to, usize::MAX, &mut buffer));
    refused(Address, "far", segment.fetch_add(to, usize::MAX / 8 + 1, 1));
    rt.world().barrier().expect("barrier");
    segment.free().expect("free");
    step("segments beyond memory");
    for count in [usize::MAX, 1 << 60, 1 << 61] {
        refused(Memory, "a segment", rt.world().allocate::<u64>(count));
        refused(Memory, "segments", rt.world().allocate_many::<u64>(&[count, count]));
        refused(Memory, "mutexes", rt.world().mutexes(count));
    }
}

#[expect(clippy::single_range_in_vec_init, reason = "a patch of one axis")]
pub fn patches(ctx: &Ctx) {
    use ndarray::{ArrayView, Ix1, Ix2};
    use portolan::array::{Boundary, DistArray, Distribution, Options, Patch};
    let rt = runtime(&ctx.engine);
    let world = rt.world();
    let mut a = DistArray::<u64, Ix1>::zeros(&world, [16]).expect("an array");
    step("patches that leave the array");
    let far = Patch::strided([0..usize::MAX], [2]).expect("half of them");
    refused(Address, "every second of all", a.get(&far));
    refused(Argument, "a step that overflows", far.every(&[usize::MAX]));
    refused(Address, "the last index", a.get([usize::MAX - 1..usize::MAX]));
    refused(Address, "far apart", a.get(Patch::strided([0..usize::MAX], [1 << 63]).expect("two")));
    #[expect(clippy::reversed_empty_ranges, reason = "a mistake that programs make")]
    let empty = a.get([9..3]).expect("nothing");
    assert!(empty.is_empty());

    step("patches around the ends");
    let whole = || Patch::periodic([isize::MIN..isize::MAX]);
    let most = || Patch::periodic([-(1 << 58)..1 << 58]);
    refused(Argument, "all indices", a.get(whole()));
    refused(Argument, "all indices", a.start_get(whole()));
    refused(Argument, "all indices", a.owners(whole()));
    refused(Memory, "2^59 elements", a.get(most()));
    refused(Memory, "2^59 elements", a.start_get(most()));
    assert_eq!(a.owners(most()).expect("owners"), a.owners(a.whole()).expect("owners"));
    // All 2^59 elements of this view are the same one.
    let one = [7u64];
    let view = ArrayView::from(&one);
    let many = view.broadcast(Ix1(1 << 59)).expect("a view");
    refused(Memory, "a put of 2^59 elements", a.put(most(), &many));
    refused(Argument, "another length", a.put(whole(), &many));
    refused(Argument, "another length", a.accumulate([0..16], 1, &many));
    let steps = Patch::periodic([-5..isize::MAX]).every(&[usize::MAX >> 1]).expect("steps");
    assert_eq!(a.get(&steps).expect("two elements").len(), steps.len());
    assert_eq!(a.get(Patch::periodic([-(1 << 62)..-(1 << 62) + 40])).expect("get").len(), 40);

    step("arrays beyond memory");
    let made = |shape: usize, options: Options| {
        DistArray::<u64, Ix1>::with(&world, [shape], options).map(|_| ())
    };
    let named = || Options::named("extreme");
    refused(Argument, "2^62 elements", made(1 << 62, named()));
    refused(Memory, "2^50 elements", made(1 << 50, named()));
    refused(Argument, "no elements of 2^61", DistArray::<u64, Ix2>::zeros(&world, [0, 1 << 61]));
    for g in [1 << 60, 1 << 62, 1 << 63, usize::MAX] {
        refused(Argument, "ghost cells", made(16, named().ghosts([g])));
        refused(
            Argument,
            "ghost cells",
            made(16, named().ghosts([g]).boundaries([Boundary::Periodic])),
        );
    }
    assert!(made(16, named().ghosts([1 << 50])).is_err(), "2^50 ghost cells");
    let long = named().distribution(Distribution::block_cyclic([usize::MAX]));
    let mut long = DistArray::<u64, Ix1>::with(&world, [16], long).expect("one block");
    long.fill(3).expect("fill");
    assert_eq!(long.sum().expect("sum"), 48);
    long.free().expect("free");

    step("tiles of any size");
    let mut tiles = a.tiles([usize::MAX]).expect("tiles");
    let mut taken = Vec::new();
    while let Some(tile) = tiles.take().expect("take") {
        taken.push(tile.ranges[0].len());
    }
    let all = world.all_gather(taken.iter().sum::<usize>()).expect("gather");
    assert_eq!(all.iter().sum::<usize>(), 16, "each element once");
    tiles.free().expect("free");
    refused(Address, "no element", a.get_value([usize::MAX]));
    refused(Address, "no element", a.gather(&[usize::MAX]));
    a.fill(1).expect("nothing has been damaged");
    assert_eq!(a.sum().expect("sum"), 16);
    a.free().expect("free");
}
