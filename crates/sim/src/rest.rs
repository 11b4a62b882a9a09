//! Quiescence while handlers still send. Rounds of few messages travel from rank to rank, so that
//! the counts of sent and handled messages often agree by chance while a message is on its way. To
//! make this possible, some handlers send two messages. If a rank has already contributed its
//! counts and then handles such a message, it has handled one and sent two that no count includes.

use crate::behaviour::Behaviour;
use crate::child::{Ctx, step};
use crate::dice::Dice;
use crate::machine::{self, Outcome};
use crate::settings;
use portolan::Result;
use portolan_engine::am::{Accept, Am, Arrival, Handler, HandlerId};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

const STACK: usize = 512 << 10;
const ROUNDS: usize = 60;

/// Totals of all ranks: messages to be handled, and messages handled.
#[derive(Debug, Default)]
struct Counts {
    wanted: AtomicU64,
    handled: AtomicU64,
}

/// Returns how many messages a handler sends if `left` more generations follow.
fn copies(left: u8) -> u64 {
    match left {
        0 => 0,
        _ if left.is_multiple_of(3) => 2,
        _ => 1,
    }
}

/// Returns how many messages are handled in total for one message.
fn family(left: u8) -> u64 {
    1 + copies(left) * left.checked_sub(1).map_or(0, family)
}

struct PassesOn {
    counts: Arc<Counts>,
    own: OnceLock<HandlerId>,
}

impl Handler for PassesOn {
    fn arrive(&self, am: &Am, message: &Arrival<'_>) -> Result<Accept> {
        let (left, step) = (message.header[0], message.header[1]);
        self.counts.handled.fetch_add(1, Ordering::Relaxed);
        for copy in 0..copies(left) as usize {
            let next = (am.rank() + usize::from(step) + copy) % am.size();
            let own = *self.own.get().expect("set before any message");
            am.send_message(next, own, &[left - 1, step], &[])?;
        }
        Ok(Accept::DONE)
    }
}

fn work(ctx: &Ctx, counts: &Arc<Counts>) {
    let handler = Arc::new(PassesOn { counts: counts.clone(), own: OnceLock::new() });
    let ids = ctx.engine.register_handlers(vec![("passes_on".into(), handler.clone())]);
    let ids = ids.expect("register");
    handler.own.set(ids[0]).expect("set once");
    ctx.barrier();
    let mut dice = Dice::new(ctx.seed ^ (ctx.me as u64 + 1) << 32);
    for round in 0..ROUNDS {
        step(format!("round {round}"));
        if dice.one_in(3) {
            let (left, by) = (dice.below(8) as u8, 1 + dice.below(ctx.n as u64) as u8);
            counts.wanted.fetch_add(family(left), Ordering::Relaxed);
            let target = dice.below(ctx.n as u64) as usize;
            ctx.engine.send_message(target, ids[0], &[left, by], &[]).expect("send");
        }
        ctx.engine.quiesce().expect("quiesce");
        let is = |count: &AtomicU64| count.load(Ordering::Relaxed);
        assert_eq!(is(&counts.handled), is(&counts.wanted), "messages handled at rest");
        ctx.barrier();
    }
    ctx.engine.unregister_handlers(&ids).expect("unregister");
}

pub fn run(seed: u64, ranks: usize) -> Outcome {
    let mut dice = Dice::new(seed);
    let mut behaviour = Behaviour::draw(&mut dice, ranks);
    // A late message takes up to 0.2 s. Other ranks poll meanwhile, and a round waits for several.
    behaviour.most_switches *= 3;
    let config = settings::draw(&mut dice);
    let counts = Arc::new(Counts::default());
    machine::run(seed, ranks, behaviour, STACK, move |_| {
        let ctx = Ctx::start(config.clone(), seed);
        work(&ctx, &counts);
        ctx.stop();
    })
}
