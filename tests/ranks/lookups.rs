//! Compares address lookups with a plain list of live segments.

use crate::child::{Ctx, step};
use crate::rng::Rng;
use portolan::ErrorKind;
use portolan_engine::memory::segment::{Purpose, Segment};
use std::sync::Arc;

/// First address and length in bytes of a rank's part.
type Span = (usize, usize);

fn pieces(live: &[Arc<Segment>], rank: usize) -> Vec<(Span, &Arc<Segment>)> {
    let all = live.iter().map(|s| ((s.part(rank).address(), s.part(rank).len()), s));
    all.filter(|((_, len), _)| *len > 0).collect()
}

/// Allocates and frees segments. Lookups of valid addresses return what the list contains, and
/// other lookups fail.
pub fn lookups(ctx: &Ctx) {
    let registry = &ctx.engine.memory.registry;
    let mut rng = Rng::new(ctx.seed, &[81]);
    let mut live: Vec<Arc<Segment>> = Vec::new();
    let mut gone: Vec<(usize, usize)> = Vec::new();
    for round in 0..if ctx.quick { 40 } else { 120 } {
        step(format!("lookups: round {round}"));
        if !live.is_empty() && rng.one_in(2) {
            let segment = live.swap_remove(rng.below(live.len()));
            let ranks = 0..ctx.n;
            gone.extend(ranks.map(|r| (r, segment.part(r).address())).filter(|(_, a)| *a != 0));
            ctx.free(segment);
        } else {
            // One or several segments, with the same length on all ranks or different ones.
            let (count, same) = (*rng.pick(&[1, 1, 2, 5]), rng.one_in(2));
            let mut draw = || {
                let sizes = (0..ctx.n).map(|_| *rng.pick(&[0, 1, 8, 63, 64, 65, 1000, 70_000]));
                sizes.collect::<Vec<usize>>()[if same { 0 } else { ctx.me }]
            };
            let mine: Vec<usize> = (0..count).map(|_| draw()).collect();
            let made = ctx.engine.allocate_many(Purpose::Addresses, ctx.engine.world(), Ok(&mine));
            live.extend(made.expect("allocate"));
        }
        for rank in 0..ctx.n {
            let pieces = pieces(&live, rank);
            let holder = |a: usize| pieces.iter().find(|((s, len), _)| (*s..s + len).contains(&a));
            let ending = |a: usize| pieces.iter().find(|((s, len), _)| s + len == a);
            let mut addresses = vec![8, usize::MAX, usize::MAX / 2];
            addresses.extend(gone.iter().filter(|(r, _)| *r == rank).map(|(_, a)| *a));
            for ((start, len), _) in &pieces {
                addresses.extend([
                    start - 1,
                    *start,
                    start + len - 1,
                    start + len,
                    start + len + 1,
                ]);
                addresses.push(start + rng.below(*len));
            }
            for address in addresses {
                for len in [0, 1, 2, 64, 100_000, usize::MAX, usize::MAX - 63] {
                    let room = holder(address).map(|((s, l), _)| s + l - address);
                    let room = room.or_else(|| ending(address).map(|_| 0));
                    let found = registry.find(rank, address, len);
                    match room {
                        Some(room) if len <= room => {
                            found.unwrap_or_else(|e| panic!("{len} of {room} bytes: {e}"));
                        }
                        _ => {
                            let error = found.err().unwrap_or_else(|| {
                                panic!("{len} bytes at {address:#x} of rank {rank}: {room:?} fit")
                            });
                            assert_eq!(error.kind(), ErrorKind::Address, "{error}");
                        }
                    }
                }
                let begins = pieces.iter().find(|((s, _), _)| *s == address).map(|(_, s)| s.id());
                assert_eq!(
                    registry.segment_at(rank, address),
                    begins,
                    "what begins at {address:#x}"
                );
                let located = registry.locate(rank, address);
                let want = holder(address).or_else(|| ending(address));
                let want = want.map(|((s, l), segment)| (segment.id(), *s..s + l));
                assert_eq!(located, want, "where {address:#x} of rank {rank} lies");
            }
        }
    }
    live.into_iter().for_each(|segment| ctx.free(segment));
}
