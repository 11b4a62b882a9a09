//! An eventcount: notifying is cheap, sleeping pays.
//!
//! Notifications are many and sleepers are rare, so a notifying thread only reads the
//! number of sleepers, without a fence; a thread that goes to sleep puts a fence into all
//! threads ([`asymmetric`]) and checks its condition once more.
//!
//! Invariant: a thread that makes a condition true calls [`EventCount::notify`] afterwards;
//! a waiting thread sleeps only if its condition was false after it was counted among the
//! sleepers. So that check sees the change, or the notifying thread sees the sleeper.

use crate::memory::membarrier;
use crate::sync::atomic::{AtomicU32, Ordering};

/// A word to sleep on, and the number of threads that sleep on it.
#[derive(Debug, Default)]
pub struct EventCount {
    /// Notifications that had a sleeper to wake.
    word: AtomicU32,
    sleepers: AtomicU32,
    /// Counts notifications, about: two at once may count as one.
    count: AtomicU32,
}

impl EventCount {
    /// Differs from an earlier value if there was a notification in between.
    #[inline]
    pub fn now(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    /// A condition may have become true; `wake` wakes the threads that sleep on the word.
    #[inline]
    pub fn notify(&self, wake: impl FnOnce(&AtomicU32)) {
        self.count.store(self.count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        membarrier::light();
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.word.fetch_add(1, Ordering::SeqCst);
            wake(&self.word);
        }
    }

    /// Sleeps by `sleep` while the word has the value that it is given, unless `check`
    /// finds the condition true first; returns what `check` has found.
    ///
    /// # Errors
    /// That of `check`.
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
