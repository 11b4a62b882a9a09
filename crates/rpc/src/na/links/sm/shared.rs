//! The state that two processes share beside their rings ([`portolan_base::sync::ring`]): the
//! counts of copies, and the bell of a class. All are atomics, which the peer may change to any value
//! at any time.
//!
//! **Data.** A peer sets its bit in the bell after it has written to a ring, and then reads whether
//! the class sleeps. The class sets that flag, and then reads the bits. Either the peer finds the
//! flag, or the class finds the bit.
//!
//! **Copies.** A side that copies from or to the other's memory counts itself and then reads
//! `over`. The side that cuts the connection sets `over` and then reads the count. Either the copy
//! does not begin, or it is waited for.
//!
//! Invariant: these accesses are sequentially consistent.

use portolan_base::sync::atomic::Ordering::SeqCst;
use portolan_base::sync::atomic::{AtomicU32, AtomicU64};

/// A value with a cache line of its own.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Line<T>(T);

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
