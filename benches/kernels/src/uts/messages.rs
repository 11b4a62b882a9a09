//! Work stealing by MPI's messages.
//!
//! A rank without work asks a random rank, which answers with its oldest chunk or with nothing. A
//! token goes round to find the end (Dijkstra, Feijen and van Gasteren): a rank passes it on when
//! it has neither work nor an open question, and colours it if it has given work away since the
//! last time. If the token returns to rank 0 without colour, all work is done.

use super::tree::{Node, root};
use super::{CHUNK, outcome};
use crate::rng::Rng;
use crate::two_sided::AllArrived;
use crate::{Job, Outcome, Result};

const ASK: i32 = 21;
const WORK: i32 = 22;
const TOKEN: i32 = 23;
const END: i32 = 24;
/// Nodes between two looks at the messages.
const INTERVAL: usize = 32;

struct Search<'j> {
    job: &'j Job<'j>,
    stack: Vec<Node>,
    asked: bool,
    /// Whether work has been given away since the token left.
    gave: bool,
    /// The token, if it is here, and its colour.
    token: Option<u8>,
    ended: bool,
    rng: Rng,
}

impl Search<'_> {
    fn poll(&mut self) {
        let world = self.job.world;
        while let Some((from, tag)) = world.probe() {
            match tag {
                ASK => {
                    world.receive::<u8>(from, ASK, &mut []);
                    let give = if self.stack.len() > 2 * CHUNK { CHUNK } else { 0 };
                    self.gave |= give > 0;
                    world.send(from, WORK, &self.stack[..give]);
                    self.stack.drain(..give);
                }
                WORK => {
                    let mut chunk = [root(); CHUNK];
                    let count = world.receive(from, WORK, &mut chunk);
                    self.stack.extend_from_slice(&chunk[..count]);
                    self.asked = false;
                }
                TOKEN => {
                    let mut colour = [0u8];
                    world.receive(from, TOKEN, &mut colour);
                    self.token = Some(colour[0]);
                }
                _ => {
                    world.receive::<u8>(from, END, &mut []);
                    self.ended = true;
                }
            }
        }
    }

    /// Passes the token on, if it is here. Rank 0 decides.
    fn pass(&mut self) {
        let (me, n, world) = (self.job.me(), self.job.n(), self.job.world);
        let Some(colour) = self.token.take() else { return };
        if me == 0 && colour == 0 && !self.gave {
            (1..n).for_each(|rank| world.send::<u8>(rank, END, &[]));
            self.ended = true;
            return;
        }
        let colour = if me == 0 { 0 } else { colour | u8::from(self.gave) };
        self.gave = false;
        world.send(if me == 0 { n - 1 } else { me - 1 }, TOKEN, &[colour]);
    }

    fn search(&mut self, depth: u32) -> u64 {
        let (me, n, mut count) = (self.job.me(), self.job.n(), 0);
        while !self.ended {
            for _ in 0..INTERVAL {
                let Some(node) = self.stack.pop() else { break };
                count += 1;
                node.expand(depth, &mut self.stack);
            }
            if n == 1 {
                self.ended = self.stack.is_empty();
                continue;
            }
            self.poll();
            if self.stack.is_empty() && !self.asked {
                self.pass();
                if !self.ended {
                    let victim = (me + 1 + self.rng.below(n - 1)) % n;
                    self.job.world.send::<u8>(victim, ASK, &[]);
                    self.asked = true;
                }
            }
        }
        // Answer the others until none expects an answer.
        while self.asked {
            self.poll();
        }
        let mut all = AllArrived::new();
        while !all.test() {
            self.poll();
        }
        count
    }
}

pub(super) fn messages(job: &Job<'_>, depth: usize) -> Result<Outcome> {
    let mut count = 0;
    let samples = job.repeat(|| {
        let (first, stack) = (job.me() == 0, if job.me() == 0 { vec![root()] } else { vec![] });
        // The first token is coloured, so that it goes round at least once.
        let token = first.then_some(1);
        let rng = Rng::new(0x475, job.me());
        let mut search = Search { job, stack, asked: false, gave: false, token, ended: false, rng };
        count += search.search(depth as u32);
        Ok(())
    })?;
    outcome(job, depth, samples, count)
}
