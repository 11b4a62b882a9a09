//! Whether a thread of this rank polls, as other ranks of the node see it.
//!
//! A rank is *attended* while a thread waits, and so polls. Setting the flag and clearing it
//! moves a cache line between cores each time, which costs a rank that waits often and
//! briefly more than the message itself. Such a rank *lingers*: it stays attended between its
//! waits. The progress thread then checks from time to time ([`PollState::pause`]), and clears
//! the flag when no wait has begun since its last check. A message to a rank that has just
//! stopped waiting is handled that much later, once. A check takes the core from the thread
//! that waits, a few microseconds with cold caches; so a rank that has lingered for long is
//! checked less often.
//!
//! Invariants: changes of the two flags are made under the gate, and a rank without
//! waiting threads that does not linger is not attended. A thread that clears the flag checks
//! the rings afterwards.

use super::shm_transport::ShmTransport;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use crate::sync::{Instant, Mutex};
use std::time::Duration;

/// How soon the progress thread first checks a rank that begins to linger.
pub const LINGER: Duration = Duration::from_micros(200);
/// After this many checks that find the rank still polling, the interval of checks doubles, up
/// to four times: at most a quarter of the time for which the rank has lingered.
const PATIENT: u32 = 8;
/// This many waits within [`OFTEN`] make a rank linger.
const WAITS: u32 = 32;
const OFTEN: Duration = Duration::from_micros(640);

/// What other ranks of the node see of this rank's waiting threads.
#[derive(Debug, Default)]
pub struct PollState {
    gate: Mutex<Gate>,
    lingering: AtomicBool,
    /// Waits that have ended.
    waits: AtomicU32,
    /// Checks that have left the rank lingering.
    looks: AtomicU32,
}

#[derive(Debug, Default)]
struct Gate {
    /// When the count of waits was last a multiple of [`WAITS`].
    counted: Option<Instant>,
    /// The count at the progress thread's last check.
    seen: u32,
}

impl PollState {
    /// Whether the rank lingers.
    #[inline]
    pub fn lingers(&self) -> bool {
        self.lingering.load(Ordering::Relaxed)
    }

    /// How long the progress thread pauses before it checks a lingering rank again.
    pub fn pause(&self) -> Duration {
        LINGER * (1 << (self.looks.load(Ordering::Relaxed) / PATIENT).min(2))
    }

    /// A thread begins to wait, and is counted in `waiters` already.
    #[inline]
    pub fn arrive(&self, node: &ShmTransport) {
        if !self.lingering.load(Ordering::SeqCst) {
            let _gate = self.gate.lock();
            node.set_attended(true);
        }
    }

    /// A thread has ended a wait, and is not counted any more. True where the rings
    /// must be checked. `watched`: a progress thread checks the rank.
    #[inline]
    pub fn depart(&self, node: &ShmTransport, waiters: &AtomicU32, watched: bool) -> bool {
        let waits = self.waits.load(Ordering::Relaxed).wrapping_add(1);
        self.waits.store(waits, Ordering::Relaxed);
        if self.lingering.load(Ordering::SeqCst) {
            return false;
        }
        let mut gate = self.gate.lock();
        if watched && waits.is_multiple_of(WAITS) && self.is_often(&mut gate, waits) {
            drop(gate);
            // The progress thread sleeps for long: it is to check more often now.
            node.wake_own();
            return false;
        }
        self.take_back(node, waiters)
    }

    /// A thread does something between two waits, to which other ranks may answer at once: it is
    /// counted as a wait, because the next one is near.
    #[inline]
    pub fn touch(&self, node: &ShmTransport, watched: bool) {
        let waits = self.waits.load(Ordering::Relaxed).wrapping_add(1);
        self.waits.store(waits, Ordering::Relaxed);
        if waits.is_multiple_of(WAITS) && watched && !self.lingers() {
            self.touched_often(node, waits);
        }
    }

    #[cold]
    fn touched_often(&self, node: &ShmTransport, waits: u32) {
        let mut gate = self.gate.lock();
        if !self.lingering.load(Ordering::SeqCst) && self.is_often(&mut gate, waits) {
            node.set_attended(true);
            drop(gate);
            node.wake_own();
        }
    }

    /// Under the gate: whether the rank is to linger, which it then does.
    fn is_often(&self, gate: &mut Gate, waits: u32) -> bool {
        let now = Instant::now();
        if gate.counted.is_some_and(|then| now - then < OFTEN) {
            // The progress thread is woken now and checks at once. Where both share a core no
            // other wait can have begun by then: that check counts this one.
            gate.seen = waits.wrapping_sub(1);
            self.looks.store(0, Ordering::Relaxed);
            self.lingering.store(true, Ordering::SeqCst);
            return true;
        }
        gate.counted = Some(now);
        false
    }

    /// A waiting thread goes to sleep, and is not counted meanwhile: there is no
    /// lingering then.
    pub fn sleep(&self, node: &ShmTransport, waiters: &AtomicU32) -> bool {
        let _gate = self.gate.lock();
        self.lingering.store(false, Ordering::SeqCst);
        self.take_back(node, waiters)
    }

    /// A check by the progress thread. True where it has cleared the flag, and the rings must
    /// be checked.
    pub fn look(&self, node: &ShmTransport, waiters: &AtomicU32) -> bool {
        let mut gate = self.gate.lock();
        let waits = self.waits.load(Ordering::Relaxed);
        if std::mem::replace(&mut gate.seen, waits) != waits {
            let looks = self.looks.load(Ordering::Relaxed);
            self.looks.store(looks.saturating_add(1), Ordering::Relaxed);
            return false;
        }
        self.lingering.store(false, Ordering::SeqCst);
        self.take_back(node, waiters)
    }

    /// Under the gate.
    fn take_back(&self, node: &ShmTransport, waiters: &AtomicU32) -> bool {
        if waiters.load(Ordering::SeqCst) > 0 {
            return false;
        }
        node.set_attended(false);
        fence(Ordering::SeqCst);
        true
    }
}
