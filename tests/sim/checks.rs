//! The checks of the real ranks, on simulated ones: what they assert holds under any order.

use crate::behaviour::Behaviour;
use crate::child::Ctx;
use crate::dice::Dice;
use crate::machine::{self, Outcome};
use crate::{
    am, am_aggregates, atomics, collectives, consistency, groups, mutexes, random, settings,
};

/// A check, and its name.
type Check = (&'static str, fn(&Ctx));

pub const CHECKS: &[Check] = &[
    ("random", random::random),
    ("totals", atomics::totals),
    ("swaps", atomics::swaps),
    ("stripes", atomics::stripes),
    ("mutexes", mutexes::mutexes),
    ("consistency", consistency::consistency),
    ("groups", groups::groups),
    ("collectives", collectives::collectives),
    ("am_nested", am::nested),
    ("am_answers", am::answers),
    ("am_aggregates", am_aggregates::aggregates),
];

const STACK: usize = 1 << 20;

/// Runs a check on so many ranks.
pub fn run(check: &'static str, seed: u64, ranks: usize) -> Outcome {
    let (_, body) = CHECKS.iter().find(|(name, _)| *name == check).expect("a known check");
    let mut dice = Dice::new(seed);
    let behaviour = Behaviour::draw(&mut dice, ranks);
    let config = settings::draw(&mut dice);
    machine::run(seed, ranks, behaviour, STACK, move |_| {
        let ctx = Ctx::start(config.clone(), seed);
        body(&ctx);
        ctx.stop();
    })
}
