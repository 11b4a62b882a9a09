//! An eventcount with cheap notifications, because they are frequent and sleepers are rare. A
//! notifying thread only reads the number of sleepers, without a fence. A thread that goes to sleep
//! instead forces a fence in all threads (`membarrier`) and then checks its condition once more.
//!
//! Invariant: a thread that makes a condition true calls [`EventCount::notify`] afterwards, and a
//! waiting thread sleeps only if its condition was false after it was counted as a sleeper. Hence
//! either this check sees the change, or the notifying thread sees the sleeper.

use portolan_base::sync::atomic::{AtomicU32, Ordering};
use portolan_base::sync::membarrier;

#[derive(Debug, Default)]
pub struct EventCount {
    word: AtomicU32,
    sleepers: AtomicU32,
    /// Approximate number of notifications: concurrent ones may count as one.
    count: AtomicU32,
}

impl EventCount {
    /// Returns a value that differs from an earlier one if there was a notification in between.
    #[inline]
    pub fn now(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    pub fn sleepers(&self) -> u32 {
        self.sleepers.load(Ordering::SeqCst)
    }

    #[inline]
    pub fn notify(&self, wake: impl FnOnce(&AtomicU32)) {
        self.count.store(self.count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        membarrier::light();
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.word.fetch_add(1, Ordering::SeqCst);
            wake(&self.word);
        }
    }

    /// Calls `sleep` with the word and its current value, unless `check` returns true first.
    /// `sleep` must return once the word differs from that value. Returns the result of `check`.
    pub fn sleep<E>(
        &self,
        check: impl FnOnce() -> Result<bool, E>,
        sleep: impl FnOnce(&AtomicU32, u32),
    ) -> Result<bool, E> {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        membarrier::heavy();
        let value = self.word.load(Ordering::SeqCst);
        let found = check();
        if let Ok(false) = found {
            sleep(&self.word, value);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        found
    }
}
