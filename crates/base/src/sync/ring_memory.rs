//! A ring in memory that processes share, and its use by ranks of a job, which trust each other.

use super::ring::{Cell, Counts, INLINE, LINE, Memory, Reader, Writer};

const HEAD: usize = LINE as usize;
const BROKEN: &str = "a rank of this job has overwritten a ring";

/// Returns the length in bytes of a ring whose store has `store` bytes.
pub const fn bytes(store: usize) -> usize {
    HEAD + (Mapped::CELLS * LINE) as usize + store
}

/// The memory of one side of a ring.
#[derive(Debug)]
pub struct Mapped {
    base: *mut u8,
    store: usize,
}

// SAFETY: processes share the memory. One thread at a time uses each end.
unsafe impl Send for Mapped {}

impl Mapped {
    /// # Safety
    /// `base` must point to [`bytes`] bytes of shared memory, aligned to a cache line and mapped
    /// while the value lives. All other accesses must be by the ring of the other side, or atomic.
    pub unsafe fn new(base: *mut u8, store: usize) -> Mapped {
        Mapped { base, store }
    }

    fn line(&self, n: u64) -> *mut u8 {
        self.base.wrapping_add(HEAD + (n * LINE) as usize)
    }
}

impl Memory for Mapped {
    type Place = *mut u8;
    const CELLS: u64 = 256;

    fn store(&self) -> u64 {
        self.store as u64
    }

    fn counts(&self) -> &Counts {
        const { assert!(size_of::<Counts>() <= HEAD) };
        // SAFETY: the creator of this value guarantees the memory, which begins with the counters.
        unsafe { &*self.base.cast() }
    }

    #[inline]
    fn cell(&self, n: u64) -> &Cell {
        // SAFETY: as above. The cells follow, and each of them begins with these atomics.
        unsafe { &*self.line(n).cast() }
    }

    #[inline]
    fn in_cell(&self, n: u64) -> *mut u8 {
        self.line(n).wrapping_add(LINE as usize - INLINE)
    }

    #[inline]
    fn in_store(&self, offset: u64) -> *mut u8 {
        self.line(Self::CELLS).wrapping_add(offset as usize)
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

impl Writer<Mapped> {
    /// Writes a record that consists of `parts`. Returns false if there is no room.
    #[inline]
    pub fn write(&mut self, parts: &[&[u8]]) -> bool {
        let size = parts.iter().map(|p| p.len()).sum::<usize>();
        let fill = |mut to: *mut u8| {
            for part in parts {
                // SAFETY: the record has the length of all parts.
                unsafe { copy(part, to) };
                to = to.wrapping_add(part.len());
            }
        };
        self.write_with(size, fill).expect(BROKEN)
    }
}

impl Reader<Mapped> {
    /// Returns the next record in place, if it has arrived.
    #[inline]
    pub fn peek(&self) -> Option<&[u8]> {
        let (from, size) = self.next().expect(BROKEN)?;
        // SAFETY: the record lies within the ring. Its writer, a rank of this job, keeps it until
        // it is counted.
        Some(unsafe { std::slice::from_raw_parts(from, size) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

    const STORE: usize = 4096;

    /// More than the ring has cells.
    const RECORDS: u64 = if cfg!(miri) { 300 } else { 50_000 };

    #[repr(align(64))]
    struct Words([AtomicU64; bytes(STORE) / 8]);

    fn memory() -> Box<Words> {
        Box::new(Words([const { AtomicU64::new(0) }; _]))
    }

    /// Returns one side of the ring.
    fn side(base: &AtomicPtr<u8>) -> Mapped {
        // SAFETY: the memory of a test outlives its rings.
        unsafe { Mapped::new(base.load(Ordering::Relaxed), STORE) }
    }

    #[test]
    fn records_arrive_in_order_and_whole() {
        let words = memory();
        let base = &AtomicPtr::new((&raw const *words).cast_mut().cast());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut writer = Writer::new(side(base));
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
            let mut reader = Reader::new(side(base));
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
                let size = record.len();
                reader.advance(size);
            }
            assert!(!reader.ready());
        });
    }

    #[test]
    fn records_for_which_there_is_room_together_all_go() {
        const MAX_RECORD: usize = 500;
        let words = memory();
        let base = &AtomicPtr::new((&raw const *words).cast_mut().cast());
        let (mut writer, mut reader) = (Writer::new(side(base)), Reader::new(side(base)));
        let (mut went, mut refused) = (0, 0);
        let rounds = if cfg!(miri) { 400usize } else { 2000 };
        for round in 0..rounds {
            let sizes: Vec<usize> =
                (0..1 + round % 7).map(|n| (round * 131 + n * 97) % MAX_RECORD).collect();
            if writer.has_room_for(sizes.len(), sizes.iter().sum(), MAX_RECORD) == Ok(true) {
                assert!(sizes.iter().all(|&size| writer.write(&[&[7; MAX_RECORD][..size]])));
                went += 1;
            } else {
                refused += 1;
            }
            for _ in 0..round % 5 {
                if let Some(size) = reader.peek().map(<[u8]>::len) {
                    reader.advance(size);
                }
            }
        }
        assert!(went > rounds / 20 && refused > rounds / 20, "{went} went, {refused} did not");
    }

    /// A peer changes all that it shares between any two steps: each record lies within the ring.
    #[test]
    fn a_hostile_peer_leads_no_side_out_of_the_ring() {
        let words = memory();
        let base = &AtomicPtr::new((&raw const *words).cast_mut().cast());
        let within = |at: *mut u8, len: usize| {
            let start = at as usize - base.load(Ordering::Relaxed) as usize;
            assert!(start >= HEAD && start + len <= bytes(STORE), "{start} {len}");
        };
        let mut random = fastrand::Rng::with_seed(7);
        // About half of its numbers are possible.
        let mut change = |written: u64, read: u64| {
            let put = |at: usize, number| words.0[at].store(number, Ordering::Relaxed);
            put(0, written.wrapping_sub(random.u64(..2 * Mapped::CELLS)));
            put(1, random.u64(..2 * STORE as u64));
            let cell = 8 * (1 + read % Mapped::CELLS) as usize;
            let stamp = (read / Mapped::CELLS) as u32 | 1 << 31;
            let numbers = words.0[cell].as_ptr().cast::<[AtomicU32; 2]>();
            // SAFETY: the ring accesses both halves of the word as atomics.
            let numbers = unsafe { &*numbers };
            numbers[0].store(stamp, Ordering::Relaxed);
            numbers[1].store(random.u32(..STORE as u32 + 1000), Ordering::Relaxed);
        };
        let (mut writer, mut reader) = (Writer::new(side(base)), Reader::new(side(base)));
        let (mut passed, mut refused, mut read) = ([0; 2], [0; 2], 0);
        for n in 0..if cfg!(miri) { 1000 } else { 100_000 } {
            change(writer.written(), read);
            let size = 1 + n % (STORE / 2);
            match writer.write_with(size, |to| within(to, size)) {
                Ok(wrote) => passed[0] += usize::from(wrote),
                // The connection would end: another one begins.
                Err(_) => (writer, refused[0]) = (Writer::new(side(base)), refused[0] + 1),
            }
            if let Ok(next) = reader.next() {
                let (from, size) = next.expect("its stamp is right");
                within(from, size);
                change(writer.written(), read);
                reader.advance(size);
                (passed[1], read) = (passed[1] + 1, read + 1);
            } else {
                (reader, refused[1], read) = (Reader::new(side(base)), refused[1] + 1, 0);
            }
        }
        assert!(passed.iter().chain(&refused).all(|&n| n > 50), "{passed:?} {refused:?}");
    }
}
