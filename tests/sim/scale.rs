//! How the engine's cost grows with the number of ranks, up to thousands in this process.
//!
//! All transfers go by messages, as between hosts; active messages by rings on a node and by MPI
//! between nodes.
//! A phase's figures are what its ranks sent in it (messages and bytes of two-sided traffic,
//! collectives of MPI as calls) and what heap the engine holds.

use crate::behaviour::Behaviour;
use crate::child::{Ctx, own, step};
use crate::machine::{self, Outcome};
use crate::memory;
use crate::network::Traffic;
use portolan::error::Result;
use portolan::internals::am::Am;
use portolan::internals::am::aggregate::Aggregator;
use portolan::internals::am::{Accept, Arrival, Handler};
use portolan::internals::config::{Config, PathChoice, ThreadChoice};
use portolan::internals::path::ops::Rmw;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const STACK: usize = 128 << 10;
/// Ranks of a node in the phase of aggregated messages.
const NODE: usize = 16;
/// Most targets of a rank in a phase.
const SOME: usize = 256;
/// Bytes of an aggregator's batch, for which it takes room for each target that it has items for.
const BATCH: usize = 256;

/// Sums over all ranks.
#[derive(Debug, Clone, Copy, Default)]
struct Figures {
    traffic: Traffic,
    /// Most of one rank.
    most_messages: u64,
    held: i64,
    most: i64,
    time: u64,
}

type Table = Arc<Mutex<Vec<(&'static str, Figures)>>>;

/// Marks the end of phases.
struct Marks<'a> {
    ctx: &'a Ctx,
    table: Table,
    before: Traffic,
    at: usize,
}

impl Marks<'_> {
    fn mark(&mut self, name: &'static str) {
        let now = machine::with(|machine| (machine.network.traffic[machine::rank()], machine.now));
        let (traffic, time) = now;
        let (held, most) = (memory::held(), memory::most());
        {
            let mut table = self.table.lock().expect("no rank has panicked");
            if table.len() <= self.at {
                table.push((name, Figures::default()));
            }
            let figures = &mut table[self.at].1;
            let sent = traffic.messages - self.before.messages;
            figures.traffic.messages += sent;
            figures.traffic.bytes += traffic.bytes - self.before.bytes;
            figures.traffic.collectives += traffic.collectives - self.before.collectives;
            figures.most_messages = figures.most_messages.max(sent);
            figures.held += held;
            figures.most = figures.most.max(most);
            figures.time = figures.time.max(time);
        }
        self.at += 1;
        self.ctx.barrier();
        self.before = machine::with(|machine| machine.network.traffic[machine::rank()]);
    }
}

struct Takes(Arc<AtomicU64>);

impl Handler for Takes {
    fn arrive(&self, _: &Am, message: &Arrival<'_>) -> Result<Accept> {
        let data = message.data.expect("batches come whole");
        self.0.fetch_add(data.len() as u64 / 8, Ordering::Relaxed);
        Ok(Accept::DONE)
    }
}

fn config(node_size: usize) -> Config {
    Config {
        path: PathChoice::Message,
        node_size,
        progress_thread: ThreadChoice::Off,
        launcher_check: false,
        spin: 1,
        slab_bytes: 64 << 10,
        am_ring_bytes: 16 << 10,
        ..Config::default()
    }
}

/// What one rank does.
fn work(ctx: &Ctx, table: &Table) {
    let engine = &*ctx.engine;
    let before = Traffic::default();
    let mut marks = Marks { ctx, table: table.clone(), before, at: 0 };
    marks.mark("start");
    step("allocate");
    let segment = ctx.allocate(4096);
    marks.mark("allocate 4 KiB each");
    ctx.barrier();
    marks.mark("barrier");
    step("put to all");
    // As far apart as can be, so that each rank is the target of as many.
    let count = ctx.n.min(SOME);
    let some = || (0..count).map(|i| (ctx.me + i * (ctx.n / count)) % ctx.n);
    for (i, target) in some().enumerate() {
        let at = segment.parts()[target].address() + 64 + i * 8;
        ctx.store(target, at, ctx.me as u64);
    }
    engine.fence_all().expect("fence");
    marks.mark("put to each (256 at most), fence");
    step("counter");
    let at = segment.parts()[0].address();
    engine.rmw(0, at, Rmw::AddLong(1)).expect("rmw");
    ctx.barrier();
    if ctx.me == 0 {
        let count = i64::from_ne_bytes(own(&segment)[..8].try_into().expect("8 bytes"));
        assert_eq!(count, ctx.n as i64, "the counter that all add to");
    }
    marks.mark("counter on rank 0");
    step("register");
    let came = Arc::new(AtomicU64::new(0));
    let handlers: Vec<(String, Arc<dyn Handler>)> =
        vec![("takes".into(), Arc::new(Takes(came.clone())))];
    let ids = engine.register_handlers(handlers).expect("register");
    marks.mark("register a handler");
    engine.quiesce().expect("quiesce");
    marks.mark("quiesce without messages");
    let aggregator = Aggregator::new(engine, ids[0], b"", 8, BATCH).expect("an aggregator");
    step("aggregate");
    for target in some() {
        aggregator.push(engine, target, &1u64.to_le_bytes()).expect("push");
    }
    engine.quiesce().expect("quiesce");
    assert_eq!(came.load(Ordering::Relaxed), some().count() as u64, "the items of so many ranks");
    marks.mark("an item to each (256 at most) by the aggregator");
    drop(aggregator);
    engine.unregister_handlers(&ids).expect("unregister");
    ctx.free(segment);
    marks.mark("free");
}

fn measure(seed: u64, ranks: usize, node: usize) -> (Outcome, Vec<(&'static str, Figures)>) {
    let mut behaviour = Behaviour::plain(node);
    behaviour.switch_every = 50;
    let table: Table = Arc::default();
    let out = table.clone();
    let outcome = machine::run(seed, ranks, behaviour, STACK, move |_| {
        memory::reset();
        let ctx = Ctx::start(config(node), seed);
        work(&ctx, &out);
        ctx.stop();
    });
    let table = table.lock().expect("no rank has panicked").clone();
    (outcome, table)
}

/// A seed of the test: nodes of four, so that rings and gateways take part.
pub fn run(seed: u64, ranks: usize) -> Outcome {
    measure(seed, ranks, 4).0
}

/// What docs/scaling.md begins with.
const HEAD: &str = "\
# How cost grows with the number of ranks

These tables are printed by `cargo test --release --test sim -- --table`, which simulates all ranks
in one process: the engine's own code, over a simulated MPI. They count what the engine asks of
MPI and what it keeps; they say nothing of time.

* All transfers go by messages, also on a node: what ranks on hosts of their own do. Active
  messages go by rings on a node, and between nodes by MPI through a gateway on each node.
* *Messages* and *bytes* are those of MPI's two-sided messages that ranks sent in the phase, on
  average and by the rank that sent most. *Collectives* are calls of MPI's collectives, each of
  which costs MPI messages of its own.
* *Heap* is what the engine, and the program's few bytes, hold of the heap after the phase on
  average, and the most that any rank has held. Shared memory is not in it.
";

/// Prints docs/scaling.md.
pub fn table(most: usize) {
    print!("{HEAD}");
    for ranks in [16, 64, 256, 1024, 4096].into_iter().filter(|ranks| *ranks <= most) {
        let begun = std::time::Instant::now();
        let (_, table) = measure(1, ranks, NODE);
        eprintln!("{ranks} ranks: {:.1} s", begun.elapsed().as_secs_f64());
        println!("\n## {ranks} ranks, {NODE} to a node\n");
        println!(
            "| phase | messages a rank | most of one rank | bytes a rank | collectives | heap a rank | most heap |"
        );
        println!("|---|---|---|---|---|---|---|");
        for (name, f) in table {
            let each = |sum: u64| sum as f64 / ranks as f64;
            println!(
                "| {name} | {:.1} | {} | {:.0} | {:.1} | {} KiB | {} KiB |",
                each(f.traffic.messages),
                f.most_messages,
                each(f.traffic.bytes),
                each(f.traffic.collectives),
                f.held / ranks as i64 / 1024,
                f.most / 1024
            );
        }
    }
}
