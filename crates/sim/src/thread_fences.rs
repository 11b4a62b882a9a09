//! The fence of a thread covers the operations that the thread has issued, whatever other threads
//! of its rank send to the same target or wait for. All ranks are in one process, so the thread
//! reads its target's memory directly when the fence returns.

use crate::behaviour::Behaviour;
use crate::child::{Ctx, own, step};
use crate::dice::Dice;
use crate::machine::{self, Outcome};
use crate::settings;
use portolan_base::config::{Config, PathChoice};
use std::sync::atomic::{AtomicU64, Ordering};

const STACK: usize = 512 << 10;
const THREADS: usize = 3;
const ROUNDS: u64 = 30;
/// Bytes between the words of two threads.
const APART: usize = 64;

fn work(ctx: &Ctx) {
    let segment = ctx.allocate(THREADS * APART);
    own(&segment).fill(0);
    ctx.barrier();
    let target = (ctx.me + 1) % ctx.n;
    step("fences of threads");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let at = segment.part(target).address() + APART * thread;
            scope.spawn(move || {
                // SAFETY: the word lies in the target's part of the segment, in this process, and
                // is freed after a barrier.
                let word = unsafe { AtomicU64::from_ptr(at as *mut u64) };
                for round in 1..=ROUNDS {
                    ctx.store(target, at, round);
                    // Fences of other threads may end here.
                    std::thread::yield_now();
                    if round % 2 == 0 {
                        ctx.engine.fence_all().expect("fence");
                    } else {
                        ctx.engine.fence(target).expect("fence");
                    }
                    assert_eq!(word.load(Ordering::Relaxed), round, "what thread {thread} has put");
                }
            });
        }
    });
    ctx.barrier();
    ctx.free(segment);
}

/// Runs the rounds of a seed, with all puts as messages.
pub fn run(seed: u64, ranks: usize) -> Outcome {
    let mut dice = Dice::new(seed);
    let behaviour = Behaviour::draw(&mut dice, ranks);
    let config = Config { path: PathChoice::Message, ..settings::draw(&mut dice) };
    machine::run(seed, ranks, behaviour, STACK, move |_| {
        let ctx = Ctx::start(config.clone(), seed);
        work(&ctx);
        ctx.stop();
    })
}
