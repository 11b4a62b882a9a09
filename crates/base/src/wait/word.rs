//! Waits that sleep on a word in shared memory. The thread that ends such a wait changes the word
//! and wakes it.

use super::{Ends, Patience, Progress, until};
use crate::error::Result;
use crate::trace::Awaited;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

struct OnWord<'a> {
    inner: &'a dyn Progress,
    on: Word<'a>,
}

impl Progress for OnWord<'_> {
    fn delegate(&self) -> Option<&dyn Progress> {
        Some(self.inner)
    }
    fn nap(&self, nap: Duration) {
        let Word { word, value, sleepers, .. } = self.on;
        if let Some(sleepers) = sleepers {
            sleepers.fetch_add(1, Ordering::SeqCst);
        }
        self.inner.nap_on(word, value, nap);
        if let Some(sleepers) = sleepers {
            sleepers.fetch_sub(1, Ordering::SeqCst);
        }
    }
    fn patience(&self, _: Ends) -> Patience {
        self.inner.patience(self.on.ends)
    }
    fn may_warn(&self) -> bool {
        (self.on.warns)()
    }
}

pub struct Word<'a> {
    pub word: &'a AtomicU32,
    /// A thread sleeps while the word has this value.
    pub value: u32,
    /// Number of threads that sleep on the word. At zero, a waker may skip its system call.
    pub sleepers: Option<&'a AtomicU32>,
    pub ends: Ends,
    /// Whether the caller is the rank of its node that warns of a slow wait.
    pub warns: &'a dyn Fn() -> bool,
}

impl<'a> Word<'a> {
    /// For a wait that another thread ends by changing the word.
    pub fn woken(word: &'a AtomicU32, value: u32) -> Word<'a> {
        Word { word, value, sleepers: None, ends: Ends::Woken, warns: &|| true }
    }
}

/// Waits like [`until`], but sleeps on a word, which a thread changes and wakes to end the wait.
pub fn on_word(
    progress: &dyn Progress,
    awaited: impl Into<Awaited>,
    what: &dyn Fn() -> String,
    on: Word<'_>,
    done: impl FnMut() -> Result<bool>,
) -> Result<()> {
    until(&OnWord { inner: progress, on }, awaited, what, done)
}

/// A thread that changes the word must wake it, unless `sleepers` is zero.
pub fn while_equal(
    progress: &dyn Progress,
    awaited: impl Into<Awaited>,
    what: &dyn Fn() -> String,
    (word, value): (&AtomicU32, u32),
    sleepers: Option<&AtomicU32>,
) -> Result<()> {
    let on = Word { sleepers, ..Word::woken(word, value) };
    on_word(progress, awaited, what, on, || Ok(word.load(Ordering::Acquire) != value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Cause;
    use std::cell::Cell;

    #[derive(Default)]
    struct Sleeper {
        polls: Cell<u32>,
        naps: Cell<u32>,
    }

    impl Progress for Sleeper {
        fn poll(&self) -> Result<bool> {
            self.polls.set(self.polls.get() + 1);
            Ok(false)
        }
        fn nap_on(&self, _: &AtomicU32, _: u32, _: Duration) {
            self.naps.set(self.naps.get() + 1);
        }
        fn patience(&self, ends: Ends) -> Patience {
            assert_eq!(ends, Ends::Woken);
            Patience { spin: 0, polls: Duration::ZERO, naps_first: true, ..Patience::POLLING }
        }
    }

    #[test]
    fn a_thread_that_is_woken_polls_once_a_nap() {
        let (sleeper, word) = (Sleeper::default(), AtomicU32::new(0));
        let done = || Ok(sleeper.naps.get() == 3);
        on_word(&sleeper, Cause::Handle, &String::new, Word::woken(&word, 0), done).unwrap();
        assert_eq!((sleeper.naps.get(), sleeper.polls.get()), (3, 3));
    }
}
