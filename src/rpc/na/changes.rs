//! What threads sleep on that wait for changes.
//!
//! Changes are many and sleepers are rare, so who tells of a change only looks whether
//! somebody sleeps, without a barrier; who goes to sleep puts one into all threads
//! ([`asymmetric`]), and looks once more.
//!
//! Invariant: whoever changes what a thread waits for calls [`Changes::tell`] afterwards; a
//! thread sleeps only if it has found nothing after it was counted among the sleepers. So
//! the look sees the change, or who made it sees the sleeper.

use crate::memory::asymmetric;
use crate::sync::atomic::{AtomicU32, Ordering};

/// A word to sleep on, and whether somebody does.
#[derive(Debug, Default)]
pub struct Changes {
    /// Changes where somebody has to be woken.
    word: AtomicU32,
    sleepers: AtomicU32,
    /// Counts what was told, about: two threads at once may count as one.
    told: AtomicU32,
}

impl Changes {
    /// Another number where something was told since.
    #[inline]
    pub fn now(&self) -> u32 {
        self.told.load(Ordering::Relaxed)
    }

    /// Something has changed; `wake` wakes those who sleep on the word.
    #[inline]
    pub fn tell(&self, wake: impl FnOnce(&AtomicU32)) {
        self.told.store(self.told.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        asymmetric::light();
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.word.fetch_add(1, Ordering::SeqCst);
            wake(&self.word);
        }
    }

    /// Sleeps by `sleep`, as long as the word has the value that it is given, unless
    /// `look` finds something first, which it says.
    ///
    /// # Errors
    /// That of `look`.
    pub fn sleep<E>(
        &self,
        look: impl FnOnce() -> Result<bool, E>,
        sleep: impl FnOnce(&AtomicU32, u32),
    ) -> Result<bool, E> {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        asymmetric::heavy();
        let value = self.word.load(Ordering::SeqCst);
        let found = look();
        if let Ok(false) = found {
            sleep(&self.word, value);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        found
    }
}
