//! Tests compositions: freed memory, errors, files, and the typed interface.

use crate::child::{self, Ctx, own, refused, step};
use crate::compose::{Added, REGION, SOURCE, block, parcel, perform, source_byte};
use portolan::compose::Loaded;
use portolan::transfer::Block;
use portolan::{ErrorKind, Runtime};
use portolan_compose::{Blocks, Composer, Composition, CompositionKind};

/// A plan is refused once one of its segments is freed, even if another segment takes its place.
pub fn freed(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let composer = Composer::new();
    composer.sync(engine).expect("sync");
    let (a, b) = (ctx.allocate(4096), ctx.allocate(4096));
    let target = (ctx.me + 1) % ctx.n;
    let out = [3u8; 64];
    let to = |s: &portolan_engine::memory::segment::Segment| s.part(target).address() + 64;
    let to_a = block(ctx, target, out.as_ptr() as usize, to(&a), 64);
    let from_a = block(ctx, target, a.my_base() as usize, to(&b), 64);
    let to_b = block(ctx, target, out.as_ptr() as usize, to(&b), 64);
    let mut held = Composition::simple(engine, target).expect("simple");
    held.add(out.as_ptr() as usize, to(&a), 8).expect("add");
    held.hold(&a);
    for c in [&to_a, &from_a, &to_b] {
        composer.sync(engine).expect("sync");
        perform(ctx, &composer, c);
        composer.wait_for(engine, 1).expect("wait");
    }
    composer.sync(engine).expect("sync");
    ctx.free(a);
    let c = ctx.allocate(4096); // most likely at the address of `a`
    own(&c).fill(0);
    composer.sync(engine).expect("sync");
    for gone in [&to_a, &from_a] {
        // SAFETY: the call finds that the plan's memory was freed before it accesses any memory.
        let result = unsafe { composer.perform(engine, gone.plan().expect("mapped")) };
        let text = refused(ErrorKind::State, "perform to freed memory", result);
        assert!(text.contains("freed"), "{text}");
    }
    refused(ErrorKind::State, "map what holds a freed segment", held.map(engine));
    perform(ctx, &composer, &to_b);
    composer.wait_for(engine, 1).expect("wait");
    assert!(own(&c).iter().all(|&x| x == 0), "a stale plan has written");
    composer.sync(engine).expect("sync");
    composer.free(engine).expect("free");
    ctx.free(b);
    ctx.free(c);
}

pub fn errors(ctx: &Ctx) {
    use ErrorKind::*;
    let engine = &*ctx.engine;
    let composer = Composer::new();
    let segment = ctx.allocate(4096);
    own(&segment).fill(0);
    let out = [9u8; 256];
    let (here, target) = (out.as_ptr() as usize, (ctx.me + 1) % ctx.n);
    let there = segment.part(target).address();
    refused(Rank, "a target outside", Composition::simple(engine, ctx.n));
    let mut c = Composition::simple(engine, target).expect("simple");
    refused(Argument, "null here", c.add(0, there, 1));
    refused(Argument, "null there", c.add(here, 0, 1));
    refused(Argument, "too many bytes", c.add(here, there, usize::MAX));
    let l = Blocks { start: here, stride: 16, block: 8, count: 4 };
    let r = Blocks { start: there, stride: 16, block: 8, count: 5 };
    refused(Argument, "a slice of 32 and 40 bytes", c.add_slice(l, r));
    let bad = [(here, there, 8), (0, there, 8)];
    refused(Argument, "one bad block of several", c.add_all(bad.into_iter()));
    let empty = c.map(engine).expect("an empty composition can be mapped");
    assert!(empty.plan().expect("mapped").towards.is_empty(), "something was added after all");
    c.add(here, there, 16).expect("add");
    let merged = c.merge(&c).expect("merge with itself");
    let mapped = merged.map(engine).expect("map");
    refused(Handle, "add to a merged one", merged.clone().add(here, there, 1));
    refused(Handle, "add to a mapped one", mapped.clone().add_slice(l, l));
    refused(Handle, "merge a mapped one", c.merge(&mapped));
    refused(Handle, "merge into a mapped one", mapped.merge(&c));
    refused(Handle, "map a mapped one", mapped.map(engine));
    refused(Handle, "perform a simple one", c.plan());
    let plan = mapped.plan().expect("mapped");
    // SAFETY: `out` and the segment are live.
    refused(State, "perform before a sync", unsafe { composer.perform(engine, plan) });
    refused(State, "wait before a sync", composer.wait_for(engine, 0));
    let mut clash = c.clone();
    clash.add(here + 100, there + 15, 4).expect("two sources for one place can be added");
    let text = refused(Argument, "two sources for one place", clash.map(engine));
    assert!(text.contains(&format!("{:#x}", there + 15)), "{text} names not the address");
    let mut half = Composition::simple(engine, target).expect("simple");
    half.add(here + 200, there + 8, 1).expect("add");
    refused(Argument, "a conflict of two merged ones", c.merge(&half).expect("merge").map(engine));
    composer.sync(engine).expect("sync");
    if ctx.n > 1 {
        // No rank has memory at this address. The other targets get their data, and no rank waits
        // for the failed transfer.
        let mut wild = Composition::simple(engine, target).expect("simple");
        wild.add(here, 16, 8).expect("add");
        let wild = wild.merge(&to_self(ctx, here, &segment)).expect("merge");
        let wild = wild.map(engine).expect("only the target knows");
        // SAFETY: no process has mapped the address, so no memory is changed.
        let result = unsafe { composer.perform(engine, wild.plan().expect("mapped")) };
        refused(Address, "perform to no memory", result);
        composer.wait_for(engine, 1).expect("the performance to oneself");
        assert_eq!(own(&segment)[2048], 9);
    }
    perform(ctx, &composer, &mapped);
    perform(ctx, &composer, &empty);
    composer.wait_for(engine, 1 + u32::from(ctx.n > 1)).expect("wait");
    assert!(own(&segment)[..16].iter().all(|&b| b == 9));
    composer.sync(engine).expect("sync");
    composer.free(engine).expect("free");
    ctx.free(segment);
}

fn to_self(
    ctx: &Ctx,
    here: usize,
    segment: &portolan_engine::memory::segment::Segment,
) -> Composition {
    let mut c = Composition::simple(&ctx.engine, ctx.me).expect("simple");
    c.add(here, segment.my_base() as usize + 2048, 8).expect("add");
    c
}

/// Returns what rank `src` stores for rank `dst`. It is never empty, whatever the seed, because a
/// composition without addresses needs no segment and moves no byte.
fn stored(ctx: &Ctx, src: usize, dst: usize) -> Vec<Added> {
    let mut all = parcel(ctx, 1000, src, dst);
    // After all bytes that a parcel adds.
    all.push(Added::Runs(vec![(5, REGION - 64, 32)]));
    all
}

/// Stores all kinds of compositions in a file and loads them. Invalid files are refused.
pub fn files(ctx: &Ctx) {
    use ErrorKind::*;
    let engine = &*ctx.engine;
    let dir = child::directory().join("compose");
    std::fs::create_dir_all(&dir).expect("a directory");
    let composer = Composer::with_directory(dir.to_str().expect("a plain name"));
    composer.sync(engine).expect("sync");
    let (from, to) = (ctx.allocate(SOURCE), ctx.allocate(ctx.n * REGION));
    let mut whole = Composition::simple(engine, 0).expect("simple");
    for dst in 0..ctx.n {
        let mut simple = Composition::simple(engine, dst).expect("simple");
        let remote = to.part(dst).address() + ctx.me * REGION;
        for added in stored(ctx, ctx.me, dst) {
            added.add(&mut simple, from.my_base() as usize, remote).expect("add");
        }
        composer.store(engine, 4, &simple).expect("store a simple one");
        whole = whole.merge(&simple).expect("merge");
    }
    composer.store(engine, 5, &whole).expect("store a merged one");
    composer.store(engine, 5, &whole.map(engine).expect("map")).expect("store a mapped one");
    drop(whole);
    step("files: load");
    let simples: Vec<Composition> =
        (0..ctx.n).map(|_| composer.load(engine, 4).expect("load a simple one")).collect();
    assert!(simples.iter().all(|c| c.kind() == CompositionKind::Simple));
    let merged = composer.load(engine, 5).expect("load a merged one");
    let mapped = composer.load(engine, 5).expect("load a mapped one");
    assert_eq!((merged.kind(), mapped.kind()), (CompositionKind::Merged, CompositionKind::Mapped));
    let together =
        simples.iter().skip(1).fold(simples[0].clone(), |a, b| a.merge(b).expect("merge"));
    let mut seen: Vec<Vec<u8>> = Vec::new();
    for c in [&together.map(engine).expect("map"), &merged.map(engine).expect("map"), &mapped] {
        own(&from).iter_mut().enumerate().for_each(|(at, b)| *b = source_byte(ctx.me, 3, 3, at));
        own(&to).fill(0x11);
        composer.sync(engine).expect("sync");
        perform(ctx, &composer, c);
        composer.sync(engine).expect("sync");
        seen.push(own(&to).to_vec());
    }
    let mut want = vec![0x11u8; ctx.n * REGION];
    for src in 0..ctx.n {
        for (l, r, n) in stored(ctx, src, ctx.me).iter().flat_map(Added::bytes) {
            for i in 0..n {
                want[src * REGION + r + i] = source_byte(src, 3, 3, l + i);
            }
        }
    }
    assert!(want.iter().any(|&b| b != 0x11), "the model moves nothing");
    assert!(seen.iter().all(|s| *s == want), "what was loaded moves other bytes");
    step("files: errors");
    refused(Argument, "load past the end", composer.load(engine, 5));
    composer.rewind(5).expect("rewind");
    assert_eq!(composer.load(engine, 5).expect("load again").kind(), CompositionKind::Merged);
    refused(Argument, "load what was never stored", composer.load(engine, 77));
    refused(Argument, "a negative number", composer.load(engine, -1));
    refused(Argument, "a negative number", composer.store(engine, -1, &merged));
    refused(Argument, "a negative number", composer.rewind(-1));
    let heap = [1u8; 8];
    let mut outside = Composition::simple(engine, 0).expect("simple");
    outside.add(heap.as_ptr() as usize, to.part(0).address(), 8).expect("add");
    let text =
        refused(Address, "store an address of the heap", composer.store(engine, 6, &outside));
    assert!(text.contains("no segment"), "{text}");
    refused(Argument, "nothing was written", composer.load(engine, 6));
    let path = dir.join(format!("compose-5.{}", ctx.me));
    let whole = std::fs::read(&path).expect("the file");
    let load_with = |bytes: &[u8]| {
        std::fs::write(&path, bytes).expect("write");
        composer.rewind(5).expect("rewind");
        composer.load(engine, 5)
    };
    for at in (0..whole.len()).step_by(whole.len() / 40 + 1).chain(0..48) {
        let mut bad = whole.clone();
        bad[at] ^= 1;
        // Damage after the first record is found when the second record is read.
        let result = load_with(&bad).and_then(|_| composer.load(engine, 5));
        refused(Argument, &format!("a file that is damaged at {at}"), result);
    }
    refused(Argument, "half a file", load_with(&whole[..40]));
    refused(
        Argument,
        "a foreign file",
        load_with(b"#!/bin/sh\necho this is not a composition, but long enough\n"),
    );
    if ctx.n > 1 {
        let other = std::fs::read(dir.join(format!("compose-4.{}", (ctx.me + 1) % ctx.n)));
        let text =
            refused(Argument, "another rank's file", load_with(&other.expect("the other's file")));
        assert!(text.contains("was stored by rank"), "{text}");
    }
    load_with(&whole).expect("it was the damage");
    composer.sync(engine).expect("sync");
    ctx.free(to);
    composer.rewind(5).expect("rewind");
    refused(Address, "load without the segment", composer.load(engine, 5));
    // Another segment takes its place, but not its number.
    let to = ctx.allocate(ctx.n * REGION);
    composer.rewind(5).expect("rewind");
    refused(Address, "load with another segment", composer.load(engine, 5));
    composer.sync(engine).expect("sync");
    let _ = std::fs::remove_dir_all(&dir);
    composer.free(engine).expect("free");
    ctx.free(to);
    ctx.free(from);
}

pub fn typed() {
    use ErrorKind::*;
    let rt = Runtime::init().expect("init");
    child::check_size(rt.size());
    let (me, n) = (rt.rank(), rt.size());
    let next = (me + 1) % n;
    let dir = child::directory().join(format!("typed.{me}"));
    std::fs::create_dir_all(&dir).expect("a directory");
    let composer =
        portolan::compose::Composer::with_directory(&rt, dir.to_str().expect("a plain name"))
            .expect("composer");
    let field = rt.world().allocate::<i32>(100).expect("allocate");
    step("typed: rows and columns");
    let mut c = composer.simple(next).expect("simple");
    c.add(&field, 0..10, &field, next, 50).expect("add");
    // Ten numbers of a column of a 5-column matrix become a row.
    let column = |count| Block::strided(2, &[count], &[5]).expect("a block");
    let row = Block::contiguous(70..80);
    c.add_block(&field, &column(10), &field, next, &row).expect("add");
    refused(Address, "beyond here", c.add(&field, 95..101, &field, next, 0));
    refused(Address, "beyond there", c.add(&field, 0..10, &field, next, 91));
    refused(Rank, "no such rank", c.add(&field, 0..1, &field, n, 0));
    if n > 1 {
        refused(Rank, "another rank than it is towards", c.add(&field, 0..1, &field, me, 0));
    }
    let far = Block::strided(1, &[10], &[isize::MAX / 2]).expect("a block");
    refused(Address, "a block beyond memory", c.add_block(&field, &far, &field, next, &row));
    refused(Argument, "ten and nine", c.add_block(&field, &column(9), &field, next, &row));
    let mapped = c.map().expect("map");
    composer.store(1, &c).expect("store");
    composer.store_mapped(1, &mapped).expect("store");
    let Loaded::Composition(again) = composer.load(1).expect("load") else {
        panic!("a simple composition was loaded as a mapped one");
    };
    let Loaded::Mapped(mapped_again) = composer.load(1).expect("load") else {
        panic!("a mapped composition was loaded as another one");
    };
    let both = again.merge(&c).expect("merge").map().expect("map");
    for (time, m) in [&mapped, &mapped_again, &both].into_iter().enumerate() {
        for i in 0..100 {
            field.local().write(i, (1000 * time + 100 * me + i) as i32);
        }
        composer.sync().expect("sync");
        composer.perform(m).expect("perform");
        composer.wait_for(1).expect("wait");
        assert_eq!(composer.arrived().expect("arrived"), 1);
        let before = (me + n - 1) % n;
        for i in 0..100 {
            let of = |rank: usize, from: usize| (1000 * time + 100 * rank + from) as i32;
            let want = match i {
                50..60 => of(before, i - 50),
                70..80 => of(before, 2 + 5 * (i - 70)),
                _ => of(me, i),
            };
            assert_eq!(field.local().read(i), want, "element {i}, time {time}");
        }
        composer.sync().expect("sync");
    }
    step("typed: raw addresses");
    let (out, mut into) = ([7u8; 16], [0u8; 16]);
    let mut raw = composer.simple(me).expect("simple");
    raw.add_raw(out.as_ptr(), into.as_mut_ptr() as usize, 16).expect("add");
    let raw = raw.map().expect("map");
    refused(Handle, "raw addresses by the safe call", composer.perform(&raw));
    // SAFETY: both arrays live until the wait.
    unsafe { composer.perform_raw(&raw) }.expect("perform");
    composer.wait_for(1).expect("wait");
    assert_eq!(std::hint::black_box(into), out);
    composer.sync().expect("sync");
    step("typed: freed");
    field.free().expect("free");
    refused(State, "perform to freed memory", composer.perform(&mapped));
    refused(State, "map to freed memory", c.map());
    refused(State, "map what was loaded, to freed memory", again.map());
    composer.sync().expect("sync");
    composer.free().expect("free");
    let _ = std::fs::remove_dir_all(&dir);
    drop((mapped, mapped_again, both, c, again, raw));
    rt.finalize().expect("finalize");
}
