//! A page of shared memory on which the ranks of a group meet.
//!
//! Ranks that share a node need no messages to wait for each other. The board
//! holds a count of the ranks that have arrived, a generation that the last one
//! advances, and two slots for each rank, used in turn, for small gathers. A
//! rank that waits long sleeps on the generation. Each rank also notes the
//! generation at which it arrives, so that a report can name the ranks that are missing.
//!
//! Invariant: no rank writes a slot while another one may still read it. A slot
//! is written again two gathers later, and in between every rank has passed the
//! barrier of the gather in the middle, which it does only after it has read.

use super::{agree, share};
use crate::error::{Error, ErrorKind, Result};
use crate::futex;
use crate::mpi::Comm;
use crate::shm::{self, SharedFile};
use crate::wait::{self, Progress};
use bytemuck::Pod;
use std::mem::size_of;
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// Bytes of a slot.
const SLOT: usize = 64;
const LINE: usize = 64;
/// The words at the head, each on a line of its own.
const HEAD: usize = 3 * LINE;

/// The board of a group on one node.
#[derive(Debug)]
pub(crate) struct Board {
    file: SharedFile,
    rank: usize,
    size: usize,
    /// World ranks.
    members: Vec<usize>,
    /// Which of the two slots is next.
    turn: AtomicU32,
}

/// The words on which ranks meet.
struct Meeting<'a> {
    arrived: &'a AtomicU32,
    generation: &'a AtomicU32,
    sleepers: &'a AtomicU32,
}

impl Meeting<'_> {
    fn generation(&self) -> u32 {
        self.generation.load(Ordering::Acquire)
    }

    /// Counts the caller, who has seen generation `now`; the last of `size` lets all go, and
    /// is told so.
    fn arrive(&self, size: usize, now: u32) -> bool {
        if (self.arrived.fetch_add(1, Ordering::AcqRel) as usize) + 1 < size {
            return false;
        }
        self.arrived.store(0, Ordering::Relaxed);
        self.generation.store(now.wrapping_add(1), Ordering::Release);
        // Either a sleeper is seen here, or it sees the new generation.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            futex::wake_all(self.generation);
        }
        true
    }

    fn wait<P: Progress + ?Sized>(
        &self,
        progress: &P,
        what: &dyn Fn() -> String,
        now: u32,
    ) -> Result<()> {
        wait::while_equal(progress, what, self.generation, now, Some(self.sleepers))
    }
}

/// A list of ranks, not too long.
fn some(ranks: &[usize]) -> String {
    const MOST: usize = 16;
    let mut texts: Vec<String> = ranks.iter().take(MOST).map(usize::to_string).collect();
    if ranks.len() > MOST {
        texts.push("...".into());
    }
    texts.join(", ")
}

impl Board {
    /// Makes the board of a communicator whose ranks share a node. Collective;
    /// `None` where there is no shared memory for it.
    pub(crate) fn create<P: Progress + ?Sized>(
        comm: &Comm,
        members: &[usize],
        dir: &str,
        progress: &P,
    ) -> Result<Option<Board>> {
        let (rank, size) = (comm.rank(), comm.size());
        let len = (HEAD + size * (2 * SLOT + LINE)).next_multiple_of(shm::page());
        let Ok(file) = share(comm, progress, dir, 0, len) else {
            return Ok(None);
        };
        let reserved = match rank {
            0 => file.reserve(0, len),
            _ => Ok(()),
        };
        let reserved = reserved.map_err(|e| {
            Error::new(ErrorKind::Memory, format!("{len} bytes of shared memory: {e}"))
        });
        match agree(comm, progress, reserved) {
            Ok(()) => {
                let members = members.to_vec();
                Ok(Some(Board { file, rank, size, members, turn: AtomicU32::new(0) }))
            }
            Err(_) => Ok(None),
        }
    }

    fn word(&self, line: usize) -> &AtomicU32 {
        // SAFETY: the file is mapped while the board lives; its head consists of
        // aligned words that are only used as atomics, and begins as zeros.
        unsafe { &*self.file.base().add(line * LINE).cast() }
    }

    /// Where a rank notes that it has arrived: the generation that follows.
    fn seen(&self, rank: usize) -> &AtomicU32 {
        let at = HEAD + 2 * self.size * SLOT + rank * LINE;
        // SAFETY: as for `word`; these words lie behind the slots.
        unsafe { &*self.file.base().add(at).cast() }
    }

    fn missing(&self, now: u32) -> Vec<usize> {
        let next = now.wrapping_add(1);
        let is_missing = |rank: &usize| self.seen(*rank).load(Ordering::Relaxed) != next;
        (0..self.size).filter(is_missing).map(|rank| self.members[rank]).collect()
    }

    fn slot(&self, turn: u32, rank: usize) -> *mut u8 {
        self.file.base().wrapping_add(HEAD + (turn as usize * self.size + rank) * SLOT)
    }

    /// Waits until all ranks have called.
    pub(crate) fn barrier<P: Progress + ?Sized>(&self, progress: &P) -> Result<()> {
        // A thread that may not wait must not count as arrived.
        progress.may_wait()?;
        let meeting =
            Meeting { arrived: self.word(0), generation: self.word(1), sleepers: self.word(2) };
        let now = meeting.generation();
        self.seen(self.rank).store(now.wrapping_add(1), Ordering::Relaxed);
        if !meeting.arrive(self.size, now) {
            let what = || {
                let missing = self.missing(now);
                let here = self.size - missing.len();
                let ranks = if missing.len() == 1 { "rank" } else { "ranks" };
                format!(
                    "a barrier at which {here} of {} ranks have arrived, without {ranks} {}",
                    self.size,
                    some(&missing)
                )
            };
            return meeting.wait(progress, &what, now);
        }
        Ok(())
    }

    /// Whether values of a type fit into a slot.
    pub(crate) const fn holds<T>() -> bool {
        size_of::<T>() <= SLOT
    }

    /// Every rank's `item`, in the order of ranks.
    pub(crate) fn allgather<T: Pod, P: Progress + ?Sized>(
        &self,
        progress: &P,
        item: &T,
    ) -> Result<Vec<T>> {
        assert!(Self::holds::<T>(), "the value is larger than a slot");
        let turn = self.turn.fetch_xor(1, Ordering::Relaxed) & 1;
        // SAFETY: the slot is ours, has room for the value, and no rank reads it
        // now (see the module's invariant).
        unsafe { self.slot(turn, self.rank).cast::<T>().write_unaligned(*item) };
        self.barrier(progress)?;
        // SAFETY: every rank has written its slot before the barrier, and writes
        // it again only after we have passed the next one.
        let read = |rank| unsafe { self.slot(turn, rank).cast::<T>().read_unaligned() };
        Ok((0..self.size).map(read).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::Boot;
    use std::cell::UnsafeCell;

    struct Plain(UnsafeCell<[u32; 3]>);
    // SAFETY: a thread writes its own number before a barrier, and all are read after it.
    unsafe impl Sync for Plain {}

    /// What was written before a barrier is read after it, without any other order.
    #[test]
    fn all_meet_and_see_what_was_done_before() {
        const RANKS: usize = 3;
        const ROUNDS: u32 = if cfg!(miri) { 6 } else { 3000 };
        let words = [AtomicU32::new(0), AtomicU32::new(u32::MAX - 2), AtomicU32::new(0)];
        let numbers = Plain(UnsafeCell::new([0; RANKS]));
        let (words, numbers) = (&words, &numbers);
        std::thread::scope(|scope| {
            for rank in 0..RANKS {
                scope.spawn(move || {
                    let barrier = || {
                        let [arrived, generation, sleepers] = words;
                        let meeting = Meeting { arrived, generation, sleepers };
                        let now = meeting.generation();
                        if !meeting.arrive(RANKS, now) {
                            meeting.wait(&Boot, &|| "the others".into(), now).unwrap();
                        }
                    };
                    for round in 1..=ROUNDS {
                        // SAFETY: the number is this thread's, and nobody reads it now.
                        unsafe { numbers.0.get().cast::<u32>().add(rank).write(round) };
                        barrier();
                        // SAFETY: nobody writes between the two barriers.
                        assert_eq!(unsafe { *numbers.0.get() }, [round; RANKS]);
                        barrier();
                    }
                });
            }
        });
        assert_eq!(words[0].load(Ordering::Relaxed), 0);
    }
}
