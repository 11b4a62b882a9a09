//! Tests function shipping from Rust: typed calls, errors that reach the origin, thousands of
//! outstanding calls, bulk data, and servers that receive damaged or forged bytes.

use crate::child::{Ctx, step};
use crate::hosts;
use crate::rng::Rng;
use parking_lot::Mutex;
use portolan::rpc::bulk::{Bulk, BulkOp, Permission};
use portolan::rpc::checksum::{Checksum, Method};
use portolan::rpc::{Address, Call, Class, Context, Failure, Listen, Rpc, Status};
use portolan_rpc::hg::registry;
use portolan_rpc::hg::wire::{CallRequest, REQUEST};
use portolan_rpc::na;
use portolan_rpc::na::class_table::inject;
use portolan_rpc::na::{Mem, What};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Question {
    number: u64,
    name: String,
    list: Vec<f64>,
}

static NETWORK: Mutex<&str> = Mutex::new("mpi");

/// Returns the network of the running check. Between hosts it names their interface, because tcp
/// listens only to its own host by default.
fn network() -> String {
    let network = *NETWORK.lock();
    match std::env::var(hosts::INTERFACE) {
        Ok(interface) if network == "tcp" => format!("tcp://{interface}"),
        _ => network.to_string(),
    }
}

pub fn over(network: &'static str, check: fn(&Ctx), ctx: &Ctx) {
    *NETWORK.lock() = network;
    check(ctx);
    *NETWORK.lock() = "mpi";
}

fn names_of_all(ctx: &Ctx, own: &str) -> Vec<String> {
    const LEN: usize = 320;
    let segment = ctx.allocate(LEN);
    let mut bytes = own.as_bytes().to_vec();
    bytes.resize(LEN, 0);
    ctx.put(ctx.me, segment.part(ctx.me).address(), &bytes);
    ctx.barrier();
    let name = |rank| {
        let bytes = ctx.get(rank, segment.part(rank).address(), LEN);
        String::from_utf8(bytes).expect("text").trim_end_matches('\0').to_string()
    };
    let names = (0..ctx.n).map(name).collect();
    ctx.free(segment);
    names
}

/// Creates a class on the network of the running check. Returns it with the addresses of all ranks.
pub fn class_and_ranks(ctx: &Ctx) -> (Class, Vec<Address>) {
    let class = Class::init(&network(), Listen::Yes).expect("a class");
    let names = names_of_all(ctx, &class.address_text(&class.own_address()));
    let ranks = names.iter().map(|name| class.lookup(name).expect("an address")).collect();
    (class, ranks)
}

/// A class, a context, the addresses of all ranks, and the state of the meetings.
struct Net {
    class: Class,
    context: Context,
    ranks: Vec<Address>,
    come: Rpc<usize, ()>,
    /// The number of ranks that have arrived at each meeting.
    came: Arc<Mutex<Vec<usize>>>,
    meetings: Cell<usize>,
}

impl Net {
    fn new(ctx: &Ctx) -> Net {
        let (class, ranks) = class_and_ranks(ctx);
        let context = class.context().expect("a context");
        let came: Arc<Mutex<Vec<usize>>> = Arc::default();
        let count = came.clone();
        let come = class
            .serve("test.come", move |call: Call<usize, ()>| {
                let meeting = call.input()?;
                let mut count = count.lock();
                let len = count.len().max(meeting + 1);
                count.resize(len, 0);
                count[meeting] += 1;
                call.answer(&())
            })
            .expect("register");
        ctx.barrier();
        Net { class, context, ranks, come, came, meetings: Cell::new(0) }
    }

    fn turn(&self, time: Duration) {
        self.context.progress(time).expect("progress");
        self.context.trigger(64);
    }

    /// Waits until all ranks have arrived, and serves their calls, which a barrier would not do.
    fn meet(&self) {
        let meeting = self.meetings.replace(self.meetings.get() + 1);
        for rank in &self.ranks {
            self.context.call(rank, &self.come, &meeting, LONG).expect("meet");
        }
        let begun = Instant::now();
        while self.came.lock().get(meeting).copied().unwrap_or(0) < self.ranks.len() {
            self.turn(Duration::from_millis(20));
            assert!(begun.elapsed() < LONG, "not all ranks have come to meeting {meeting}");
        }
    }

    fn end(self, ctx: &Ctx) {
        self.meet();
        // A live context keeps the network in use. After its end, the network can be finalised.
        let held = self.context.clone();
        assert_eq!(self.class.finalize().expect_err("a context lives").status(), Status::BUSY);
        held.destroy().expect("destroy");
        assert_eq!(held.destroy().expect_err("again").status(), Status::INVALID_ARG);
        drop(held);
        let Net { class, context, .. } = self;
        drop(context);
        class.finalize().expect("finalize");
        ctx.barrier();
    }
}

/// Typed calls to every rank: short and long ones, many with one handle, and callbacks that run
/// only in `trigger`.
pub fn calls(ctx: &Ctx) {
    let net = Net::new(ctx);
    let me = ctx.me;
    let ask: Rpc<Question, Question> = net
        .class
        .serve("ask", move |call: Call<Question, Question>| {
            let mut question = call.input()?;
            question.number += 1;
            question.name = format!("{} of rank {me}", question.name);
            question.list.iter_mut().for_each(|x| *x *= 2.0);
            call.answer(&question)
        })
        .expect("register");
    net.meet();
    for turn in 0..ctx.n {
        let rank = (ctx.me + turn) % ctx.n;
        step(format!("calls of rank {rank}"));
        let handle = net.context.handle(&net.ranks[rank], &ask);
        for len in [0usize, 1, 400, 505, 510, 600, 8000, 8190, 9000, 200_000] {
            let list = (0..len).map(|i| i as f64 + 0.5).collect();
            let question = Question { number: len as u64, name: "a question".into(), list };
            let got = Arc::new(Mutex::new(None));
            let notified = got.clone();
            handle
                .forward(&question, move |answer| *notified.lock() = Some(answer))
                .expect("forward");
            let begun = Instant::now();
            while !handle.is_done() {
                net.context.progress(Duration::from_millis(20)).expect("progress");
                assert!(got.lock().is_none(), "a callback outside of trigger");
                if !handle.is_done() {
                    net.context.trigger(64);
                }
                assert!(begun.elapsed() < LONG, "a call does not end");
            }
            while got.lock().is_none() {
                net.turn(Duration::from_millis(20));
            }
            let answer = got.lock().take().expect("an answer").expect("success");
            assert_eq!(answer.number, len as u64 + 1);
            assert_eq!(answer.name, format!("a question of rank {rank}"));
            assert!(answer.list.iter().enumerate().all(|(i, x)| *x == 2.0 * i as f64 + 1.0));
            assert_eq!(answer.list.len(), len);
        }
    }
    net.end(ctx);
}

pub fn errors(ctx: &Ctx) {
    let net = Net::new(ctx);
    let (class, context) = (&net.class, &net.context);
    let fail: Rpc<i32, ()> = class
        .serve("fail", |call: Call<i32, ()>| Err(Failure::new(Status(call.input()?), "on purpose")))
        .expect("register");
    let forget: Rpc<(), ()> = class.serve("forget", |_: Call<(), ()>| Ok(())).expect("register");
    // Odd ranks do not serve the call, and even ranks expect a text as its input.
    let odd: Rpc<u8, ()> = if ctx.me % 2 == 1 {
        class.client("odd").expect("register")
    } else {
        let serve = |call: Call<String, ()>| {
            call.input()?;
            call.answer(&())
        };
        class.serve("odd", serve).expect("register");
        class.client("unused").expect("register")
    };
    let never: Rpc<(), ()> = class.client(&format!("never.{}", ctx.me)).expect("register");
    net.meet();
    for rank in (0..ctx.n).map(|turn| (ctx.me + turn) % ctx.n) {
        let to = &net.ranks[rank];
        let status = |result: Result<(), Failure>| result.expect_err("must fail").status();
        assert_eq!(status(context.call(to, &fail, &Status::NOMEM.0, LONG)), Status::NOMEM);
        assert_eq!(status(context.call(to, &fail, &777, LONG)), Status(777));
        assert_eq!(status(context.call(to, &forget, &(), LONG)), Status::FAIL);
        assert_eq!(status(context.call(to, &never, &(), LONG)), Status::NO_MATCH);
        if ctx.me % 2 == 1 {
            let got = status(context.call(to, &odd, &7, LONG));
            let want = if rank % 2 == 1 {
                &[Status::NO_MATCH][..]
            } else {
                &[Status::OVERFLOW, Status::CHECKSUM_ERROR, Status::PROTOCOL_ERROR]
            };
            assert!(want.contains(&got), "{got:?}");
        }
    }
    assert_eq!(class.serve("liquid", |c: Call<(), ()>| c.answer(&())).err(), None);
    let collision = class.client::<(), ()>("costarring").expect_err("a collision");
    assert_eq!(collision.status(), Status::EXIST);
    net.end(ctx);
}

/// Thousands of calls are outstanding at a server that keeps all of them before it answers.
pub fn outstanding(ctx: &Ctx) {
    let net = Net::new(ctx);
    let count = if ctx.quick { 2000 } else { 10_000 };
    let kept: Arc<Mutex<Vec<Call<u32, u32>>>> = Arc::default();
    let keep = kept.clone();
    let later: Rpc<u32, u32> = net
        .class
        .serve("later", move |call: Call<u32, u32>| {
            keep.lock().push(call);
            Ok(())
        })
        .expect("register");
    net.meet();
    let right = net.ranks[(ctx.me + 1) % ctx.n];
    let sum = Arc::new(Mutex::new((0usize, 0u64)));
    let handles: Vec<_> = (0..count)
        .map(|i| {
            let handle = net.context.handle(&right, &later);
            let sum = sum.clone();
            let got = move |answer: Result<u32, Failure>| {
                let answer = answer.expect("an answer");
                assert_eq!(answer, i * 3);
                let mut sum = sum.lock();
                *sum = (sum.0 + 1, sum.1 + u64::from(answer));
            };
            handle.forward(&i, got).expect("forward");
            handle
        })
        .collect();
    step(format!("{count} calls are forwarded"));
    while kept.lock().len() < count as usize {
        net.turn(Duration::from_millis(20));
    }
    assert_eq!(sum.lock().0, 0, "an answer that nobody gave");
    net.meet();
    for call in std::mem::take(&mut *kept.lock()) {
        let number = call.input().expect("input");
        call.answer(&(number * 3)).expect("answer");
    }
    while sum.lock().0 < count as usize {
        net.turn(Duration::from_millis(20));
    }
    let all = u64::from(count);
    assert_eq!(sum.lock().1, 3 * (all * (all - 1) / 2));
    drop(handles);
    net.end(ctx);
}

/// Bulk handles as parameters: a server pulls, changes and pushes memory of its caller.
pub fn bulk(ctx: &Ctx) {
    let net = Net::new(ctx);
    let flip: Rpc<(Bulk, usize, usize), u64> = net
        .class
        .serve("flip", move |call: Call<(Bulk, usize, usize), u64>| {
            let (remote, offset, size) = call.input()?;
            let context = call.context();
            let local = Bulk::allocate(&[size / 2, size - size / 2], Permission::ReadWrite)?;
            let done = Arc::new(Mutex::new(None));
            for op in [BulkOp::Pull, BulkOp::Push] {
                let notified = done.clone();
                let (from, to) = (remote.at(offset), local.at(0));
                let source = call.source();
                context.transfer(op, &source, from, to, size, move |status| {
                    *notified.lock() = Some(status);
                })?;
                while done.lock().is_none() {
                    context.progress(Duration::from_millis(20))?;
                    context.trigger(64);
                }
                done.lock().take().map_or(Ok(()), |status| status.result(|| "moving".into()))?;
                let mut bytes = vec![0; size];
                local.read(0, &mut bytes)?;
                bytes.iter_mut().for_each(|b| *b ^= 0xff);
                local.write(0, &bytes)?;
            }
            call.answer(&(remote.segments() as u64))
        })
        .expect("register");
    net.meet();
    for rank in (0..ctx.n).map(|turn| (ctx.me + turn) % ctx.n) {
        let sizes = [7, 0, 4096, 1 << 20];
        let mine = Bulk::allocate(&sizes, Permission::ReadWrite).expect("memory");
        let whole: Vec<u8> = (0..mine.len()).map(|i| (i * 7 + ctx.me) as u8).collect();
        for (offset, size) in [(0, mine.len()), (3, 5000), (mine.len() - 1, 1), (10, 0)] {
            mine.write(0, &whole).expect("write");
            let input = (mine.clone(), offset, size);
            let segments = net.context.call(&net.ranks[rank], &flip, &input, LONG).expect("flip");
            assert_eq!(segments, 4);
            let mut now = vec![0; mine.len()];
            mine.read(0, &mut now).expect("read");
            for (i, (now, was)) in now.iter().zip(&whole).enumerate() {
                let flipped = (offset..offset + size).contains(&i);
                assert_eq!(*now, if flipped { !was } else { *was }, "byte {i} of {offset}+{size}");
            }
        }
        let read_only = Bulk::from_bytes_of(&whole, Permission::ReadOnly).expect("memory");
        let refused = net.context.call(&net.ranks[rank], &flip, &(read_only, 0, 10), LONG);
        assert_eq!(refused.expect_err("a push into it").status(), Status::PERMISSION);
    }
    net.end(ctx);
}

/// Returns an encoded bulk handle that contains `run` (address, length) and has a correct checksum.
fn forged(run: (u64, u64), like: &[u8]) -> Vec<u8> {
    let mut bytes = like.to_vec();
    bytes[32..40].copy_from_slice(&run.1.to_le_bytes());
    bytes[40..48].copy_from_slice(&run.0.to_le_bytes());
    bytes[48..56].copy_from_slice(&run.1.to_le_bytes());
    let mut sum = Checksum::new(Method::Crc64);
    sum.update(&bytes[..56]);
    bytes[56..64].copy_from_slice(&sum.bytes());
    bytes
}

/// Damaged heads, well-formed requests with false contents, and handles of memory that does not
/// exist: a server refuses them and goes on.
pub fn forgeries(ctx: &Ctx) {
    let net = Net::new(ctx);
    let echo: Rpc<Question, Question> = net
        .class
        .serve("echo", |call: Call<Question, Question>| {
            let question = call.input()?;
            call.answer(&question)
        })
        .expect("register");
    // The handle of a server's own memory, from which others make forged handles.
    let secret = Mem::allocate(&[64], Permission::ReadWrite).expect("memory");
    secret.register();
    let own_handle = secret.to_bytes(2);
    let give: Rpc<(), Vec<u8>> = net
        .class
        .serve("give", move |call: Call<(), Vec<u8>>| call.answer(&own_handle))
        .expect("register");
    net.meet();
    let target = (ctx.me + 1) % ctx.n;
    let (to, network) = (net.ranks[target], net.class.network());
    let theirs = net.context.call(&to, &give, &(), LONG).expect("give");
    let raw = network.context().expect("a context of the network");
    let sent = Arc::new(AtomicUsize::new(0));
    let send = |bytes: &[u8]| {
        let count = sent.clone();
        let notified = Box::new(move |event: na::Event| {
            assert_eq!((event.status, event.what), (Status::SUCCESS, What::SendUnexpected));
            count.fetch_add(1, Ordering::SeqCst);
        });
        raw.send_unexpected(&to, 0, bytes, notified).expect("send");
    };
    let mine = Mem::allocate(&[8], Permission::ReadOnly).expect("memory");
    let like = mine.to_bytes(2);
    let mut rng = Rng::new(ctx.seed, &[77, ctx.me as u64]);
    let rounds = if ctx.quick { 300 } else { 2000 };
    let most = (network.max_unexpected() - REQUEST).min(3000);
    for round in 0..rounds {
        step(format!("forgeries: round {round}"));
        let kind = rng.below(6);
        let body: Vec<u8> = match kind {
            0 => (0..rng.below(most)).map(|_| rng.below(256) as u8).collect(),
            1 => forged((rng.below(1 << 40) as u64, rng.below(1 << 20) as u64 + 1), &like),
            2 => forged((0xffff_8000_0000_0000, 1 << 16), &like),
            3 => forged((4096, (1 << 46) + rng.below(1 << 40) as u64), &like),
            4 => forged((rng.below(1 << 40) as u64 + 1, 64), &theirs),
            _ => {
                let at = rng.below(theirs.len());
                let mut bytes = theirs.clone();
                bytes[at] ^= 1 << rng.below(8);
                bytes
            }
        };
        let mut bytes = vec![0; REQUEST];
        bytes.extend(&body);
        let mut request = CallRequest {
            id: echo.id(),
            check: if rng.below(20) == 0 { 1 } else { registry::check_of("echo") },
            method: Method::ALL[rng.below(5)],
            token: 0, // travels beside the message
            quiet: rng.below(10) == 0,
            long: kind > 0 || rng.below(2) == 0,
            more: false,
            context: if rng.below(4) == 0 { rng.below(256) as u8 } else { 0 },
            origin_context: 0,
        };
        request.write(&mut bytes);
        send(&bytes);
        // The other networks have frames instead of heads, and their own tests.
        if ctx.n > 1 && *NETWORK.lock() == "mpi" {
            let head = match rng.below(3) {
                0 => (0..rng.below(40)).map(|_| rng.below(12) as u8).collect(),
                // A well-formed head with any kind and token, for this class.
                1 => [vec![rng.below(10) as u8, 1, 0, 0], rng.bytes(12)].concat(),
                // A request with a token, which the target's answer uses.
                _ => {
                    request.token = rng.below(1 << 40) as u64;
                    request.write(&mut bytes);
                    [vec![0, 1, 0, 0], vec![0; 4], request.token.to_le_bytes().to_vec()].concat()
                }
            };
            inject(target, &head, &bytes).expect("inject");
        }
        if round % 50 == 49 {
            let question =
                Question { number: round as u64, name: "still there?".into(), list: vec![] };
            let answer = net.context.call(&to, &echo, &question, LONG).expect("an answer");
            assert_eq!(answer, question);
        }
    }
    while sent.load(Ordering::SeqCst) < rounds {
        net.turn(Duration::from_millis(5));
        raw.trigger(Duration::ZERO, 1000).expect("trigger");
    }
    drop(raw);
    net.end(ctx);
}

fn computed() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat")
        .expect("/proc/thread-self/schedstat");
    let own: f64 = stat.split(' ').next().and_then(|t| t.parse().ok()).expect("a number");
    own / 1e9
}

/// A server with nothing to do sleeps. It wakes for calls, and for work that other threads of its
/// process hand to it.
pub fn idle(ctx: &Ctx) {
    let net = Net::new(ctx);
    let echo: Rpc<u32, u32> = net
        .class
        .serve("echo", |call: Call<u32, u32>| call.answer(&call.input()?))
        .expect("register");
    net.meet();
    // Measure this thread alone, so that other ranks and threads do not count.
    let (begun, before) = (Instant::now(), computed());
    while begun.elapsed() < Duration::from_millis(1000) {
        net.turn(Duration::from_millis(50));
    }
    let share = (computed() - before) / begun.elapsed().as_secs_f64();
    assert!(share < 0.03, "an idle server computes {:.1} % of the time", 100.0 * share);
    net.meet();

    let deferred = Arc::new(AtomicUsize::new(0));
    let (context, count) = (net.context.clone(), deferred.clone());
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        context.defer(move || {
            count.fetch_add(1, Ordering::SeqCst);
        });
    });
    while deferred.load(Ordering::SeqCst) == 0 {
        assert!(net.context.progress(LONG).expect("progress"), "nobody has come for long");
        net.context.trigger(64);
    }
    thread.join().expect("the thread");
    net.meet();

    // Call servers that have slept for a while.
    let right = &net.ranks[(ctx.me + 1) % ctx.n];
    for turn in 0..10 {
        if ctx.me == turn % ctx.n {
            std::thread::sleep(Duration::from_millis(30));
            let answer = net.context.call(right, &echo, &(turn as u32), LONG).expect("an answer");
            assert_eq!(answer, turn as u32);
        }
        net.meet();
    }
    net.end(ctx);
}
