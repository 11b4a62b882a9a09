//! A ring of records from one process to another one, in memory that both share.
//!
//! The ring consists of *cells* of one cache line and of a *store*. A record of up to [`INLINE`]
//! bytes lies in its cell, so a small message moves one cache line. Longer records lie in the store,
//! in order, so both sides compute their positions. (Cells of two lines are slower, although
//! processors fetch lines in pairs.) A cell is full when its stamp is the number of the present lap,
//! so the reader reads the cell alone, and neither side clears anything.
//!
//! The writer reads the reader's two counters only when the ring seems full. One thread writes at
//! a time, and one thread reads, because the callers hold a lock on each side.
//!
//! **Room.** A writer that finds no room, and does not poll for it, sets `wants_room` and then
//! looks once more. The reader counts records as done and then clears `wants_room`. Both exchange the
//! value, so the later one sees what the other one did before: either the writer finds the room, or
//! the reader finds the request and wakes the writer.
//!
//! **Trust.** Ranks of a job trust each other and read records in place
//! ([`super::ring_memory`]). A process that is connected through shared memory is not trusted: it
//! may store any value at any time. So each side keeps its own position in its own memory and checks
//! what it reads. Whatever the peer stores, a record lies within the ring, and the peer delays or
//! damages only its own bytes.
//!
//! Invariant: the writer changes a cell, or bytes of the store, only after the reader has counted
//! them as done. The stamp is stored last, with release order.

use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub const LINE: u64 = 64;
/// Length in bytes of the longest record that lies in its cell.
pub const INLINE: usize = LINE as usize - 8;

/// The state of the reader, and a request of the writer.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Counts {
    taken: AtomicU64,
    /// Bytes of the store that the reader has finished, including skipped ones.
    freed: AtomicU64,
    /// Set by the writer.
    wants_room: AtomicU32,
}

/// The start of a cell. A short record follows.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Cell {
    stamp: AtomicU32,
    size: AtomicU32,
}

/// The memory of a ring, which is zero before its first use.
pub trait Memory {
    /// The place of the first byte of a record.
    type Place;
    const CELLS: u64;

    /// Returns the length of the store in bytes, a multiple of [`LINE`].
    fn store(&self) -> u64;
    fn counts(&self) -> &Counts;
    /// `n` is less than the number of cells, here and in [`Memory::in_cell`].
    fn cell(&self, n: u64) -> &Cell;
    fn in_cell(&self, n: u64) -> Self::Place;
    /// `offset` is less than the length of the store.
    fn in_store(&self, offset: u64) -> Self::Place;
}

/// The peer has stored a number that is not possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Impossible;

fn stamp(n: u64, cells: u64) -> u32 {
    // Never zero, the initial value in fresh memory, and never the stamp of the lap before.
    (n / cells) as u32 | 1 << 31
}

/// Returns the offset in the store of a record of `size` bytes that comes after `put` bytes, and the
/// number of bytes up to its end. It is contiguous, so bytes at the end of the store may be skipped.
#[inline]
fn place(put: u64, size: usize, store: u64) -> (u64, u64) {
    let offset = put % store;
    match store - offset < size as u64 {
        true => (0, put + store - offset + size as u64),
        false => (offset, put + size as u64),
    }
}

#[derive(Debug)]
pub struct Writer<M> {
    memory: M,
    next: u64,
    /// Bytes of the store up to the next record, including skipped ones.
    put: u64,
    taken: u64,
    freed: u64,
}

impl<M: Memory> Writer<M> {
    /// The ring must have one writer.
    pub fn new(memory: M) -> Writer<M> {
        assert!(memory.store().is_multiple_of(LINE) && memory.store() > 0);
        Writer { memory, next: 0, put: 0, taken: 0, freed: 0 }
    }

    /// Returns the maximum length of a record in bytes.
    pub fn longest(&self) -> usize {
        (self.memory.store() as usize / 2).max(INLINE)
    }

    /// Returns the number of records that were written.
    pub fn written(&self) -> u64 {
        self.next
    }

    /// Returns the number of records that the reader has finished.
    pub fn done(&self) -> u64 {
        self.memory.counts().taken.load(Ordering::Acquire)
    }

    /// Reads what the reader has finished.
    fn look(&mut self) -> Result<(), Impossible> {
        let possible = |own: u64, theirs, most| {
            let used = own.checked_sub(theirs).filter(|&used| used <= most);
            used.map(|_| theirs).ok_or(Impossible)
        };
        self.taken = possible(self.next, self.done(), M::CELLS)?;
        let freed = self.memory.counts().freed.load(Ordering::Acquire);
        self.freed = possible(self.put, freed, self.memory.store())?;
        Ok(())
    }

    /// Returns the place of the next record, if there is room as far as the writer knows. A record
    /// that fits in its cell does not use it.
    #[inline]
    fn known_room(&self, size: usize) -> Option<(u64, u64)> {
        if self.next - self.taken == M::CELLS {
            return None;
        }
        if size <= INLINE {
            return Some((0, self.put));
        }
        let store = self.memory.store();
        Some(place(self.put, size, store)).filter(|&(_, end)| end - self.freed <= store)
    }

    #[inline]
    fn room(&mut self, size: usize) -> Result<Option<(u64, u64)>, Impossible> {
        if let Some(place) = self.known_room(size) {
            return Ok(Some(place));
        }
        self.look()?;
        Ok(self.known_room(size))
    }

    #[inline]
    pub fn has_room(&mut self, size: usize) -> Result<bool, Impossible> {
        Ok(self.room(size)?.is_some())
    }

    /// For `records` records of `bytes` bytes in total, of at most `longest` bytes each.
    pub fn has_room_for(
        &mut self,
        records: usize,
        bytes: usize,
        longest: usize,
    ) -> Result<bool, Impossible> {
        // Each record begins on a new line, and one may skip the bytes at the end of the store.
        let most = bytes as u64 + records as u64 * LINE + longest as u64;
        self.look()?;
        Ok(self.next + records as u64 - self.taken <= M::CELLS
            && self.put + most - self.freed <= self.memory.store())
    }

    /// Writes a record of `size` bytes, which `fill` stores at a place in the ring. Returns false
    /// if there is no room.
    #[inline]
    pub fn write_with(
        &mut self,
        size: usize,
        fill: impl FnOnce(M::Place),
    ) -> Result<bool, Impossible> {
        assert!(size <= self.longest(), "a record exceeds the capacity of the ring");
        let Some((offset, end)) = self.room(size)? else { return Ok(false) };
        let n = self.next % M::CELLS;
        fill(match size <= INLINE {
            true => self.memory.in_cell(n),
            false => self.memory.in_store(offset),
        });
        self.put = end.next_multiple_of(LINE);
        let cell = self.memory.cell(n);
        cell.size.store(size as u32, Ordering::Relaxed);
        cell.stamp.store(stamp(self.next, M::CELLS), Ordering::Release);
        self.next += 1;
        Ok(true)
    }

    /// Asks the reader to wake this side when it has finished a record. The caller then tries once
    /// more before it sleeps.
    pub fn ask_for_room(&self) {
        self.memory.counts().wants_room.swap(1, Ordering::AcqRel);
    }
}

#[derive(Debug)]
pub struct Reader<M> {
    memory: M,
    next: u64,
    /// Bytes of the store up to the next record, including skipped ones.
    freed: u64,
}

impl<M: Memory> Reader<M> {
    /// The ring must have one reader.
    pub fn new(memory: M) -> Reader<M> {
        Reader { memory, next: 0, freed: 0 }
    }

    #[inline]
    fn cell(&self) -> &Cell {
        self.memory.cell(self.next % M::CELLS)
    }

    #[inline]
    pub fn ready(&self) -> bool {
        self.cell().stamp.load(Ordering::Acquire) == stamp(self.next, M::CELLS)
    }

    /// Returns the place and the length of the next record, if it has arrived. It stays in the ring
    /// until [`Reader::advance`].
    #[inline]
    pub fn next(&self) -> Result<Option<(M::Place, usize)>, Impossible> {
        if !self.ready() {
            return Ok(None);
        }
        let size = self.cell().size.load(Ordering::Relaxed) as usize;
        if size <= INLINE {
            return Ok(Some((self.memory.in_cell(self.next % M::CELLS), size)));
        }
        let store = self.memory.store();
        if size as u64 > store {
            return Err(Impossible);
        }
        Ok(Some((self.memory.in_store(place(self.freed, size, store).0), size)))
    }

    /// Counts the next record, whose length is `size`, as done.
    #[inline]
    pub fn advance(&mut self, size: usize) {
        let counts = self.memory.counts();
        if size > INLINE {
            let end = place(self.freed, size, self.memory.store()).1;
            self.freed = end.next_multiple_of(LINE);
            counts.freed.store(self.freed, Ordering::Release);
        }
        self.next += 1;
        counts.taken.store(self.next, Ordering::Release);
    }

    /// Returns whether the writer sleeps until it is woken. Called after [`Reader::advance`].
    pub fn takes_request_for_room(&self) -> bool {
        self.memory.counts().wants_room.swap(0, Ordering::AcqRel) != 0
    }
}
