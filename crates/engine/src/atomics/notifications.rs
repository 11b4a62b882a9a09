//! Counted notifications between ranks. A rank notifies another one by incrementing a word there,
//! ordered after its operations on the other rank's memory. The ranks of a node use a shared file,
//! which unlike a segment does not lengthen address lookups. Each rank has a row: a count of its
//! sleeping threads, and one word for each rank of the node. With several nodes, a segment has a
//! word for each rank of the job, and [`Ops::increment_in_order`] reaches it.

use crate::collective::shared_counter::reached;
use crate::memory::segment::{Purpose, Segment};
use crate::ops::Ops;
use portolan_base::error::{Result, fail};
use portolan_base::futex;
use portolan_base::shm::SharedFile;
use portolan_base::trace::{Awaited, Cause};
use portolan_base::wait;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const LINE: usize = 16;

#[derive(Debug)]
pub struct Notifications {
    near: Option<NodeWords>,
    /// A word for each rank. `None` if all ranks share a node and have shared words.
    far: Option<Arc<Segment>>,
}

#[derive(Debug)]
struct NodeWords {
    file: SharedFile,
    /// World ranks, ascending.
    ranks: Vec<usize>,
    me: usize,
}

impl Notifications {
    /// Collective over all ranks.
    pub fn create(ops: &Ops) -> Result<Notifications> {
        let near = NodeWords::create(ops)?;
        let far = if near.is_none() || ops.topology.nodes() > 1 {
            let bytes = size_of::<u32>() * ops.size();
            let segment = ops.allocate_for(Purpose::Internal, ops.world(), Ok(bytes))?;
            // SAFETY: this rank's part has these bytes, and no rank uses it before the barrier.
            unsafe { segment.my_base().write_bytes(0, bytes) };
            ops.barrier_of(ops.world())?;
            Some(segment)
        } else {
            None
        };
        Ok(Notifications { near, far })
    }

    /// Collective over all ranks, which must not notify afterwards.
    pub fn free(&self, ops: &Ops) -> Result<()> {
        self.far.clone().map_or(Ok(()), |segment| ops.release(segment))
    }

    pub fn is_near(&self, rank: usize) -> bool {
        self.near.as_ref().is_some_and(|near| near.index(rank).is_some())
    }

    fn far(&self) -> Result<&Segment> {
        match &self.far {
            Some(segment) => Ok(segment),
            None => fail!(Internal, "all ranks share a node, but a rank is not near"),
        }
    }

    /// Then the waiting thread sees all operations of the caller on the memory of its rank.
    pub fn notify(&self, ops: &Ops, rank: usize) -> Result<()> {
        ops.check_rank(rank)?;
        if let Some(near) = &self.near
            && let Some(index) = near.index(rank)
        {
            ops.order(rank)?;
            near.notify(index);
            return Ok(());
        }
        let at = self.far()?.part(rank).address() + size_of::<u32>() * ops.rank();
        ops.increment_in_order(rank, at, None)
    }

    /// Waits for `number` notifications of `rank` (modulo 2^32). Returns how many have arrived.
    pub fn wait(&self, ops: &Ops, rank: usize, number: u32) -> Result<u32> {
        ops.check_rank(rank)?;
        let what = || format!("notification {number} of rank {rank}");
        let cause = Awaited::of(Cause::Notify, rank);
        if let Some(near) = &self.near
            && let Some(index) = near.index(rank)
        {
            let (word, sleepers) = (near.word(near.me, index + 1), near.word(near.me, 0));
            wait::briefly(wait::NEAR, || reached(word.load(Ordering::Acquire), number));
            loop {
                let count = word.load(Ordering::Acquire);
                if reached(count, number) {
                    return Ok(count);
                }
                wait::while_equal(ops, cause, &what, (word, count), Some(sleepers))?;
            }
        }
        let words = self.far()?.my_base().cast::<AtomicU32>();
        // SAFETY: this rank's part has an aligned word for each rank, mapped while `self` lives.
        // Other ranks increment the words through the engine only.
        let word = unsafe { &*words.wrapping_add(rank) };
        wait::until(ops, cause, &what, || Ok(reached(word.load(Ordering::Acquire), number)))?;
        Ok(word.load(Ordering::Acquire))
    }
}

impl NodeWords {
    /// Returns `None` on all ranks if a node lacks shared memory.
    fn create(ops: &Ops) -> Result<Option<NodeWords>> {
        let ranks = ops.topology.ranks_of(ops.topology.my_node()).to_vec();
        let me = ranks.iter().position(|&rank| rank == ops.topology.me()).unwrap_or(0);
        let bytes = size_of::<u32>() * row(ranks.len());
        let file = ops.world().live_team()?.share_if_possible(
            ops,
            &ops.config.shm_dir,
            ranks.len() * bytes,
            |file| file.reserve(me * bytes, bytes),
        )?;
        Ok(file.map(|file| NodeWords { file, ranks, me }))
    }

    fn index(&self, rank: usize) -> Option<usize> {
        self.ranks.binary_search(&rank).ok()
    }

    fn word(&self, index: usize, n: usize) -> &AtomicU32 {
        let ranks = self.ranks.len();
        assert!(index < ranks && n <= ranks);
        // SAFETY: the file has `ranks` reserved rows, mapped while `self` lives. The words are
        // aligned, zero initially, and accessed only as atomics.
        unsafe { &*self.file.base().cast::<AtomicU32>().add(index * row(ranks) + n) }
    }

    fn notify(&self, index: usize) {
        let word = self.word(index, self.me + 1);
        // Sequentially consistent: this thread sees the sleeper, or the sleeper the new count.
        word.fetch_add(1, Ordering::SeqCst);
        if self.word(index, 0).load(Ordering::SeqCst) > 0 {
            futex::wake_all(word);
        }
    }
}

fn row(ranks: usize) -> usize {
    (1 + ranks).next_multiple_of(LINE)
}
