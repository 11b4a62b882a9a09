//! A count of changes that threads sleep on.
//!
//! Invariant: whoever changes what a thread waits for calls [`Changes::tell`] afterwards; a
//! thread goes to sleep only if nothing was told since before its last look. Both steps
//! are sequentially consistent, so none is overlooked.

use crate::sync::atomic::{AtomicU32, Ordering};

/// Counts what has changed, and knows whether somebody sleeps until then.
#[derive(Debug, Default)]
pub struct Changes {
    count: AtomicU32,
    sleepers: AtomicU32,
}

impl Changes {
    /// The count. It is taken before a look at what may have changed.
    #[inline]
    pub fn now(&self) -> u32 {
        self.count.load(Ordering::SeqCst)
    }

    /// Something has changed; `wake` wakes those who sleep on the word.
    #[inline]
    pub fn tell(&self, wake: impl FnOnce(&AtomicU32)) {
        self.count.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            wake(&self.count);
        }
    }

    /// Sleeps by `sleep`, which looks first whether the word is still the count from before
    /// the last look.
    pub fn sleep(&self, sleep: impl FnOnce(&AtomicU32)) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        sleep(&self.count);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}
