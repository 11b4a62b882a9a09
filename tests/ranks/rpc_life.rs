//! Tests lifetimes in function shipping from Rust: calls whose handle was dropped, contexts
//! destroyed with calls under way, nested handlers, withdrawn memory, and one-way calls that are
//! longer than a message.

use crate::child::Ctx;
use crate::rpc::class_and_ranks;
use portolan::rpc::bulk::{Buffer, Bulk, Permission};
use portolan::rpc::{Address, Call, Class, Context, Failure, Rpc, Status};
use portolan_engine::am::lock::Hold;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(600);

fn turn_until(context: &Context, what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        context.progress(Duration::from_millis(10)).expect("progress");
        context.trigger(64);
        assert!(begun.elapsed() < LONG, "{what}");
    }
}

pub fn life(ctx: &Ctx) {
    let right = (ctx.me + 1) % ctx.n;
    let (class, ranks) = class_and_ranks(ctx);
    let serving = class.context().expect("a context");
    let peer = ranks[right];
    let come: Arc<AtomicUsize> = Arc::default();
    let count = come.clone();
    let meet: Rpc<(), ()> = class
        .serve("life.meet", move |call: Call<(), ()>| {
            count.fetch_add(1, SeqCst);
            call.answer(&())
        })
        .expect("register");
    let add: Rpc<u64, u64> = class.serve_fn("life.add", |x: u64| Ok(x + 1)).expect("register");
    let kept = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let keeping = kept.clone();
    let keep: Rpc<u64, u64> = class
        .serve("life.keep", move |call: Call<u64, u64>| {
            keeping.lock().push(call);
            Ok(())
        })
        .expect("register");
    let long: Arc<AtomicUsize> = Arc::default();
    let longer = long.clone();
    let one_way: Rpc<Vec<u8>, ()> = class
        .serve("life.one_way", move |call: Call<Vec<u8>, ()>| {
            longer.fetch_add(call.input()?.len(), SeqCst);
            Ok(())
        })
        .expect("register")
        .without_answer();
    let nested: Rpc<u64, u64> = {
        let known = class.client::<u64, u64>("life.nested").expect("register");
        class
            .serve("life.nested", move |call: Call<u64, u64>| {
                let depth = call.input()?;
                let below = match depth {
                    0 => 0,
                    _ => call.context().call(&call.source(), &known, &(depth - 1), LONG)?,
                };
                call.answer(&(below + 1))
            })
            .expect("register")
    };
    ctx.barrier();
    let meetings = std::cell::Cell::new(0);
    let all_meet = || {
        meetings.set(meetings.get() + 1);
        for rank in &ranks {
            serving.call(rank, &meet, &(), LONG).expect("meet");
        }
        turn_until(&serving, "not all have come", || come.load(SeqCst) >= meetings.get() * ctx.n);
    };

    let ended: Arc<AtomicUsize> = Arc::default();
    for i in 0..1000u64 {
        let ended = ended.clone();
        let handle = serving.handle(&peer, &add);
        let then = move |sum: portolan::Result<u64, Failure>| {
            assert_eq!(sum.expect("a sum"), i + 1);
            ended.fetch_add(1, SeqCst);
        };
        handle.forward(&i, then).expect("forward");
    }
    turn_until(&serving, "calls without handles", || ended.load(SeqCst) == 1000);

    for i in 0..100u64 {
        let notified = ended.clone();
        let context = class.context().expect("a context");
        let handle = context.handle(&peer, &keep);
        handle
            .forward(&i, move |end| {
                assert_eq!(end.expect_err("nobody answers").status(), Status::CANCELED);
                notified.fetch_add(1, SeqCst);
            })
            .expect("forward");
        context.destroy().expect("destroy");
        assert!(handle.is_done());
        assert_eq!(handle.start(&i).expect_err("too late").status(), Status::INVALID_ARG);
        assert_eq!(context.destroy().expect_err("again").status(), Status::INVALID_ARG);
        assert_eq!(ended.load(SeqCst), 1001 + i as usize);
    }
    assert_eq!(ended.load(SeqCst), 1100);
    all_meet();
    kept.lock().clear();

    for len in [10, 66_000, 1_000_000] {
        let handle = serving.handle(&peer, &one_way);
        handle.start(&vec![7; len]).expect("forward");
        assert!(handle.wait(LONG).expect("wait"), "{len}");
        handle.output().expect("it has left");
    }
    turn_until(&serving, "one-way calls", || long.load(SeqCst) == 1_066_010);
    all_meet();

    for depth in [63, 64, 65, 200] {
        let levels = serving.call(&peer, &nested, &depth, LONG).expect("nested calls");
        assert_eq!(levels, depth + 1);
    }
    all_meet();
    // A chain that is too deep for the stack fails, and leaves nothing behind.
    if ctx.engine.may_use_threads() {
        std::thread::scope(|scope| {
            let deep = || serving.call(&ranks[ctx.me], &nested, &1_000_000, LONG);
            let thread = std::thread::Builder::new().stack_size(1 << 20).spawn_scoped(scope, deep);
            let ended = thread.expect("a thread").join().expect("no panic");
            assert_eq!(ended.expect_err("too deep").status(), Status::NOMEM);
        });
        ctx.barrier(); // before it, a call of another rank would be refused too
    }
    all_meet();

    // A lock that a thread holds between waits is released while the thread serves calls.
    ctx.engine.start_am().expect("active messages");
    ctx.engine.lock_handlers_as(Hold::BetweenWaits).expect("the lock of the handlers");
    all_meet();
    let handle = serving.handle(&peer, &add);
    handle.start(&1).expect("forward");
    let begun = Instant::now();
    while !handle.is_done() {
        serving.progress(Duration::ZERO).expect("progress");
        serving.trigger(64);
        assert!(begun.elapsed() < LONG, "calls in a loop under the lock");
    }
    drop(handle);
    all_meet();
    ctx.engine.unlock_handlers_as(Hold::BetweenWaits).expect("the lock is held still");

    let left = &ranks[(ctx.me + ctx.n - 1) % ctx.n];
    withdrawn(&class, &serving, &peer, left, &all_meet);
    all_meet();
    serving.destroy().expect("destroy");
    kept.lock().clear();
    drop(serving);
    class.finalize().expect("finalize");
}

/// Memory of the program and the library that is withdrawn or dropped while others have handles.
fn withdrawn(
    class: &Class,
    serving: &Context,
    right: &Address,
    left: &Address,
    all_meet: &dyn Fn(),
) {
    let got = Arc::new(parking_lot::Mutex::new(None));
    let give = got.clone();
    let describe: Rpc<Bulk, ()> = class
        .serve("life.describe", move |call: Call<Bulk, ()>| {
            *give.lock() = Some(call.input()?);
            call.answer(&())
        })
        .expect("register");
    all_meet();
    for bytes in [100usize, 100_000, 3_000_000] {
        let bulk = Bulk::allocate(&[bytes], Permission::ReadWrite).expect("memory");
        serving.call(right, &describe, &bulk, LONG).expect("describe");
        all_meet();
        let theirs = got.lock().take().expect("a description");
        let push = |expected: Status| {
            let ended = Arc::new(parking_lot::Mutex::new(None));
            let end = ended.clone();
            let mut buffer = Buffer::zeroed(bytes).expect("memory");
            buffer.fill(9);
            let status = move |moved: portolan::Result<(), Failure>, _| {
                *end.lock() =
                    Some(moved.map_or_else(|failure| failure.status(), |()| Status::SUCCESS));
            };
            serving.push(left, theirs.at(0), buffer, bytes, status);
            turn_until(serving, "a push", || ended.lock().is_some());
            assert_eq!(*ended.lock(), Some(expected));
        };
        push(Status::SUCCESS);
        all_meet();
        let mut now = vec![0; bytes];
        bulk.read(0, &mut now).expect("read");
        assert!(now.iter().all(|&byte| byte == 9));
        bulk.withdraw();
        bulk.write(0, &vec![5; bytes]).expect("write");
        all_meet();
        push(Status::ACCESS);
        all_meet();
        bulk.read(0, &mut now).expect("read");
        assert!(now.iter().all(|&byte| byte == 5), "written after it was withdrawn");
        drop(bulk);
        all_meet();
        push(Status::ACCESS);
        all_meet();
    }
}
