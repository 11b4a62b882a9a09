//! Tests typed active messages: values, payloads, ordering, nesting and replies.

use crate::child::{Ctx, step};
use crate::rng::Rng;
use parking_lot::Mutex;
use portolan::internals::RegisterIn;
use portolan::messages::{Delivery, Handlers, Message};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

#[derive(Debug, Default)]
pub struct Seen {
    pub count: AtomicU64,
    pub sum: AtomicU64,
    bytes: AtomicU64,
    /// The next expected number from each origin.
    next: Mutex<HashMap<usize, u64>>,
}

impl Seen {
    pub fn note(&self, value: u64) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }
}

pub fn sum_over(ctx: &Ctx, value: &AtomicU64) -> u64 {
    let mine = value.load(Ordering::Relaxed);
    ctx.engine.world().allgather(&*ctx.engine, &mine).expect("allgather").iter().sum()
}

fn pattern(len: usize, salt: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + salt + i / 251) as u8).collect()
}

/// A value of any length, with an optional payload.
#[derive(Serialize, Deserialize)]
struct Parcel {
    from: usize,
    text: String,
    numbers: Vec<u32>,
    payload: usize,
}

impl Parcel {
    fn new(from: usize, len: usize, payload: usize) -> Parcel {
        let text = "x".repeat(len);
        Parcel { from, text, numbers: (0..len as u32 / 3).collect(), payload }
    }
}

impl Message for Parcel {
    /// The text, the numbers and the payload. The reply carries the payload as a part of its value.
    type Reply = (String, Vec<u32>, Vec<u8>);
    fn handle(self, delivery: &Delivery<'_>) -> Self::Reply {
        assert_eq!(delivery.origin(), self.from);
        assert_eq!(delivery.payload().len(), self.payload);
        assert!(self.numbers.iter().copied().eq(0..self.text.len() as u32 / 3));
        assert!(delivery.payload() == pattern(self.payload, self.from), "the payload differs");
        let seen = delivery.state::<Seen>();
        seen.note(self.text.len() as u64);
        seen.bytes.fetch_add(self.payload as u64, Ordering::Relaxed);
        (self.text, self.numbers, delivery.take_payload())
    }
}

pub fn values(ctx: &Ctx) {
    let seen = Arc::new(Seen::default());
    let messages = Handlers::new()
        .state(seen.clone())
        .message::<Parcel>()
        .register_in(&ctx.engine)
        .expect("register");
    let values = [0, 1, 30, 1000, 1600, 2030, 2047, 2048, 2100, 9000, 300_000];
    let payloads: &[usize] =
        if ctx.release { &[0, 1, 5000, 70_000, 3_000_000] } else { &[0, 1, 70_000] };
    let mut expected = (0, 0, 0);
    for target in 0..ctx.n {
        for (i, &len) in values.iter().enumerate() {
            for (j, &payload) in payloads.iter().enumerate() {
                step(format!("values: {len} and {payload} bytes to {target}"));
                let parcel = Parcel::new(ctx.me, len, payload);
                let bytes = pattern(payload, ctx.me);
                if (i + j) % 3 == 0 {
                    messages.spawn_with(target, &parcel, &bytes[..]).expect("spawn");
                    messages.spawn_with(target, &parcel, bytes).expect("spawn");
                    expected.0 += 2;
                    expected.1 += 2 * len as u64;
                    expected.2 += 2 * payload as u64;
                    continue;
                }
                let reply = if (i + j) % 3 == 1 {
                    messages.call_with(target, &parcel, bytes.clone())
                } else {
                    messages.call_with(target, &parcel, &bytes[..])
                };
                let (text, numbers, back) = reply.expect("call").wait().expect("wait");
                assert!(text == parcel.text && numbers == parcel.numbers && back == bytes);
                expected.0 += 1;
                expected.1 += len as u64;
                expected.2 += payload as u64;
            }
        }
    }
    messages.quiesce().expect("quiesce");
    let n = ctx.n as u64;
    assert_eq!(sum_over(ctx, &seen.count), expected.0 * n);
    assert_eq!(sum_over(ctx, &seen.sum), expected.1 * n);
    assert_eq!(sum_over(ctx, &seen.bytes), expected.2 * n);
    messages.free().expect("free");
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Numbered(pub u64);

impl Message for Numbered {
    type Reply = ();
    fn handle(self, delivery: &Delivery<'_>) {
        let mut next = delivery.state::<Seen>().next.lock();
        let expected = next.entry(delivery.origin()).or_default();
        assert_eq!(self.0, *expected, "from rank {}", delivery.origin());
        *expected += 1;
    }
}

pub fn order(ctx: &Ctx) {
    let seen = Arc::new(Seen::default());
    let messages = Handlers::new()
        .message::<Numbered>()
        .state(seen.clone())
        .register_in(&ctx.engine)
        .expect("register");
    let count = if ctx.quick { 2000 } else { 10_000 };
    for i in 0..count {
        for target in 0..ctx.n {
            messages.spawn(target, &Numbered(i)).expect("spawn");
        }
    }
    messages.quiesce().expect("quiesce");
    let next = seen.next.lock();
    assert_eq!(next.len(), ctx.n);
    assert!(next.values().all(|&n| n == count));
    drop(next);
    messages.free().expect("free");
}

/// A tree of messages: each message sends further ones to ranks drawn from its seed.
#[derive(Serialize, Deserialize, Clone)]
struct Branch {
    depth: u32,
    seed: u64,
}

impl Branch {
    fn children(&self, ranks: usize) -> Vec<(usize, Branch)> {
        let mut rng = Rng::new(self.seed, &[u64::from(self.depth)]);
        let count = if self.depth == 0 { 0 } else { rng.below(4) };
        (0..count)
            .map(|_| (rng.below(ranks), Branch { depth: self.depth - 1, seed: rng.next() }))
            .collect()
    }
}

impl Message for Branch {
    type Reply = ();
    fn handle(self, delivery: &Delivery<'_>) {
        delivery.state::<Seen>().note(self.seed);
        for (rank, child) in self.children(delivery.size()) {
            delivery.spawn(rank, &child).expect("spawn");
        }
    }
}

/// Counts the levels below a message: asks the next rank and continues in the reply's callback.
#[derive(Serialize, Deserialize)]
struct Ask {
    depth: u32,
}

impl Message for Ask {
    type Reply = u64;
    fn handle(self, delivery: &Delivery<'_>) -> u64 {
        if self.depth > 0 {
            let next = (delivery.rank() + 1) % delivery.size();
            let then = |below: u64, delivery: &Delivery<'_>| delivery.state::<Seen>().note(below);
            delivery.call_then(next, &Ask { depth: self.depth - 1 }, then).expect("call");
        }
        u64::from(self.depth)
    }
}

/// Quiescence is detected however messages spread, and replies reach the callbacks of handlers.
pub fn nesting(ctx: &Ctx) {
    let seen = Arc::new(Seen::default());
    let messages = Handlers::new()
        .state(seen.clone())
        .message::<Branch>()
        .message::<Ask>()
        .register_in(&ctx.engine)
        .expect("register");
    for round in 0..5 {
        step(format!("nesting: round {round}"));
        seen.count.store(0, Ordering::Relaxed);
        seen.sum.store(0, Ordering::Relaxed);
        ctx.barrier();
        let (mut count, mut sum) = (0u64, 0u64);
        for origin in 0..ctx.n {
            let mut rng = Rng::new(ctx.seed, &[origin as u64, round]);
            let mut open: Vec<(usize, Branch)> = (0..10)
                .map(|_| (rng.below(ctx.n), Branch { depth: 7, seed: rng.next() }))
                .collect();
            if origin == ctx.me {
                for (rank, branch) in &open {
                    messages.spawn(*rank, branch).expect("spawn");
                }
            }
            while let Some((_, branch)) = open.pop() {
                count += 1;
                sum = sum.wrapping_add(branch.seed);
                open.extend(branch.children(ctx.n));
            }
        }
        messages.quiesce().expect("quiesce");
        assert_eq!(sum_over(ctx, &seen.count), count);
        let mine = seen.sum.load(Ordering::Relaxed);
        let all = ctx.engine.world().allgather(&*ctx.engine, &mine).expect("allgather");
        assert_eq!(all.iter().fold(0u64, |s, v| s.wrapping_add(*v)), sum);
    }
    seen.count.store(0, Ordering::Relaxed);
    ctx.barrier();
    messages.spawn((ctx.me + 1) % ctx.n, &Ask { depth: 20 }).expect("spawn");
    messages.quiesce().expect("quiesce");
    assert_eq!(sum_over(ctx, &seen.count), 20 * ctx.n as u64);
    messages.free().expect("free");
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Double(pub u64);

impl Message for Double {
    type Reply = u64;
    fn handle(self, _: &Delivery<'_>) -> u64 {
        2 * self.0
    }
}

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = std::task::Context::from_waker(&waker);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        std::thread::park_timeout(Duration::from_secs(20));
    }
}

pub fn answers(ctx: &Ctx) {
    let messages = Handlers::new().message::<Double>().register_in(&ctx.engine).expect("register");
    let next = (ctx.me + 1) % ctx.n;
    let many: Vec<_> = (0..500)
        .map(|i| messages.call((ctx.me + i) % ctx.n, &Double(i as u64)).expect("call"))
        .collect();
    for (i, reply) in many.into_iter().enumerate().rev() {
        assert_eq!(reply.wait().expect("wait"), 2 * i as u64);
    }
    for i in 0..100 {
        let reply = messages.call(next, &Double(i)).expect("call");
        match i % 3 {
            0 => {
                while !reply.is_done().expect("test") {
                    std::thread::yield_now();
                }
                assert_eq!(reply.wait().expect("wait"), 2 * i);
            }
            1 => assert_eq!(block_on(reply).expect("await"), 2 * i),
            _ => drop(reply),
        }
    }
    let sum = block_on(async {
        let (a, b) = (messages.call(next, &Double(1))?, messages.call(ctx.me, &Double(2))?);
        Ok::<_, portolan::Error>(a.await? + b.await?)
    });
    assert_eq!(sum.expect("await"), 6);
    messages.free().expect("free");
}

/// A message whose handler waits for the handler of the next rank.
#[derive(Serialize, Deserialize)]
struct Relay {
    upto: usize,
}

impl Message for Relay {
    type Reply = Vec<usize>;
    fn handle(self, delivery: &Delivery<'_>) -> Vec<usize> {
        let mut way = vec![delivery.rank()];
        if delivery.rank() < self.upto {
            let reply = delivery.call(delivery.rank() + 1, &self).expect("call");
            way.extend(reply.wait().expect("a blocking handler may wait"));
        }
        way
    }
}

/// Handlers that wait run on a thread of their own.
pub fn blocking(ctx: &Ctx) {
    let messages =
        Handlers::new().blocking_message::<Relay>().register_in(&ctx.engine).expect("register");
    for _ in 0..20 {
        let upto = ctx.n - 1;
        let way = messages.call(ctx.me, &Relay { upto }).expect("call").wait().expect("wait");
        assert_eq!(way, (ctx.me..ctx.n).collect::<Vec<_>>());
    }
    messages.free().expect("free");
}
