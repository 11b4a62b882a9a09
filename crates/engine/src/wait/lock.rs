//! Waits for locks that are held for a few instructions.

use super::{Backoff, Patience};

impl Backoff {
    /// Pauses before the next look at a lock. Returns whether the thread has yielded its core.
    fn pause(&mut self) -> bool {
        if self.spins() {
            std::hint::spin_loop();
            return false;
        }
        self.polls = 0;
        std::thread::yield_now();
        true
    }
}

/// Waits while `held` returns true. The holder may be preempted or stopped, so the thread yields
/// its core from time to time, and then calls `yielded`.
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
