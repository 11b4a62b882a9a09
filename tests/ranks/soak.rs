//! A long run: checks in random order with random seeds, in one engine that must not grow.
//! `PORTOLAN_SOAK_SECONDS` sets the time.
//!
//! Each round is a check that compares with a model or with exact totals, so a difference ends the
//! run in that round. After every round each rank measures its own memory, its mapped shared
//! memory, and its numbers of descriptors, threads and named files. Each check first runs once, so
//! that buffers and threads exist. At the end, the maximum of the first quarter of the run is
//! compared with the minimum of the last quarter.

use crate::child::{self, Ctx, step};
use crate::flood::status;
use crate::rng::Rng;
use crate::{
    am, am_aggregates, am_items, am_typed, anywhere, atomics, collectives, compose, consistency,
    contention, groups, limits, lookups, mutexes, random, segments,
};
use portolan_engine::runtime::Engine;
use std::time::{Duration, Instant};

pub const SECONDS: &str = "PORTOLAN_SOAK_SECONDS";

/// The variable with the rounds to draw from, separated by commas; all if it is not set.
pub const ROUNDS_OF: &str = "PORTOLAN_SOAK_ROUNDS";

/// Growth in bytes that counts as noise: buffers of the allocator and MPI for the largest round.
const SLACK: usize = 8 << 20;

/// Limit on rounds of checks that register handlers, because a job has a limited number of them.
const MOST_WITH_HANDLERS: usize = 300;

/// The name of a check, its weight, whether it registers handlers, and its function.
type Row = (&'static str, usize, bool, fn(&Ctx));

const ROUNDS: &[Row] = &[
    ("random", 12, false, random::random),
    ("consistency", 2, false, consistency::consistency),
    ("neighbours", 2, false, segments::neighbours),
    ("odd_sizes", 1, false, segments::odd_sizes),
    ("lookups", 2, false, lookups::lookups),
    ("stripes", 1, false, atomics::lock_stripes),
    ("totals", 3, false, atomics::totals),
    ("contention", 3, false, contention::contention),
    ("mutexes", 3, false, mutexes::mutexes),
    ("groups", 2, false, groups::groups),
    ("collectives", 2, false, collectives::collectives),
    ("reductions", 1, false, collectives::reductions),
    ("anywhere", 1, true, anywhere::anywhere),
    ("am_nested", 1, true, am::nested),
    ("am_answers", 1, true, am::answers),
    ("am_aggregates", 1, true, am_aggregates::aggregates),
    ("typed_values", 1, true, am_typed::values),
    ("typed_items", 1, true, am_items::items),
    ("compose_random", 2, true, compose::random),
];

pub fn seconds() -> u64 {
    std::env::var(SECONDS).ok().and_then(|v| v.parse().ok()).unwrap_or(1)
}

#[derive(Debug, Clone, Copy, Default)]
struct Stock {
    own: usize,
    shared: usize,
    descriptors: usize,
    threads: usize,
    named: usize,
}

impl Stock {
    fn take() -> Stock {
        let (descriptors, shared, named) = limits::footprint();
        let threads = std::fs::read_dir("/proc/self/task").map_or(0, |d| d.count());
        Stock { own: status("RssAnon"), shared, descriptors, threads, named }
    }

    fn most(self, other: Stock) -> Stock {
        Stock {
            own: self.own.max(other.own),
            shared: self.shared.max(other.shared),
            descriptors: self.descriptors.max(other.descriptors),
            threads: self.threads.max(other.threads),
            named: self.named.max(other.named),
        }
    }

    fn least(self, other: Stock) -> Stock {
        Stock {
            own: self.own.min(other.own),
            shared: self.shared.min(other.shared),
            descriptors: self.descriptors.min(other.descriptors),
            threads: self.threads.min(other.threads),
            named: self.named.min(other.named),
        }
    }
}

pub fn soak() {
    let ctx = Ctx::new(child::start());
    let engine = ctx.engine.clone();
    let total = Duration::from_secs(seconds());
    for (name, _, _, run) in ROUNDS {
        step(format!("soak: {name} for the first time"));
        run(&Ctx { engine: engine.clone(), quick: true, ..ctx });
        ctx.barrier();
    }
    let only = std::env::var(ROUNDS_OF).ok().filter(|names| !names.is_empty());
    let named = |row: &&Row| only.as_ref().is_none_or(|names| names.split(',').any(|n| n == row.0));
    let rows: Vec<&Row> = ROUNDS.iter().filter(named).collect();
    assert!(!rows.is_empty(), "{ROUNDS_OF} names no round that there is");
    let begun = Instant::now();
    let (mut rounds, mut with_handlers) = (0u64, 0);
    let (mut early, mut late) = (Stock::take(), None::<Stock>);
    let mut reported = 0;
    loop {
        let elapsed = begun.elapsed();
        let mine = u64::from(elapsed < total);
        let all = engine.world().allgather(&*engine, &mine).expect("allgather");
        if all[0] == 0 {
            break;
        }
        rounds += 1;
        let mut rng = Rng::new(ctx.seed, &[4711, rounds]);
        let drawn: usize = rows.iter().map(|r| r.1).sum();
        let mut ticket = rng.below(drawn);
        let row = rows.iter().find(|row| {
            let hit = ticket < row.1;
            ticket = ticket.wrapping_sub(row.1);
            hit
        });
        let &&(name, _, handlers, run) = row.expect("a ticket below the sum");
        with_handlers += usize::from(handlers);
        if handlers && with_handlers > MOST_WITH_HANDLERS {
            continue;
        }
        step(format!("soak: round {rounds}, {name}"));
        let round = Ctx { engine: engine.clone(), seed: rng.next(), quick: true, ..ctx };
        run(&round);
        ctx.barrier();
        assert_eq!(engine.memory.live_segments(), 0, "round {rounds}, {name}: segments are left");
        let stock = Stock::take();
        if elapsed < total / 4 {
            early = early.most(stock);
        } else if elapsed >= total / 4 * 3 {
            late = Some(late.map_or(stock, |l| l.least(stock)));
        }
        let minute = elapsed.as_secs() / 60;
        if ctx.me == 0 && minute > reported {
            reported = minute;
            println!("soak: {minute} minutes, {rounds} rounds, {stock:?}");
        }
    }
    let end = Stock::take();
    println!("soak: rank {}: {rounds} rounds; {early:?}, then {late:?}, {end:?}", ctx.me);
    if let Some(late) = late {
        let grew = |what: &str, late: usize, early: usize, slack: usize| {
            assert!(late <= early + slack, "{what} grew from {early} to {late} in {rounds} rounds");
        };
        grew("own memory", late.own, early.own, SLACK);
        grew("mapped shared memory", late.shared, early.shared, 8 << 20);
        grew("the number of descriptors", late.descriptors, early.descriptors, 2);
        grew("the number of threads", late.threads, early.threads, 0);
    }
    assert_eq!(end.named, 0, "named files in shared memory");
    drop((ctx, engine));
    Engine::stop().expect("stop");
}
