//! Whether a thread of this rank polls, as others of the node see it.
//!
//! A rank is *attended* while a thread waits, and so polls. Saying so, and taking it
//! back, moves a cache line between cores each time, which costs a rank that waits
//! often and briefly more than the message itself. Such a rank *lingers*: it stays
//! attended between its waits, and the progress thread, which then looks from time to
//! time ([`Presence::pause`]), takes it back when no wait came since the last look. A
//! message to a rank that has just stopped waiting is handled that much later, once. A
//! look takes the core from the thread that waits, a few microseconds with cold caches;
//! so a rank that has lingered for long is looked after less often.
//!
//! Invariants: changes of the two flags are made under the gate, and a rank without
//! waiting threads that does not linger is not attended. Who takes it back looks at
//! the rings afterwards.

use super::node::Node;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use crate::sync::{Instant, Mutex};
use std::time::Duration;

/// How soon the progress thread looks after a rank that begins to linger.
pub const LINGER: Duration = Duration::from_micros(200);
/// After so many looks in vain, and as many again, it waits twice as long: at most a quarter
/// of the time for which the rank has lingered.
const PATIENT: u32 = 8;
/// So many waits within [`OFTEN`] make a rank linger.
const WAITS: u32 = 32;
const OFTEN: Duration = Duration::from_micros(640);

/// What this rank tells others of the node about its waiting threads.
#[derive(Debug, Default)]
pub struct Presence {
    gate: Mutex<Gate>,
    lingering: AtomicBool,
    /// Waits that have ended.
    waits: AtomicU32,
    /// Looks that have left the rank lingering.
    looks: AtomicU32,
}

#[derive(Debug, Default)]
struct Gate {
    /// When the count of waits was last a multiple of [`WAITS`].
    counted: Option<Instant>,
    /// The count when the progress thread last looked.
    seen: u32,
}

impl Presence {
    /// Whether the rank lingers.
    #[inline]
    pub fn lingers(&self) -> bool {
        self.lingering.load(Ordering::Relaxed)
    }

    /// When the progress thread is to look again after a rank that lingers.
    pub fn pause(&self) -> Duration {
        LINGER * (1 << (self.looks.load(Ordering::Relaxed) / PATIENT).min(2))
    }

    /// A thread begins to wait, and is counted in `waiters` already.
    #[inline]
    pub fn arrive(&self, node: &Node) {
        if !self.lingering.load(Ordering::SeqCst) {
            let _gate = self.gate.lock();
            node.set_attended(true);
        }
    }

    /// A thread has ended a wait, and is not counted any more. True where the rings
    /// must be looked at. `watched` says that a progress thread looks after the rank.
    #[inline]
    pub fn depart(&self, node: &Node, waiters: &AtomicU32, watched: bool) -> bool {
        let waits = self.waits.load(Ordering::Relaxed).wrapping_add(1);
        self.waits.store(waits, Ordering::Relaxed);
        if self.lingering.load(Ordering::SeqCst) {
            return false;
        }
        let mut gate = self.gate.lock();
        if watched && waits.is_multiple_of(WAITS) && self.is_often(&mut gate, waits) {
            drop(gate);
            // The thread sleeps for long: it is to look more often now.
            node.wake_own();
            return false;
        }
        self.take_back(node, waiters)
    }

    /// A thread does what it does between two waits, when others may answer at once: it
    /// is counted as a wait, because the next one is near.
    #[inline]
    pub fn touch(&self, node: &Node, watched: bool) {
        let waits = self.waits.load(Ordering::Relaxed).wrapping_add(1);
        self.waits.store(waits, Ordering::Relaxed);
        if waits.is_multiple_of(WAITS) && watched && !self.lingers() {
            self.touched_often(node, waits);
        }
    }

    #[cold]
    fn touched_often(&self, node: &Node, waits: u32) {
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
            // The thread that is woken now looks at once, and where both share a core no
            // other wait can have come by then: that look counts this one.
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
    pub fn sleep(&self, node: &Node, waiters: &AtomicU32) -> bool {
        let _gate = self.gate.lock();
        self.lingering.store(false, Ordering::SeqCst);
        self.take_back(node, waiters)
    }

    /// The progress thread looks. True where it has taken the presence back and the
    /// rings must be looked at.
    pub fn look(&self, node: &Node, waiters: &AtomicU32) -> bool {
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
    fn take_back(&self, node: &Node, waiters: &AtomicU32) -> bool {
        if waiters.load(Ordering::SeqCst) > 0 {
            return false;
        }
        node.set_attended(false);
        fence(Ordering::SeqCst);
        true
    }
}
