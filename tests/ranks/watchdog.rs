//! Tests what the watchdog reports about ranks that hang.

use crate::child::{Ctx, own, start, step};
use crate::rpc;
use parking_lot::Mutex;
use portolan::rpc::Call;
use portolan_engine::runtime::Engine;
use std::sync::Arc;
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

/// Rank 1 keeps a call. Rank 0 waits for the answer, again and again for a short time.
fn never_answered(ctx: &Ctx) {
    let (class, ranks) = rpc::class_and_ranks(ctx);
    let context = class.context().expect("a context");
    let keep: Arc<Mutex<Vec<Call<u32, u32>>>> = Arc::default();
    let kept = keep.clone();
    let never = class
        .serve("test.never", move |call: Call<u32, u32>| {
            kept.lock().push(call);
            Ok(())
        })
        .expect("register");
    ctx.barrier();
    step("hanging");
    if ctx.me == 1 {
        loop {
            context.progress(Duration::from_secs(60)).expect("progress");
            context.trigger(1);
        }
    }
    let handle = context.handle(&ranks[1], &never);
    handle.start(&1).expect("forward");
    while !handle.wait(Duration::from_millis(50)).expect("wait") {}
    panic!("a call that is kept was answered");
}

pub fn call() {
    never_answered(&Ctx::new(start()));
}

pub fn call_sm() {
    rpc::over("na+sm", never_answered, &Ctx::new(start()));
}

/// Servers without calls wait for longer than the watchdog tolerates. A signal asks rank 0.
pub fn idle_server() {
    let ctx = Ctx::new(start());
    let (class, _) = rpc::class_and_ranks(&ctx);
    let context = class.context().expect("a context");
    ctx.barrier();
    let asker = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(700));
        // SAFETY: the engine has installed a handler for the signal.
        unsafe { libc::kill(libc::getpid(), libc::SIGUSR1) };
    });
    assert!(!context.progress(Duration::from_millis(2500)).expect("progress"), "nothing comes");
    asker.join().expect("the thread that asks");
    ctx.barrier();
    drop(context);
    class.finalize().expect("finalise");
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
