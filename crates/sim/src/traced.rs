//! Traces of engines on hosts whose clocks are far apart.
//!
//! Each host's clock is five seconds ahead of the previous host's. The files of all ranks are
//! complete and contain all calls. Their clocks are aligned within the stated error: no message is
//! served before it was sent.

use crate::behaviour::Behaviour;
use crate::child::{Ctx, step};
use crate::dice::Dice;
use crate::machine::{self, Outcome};
use crate::settings;
use portolan_base::config::{Config, PathChoice};
use portolan_engine::path::ops::Rmw;
use portolan_trace_format::alignment::{Alignment, Sample};
use portolan_trace_format::event::{Call, Event, Served};
use portolan_trace_format::format::file_name;
use portolan_trace_format::read::{Part, Reader};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

const STACK: usize = 512 << 10;
const APART: u64 = 5;
const TIMES: usize = 3;

fn work(ctx: &Ctx) {
    let segment = ctx.allocate(16 * ctx.n);
    ctx.barrier();
    for target in 0..ctx.n {
        step(format!("calls to rank {target}"));
        let base = segment.part(target).address();
        for _ in 0..TIMES {
            ctx.store(target, base + 16 * ctx.me, 1u64);
            ctx.engine.rmw(target, base + 16 * ctx.me + 8, Rmw::add::<i64>(1)).expect("rmw");
        }
        ctx.engine.fence(target).expect("fence");
    }
    ctx.barrier();
    ctx.free(segment);
}

/// The checked contents of a rank's file, with times of the rank's own clock.
#[derive(Default)]
struct Seen {
    samples: Vec<Sample>,
    puts: usize,
    /// Read-modify-writes by target: their begin and end.
    asked: Vec<(u32, u64, u64)>,
    /// Served read-modify-writes by origin: the time of service.
    served: Vec<(u32, u64)>,
}

fn seen(path: &Path) -> Seen {
    let file = File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut reader = Reader::open(file).expect("the head of a trace");
    let mut seen = Seen::default();
    while let Some(part) = reader.next_part().expect("it can be read") {
        let Part::Block(block) = part else { panic!("{}: {part:?}", path.display()) };
        assert_eq!(block.header.dropped, 0);
        for event in block.events() {
            match event.expect("an event") {
                Event::Clock { time, offset, bound } => {
                    seen.samples.push(Sample { time, offset, bound });
                }
                Event::Call { call: Call::Put, .. } => seen.puts += 1,
                Event::Call { call: Call::Rmw, peer: Some(peer), begin, duration, .. } => {
                    seen.asked.push((peer, begin, begin + duration));
                }
                Event::Served { kind: Served::Rmw, origin: Some(origin), begin, .. } => {
                    seen.served.push((origin, begin));
                }
                _ => {}
            }
        }
    }
    seen
}

pub fn run(seed: u64, ranks: usize) -> Outcome {
    let mut dice = Dice::new(seed);
    let behaviour = Behaviour::draw(&mut dice, ranks);
    let own = tempfile::tempdir().expect("a directory for the traces");
    let dir = own.path().join("traces");
    let config = Config {
        path: PathChoice::Message,
        trace: dir.to_str().expect("UTF-8").into(),
        trace_counter: false,
        ..settings::draw(&mut dice)
    };
    let hosts = behaviour.ranks_per_host;
    let outcome = machine::run(seed, ranks, behaviour, STACK, move |rank| {
        let shift = Duration::from_secs(APART * (rank / hosts) as u64);
        let ctx = Ctx::start(Config { trace_shift: shift, ..config.clone() }, seed);
        work(&ctx);
        ctx.stop();
    });
    let all: Vec<Seen> = (0..ranks).map(|rank| seen(&dir.join(file_name(rank)))).collect();
    let clocks: Vec<Alignment> =
        (0..ranks).map(|rank| Alignment::new(all[rank / hosts * hosts].samples.clone())).collect();
    for (rank, seen) in all.iter().enumerate() {
        assert_eq!(seen.puts, TIMES * ranks, "puts of rank {rank}");
        assert_eq!(seen.asked.len(), TIMES * ranks, "read-modify-writes of rank {rank}");
        assert_eq!(seen.samples.len(), if rank % hosts == 0 { 2 } else { 0 }, "samples of {rank}");
        let truth = -((APART * (rank / hosts) as u64 * 1_000_000_000) as i64);
        for sample in &seen.samples {
            assert!(sample.offset.abs_diff(truth) <= sample.bound, "rank {rank}: {sample:?}");
        }
        // Each request is served during its call, within the error of the clocks.
        for &(origin, time) in &seen.served {
            let bound = |rank: usize, time| clocks[rank].bound(time).expect("there are samples");
            let at = clocks[rank].aligned(time);
            let within = all[origin as usize].asked.iter().any(|&(target, begin, end)| {
                let origin = origin as usize;
                let error = bound(rank, time) + bound(origin, begin).max(bound(origin, end));
                target as usize == rank
                    && clocks[origin].aligned(begin) <= at + error
                    && at <= clocks[origin].aligned(end) + error
            });
            assert!(within, "rank {rank} served rank {origin} at {at}, when it had not asked");
        }
    }
    outcome
}
