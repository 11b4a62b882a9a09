//! Tests what the watchdog reports about ranks that hang.

use crate::child::{Ctx, own, start, step};
use crate::rpc;
use parking_lot::Mutex;
use portolan::rpc::{Address, Call, Context, Handle, Rpc};
use portolan_engine::runtime::Engine;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn sleep_for_ever() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

pub fn held_mutex() {
    let ctx = Ctx::new(start());
    let set = ctx.engine.create_mutexes(ctx.engine.world(), Ok(1)).expect("mutexes");
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

/// Rank 1 keeps calls, and answers all when one has the input 0. Rank 0 gets its context, the
/// address of rank 1, and the function.
fn with_keeper(ctx: &Ctx, rank_0: fn(&Context, &Address, &Rpc<u32, u32>)) {
    let (class, ranks) = rpc::class_and_ranks(ctx);
    let context = class.context().expect("a context");
    let (kept, ended) = (Mutex::new(Vec::new()), Arc::new(AtomicBool::new(false)));
    let end = ended.clone();
    let function = class
        .serve("test.keep", move |call: Call<u32, u32>| {
            let last = call.input()? == 0;
            kept.lock().push(call);
            if last {
                kept.lock().drain(..).try_for_each(|call| call.answer(&0))?;
            }
            end.store(last, Ordering::Relaxed);
            Ok(())
        })
        .expect("register");
    ctx.barrier();
    step("hanging");
    match ctx.me {
        0 => rank_0(&context, &ranks[1], &function),
        _ => {
            while !ended.load(Ordering::Relaxed) {
                context.progress(Duration::from_secs(60)).expect("progress");
                context.trigger(1);
            }
        }
    }
    ctx.barrier();
    drop(context);
    class.finalize().expect("finalise");
}

/// Rank 0 waits for the answer, again and again for a short time.
fn waits(ctx: &Ctx) {
    with_keeper(ctx, |context, address, function| {
        let handle = context.handle(address, function);
        handle.start(&1).expect("forward");
        while !handle.wait(Duration::from_millis(50)).expect("wait") {}
        panic!("a call that is kept was answered");
    });
}

/// Makes progress without waiting until the call has ended, at most this often.
fn poll(context: &Context, handle: &Handle<u32, u32>, times: usize) {
    for _ in (0..times).take_while(|_| !handle.is_done()) {
        context.progress(Duration::ZERO).expect("progress");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn polls(ctx: &Ctx) {
    with_keeper(ctx, |context, address, function| {
        let handle = context.handle(address, function);
        handle.start(&1).expect("forward");
        poll(context, &handle, usize::MAX);
        panic!("a call that is kept was answered");
    });
}

pub fn call() {
    waits(&Ctx::new(start()));
}

pub fn call_sm() {
    rpc::over("na+sm", waits, &Ctx::new(start()));
}

pub fn polled_call() {
    polls(&Ctx::new(start()));
}

pub fn polled_call_sm() {
    rpc::over("na+sm", polls, &Ctx::new(start()));
}

/// Rank 0 computes for longer than the watchdog tolerates a wait, between polls for a call. Rank 1
/// answers the call when it gets another one.
pub fn polls_and_computes() {
    let ctx = Ctx::new(start());
    with_keeper(&ctx, |context, address, function| {
        let (kept, last) = (context.handle(address, function), context.handle(address, function));
        kept.start(&1).expect("forward");
        poll(context, &kept, 200);
        std::thread::sleep(Duration::from_secs(4));
        poll(context, &kept, 200);
        last.start(&0).expect("forward");
        poll(context, &kept, usize::MAX);
        poll(context, &last, usize::MAX);
    });
    drop(ctx);
    Engine::stop().expect("stop");
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
