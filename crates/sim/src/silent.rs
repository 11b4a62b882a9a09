//! A rank that is gone for good, or stopped for a while. The other ranks wait for it, report this,
//! and name it. If it comes back, all ranks continue normally.

use crate::behaviour::Behaviour;
use crate::child::{Ctx, own, step};
use crate::dice::Dice;
use crate::machine::{self, Outcome};
use crate::{reports, settings};
use portolan_base::config::{Config, PathChoice};
use portolan_engine::memory::segment::Segment;
use portolan_engine::path::kernel::Scale;
use portolan_engine::path::ops::Rmw;
use std::time::Duration;

const STACK: usize = 512 << 10;
/// Simulated time after which a waiting rank reports its wait.
const PATIENCE: Duration = Duration::from_secs(2);
const SECOND: u64 = 1_000_000_000;

fn config(dice: &mut Dice) -> Config {
    let config = Config {
        path: PathChoice::Message,
        node_size: 1,
        watchdog: PATIENCE,
        ..settings::draw(dice)
    };
    portolan_base::wait::watchdog::configure(&config);
    config
}

fn operate(ctx: &Ctx, segment: &Segment, dice: &mut Dice) {
    let target = dice.below(ctx.n as u64) as usize;
    let base = segment.part(target).address();
    let (counter, sum, mine) = (base, base + 8, base + 16 + ctx.me * 8);
    let which = dice.below(4);
    step(format!("operation {which} to rank {target}"));
    match which {
        0 => {
            let value = dice.next();
            ctx.store(target, mine, value);
            assert_eq!(ctx.load::<u64>(target, mine), value, "a word of rank {target}");
        }
        1 => {
            ctx.store(target, mine, 1u64);
            ctx.engine.fence(target).expect("fence");
        }
        2 => drop(ctx.engine.rmw(target, counter, Rmw::add::<i64>(1)).expect("rmw")),
        _ => {
            let one = 1i64.to_ne_bytes();
            // SAFETY: the number stays valid until the call returns.
            unsafe { ctx.engine.accumulate(target, sum, one.as_ptr(), 8, Scale::Long(1)) }
                .expect("accumulate");
            ctx.engine.fence(target).expect("fence");
        }
    }
}

/// The last rank disappears while all ranks operate on all ranks. Each of the others reports that
/// it waits for that rank.
pub fn gone(seed: u64, ranks: usize) -> Outcome {
    let mut dice = Dice::new(seed);
    let mut behaviour = Behaviour::draw(&mut dice, ranks);
    behaviour.stopped.clear();
    // A message of the lost rank must not remain matched with a target's receive forever. MPI would
    // wait for its bytes, and the target would wait with it. All messages are therefore eager.
    (behaviour.eager, behaviour.long_every) = (1 << 20, 0);
    let (config, later) = (config(&mut dice), dice.below(20_000_000));
    reports::await_naming(0..ranks - 1, ranks - 1, true);
    machine::run(seed, ranks, behaviour, STACK, move |rank| {
        let ctx = Ctx::start(config.clone(), seed);
        let segment = ctx.allocate(16 + ctx.n * 8);
        let mut dice = Dice::new(seed ^ (rank as u64 + 1) << 32);
        ctx.barrier();
        if rank == ranks - 1 {
            machine::with(|machine| machine.behaviour.gone = Some((rank, machine.now + later)));
        }
        loop {
            operate(&ctx, &segment, &mut dice);
        }
    })
}

/// Stops one rank for ten seconds. At least one other rank reports that it waits for it, and then
/// all ranks finish normally.
pub fn stopped(seed: u64, ranks: usize) -> Outcome {
    let mut dice = Dice::new(seed);
    let mut behaviour = Behaviour::draw(&mut dice, ranks);
    behaviour.stopped.clear();
    behaviour.reports = true;
    let rank = dice.below(ranks as u64) as usize;
    let (config, later) = (config(&mut dice), dice.below(20_000_000));
    reports::await_naming(0..ranks, rank, false);
    let outcome = machine::run(seed, ranks, behaviour, STACK, move |me| {
        let ctx = Ctx::start(config.clone(), seed);
        let segment = ctx.allocate(16 + ctx.n * 8);
        own(&segment).fill(0);
        ctx.barrier();
        if me == rank {
            machine::with(|machine| {
                let begin = machine.now + later;
                machine.behaviour.stopped.push((rank, begin, begin + 10 * SECOND));
            });
        }
        let mut dice = Dice::new(seed ^ (me as u64 + 1) << 32);
        let is_over =
            || machine::with(|machine| machine.behaviour.stopped.iter().any(|s| s.2 < machine.now));
        while !is_over() {
            operate(&ctx, &segment, &mut dice);
        }
        ctx.barrier();
        ctx.free(segment);
        ctx.stop();
    });
    let (silent, all) = reports::missing();
    assert!(silent.len() < ranks, "nobody named rank {rank}, but: {all:?}");
    outcome
}
