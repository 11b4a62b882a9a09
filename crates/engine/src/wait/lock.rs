//! Waits for locks that are held for a few instructions.

use super::patience::FIRST_NAP;
use super::{Backoff, Patience, contention};

impl Backoff {
    /// Returns whether the thread gave its core up: it yields to the holder, which may be
    /// preempted, or naps if other work has got the core.
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

/// The holder may be preempted or stopped, so the thread gives its core up from time to time, and
/// then calls `yielded`.
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
