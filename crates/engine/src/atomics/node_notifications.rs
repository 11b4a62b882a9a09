//! Numbered notifications between the ranks of a node, through shared words.
//!
//! Each rank has a row of words: a count of its sleeping threads, and one word for each rank of the
//! node. A rank notifies another one by storing the number of its last notification into its word
//! of the other's row. The words are a file of their own and not a segment, so they do not lengthen
//! the search for the segment of an address.

use crate::collective::mark::{Mark, reached};
use crate::core::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::shm::SharedFile;
use crate::trace::{Awaited, Cause};
use crate::wait::{self, Ends, Progress};
use std::sync::atomic::{AtomicU32, Ordering};

/// Words of a cache line.
const LINE: usize = 16;

/// The words of a node, as one rank sees them.
#[derive(Debug)]
pub struct NodeNotifications {
    file: SharedFile,
    /// The world ranks of the node, in increasing order.
    ranks: Vec<usize>,
    me: usize,
}

impl NodeNotifications {
    /// Allocates the words, with all numbers zero. Collective. Returns `None` on all ranks if a node
    /// lacks shared memory for them.
    ///
    /// # Errors
    /// Fails if the ranks are in different calls.
    pub fn create<P>(progress: &P, core: &Core) -> Result<Option<NodeNotifications>>
    where
        P: Progress + ?Sized,
    {
        let ranks = core.topology.ranks_of(core.topology.my_node()).to_vec();
        let me = ranks.iter().position(|&rank| rank == core.topology.me()).unwrap_or(0);
        let bytes = 4 * row(ranks.len());
        let reserve = |file: &SharedFile| {
            file.reserve(me * bytes, bytes).map_err(|e| {
                Error::new(ErrorKind::Memory, format!("{bytes} bytes of shared memory: {e}"))
            })
        };
        let team = core.world().live_team()?;
        match team.share(progress, &core.config.shm_dir, ranks.len() * bytes, reserve) {
            Ok(file) => Ok(Some(NodeNotifications { file, ranks, me })),
            Err(error) if error.kind() == ErrorKind::Mismatch => Err(error),
            Err(error) => {
                log::debug!("the ranks of a node notify each other by messages: {error:#}");
                Ok(None)
            }
        }
    }

    /// Returns whether `rank` is on the node.
    pub fn reaches(&self, rank: usize) -> bool {
        self.ranks.binary_search(&rank).is_ok()
    }

    fn index(&self, rank: usize) -> usize {
        self.ranks.binary_search(&rank).expect("a rank of the node")
    }

    /// Returns word `n` of the row of the rank with this index.
    fn word(&self, index: usize, n: usize) -> &AtomicU32 {
        let ranks = self.ranks.len();
        assert!(index < ranks && n <= ranks);
        // SAFETY: the file consists of `ranks` reserved rows and stays mapped while `self` lives.
        // The words are aligned, zero initially, and accessed only as atomics.
        unsafe { &*self.file.base().cast::<AtomicU32>().add(index * row(ranks) + n) }
    }

    /// Returns the mark that rank `from` sets for rank `to`, by their indices.
    fn mark(&self, to: usize, from: usize) -> Mark<'_> {
        Mark { number: self.word(to, from + 1), sleepers: self.word(to, 0), crowded: false }
    }

    /// Stores the number of the last notification for `rank`, and wakes the threads that wait for
    /// it. A thread that has waited for the number sees all earlier writes of the caller.
    ///
    /// # Panics
    /// Panics if `rank` is not on the node.
    pub fn notify(&self, rank: usize, number: u32) {
        self.mark(self.index(rank), self.me).set(number);
    }

    /// Waits until `rank` has sent the notification `number`. Returns the number of the last one
    /// that has arrived. Numbers wrap, so their distance decides which one is later.
    ///
    /// # Errors
    /// Returns `State` if the thread must not wait.
    ///
    /// # Panics
    /// Panics if `rank` is not on the node.
    pub fn wait<P>(&self, progress: &P, rank: usize, number: u32) -> Result<u32>
    where
        P: Progress + ?Sized,
    {
        let Mark { number: word, sleepers, .. } = self.mark(self.me, self.index(rank));
        let what = || format!("notification {number} of rank {rank}");
        loop {
            let last = word.load(Ordering::Acquire);
            if reached(last, number) {
                return Ok(last);
            }
            let cause = Awaited::of(Cause::Notify, rank);
            wait::while_equal(progress, cause, &what, word, last, Some(sleepers), Ends::Woken)?;
        }
    }
}

/// Returns the number of words of a rank's row.
fn row(ranks: usize) -> usize {
    (1 + ranks).next_multiple_of(LINE)
}
