//! A ring of records from one rank to another rank of its node, in shared memory.
//!
//! The ring consists of *cells* of one cache line and of a *store*. A record of up to [`INLINE`]
//! bytes lies in its cell, so a small message moves one cache line. A longer record lies in the
//! store, and its cell contains its position. (Cells of two lines are slower, although processors
//! fetch lines in pairs.) A cell is full when its stamp is the number of the present lap, so the
//! reader reads the cell alone, and neither side clears anything.
//!
//! The writer reads the reader's two counters only when the ring seems full. One thread writes at a
//! time, and one thread reads, because the callers hold a lock on each side.
//!
//! Invariant: the writer changes a cell, or bytes of the store, only after the reader has counted
//! them as done. The stamp is stored last, with release order.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const LINE: usize = 64;
pub const CELLS: u64 = 256;
/// In bytes.
pub(crate) const INLINE: usize = LINE - 8;
const HEAD: usize = LINE;

#[repr(C, align(64))]
struct Cell {
    stamp: AtomicU32,
    size: u32,
    bytes: [u8; INLINE],
}

const _: () = assert!(size_of::<Cell>() == LINE);

#[repr(C)]
struct Counts {
    taken: AtomicU64,
    /// Bytes of the store that the reader has finished, including skipped ones.
    freed: AtomicU64,
}

pub const fn bytes(store: usize) -> usize {
    HEAD + CELLS as usize * LINE + store
}

#[derive(Debug, Clone, Copy)]
struct RingMemory {
    base: *mut u8,
    store: usize,
}

impl RingMemory {
    fn counts(&self) -> &Counts {
        // SAFETY: the creator of this value guarantees the memory, which begins with the counters.
        unsafe { &*self.base.cast() }
    }
    fn cell(&self, n: u64) -> *mut Cell {
        self.base.wrapping_add(HEAD + (n % CELLS) as usize * LINE).cast()
    }
    fn store_at(&self, position: u64) -> *mut u8 {
        let offset = (position % self.store as u64) as usize;
        self.base.wrapping_add(HEAD + CELLS as usize * LINE + offset)
    }
}

/// Avoids a call of `memcpy` for heads and single numbers.
///
/// # Safety
/// `to` must be valid for writes of the part's length.
#[inline]
unsafe fn copy(part: &[u8], to: *mut u8) {
    // SAFETY: the caller guarantees `to` for the part's length, which each array has.
    unsafe {
        match part.len() {
            0 => {}
            8 => to.cast::<[u8; 8]>().write_unaligned(*part.as_ptr().cast()),
            16 => to.cast::<[u8; 16]>().write_unaligned(*part.as_ptr().cast()),
            24 => to.cast::<[u8; 24]>().write_unaligned(*part.as_ptr().cast()),
            32 => to.cast::<[u8; 32]>().write_unaligned(*part.as_ptr().cast()),
            len => std::ptr::copy_nonoverlapping(part.as_ptr(), to, len),
        }
    }
}

fn stamp(n: u64) -> u32 {
    // Never zero, the initial value in a fresh file, and never the stamp of the lap before.
    (n / CELLS) as u32 | 1 << 31
}

#[derive(Debug)]
pub struct Writer {
    place: RingMemory,
    next: u64,
    put: u64,
    taken: u64,
    freed: u64,
}

// SAFETY: processes share the memory. One thread at a time uses this end.
unsafe impl Send for Writer {}

impl Writer {
    /// # Safety
    /// `base` must point to [`bytes`] bytes of shared memory, aligned to a cache line, zero before
    /// the first use, and mapped while the writer lives. There must be only one writer.
    pub unsafe fn new(base: *mut u8, store: usize) -> Writer {
        assert!(store.is_multiple_of(LINE) && store > 0);
        Writer { place: RingMemory { base, store }, next: 0, put: 0, taken: 0, freed: 0 }
    }

    pub fn longest(&self) -> usize {
        self.place.store / 2
    }

    pub fn written(&self) -> u64 {
        self.next
    }

    pub fn done(&self) -> u64 {
        self.place.counts().taken.load(Ordering::Acquire)
    }

    fn freed(&self) -> u64 {
        self.place.counts().freed.load(Ordering::Acquire)
    }

    #[inline]
    pub fn has_room(&mut self, size: usize) -> bool {
        self.room(size).is_some()
    }

    /// Returns the position of the next record in the store, if there is room. A record that fits
    /// in its cell does not use it.
    #[inline]
    fn room(&mut self, size: usize) -> Option<u64> {
        if self.next - self.taken == CELLS {
            self.taken = self.done();
            if self.next - self.taken == CELLS {
                return None;
            }
        }
        if size <= INLINE {
            return Some(self.put);
        }
        let (size, store) = (size as u64, self.place.store as u64);
        let left = store - self.put % store;
        // A record is contiguous, so bytes at the end of the store may be skipped.
        let position = if left < size { self.put + left } else { self.put };
        let end = position + size;
        if end - self.freed > store {
            self.freed = self.freed();
        }
        (end - self.freed <= store).then_some(position)
    }

    /// For `records` records of `bytes` bytes in total, of at most `longest` bytes each.
    pub(crate) fn has_room_for(&mut self, records: usize, bytes: usize, longest: usize) -> bool {
        // Each record begins on a new line, and one may skip the bytes at the end of the store.
        let most = (bytes + records * LINE + longest) as u64;
        self.taken = self.done();
        self.freed = self.freed();
        self.next + records as u64 - self.taken <= CELLS
            && self.put + most - self.freed <= self.place.store as u64
    }

    #[inline]
    pub fn write(&mut self, parts: &[&[u8]]) -> bool {
        let size = parts.iter().map(|p| p.len()).sum::<usize>();
        assert!(size <= self.longest().max(INLINE), "a record exceeds the capacity of the ring");
        let Some(position) = self.room(size) else { return false };
        let cell = self.place.cell(self.next);
        // SAFETY: `room` found that the reader is done with these bytes until the stamp.
        unsafe {
            let mut to = if size <= INLINE {
                (&raw mut (*cell).bytes).cast::<u8>()
            } else {
                (&raw mut (*cell).bytes).cast::<u64>().write_unaligned(position);
                self.put = (position + size as u64).next_multiple_of(LINE as u64);
                self.place.store_at(position)
            };
            for part in parts {
                copy(part, to);
                to = to.add(part.len());
            }
            (*cell).size = size as u32;
            (*cell).stamp.store(stamp(self.next), Ordering::Release);
        }
        self.next += 1;
        true
    }
}

#[derive(Debug)]
pub struct Reader {
    place: RingMemory,
    next: u64,
}

// SAFETY: processes share the memory. One thread at a time uses this end.
unsafe impl Send for Reader {}

impl Reader {
    /// # Safety
    /// See [`Writer::new`], with one reader instead of one writer.
    pub unsafe fn new(base: *mut u8, store: usize) -> Reader {
        Reader { place: RingMemory { base, store }, next: 0 }
    }

    #[inline]
    pub fn ready(&self) -> bool {
        let cell = self.place.cell(self.next);
        // SAFETY: the ring is mapped while the reader lives.
        unsafe { (*cell).stamp.load(Ordering::Acquire) == stamp(self.next) }
    }

    /// The record stays in the ring until [`Reader::advance`].
    #[inline]
    pub fn peek(&self) -> Option<&[u8]> {
        if !self.ready() {
            return None;
        }
        let cell = self.place.cell(self.next);
        // SAFETY: the stamp, loaded with acquire order, shows that the record is complete. The
        // writer keeps it until it is counted.
        unsafe {
            let size = (*cell).size as usize;
            let bytes = (&raw const (*cell).bytes).cast::<u8>();
            let from = if size <= INLINE {
                bytes
            } else {
                self.place.store_at(bytes.cast::<u64>().read_unaligned())
            };
            Some(std::slice::from_raw_parts(from, size))
        }
    }

    #[inline]
    pub fn advance(&mut self) {
        let cell = self.place.cell(self.next);
        // SAFETY: `peek` found this cell's stamp; the writer keeps the cell until it is counted.
        let (size, position) = unsafe {
            ((*cell).size as usize, (&raw const (*cell).bytes).cast::<u64>().read_unaligned())
        };
        let counts = self.place.counts();
        if size > INLINE {
            let end = (position + size as u64).next_multiple_of(LINE as u64);
            counts.freed.store(end, Ordering::Release);
        }
        self.next += 1;
        counts.taken.store(self.next, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicPtr;

    /// More than the ring has cells.
    const RECORDS: u64 = if cfg!(miri) { 300 } else { 50_000 };

    fn aligned(memory: &mut [[u64; 8]]) -> *mut u8 {
        let base = memory.as_mut_ptr().cast::<u8>();
        base.wrapping_add(base.align_offset(64))
    }

    #[test]
    fn records_arrive_in_order_and_whole() {
        const STORE: usize = 4096;
        let mut memory = vec![[0u64; 8]; bytes(STORE) / 64 + 1];
        let base = &AtomicPtr::new(aligned(&mut memory));
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // SAFETY: the memory outlives the scope, and there is one writer.
                let mut writer = unsafe { Writer::new(base.load(Ordering::Relaxed), STORE) };
                for n in 0..RECORDS {
                    let long = vec![n as u8; (n * 37 % 2000) as usize];
                    while !writer.write(&[&n.to_ne_bytes(), &long]) {
                        std::thread::yield_now();
                    }
                }
                assert_eq!(writer.written(), RECORDS);
                while writer.done() < RECORDS {
                    std::thread::yield_now();
                }
            });
            // SAFETY: the memory outlives the scope, and there is one reader.
            let mut reader = unsafe { Reader::new(base.load(Ordering::Relaxed), STORE) };
            for n in 0..RECORDS {
                let record = loop {
                    match reader.peek() {
                        Some(record) => break record,
                        None => std::thread::yield_now(),
                    }
                };
                assert_eq!(record[..8], n.to_ne_bytes());
                assert_eq!(record.len(), 8 + (n * 37 % 2000) as usize);
                assert_eq!(record[8..], vec![n as u8; record.len() - 8]);
                reader.advance();
            }
            assert!(!reader.ready());
        });
        drop(memory);
    }

    #[test]
    fn records_for_which_there_is_room_together_all_go() {
        const STORE: usize = 4096;
        const MAX_RECORD: usize = 500;
        let mut memory = vec![[0u64; 8]; bytes(STORE) / 64 + 1];
        let base = aligned(&mut memory);
        // SAFETY: the memory outlives both ends, and there is one writer and one reader.
        let (mut writer, mut reader) =
            unsafe { (Writer::new(base, STORE), Reader::new(base, STORE)) };
        let (mut went, mut refused) = (0, 0);
        let rounds = if cfg!(miri) { 400usize } else { 2000 };
        for round in 0..rounds {
            let sizes: Vec<usize> =
                (0..1 + round % 7).map(|n| (round * 131 + n * 97) % MAX_RECORD).collect();
            if writer.has_room_for(sizes.len(), sizes.iter().sum(), MAX_RECORD) {
                assert!(sizes.iter().all(|&size| writer.write(&[&[7; MAX_RECORD][..size]])));
                went += 1;
            } else {
                refused += 1;
            }
            for _ in 0..round % 5 {
                if reader.peek().is_some() {
                    reader.advance();
                }
            }
        }
        assert!(went > rounds / 20 && refused > rounds / 20, "{went} went, {refused} did not");
        drop(memory);
    }
}
