//! How the engine's cost grows with the number of ranks, up to thousands in this process.
//!
//! All transfers travel as messages, as between hosts. Active messages travel through rings on a
//! node and over MPI between nodes. The figures of a phase are the messages and bytes that its
//! ranks sent, their calls of MPI collectives, and the heap that the engine holds.

use crate::behaviour::Behaviour;
use crate::child::{Ctx, own};
use crate::extrapolate;
use crate::heap;
use crate::machine::{self, Outcome};
use crate::memory;
use crate::network::Traffic;
use portolan::Result;
use portolan_base::config::{Config, PathChoice};
use portolan_compose::{Blocks, Composer, Composition};
use portolan_engine::am::Am;
use portolan_engine::am::aggregate::Aggregator;
use portolan_engine::am::{Accept, Arrival, Handler};
use portolan_engine::path::ops::Rmw;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const STACK: usize = 128 << 10;
/// Number of ranks on a node in the printed tables.
const NODE: usize = 16;
/// Maximum number of targets of a rank in a phase.
const SOME: usize = 256;
/// Number of exchanges of a composition in a phase.
const EXCHANGES: u64 = 8;
/// An aggregator allocates a batch for each target that it has items for.
const BATCH: usize = 256;

/// Figures of a phase: sums over all ranks, except the maxima.
#[derive(Debug, Clone, Copy, Default)]
struct Figures {
    traffic: Traffic,
    /// Maximum number of messages of one rank.
    most_messages: u64,
    held: i64,
    most: i64,
    time: u64,
}

type Table = Arc<Mutex<Vec<(&'static str, Figures)>>>;

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
        progress_thread: false,
        launcher_check: false,
        spin: 1,
        arena_bytes: 64 << 10,
        am_ring_bytes: 16 << 10,
        ..Config::default()
    }
}

/// Exchanges a halo with up to four neighbours. A rank sends one message to each in an exchange, and
/// few that return credits.
fn exchange_halos(ctx: &Ctx, marks: &mut Marks<'_>) {
    machine::step("compose".into());
    let engine = &*ctx.engine;
    let halo = ctx.allocate(8 << 10);
    let composer = Composer::new();
    let far =
        [1, ctx.n - 1, 4, ctx.n.wrapping_sub(4)].map(|step| ctx.me.wrapping_add(step) % ctx.n);
    let neighbours: BTreeSet<usize> = far.into_iter().filter(|rank| *rank != ctx.me).collect();
    let mut whole: Option<Composition> = None;
    for (i, &target) in neighbours.iter().enumerate() {
        let rows = |base: usize, at: usize| Blocks {
            start: base + at * 1024,
            stride: 16,
            block: 8,
            count: 64,
        };
        let mut one = Composition::simple(engine, target).expect("simple");
        let theirs = rows(halo.part(target).address(), 4);
        one.add_slice(rows(halo.my_base() as usize, i), theirs).expect("add");
        whole = Some(match whole {
            Some(whole) => whole.merge(&one).expect("merge"),
            None => one,
        });
    }
    let whole = whole.expect("there are neighbours").map(engine).expect("map");
    let plan = whole.plan().expect("mapped");
    composer.sync(engine).expect("sync");
    marks.mark("compose and map a halo for 4 neighbours");
    machine::step("exchange halos".into());
    let sent = || machine::with(|machine| machine.network.traffic[machine::rank()].messages);
    let before = sent();
    for again in 1..=EXCHANGES {
        // SAFETY: the sources and destinations are in a segment that lives until the end.
        unsafe { composer.perform(engine, plan) }.expect("perform");
        composer.wait_for(engine, again as u32 * neighbours.len() as u32).expect("wait");
    }
    let (sent, most) = (sent() - before, (EXCHANGES + 2) * neighbours.len() as u64);
    assert!(sent <= most, "{sent} messages for {EXCHANGES} exchanges, at most {most}");
    marks.mark("exchange the halo 8 times");
    composer.free(engine).expect("free");
    ctx.free(halo);
    marks.mark("free the composition");
}

fn work(ctx: &Ctx, table: &Table) {
    let engine = &*ctx.engine;
    let before = Traffic::default();
    let mut marks = Marks { ctx, table: table.clone(), before, at: 0 };
    marks.mark("start");
    machine::step("allocate".into());
    let segment = ctx.allocate(4096);
    marks.mark("allocate 4 KiB each");
    ctx.barrier();
    marks.mark("barrier");
    machine::step("put to all".into());
    // The targets are evenly spaced, so that each rank is the target of equally many ranks.
    let count = ctx.n.min(SOME);
    let some = || (0..count).map(|i| (ctx.me + i * (ctx.n / count)) % ctx.n);
    for (i, target) in some().enumerate() {
        let at = segment.part(target).address() + 64 + i * 8;
        ctx.store(target, at, ctx.me as u64);
    }
    engine.fence_all().expect("fence");
    marks.mark("put to each (256 at most), fence");
    machine::step("counter".into());
    let at = segment.part(0).address();
    engine.rmw(0, at, Rmw::add::<i64>(1)).expect("rmw");
    ctx.barrier();
    if ctx.me == 0 {
        let count = i64::from_ne_bytes(own(&segment)[..8].try_into().expect("8 bytes"));
        assert_eq!(count, ctx.n as i64, "the counter that all add to");
    }
    marks.mark("counter on rank 0");
    exchange_halos(ctx, &mut marks);
    machine::step("register".into());
    let came = Arc::new(AtomicU64::new(0));
    let handlers: Vec<(String, Arc<dyn Handler>)> =
        vec![("takes".into(), Arc::new(Takes(came.clone())))];
    let ids = engine.register_handlers(handlers).expect("register");
    marks.mark("register a handler");
    engine.quiesce().expect("quiesce");
    marks.mark("quiesce without messages");
    let aggregator = Aggregator::new(engine, ids[0], b"", 8, BATCH).expect("an aggregator");
    machine::step("aggregate".into());
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

/// Runs a seed of the test on nodes of four ranks, so that rings are used.
pub fn run(seed: u64, ranks: usize) -> Outcome {
    measure(seed, ranks, 4).0
}

/// The beginning of docs/scaling.md.
const HEAD: &str = "\
# How cost grows with the number of ranks

`PORTOLAN_BLESS=1 cargo test --release --test sim -- --table` writes this page; `--most 4096` adds a
job of 4,096 ranks. The command simulates all ranks in one process: it runs the engine's code over a
simulated MPI. The tables count the engine's calls of MPI and the memory that it holds. They do not
show time.

* All transfers go by messages, as between hosts, also on a node. Active messages go by rings on a
  node, and by MPI between nodes.
* *Messages* and *bytes* are those of MPI's two-sided messages that ranks sent in the phase, on
  average and for the rank that sent most. *Collectives* are calls of MPI's collectives, each of
  which costs MPI messages of its own.
* *Heap* is the heap memory of the engine and of the small test program after the phase, on average,
  and the most that any rank has held until then. It excludes shared memory.

With 4,096 ranks the simulation takes some minutes and 11 GB.

## What grows, and why

* **Memory.** For each rank of the job, a rank keeps an address for each arena, a pointer in the
  registry, the node and number of the rank, and a byte that marks outstanding operations. The
  records of operations to a rank, of its handled requests and of its parts of the arenas are
  created when the rank is first used. A segment with the same layout on all ranks is one record and
  one entry of an index. Layouts are the same as long as the ranks request the same lengths. The
  formulas are below.
* **Fixed cost.** About 830 KiB, nearly all of it 12 posted receives of 68 KiB, whose memory is
  used only when long requests arrive. The first active
  message handler adds 64 KiB for the table of handlers.
* **Allocation.** A segment costs one exchange if an arena has room, and two if it needs a new
  arena, for any number of ranks. Many segments in one call cost the same (`Group::allocate_many`,
  `portolan_malloc_many`).
* **Messages.** A put with a fence costs three messages for any size of the job: a fence asks only
  the ranks to which something was sent. In the counter phase, rank 0 sends a reply to each rank
  that asks, so the time to serve a counter on one rank grows with the number of ranks.
* **Collectives** are the engine's own messages, except for four duplications of communicators at
  the start. In a collective, a rank sends log2(ranks) messages. The result of an allgather grows
  with the number of ranks. Ranks share no memory here, so each rank sends its own messages. If they
  share memory, only one rank of each node sends messages.
* **Aggregated messages** go straight to their targets, a message for each target that has items. An
  aggregator allocates a whole batch for each such target, so use small batches for many targets.
";

/// Returns the maximum resident memory of this process, in KiB.
fn most_resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Prints the tables. With `PORTOLAN_BLESS=1`, also writes them to docs/scaling.md.
pub fn table(most: usize) {
    let mut page = String::from(HEAD);
    let mut summary = String::from(
        "\n## All phases together\n\n| ranks | messages a rank | bytes a rank | collectives a rank | \
         heap a rank | of that for each rank of the job | most heap of a rank | all memory a rank |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    let mut tables = String::new();
    let mut smallest = None;
    for ranks in [16, 64, 256, 1024, 4096].into_iter().filter(|ranks| *ranks <= most) {
        let begun = std::time::Instant::now();
        let (_, table) = measure(1, ranks, NODE);
        eprintln!("{ranks} ranks: {:.1} s", begun.elapsed().as_secs_f64());
        let each = |sum: u64| sum as f64 / ranks as f64;
        let kib = |bytes: i64| bytes / 1024;
        let sum = |of: fn(&Traffic) -> u64| each(table.iter().map(|(_, f)| of(&f.traffic)).sum());
        // The last phase before the segment is freed.
        let full = table[table.len() - 2].1;
        let held = full.held / ranks as i64;
        let (first, few) = *smallest.get_or_insert((held, ranks));
        let grown = match ranks - few {
            0 => "-".to_string(),
            more => format!("{} bytes", (held - first) / more as i64),
        };
        summary += &format!(
            "| {ranks} | {:.1} | {:.0} | {:.1} | {} KiB | {grown} | {} KiB | {} KiB |\n",
            sum(|t| t.messages),
            sum(|t| t.bytes),
            sum(|t| t.collectives),
            kib(held),
            kib(full.most),
            most_resident() / ranks as u64,
        );
        tables += &format!(
            "\n## {ranks} ranks, {NODE} to a node\n\n| phase | messages a rank | most of one rank | \
             bytes a rank | collectives | heap a rank | most heap |\n|---|---|---|---|---|---|---|\n"
        );
        for (name, f) in table {
            tables += &format!(
                "| {name} | {:.1} | {} | {:.0} | {:.1} | {} KiB | {} KiB |\n",
                each(f.traffic.messages),
                f.most_messages,
                each(f.traffic.bytes),
                each(f.traffic.collectives),
                kib(f.held / ranks as i64),
                kib(f.most)
            );
        }
    }
    summary += "\n*All memory* is the memory of the process, including its stacks, the rings and the simulation.\n";
    page += &(heap::page() + &extrapolate::page() + &summary + &tables);
    print!("{page}");
    if std::env::var_os("PORTOLAN_BLESS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scaling.md");
        std::fs::write(path, page).expect("docs/scaling.md is written");
    }
}
