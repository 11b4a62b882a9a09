//! Safe Rust programs whose ranks make collective calls in different orders, or with different
//! arguments: each mismatch is an error on every rank, before a view or a result exists.

#![forbid(unsafe_code)]

use crate::launch::{ALONE_BASE, Alone, End};
use ndarray::{Ix1, Ix2, array};
use portolan::array::{Boundary, DistArray, Options};
use portolan::compose::Composer;
use portolan::messages::{Delivery, Handlers, Message};
use portolan::reduce::{Min, Sum};
use portolan::{ErrorKind, Group, Result, Runtime};
use portolan_engine::collective::{Kind, MULTIPLIERS};
use serde::{Deserialize, Serialize};

pub const ALONE: &[Alone] = &[
    Alone { name: "attack_order", label: "default", ranks: 3, run: orders, ..ALONE_BASE },
    Alone {
        name: "attack_order_between_nodes",
        label: "node_size=1",
        env: &[("PORTOLAN_NODE_SIZE", "1")],
        run: orders,
        ..ALONE_BASE
    },
    Alone {
        name: "attack_order_of_nodes",
        label: "node_size=2 path=message",
        ranks: 4,
        env: &[("PORTOLAN_NODE_SIZE", "2"), ("PORTOLAN_PATH", "message")],
        run: orders,
        ..ALONE_BASE
    },
    Alone {
        name: "attack_order_of_world",
        label: "default",
        end: End::Fails(&["rank 0: barrier; rank 1: all_gather of 1 u8"]),
        run: of_world,
        ..ALONE_BASE
    },
    Alone {
        name: "attack_order_of_world_between_nodes",
        label: "node_size=1",
        env: &[("PORTOLAN_NODE_SIZE", "1")],
        end: End::Fails(&["rank 0: barrier; rank 1: all_gather of 1 u8"]),
        run: of_world,
        ..ALONE_BASE
    },
    Alone {
        name: "attack_order_of_composers",
        label: "free",
        end: End::Fails(&["rank 0: free of a composer; rank 1: free of a composer (number 1)"]),
        run: || {
            of_objects(|rt| {
                let (one, two) = (Composer::new(rt)?, Composer::new(rt)?);
                if rt.rank() == 0 { one.free() } else { two.free() }
            })
        },
        ..ALONE_BASE
    },
    Alone {
        name: "attack_order_of_syncs",
        label: "sync",
        end: End::Fails(&["rank 0: sync of a composer; rank 1: sync of a composer (number 1)"]),
        run: || {
            of_objects(|rt| {
                let (one, two) = (Composer::new(rt)?, Composer::new(rt)?);
                if rt.rank() == 0 { one.sync() } else { two.sync() }
            })
        },
        ..ALONE_BASE
    },
    Alone {
        name: "attack_order_of_ghosts",
        label: "default",
        end: End::Fails(&[
            "rank 0: sync of a composer (number ",
            "rank 1: sync of a composer (number ",
        ]),
        run: of_ghosts,
        ..ALONE_BASE
    },
    Alone {
        name: "attack_order_of_ghosts_between_nodes",
        label: "node_size=1",
        env: &[("PORTOLAN_NODE_SIZE", "1")],
        end: End::Fails(&[
            "rank 0: sync of a composer (number ",
            "rank 1: sync of a composer (number ",
        ]),
        run: of_ghosts,
        ..ALONE_BASE
    },
    Alone {
        name: "attack_order_of_first_ghosts",
        label: "default",
        end: End::Fails(&["exchange of ghost cells of the array \"b\" (number 1 of group"]),
        run: || of_objects(first_ghosts),
        ..ALONE_BASE
    },
    Alone {
        name: "attack_order_of_ghosts_and_composer",
        label: "default",
        end: End::Fails(&["creation of a composer", "exchange of ghost cells of the array \"b\""]),
        run: || of_objects(ghosts_and_composer),
        ..ALONE_BASE
    },
    Alone {
        name: "attack_order_of_digests",
        label: "default",
        end: End::Fails(&["rank 0: access to an array", "rank 1: gather of "]),
        run: || of_objects(digests),
        ..ALONE_BASE
    },
    Alone {
        name: "attack_order_of_messages",
        label: "free",
        end: End::Fails(&["the ranks' collective calls differ", "removal of handlers (number "]),
        run: || {
            of_objects(|rt| {
                let one = Handlers::new().message::<One>().register(rt)?;
                let two = Handlers::new().message::<Two>().register(rt)?;
                if rt.rank() == 0 { one.free() } else { two.free() }
            })
        },
        ..ALONE_BASE
    },
    Alone {
        name: "attack_order_at_finalize",
        label: "default",
        end: End::Fails(&[
            "Runtime::finalize: an earlier mismatch has ended the collectives of this group: rank 0: barrier",
        ]),
        run: at_finalize,
        ..ALONE_BASE
    },
];

#[derive(Serialize, Deserialize)]
struct One;
#[derive(Serialize, Deserialize)]
struct Two;

impl Message for One {
    type Reply = ();
    fn handle(self, _: &Delivery<'_>) {}
}

impl Message for Two {
    type Reply = ();
    fn handle(self, _: &Delivery<'_>) {}
}

type Body<'a> = &'a dyn Fn(&Group<'_>) -> Result<()>;

fn array(group: &Group<'_>, name: &str, shape: [usize; 2]) -> Result<()> {
    let made = DistArray::<f64, Ix2>::with(group, shape, Options::named(name))?;
    made.free()
}

/// Each rank gets an error that contains both texts.
fn differ(rt: &Runtime, what: &str, first: (&str, Body<'_>), others: (&str, Body<'_>)) {
    let world = rt.world();
    let all: Vec<usize> = (0..rt.size()).collect();
    let group = world.subgroup(&all).expect("a group").expect("all are members");
    let body = if rt.rank() == 0 { first.1 } else { others.1 };
    // A rank that only sends learns of the other call in its next one.
    match body(&group).and_then(|()| group.barrier()) {
        Ok(()) => panic!("{what}: passed on rank {}", rt.rank()),
        Err(error) => {
            let text = error.to_string();
            assert_eq!(error.kind(), ErrorKind::Mismatch, "{what}: {text}");
            let first = format!("rank 0: {}", first.0);
            assert!(text.contains(&first) && text.contains(others.0), "{what}: {text}");
        }
    }
    world.barrier().expect("the world is not concerned");
}

fn values(rt: &Runtime) {
    let sum = |n: usize| {
        move |group: &Group<'_>| {
            let mut data = vec![1i32; n];
            let done = group.all_reduce(&mut data, Sum);
            assert!(done.is_ok() || data.iter().all(|x| *x == 1), "there is a result");
            done
        }
    };
    let give = |n: usize, root: usize| {
        move |group: &Group<'_>| group.broadcast(root, &mut vec![group.rank() as u8; n])
    };
    let gather = |group: &Group<'_>| group.all_gather(7u64).map(drop);
    let gather_more = |group: &Group<'_>| group.all_gather([9u64; 200]).map(drop);
    let gather_most = |group: &Group<'_>| group.all_gather([9u64; 500]).map(drop);
    let give_more = |group: &Group<'_>| group.gather(0, &[[9u64; 200]; 2]).map(drop);
    let give_most = |group: &Group<'_>| group.gather(0, &[[9u64; 500]; 2]).map(drop);
    let barrier = |group: &Group<'_>| group.barrier();
    let allocate = |group: &Group<'_>| group.allocate::<u64>(100)?.free();
    let real = |group: &Group<'_>| group.all_reduce(&mut [1.0f64; 4], Sum);
    let least = |group: &Group<'_>| group.all_reduce(&mut [1i32; 4], Min);
    let (four, many) = ("all_reduce of 4 i32 (sum)", "all_reduce of 400 i32 (sum)");
    differ(rt, "a short sum", (four, &sum(4)), (many, &sum(400)));
    differ(rt, "a long sum", (many, &sum(400)), (four, &sum(4)));
    differ(rt, "types", (four, &sum(4)), ("all_reduce of 4 f64 (sum)", &real));
    differ(rt, "operators", (four, &sum(4)), ("all_reduce of 4 i32 (min)", &least));
    let (short, long) = ("broadcast of 8 u8 from rank 0", "broadcast of 100000 u8 from rank 0");
    differ(rt, "a short broadcast", (short, &give(8, 0)), (long, &give(100_000, 0)));
    differ(rt, "a long broadcast", (long, &give(100_000, 0)), (short, &give(8, 0)));
    differ(rt, "roots", (short, &give(8, 0)), ("broadcast of 8 u8 from rank 1", &give(8, 1)));
    differ(rt, "gathers", ("all_gather of 1 u64", &gather), ("all_gather of 1 el", &gather_more));
    let (more, most) = ("all_gather of 1 elements of 1600 b", "all_gather of 1 elements of 4000 b");
    differ(rt, "long elements", (more, &gather_more), (most, &gather_most));
    let (more, most) = ("gather of 2 elements of 1600 b", "gather of 2 elements of 4000 b");
    differ(rt, "gathers of long elements", (more, &give_more), (most, &give_most));
    differ(rt, "kinds", (four, &sum(4)), (short, &give(8, 0)));
    differ(rt, "a barrier", ("barrier", &barrier), ("all_gather", &gather));
    differ(rt, "an allocation", ("allocation", &allocate), (four, &sum(4)));
}

/// Calls in a described call are compared as they are without it.
fn in_described_calls(rt: &Runtime) {
    fn call(
        text: &str,
        body: impl Fn(&Group<'_>) -> Result<()>,
    ) -> impl Fn(&Group<'_>) -> Result<()> {
        move |group| group.described(text, || body(group))
    }
    let barrier = |group: &Group<'_>| group.barrier();
    differ(
        rt,
        "described calls",
        ("call counter(3)", &call("counter(3)", barrier)),
        ("call counter(4)", &call("counter(4)", barrier)),
    );
    // An unkeyed FNV-1a gives these texts the same digest.
    let names = [
        "A",
        "ckdjhb\u{4}\0\u{5}\u{1d}\u{3}\u{7}\0\u{f}z\u{1}\r\u{1}\u{1}\u{6}\u{f}\u{c}\u{2}\r\u{4}\0\u{1}\u{c}>\u{8}>\u{1c}",
    ];
    let [one, two] = [(names[0], 64), (names[1], 16)]
        .map(|(name, n)| format!("\"{name}\" of shape [{n}], Block, ghosts [1], zeros, of u64"));
    differ(
        rt,
        "chosen texts",
        ("call \"A\" of shape [64]", &call(&one, barrier)),
        ("call \"ckdjhb", &call(&two, barrier)),
    );
    let long = "of the same long text".repeat(10);
    let lends = |group: &Group<'_>| {
        let mut a = DistArray::<usize, Ix1>::zeros(group, [2 * group.size()])?;
        let held = group.described(&"of the same long text".repeat(10), || a.access())?;
        assert!(held.local().is_empty(), "there is a view");
        held.release()
    };
    let meets = |group: &Group<'_>| {
        let a = DistArray::<usize, Ix1>::zeros(group, [2 * group.size()])?;
        group.described(&long, || group.barrier())?;
        a.put(0..1, &array![1_000_000usize])
    };
    differ(rt, "access", ("call of the same", &lends), ("in its barrier", &meets));
    let frees = |n: usize| {
        move |group: &Group<'_>| {
            let mut all = [group.allocate::<u8>(8)?, group.allocate::<u8>(8)?].map(Some);
            group.described("x", || all[n].take().expect("a segment").free())
        }
    };
    let free = "call x, in its free of a segment";
    differ(rt, "frees", (free, &frees(0)), (free, &frees(1)));
    let mutexes = call("x", |group| group.mutexes(2).map(drop));
    let allocates = call("x", |group| group.allocate::<u64>(2).map(drop));
    differ(
        rt,
        "creations",
        ("call x, in its creation of mutexes", &mutexes),
        ("call x, in its allocation", &allocates),
    );
    let deeper = call("x", |group| group.described("y", || group.barrier()));
    let shallow = call("x", barrier);
    differ(rt, "depths", ("call x, in its call y", &deeper), ("call x", &shallow));
    // The next calls of all ranks agree.
    rt.world().described("afterwards", || rt.world().barrier()).expect("the same call");
}

/// Element types of one name and different sizes.
fn element_types(rt: &Runtime) {
    macro_rules! of_words {
        ($group:expr, $words:expr) => {{
            #[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
            #[repr(transparent)]
            struct Words([u64; $words]);
            DistArray::<Words, Ix1>::zeros($group, [64])?.free()
        }};
    }
    let four = |group: &Group<'_>| -> Result<()> { of_words!(group, 4) };
    let one = |group: &Group<'_>| -> Result<()> { of_words!(group, 1) };
    let text = "creation of an array \"unnamed\" of shape [64], 32-byte elements";
    differ(rt, "element sizes", (text, &four), ("8-byte elements", &one));
}

fn arrays(rt: &Runtime) {
    let make = |shape: [usize; 2]| move |group: &Group<'_>| array(group, "a", shape);
    let barrier = |group: &Group<'_>| group.barrier();
    differ(
        rt,
        "shapes",
        ("creation of an array \"a\" of shape [4, 4]", &make([4, 4])),
        ("of shape [6, 4]", &make([6, 4])),
    );
    let ends = |boundary: Boundary| {
        move |group: &Group<'_>| {
            let options = Options::named("a").ghosts([1]).boundaries([boundary]);
            DistArray::<f64, Ix1>::with(group, [2 * group.size()], options)?.free()
        }
    };
    let (open, periodic) = (ends(Boundary::Open), ends(Boundary::Periodic));
    differ(rt, "boundaries", ("creation of an array", &open), ("periodic [true]", &periodic));
    let like = |n: usize| {
        move |group: &Group<'_>| {
            let all = [8, 16].map(|len| DistArray::<f64, Ix1>::zeros(group, [len]));
            let [one, two] = all;
            [one?, two?][n].like::<f64>("b")?.free()
        }
    };
    let text = "creation of an array \"b\" like \"unnamed\" (number ";
    differ(rt, "arrays of one name", (text, &like(0)), (text, &like(1)));
    let reals = |group: &Group<'_>| DistArray::<f64, Ix1>::zeros(group, [8])?.free();
    let ints = |group: &Group<'_>| DistArray::<i64, Ix1>::zeros(group, [8])?.free();
    differ(rt, "elements", ("creation of an array", &reals), ("i64", &ints));
    let fills =
        |value: f32| move |group: &Group<'_>| DistArray::<f32, Ix1>::zeros(group, [8])?.fill(value);
    let filled = ("fill of an array with 0.5, \"unnamed\" (number", &fills(0.5) as Body<'_>);
    differ(rt, "values of a fill", filled, ("fill of an array with -2, ", &fills(-2.0)));
    let accesses = |group: &Group<'_>| {
        let mut a = DistArray::<usize, Ix1>::zeros(group, [2 * group.size()])?;
        let held = a.access()?;
        assert!(held.local().is_empty(), "there is a view");
        held.release()
    };
    let puts = |group: &Group<'_>| {
        let a = DistArray::<usize, Ix1>::zeros(group, [2 * group.size()])?;
        group.barrier()?;
        a.put(0..1, &array![1_000_000usize])
    };
    differ(rt, "access", ("access to an array", &accesses), ("barrier", &puts));
    let keeps = |group: &Group<'_>| {
        let mut a = DistArray::<usize, Ix1>::zeros(group, [2 * group.size()])?;
        let held = a.access()?;
        let (view, before) = (held.local(), held.local().to_owned());
        // The release on another rank does not match this barrier, so puts there stay refused.
        let passed = group.barrier();
        assert_eq!(view, before);
        passed
    };
    let releases = |group: &Group<'_>| {
        let mut a = DistArray::<usize, Ix1>::zeros(group, [2 * group.size()])?;
        let released = a.access()?.release();
        let put = a.put(0..1, &array![1_000_000usize]);
        assert_eq!(put.expect_err("the parts are lent").kind(), ErrorKind::State);
        released
    };
    differ(rt, "release", ("barrier", &keeps), ("release of an access", &releases));
    let twice = |group: &Group<'_>| {
        let (one, two) = (group.allocate::<u8>(8)?, group.allocate::<u8>(8)?);
        two.free()?;
        one.free()
    };
    let other_order = |group: &Group<'_>| {
        let (one, two) = (group.allocate::<u8>(8)?, group.allocate::<u8>(8)?);
        one.free()?;
        two.free()
    };
    let free = "free of a segment (number";
    differ(rt, "frees", (free, &twice), (free, &other_order));
    differ(
        rt,
        "a set",
        ("creation of mutexes", &|g| g.mutexes(1).map(drop)),
        ("barrier", &barrier),
    );
}

pub fn orders() {
    let rt = Runtime::init().expect("start");
    crate::child::check_size(rt.size());
    values(&rt);
    arrays(&rt);
    in_described_calls(&rt);
    element_types(&rt);
    rt.finalize().expect("finalize");
}

pub fn of_world() {
    let code = portolan::run(|rt| -> Result<()> {
        let world = rt.world();
        if rt.rank() == 0 { world.barrier() } else { world.all_gather(1u8).map(drop) }
    });
    panic!("the run returned {code:?}");
}

/// Ranks pass different objects to a collective call over the world, which ends the job.
fn of_objects(body: impl Fn(&Runtime) -> Result<()>) {
    let code = portolan::run(|rt| -> Result<()> { body(rt) });
    panic!("the run returned {code:?}");
}

/// Ranks update the ghost cells of different arrays. No view of the other array changes.
pub fn of_ghosts() {
    of_objects(|rt| {
        let options = || Options::named("a").ghosts([1]).boundaries([Boundary::Periodic]);
        let shape = [4 * rt.size()];
        let mut one = DistArray::<u64, Ix1>::with(&rt.world(), shape, options())?;
        let mut two = DistArray::<u64, Ix1>::with(&rt.world(), shape, options())?;
        one.update_ghosts()?;
        two.update_ghosts()?;
        let (mut one, mut two) = (one.access()?, two.access()?);
        one.local_mut().fill(7 + rt.rank() as u64);
        if rt.rank() == 0 {
            let before = one.padded().to_owned();
            let view = one.padded();
            let started = two.start_update().map(drop);
            assert_eq!(view, before);
            started
        } else {
            one.start_update().map(drop)
        }
    })
}

fn two_arrays(rt: &Runtime) -> Result<[DistArray<'_, u64, Ix1>; 2]> {
    let make = |name| {
        let options = Options::named(name).ghosts([1]).boundaries([Boundary::Periodic]);
        DistArray::with(&rt.world(), [4 * rt.size()], options)
    };
    Ok([make("a")?, make("b")?])
}

/// The first updates of the ranks concern different arrays. No view of the other array changes.
fn first_ghosts(rt: &Runtime) -> Result<()> {
    let [mut one, mut two] = two_arrays(rt)?;
    let (mut one, mut two) = (one.access()?, two.access()?);
    two.local_mut().fill(7 + rt.rank() as u64);
    if rt.rank() > 0 {
        return two.update_ghosts();
    }
    let (view, before) = (two.padded(), two.padded().to_owned());
    let updated = one.update_ghosts();
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_eq!(view, before);
    updated
}

fn ghosts_and_composer(rt: &Runtime) -> Result<()> {
    let [_one, mut two] = two_arrays(rt)?;
    let mut two = two.access()?;
    two.local_mut().fill(7 + rt.rank() as u64);
    if rt.rank() > 0 {
        return two.update_ghosts();
    }
    let (view, before) = (two.padded(), two.padded().to_owned());
    let synced = Composer::new(rt).and_then(|composer| composer.sync());
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_eq!(view, before);
    synced
}

/// Rank 1 computes the number of elements without bytes for which its gather has the digest of the
/// access of rank 0, except for the secret (`collective::call`). There is no view.
fn digests(rt: &Runtime) -> Result<()> {
    let world = rt.world();
    let mut array = DistArray::<u64, Ix1>::zeros(&world, [8])?;
    for _ in 0..8 {
        world.gather(0, &[1u8])?; // leaves results of successful calls in the slots
    }
    if rt.rank() == 0 {
        std::thread::sleep(std::time::Duration::from_millis(100)); // rank 1 arrives first
        let held = array.access()?;
        panic!("there is a view: {}", held.local());
    }
    let word = |bytes: [u8; 8]| {
        (u64::from_ne_bytes(bytes) ^ MULTIPLIERS[2]).wrapping_mul(MULTIPLIERS[0]).rotate_left(29)
    };
    let (access, barrier, gather) = (Kind::Access as u8, Kind::Barrier as u8, Kind::Gather as u8);
    let access = word([access, barrier, 0, 0, 0, 0, 0, 0]);
    // With the number of a type without bytes, and the root.
    let gather = word([Kind::Plain as u8, gather, 16, 0, 1, 0, 0, 0]);
    world.gather(0, &vec![(); access.wrapping_sub(gather) as usize]).map(drop)
}

/// The program drops the error: finalisation reports it again and hangs on no rank.
pub fn at_finalize() {
    let rt = Runtime::init().expect("start");
    let world = rt.world();
    let made = if rt.rank() == 0 { world.barrier() } else { world.all_gather(1u8).map(drop) };
    made.expect_err("different calls");
    let error = rt.finalize().expect_err("a broken world");
    assert_eq!(error.kind(), ErrorKind::Mismatch);
    eprintln!("{error}");
    std::process::exit(3);
}
