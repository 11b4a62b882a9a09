//! The bell of a class: bits in shared memory by which peers report that they have written, so that
//! one cache line is polled for all connections. A thread that is about to sleep sets a flag; a
//! peer that finds it clears it and writes the class's eventfd.
//!
//! Invariant: a peer sets its bit after it has written, and then reads the flag. The class sets the
//! flag, and then reads the bits. All four accesses are sequentially consistent, so either the peer
//! finds the flag, or the class finds the bit.

use super::mapping::Mapping;
use crate::na::links::poller;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

const WORDS: usize = 8;
/// Number of bits; peers whose numbers are equal modulo this number share a bit.
const BITS: u32 = WORDS as u32 * 64;
pub(super) const SIZE: usize = 4096;

#[repr(C, align(64))]
struct Shared {
    rung: [AtomicU64; WORDS],
    asleep: Asleep,
}

#[repr(C, align(64))]
struct Asleep(AtomicU32);

const _: () = assert!(size_of::<Shared>() <= SIZE);

#[derive(Debug)]
pub(super) struct Bell(Mapping);

impl Bell {
    /// Creates a bell. Returns it with the descriptor to pass to peers.
    pub fn create() -> io::Result<(Bell, OwnedFd)> {
        let (mapping, file) = Mapping::create(SIZE)?;
        Ok((Bell(mapping), file))
    }

    pub fn open(file: &OwnedFd) -> io::Result<Bell> {
        Ok(Bell(Mapping::open(file, SIZE)?))
    }

    fn shared(&self) -> &Shared {
        // SAFETY: the mapping has `SIZE` bytes and is aligned to a page. Its contents are atomics,
        // and every value of an atomic is valid.
        unsafe { &*self.0.base().cast() }
    }

    /// Reports peer `n`, and wakes the class through `waker` if a thread sleeps.
    #[inline]
    pub fn ring(&self, n: u32, waker: impl AsFd) {
        let shared = self.shared();
        let bit = n % BITS;
        shared.rung[(bit / 64) as usize].fetch_or(1 << (bit % 64), SeqCst);
        if shared.asleep.0.load(SeqCst) != 0 && shared.asleep.0.swap(0, SeqCst) != 0 {
            poller::wake(waker.as_fd());
        }
    }

    /// Calls `report` with the peers, among the first `count()`, that may have been reported.
    #[inline]
    pub fn take(&self, count: impl Fn() -> u32, mut report: impl FnMut(u32)) {
        for (word, at) in self.shared().rung.iter().zip((0u32..).step_by(64)) {
            if word.load(SeqCst) == 0 {
                continue;
            }
            let mut bits = word.swap(0, SeqCst);
            while bits != 0 {
                let first = at + bits.trailing_zeros();
                bits &= bits - 1;
                (first..count()).step_by(BITS as usize).for_each(&mut report);
            }
        }
    }

    pub fn set_asleep(&self, asleep: bool) {
        self.shared().asleep.0.store(u32::from(asleep), SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};

    #[test]
    fn every_ring_is_heard() {
        let (ours, file) = Bell::create().unwrap();
        let theirs = Bell::open(&file).unwrap();
        let waker = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        let heard = |count| {
            let mut heard = Vec::new();
            ours.take(|| count, |n| heard.push(n));
            heard
        };
        for n in [0, 63, 64, 511, 512, 1000] {
            theirs.ring(n, &waker);
            let want: Vec<u32> = (n % BITS..1200).step_by(BITS as usize).collect();
            assert_eq!(heard(1200), want, "{n}");
            assert_eq!(heard(1200), []);
        }
        assert!(rustix::io::read(&waker, &mut [0; 8]).is_err(), "nobody slept");
        ours.set_asleep(true);
        theirs.ring(3, &waker);
        theirs.ring(4, &waker);
        let mut count = [0; 8];
        rustix::io::read(&waker, &mut count).unwrap();
        assert_eq!(u64::from_ne_bytes(count), 1, "a sleeper is woken once");
        assert_eq!(heard(5), [3, 4]);
    }
}
