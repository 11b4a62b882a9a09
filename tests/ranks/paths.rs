//! Compares the path that the engine has chosen with the settings.

use crate::child::{Ctx, own, step};
use portolan_base::config::PathChoice;
use portolan_engine::path::Path;

/// All ranks have chosen the same paths, as `PORTOLAN_PATH` requires, and puts arrive on them.
pub fn paths(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let chosen: Vec<u8> = (0..ctx.n * ctx.n)
        .map(|pair| engine.path_between(pair / ctx.n, pair % ctx.n) as u8)
        .collect();
    for (n, pair) in chosen.iter().enumerate() {
        let all = engine.world().allgather(engine, pair).expect("allgather");
        assert!(all.iter().all(|p| p == pair), "pair {n}: {all:?}");
    }
    for target in 0..ctx.n {
        let path = engine.path_between(ctx.me, target);
        let near = engine.topology.same_node(ctx.me, target);
        match (engine.config.path, near) {
            _ if target == ctx.me => assert_eq!(path, Path::Direct, "to oneself"),
            (PathChoice::Direct, _) => assert_eq!(path, Path::Direct),
            (PathChoice::Auto | PathChoice::DirectRma, true) => assert_eq!(path, Path::Direct),
            (PathChoice::Rma, _) | (PathChoice::DirectRma, false) => assert_eq!(path, Path::Rma),
            (PathChoice::Message, _) | (PathChoice::Auto, false) => assert_eq!(path, Path::Message),
        }
    }
    step("paths: a put to each rank");
    let segment = ctx.allocate(8 * ctx.n);
    own(&segment).fill(0xff);
    ctx.barrier();
    for target in 0..ctx.n {
        ctx.put(target, segment.part(target).address() + 8 * ctx.me, &[ctx.me as u8; 8]);
    }
    engine.fence_all().expect("fence");
    ctx.barrier();
    for (origin, bytes) in own(&segment).chunks(8).enumerate() {
        assert_eq!(bytes, [origin as u8; 8], "from rank {origin}");
    }
    ctx.barrier();
    ctx.free(segment);
}
