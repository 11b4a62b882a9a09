//! Work stealing by one-sided operations.
//!
//! Each rank has a private stack and a queue that all ranks can read. A rank with more than two
//! chunks on its stack moves the oldest to the end of its queue; a thief takes the first chunk.
//!
//! A word holds the numbers of a queue's first chunk and of its end, and a generation. Every change
//! of the queue is a compare-and-swap of this word. A thief first reads the nodes and then swaps.
//! The owner overwrites a chunk only after it has changed the generation, so a swap that succeeds
//! shows that the nodes had not changed.
//!
//! A counter on rank 0 holds the number of ranks that have work. A rank counts itself before it
//! steals and gives up only when its stack and its queue are empty, so at zero no work is left.

use super::tree::{Node, WORDS, root};
use super::{CHUNK, PATIENCE, PAUSE, outcome};
use crate::memory::Words;
use crate::{Job, Outcome, Result};
use std::time::Instant;

/// The word of the queue, the counter of rank 0, and the first chunk, each in its own line.
const QUEUE: usize = 0;
const WORKING: usize = 8;
const CHUNKS: usize = 16;
const ROOM: u64 = 1 << 12;

#[derive(Clone, Copy)]
struct Queue {
    begin: u64,
    end: u64,
    generation: u64,
}

impl Queue {
    fn from(word: u64) -> Queue {
        Queue { begin: word & 0xffff, end: word >> 16 & 0xffff, generation: word >> 32 }
    }

    fn word(self) -> u64 {
        self.begin | self.end << 16 | (self.generation & 0xffff_ffff) << 32
    }
}

struct Stealing<'j, M> {
    job: &'j Job<'j>,
    memory: M,
    stack: Vec<Node>,
}

fn place(chunk: u64) -> usize {
    CHUNKS + chunk as usize * CHUNK * WORDS
}

impl<M: Words> Stealing<'_, M> {
    fn swap(&self, rank: usize, old: Queue, new: Queue) -> Result<bool> {
        let word = old.word();
        Ok(self.memory.compare_swap(rank, QUEUE, word, new.word())? == word)
    }

    /// Moves the oldest chunk of the stack to the own queue if there is room.
    fn release(&mut self) -> Result<()> {
        let me = self.job.me();
        let mut queue = Queue::from(self.memory.load(me, QUEUE)?);
        if queue.begin == queue.end && queue.end > 0 {
            let fresh = Queue { begin: 0, end: 0, generation: queue.generation + 1 };
            // Only the owner changes an empty queue.
            self.swap(me, queue, fresh)?;
            queue = fresh;
        }
        if queue.end == ROOM {
            return Ok(());
        }
        let chunk: Vec<Node> = self.stack.drain(..CHUNK).collect();
        self.memory.put(me, place(queue.end), bytemuck::cast_slice(&chunk))?;
        self.memory.fence()?;
        while !self.swap(me, queue, Queue { end: queue.end + 1, ..queue })? {
            queue = Queue::from(self.memory.load(me, QUEUE)?);
        }
        Ok(())
    }

    /// Takes a chunk back from the end of the own queue.
    fn reacquire(&mut self) -> Result<bool> {
        let me = self.job.me();
        loop {
            let queue = Queue::from(self.memory.load(me, QUEUE)?);
            if queue.begin == queue.end {
                return Ok(false);
            }
            let end = queue.end - 1;
            let generation = queue.generation + 1;
            if self.swap(me, queue, Queue { end, generation, ..queue })? {
                self.take(me, end)?;
                return Ok(true);
            }
        }
    }

    fn take(&mut self, rank: usize, chunk: u64) -> Result<()> {
        let mut words = [0; CHUNK * WORDS];
        self.memory.get(rank, place(chunk), &mut words)?;
        self.stack.extend_from_slice(bytemuck::cast_slice(&words));
        Ok(())
    }

    /// Takes the first chunk of a queue, if the queue is still as the thief has read it.
    fn steal(&mut self, victim: usize, queue: Queue) -> Result<bool> {
        self.take(victim, queue.begin)?;
        let won = self.swap(victim, queue, Queue { begin: queue.begin + 1, ..queue })?;
        if !won {
            self.stack.clear();
        }
        Ok(won)
    }

    /// Looks for work on other ranks. Returns whether there was any, or all ranks have ended.
    fn find(&mut self) -> Result<bool> {
        let (me, n) = (self.job.me(), self.job.n());
        self.memory.fetch_add(0, WORKING, u64::MAX)?;
        let begun = Instant::now();
        loop {
            for victim in (1..n).map(|i| (me + i) % n) {
                let queue = Queue::from(self.memory.load(victim, QUEUE)?);
                if queue.begin == queue.end {
                    continue;
                }
                self.memory.fetch_add(0, WORKING, 1)?;
                if self.steal(victim, queue)? {
                    return Ok(true);
                }
                self.memory.fetch_add(0, WORKING, u64::MAX)?;
            }
            if self.memory.load(0, WORKING)? == 0 {
                return Ok(false);
            }
            if begun.elapsed() > PATIENCE {
                std::thread::sleep(PAUSE);
            }
        }
    }

    fn search(&mut self, depth: u32) -> Result<u64> {
        let mut count = 0;
        loop {
            while let Some(node) = self.stack.pop() {
                count += 1;
                node.expand(depth, &mut self.stack);
                if self.job.n() > 1 && self.stack.len() > 2 * CHUNK {
                    self.release()?;
                }
            }
            if !self.reacquire()? && !self.find()? {
                return Ok(count);
            }
        }
    }
}

pub(super) fn steal<M: Words>(
    job: &Job<'_>,
    depth: usize,
    make: impl FnOnce(usize) -> Result<M>,
) -> Result<Outcome> {
    let memory = make(place(ROOM))?;
    let mut stealing = Stealing { job, memory, stack: Vec::new() };
    let mut count = 0;
    let samples = job.repeat(|| {
        stealing.memory.write(QUEUE, 0);
        stealing.memory.write(WORKING, job.n() as u64);
        if job.me() == 0 {
            stealing.stack.push(root());
        }
        job.barrier()?;
        count += stealing.search(depth as u32)?;
        job.barrier()
    })?;
    stealing.memory.free()?;
    outcome(job, depth, samples, count)
}
