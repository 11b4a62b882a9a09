//! The heap that a rank holds, by structure, as formulas that a run checks.
//!
//! Each phase of a program makes one structure grow as [`PHASES`] states. A run compares the
//! average heap of the ranks with the sums of these formulas, which docs/scaling.md contains.

use crate::behaviour::Behaviour;
use crate::child::Ctx;
use crate::machine::{self, Outcome};
use crate::memory;
use portolan_base::config::{Config, PathChoice};
use portolan_engine::memory::segment::Purpose;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

const STACK: usize = 128 << 10;
pub const NODE: usize = 16;
/// Number of segments that all ranks allocate at the same offset, and at different ones.
pub const ALIKE: usize = 100;
pub const UNLIKE: usize = 20;
/// Number of ranks that a rank communicates with.
pub const USED: usize = 8;

pub struct Phase {
    pub name: &'static str,
    /// The formula as text and as a function, in bytes for a job of `n` ranks.
    pub text: &'static str,
    pub bytes: fn(usize) -> usize,
}

/// Returns the bytes of a table by rank before any entry is used.
const fn sparse(n: usize) -> usize {
    16 * n.div_ceil(32)
}

pub const PHASES: &[Phase] = &[
    Phase {
        name: "the engine, before any segment",
        text: "847,064, of which 835,584 are receives for requests and 6,174 counters. What is \
               outstanding towards each rank: n + 16 ⌈n/32⌉. Requests of each rank: 16 ⌈n/32⌉. The \
               registry: 8n. Nodes: 16n, and 24 each. The group of all ranks: 8n",
        bytes: |n| 847_064 + n + 2 * sparse(n) + 8 * n + 16 * n + 24 * n.div_ceil(NODE) + 8 * n,
    },
    Phase {
        name: "an arena, and a segment in it",
        text: "1,700. The address of each rank's part: 8n",
        bytes: |n| 1_700 + 8 * n,
    },
    Phase {
        name: "100 segments with the same layout on all ranks",
        text: "207 for each segment, whatever n",
        bytes: |_| ALIKE * 207,
    },
    Phase { name: "puts to 8 ranks, and by 8 others", text: "8,270, whatever n", bytes: |_| 8_270 },
    Phase {
        name: "20 segments with layouts that differ",
        text: "280 + 24n for each segment",
        bytes: |n| UNLIKE * (280 + 24 * n),
    },
];

/// All ranks have allocated the segments at the same offsets.
pub fn paper(n: usize, arenas: usize, segments: usize) -> usize {
    (PHASES[0].bytes)(n) + arenas * (PHASES[1].bytes)(n) + segments * (PHASES[2].bytes)(n) / ALIKE
}

pub fn page() -> String {
    let mut page = String::from(
        "\n## What a rank holds, by structure\n\nFor n ranks in nodes of 16, in bytes of heap. \
         `crates/sim/src/heap.rs` compares each line with what\n16, 64 and 256 ranks hold.\n\n\
         | what | formula | 256 ranks | 100,000 ranks |\n|---|---|---|---|\n",
    );
    for Phase { name, text, bytes } in PHASES {
        page += &format!("| {name} | {text} | {} | {} |\n", bytes(256), bytes(100_000));
    }
    let mib = |bytes: usize| bytes as f64 / (1 << 20) as f64;
    let each = ((PHASES[0].bytes)(100_000) - (PHASES[0].bytes)(0)) / 100_000 + 8;
    page += &format!(
        "\nSo a rank holds {each} bytes for a rank that it never uses, and 8 for each further arena. With 1,000\n\
         segments in 20 arenas (arenas become larger, so there are few) a rank of 100,000 has {:.1} MiB, and\n\
         one of a million {:.0} MiB. Active messages add 4n for the numbers of ranks on the node and 16 ⌈n/32⌉\n\
         for gates. An aggregator adds 64n. Rings and collective areas of a node are in shared memory, which\n\
         is not counted.\n",
        mib(paper(100_000, 20, 1_000)),
        mib(paper(1_000_000, 20, 1_000)),
    );
    page
}

/// Permitted difference from the formula: a fraction of it (1/50), plus a number of bytes.
const SLACK: (usize, usize) = (50, 500);

type Sums = Arc<[AtomicI64; 5]>;

fn config() -> Config {
    Config {
        path: PathChoice::Message,
        node_size: NODE,
        progress_thread: false,
        launcher_check: false,
        spin: 1,
        arena_bytes: 64 << 10,
        ..Config::default()
    }
}

fn work(ctx: &Ctx, sums: &Sums) {
    let (engine, world) = (&*ctx.engine, ctx.engine.world());
    let mut phase = 0;
    let mut mark = || {
        ctx.barrier();
        sums[phase].fetch_add(memory::held(), Ordering::Relaxed);
        phase += 1;
        ctx.barrier();
    };
    // A rank keeps its frames of messages. Barriers bring their number to its maximum.
    (0..16).for_each(|_| ctx.barrier());
    mark();
    machine::step("first segment".into());
    let segment = ctx.allocate(4096);
    mark();
    machine::step("segments cut alike".into());
    let alike: Vec<_> = (0..ALIKE).map(|_| ctx.allocate(64)).collect();
    mark();
    machine::step("puts".into());
    for i in 1..=USED {
        let target = (ctx.me + i) % ctx.n;
        ctx.store(target, segment.part(target).address() + 8 * i, ctx.me as u64);
    }
    engine.fence_all().expect("fence");
    mark();
    machine::step("segments cut differently".into());
    let lens = [64 * (1 + ctx.me % 2); UNLIKE];
    let unlike = engine.allocate_many(Purpose::Addresses, world, Ok(&lens)).expect("allocate");
    mark();
    alike.into_iter().chain(unlike).chain([segment]).for_each(|segment| ctx.free(segment));
}

pub fn run(seed: u64, ranks: usize) -> Outcome {
    let mut behaviour = Behaviour::plain(NODE);
    behaviour.switch_every = 50;
    let sums: Sums = Arc::default();
    let out = sums.clone();
    let outcome = machine::run(seed, ranks, behaviour, STACK, move |_| {
        let ctx = Ctx::start(config(), seed);
        work(&ctx, &out);
        ctx.stop();
    });
    let mut before = 0;
    for (phase, sum) in PHASES.iter().zip(sums.iter()) {
        let held = sum.load(Ordering::Relaxed) / ranks as i64;
        let (grown, want) = (held - before, (phase.bytes)(ranks) as i64);
        before = held;
        let (part, some) = SLACK;
        assert!(
            (grown - want).abs() <= want / part as i64 + some as i64,
            "{}: a rank of {ranks} holds {grown} bytes, and {want} by the formula",
            phase.name
        );
    }
    outcome
}
