//! Tests active messages: sizes, kinds, nested sends, replies, order, completions, quiescence.

use crate::child::{Ctx, step};
use crate::rng::Rng;
use parking_lot::Mutex;
use portolan::Result;
use portolan_base::trace::Cause;
use portolan_engine::am::{
    Accept, Am, Arrival, Data, Destination, Handler, HandlerId, Signal, Signals, Then,
};
use portolan_engine::core::peer::CompletionCounter;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

pub struct Runs<F>(pub F);

impl<F> Handler for Runs<F>
where
    F: Fn(&Am, &Arrival<'_>) -> Result<Accept> + Send + Sync,
{
    fn arrive(&self, engine: &Am, message: &Arrival<'_>) -> Result<Accept> {
        (self.0)(engine, message)
    }
}

/// Registers one handler on all ranks. `make` receives a cell for the handler's id, so that the
/// handler can send to itself on other ranks.
pub fn register<F>(
    ctx: &Ctx,
    name: &str,
    make: impl FnOnce(Arc<OnceLock<HandlerId>>) -> F,
) -> HandlerId
where
    F: Fn(&Am, &Arrival<'_>) -> Result<Accept> + Send + Sync + 'static,
{
    let own = Arc::new(OnceLock::new());
    let handler: Arc<dyn Handler> = Arc::new(Runs(make(own.clone())));
    let ids = ctx.engine.register_handlers(vec![(name.to_string(), handler)]).expect("register");
    own.set(ids[0]).expect("set once");
    ctx.barrier();
    ids[0]
}

pub fn unregister(ctx: &Ctx, id: HandlerId) {
    ctx.engine.quiesce().expect("quiesce");
    ctx.engine.unregister_handlers(&[id]).expect("unregister");
}

pub fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let period: [u8; 256] =
        std::array::from_fn(|i| (i as u8).wrapping_mul(31).wrapping_add(seed as u8));
    let mut bytes = period.repeat(len.div_ceil(period.len()));
    bytes.truncate(len);
    bytes
}

/// Sends messages with sizes around every limit to every rank, with each destination, each time of
/// completion and each kind of data. Each completion is signalled once.
pub fn sizes(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let got = Arc::new(AtomicU64::new(0));
    let count = got.clone();
    let id = register(ctx, "sizes", |_| {
        move |_: &Am, m: &Arrival<'_>| {
            let (to, then, seed) = (m.header[0], m.header[1], u64::from(m.header[2]));
            let (len, origin) = (m.len, m.origin);
            assert!(m.data.is_none_or(|d| d == pattern(len, seed)), "data that came along");
            let count = count.clone();
            let place = (to == 0)
                .then(|| Box::leak(vec![0u8; len].into_boxed_slice()).as_mut_ptr() as usize);
            let check = move |_: &Am, buffer: Vec<u8>| {
                if let Some(place) = place {
                    // SAFETY: the buffer was leaked above with this length, and only this handler
                    // reclaims it, once.
                    let place = unsafe {
                        Box::from_raw(std::ptr::slice_from_raw_parts_mut(place as *mut u8, len))
                    };
                    assert!(*place == *pattern(len, seed), "{len} bytes of rank {origin} in place");
                }
                assert!(to != 1 || buffer == pattern(len, seed), "{len} bytes in a buffer");
                count.fetch_add(1, Ordering::Relaxed);
            };
            let to = match place {
                Some(place) => Destination::At(place as *mut u8),
                None if to == 1 => Destination::Buffer,
                None => Destination::Taken,
            };
            let then = match then {
                0 => Then::Inline(Box::new(check)),
                _ => Then::Later(Box::new(check)),
            };
            Ok(Accept { to, then })
        }
    });
    let eager = engine.eager_limit((ctx.me + 1) % ctx.n).min(1 << 20);
    let mut all = vec![
        0,
        1,
        7,
        8,
        23,
        24,
        25,
        31,
        32,
        33,
        4000,
        eager - 1,
        eager,
        eager + 1,
        1 << 20,
        5 << 20,
    ];
    if ctx.release {
        all.extend([16 << 20, 64 << 20, 256 << 20]);
    } else if !ctx.quick && ctx.n == 2 {
        all.push(16 << 20);
    }
    let counter = Arc::new(CompletionCounter::default());
    let notified = AtomicU32::new(0);
    let called = Arc::new(AtomicU32::new(0));
    let mut sent = 0;
    for (turn, &len) in all.iter().enumerate() {
        step(format!("sizes: {len} bytes"));
        let kinds = if len > 8 << 20 { 1 } else { 6 };
        for kind in 0..kinds {
            let data = pattern(len, (turn + kind) as u64);
            let header = [kind as u8 % 3, (turn % 2) as u8, (turn + kind) as u8];
            for target in 0..ctx.n {
                let counted = called.clone();
                counter.begin();
                let signals = match kind {
                    0 | 3 => Signals {
                        origin: Signal::Counter(counter.clone()),
                        completion: Signal::Count(&raw const notified),
                    },
                    1 | 4 => Signals {
                        origin: Signal::Call(Box::new(move |_| {
                            counted.fetch_add(1, Ordering::Relaxed);
                        })),
                        completion: Signal::Counter(counter.clone()),
                    },
                    _ => Signals {
                        origin: Signal::Count(&raw const notified),
                        completion: Signal::Counter(counter.clone()),
                    },
                };
                let data = match kind % 3 {
                    0 => Data::At(data.as_ptr(), len),
                    1 => Data::Owned(data.clone()),
                    _ => Data::Bytes(&data),
                };
                // SAFETY: `data` lives until the wait below, and `notified` until after the
                // quiescence.
                unsafe { engine.send_am(target, id, &header, data, signals) }.expect("send");
                sent += 1;
            }
            engine.wait_for(Cause::Other, &|| "counters".into(), || counter.check()).expect("wait");
        }
    }
    engine.quiesce().expect("quiesce");
    assert_eq!(got.load(Ordering::Relaxed), sent, "messages that were handled here");
    let all = || u64::from(notified.load(Ordering::Relaxed) + called.load(Ordering::Relaxed));
    engine.wait_for(Cause::Other, &|| "counts".into(), || Ok(all() >= sent)).expect("wait");
    assert_eq!(all(), sent, "completions by counter and call");
    unregister(ctx, id);
}

/// All ranks send messages to random ranks, and their handlers send on, down to a random depth.
/// After quiescence, the totals of received messages equal those that the senders computed, and
/// nothing moves any more.
pub fn nested(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let (sum, seen) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let counted = (sum.clone(), seen.clone());
    let n = ctx.n;
    let id = register(ctx, "nested", |own| {
        move |engine: &Am, m: &Arrival<'_>| {
            let word =
                |i: usize| u64::from_ne_bytes(m.header[i * 8..][..8].try_into().expect("a word"));
            let (depth, value) = (word(0), word(1));
            counted.0.fetch_add(value, Ordering::Relaxed);
            counted.1.fetch_add(1, Ordering::Relaxed);
            assert!(m.data.is_none_or(|d| d == pattern(m.len, value)));
            if depth > 0 {
                let mut rng = Rng::new(value, &[depth]);
                for _ in 0..2 {
                    let header = [depth - 1, value + 1].map(u64::to_ne_bytes).concat();
                    let len = if rng.one_in(20) { rng.below(100_000) } else { rng.below(200) };
                    let data = pattern(len, value + 1);
                    engine.send_message(rng.below(n), *own.get().expect("set"), &header, &data)?;
                }
            }
            let to = if m.data.is_none() { Destination::Buffer } else { Destination::Taken };
            let check = move |_: &Am, data: Vec<u8>| {
                assert!(data.is_empty() || data == pattern(data.len(), value))
            };
            Ok(Accept { to, then: Then::Inline(Box::new(check)) })
        }
    });
    let mut rng = Rng::new(ctx.seed, &[ctx.me as u64, 77]);
    let rounds = if ctx.quick { 300 } else { 1500 };
    for round in 0..3 {
        let (mut expected, mut messages) = (0u64, 0u64);
        for i in 0..rounds {
            step(format!("nested: round {round}, message {i}"));
            let (depth, value) = (rng.below(5) as u64, rng.below(1000) as u64);
            let header = [depth, value].map(u64::to_ne_bytes).concat();
            let data = pattern(rng.below(3000), value);
            engine.send_message(rng.below(ctx.n), id, &header, &data).expect("send");
            for level in 0..=depth {
                expected += (value + level) << level;
                messages += 1 << level;
            }
        }
        engine.quiesce().expect("quiesce");
        let mine =
            [sum.swap(0, Ordering::Relaxed), seen.swap(0, Ordering::Relaxed), expected, messages];
        let all: Vec<[u64; 4]> = engine.world().allgather(engine, &mine).expect("allgather");
        let total = |i: usize| all.iter().map(|x| x[i]).sum::<u64>();
        assert_eq!((total(0), total(1)), (total(2), total(3)), "sums and messages");
        ctx.barrier();
    }
    unregister(ctx, id);
}

/// Handlers that reply, ordering of messages from one origin, and a completion handler that waits
/// for a message itself.
pub fn answers(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let last = Arc::new(Mutex::new(vec![0u64; ctx.n]));
    let got = Arc::new(AtomicU64::new(0));
    let (order, answers) = (last.clone(), got.clone());
    let threads = engine.thread_level() == portolan_engine::mpi::init::ThreadLevel::Multiple;
    let id = register(ctx, "answers", |own| {
        move |engine: &Am, m: &Arrival<'_>| {
            let number = u64::from_ne_bytes(m.header[1..9].try_into().expect("a number"));
            let own = *own.get().expect("set");
            match m.header[0] {
                b'a' => {
                    answers.fetch_add(number, Ordering::Release);
                }
                b'q' => {
                    let mut order = order.lock();
                    assert_eq!(
                        order[m.origin] + 1,
                        number,
                        "messages of rank {} in order",
                        m.origin
                    );
                    order[m.origin] = number;
                    engine.send_message(
                        m.origin,
                        own,
                        &[b"a".as_slice(), &1u64.to_ne_bytes()].concat(),
                        &[],
                    )?;
                }
                _ => {
                    // Sends a message to its own rank, waits for it, and only then replies.
                    let (origin, answers) = (m.origin, answers.clone());
                    let ask = move |engine: &Am, _| {
                        let before = answers.load(Ordering::Acquire);
                        let one = [b"a".as_slice(), &1u64.to_ne_bytes()].concat();
                        if threads {
                            engine.send_message(engine.rank(), own, &one, &[]).expect("to itself");
                            engine
                                .wait_for(Cause::Other, &|| "its own answer".into(), || {
                                    Ok(answers.load(Ordering::Acquire) > before)
                                })
                                .expect("a completion handler may wait");
                        } else {
                            answers.fetch_add(1, Ordering::Release);
                        }
                        let thousand = [b"a".as_slice(), &1000u64.to_ne_bytes()].concat();
                        engine.send_message(origin, own, &thousand, &[]).expect("answer");
                    };
                    return Ok(Accept { to: Destination::Taken, then: Then::Later(Box::new(ask)) });
                }
            }
            Ok(Accept::DONE)
        }
    });
    let rounds = if ctx.quick { 500 } else { 3000 };
    let target = (ctx.me + 1) % ctx.n;
    for i in 1..=rounds {
        step(format!("answers: question {i}"));
        let header = [b"q".as_slice(), &(i as u64).to_ne_bytes()].concat();
        engine.send_message(target, id, &header, &pattern(i % 3000, 0)).expect("ask");
        if i % 7 == 0 {
            engine
                .wait_for(Cause::Other, &|| "answers".into(), || {
                    Ok(got.load(Ordering::Acquire) >= i as u64)
                })
                .expect("wait");
        }
    }
    engine.quiesce().expect("quiesce");
    assert_eq!(got.swap(0, Ordering::Relaxed), rounds as u64);
    ctx.barrier();
    for _ in 0..20 {
        let header = [b"l".as_slice(), &[0; 8]].concat();
        engine.send_message(target, id, &header, &[]).expect("ask");
    }
    engine.quiesce().expect("quiesce");
    assert_eq!(got.load(Ordering::Relaxed), 20 * 1001, "answers of completion handlers");
    unregister(ctx, id);
}

pub fn fences(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let inside = Arc::new(AtomicU64::new(0));
    let count = inside.clone();
    let id = register(ctx, "fences", |_| {
        move |_: &Am, _: &Arrival<'_>| {
            count.fetch_add(1, Ordering::SeqCst);
            Ok(Accept { to: Destination::Buffer, then: Then::Nothing })
        }
    });
    let seen = ctx.allocate(8);
    for round in 1..=10u64 {
        step(format!("fences: round {round}"));
        for target in 0..ctx.n {
            for len in [0, 10, 70_000, 2 << 20] {
                // SAFETY: `ZEROS` is static, so the data outlives the send.
                unsafe {
                    static ZEROS: [u8; 2 << 20] = [0; 2 << 20];
                    engine
                        .send_am(target, id, &[], Data::At(ZEROS.as_ptr(), len), Signals::default())
                        .expect("send");
                }
            }
        }
        engine.fence_all_messages().expect("fence");
        ctx.barrier();
        assert_eq!(
            inside.load(Ordering::SeqCst),
            round * 4 * ctx.n as u64,
            "after fence and barrier"
        );
        ctx.barrier();
    }
    ctx.free(seen);
    step("fences: the lock of the handlers");
    engine.lock_handlers().expect("lock");
    engine.lock_handlers().expect("lock again");
    let before = inside.load(Ordering::SeqCst);
    ctx.barrier(); // all ranks hold their own lock
    engine.send_message(ctx.me, id, &[], &[]).expect("to itself");
    engine.send_message((ctx.me + 1) % ctx.n, id, &[], &[]).expect("to the next");
    let until = Instant::now() + Duration::from_millis(30);
    while Instant::now() < until {
        engine.probe().expect("probe");
    }
    assert_eq!(inside.load(Ordering::SeqCst), before, "no handler runs while they are locked");
    engine.unlock_handlers().expect("unlock");
    assert_eq!(inside.load(Ordering::SeqCst), before, "locked twice");
    engine.unlock_handlers().expect("unlock");
    assert!(engine.unlock_handlers().is_err(), "one unlock too many");
    engine.quiesce().expect("quiesce");
    assert_eq!(inside.load(Ordering::SeqCst), before + 2);
    unregister(ctx, id);
}

pub fn computing(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let got = Arc::new(AtomicU64::new(0));
    let count = got.clone();
    let id = register(ctx, "computing", |own| {
        move |engine: &Am, m: &Arrival<'_>| {
            if m.header.is_empty() {
                count.fetch_add(1, Ordering::Release);
            } else {
                engine.send_message(m.origin, *own.get().expect("set"), &[], &[])?;
            }
            Ok(Accept::DONE)
        }
    });
    step("computing");
    if ctx.me == 1 {
        // Rank 0 sends the message that ends this loop after the first reply, so this rank must
        // reply while it computes.
        while got.load(Ordering::Acquire) == 0 {
            std::hint::spin_loop();
        }
    } else {
        // Ask one question at a time. The later ones arrive after rank 1 has stopped computing.
        for i in 1..=20u64 {
            engine.send_message(1, id, &[1], &[]).expect("ask");
            engine
                .wait_for(Cause::Other, &|| "an answer".into(), || {
                    Ok(got.load(Ordering::Acquire) >= i)
                })
                .expect("wait");
            engine.send_message(1, id, &[], &[]).expect("send");
        }
    }
    unregister(ctx, id);
}
