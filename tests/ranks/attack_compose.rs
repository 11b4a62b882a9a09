//! Compositions that try to reach memory that the program did not give them, through the safe
//! interface alone: files with correct checksums, raw addresses, and freed segments.
#![forbid(unsafe_code)]

use crate::child::{self, Ctx, refused, step};
use portolan::compose::{Composer, Composition, Loaded, Mapped};
use portolan::internals::runtime;
use portolan::transfer::Block;
use portolan::{ErrorKind, Runtime, Segment};
use portolan_compose::{CompositionKind, file};
use std::path::PathBuf;

const FILE: i32 = 7;

/// A run of bytes: local row and offset, remote row and offset, length. Offsets and length are in
/// bytes.
type Pair = (u32, u64, u32, u64, u64);
/// Segment number, rank, and length in bytes.
type Row = (u64, usize, u64);

struct Forger<'a> {
    rank: usize,
    ranks: usize,
    path: PathBuf,
    composer: &'a Composer<'a>,
}

impl<'a> Forger<'a> {
    /// Loads a composition with one target, and with shapes if `dims` is not empty.
    fn load(
        &self,
        kind: CompositionKind,
        rows: &[Row],
        target: usize,
        pair: Pair,
        dims: &[(u64, i64, i64)],
    ) -> portolan::Result<Loaded<'a>> {
        let rows: Vec<_> =
            rows.iter().map(|&(number, rank, bytes)| (0u64, number, rank, bytes)).collect();
        let (from, local, to, remote, bytes) = pair;
        let stored = ((from, local), (to, remote), bytes, dims);
        let body = postcard::to_stdvec(&(rows, 1u32, target, 1u64, stored)).expect("a body");
        let place = file::Place { rank: self.rank, ranks: self.ranks };
        let record = file::encode(place, kind, &body).expect("a record");
        std::fs::write(&self.path, record).expect("write");
        self.composer.rewind(FILE).expect("rewind");
        self.composer.load(FILE)
    }

    /// Loads a composition that copies the first bytes of a segment to themselves.
    fn whole(
        &self,
        kind: CompositionKind,
        number: u64,
        bytes: u64,
    ) -> portolan::Result<Loaded<'a>> {
        let row = (number, self.rank, bytes);
        self.load(kind, &[row], self.rank, (0, 0, 0, 0, bytes), &[])
    }
}

fn composition(loaded: portolan::Result<Loaded<'_>>) -> Composition<'_> {
    match loaded.expect("load") {
        Loaded::Composition(composition) => composition,
        Loaded::Mapped(_) => panic!("it was not stored mapped"),
    }
}

fn with_composer(ctx: &Ctx, name: &str, run: impl FnOnce(&Runtime, &Composer<'_>, PathBuf)) {
    let rt = runtime(&ctx.engine);
    let dir = child::directory().join(format!("{name}.{}", ctx.me));
    std::fs::create_dir_all(&dir).expect("a directory");
    let composer = Composer::with_directory(&rt, dir.to_str().expect("a path")).expect("composer");
    run(&rt, &composer, dir.join(format!("compose-{FILE}.{}", ctx.me)));
    composer.free().expect("free");
    let _ = std::fs::remove_dir_all(&dir);
}

fn number_of(
    composer: &Composer<'_>,
    segment: &Segment<'_, u64>,
    me: usize,
    path: &PathBuf,
) -> u64 {
    let mut c = composer.simple(me).expect("simple");
    c.add(segment, 0..1, segment, me, 1).expect("add");
    composer.store(FILE, &c).expect("store");
    let file = std::fs::read(path).expect("the file");
    // The number follows the head of 48 bytes, the number of rows and the group.
    let (_rows, _group, number): (u32, u64, u64) =
        postcard::from_bytes(&file[48..]).expect("a row");
    number
}

/// Files that name every segment of the library: mutexes, counters of tiles and arrivals, lent
/// parts of arrays, memory of the C interfaces, freed segments, and wrong lengths.
pub fn files(ctx: &Ctx) {
    with_composer(ctx, "attack_files", |rt, composer, path| {
        let world = rt.world();
        let (me, n) = (ctx.me, ctx.n);
        let first = world.allocate::<u64>(64).expect("allocate");
        let gone = world.allocate::<u64>(32).expect("allocate");
        let other = world.allocate::<u64>(16).expect("allocate");
        let set = world.mutexes(2).expect("mutexes");
        let c_memory = ctx.allocate(256);
        let mut array = portolan::array::DistArray::<u64, ndarray::Ix1>::zeros(&world, [64 * n])
            .expect("array");
        let mut tiles = array.tiles([4]).expect("tiles");
        let number = number_of(composer, &first, me, &path);
        gone.free().expect("free");
        let forger = Forger { rank: me, ranks: n, path, composer };

        step("files that name any segment");
        let mut allowed = Vec::new();
        for at in number.saturating_sub(20)..number + 40 {
            for kind in [CompositionKind::Simple, CompositionKind::Merged, CompositionKind::Mapped]
            {
                let mut bytes = 8;
                // Try again with the length that the first error names.
                for _ in 0..2 {
                    match forger.whole(kind, at, bytes) {
                        Ok(_) => {
                            allowed.push(at);
                            break;
                        }
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::Address, "segment {at}: {error}");
                            let text = error.to_string();
                            let has = text.split(" has ").nth(1).and_then(|t| t.split(' ').next());
                            match has.and_then(|word| word.parse().ok()) {
                                Some(0) | None => break,
                                Some(held) => bytes = held,
                            }
                        }
                    }
                }
            }
        }
        allowed.dedup();
        assert_eq!(allowed, [number, number + 2], "and no segment of the library's own");
        let text = refused(
            ErrorKind::Address,
            "freed",
            forger.whole(CompositionKind::Simple, number + 1, 256),
        );
        assert!(text.contains("not allocated in this run"), "{text}");
        let text = refused(
            ErrorKind::Address,
            "mutexes",
            forger.whole(CompositionKind::Mapped, number + 3, 8),
        );
        assert!(text.contains("the library's own"), "{text}");
        let text = refused(
            ErrorKind::Address,
            "of C",
            forger.whole(CompositionKind::Simple, number + 4, 256),
        );
        assert!(text.contains("the C interfaces"), "{text}");

        step("files with wrong lengths");
        let own = (number, me, 512);
        let load = |pair: Pair| forger.load(CompositionKind::Simple, &[own], me, pair, &[]);
        for kind in [CompositionKind::Simple, CompositionKind::Mapped] {
            refused(ErrorKind::Address, "longer", forger.whole(kind, number, 520));
            refused(ErrorKind::Address, "shorter", forger.whole(kind, number, 504));
            refused(ErrorKind::Address, "endless", forger.whole(kind, number, u64::MAX >> 1));
        }
        let far = u64::MAX >> 1;
        for pair in [
            (0, 0, 0, 0, 513),
            (0, 505, 0, 0, 8),
            (0, 0, 0, 505, 8),
            (0, far, 0, 0, 8),
            (0, 0, 0, far, far),
            (0, u64::MAX, 0, 0, 8),
            (0, 0, 0, 0, u64::MAX),
            (1, 0, 0, 0, 8),
            (0, 0, u32::MAX, 0, 8),
        ] {
            refused(ErrorKind::Argument, &format!("{pair:?}"), load(pair));
        }
        refused(ErrorKind::Rank, "no such rank", {
            forger.load(CompositionKind::Simple, &[own], n, (0, 0, 0, 0, 8), &[])
        });
        let nobody = [own, (number, n, 512)];
        refused(ErrorKind::Address, "a row of no rank", {
            forger.load(CompositionKind::Simple, &nobody, me, (0, 0, 1, 0, 8), &[])
        });

        step("files with large shapes");
        let shaped = |dims: &[(u64, i64, i64)]| {
            forger.load(CompositionKind::Simple, &[own], me, (0, 0, 0, 256, 8), dims)
        };
        for dims in [[(100, 8, 0)], [(2, i64::MIN, 0)], [(2, 0, i64::MAX)], [(1 << 60, 8, 8)]] {
            refused(ErrorKind::Argument, &format!("{dims:?}"), shaped(&dims));
        }
        // 2^59 copies of one pair count once. Two source bytes for one place are a conflict.
        let once = composition(shaped(&[(1 << 59, 0, 0)])).map().expect("one pair");
        refused(ErrorKind::Argument, "a conflict", composition(shaped(&[(8, 8, 0)])).map());
        let many = [(10, 8, 16), (10, 16, 24), (1 << 30, 0, 8)];
        refused(ErrorKind::Argument, "conflicts", shaped(&many).map(composition_of).and_then(map));
        refused(ErrorKind::Argument, "a mapped conflict", {
            forger.load(CompositionKind::Mapped, &[own], me, (0, 0, 0, 256, 8), &[(8, 8, 0)])
        });

        step("what files may name");
        let local = first.local();
        (0..64).for_each(|i| local.write(i, (1000 * me + i) as u64));
        composer.sync().expect("sync");
        composer.perform(&once).expect("perform");
        composer.wait_for(1).expect("wait");
        assert_eq!(local.read(32), local.read(0));
        composer.sync().expect("sync");
        set.lock(me, 1).expect("lock").unlock().expect("unlock");
        {
            let lent = array.access().expect("access");
            assert!(lent.local().iter().all(|x| *x == 0), "the part on loan has changed");
            lent.release().expect("release");
            let mut taken = 0;
            while tiles.take().expect("take").is_some() {
                taken += 1;
            }
            let all = world.all_gather(taken).expect("gather").iter().sum::<usize>();
            assert_eq!(all, 16 * n, "each tile once");
            tiles.free().expect("free");
            array.free().expect("free");
        }
        set.free().expect("free");
        ctx.free(c_memory);
        other.free().expect("free");
        first.free().expect("free");
    });
}

fn composition_of(loaded: Loaded<'_>) -> Composition<'_> {
    composition(Ok(loaded))
}

fn map(composition: Composition<'_>) -> portolan::Result<Mapped<'_>> {
    composition.map()
}

/// Compositions with raw addresses, even merged, are neither stored nor performed by the safe call.
pub fn raw(ctx: &Ctx) {
    with_composer(ctx, "attack_raw", |rt, composer, _| {
        let from = rt.world().allocate::<u64>(8).expect("allocate");
        let to = rt.world().allocate::<u64>(8).expect("allocate");
        from.local().fill(99);
        let mut raw = composer.simple(ctx.me).expect("simple");
        let here = from.local().as_ptr() as *const u8;
        raw.add_raw(here, to.local().as_ptr() as usize, 64).expect("add");
        let mut plain = composer.simple(ctx.me).expect("simple");
        plain.add(&from, 0..1, &to, ctx.me, 0).expect("add");
        for c in [&raw, &raw.merge(&plain).expect("merge"), &plain.merge(&raw).expect("merge")] {
            let mapped = c.map().expect("map");
            refused(ErrorKind::Handle, "perform", composer.perform(&mapped));
            refused(ErrorKind::Handle, "store", composer.store(FILE, c));
            refused(ErrorKind::Handle, "store", composer.store_mapped(FILE, &mapped));
            refused(ErrorKind::Argument, "nothing was stored", composer.load(FILE));
        }
        assert!(to.local().to_vec().iter().all(|x| *x == 0));
        composer.sync().expect("sync");
        from.free().expect("free");
        to.free().expect("free");
    });
}

/// If one of several adjacent segments is freed, the mapped composition is refused, whichever
/// segment it was, even if its bytes now belong to another segment.
pub fn neighbours(ctx: &Ctx) {
    with_composer(ctx, "attack_neighbours", |rt, composer, _| {
        let world = rt.world();
        for (target, gone) in (0..ctx.n).flat_map(|target| (0..4).map(move |gone| (target, gone))) {
            step(format!("side by side: segment {gone} is freed, target {target}"));
            // 64 bytes each, so that nothing lies between them.
            let mut all = world.allocate_many::<u64>(&[8; 4]).expect("allocate");
            let mut c = composer.simple(target).expect("simple");
            c.add(&all[0], 0..8, &all[2], target, 0).expect("add");
            c.add(&all[1], 0..8, &all[3], target, 0).expect("add");
            let mapped = c.map().expect("map");
            composer.sync().expect("sync");
            composer.perform(&mapped).expect("they live");
            composer.sync().expect("sync");
            all.remove(gone).free().expect("free");
            let taken = world.allocate::<u64>(8).expect("allocate");
            taken.local().fill(5);
            world.barrier().expect("barrier");
            refused(ErrorKind::State, "perform", composer.perform(&mapped));
            refused(ErrorKind::State, "map", c.map());
            refused(ErrorKind::State, "store", composer.store(FILE, &c));
            refused(ErrorKind::State, "store", composer.store_mapped(FILE, &mapped));
            composer.sync().expect("sync");
            assert!(taken.local().to_vec().iter().all(|x| *x == 5));
            taken.free().expect("free");
            all.into_iter().for_each(|segment| segment.free().expect("free"));
        }
    });
}

pub fn slices(ctx: &Ctx) {
    with_composer(ctx, "attack_slices", |rt, composer, _| {
        let segment = rt.world().allocate::<u64>(16).expect("allocate");
        let add = |from: &Block, to: &Block| {
            let mut c = composer.simple(ctx.me).expect("simple");
            c.add_block(&segment, from, &segment, ctx.me, to).map(|()| c)
        };
        // `count` blocks of `block` elements.
        let blocks = |start, block, stride, count| {
            Block::strided(start, &[count, block], &[stride, 1]).expect("a block")
        };
        let (max, far) = (usize::MAX, isize::MAX);
        for bad in [
            blocks(0, 1, 0, 1 << 61),
            blocks(0, 1, 0, max),
            blocks(0, 1, far, 2),
            blocks(0, 1, isize::MIN, 2),
            blocks(max, 1, 0, 1),
            blocks(1, max, 0, 1),
            blocks(0, 1 << 61, 0, 2),
            blocks(8, 1, 1 << 62, 3),
            blocks(8, 1, -8, 3),
        ] {
            assert!(add(&bad, &bad).is_err(), "{bad:?} is added");
        }
        // No elements, or one block whose stride does not matter.
        for good in [blocks(0, max, 9, 0), blocks(max, 0, far, max), blocks(0, 1, far, 1)] {
            let _ = add(&good, &good).and_then(map).expect("few elements");
        }
        let _ = add(&blocks(0, max, far, 0), &blocks(16, 0, far, 5))
            .and_then(map)
            .expect("no elements");
        refused(ErrorKind::Argument, "2^59 copies of one element", {
            add(&blocks(0, 1, 0, 1 << 59), &blocks(1, 1, 0, 1 << 59))
        });
        let _ = add(&blocks(15, 1, -1, 16), &blocks(0, 16, 0, 1)).expect("backwards");
        refused(ErrorKind::Argument, "a conflict", {
            add(&blocks(0, 1, 1, 16), &blocks(0, 1, 0, 16)).and_then(map)
        });
        refused(ErrorKind::Argument, "conflicts of overlapping blocks", {
            add(&blocks(0, 16, 0, 1), &blocks(0, 4, 3, 4)).and_then(map)
        });
        let mut c = composer.simple(ctx.me).expect("simple");
        for (range, to) in [(15..17, 0), (0..max, 0), (max..max, 0), (0..1, max), (0..1, 16)] {
            let range: std::ops::Range<usize> = range;
            refused(ErrorKind::Address, "a row", c.add(&segment, range, &segment, ctx.me, to));
        }
        composer.sync().expect("sync");
        segment.free().expect("free");
    });
}
