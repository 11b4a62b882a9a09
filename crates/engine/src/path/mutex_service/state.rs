//! The state of a mutex, and its queue.

use std::sync::atomic::{AtomicU32, Ordering};

/// The words `holder`, `head` and `tail` (world rank + 1, or 0 for none), and for each world rank
/// the next rank in the queue and whether the mutex was granted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MutexState {
    words: *mut AtomicU32,
}

const FIXED: usize = 4;

pub(crate) fn state_bytes(ranks: usize) -> usize {
    ((FIXED + 2 * ranks) * 4).next_multiple_of(64)
}

impl MutexState {
    /// # Safety
    /// `base` must be the mapped state of a mutex.
    pub(crate) unsafe fn at(base: *mut u8) -> MutexState {
        MutexState { words: base.cast() }
    }

    fn word(&self, i: usize) -> &AtomicU32 {
        // SAFETY: the state has FIXED + 2 * ranks aligned words, and callers pass world ranks.
        unsafe { &*self.words.add(i) }
    }

    pub(crate) fn holder(&self) -> Option<usize> {
        (self.word(0).load(Ordering::Relaxed) as usize).checked_sub(1)
    }

    pub(crate) fn granted(&self, rank: usize) -> &AtomicU32 {
        self.word(FIXED + 2 * rank + 1)
    }

    fn next(&self, rank: usize) -> &AtomicU32 {
        self.word(FIXED + 2 * rank)
    }

    /// Takes the mutex for `rank` and returns true if it is free. Else returns false and, with
    /// `queue`, appends `rank` to the queue. The caller holds the stripe lock.
    pub(crate) fn acquire(&self, rank: usize, queue: bool) -> bool {
        let (holder, head, tail) = (self.word(0), self.word(1), self.word(2));
        let me = rank as u32 + 1;
        if holder.load(Ordering::Relaxed) == 0 {
            holder.store(me, Ordering::Relaxed);
            return true;
        }
        if queue {
            self.next(rank).store(0, Ordering::Relaxed);
            self.granted(rank).store(0, Ordering::Relaxed);
            match tail.swap(me, Ordering::Relaxed) {
                0 => head.store(me, Ordering::Relaxed),
                last => self.next(last as usize - 1).store(me, Ordering::Relaxed),
            }
        }
        false
    }

    /// Releases the mutex to the first rank in the queue, which the caller must notify. Returns the
    /// `holder` word as an error if it is not `rank`. The caller holds the stripe lock.
    pub(crate) fn release(&self, rank: usize) -> std::result::Result<Option<usize>, u32> {
        let (holder, head, tail) = (self.word(0), self.word(1), self.word(2));
        let found = holder.load(Ordering::Relaxed);
        if found != rank as u32 + 1 {
            return Err(found);
        }
        let first = head.load(Ordering::Relaxed);
        holder.store(first, Ordering::Relaxed);
        if first == 0 {
            return Ok(None);
        }
        let first = first as usize - 1;
        let second = self.next(first).load(Ordering::Relaxed);
        head.store(second, Ordering::Relaxed);
        if second == 0 {
            tail.store(0, Ordering::Relaxed);
        }
        Ok(Some(first))
    }

    /// Removes `rank` from the queue, or releases the mutex if `rank` holds it. Returns the rank
    /// that the caller must notify. The caller holds the stripe lock.
    pub(crate) fn withdraw(&self, rank: usize) -> Option<usize> {
        if let Ok(next) = self.release(rank) {
            return next;
        }
        let (head, tail, me) = (self.word(1), self.word(2), rank as u32 + 1);
        let (mut before, mut at) = (0, head.load(Ordering::Relaxed));
        while at != me {
            if at == 0 {
                return None;
            }
            (before, at) = (at, self.next(at as usize - 1).load(Ordering::Relaxed));
        }
        let after = self.next(rank).load(Ordering::Relaxed);
        match before {
            0 => head.store(after, Ordering::Relaxed),
            _ => self.next(before as usize - 1).store(after, Ordering::Relaxed),
        }
        if after == 0 {
            tail.store(before, Ordering::Relaxed);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_first_come_first_served() {
        let mut memory = vec![0u32; state_bytes(4) / 4];
        // SAFETY: the vector is a zeroed state for four ranks.
        let state = unsafe { MutexState::at(memory.as_mut_ptr().cast()) };
        assert!(state.acquire(2, true));
        assert!(!state.acquire(0, true));
        assert!(!state.acquire(3, true));
        assert!(!state.acquire(1, false));
        assert_eq!(state.release(0), Err(3));
        assert_eq!(state.release(2), Ok(Some(0)));
        assert!(!state.acquire(2, true));
        assert_eq!(state.release(0), Ok(Some(3)));
        assert_eq!(state.release(3), Ok(Some(2)));
        assert_eq!(state.release(2), Ok(None));
        assert!(state.acquire(1, false));
    }

    #[test]
    fn a_rank_that_gives_up_leaves_the_queue() {
        for gone in [0, 1, 2] {
            let mut memory = vec![0u32; state_bytes(4) / 4];
            // SAFETY: the vector is a zeroed state for four ranks.
            let state = unsafe { MutexState::at(memory.as_mut_ptr().cast()) };
            assert!(state.acquire(3, true));
            assert!((0..3).all(|rank| !state.acquire(rank, true)));
            assert_eq!(state.withdraw(gone), None);
            assert_eq!(state.withdraw(gone), None, "it does not wait");
            let mut holder = 3;
            for next in (0..3).filter(|&next| next != gone) {
                assert_eq!(state.release(holder), Ok(Some(next)));
                holder = next;
            }
            assert!(!state.acquire(gone, true));
            assert_eq!(state.withdraw(holder), Some(gone), "it holds the mutex");
            assert_eq!(state.release(gone), Ok(None));
        }
    }
}
