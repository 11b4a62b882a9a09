//! Tests memory that cannot be allocated, and memory that must be released.

use crate::child::{self, Ctx, own, refused, step};
use portolan::ErrorKind;
use portolan_engine::runtime::Engine;
use std::fs;

/// Mounts a small file system that only this launch sees, and runs the launcher.
pub const WITH_SMALL_DIR: &str = r#"
    export PORTOLAN_SHM_DIR="$PORTOLAN_TEST_DIR/shm"
    mkdir "$PORTOLAN_SHM_DIR"
    exec unshare -m sh -c 'mount -t tmpfs -o size=16m tmpfs "$PORTOLAN_SHM_DIR" && exec "$@"' sh "$@"
"#;

pub fn cannot_mount() -> Option<String> {
    let tried = std::process::Command::new("unshare")
        .args(["-m", "mount", "-t", "tmpfs", "tmpfs", "/tmp"])
        .stderr(std::process::Stdio::null())
        .status();
    (!tried.is_ok_and(|s| s.success())).then(|| "mounting a file system is not permitted".into())
}

pub fn huge_ask(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let kept = ctx.allocate(100);
    own(&kept).fill(9);
    for bytes in [1usize << 50, 1 << 62, usize::MAX, usize::MAX - 63, isize::MAX as usize] {
        for asking in [0, ctx.n - 1] {
            for others in [0, 64, 6 << 20] {
                step(format!("huge_ask: {bytes} by {asking}, {others} by others"));
                let ask = if ctx.me == asking { bytes } else { others };
                let text =
                    refused(ErrorKind::Memory, "a huge ask", engine.allocate(engine.world(), ask));
                assert!(text.contains(&format!("rank {asking} ")), "the rank that asked: {text}");
                assert!(text.contains(&bytes.to_string()), "what it asked: {text}");
                assert!(text.contains("free"), "what is free: {text}");
                let next = ctx.allocate(5000);
                own(&next).fill(ctx.me as u8);
                ctx.barrier();
                for rank in 0..ctx.n {
                    let at = next.part(rank).address();
                    assert_eq!(ctx.get(rank, at, 5000), vec![rank as u8; 5000]);
                }
                ctx.barrier();
                ctx.free(next);
            }
        }
    }
    assert!(own(&kept).iter().all(|&b| b == 9), "a failed allocation changed another segment");
    ctx.free(kept);
}

/// Returns the number of open descriptors, the bytes of mapped shared memory, and the number of
/// this process's named files in shared memory.
pub fn footprint() -> (usize, usize, usize) {
    let descriptors = fs::read_dir("/proc/self/fd").map_or(0, |d| d.count());
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let shared: usize = maps
        .lines()
        .filter(|l| l.contains("/dev/shm/"))
        .filter_map(|l| {
            let (from, to) = l.split_whitespace().next()?.split_once('-')?;
            Some(usize::from_str_radix(to, 16).ok()? - usize::from_str_radix(from, 16).ok()?)
        })
        .sum();
    let own = format!("portolan.{}.", std::process::id());
    let named = fs::read_dir("/dev/shm").map_or(0, |d| {
        d.flatten().filter(|e| e.file_name().to_string_lossy().starts_with(&own)).count()
    });
    (descriptors, shared, named)
}

/// Allocates, uses and frees memory about two hundred times, small and large, with groups.
pub fn no_leaks(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let all: Vec<usize> = (0..ctx.n).collect();
    let cycles = |from: usize, to: usize| {
        for i in from..to {
            step(format!("no_leaks: cycle {i}"));
            let bytes = [100, 5000, 1 << 20, 9 << 20][i % 4];
            let segment = ctx.allocate(if i % 3 == 0 { bytes * ctx.me } else { bytes });
            let peer = (ctx.me + i) % ctx.n;
            let part = segment.part(peer);
            if !part.is_empty() {
                ctx.put(peer, part.address() + part.len() - 8, &[1; 8]);
            }
            if i % 10 == 9 {
                let group =
                    engine.create_group(engine.world(), &all).expect("create").expect("member");
                let inner = engine.allocate(&group, 100_000).expect("allocate");
                engine.release(inner).expect("release");
                engine.free_group(&group).expect("free");
            }
            ctx.free(segment);
        }
    };
    // The first cycles allocate what is kept for reuse.
    cycles(0, 40);
    ctx.barrier();
    let before = footprint();
    cycles(40, if ctx.quick { 120 } else { 240 });
    ctx.barrier();
    let after = footprint();
    assert!(after.0 <= before.0 + 2, "open descriptors grew from {} to {}", before.0, after.0);
    assert!(after.1 <= before.1 + (8 << 20), "mapped bytes grew from {} to {}", before.1, after.1);
    assert_eq!(after.2, 0, "named files in shared memory");
}

/// A group keeps the memory of freed segments up to a limit, here 16 MiB. Addresses of kept memory
/// are refused. A segment that takes over kept memory is zero if the program asks for zeros.
pub fn kept() {
    let ctx = Ctx::new(child::start());
    let engine = &*ctx.engine;
    let before = footprint();
    let large = ctx.allocate(100 << 20);
    ctx.free(large);
    ctx.barrier();
    let after = footprint();
    assert!(after.1 <= before.1 + (1 << 20), "large memory is not kept: {before:?} {after:?}");
    let mut place = None;
    for round in 0..5 {
        let segment = ctx.allocate(10 << 20);
        let mine = own(&segment);
        assert_eq!(*place.get_or_insert(mine.as_ptr()), mine.as_ptr(), "the memory is used again");
        let last = if round == 0 { 0 } else { round - 1 };
        assert!(mine.iter().all(|byte| *byte == last), "round {round}: {}", mine[0]);
        mine.fill(round);
        let next = (ctx.me + 1) % ctx.n;
        let at = segment.part(next).address();
        ctx.free(segment);
        let mut out = [0; 8];
        // SAFETY: `out` has 8 bytes.
        let got = unsafe { engine.get(next, at, out.as_mut_ptr(), 8) };
        refused(ErrorKind::Address, "kept memory", got);
        ctx.barrier();
    }
    drop(ctx);
    Engine::stop().expect("stop");
}

/// A directory that does not exist is an error that names the variable.
pub fn no_directory() {
    let ctx = Ctx::new(child::start());
    let text = refused(
        ErrorKind::Memory,
        "memory from a missing directory",
        ctx.engine.allocate(ctx.engine.world(), 100),
    );
    assert!(text.contains("PORTOLAN_SHM_DIR") && text.contains("/nonexistent/directory"), "{text}");
    let nothing = ctx.allocate(0);
    ctx.free(nothing);
    drop(ctx);
    Engine::stop().expect("stop");
}

/// With 16 MiB in all, requests that fit succeed, larger ones are refused on all ranks, and an
/// access to granted memory never kills a rank.
pub fn small_directory() {
    let ctx = Ctx::new(child::start());
    let engine = &*ctx.engine;
    for round in 0..3 {
        for asking in 0..ctx.n {
            step(format!("small_shm: round {round}, too much by {asking}"));
            let ask = if ctx.me == asking { 20 << 20 } else { 1 << 20 };
            let text = refused(ErrorKind::Memory, "too much", engine.allocate(engine.world(), ask));
            assert!(text.contains(&format!("rank {asking} ")), "{text}");
            assert!(text.contains("20971520") && text.contains("free"), "{text}");
        }
        // Each request would fit alone, but all together do not.
        step(format!("small_shm: round {round}, too much together"));
        let text =
            refused(ErrorKind::Memory, "too much", engine.allocate(engine.world(), 10 << 20));
        assert!(text.contains("10485760"), "{text}");
        step(format!("small_shm: round {round}, filling up"));
        let mut held = Vec::new();
        while let Ok(segment) = engine.allocate(engine.world(), 700_000) {
            own(&segment).fill(round);
            held.push(segment);
            assert!(held.len() < 30, "more memory than there is");
        }
        assert!(held.len() * ctx.n >= 14, "only {} segments fit", held.len());
        ctx.barrier();
        for segment in &held {
            for rank in 0..ctx.n {
                let at = segment.part(rank).address();
                assert_eq!(ctx.get(rank, at + 699_992, 8), [round; 8]);
            }
        }
        ctx.barrier();
        held.into_iter().for_each(|s| ctx.free(s));
        step(format!("small_shm: round {round}, more than the freed segments leave"));
        let larger = ctx.allocate((9 << 20) / ctx.n);
        own(&larger).fill(round);
        ctx.barrier();
        ctx.free(larger);
    }
    drop(ctx);
    Engine::stop().expect("stop");
}
