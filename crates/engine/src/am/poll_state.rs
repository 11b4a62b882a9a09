//! Whether a thread of this rank polls, as other ranks of the node see it.
//!
//! A rank is *attended* while a thread waits and therefore polls. Each change of this flag moves a
//! cache line between cores, which costs a rank that waits often and briefly more than the message
//! itself. Such a rank *lingers*: it stays attended between its waits. The progress thread then
//! checks from time to time ([`PollState::pause`]), and clears the flag if no wait has begun since
//! its last check. A message to a rank that has just stopped waiting may be delayed by that
//! interval. A check takes the core from the waiting thread for a few microseconds, so a rank that
//! has lingered for a while is checked less often. A thread that sends full batches polls between
//! them, so it counts like one that waits.
//!
//! Invariants: the two flags change only under the lock `history`. A rank without waiting threads
//! is attended only if it lingers. A thread that clears the flag checks the rings afterwards.

use super::shm_transport::ShmTransport;
use portolan_base::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use portolan_base::sync::{Instant, Mutex};
use portolan_base::wait::times::{LINGER, OFTEN};
use std::time::Duration;

/// The interval between checks doubles after this number of checks that find the rank still
/// polling, to at most 16 times [`LINGER`] and a quarter of the time that the rank has lingered. On a
/// virtual machine, a check delays the waiting thread by up to 100 us.
const PATIENT: u32 = 8;
/// Number of waits within [`OFTEN`] that make a rank linger.
const WAITS: u32 = 32;
/// Number of waits that a full batch counts as: it takes a multiple of the time between waits, and
/// another one will probably follow soon.
pub const BATCH: u32 = 16;

/// Time until the next check after `checks` checks that found the rank polling.
pub fn pause_after(checks: u32) -> Duration {
    LINGER * (1 << (checks / PATIENT).min(4))
}

#[derive(Debug, Default)]
pub struct PollState {
    history: Mutex<WaitHistory>,
    lingering: AtomicBool,
    /// Ended waits, including the activity that [`PollState::touch`] counts.
    waits: AtomicU32,
    polls: AtomicU32,
}

/// Returns whether the last `new` of `waits` waits complete a multiple of [`WAITS`].
#[inline]
fn completes(waits: u32, new: u32) -> bool {
    waits % WAITS < new
}

#[derive(Debug, Default)]
struct WaitHistory {
    /// Time of the last multiple of [`WAITS`] waits.
    counted: Option<Instant>,
    seen: u32,
}

impl PollState {
    #[inline]
    pub fn lingers(&self) -> bool {
        self.lingering.load(Ordering::Relaxed)
    }

    /// Time until the progress thread checks a lingering rank again.
    pub fn pause(&self) -> Duration {
        pause_after(self.polls.load(Ordering::Relaxed))
    }

    /// A thread, already counted in `waiters`, begins to wait.
    #[inline]
    pub fn arrive(&self, node: &ShmTransport) {
        if !self.lingering.load(Ordering::SeqCst) {
            let _history = self.history.lock();
            node.set_attended(true);
        }
    }

    /// A thread, no longer counted in `waiters`, has ended a wait. `watched` is set if a progress
    /// thread checks the rank. Returns whether the caller must check the rings.
    #[inline]
    pub fn depart(&self, node: &ShmTransport, waiters: &AtomicU32, watched: bool) -> bool {
        let waits = self.count(1);
        if self.lingering.load(Ordering::SeqCst) {
            return false;
        }
        let mut history = self.history.lock();
        if watched && completes(waits, 1) && self.is_often(&mut history, waits) {
            drop(history);
            // The progress thread, which sleeps for long, must check more often from now on.
            node.wake_own();
            return false;
        }
        self.take_back(node, waiters)
    }

    /// Activity between two waits counts as `new` waits: other ranks may answer.
    #[inline]
    pub fn touch(&self, new: u32, node: &ShmTransport, watched: bool) {
        let waits = self.count(new);
        if completes(waits, new) && watched && !self.lingers() {
            self.touched_often(node, waits);
        }
    }

    /// Counts `new` waits, and misses those that other threads count at once. Returns the sum.
    #[inline]
    fn count(&self, new: u32) -> u32 {
        let waits = self.waits.load(Ordering::Relaxed).wrapping_add(new);
        self.waits.store(waits, Ordering::Relaxed);
        waits
    }

    #[cold]
    fn touched_often(&self, node: &ShmTransport, waits: u32) {
        let mut history = self.history.lock();
        if !self.lingering.load(Ordering::SeqCst) && self.is_often(&mut history, waits) {
            node.set_attended(true);
            drop(history);
            node.wake_own();
        }
    }

    /// Makes the rank linger if waits are frequent. The caller holds `history`.
    fn is_often(&self, history: &mut WaitHistory, waits: u32) -> bool {
        let now = Instant::now();
        if history.counted.is_some_and(|then| now - then < OFTEN) {
            // The progress thread is woken now and checks at once. If both threads share a core, no
            // other wait can have begun by then, so that check counts this one.
            history.seen = waits.wrapping_sub(1);
            self.polls.store(0, Ordering::Relaxed);
            self.lingering.store(true, Ordering::SeqCst);
            return true;
        }
        history.counted = Some(now);
        false
    }

    /// A waiting thread, not in `waiters`, goes to sleep. Returns whether to check the rings.
    pub fn sleep(&self, node: &ShmTransport, waiters: &AtomicU32) -> bool {
        let _history = self.history.lock();
        self.lingering.store(false, Ordering::SeqCst);
        self.take_back(node, waiters)
    }

    /// Checks the rank, on the progress thread. Returns whether the caller must check the rings.
    pub fn check(&self, node: &ShmTransport, waiters: &AtomicU32) -> bool {
        let mut history = self.history.lock();
        let waits = self.waits.load(Ordering::Relaxed);
        if std::mem::replace(&mut history.seen, waits) != waits {
            let polls = self.polls.load(Ordering::Relaxed);
            self.polls.store(polls.saturating_add(1), Ordering::Relaxed);
            return false;
        }
        self.lingering.store(false, Ordering::SeqCst);
        self.take_back(node, waiters)
    }

    /// Clears the attended flag unless a thread waits. The caller holds `history`.
    fn take_back(&self, node: &ShmTransport, waiters: &AtomicU32) -> bool {
        if waiters.load(Ordering::SeqCst) > 0 {
            return false;
        }
        node.set_attended(false);
        fence(Ordering::SeqCst);
        true
    }
}
