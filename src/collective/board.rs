//! A page of shared memory on which the ranks of a group meet.
//!
//! Ranks that share a node need no messages to wait for each other. The board
//! holds a count of those who have arrived, a generation that the last one
//! advances, and two slots for each rank, used in turn, for small gathers. A
//! rank that waits long sleeps on the generation.
//!
//! Invariant: nobody writes a slot while another rank may still read it. A slot
//! is written again two gathers later, and in between every rank has passed the
//! barrier of the gather in the middle, which it does only after it has read.

use crate::collective::agree;
use crate::error::{Error, ErrorKind, Result};
use crate::futex;
use crate::memory::shm::{self, SharedFile};
use crate::mpi::Comm;
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
pub struct Board {
    file: SharedFile,
    rank: usize,
    size: usize,
    /// Which of the two slots is next.
    turn: AtomicU32,
}

impl Board {
    /// Makes the board of a communicator whose ranks share a node. Collective;
    /// `None` where there is no shared memory for it.
    pub fn create<P: Progress + ?Sized>(
        comm: &Comm,
        dir: &str,
        progress: &P,
    ) -> Result<Option<Board>> {
        let (rank, size) = (comm.rank(), comm.size());
        let len = (HEAD + 2 * size * SLOT).next_multiple_of(shm::page());
        let Ok(file) = shm::share(comm, progress, dir, 0, len) else {
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
            Ok(()) => Ok(Some(Board { file, rank, size, turn: AtomicU32::new(0) })),
            Err(_) => Ok(None),
        }
    }

    fn word(&self, line: usize) -> &AtomicU32 {
        // SAFETY: the file is mapped while the board lives; its head consists of
        // aligned words that are only used as atomics, and begins as zeros.
        unsafe { &*self.file.base().add(line * LINE).cast() }
    }

    fn slot(&self, turn: u32, rank: usize) -> *mut u8 {
        self.file.base().wrapping_add(HEAD + (turn as usize * self.size + rank) * SLOT)
    }

    /// Waits until all ranks have called.
    pub fn barrier<P: Progress + ?Sized>(&self, progress: &P) -> Result<()> {
        // Who may not wait must not count as arrived.
        progress.may_wait()?;
        let (arrived, generation, sleepers) = (self.word(0), self.word(1), self.word(2));
        let now = generation.load(Ordering::Acquire);
        if arrived.fetch_add(1, Ordering::AcqRel) as usize + 1 < self.size {
            let what = || {
                let here = arrived.load(Ordering::Relaxed);
                format!("a barrier at which {here} of {} ranks have arrived", self.size)
            };
            return wait::while_equal(progress, &what, generation, now, Some(sleepers));
        }
        arrived.store(0, Ordering::Relaxed);
        generation.store(now.wrapping_add(1), Ordering::Release);
        // Either a sleeper is seen here, or it sees the new generation.
        fence(Ordering::SeqCst);
        if sleepers.load(Ordering::Relaxed) > 0 {
            futex::wake_all(generation);
        }
        Ok(())
    }

    /// Whether values of a type fit into a slot.
    pub const fn holds<T>() -> bool {
        size_of::<T>() <= SLOT
    }

    /// Every rank's `item`, in the order of ranks.
    pub fn allgather<T: Pod, P: Progress + ?Sized>(
        &self,
        progress: &P,
        item: &T,
    ) -> Result<Vec<T>> {
        assert!(Self::holds::<T>(), "the value is larger than a slot");
        let turn = self.turn.fetch_xor(1, Ordering::Relaxed) & 1;
        // SAFETY: the slot is ours, has room for the value, and nobody reads it
        // now (see the module's invariant).
        unsafe { self.slot(turn, self.rank).cast::<T>().write_unaligned(*item) };
        self.barrier(progress)?;
        // SAFETY: every rank has written its slot before the barrier, and writes
        // it again only after we have passed the next one.
        let read = |rank| unsafe { self.slot(turn, rank).cast::<T>().read_unaligned() };
        Ok((0..self.size).map(read).collect())
    }
}
