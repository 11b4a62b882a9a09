//! The state that two processes share to pass bytes: the positions of a ring, the counts of copies,
//! and the bell of a class. All are atomics, which the peer may change to any value at any time.
//!
//! **Room.** The writer owns `tail` and the reader owns `head`; both only grow. A writer that finds
//! no room sets `wants_room` and then reads `head`. The reader stores `head` and then reads
//! `wants_room`. Either the writer finds the room, or the reader finds the request and rings.
//!
//! **Data.** A peer sets its bit in the bell after it has stored `tail`, and then reads whether the
//! class sleeps. The class sets that flag, and then reads the bits. Either the peer finds the flag,
//! or the class finds the bit.
//!
//! **Copies.** A side that copies from or to the other's memory counts itself and then reads
//! `over`. The side that cuts the connection sets `over` and then reads the count. Either the copy
//! does not begin, or it is waited for.
//!
//! Invariant: these accesses are sequentially consistent. Each side keeps its own position in its
//! own memory, and checks a position of the peer each time that it reads one. So a peer can only
//! delay or damage its own bytes: a part of the ring never exceeds the ring, and a call ends after
//! at most one part per byte, whatever the peer stores.

use portolan_engine::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use portolan_engine::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::atomic::AtomicU64 as Own;

/// A value with a cache line of its own.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Line<T>(T);

#[derive(Debug, Default)]
#[repr(C)]
pub struct Positions {
    tail: Line<AtomicU64>,
    head: Line<AtomicU64>,
    wants_room: Line<AtomicU32>,
}

/// The peer has stored a position that is not possible.
#[derive(Debug, PartialEq, Eq)]
pub struct Impossible;

/// Returns the number of bytes between two positions of a ring of `size` bytes.
fn between(head: u64, tail: u64, size: usize) -> Result<usize, Impossible> {
    usize::try_from(tail.wrapping_sub(head)).ok().filter(|&len| len <= size).ok_or(Impossible)
}

/// The writing end of a ring of `SIZE` bytes, for one thread at a time.
#[derive(Debug, Default)]
pub struct Writer<const SIZE: usize> {
    tail: Own,
    their_head: Own,
}

impl<const SIZE: usize> Writer<SIZE> {
    /// Writes up to `wanted` bytes: `put(done, position, len)` stores `len` bytes, those after the
    /// first `done`, at a position of the ring. Returns their number. If some do not fit, the
    /// reader rings as soon as it has read.
    #[inline]
    pub fn write(
        &self,
        ring: &Positions,
        wanted: usize,
        mut put: impl FnMut(usize, u64, usize),
    ) -> Result<usize, Impossible> {
        let mut tail = self.tail.load(Relaxed);
        let mut room = SIZE - between(self.their_head.load(Relaxed), tail, SIZE)?;
        let (mut done, mut asked) = (0, false);
        loop {
            let len = room.min(wanted - done);
            if len > 0 {
                put(done, tail, len);
                (done, tail) = (done + len, tail.wrapping_add(len as u64));
                self.tail.store(tail, Relaxed);
                // The reader can make room only if it sees the bytes.
                ring.tail.0.store(tail, Release);
            }
            if done == wanted || asked {
                return Ok(done);
            }
            let mut head = ring.head.0.load(SeqCst);
            // The ring is full, so another position than the last one means that there is room.
            if head == self.their_head.load(Relaxed) {
                ring.wants_room.0.store(1, SeqCst);
                asked = true;
                head = ring.head.0.load(SeqCst);
            }
            room = SIZE - between(head, tail, SIZE)?;
            self.their_head.store(head, Relaxed);
        }
    }
}

/// The reading end of a ring of `SIZE` bytes, for one thread at a time.
#[derive(Debug, Default)]
pub struct Reader<const SIZE: usize> {
    head: Own,
}

impl<const SIZE: usize> Reader<SIZE> {
    /// Reads up to `wanted` bytes: `get(position, len)` loads them. Returns their number, and
    /// whether the writer wants to be rung.
    #[inline]
    pub fn read(
        &self,
        ring: &Positions,
        wanted: usize,
        get: impl FnOnce(u64, usize),
    ) -> Result<(usize, bool), Impossible> {
        let head = self.head.load(Relaxed);
        let len = between(head, ring.tail.0.load(Acquire), SIZE)?.min(wanted);
        if len == 0 {
            return Ok((0, false));
        }
        get(head, len);
        let head = head.wrapping_add(len as u64);
        self.head.store(head, Relaxed);
        ring.head.0.store(head, SeqCst);
        let wants_room = ring.wants_room.0.load(SeqCst) != 0;
        if wants_room {
            ring.wants_room.0.store(0, SeqCst);
        }
        Ok((len, wants_room))
    }
}

/// The copies of one side from and to the memory of the other.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Copies {
    in_progress: AtomicU32,
    over: AtomicU32,
}

impl Copies {
    /// Calls `copy` unless the other side has forbidden copies.
    pub fn run(&self, copy: impl FnOnce()) {
        self.in_progress.fetch_add(1, SeqCst);
        if self.over.load(SeqCst) == 0 {
            copy();
        }
        self.in_progress.fetch_sub(1, SeqCst);
    }

    /// Forbids copies. Those that have begun end later ([`Copies::is_any`]).
    pub fn forbid(&self) {
        self.over.store(1, SeqCst);
    }

    pub fn is_any(&self) -> bool {
        self.in_progress.load(SeqCst) != 0
    }
}

/// The bell of a class, with 64 bits per word. Peers whose numbers are equal modulo the number of
/// bits share one.
#[derive(Debug)]
#[repr(C)]
pub struct Bits<const WORDS: usize> {
    rung: Line<[AtomicU64; WORDS]>,
    asleep: Line<AtomicU32>,
}

impl<const WORDS: usize> Default for Bits<WORDS> {
    fn default() -> Bits<WORDS> {
        Bits { rung: Line(std::array::from_fn(|_| AtomicU64::default())), asleep: Line::default() }
    }
}

impl<const WORDS: usize> Bits<WORDS> {
    pub const BITS: u32 = WORDS as u32 * 64;

    /// Reports peer `n`. Calls `wake` if a thread of the class sleeps.
    #[inline]
    pub fn ring(&self, n: u32, wake: impl FnOnce()) {
        let bit = n % Self::BITS;
        self.rung.0[(bit / 64) as usize].fetch_or(1 << (bit % 64), SeqCst);
        if self.asleep.0.load(SeqCst) != 0 && self.asleep.0.swap(0, SeqCst) != 0 {
            wake();
        }
    }

    /// Calls `report` with the peers, among the first `count()`, that may have been reported.
    #[inline]
    pub fn take(&self, count: impl Fn() -> u32, mut report: impl FnMut(u32)) {
        for (word, at) in self.rung.0.iter().zip((0u32..).step_by(64)) {
            if word.load(SeqCst) == 0 {
                continue;
            }
            let mut bits = word.swap(0, SeqCst);
            while bits != 0 {
                let first = at + bits.trailing_zeros();
                bits &= bits - 1;
                (first..count()).step_by(Self::BITS as usize).for_each(&mut report);
            }
        }
    }

    pub fn set_asleep(&self, asleep: bool) {
        self.asleep.0.store(u32::from(asleep), SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    const SIZE: usize = 1000;

    /// Positions around `own`, around the ends of the ring, and far away.
    fn positions(own: u64) -> Vec<u64> {
        let near = [0, 1, 2, SIZE as u64 - 1, SIZE as u64, SIZE as u64 + 1, 1 << 32, 1 << 63];
        near.iter().flat_map(|n| [own.wrapping_add(*n), own.wrapping_sub(*n), *n]).collect()
    }

    #[test]
    fn a_reader_takes_only_what_is_possible() {
        for own in positions(0) {
            for tail in positions(own) {
                let (ring, reader) = (Positions::default(), Reader::<SIZE>::default());
                reader.head.store(own, Relaxed);
                ring.tail.0.store(tail, Relaxed);
                let come = tail.wrapping_sub(own);
                let mut got = 0;
                let read = reader.read(&ring, 70, |at, len| {
                    assert_eq!(at, own);
                    got = len;
                });
                if come > SIZE as u64 {
                    assert_eq!((read, got), (Err(Impossible), 0), "{own} {tail}");
                } else {
                    assert_eq!(got, 70.min(come as usize), "{own} {tail}");
                    assert_eq!(read, Ok((got, false)));
                }
            }
        }
    }

    #[test]
    fn a_writer_uses_only_the_room_that_is_possible() {
        for own in positions(0) {
            for head in positions(own) {
                let (ring, writer) = (Positions::default(), Writer::<SIZE>::default());
                // The ring was full when the writer looked last.
                writer.tail.store(own, Relaxed);
                writer.their_head.store(own.wrapping_sub(SIZE as u64), Relaxed);
                ring.head.0.store(head, Relaxed);
                let used = own.wrapping_sub(head);
                let mut put = 0;
                let written = writer.write(&ring, 70, |done, at, len| {
                    assert_eq!((done, at), (0, own));
                    put = len;
                });
                if used > SIZE as u64 {
                    assert_eq!((written, put), (Err(Impossible), 0), "{own} {head}");
                } else {
                    assert_eq!(put, 70.min(SIZE - used as usize), "{own} {head}");
                    assert_eq!(written, Ok(put));
                    assert_eq!(ring.wants_room.0.load(Relaxed), u32::from(put < 70));
                }
            }
        }
    }

    /// A peer changes all that it shares, at any moment: each call ends, and stays in the ring.
    #[test]
    fn a_hostile_peer_keeps_no_call_and_leads_none_astray() {
        let (ring, over) = (Positions::default(), AtomicBool::new(false));
        // The positions that the peer knows, so that about half of its own are possible.
        let (told_tail, told_head) = (Own::new(0), Own::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = fastrand::Rng::with_seed(7);
                while !over.load(Relaxed) {
                    let [ahead, behind] = [(); 2].map(|()| random.u64(..2 * SIZE as u64));
                    ring.tail.0.store(told_head.load(Relaxed).wrapping_add(ahead), Relaxed);
                    ring.head.0.store(told_tail.load(Relaxed).wrapping_sub(behind), Relaxed);
                    ring.wants_room.0.store((ahead & 1) as u32, Relaxed);
                    std::thread::yield_now();
                }
            });
            let (mut writer, mut reader) = (Writer::<SIZE>::default(), Reader::<SIZE>::default());
            let (mut calls, mut passed, mut refused) = (0, 0, 0);
            let least = if cfg!(miri) { 200 } else { 200_000 };
            while calls < least || passed == 0 || refused == 0 {
                calls += 1;
                let wanted = 1 + calls % (2 * SIZE);
                let mut parts = 0;
                let written = writer.write(&ring, wanted, |done, at, len| {
                    parts += 1;
                    assert!(len > 0 && len <= SIZE && done + len <= wanted && parts <= wanted);
                    told_tail.store(at.wrapping_add(len as u64), Relaxed);
                });
                let read = reader.read(&ring, wanted, |at, len| {
                    assert!(len > 0 && len <= SIZE && len <= wanted);
                    told_head.store(at.wrapping_add(len as u64), Relaxed);
                });
                passed += usize::from(written.is_ok()) + usize::from(read.is_ok());
                // The connection would end: another one begins.
                if written.is_err() {
                    (writer, refused) = (Writer::default(), refused + 1);
                    told_tail.store(0, Relaxed);
                }
                if read.is_err() {
                    (reader, refused) = (Reader::default(), refused + 1);
                    told_head.store(0, Relaxed);
                }
                if calls % 64 == 0 {
                    std::thread::yield_now();
                }
            }
            over.store(true, Relaxed);
        });
    }

    #[test]
    fn a_forbidden_copy_does_not_begin() {
        let copies = Copies::default();
        let mut copied = 0;
        copies.run(|| {
            assert!(copies.is_any());
            copied += 1;
        });
        copies.forbid();
        copies.run(|| copied += 1);
        assert!(copied == 1 && !copies.is_any());
    }

    #[test]
    fn every_ring_is_heard() {
        let (bits, woken) = (Bits::<8>::default(), std::cell::Cell::new(0));
        let wake = || woken.set(woken.get() + 1);
        let heard = |count| {
            let mut heard = Vec::new();
            bits.take(|| count, |n| heard.push(n));
            heard
        };
        for n in [0, 63, 64, 511, 512, 1000] {
            bits.ring(n, wake);
            let want: Vec<u32> = (n % 512..1200).step_by(512).collect();
            assert_eq!(heard(1200), want, "{n}");
            assert_eq!(heard(1200), []);
        }
        assert_eq!(woken.get(), 0, "nobody slept");
        bits.set_asleep(true);
        bits.ring(3, wake);
        bits.ring(4, wake);
        assert_eq!(woken.get(), 1, "a sleeper is woken once");
        assert_eq!(heard(5), [3, 4]);
    }
}
