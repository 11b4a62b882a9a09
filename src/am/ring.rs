//! A ring of records from one rank to another of its node, in shared memory.
//!
//! The ring consists of *cells* of one cache line and of a *store*. A record of up to
//! [`INLINE`] bytes lies in its cell, so that a small message is one cache line on
//! its way; a longer one lies in the store, and its cell has its position. (Cells of two
//! lines are slower, although processors fetch lines in pairs: the next line is the next cell.)
//! A cell is full when its stamp is the number of the present lap, so the reader reads the
//! cell alone, and no side clears anything.
//!
//! The writer knows how far the reader is from two counts, which it reads only
//! when the ring seems full. One thread writes at a time, and one reads: the
//! callers hold a lock each.
//!
//! Invariant: the writer touches a cell, and bytes of the store, only after the
//! reader has counted them as done; the stamp is stored last, with release.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const LINE: usize = 64;
/// Cells of a ring.
pub(crate) const CELLS: u64 = 256;
/// Bytes of a record that lie in its cell.
pub(crate) const INLINE: usize = LINE - 8;
/// The reader's counts.
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
    /// Cells done.
    taken: AtomicU64,
    /// Bytes of the store done.
    freed: AtomicU64,
}

/// Bytes of a ring whose store has `store` bytes.
pub(crate) const fn bytes(store: usize) -> usize {
    HEAD + CELLS as usize * LINE + store
}

/// Where a ring lies.
#[derive(Debug, Clone, Copy)]
struct RingMemory {
    base: *mut u8,
    store: usize,
}

impl RingMemory {
    fn counts(&self) -> &Counts {
        // SAFETY: the maker of the place vouches for the memory, which begins with
        // the counts; they are only used as atomics.
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

/// Copies a part; the sizes of heads and of a number without a call.
///
/// # Safety
/// `to` must be valid for writes of the part's length.
#[inline]
unsafe fn copy(part: &[u8], to: *mut u8) {
    // SAFETY: passed on from the caller; the bytes are copied as they are.
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

/// The stamp of the `n`th cell ever.
fn stamp(n: u64) -> u32 {
    // Never that of a fresh file, zero, and never that of the lap before.
    (n / CELLS) as u32 | 1 << 31
}

/// The writer's end.
#[derive(Debug)]
pub(crate) struct Writer {
    place: RingMemory,
    next: u64,
    put: u64,
    taken: u64,
    freed: u64,
}

// SAFETY: the memory is shared between processes anyway; one thread at a time uses
// the end.
unsafe impl Send for Writer {}

impl Writer {
    /// The writer's end of a fresh ring.
    ///
    /// # Safety
    /// `base` must be [`bytes`] bytes of shared memory, aligned to a cache line,
    /// zero before the first use, mapped while the end lives; there must be one
    /// writer.
    pub(crate) unsafe fn new(base: *mut u8, store: usize) -> Writer {
        assert!(store.is_multiple_of(LINE) && store > 0);
        Writer { place: RingMemory { base, store }, next: 0, put: 0, taken: 0, freed: 0 }
    }

    /// Longest record.
    pub(crate) fn longest(&self) -> usize {
        self.place.store / 2
    }

    /// How many records were written.
    pub(crate) fn written(&self) -> u64 {
        self.next
    }

    /// How many records the reader has done.
    pub(crate) fn done(&self) -> u64 {
        self.place.counts().taken.load(Ordering::Acquire)
    }

    /// How many bytes of the store the reader has given back.
    fn freed(&self) -> u64 {
        self.place.counts().freed.load(Ordering::Acquire)
    }

    /// Where a record of `size` bytes goes in the store.
    fn position(&self, size: usize) -> u64 {
        let store = self.place.store as u64;
        let left = store - self.put % store;
        // A record lies in one piece: what is left at the end may be skipped.
        if left < size as u64 { self.put + left } else { self.put }
    }

    /// Whether a record of `size` bytes has room now.
    #[inline]
    pub(crate) fn has_room(&mut self, size: usize) -> bool {
        if self.next - self.taken == CELLS {
            self.taken = self.done();
            if self.next - self.taken == CELLS {
                return false;
            }
        }
        if size <= INLINE {
            return true;
        }
        let end = self.position(size) + size as u64;
        if end - self.freed > self.place.store as u64 {
            self.freed = self.freed();
        }
        end - self.freed <= self.place.store as u64
    }

    /// Whether `records` records have room now that hold `bytes` bytes together, none of
    /// them more than `longest`.
    pub(crate) fn has_room_for(&mut self, records: usize, bytes: usize, longest: usize) -> bool {
        // Each begins on a line of its own, and one may skip what is left at the end.
        let most = (bytes + records * LINE + longest) as u64;
        self.taken = self.done();
        self.freed = self.freed();
        self.next + records as u64 - self.taken <= CELLS
            && self.put + most - self.freed <= self.place.store as u64
    }

    /// Writes a record that consists of `parts`; false where there is no room.
    #[inline]
    pub(crate) fn write(&mut self, parts: &[&[u8]]) -> bool {
        let size = parts.iter().map(|p| p.len()).sum::<usize>();
        assert!(size <= self.longest().max(INLINE), "a record longer than the ring takes");
        if !self.has_room(size) {
            return false;
        }
        let cell = self.place.cell(self.next);
        // SAFETY: the reader is done with this cell and these bytes of the store
        // (`has_room`), and reads neither before the stamp is there.
        unsafe {
            let mut to = if size <= INLINE {
                (&raw mut (*cell).bytes).cast::<u8>()
            } else {
                let position = self.position(size);
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

/// The reader's end.
#[derive(Debug)]
pub(crate) struct Reader {
    place: RingMemory,
    next: u64,
}

// SAFETY: as for the writer.
unsafe impl Send for Reader {}

impl Reader {
    /// The reader's end of a fresh ring.
    ///
    /// # Safety
    /// As for [`Writer::new`], with one reader.
    pub(crate) unsafe fn new(base: *mut u8, store: usize) -> Reader {
        Reader { place: RingMemory { base, store }, next: 0 }
    }

    /// Whether a record is there.
    #[inline]
    pub(crate) fn ready(&self) -> bool {
        let cell = self.place.cell(self.next);
        // SAFETY: the ring is mapped; the stamp is an atomic.
        unsafe { (*cell).stamp.load(Ordering::Acquire) == stamp(self.next) }
    }

    /// The next record, if it is there. It stays where it is until
    /// [`Reader::advance`].
    #[inline]
    pub(crate) fn peek(&self) -> Option<&[u8]> {
        if !self.ready() {
            return None;
        }
        let cell = self.place.cell(self.next);
        // SAFETY: the stamp was seen with acquire, so the record is written, and
        // the writer leaves it alone until it is counted as done.
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

    /// Counts the record that [`Reader::peek`] gave as done.
    #[inline]
    pub(crate) fn advance(&mut self) {
        let cell = self.place.cell(self.next);
        // SAFETY: as in `peek`.
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

    /// Where a ring starts in memory that holds one and a line more.
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
                // SAFETY: the memory outlives the scope and there is one writer.
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
            // SAFETY: as above, and there is one reader.
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
                assert!(record[8..].iter().all(|&b| b == n as u8));
                reader.advance();
            }
            assert!(!reader.ready());
        });
        drop(memory);
    }

    #[test]
    fn records_for_which_there_is_room_together_all_go() {
        const STORE: usize = 4096;
        const LONGEST: usize = 500;
        let mut memory = vec![[0u64; 8]; bytes(STORE) / 64 + 1];
        let base = aligned(&mut memory);
        // SAFETY: the memory outlives both ends, of which there is one each.
        let (mut writer, mut reader) =
            unsafe { (Writer::new(base, STORE), Reader::new(base, STORE)) };
        let (mut went, mut refused) = (0, 0);
        for round in 0..2000usize {
            let sizes: Vec<usize> =
                (0..1 + round % 7).map(|n| (round * 131 + n * 97) % LONGEST).collect();
            if writer.has_room_for(sizes.len(), sizes.iter().sum(), LONGEST) {
                assert!(sizes.iter().all(|&size| writer.write(&[&[7; LONGEST][..size]])));
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
        assert!(went > 100 && refused > 100, "{went} went, {refused} did not");
        drop(memory);
    }
}
