//! Tests active messages that are refused, and handlers that fail.

use crate::am::{Runs, register, unregister};
use crate::child::{self, Ctx, step};
use portolan::{ErrorKind, Result};
use portolan_base::trace::Cause;
use portolan_engine::am::{
    Accept, Am, Arrival, Data, Destination, Handler, HandlerId, MAX_HEADER, Signals, Then,
};
use portolan_engine::mpi::init::ThreadLevel;
use portolan_engine::runtime::Engine;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn nothing(_: &Am, _: &Arrival<'_>) -> Result<Accept> {
    Ok(Accept::DONE)
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    result.expect_err("an error").kind()
}

/// Bad arguments send nothing, and registrations that differ between ranks register nothing.
pub fn errors(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let said = Arc::new(Mutex::new(String::new()));
    let text = said.clone();
    let id = register(ctx, "errors", |_| {
        move |engine: &Am, m: &Arrival<'_>| {
            // A wait inside a handler returns an error.
            let error =
                engine.wait_for(Cause::Other, &String::new, || Ok(false)).expect_err("a wait");
            *text.lock().expect("lock") = format!("{error} {:?}", Engine::running_handler());
            assert_eq!(m.len, 0);
            // Quiescence fails too, even on a single rank, which needs no other rank for the sum.
            assert_eq!(kind(engine.quiesce()), ErrorKind::State);
            Ok(Accept::DONE)
        }
    });
    step("errors: arguments");
    let send =
        |target: usize, id: HandlerId, header: &[u8]| engine.send_message(target, id, header, &[]);
    assert_eq!(kind(send(ctx.n, id, &[])), ErrorKind::Rank);
    assert_eq!(kind(send(usize::MAX, id, &[])), ErrorKind::Rank);
    assert_eq!(kind(send(0, id, &[0; MAX_HEADER + 1])), ErrorKind::Argument);
    // SAFETY: the call refuses the null address and reads nothing.
    let null =
        unsafe { engine.send_am(0, id, &[], Data::At(std::ptr::null(), 8), Signals::default()) };
    assert_eq!(kind(null), ErrorKind::Argument);
    // SAFETY: the length is zero, so no byte is read.
    unsafe {
        engine.send_am(0, id, &[0; MAX_HEADER], Data::At(std::ptr::null(), 0), Signals::default())
    }
    .expect("null without bytes is legal");
    engine.quiesce().expect("quiesce");
    if ctx.me == 0 {
        let said = said.lock().expect("lock");
        assert!(said.contains("the handler errors called") && said.contains("Some"), "{said}");
    }
    step("errors: registration");
    let named = |name: &str| (name.to_string(), Arc::new(Runs(nothing)) as Arc<dyn Handler>);
    if ctx.n > 1 {
        let order = if ctx.me == 1 { ["b", "a"] } else { ["a", "b"] };
        let result = engine.register_handlers(order.map(named).into());
        assert_eq!(kind(result), ErrorKind::Argument, "another order on one rank");
        let few = if ctx.me == 0 { vec![named("a")] } else { vec![] };
        assert_eq!(kind(engine.register_handlers(few)), ErrorKind::Argument, "fewer on some");
    }
    assert_eq!(kind(engine.register_handlers(vec![named("errors")])), ErrorKind::Argument);
    assert_eq!(kind(engine.register_handlers(vec![named("x"), named("x")])), ErrorKind::Argument);
    let ids = engine.register_handlers(["a", "b"].map(named).into()).expect("nothing was kept");
    engine.unregister_handlers(&ids).expect("unregister");
    assert!(engine.unlock_handlers().is_err(), "not locked");
    unregister(ctx, id);
}

fn one_handler(name: &str, run: fn(&Am, &Arrival<'_>) -> Result<Accept>) {
    // Remove the harness's panic hook, because the launch checks the engine's own report.
    drop(std::panic::take_hook());
    let engine = child::start();
    let handler: Arc<dyn Handler> = Arc::new(Runs(run));
    let ids = engine.register_handlers(vec![(name.into(), handler)]).expect("register");
    if engine.rank() == 0 {
        engine.send_message(1, ids[0], &[], &[]).expect("send");
    }
    engine.quiesce().expect("quiesce");
}

/// A handler that panics or returns an error ends the job, and the report names it.
pub fn panics() {
    one_handler("the unlucky one", |_, _| panic!("thirteen"));
}

pub fn fails() {
    one_handler("the refusing one", |engine, _| {
        engine.check_rank(usize::MAX)?;
        Ok(Accept::DONE)
    });
}

pub fn lives() {
    child::host_init(ThreadLevel::Multiple);
    for life in 0..3u32 {
        step(format!("lives: {life}"));
        let engine = child::start();
        let hits = Arc::new(AtomicU32::new(0));
        let count = hits.clone();
        let handler = move |_: &Am, _: &Arrival<'_>| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(Accept::DONE)
        };
        let handler: Arc<dyn Handler> = Arc::new(Runs(handler));
        let ids = engine.register_handlers(vec![("life".into(), handler)]).expect("register");
        for target in 0..engine.size() {
            engine.send_message(target, ids[0], &[life as u8], &[7; 100]).expect("send");
        }
        let all = engine.size() as u32;
        if life < 2 {
            engine.quiesce().expect("quiesce");
            assert_eq!(hits.load(Ordering::Relaxed), all);
        }
        drop(engine);
        // The stop itself waits for messages in flight.
        Engine::stop().expect("stop");
        assert_eq!(hits.load(Ordering::Relaxed), all);
    }
    child::host_finalize();
}

/// Repeats short waits for one second, because short waits poll most often.
fn wait_often(engine: &Am) {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(1) {
        let now = Instant::now();
        let over = || Ok(now.elapsed() > Duration::from_micros(500));
        engine.wait_for(Cause::Other, &|| "the time".into(), over).expect("wait");
    }
}

/// Below `MPI_THREAD_MULTIPLE`, a completion handler that waits leaves MPI to the program's thread,
/// which waits at the same time.
pub fn later_below_multiple() {
    let level = child::host_init(ThreadLevel::Single);
    assert!(level < ThreadLevel::Multiple, "the level is {level:?}");
    let engine = child::start();
    let handler = |_: &Am, _: &Arrival<'_>| {
        let wait = |engine: &Am, _| wait_often(engine);
        Ok(Accept { to: Destination::Taken, then: Then::Later(Box::new(wait)) })
    };
    let handler: Arc<dyn Handler> = Arc::new(Runs(handler));
    let ids = engine.register_handlers(vec![("waits".into(), handler)]).expect("register");
    engine.send_message(engine.rank(), ids[0], &[], &[]).expect("send");
    step("later_below_multiple: both threads wait");
    wait_often(&engine);
    engine.quiesce().expect("quiesce");
    drop(engine);
    Engine::stop().expect("stop");
    child::host_finalize();
}
