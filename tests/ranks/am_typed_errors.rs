//! Tests errors of typed active messages, and complete lifetimes of the interface.

use crate::am_items::{Add, Hop};
use crate::am_typed::{Double, Numbered, Seen};
use crate::child::{self, Ctx, refused, step};
use portolan::internals::RegisterIn;
use portolan::messages::{Delivery, Handlers, Item, Message};
use portolan::{ErrorKind, Runtime, Segment};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

#[derive(Serialize, Deserialize)]
struct Impatient;

impl Message for Impatient {
    type Reply = String;
    fn handle(self, delivery: &Delivery<'_>) -> String {
        let other = (delivery.rank() + 1) % delivery.size();
        let reply = delivery.call(other, &Double(1)).expect("call");
        refused(ErrorKind::State, "waiting in a handler", reply.wait())
    }
}

#[derive(Deserialize)]
struct Unwritable;

impl Serialize for Unwritable {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("this value cannot be written"))
    }
}

impl Message for Unwritable {
    type Reply = ();
    fn handle(self, _: &Delivery<'_>) {}
}

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
struct Sized<T>(T);

impl<T: bytemuck::Pod + Send + Sync> Item for Sized<T> {
    fn apply(_: &[Self], _: &Delivery<'_>) {}
    fn name() -> &'static str {
        "sized"
    }
}

/// Failed calls return errors that name the cause. Collective calls return them on all ranks.
pub fn errors(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let register = |handlers: Handlers| handlers.register_in(engine);
    step("errors: other types");
    if ctx.n > 1 {
        let handlers = match ctx.me {
            0 => Handlers::new().message::<Double>().message::<Impatient>(),
            _ => Handlers::new().message::<Impatient>().message::<Double>(),
        };
        let text = refused(ErrorKind::Argument, "another order", register(handlers));
        assert!(text.contains("registers different handlers"), "{text}");
        let handlers = match ctx.me {
            1 => Handlers::new(),
            _ => Handlers::new().message::<Double>(),
        };
        refused(ErrorKind::Argument, "other types", register(handlers));
    }
    step("errors: items of other sizes");
    if ctx.n > 1 {
        let handlers = match ctx.me {
            0 => Handlers::new().item::<Sized<u8>>(),
            _ => Handlers::new().item::<Sized<u64>>(),
        };
        refused(ErrorKind::Argument, "other sizes", register(handlers));
    }
    step("errors: twice");
    let twice = Handlers::new().message::<Double>().item::<Add>().message::<Double>();
    let text = refused(ErrorKind::Argument, "a type twice", register(twice));
    assert!(text.contains("Double"), "{text}");
    let mut states = Handlers::new().state(Arc::new(1u8));
    if ctx.me == ctx.n - 1 {
        states = states.state(Arc::new(2u8));
    }
    let text = refused(ErrorKind::Argument, "a state twice", register(states));
    assert!(text.contains("u8"), "{text}");
    step("errors: sending");
    let messages = register(
        Handlers::new()
            .message::<Double>()
            .message::<Impatient>()
            .message::<Unwritable>()
            .item::<Add>()
            .state(Arc::new(Seen::default())),
    )
    .expect("register");
    let again = register(Handlers::new().item::<Add>());
    refused(ErrorKind::Argument, "registered by two", again);
    refused(ErrorKind::Rank, "spawn", messages.spawn(ctx.n, &Double(1)));
    refused(ErrorKind::Rank, "spawn", messages.spawn(usize::MAX, &Double(1)));
    refused(ErrorKind::Rank, "call", messages.call(ctx.n, &Double(1)));
    refused(ErrorKind::Rank, "aggregate", messages.aggregate(ctx.n, Add(1)));
    let text = refused(ErrorKind::Argument, "not registered", messages.spawn(0, &Numbered(0)));
    assert!(text.contains("Numbered") && text.contains("Messages::spawn"), "{text}");
    refused(ErrorKind::Argument, "not registered", messages.batches::<Hop>());
    let text = refused(ErrorKind::Argument, "not written", messages.spawn(0, &Unwritable));
    assert!(text.contains("Unwritable"), "{text}");
    assert!(messages.state::<String>().is_none());
    step("errors: waiting in a handler");
    for target in 0..ctx.n {
        let text = messages.call(target, &Impatient).expect("call").wait().expect("wait");
        assert!(text.contains("Impatient"), "the error names the handler: {text}");
    }
    messages.quiesce().expect("quiesce");
    assert_eq!(messages.call(0, &Double(4)).expect("call").wait().expect("wait"), 8);
    // Wait until all ranks are here, because they may still send.
    messages.quiesce().expect("quiesce");
    messages.free().expect("free");
    step("errors: once more");
    let messages = register(Handlers::new().message::<Double>()).expect("register again");
    assert_eq!(messages.call(ctx.n - 1, &Double(5)).expect("call").wait().expect("wait"), 10);
    messages.free().expect("free");
    let nothing = register(Handlers::new()).expect("nothing to register");
    nothing.quiesce().expect("quiesce");
    nothing.free().expect("free");
}

#[derive(Serialize, Deserialize)]
struct Panics;

impl Message for Panics {
    type Reply = ();
    fn handle(self, _: &Delivery<'_>) {
        panic!("on purpose");
    }
}

#[derive(Serialize, Deserialize)]
struct Stateless;

impl Message for Stateless {
    type Reply = ();
    fn handle(self, delivery: &Delivery<'_>) {
        delivery.state::<Seen>().note(0);
    }
}

/// A message that serialises to another form than it deserialises from.
#[derive(Deserialize)]
struct Forged(#[expect(dead_code, reason = "it never arrives")] String);

impl Serialize for Forged {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(200)
    }
}

impl Message for Forged {
    type Reply = ();
    fn handle(self, _: &Delivery<'_>) {}
}

fn end_by<M: Message>(handlers: Handlers, message: &M) {
    let rt = portolan::Runtime::init().expect("start");
    child::check_size(rt.size());
    let messages = handlers.register(&rt).expect("register");
    if rt.rank() == 0 {
        messages.spawn(1, message).expect("spawn");
    }
    messages.quiesce().expect("quiesce");
}

/// Each of these ends the job: a handler that panics, a blocking handler that panics on its own
/// thread, a handler that asks for an unregistered state, and a message that cannot be
/// deserialised.
pub fn panics() {
    end_by(Handlers::new().message::<Panics>(), &Panics);
}

pub fn panics_blocking() {
    end_by(Handlers::new().blocking_message::<Panics>(), &Panics);
}

pub fn no_state() {
    end_by(Handlers::new().message::<Stateless>(), &Stateless);
}

pub fn unreadable() {
    end_by(Handlers::new().message::<Forged>(), &Forged(String::new()));
}

/// Uses the interface from the start of the runtime to its end, with two registrations.
pub fn whole_life() {
    let rt = portolan::Runtime::init().expect("start");
    child::check_size(rt.size());
    for _ in 0..2 {
        let seen = Arc::new(Seen::default());
        let messages = Handlers::new()
            .state(seen.clone())
            .message::<Double>()
            .item::<Add>()
            .register(&rt)
            .expect("register");
        for target in 0..rt.size() {
            messages.aggregate(target, Add(2)).expect("push");
            assert_eq!(messages.call(target, &Double(3)).expect("call").wait().expect("wait"), 6);
        }
        messages.quiesce().expect("quiesce");
        assert_eq!(seen.sum.load(Ordering::Relaxed), 2 * rt.size() as u64);
        messages.free().expect("free");
    }
    // Finalisation sends unsent items, and then frees handlers that are still registered.
    let seen = Arc::new(Seen::default());
    let messages =
        Handlers::new().state(seen.clone()).item::<Add>().register(&rt).expect("register");
    messages.aggregate((rt.rank() + 1) % rt.size(), Add(5)).expect("push");
    drop(messages);
    rt.finalize().expect("finalize");
    assert_eq!(seen.sum.load(Ordering::Relaxed), 5);
}

/// Starts transfers that would have to be waited for.
#[derive(Serialize, Deserialize)]
struct Transfers;

thread_local! {
    static SHARED: Cell<Option<(&'static Runtime, &'static Segment<'static, u64>)>> =
        const { Cell::new(None) };
}

impl Message for Transfers {
    type Reply = ();
    fn handle(self, delivery: &Delivery<'_>) {
        let (rt, segment) = SHARED.get().expect("the thread that sends runs the handler");
        let refused = |what: &str, started: portolan::Result<()>| {
            let text = refused(ErrorKind::State, what, started);
            assert!(text.contains("Transfers"), "the error names the handler: {text}");
        };
        for rank in 0..delivery.size() {
            let four = || vec![7; 4];
            refused("get", segment.start_get(rank, 0, four()).map(drop));
            refused("put", segment.start_put(rank, 0, four()).map(drop));
            refused("accumulate", segment.start_accumulate(rank, 0, 1, four()).map(drop));
            let mut room = four();
            refused("scope", rt.scope(|scope| scope.get(segment, rank, 0, &mut room).map(drop)));
            assert_eq!(room, four());
        }
    }
}

/// Transfers that are started in a handler are refused, whether or not the target is on the node.
pub fn transfers_in_a_handler() {
    let rt: &'static Runtime = Box::leak(Box::new(Runtime::init().expect("start")));
    let world = Box::leak(Box::new(rt.world()));
    let segment = Box::leak(Box::new(world.allocate::<u64>(4).expect("a segment")));
    let messages = Handlers::new().message::<Transfers>().register(rt).expect("register");
    SHARED.set(Some((rt, segment)));
    messages.spawn(rt.rank(), &Transfers).expect("spawn");
    messages.quiesce().expect("quiesce");
    for rank in 0..rt.size() {
        assert_eq!(segment.get_value(rank, 3).expect("get"), 0, "the segment is as it was");
    }
    world.barrier().expect("barrier");
    // The runtime is leaked.
    println!("all transfers were refused");
}
