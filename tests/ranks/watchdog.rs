//! Tests what the watchdog reports about ranks that hang.

use crate::child::{Ctx, own, start, step};
use portolan_engine::runtime::Engine;
use std::time::{Duration, Instant};

fn sleep_for_ever() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

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

/// A signal stops rank 1, and rank 0 waits for its answer.
pub fn stopped_peer() {
    let ctx = Ctx::new(start());
    let segment = ctx.allocate(64);
    own(&segment).fill(0);
    ctx.barrier();
    step("hanging");
    if ctx.me == 1 {
        // SAFETY: the call stops only this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
    }
    std::thread::sleep(Duration::from_millis(300));
    ctx.get(1, segment.part(1).address(), 8);
    panic!("a stopped rank has answered");
}

/// Rank 1 computes, and rank 0 waits for it. A signal asks each rank for its state.
pub fn asked() {
    let ctx = Ctx::new(start());
    ctx.barrier();
    let begun = Instant::now();
    let asks_itself = |after: u64| {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(after));
            // SAFETY: the engine has installed a handler for the signal.
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

/// A wait during which other work progresses does not end the job, however long it lasts.
pub fn served_meanwhile() {
    let ctx = Ctx::new(start());
    let segment = ctx.allocate(64);
    own(&segment).fill(0);
    ctx.barrier();
    if ctx.me == 1 {
        let begun = Instant::now();
        // Longer than the watchdog tolerates a wait without progress, even after a slow start.
        while begun.elapsed() < Duration::from_secs(6) {
            ctx.put(0, segment.part(0).address(), &[1; 8]);
            ctx.engine.fence(0).expect("fence");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    // Rank 0 waits here all the time, and serves.
    ctx.barrier();
    ctx.free(segment);
    drop(ctx);
    Engine::stop().expect("stop");
}
