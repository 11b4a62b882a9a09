//! How much may be under way to a peer that takes nothing in.
//!
//! Messages that the receiver has not taken in count against a window of bytes, one
//! for unexpected and one for expected messages. What goes beyond it is held at the
//! sender, in order, and goes out when the receiver reports what it has taken in,
//! which it does for a quarter of a window at a time. So a receiver keeps at most a
//! window for each peer and kind, whatever its peers send, and loses nothing.
//!
//! Invariant: while messages are held, or are being sent from those held, new ones are
//! held behind them.

use super::wire::Head;
use crate::memory::biased_lock::BiasedLock;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a message costs besides its bytes.
const OVERHEAD: u64 = 64;
/// What all peers together may have under way to a class, if that is enough for each.
const ALL: u64 = 64 << 20;
const LARGEST: u64 = 4 << 20;
const SMALLEST: u64 = 256 << 10;

/// The window of a peer in another job: the same in all jobs, whatever their sizes.
pub(crate) const BETWEEN_JOBS: u64 = 1 << 20;

/// What a message counts.
pub(crate) fn cost(bytes: usize) -> u64 {
    bytes as u64 + OVERHEAD
}

/// The window of each of so many peers.
pub(crate) fn window(peers: usize) -> u64 {
    (ALL / peers.max(1) as u64).clamp(SMALLEST, LARGEST)
}

/// Runs when a message has left, or was given up (then false).
pub(crate) type OnSent = Box<dyn FnOnce(bool) + Send>;

/// A message that waits for room.
pub(crate) struct Held {
    /// Its head.
    pub head: Head,
    /// Its body.
    pub body: Vec<u8>,
    /// Runs when the message has left.
    pub sent: Option<OnSent>,
    /// Its number, for cancelling it.
    pub op: u64,
}

struct Window {
    room: u64,
    held: VecDeque<Held>,
    draining: bool,
}

/// The windows to and from a peer.
pub(crate) struct Flow {
    out: BiasedLock<[Window; 2]>,
    taken: [AtomicU64; 2],
    /// Bytes of a peer in another job that have arrived and were not taken in.
    kept: [AtomicU64; 2],
    window: u64,
}

impl std::fmt::Debug for Flow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flow").field("window", &self.window).finish_non_exhaustive()
    }
}

impl Flow {
    /// Nothing under way.
    pub(crate) fn new(window: u64) -> Flow {
        let fresh = || Window { room: window, held: VecDeque::new(), draining: false };
        let out = BiasedLock::new([fresh(), fresh()]);
        Flow { out, taken: Default::default(), kept: Default::default(), window }
    }

    /// Whether a message may go now; it is counted then.
    pub(crate) fn admit(&self, which: usize, bytes: usize) -> bool {
        let window = &mut self.out.lock()[which];
        let cost = cost(bytes).min(self.window);
        if window.draining || !window.held.is_empty() || window.room < cost {
            return false;
        }
        window.room -= cost;
        true
    }

    /// Holds a message that may not go. Where it may go by now, gives it back.
    pub(crate) fn hold(&self, which: usize, held: Held) -> Option<Held> {
        let window = &mut self.out.lock()[which];
        let cost = cost(held.body.len()).min(self.window);
        if !window.draining && window.held.is_empty() && window.room >= cost {
            window.room -= cost;
            return Some(held);
        }
        window.held.push_back(held);
        None
    }

    /// The receiver has taken in so many bytes. True where the caller is to send
    /// what is held, by [`Flow::next`].
    pub(crate) fn credit(&self, which: usize, bytes: u64) -> bool {
        let window = &mut self.out.lock()[which];
        window.room = window.room.saturating_add(bytes).min(self.window);
        if window.draining || window.held.is_empty() {
            return false;
        }
        window.draining = true;
        true
    }

    /// The next held message that may go; at the end `None`, and others may send.
    pub(crate) fn next(&self, which: usize) -> Option<Held> {
        let window = &mut self.out.lock()[which];
        let may = window.held.front().is_some_and(|held| {
            let cost = cost(held.body.len()).min(self.window);
            window.room >= cost
        });
        if !may {
            window.draining = false;
            return None;
        }
        let held = window.held.pop_front()?;
        window.room -= cost(held.body.len()).min(self.window);
        Some(held)
    }

    /// Takes a held message back.
    pub(crate) fn withdraw(&self, op: u64) -> Option<Held> {
        self.out.lock().iter_mut().find_map(|window| {
            let at = window.held.iter().position(|held| held.op == op)?;
            window.held.remove(at)
        })
    }

    /// Gives up all that is held.
    pub(crate) fn abandon(&self) -> Vec<Held> {
        self.out.lock().iter_mut().flat_map(|window| window.held.drain(..)).collect()
    }

    /// A message has come from a peer that is not trusted to keep to its window. False where it
    /// did not. [`Flow::went`] counts the other way.
    pub(crate) fn came(&self, which: usize, bytes: usize) -> bool {
        let cost = cost(bytes).min(self.window);
        self.kept[which].fetch_add(cost, Ordering::Relaxed) + cost <= self.window
    }

    /// Such a message was taken in.
    pub(crate) fn went(&self, which: usize, bytes: usize) {
        self.kept[which].fetch_sub(cost(bytes).min(self.window), Ordering::Relaxed);
    }

    /// A message from the peer was taken in. The number of bytes to report, where it
    /// is time to.
    pub(crate) fn took(&self, which: usize, bytes: usize) -> Option<u64> {
        let cost = cost(bytes).min(self.window);
        let taken = self.taken[which].fetch_add(cost, Ordering::Relaxed) + cost;
        (taken >= self.window / 4).then(|| self.taken[which].swap(0, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::na::wire::Kind;

    fn held(op: u64, bytes: usize) -> Held {
        let head = Head { kind: Kind::Unexpected, class: 0, tag: 0, word: 0 };
        Held { head, body: vec![0; bytes], sent: None, op }
    }

    #[test]
    fn what_does_not_fit_waits_in_order() {
        let flow = Flow::new(1000);
        assert!(flow.admit(0, 500));
        assert!(!flow.admit(0, 500));
        assert!(flow.admit(1, 500), "the kinds have windows of their own");
        assert!(flow.hold(0, held(1, 500)).is_none());
        assert!(flow.hold(0, held(2, 10)).is_none());
        assert!(!flow.admit(0, 1), "none overtakes those held");
        assert!(flow.credit(0, cost(500)));
        assert!(!flow.admit(0, 1), "nor while they are sent");
        assert_eq!(flow.next(0).map(|h| h.op), Some(1));
        assert_eq!(flow.next(0).map(|h| h.op), Some(2));
        assert!(flow.next(0).is_none());
        assert!(flow.admit(0, 1));
    }

    #[test]
    fn one_message_larger_than_the_window_goes_alone() {
        let flow = Flow::new(1000);
        assert!(flow.admit(0, 5000));
        assert!(!flow.admit(0, 1));
        assert_eq!(flow.took(0, 5000), Some(1000));
        assert!(!flow.credit(0, 1000));
        assert!(flow.admit(0, 5000));
    }

    #[test]
    fn who_sends_past_the_window_is_found_out() {
        let (sender, receiver) = (Flow::new(1000), Flow::new(1000));
        for _ in 0..50 {
            let mut under_way = 0;
            while sender.admit(0, 136) {
                assert!(receiver.came(0, 136), "an honest sender keeps to the window");
                under_way += 1;
            }
            for _ in 0..under_way {
                receiver.went(0, 136);
                if let Some(credit) = receiver.took(0, 136) {
                    sender.credit(0, credit);
                }
            }
        }
        let receiver = Flow::new(1000);
        assert!((0..5).all(|_| receiver.came(1, 136)));
        assert!(!receiver.came(1, 136));
    }

    #[test]
    fn held_ones_can_be_taken_back() {
        let flow = Flow::new(1000);
        assert!(flow.admit(0, 900));
        assert!(flow.hold(0, held(7, 900)).is_none());
        assert_eq!(flow.withdraw(7).map(|h| h.op), Some(7));
        assert!(flow.withdraw(7).is_none());
    }
}
