//! Tests mutexes: fairness and misuse.

use crate::child::{Ctx, own, refused, step};
use portolan::ErrorKind;
use portolan_base::process;
use portolan_base::trace::Cause;
use std::cell::Cell;

/// Sets follow each other in the same memory. `contention` tests exclusion.
pub fn mutexes(ctx: &Ctx) {
    let engine = &*ctx.engine;
    for again in 0..2 {
        // Rank `r` has `r + 1` mutexes.
        let set = engine.create_mutexes(engine.world(), Ok(ctx.me + 1)).expect("mutexes");
        assert_eq!(set.counts(), (1..=ctx.n).collect::<Vec<_>>());
        ctx.barrier();
        turns(ctx, again);
        step("mutexes: destroy");
        engine.destroy_mutexes(&set).expect("destroy");
        refused(ErrorKind::State, "a destroyed mutex", engine.lock(&set, 0, 0));
        refused(ErrorKind::State, "destroying again", engine.destroy_mutexes(&set));
    }
}

/// Number of times that each rank takes the mutex while the others want it.
const TURNS: i64 = 20;

/// First come, first served: no rank starves while others lock and unlock.
fn turns(ctx: &Ctx, again: usize) {
    let engine = &*ctx.engine;
    let set = engine.create_mutexes(engine.world(), Ok(usize::from(ctx.me == 0))).expect("mutexes");
    let counts = ctx.allocate(if ctx.me == 0 { 8 * ctx.n } else { 0 });
    own(&counts).fill(0);
    ctx.barrier();
    let mut mine = 0i64;
    // A rank goes on until every other rank has had its turns as well.
    loop {
        step(format!("turns {again}: lock {mine}"));
        engine.lock(&set, 0, 0).expect("lock");
        mine += 1;
        ctx.store(0, counts.part(0).address() + 8 * ctx.me, mine);
        let all: Vec<i64> = ctx.loads(0, counts.part(0).address(), ctx.n);
        engine.unlock(&set, 0, 0).expect("unlock");
        if all.iter().all(|&count| count >= TURNS) {
            break;
        }
    }
    ctx.barrier();
    engine.destroy_mutexes(&set).expect("destroy");
    ctx.free(counts);
}

pub fn errors(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let set = engine.create_mutexes(engine.world(), Ok(2)).expect("mutexes");
    step("mutex_errors: arguments");
    refused(ErrorKind::Rank, "rank outside", engine.lock(&set, 0, ctx.n));
    refused(ErrorKind::Argument, "number outside", engine.lock(&set, 2, 0));
    refused(ErrorKind::Argument, "number outside", engine.try_lock(&set, usize::MAX, 0));
    refused(ErrorKind::State, "not held", engine.unlock(&set, 0, 0));
    ctx.barrier();
    for owner in 0..ctx.n {
        for holder in 0..ctx.n {
            step(format!("mutex_errors: held by {holder} at {owner}"));
            if ctx.me == holder {
                engine.lock(&set, 1, owner).expect("lock");
                refused(ErrorKind::State, "locking twice", engine.lock(&set, 1, owner));
                assert!(!engine.try_lock(&set, 1, owner).expect("try"), "try of the holder");
            }
            ctx.barrier();
            if ctx.me != holder {
                assert!(!engine.try_lock(&set, 1, owner).expect("try"), "try of a held mutex");
                refused(ErrorKind::State, "held by another", engine.unlock(&set, 1, owner));
            }
            ctx.barrier();
            if ctx.me == holder {
                engine.unlock(&set, 1, owner).expect("unlock");
                refused(ErrorKind::State, "unlocking twice", engine.unlock(&set, 1, owner));
            }
            ctx.barrier();
        }
    }
    // A held mutex is destroyed with its set, and its holder gets an error.
    step("mutex_errors: destroy while held");
    if ctx.me == 0 {
        engine.lock(&set, 0, ctx.n - 1).expect("lock");
    }
    ctx.barrier();
    let destroyed = engine.destroy_mutexes(&set);
    if ctx.me == 0 {
        refused(ErrorKind::State, "destroying what one holds", destroyed);
    } else {
        destroyed.expect("destroy");
    }
    // The next set starts unlocked, even if it occupies the memory of the last one.
    let set = engine.create_mutexes(engine.world(), Ok(2)).expect("mutexes");
    for owner in 0..ctx.n {
        for index in 0..2 {
            engine.lock(&set, index, owner).expect("lock");
            engine.unlock(&set, index, owner).expect("unlock");
        }
    }
    engine.destroy_mutexes(&set).expect("destroy");
    refused(
        ErrorKind::Memory,
        "more mutexes than memory",
        engine.create_mutexes(engine.world(), Ok(usize::MAX / 4)),
    );
    let none = engine.create_mutexes(engine.world(), Ok(0)).expect("no mutexes");
    refused(ErrorKind::Argument, "a mutex of none", engine.lock(&none, 0, 0));
    engine.destroy_mutexes(&none).expect("destroy");
}

thread_local! {
    static INTERRUPTED: Cell<bool> = const { Cell::new(false) };
}

/// A rank whose wait is interrupted leaves the queue, so the other ranks can take the mutex. It can
/// lock the mutex no more.
pub fn interrupted(ctx: &Ctx) {
    let engine = &*ctx.engine;
    process::set_interrupted(|| INTERRUPTED.get());
    let flag = ctx.allocate(1);
    for (owner, gone) in (0..ctx.n).flat_map(|owner| (0..ctx.n).map(move |gone| (owner, gone))) {
        step(format!("mutex_interrupted: rank {gone} waits for a mutex of rank {owner}"));
        let holder = (gone + 1) % ctx.n;
        let set = engine.create_mutexes(engine.world(), Ok(1)).expect("mutexes");
        own(&flag).fill(0);
        if ctx.me == holder {
            engine.lock(&set, 0, owner).expect("lock");
        }
        ctx.barrier();
        if ctx.me == gone {
            INTERRUPTED.set(true);
            let text = refused(ErrorKind::State, "interrupted", engine.lock(&set, 0, owner));
            INTERRUPTED.set(false);
            assert!(text.contains("interrupted while waiting for mutex 0"), "{text}");
            let text = refused(ErrorKind::State, "once more", engine.lock(&set, 0, owner));
            assert!(text.contains("an earlier wait of this rank was interrupted"), "{text}");
            refused(ErrorKind::State, "not held", engine.unlock(&set, 0, owner));
            ctx.store(holder, flag.part(holder).address(), 1u8);
            engine.fence(holder).expect("fence");
        } else {
            if ctx.me == holder {
                let at = &raw const own(&flag)[0];
                // SAFETY: the memory is mapped while the segment lives. The byte of the other rank
                // may arrive at any time, so the read is volatile.
                let come = || Ok(unsafe { at.read_volatile() } == 1);
                engine.wait_for(Cause::Other, &|| "an interruption".into(), come).expect("wait");
                engine.unlock(&set, 0, owner).expect("unlock");
            }
            for _ in 0..3 {
                engine.lock(&set, 0, owner).expect("lock");
                engine.unlock(&set, 0, owner).expect("unlock");
            }
        }
        ctx.barrier();
        let destroyed = engine.destroy_mutexes(&set);
        if ctx.me == gone {
            refused(ErrorKind::State, "destroying what one has waited for", destroyed);
        } else {
            destroyed.expect("destroy");
        }
    }
    ctx.free(flag);
}
