//! Batches of small items by MPI's messages: what a program does that aggregates by hand.
//!
//! A batch for each rank is filled, sent without waiting, and replaced. Batches that have arrived
//! are handled whenever one is sent. A rank's own batch is handled in place. The end is a message
//! with another tag to each rank, behind all batches.

use crate::two_sided::{Owned, World};
use bytemuck::Pod;

const BATCH: i32 = 7;
const END: i32 = 8;
const POSTED: usize = 4;
/// Sends under way before a push waits, per rank.
const FLIGHT: usize = 2;

/// Batches for all ranks.
pub struct Pushes<T: Pod, F> {
    world: World,
    limit: usize,
    filling: Vec<Vec<T>>,
    sending: Vec<Owned<T>>,
    receiving: Vec<Owned<T>>,
    spare: Vec<Vec<T>>,
    ended: usize,
    apply: F,
}

impl<T: Pod, F: FnMut(&[T])> Pushes<T, F> {
    /// Makes batches of at most `limit` items, which `apply` handles at their target.
    pub fn new(world: World, limit: usize, apply: F) -> Pushes<T, F> {
        let limit = limit.max(1);
        let receiving = (0..POSTED).map(|_| Owned::receive_any(limit, Vec::new())).collect();
        let filling = (0..world.n).map(|_| Vec::with_capacity(limit)).collect();
        Pushes {
            world,
            limit,
            filling,
            sending: Vec::new(),
            receiving,
            spare: Vec::new(),
            ended: 0,
            apply,
        }
    }

    /// Adds an item to the batch for `rank`.
    #[inline]
    pub fn push(&mut self, rank: usize, item: T) {
        let batch = &mut self.filling[rank];
        batch.push(item);
        if batch.len() == self.limit {
            self.send(rank);
        }
    }

    fn send(&mut self, rank: usize) {
        if rank == self.world.me {
            (self.apply)(&self.filling[rank]);
            self.filling[rank].clear();
            return;
        }
        self.progress();
        while self.sending.len() >= FLIGHT * self.world.n {
            self.progress();
        }
        let fresh = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(self.limit));
        let full = std::mem::replace(&mut self.filling[rank], fresh);
        self.sending.push(Owned::send(rank, BATCH, full));
    }

    fn progress(&mut self) {
        for send in std::mem::take(&mut self.sending) {
            match send.test() {
                Ok((mut buffer, ..)) => {
                    buffer.clear();
                    self.spare.push(buffer);
                }
                Err(send) => self.sending.push(send),
            }
        }
        // The receives complete in the order of posting.
        while !self.receiving.is_empty() {
            match self.receiving.remove(0).test() {
                Ok((buffer, BATCH, count)) => {
                    (self.apply)(&buffer[..count]);
                    self.receiving.push(Owned::receive_any(self.limit, buffer));
                }
                Ok((buffer, ..)) => {
                    self.ended += 1;
                    self.receiving.push(Owned::receive_any(self.limit, buffer));
                }
                Err(receive) => {
                    self.receiving.insert(0, receive);
                    break;
                }
            }
        }
    }

    /// Sends what is left, and handles everything that the other ranks have sent. Collective.
    pub fn finish(mut self) {
        for rank in 0..self.world.n {
            if !self.filling[rank].is_empty() {
                self.send(rank);
            }
        }
        for rank in (0..self.world.n).filter(|rank| *rank != self.world.me) {
            self.world.send::<T>(rank, END, &[]);
        }
        while self.ended < self.world.n - 1 || !self.sending.is_empty() {
            self.progress();
        }
        // No rank may send anything else before the receives of all ranks are withdrawn.
        self.receiving.into_iter().for_each(Owned::cancel);
        self.world.barrier();
    }
}
