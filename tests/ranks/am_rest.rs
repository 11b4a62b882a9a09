//! The job comes to rest only after everything is sent, even items that handlers add late.

use crate::am::Runs;
use crate::child::Ctx;
use portolan_base::trace::Cause;
use portolan_base::wait::Progress;
use portolan_engine::am::aggregate::Aggregator;
use portolan_engine::am::deferral::Deferral;
use portolan_engine::am::{Accept, Am, Arrival, Handler, HandlerId, Hook};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const ROUNDS: u64 = 20;

fn handler(body: impl Fn(&Am, &Arrival<'_>) + Send + Sync + 'static) -> Arc<dyn Handler> {
    Arc::new(Runs(move |engine: &Am, m: &Arrival<'_>| {
        body(engine, m);
        Ok(Accept::DONE)
    }))
}

/// A handler of rank 1 aggregates an item for each rank from 2 on. It does so after rank 1 has
/// flushed its aggregated items and before the messages are counted.
pub fn late_items(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let (me, n) = (ctx.me, ctx.n);
    if n == 1 {
        return;
    }
    let items: Arc<OnceLock<Arc<Aggregator>>> = Arc::default();
    let known: Arc<OnceLock<Vec<HandlerId>>> = Arc::default();
    let came = Arc::new(AtomicU64::new(0));
    let asked = Arc::new(AtomicU64::new(0));
    let spread = Arc::new(AtomicU64::new(0));
    let count = came.clone();
    let item = handler(move |_, m| {
        count.fetch_add(m.len as u64 / 8, Ordering::Relaxed);
    });
    let (ids, count) = (known.clone(), asked.clone());
    let ask = handler(move |engine, _| {
        count.fetch_add(1, Ordering::Relaxed);
        engine.send_message(1, ids.get().expect("known")[2], &[], &[]).expect("send");
    });
    let (collected, count) = (items.clone(), spread.clone());
    let collect = handler(move |engine, _| {
        for target in 2..n {
            collected.get().expect("made").push_value(engine, target, 1u64).expect("push");
        }
        count.fetch_add(1, Ordering::Relaxed);
    });
    let handlers = vec![("item".into(), item), ("ask".into(), ask), ("collect".into(), collect)];
    let ids = engine.register_handlers(handlers).expect("register");
    assert!(known.set(ids.clone()).is_ok());
    let aggregator = Aggregator::new(engine, ids[0], &[], 8, 1 << 10).expect("aggregator");
    assert!(items.set(aggregator).is_ok());
    // Runs after the aggregator's hook. Asks rank 0 for a message and polls until it was handled.
    let armed = Arc::new(AtomicBool::new(false));
    let (now, count, ask) = (armed.clone(), spread.clone(), ids[1]);
    let hook: Hook = Arc::new(move |engine: &Am, aged| {
        if aged || !now.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let before = count.load(Ordering::Relaxed);
        engine.send_message(0, ask, &[], &[])?;
        while count.load(Ordering::Relaxed) == before {
            engine.probe()?;
        }
        Ok(())
    });
    engine.add_flush_hook(hook.clone()).expect("hook");
    for round in 1..=ROUNDS {
        engine.world().barrier(engine).expect("barrier");
        match me {
            1 => armed.store(true, Ordering::Relaxed),
            // Wait for the request, so that the message of rank 0 is counted when rank 1 counts.
            0 => {
                let what = || "rank 1 to ask".into();
                let done = || Ok(asked.load(Ordering::Relaxed) == round);
                engine.wait_for(Cause::Other, &what, done).expect("wait");
            }
            _ => {}
        }
        engine.quiesce().expect("quiesce");
        let want = if me < 2 { 0 } else { round };
        assert_eq!(came.load(Ordering::Relaxed), want, "items of round {round}");
    }
    engine.remove_flush_hook(&hook).expect("hook");
    drop(items);
    engine.world().barrier(engine).expect("barrier");
    engine.unregister_handlers(&ids).expect("unregister");
}

/// Runs slowly, and only in threads inside its deferral queue.
struct Slow {
    deferral: Arc<Deferral>,
    begun: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
}

impl Handler for Slow {
    fn arrive(&self, _: &Am, _: &Arrival<'_>) -> portolan::Result<Accept> {
        self.begun.store(true, Ordering::Release);
        std::thread::sleep(Duration::from_millis(100));
        self.ended.store(true, Ordering::Release);
        Ok(Accept::DONE)
    }

    fn deferral(&self) -> Option<Arc<Deferral>> {
        Some(self.deferral.clone())
    }
}

/// Quiescence does not wait for a message that a deferral queue holds, but for one that the queue
/// has released and that another thread runs.
pub fn released(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let (begun, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let deferral = Deferral::new(true);
    let (deferral_of, begun_of, ended_of) = (deferral.clone(), begun.clone(), ended.clone());
    let slow = Slow { deferral: deferral_of, begun: begun_of, ended: ended_of };
    let handlers: Vec<(String, Arc<dyn Handler>)> = vec![("slow".into(), Arc::new(slow))];
    let ids = engine.register_handlers(handlers).expect("register");
    ctx.barrier();
    engine.send_message((ctx.me + 1) % ctx.n, ids[0], &[], &[]).expect("send");
    engine.quiesce().expect("quiesce");
    assert!(!begun.load(Ordering::Acquire), "no thread is inside the queue");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _inside = deferral.enter();
            while !ended.load(Ordering::Acquire) {
                engine.poll().expect("poll");
            }
        });
        while !begun.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
        engine.quiesce().expect("quiesce");
        assert!(ended.load(Ordering::Acquire), "quiescence has not waited for the handler");
    });
    engine.unregister_handlers(&ids).expect("unregister");
}
