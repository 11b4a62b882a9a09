//! A rank that is gone for good: the others say whom they wait for, and end.

use crate::child::Ctx;
use crate::dice::Dice;
use crate::machine::{self, Behaviour, Outcome};
use portolan::config::{Config, PathChoice};
use std::time::Duration;

/// What the ranks that are left say before they end the job.
pub const SAYS: &[&str] = &["has waited", "pending"];

const STACK: usize = 512 << 10;

/// The last rank is gone in the middle of puts and fences to it, each a node of its own.
pub fn run(seed: u64, ranks: usize) -> Outcome {
    let mut dice = Dice::new(seed);
    let mut behaviour = Behaviour::draw(&mut dice, ranks);
    behaviour.stopped.clear();
    behaviour.gone = Some((ranks - 1, 20_000_000 + dice.below(50_000_000)));
    let config = Config {
        path: PathChoice::Message,
        node_size: 1,
        launcher_check: false,
        watchdog: Duration::from_secs(2),
        watchdog_abort: Duration::from_secs(5),
        ..Config::default()
    };
    portolan::watchdog::configure(&config);
    machine::run(seed, ranks, behaviour, STACK, move |_| {
        let ctx = Ctx::start(config.clone(), seed);
        let segment = ctx.allocate(4096);
        for round in 0u64.. {
            ctx.store(ctx.n - 1, segment.parts()[ctx.n - 1].address() + ctx.me * 8, round);
            ctx.engine.fence(ctx.n - 1).expect("fence");
        }
    })
}
