//! Tests misuse of distributed arrays: errors name array and patch, and races are detected.

use crate::child::{self, Ctx, refused, step};
use ndarray::{Array1, Array2, Ix1, Ix2, IxDyn, array};
use portolan::array::{Access, Boundary, DistArray, Distribution, Matmul, Options, Patch, Tile};
use portolan::internals::runtime;
use portolan::messages::{Delivery, Handlers, Message};
use portolan::{ErrorKind, Group, Runtime};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;

pub fn errors(ctx: &Ctx) {
    let rt = runtime(&ctx.engine);
    let world = rt.world();
    let mut h = DistArray::<f64, Ix2>::with(&world, [10, 20], Options::named("h")).expect("h");
    let named = |text: String| {
        assert!(text.contains("array \"h\""), "the error names no array: {text}");
        text
    };
    let far = refused(ErrorKind::Address, "a patch outside", h.get([5..11, 0..3]));
    assert!(
        named(far)
            .contains("of shape [10, 20]: the patch [5..11, 0..3] is out of range for axis 0")
    );
    named(refused(ErrorKind::Argument, "a patch of one axis", h.get(5..6)));
    let ones = Array2::ones((2, 3));
    named(refused(ErrorKind::Argument, "another shape", h.put([0..3, 0..2], &ones)));
    named(refused(ErrorKind::Address, "a patch outside", h.accumulate([9..11, 0..3], 1.0, &ones)));
    let buffer = Array2::zeros((2, 3));
    named(refused(ErrorKind::Address, "a patch outside", h.start_put([9..11, 0..3], buffer)));
    named(refused(ErrorKind::Address, "an index outside", h.gather(&[[0, 0], [10, 0]])));
    named(refused(ErrorKind::Address, "an index outside", h.get_value([0, 20])));
    named(refused(ErrorKind::Argument, "too few values", h.scatter(&[[0, 0], [1, 0]], &[1.0])));
    named(refused(ErrorKind::Rank, "no such rank", h.bounds(ctx.n)));
    assert!(h.get(h.whole()).expect("get").iter().all(|x| *x == 0.0), "nothing has moved");
    let empty = h.get([3..3, 0..20]).expect("an empty patch");
    h.put([3..3, 0..20], &empty).expect("an empty patch");
    h.sync().expect("sync");

    // While parts are accessed, every rank may read the array and none may write to it.
    let mine = h.access().expect("access");
    let value = array![[1.0]];
    named(refused(ErrorKind::State, "a put", mine.array().put([0..1, 0..1], &value)));
    named(refused(ErrorKind::State, "an accumulate", mine.array().put_value([0, 0], 1.0)));
    refused(ErrorKind::State, "a scatter", mine.array().scatter_add(&[[0, 0]], 1.0, &[1.0]));
    assert_eq!(mine.array().get_value([9, 19]).expect("get"), 0.0);
    // An access that is dropped leaves the parts lent until a later access is released.
    std::mem::drop(mine);
    refused(ErrorKind::State, "a put", h.put([0..1, 0..1], &value));
    h.fill(2.0).expect("fill");
    h.put([0..1, 0..1], &value).expect("put");
    h.sync().expect("sync");
    assert_eq!(h.get_value([0, 0]).expect("get"), 1.0);

    let deep = DistArray::<f64, IxDyn>::zeros(&world, vec![1; 100_000]);
    refused(ErrorKind::Argument, "too many axes", deep);

    let made = |options: Options| DistArray::<f64, Ix2>::with(&world, [10, 20], options);
    let with = |d: Distribution| made(Options::named("h").distribution(d));
    named(refused(ErrorKind::Argument, "a large grid", with(Distribution::grid([ctx.n + 1, 1]))));
    named(refused(ErrorKind::Argument, "no blocks", with(Distribution::block_cyclic([0, 1]))));
    let wide = Options::named("h").ghosts([11, 0]).boundaries([Boundary::Periodic, Boundary::Open]);
    named(refused(ErrorKind::Argument, "ghost cells of nobody", made(wide)));
    refused(ErrorKind::Memory, "more than there is", {
        DistArray::<f64, Ix1>::zeros(&world, [1 << 55])
    });
    let other = DistArray::<f64, Ix2>::zeros(&world, [20, 10]).expect("an array");
    named(refused(ErrorKind::Argument, "another shape", h.assign(&other)));
    let mut product = h.like::<f64>("product").expect("an array");
    refused(ErrorKind::Argument, "no product", product.matmul(1.0, &h, &h, 0.0, Matmul::Auto));
    // The product ends an access that was dropped.
    let mut square = DistArray::<f64, Ix2>::zeros(&world, [6, 6]).expect("an array");
    let mut result = square.like::<f64>("result").expect("an array");
    square.fill(1.0).expect("fill");
    drop(result.access().expect("access"));
    result.matmul(1.0, &square, &square, 0.0, Matmul::Tiles([2, 3])).expect("a product");
    assert_eq!(result.get_value([5, 5]).expect("get"), 6.0);
    for array in [h, other, product, square, result] {
        array.free().expect("free");
    }
    refused_stencils(&world, ctx.n);
}

/// A stencil is refused on all ranks if the arrays belong to different groups, or are block-cyclic
/// over a part of the ranks.
fn refused_stencils(world: &Group<'_>, n: usize) {
    let refused_on = |from: &Group<'_>, to: &Group<'_>, d: Distribution, word: &str| {
        let options = || Options::named("h").distribution(d.clone());
        let mut a = DistArray::<f64, Ix1>::with(from, [20], options()).expect("an array");
        let mut b = DistArray::<f64, Ix1>::with(to, [20], options()).expect("an array");
        let (mut old, mut new) = (a.access().expect("access"), b.access().expect("access"));
        let text = refused(ErrorKind::Argument, "a stencil", old.stencil(&mut new, |_, _, _| ()));
        assert!(text.contains(word), "{text}");
        new.release().expect("release");
        old.release().expect("release");
        a.free().expect("free");
        b.free().expect("free");
    };
    let ranks: Vec<usize> = (0..n).rev().collect();
    let backwards = world.subgroup(&ranks).expect("a group").expect("all ranks");
    if n > 1 {
        refused_on(world, &backwards, Distribution::Block, "belongs to the ranks");
    }
    if n > 2 {
        let some = Distribution::BlockCyclic { block: vec![2], grid: Some(vec![n - 1]) };
        refused_on(world, world, some, "block-cyclic");
    }
    backwards.free().expect("free");
}

/// The next sync reports each race on all ranks and names both source lines. It reports nothing for
/// accesses without a race.
pub fn races() {
    let rt = Runtime::init().expect("start");
    child::check_size(rt.size());
    let world = rt.world();
    let me = world.rank();
    let mut a = DistArray::<i64, Ix1>::with(&world, [64], Options::named("raced")).expect("a");
    let some = |n: usize| Array1::from_elem(n, 1i64);
    type Use<'a> = &'a dyn Fn(&DistArray<'_, i64, Ix1>);
    let put = |a: &DistArray<'_, i64, Ix1>| a.put(10..20, &some(10)).expect("put");
    let get = |a: &DistArray<'_, i64, Ix1>| drop(a.get(19..30).expect("get"));
    let add = |a: &DistArray<'_, i64, Ix1>| a.accumulate(15..16, 1, &some(1)).expect("add");
    let far = |a: &DistArray<'_, i64, Ix1>| a.put(20..40, &some(20)).expect("put");
    let odd = |a: &DistArray<'_, i64, Ix1>| {
        let odd = Patch::from(11..40).every(&[2]).expect("steps");
        a.put(odd, &some(15)).expect("put");
    };
    let even = |a: &DistArray<'_, i64, Ix1>| {
        drop(a.get(Patch::from(10..40).every(&[2]).expect("steps")).expect("get"));
    };
    let around = |a: &DistArray<'_, i64, Ix1>| {
        drop(a.get(Patch::periodic_of(std::slice::from_ref(&(-2..12)))).expect("get"));
    };
    let list = |a: &DistArray<'_, i64, Ix1>| a.scatter(&[63, 13], &[1, 2]).expect("scatter");
    let sums = |a: &DistArray<'_, i64, Ix1>| a.scatter_add(&[13, 13], 1, &[1, 2]).expect("add");
    let reads = |a: &DistArray<'_, i64, Ix1>| drop(a.gather(&[5, 13]).expect("gather"));
    let count = |a: &DistArray<'_, i64, Ix1>| assert!(a.fetch_add(13, 1).is_ok());
    let pending = |a: &DistArray<'_, i64, Ix1>| {
        drop(a.start_put(13..14, some(1)).expect("put").wait().expect("wait"));
    };
    let races: [(&str, Use<'_>, Use<'_>); 11] = [
        ("put and put", &put, &put),
        ("put and get", &put, &get),
        ("put and accumulate", &put, &add),
        ("accumulate and gather", &sums, &reads),
        ("strided put and get", &odd, &get),
        ("put and periodic get", &put, &around),
        ("scatter and put", &list, &put),
        ("scatter_add and put", &sums, &put),
        ("fetch_add and put", &count, &put),
        ("fetch_add and gather", &count, &reads),
        ("non-blocking put and scatter", &pending, &list),
    ];
    for (what, one, two) in races {
        step(format!("races: {what}"));
        match me {
            0 => one(&a),
            1 => two(&a),
            _ => {}
        }
        let text = refused(ErrorKind::State, what, a.sync());
        assert!(text.contains("array \"raced\": a race"), "{text}");
        let sites = text.matches("array_misuse.rs:").count();
        assert_eq!(sites, 2, "{what}: both lines of source: {text}");
        a.sync().expect("reported once");
    }
    step("races: a view and a get");
    let mut mine = a.access().expect("access");
    if me == 0 {
        mine.local_mut()[0] = 1;
    } else {
        drop(mine.array().get(0..1).expect("get"));
    }
    refused(ErrorKind::State, "a view and a get", mine.release());

    let ordered: [(&str, Use<'_>, Use<'_>); 6] = [
        ("neighbours", &put, &far),
        ("get and get", &get, &get),
        ("sums", &sums, &count),
        ("accumulates", &add, &sums),
        ("every second", &odd, &even),
        ("lists of reads", &reads, &around),
    ];
    for (what, one, two) in ordered {
        step(format!("no race: {what}"));
        if me == 0 {
            one(&a)
        } else if me == 1 {
            two(&a)
        }
        a.sync().expect(what);
    }
    // A barrier of the group or of the world orders accesses as a sync does.
    if me == 0 {
        put(&a);
    }
    world.barrier().expect("barrier");
    if me == 1 {
        get(&a);
    }
    a.sync().expect("ordered by a barrier");
    a.free().expect("free");
    rt.finalize().expect("finalize");
    println!("races are found");
}

type HeldAccess = Access<'static, 'static, f64, Ix1>;

thread_local! {
    /// The access that the handler uses.
    static HELD: RefCell<Option<HeldAccess>> = const { RefCell::new(None) };
}

#[derive(Serialize, Deserialize)]
struct Interrupt;

impl Message for Interrupt {
    type Reply = ();
    fn handle(self, _: &Delivery<'_>) {
        HELD.with_borrow_mut(|held| {
            let access = held.as_mut().expect("the main thread runs the handler");
            // The wait is possible only if the update has ended already.
            if access.finish_update().is_err() {
                refused(ErrorKind::State, "a wait in a handler", access.finish_update());
            }
        });
    }
}

/// An update of ghost cells whose wait failed is still under way: other ranks write to the cells,
/// so no view of them is lent.
pub fn interrupted_update() {
    const GHOSTS: usize = 1 << 15;
    let rt: &'static Runtime = Box::leak(Box::new(Runtime::init().expect("start")));
    let world: &'static Group<'static> = Box::leak(Box::new(rt.world()));
    let options = Options::named("a").ghosts([GHOSTS]).boundaries([Boundary::Periodic]);
    let array = DistArray::<f64, _>::with(world, [2 * GHOSTS * rt.size()], options).expect("a");
    let mut access = Box::leak(Box::new(array)).access().expect("access");
    let messages = Handlers::new().message::<Interrupt>().register(rt).expect("register");
    for round in 0..20 {
        access.local_mut().fill((100 * round + rt.rank()) as f64);
        world.barrier().expect("barrier");
        let _ = access.start_update().expect("start");
        HELD.set(Some(access));
        messages.spawn(rt.rank(), &Interrupt).expect("spawn");
        access = HELD.take().expect("the handler has run");
        access.finish_update().expect("finish");
        let before = (rt.rank() + rt.size() - 1) % rt.size();
        let expected = (100 * round + before) as f64;
        assert!(access.padded().iter().take(GHOSTS).all(|x| *x == expected), "round {round}");
        world.barrier().expect("barrier");
    }
    println!("updates stay under way");
}

/// All ranks work on tiles. Rank 1 fails at its first, while the others wait for it at the end.
fn share(fails: impl Fn(&Tile) -> portolan::Result<()>) {
    // Remove the panic hook of the tests, which would end the job as well.
    drop(std::panic::take_hook());
    let code = portolan::run(|rt| -> portolan::Result<()> {
        child::check_size(rt.size());
        let a = DistArray::<f64, Ix2>::zeros(&rt.world(), [64, 64])?;
        let mut tiles = a.tiles([8, 8])?;
        while let Some(tile) = tiles.take()?.filter(|tile| tile.owner == rt.rank()) {
            if rt.rank() == 1 {
                fails(&tile)?;
            }
            a.accumulate(&tile, 1.0, &Array2::ones((8, 8)))?;
        }
        tiles.free()?;
        a.free()
    });
    println!("the job has ended: {code:?}");
}

pub fn panics() {
    share(|tile| panic!("the tile of rank {} is too hard", tile.owner));
}

pub fn fails() {
    share(|tile| {
        let text = format!("the tile of rank {} is too hard", tile.owner);
        Err(portolan::Error::new(ErrorKind::State, text))
    });
}
