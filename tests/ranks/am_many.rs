//! Tests thousands of handlers, and the memory that they keep.

use crate::am::Runs;
use crate::child::{Ctx, step};
use crate::flood::status;
use portolan_engine::am::aggregate::Aggregator;
use portolan_engine::am::{Accept, Am, Arrival, Handler};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Registers the same names again after unregistering them.
pub fn many_handlers(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let hits = Arc::new(AtomicU64::new(0));
    for life in 0..2 {
        step(format!("many_handlers: life {life}"));
        let handlers = (0..if ctx.quick { 300 } else { 2000u64 })
            .map(|n| {
                let hits = hits.clone();
                let handler = move |_: &Am, _: &Arrival<'_>| {
                    hits.fetch_add(n, Ordering::Relaxed);
                    Ok(Accept::DONE)
                };
                (format!("many {n}"), Arc::new(Runs(handler)) as Arc<dyn Handler>)
            })
            .collect();
        let ids = engine.register_handlers(handlers).expect("register");
        for id in &ids {
            engine.send_message((ctx.me + 1) % ctx.n, *id, &[], &[]).expect("send");
        }
        engine.quiesce().expect("quiesce");
        let all = ids.len() as u64;
        assert_eq!(hits.swap(0, Ordering::Relaxed), all * (all - 1) / 2);
        engine.unregister_handlers(&ids).expect("unregister");
        assert!(engine.send_message(ctx.me, ids[0], &[], &[]).is_err(), "an unregistered handler");
    }
}

/// The memory of batches does not grow with the number of handlers that have used batches.
pub fn many_batches(ctx: &Ctx) {
    const FEW: usize = 16;
    const GROUP: usize = 60;
    const GROUPS: usize = 4;
    const HANDLERS: usize = FEW + GROUP * GROUPS;
    const ITEMS: usize = 7500;
    let engine = &*ctx.engine;
    let bytes = Arc::new(AtomicU64::new(0));
    let handlers = (0..HANDLERS)
        .map(|n| {
            let bytes = bytes.clone();
            let handler = move |_: &Am, m: &Arrival<'_>| {
                bytes.fetch_add(m.len as u64, Ordering::Relaxed);
                Ok(Accept::DONE)
            };
            (format!("batches {n}"), Arc::new(Runs(handler)) as Arc<dyn Handler>)
        })
        .collect();
    let ids = engine.register_handlers(handlers).expect("register");
    let fill = |aggregator: &Aggregator| {
        for target in 0..ctx.n {
            for item in 0..ITEMS {
                aggregator.push_value(engine, target, item as u64).expect("push");
            }
        }
        aggregator.flush(engine).expect("flush");
    };
    let aggregators: Vec<Arc<Aggregator>> = (ids.iter())
        .map(|&id| Aggregator::new(engine, id, &[], 8, 64 << 10).expect("aggregator"))
        .collect();
    // The first handlers allocate what all share, and MPI's buffers for messages of this size.
    aggregators[..FEW].iter().for_each(|a| fill(a));
    engine.quiesce().expect("quiesce");
    let grown: Vec<isize> = (aggregators[FEW..].chunks(GROUP))
        .map(|group| {
            let before = status("RssAnon");
            group.iter().for_each(|a| fill(a));
            engine.quiesce().expect("quiesce");
            status("RssAnon") as isize - before as isize
        })
        .collect();
    // MPI keeps a varying amount of memory for unexpected messages, so some groups may grow. A
    // buffer for each handler and target would make every group grow.
    let buffers = (GROUP * ctx.n * ITEMS * 8) as isize;
    assert!(grown.iter().any(|&g| g < buffers / 2), "groups of {GROUP} handlers keep {grown:?}");
    let all = engine.world().allgather(engine, &bytes.load(Ordering::Relaxed)).expect("allgather");
    assert_eq!(all.iter().sum::<u64>(), (HANDLERS * ITEMS * 8 * ctx.n * ctx.n) as u64);
    drop(aggregators);
    engine.unregister_handlers(&ids).expect("unregister");
}
