//! Work sharing by active messages.
//!
//! Each rank has a private stack, and a queue of chunks that others can get. A rank with more than
//! two chunks on its stack moves the oldest to its queue. A rank without work asks a random rank,
//! whose handler sends a chunk of its queue, or records that the other rank is hungry. A hungry
//! rank gets the next chunk, so it need not ask again. Handlers run on the progress thread while a
//! rank computes.
//!
//! A token goes round to find the end (Safra). It adds up the chunks sent minus those received, and
//! a rank that has received one since the last round colours it. If an uncoloured token returns to
//! rank 0 with the sum zero, all work is done.

use super::tree::{Node, WORDS, root};
use super::{CHUNK, PATIENCE, PAUSE, outcome};
use crate::rng::Rng;
use crate::{Job, Outcome, Result};
use portolan::messages::{Delivery, Handlers, Message, Messages};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Chunks in a queue.
const MOST: usize = 64;
/// Time after which a rank without work asks another one.
const ASK_AGAIN: Duration = Duration::from_micros(200);

#[derive(Default)]
struct Shared {
    queue: VecDeque<Vec<Node>>,
    /// Ranks that wait for a chunk of this one.
    hungry: Vec<usize>,
    /// Chunks sent to other ranks minus those received.
    balance: i64,
    /// Whether a chunk has arrived since the token left.
    coloured: bool,
    token: Option<Token>,
    ended: bool,
}

type Ends = Mutex<Shared>;

fn lock(ends: &Ends) -> MutexGuard<'_, Shared> {
    ends.lock().expect("no panic")
}

/// Asks for a chunk.
#[derive(Serialize, Deserialize)]
struct Ask;

impl Message for Ask {
    type Reply = ();
    fn handle(self, delivery: &Delivery<'_>) {
        let mut shared = lock(delivery.state::<Ends>());
        let thief = delivery.origin();
        match shared.queue.pop_front() {
            Some(chunk) => {
                shared.balance += 1;
                drop(shared);
                let bytes = bytemuck::cast_slice::<Node, u8>(&chunk);
                delivery.spawn_with(thief, &Chunk, bytes).expect("a message");
            }
            None if shared.hungry.contains(&thief) => (),
            None => shared.hungry.push(thief),
        }
    }
}

/// The payload holds nodes.
#[derive(Serialize, Deserialize)]
struct Chunk;

impl Message for Chunk {
    type Reply = ();
    fn handle(self, delivery: &Delivery<'_>) {
        let mut shared = lock(delivery.state::<Ends>());
        shared.balance -= 1;
        shared.coloured = true;
        shared.queue.push_back(bytemuck::pod_collect_to_vec(delivery.payload()));
    }
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Token {
    sum: i64,
    coloured: bool,
}

impl Message for Token {
    type Reply = ();
    fn handle(self, delivery: &Delivery<'_>) {
        lock(delivery.state::<Ends>()).token = Some(self);
    }
}

#[derive(Serialize, Deserialize)]
struct End;

impl Message for End {
    type Reply = ();
    fn handle(self, delivery: &Delivery<'_>) {
        lock(delivery.state::<Ends>()).ended = true;
    }
}

struct Search<'j> {
    job: &'j Job<'j>,
    messages: &'j Messages<'j>,
    ends: &'j Ends,
    stack: Vec<Node>,
    rng: Rng,
}

impl Search<'_> {
    /// Gives the oldest chunk to a hungry rank, or moves it to the queue if there is room.
    fn share(&mut self) -> Result<()> {
        let mut shared = lock(self.ends);
        if let Some(thief) = shared.hungry.pop() {
            shared.balance += 1;
            drop(shared);
            let bytes = bytemuck::cast_slice::<Node, u8>(&self.stack[..CHUNK]);
            self.messages.spawn_with(thief, &Chunk, bytes)?;
            self.stack.drain(..CHUNK);
        } else if shared.queue.len() < MOST {
            shared.queue.push_back(self.stack.drain(..CHUNK).collect());
        }
        Ok(())
    }

    /// Passes the token on, if it is here. Rank 0 decides. Returns whether the search has ended.
    fn pass(&self) -> Result<bool> {
        let (me, n) = (self.job.me(), self.job.n());
        let mut shared = lock(self.ends);
        let Some(token) = shared.token.take() else { return Ok(shared.ended) };
        let sum = token.sum + shared.balance;
        let coloured = token.coloured | std::mem::take(&mut shared.coloured);
        drop(shared);
        if me == 0 && !coloured && sum == 0 {
            (1..n).try_for_each(|rank| self.messages.spawn(rank, &End))?;
            return Ok(true);
        }
        let token =
            if me == 0 { Token { sum: 0, coloured: false } } else { Token { sum, coloured } };
        self.messages.spawn(if me == 0 { n - 1 } else { me - 1 }, &token)?;
        Ok(false)
    }

    /// Waits for work of other ranks. Returns whether there is any, or the search has ended.
    fn find(&mut self) -> Result<bool> {
        let (me, n) = (self.job.me(), self.job.n());
        let (begun, mut asked) = (Instant::now(), None);
        while lock(self.ends).queue.is_empty() {
            if self.pass()? {
                return Ok(false);
            }
            if asked.is_none_or(|at: Instant| at.elapsed() > ASK_AGAIN) {
                asked = Some(Instant::now());
                let victim = (me + 1 + self.rng.below(n - 1)) % n;
                self.messages.spawn(victim, &Ask)?;
            }
            if begun.elapsed() > PATIENCE {
                std::thread::sleep(PAUSE);
            }
            self.messages.poll()?;
        }
        Ok(true)
    }

    fn search(&mut self, depth: u32) -> Result<u64> {
        let mut count = 0;
        loop {
            while let Some(node) = self.stack.pop() {
                count += 1;
                node.expand(depth, &mut self.stack);
                if self.job.n() > 1 && self.stack.len() > 2 * CHUNK {
                    self.share()?;
                }
            }
            let own = lock(self.ends).queue.pop_back();
            match own {
                Some(chunk) => self.stack.extend_from_slice(&chunk),
                None if self.job.n() == 1 || !self.find()? => return Ok(count),
                None => (),
            }
        }
    }
}

pub(super) fn share(job: &Job<'_>, depth: usize) -> Result<Outcome> {
    const { assert!(WORDS * 8 == size_of::<Node>()) };
    let ends = Arc::new(Ends::default());
    let handlers = Handlers::new().state(ends.clone());
    let handlers = handlers.message::<Ask>().message::<Chunk>().message::<Token>();
    let messages = handlers.message::<End>().register(job.rt()?)?;
    let mut count = 0;
    let samples = job.repeat(|| {
        // The first token is coloured, so that it goes round at least once.
        let token = (job.me() == 0).then_some(Token { sum: 0, coloured: true });
        *lock(&ends) = Shared { token, ..Shared::default() };
        job.barrier()?;
        let stack = if job.me() == 0 { vec![root()] } else { Vec::new() };
        let rng = Rng::new(0x475, job.me());
        let mut search = Search { job, messages: &messages, ends: &ends, stack, rng };
        count += search.search(depth as u32)?;
        Ok(messages.quiesce()?)
    })?;
    messages.free()?;
    outcome(job, depth, samples, count)
}
