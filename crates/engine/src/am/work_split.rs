//! A job whose parts are divided between two ranks.
//!
//! The owner of the job takes parts from the front, a helper from the back, until the two meet and
//! the helper reports its end. A job has a number, so a late helper takes nothing.
//!
//! Invariants: no part is taken twice, and a helper takes parts of the named job only. A helper
//! that has taken a part reports that it has finished, unless its process dies.

use portolan_base::sync::atomic::{AtomicU64, Ordering};

/// One job at a time, with one helper. In shared memory, initially zero.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct SplitJob {
    /// The job's number in the upper half, and below it the first part that is not taken, and the
    /// first that the helper has taken.
    word: AtomicU64,
    /// The last job that a helper has finished, and whether the helper failed.
    done: AtomicU64,
}

const FAILED: u64 = 1;

fn number(word: u64) -> u32 {
    (word >> 32) as u32
}

fn first(word: u64) -> u16 {
    (word >> 16) as u16
}

fn end(word: u64) -> u16 {
    word as u16
}

fn word(job: u32, first: u16, end: u16) -> u64 {
    u64::from(job) << 32 | u64::from(first) << 16 | u64::from(end)
}

impl SplitJob {
    /// Returns the number of the job. The previous one must be over.
    pub fn open(&self, chunks: u16) -> u32 {
        let job = number(self.word.load(Ordering::Relaxed)).wrapping_add(1);
        self.word.store(word(job, 0, chunks), Ordering::Release);
        job
    }

    /// Changes (first, end). Returns the old pair, or `None` if the job is over or `new` declines.
    fn change(&self, job: u32, new: impl Fn(u16, u16) -> Option<(u16, u16)>) -> Option<(u16, u16)> {
        let mut old = self.word.load(Ordering::Acquire);
        loop {
            let ends = (first(old), end(old));
            let (first, end) = new(ends.0, ends.1).filter(|_| number(old) == job)?;
            let new = word(job, first, end);
            match self.word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(ends),
                Err(now) => old = now,
            }
        }
    }

    pub fn pop_front(&self, job: u32) -> Option<u16> {
        let taken = self.change(job, |first, end| (first < end).then(|| (first + 1, end)))?;
        Some(taken.0)
    }

    pub fn pop_back(&self, job: u32) -> Option<u16> {
        let taken = self.change(job, |first, end| (first < end).then(|| (first, end - 1)))?;
        Some(taken.1 - 1)
    }

    /// Ends the job. Returns the index of the first part that the helper has taken.
    pub fn close(&self, job: u32) -> Option<u16> {
        Some(self.change(job, |_, end| Some((end, end)))?.1)
    }

    /// The helper has finished; `well` if it could do all its parts.
    pub fn leave(&self, job: u32, well: bool) {
        self.done.store(word(job, 0, 0) | if well { 0 } else { FAILED }, Ordering::Release);
    }

    /// `None` if the helper has not finished the job.
    pub fn left(&self, job: u32) -> Option<bool> {
        let done = self.done.load(Ordering::Acquire);
        (number(done) == job).then_some(done & FAILED == 0)
    }
}

/// Number of jobs that a rank can offer at a time.
pub const JOBS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_gives_nothing() {
        let claims = SplitJob::default();
        let before = claims.open(3);
        assert_eq!((claims.pop_front(before), claims.close(before)), (Some(0), Some(3)));
        assert_eq!(claims.pop_back(before), None);
        let job = claims.open(u16::MAX);
        assert_eq!((claims.pop_back(before), claims.pop_front(before)), (None, None));
        assert_eq!((claims.close(before), claims.pop_back(job)), (None, Some(u16::MAX - 1)));
        claims.leave(job, false);
        assert_eq!((claims.left(before), claims.left(job)), (None, Some(false)));
    }
}
