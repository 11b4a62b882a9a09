//! Waits for locks that are held for a few instructions.

use super::times::FIRST_NAP;
use super::{Backoff, Patience, contention};

impl Backoff {
    /// Returns whether the thread yielded to the holder, or napped under contention.
    fn pause(&mut self) -> bool {
        if self.spins() {
            std::hint::spin_loop();
            return false;
        }
        self.polls = 0;
        if contention::is_present() {
            std::thread::sleep(FIRST_NAP);
        } else {
            contention::timed_yield();
        }
        true
    }
}

/// Yields from time to time, because the holder may be preempted, and then calls `yielded`.
#[inline]
pub(crate) fn while_held(mut held: impl FnMut() -> bool, mut yielded: impl FnMut()) {
    if !held() {
        return;
    }
    let mut backoff = Backoff::new(Patience::LOCK);
    while held() {
        if backoff.pause() {
            yielded();
        }
    }
}
