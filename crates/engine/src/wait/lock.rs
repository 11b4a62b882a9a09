//! Waits for locks that are held for a few instructions.

use super::policy::{Backoff, Patience, Step};

/// Yields from time to time, because the holder may be preempted, and then calls `yielded`.
#[inline]
pub(crate) fn while_held(mut held: impl FnMut() -> bool, mut yielded: impl FnMut()) {
    if !held() {
        return;
    }
    let mut backoff = Backoff::new(Patience::LOCK);
    while held() {
        match backoff.step_at_lock() {
            Step::Poll => {
                std::hint::spin_loop();
                continue;
            }
            Step::Yield => backoff.yield_core(),
            Step::Nap(nap) => std::thread::sleep(nap),
        }
        yielded();
    }
}
