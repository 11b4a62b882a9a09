//! Ranks that hang, and what they say.

use crate::child::{Ctx, own, start, step};
use portolan::internals::runtime::Engine;
use std::time::{Duration, Instant};

fn sleep_for_ever() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Rank 1 takes the mutex and keeps it.
pub fn held_mutex() {
    let ctx = Ctx::new(start());
    let set = ctx.engine.create_mutexes(ctx.engine.world(), 1).expect("mutexes");
    if ctx.me == 1 {
        ctx.engine.lock(&set, 0, 0).expect("lock");
    }
    ctx.barrier();
    step("hanging");
    if ctx.me == 1 {
        sleep_for_ever();
    }
    ctx.engine.lock(&set, 0, 0).expect("lock");
}

/// Rank 1 is stopped by a signal; rank 0 wants an answer of it.
pub fn stopped_peer() {
    let ctx = Ctx::new(start());
    let segment = ctx.allocate(64);
    own(&segment).fill(0);
    ctx.barrier();
    step("hanging");
    if ctx.me == 1 {
        // SAFETY: stops this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
    }
    std::thread::sleep(Duration::from_millis(300));
    ctx.get(1, segment.part(1).address(), 8);
    panic!("a stopped rank has answered");
}

/// Rank 1 computes, rank 0 waits for it; each is asked where it stands.
pub fn asked() {
    let ctx = Ctx::new(start());
    ctx.barrier();
    let begun = Instant::now();
    let asks_itself = |after: u64| {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(after));
            // SAFETY: the signal has the engine's handler.
            unsafe { libc::kill(libc::getpid(), libc::SIGUSR1) };
        })
    };
    let asker = asks_itself(300);
    if ctx.me == 1 {
        while begun.elapsed() < Duration::from_millis(1500) {
            std::hint::spin_loop();
        }
    }
    ctx.barrier();
    asker.join().expect("the thread that asks");
    drop(ctx);
    Engine::stop().expect("stop");
}

/// A wait in which other things go on does not end the job, however long it lasts.
pub fn served_meanwhile() {
    let ctx = Ctx::new(start());
    let segment = ctx.allocate(64);
    own(&segment).fill(0);
    ctx.barrier();
    if ctx.me == 1 {
        let begun = Instant::now();
        // Longer than the watchdog is patient with a wait in which nothing happens, which
        // it would be with a slow start as well.
        while begun.elapsed() < Duration::from_secs(6) {
            ctx.put(0, segment.part(0).address(), &[1; 8]);
            ctx.engine.fence(0).expect("fence");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    // Rank 0 waits here all the while, and serves.
    ctx.barrier();
    ctx.free(segment);
    drop(ctx);
    Engine::stop().expect("stop");
}
