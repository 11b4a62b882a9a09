//! The model of active messages, through any [`Sender`] of an interface.
//!
//! Each message has a [`Stamp`] with a seed. From the seed its receiver computes the contents of the
//! message, and the messages that it sends on. All ranks draw the first messages of all ranks from the
//! seed of the run, and follow them on, so each rank knows the number and the sum of the messages
//! that it must receive. Handlers get no pointer of the program, so the state is static.

use crate::child::{Ctx, step};
use crate::rng::Rng;
use parking_lot::Mutex;

/// The number of messages that handlers send on.
const UNNUMBERED: u64 = 0;
/// The number of messages to all ranks.
pub const TO_ALL: u64 = u64::MAX;

#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Stamp {
    pub seed: u64,
    pub origin: u64,
    /// How often messages are sent on.
    pub depth: u64,
    /// Its place among the first messages of its origin to the target, [`UNNUMBERED`] or [`TO_ALL`].
    pub number: u64,
}

pub const WORDS: usize = 4;

#[derive(Debug, Default)]
struct State {
    n: usize,
    /// The number of messages and their sum.
    came: (u64, u64),
    /// By origin, the number of the last numbered message.
    last: Vec<u64>,
}

static STATE: Mutex<State> = Mutex::new(State { n: 0, came: (0, 0), last: Vec::new() });

impl Stamp {
    /// A generator for a property of the message, which sender and receiver draw alike.
    pub fn rng(&self, of: u64) -> Rng {
        Rng::new(self.seed, &[of])
    }

    fn sum(&self, at: usize) -> u64 {
        Rng::new(self.seed, &[self.origin, self.depth, at as u64, 99]).next()
    }

    /// Returns the messages that a receiver sends on, with their targets.
    pub fn children(&self, at: usize, n: usize) -> Vec<(usize, Stamp)> {
        let mut rng = Rng::new(self.seed, &[at as u64, 98]);
        let child = |_| {
            let (seed, target) = (rng.next(), rng.below(n));
            let depth = self.depth - 1;
            (target, Stamp { seed, origin: at as u64, depth, number: UNNUMBERED })
        };
        (0..if self.depth > 0 { 2 } else { 0 }).map(child).collect()
    }
}

/// Checks the order of numbered messages, at the first sight of one.
pub fn seen(stamp: &Stamp) {
    if ![UNNUMBERED, TO_ALL].contains(&stamp.number) {
        let last = &mut STATE.lock().last[stamp.origin as usize];
        assert!(stamp.number > *last, "{stamp:?} comes after number {last}");
        *last = stamp.number;
    }
}

/// Counts a message. Returns the messages to send on.
pub fn came(stamp: &Stamp, me: usize) -> Vec<(usize, Stamp)> {
    let mut state = STATE.lock();
    state.came = (state.came.0 + 1, state.came.1.wrapping_add(stamp.sum(me)));
    stamp.children(me, state.n)
}

/// The number of messages that have come to this rank.
pub fn number_here() -> u64 {
    STATE.lock().came.0
}

pub trait Sender {
    /// Before the messages of a phase.
    fn begin(&mut self, phase: usize);

    /// Sends a message. With several targets, all of them get it.
    fn send(&mut self, to: &[usize], stamp: Stamp, rng: &mut Rng);

    /// Does something else for a while.
    fn pause(&mut self, rng: &mut Rng);

    /// Completes what this rank has sent, but not what handlers send on. Other ranks learn it from a
    /// barrier without the library.
    fn complete(&mut self);

    /// Completes all messages. `here` of them come to this rank. Collective.
    fn rest(&mut self, here: u64);
}

/// Follows a message, and adds what each rank receives.
fn follow(sums: &mut [(u64, u64)], at: usize, stamp: &Stamp) {
    sums[at] = (sums[at].0 + 1, sums[at].1.wrapping_add(stamp.sum(at)));
    stamp.children(at, sums.len()).iter().for_each(|(to, child)| follow(sums, *to, child));
}

pub fn run(ctx: &Ctx, sender: &mut dyn Sender, several: bool) {
    let mut rng = Rng::new(ctx.seed, &[ctx.n as u64, 97]);
    for phase in 0..if ctx.quick { 4 } else { 8 } {
        *STATE.lock() = State { n: ctx.n, came: (0, 0), last: vec![0; ctx.n] };
        sender.begin(phase);
        sender.rest(0);
        let seed = rng.next();
        // In some phases, only the origins' own fences complete the messages.
        let deepest = if phase % 4 == 2 { 1 } else { 6 };
        let mut sums = vec![(0, 0); ctx.n];
        for origin in 0..ctx.n {
            let mut rng = Rng::new(seed, &[origin as u64]);
            let mut numbers = vec![0; ctx.n];
            for i in 0..if ctx.quick { 100 } else { 200 } {
                let all = several && deepest > 1 && rng.one_in(12);
                let depth = if rng.one_in(3) { rng.below(deepest) as u64 } else { 0 };
                let (seed, target) = (rng.next(), rng.below(ctx.n));
                let to: Vec<usize> = if all { (0..ctx.n).collect() } else { vec![target] };
                let mut stamp = Stamp { seed, origin: origin as u64, depth, number: TO_ALL };
                if !all {
                    numbers[target] += 1;
                    stamp.number = numbers[target];
                }
                to.iter().for_each(|&at| follow(&mut sums, at, &stamp));
                let mut own = Rng::new(seed, &[96]);
                if origin == ctx.me {
                    step(format!("messages: phase {phase}, message {i}"));
                    sender.send(&to, stamp, &mut own);
                    if own.one_in(20) {
                        sender.pause(&mut own);
                    }
                }
            }
        }
        step(format!("messages: phase {phase}, completing"));
        if deepest == 1 {
            sender.complete();
            crate::interfaces::mpi_barrier(&ctx.engine);
        } else {
            sender.rest(sums[ctx.me].0);
        }
        assert_eq!(STATE.lock().came, sums[ctx.me], "number and sum of messages, phase {phase}");
        sender.rest(sums[ctx.me].0);
        assert_eq!(STATE.lock().came, sums[ctx.me], "after the end of phase {phase}");
    }
}
