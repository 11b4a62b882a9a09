//! The checks of the suite `ranks` on simulated ranks. They hold in any order of events.

use crate::behaviour::Behaviour;
use crate::child::Ctx;
use crate::dice::Dice;
use crate::machine::{self, Outcome};
use crate::{
    am, am_aggregates, am_items, am_many, am_rest, am_typed, anywhere, atomics, collectives,
    compose, consistency, contention, errors, fences, flood, group_collectives, groups, lookups,
    mismatches, mutexes, random, segments, settings, team_plans, threads_of_ranks,
};
use portolan_base::config::{Config, PathChoice};

type Check = (&'static str, fn(&Ctx));

pub const CHECKS: &[Check] = &[
    ("odd_sizes", segments::odd_sizes),
    ("neighbours", segments::neighbours),
    ("together", segments::together),
    ("lookups", lookups::lookups),
    ("errors", errors::errors),
    ("shape_errors", errors::shapes),
    ("random", random::random),
    ("contention", contention::contention),
    ("consistency", consistency::consistency),
    ("fences", fences::fences),
    ("totals", atomics::totals),
    ("combined", atomics::combined),
    ("stripes", atomics::lock_stripes),
    ("unaligned", atomics::unaligned),
    ("mutexes", mutexes::mutexes),
    ("mutex_errors", mutexes::errors),
    ("threads", threads_of_ranks::threads),
    ("thread_fences", threads_of_ranks::fences),
    ("flood", flood::flood),
    ("storm", flood::storm),
    ("groups", groups::groups),
    ("group_orders", groups::orders),
    ("mismatches", mismatches::mismatches),
    ("group_orders_differ", mismatches::orders),
    ("collectives", collectives::collectives),
    ("reductions", collectives::reductions),
    ("group_collectives", group_collectives::group_collectives),
    ("teams", team_plans::teams),
    ("am_sizes", am::sizes),
    ("am_nested", am::nested),
    ("am_answers", am::answers),
    ("am_fences", am::fences),
    ("am_aggregates", am_aggregates::aggregates),
    ("am_many_handlers", am_many::many_handlers),
    ("am_many_batches", am_many::many_batches),
    ("am_late_items", am_rest::late_items),
    ("am_senders", am_aggregates::senders),
    ("typed_values", am_typed::values),
    ("typed_order", am_typed::order),
    ("typed_nesting", am_typed::nesting),
    ("typed_answers", am_typed::answers),
    ("typed_blocking", am_typed::blocking),
    ("typed_items", am_items::items),
    ("anywhere_together", anywhere::together),
    ("anywhere_errors", anywhere::errors),
    ("compose_random", compose::random),
    ("compose_patterns", compose::patterns),
    ("array_random", crate::arrays::random),
    ("array_ghosts", crate::arrays::ghosts),
    ("array_products", crate::arrays::products),
    ("array_shared", crate::arrays::shared),
];

pub const OF_MANY: &[&str] = &["array_random", "array_ghosts", "array_products", "array_shared"];

const STACK: usize = 1 << 20;

pub fn run(check: &'static str, seed: u64, ranks: usize) -> Outcome {
    let (_, body) = CHECKS.iter().find(|(name, _)| *name == check).expect("a known check");
    let mut dice = Dice::new(seed);
    let gives_up = ["mismatches", "group_orders_differ"].contains(&check);
    let drawn = Behaviour::draw(&mut dice, ranks);
    // A megabyte in small pieces needs many naps if messages are slow.
    let longer = if check == "contention" { 4 } else { 1 };
    let most_switches = longer * drawn.most_switches;
    let behaviour = Behaviour { gives_up, most_switches, ..drawn };
    let config = settings::draw(&mut dice);
    machine::run(seed, ranks, behaviour, STACK, move |_| {
        let ctx = Ctx::start(config.clone(), seed);
        body(&ctx);
        ctx.stop();
    })
}

pub fn combined(seed: u64, ranks: usize) -> Outcome {
    let mut dice = Dice::new(seed);
    // If messages are slow, thousands of round trips need many naps, hence the higher limit.
    let drawn = Behaviour::draw(&mut dice, ranks);
    let behaviour =
        Behaviour { ranks_per_host: ranks / 2, most_switches: 4 * drawn.most_switches, ..drawn };
    let config = Config { path: PathChoice::Auto, node_size: 0, ..settings::draw(&mut dice) };
    machine::run(seed, ranks, behaviour, STACK, move |_| {
        let ctx = Ctx::start(config.clone(), seed);
        atomics::combined(&ctx);
        ctx.stop();
    })
}
