//! Flow control: limits on the bytes in flight to a peer that does not consume them.
//!
//! Messages that the receiver has not consumed count against a window of bytes; unexpected and
//! expected messages have separate windows. The sender holds messages that exceed the window, in
//! order, and sends them when the receiver reports what it has consumed, in steps of a quarter of a
//! window. A receiver therefore stores at most one window per peer and kind, and loses no message.
//!
//! The program knows of a held message by its operation or by the call that waits for an answer. A
//! one-way call has neither, and has ended for the program. A sender therefore holds at most
//! [`MOST_ONE_WAY`] bytes of them per peer and refuses more.
//!
//! Invariant: while messages are held or held ones are being sent, new ones are held behind them.

use super::wire::{Head, Kind};
use crate::failure::{Result, Status, refuse};
use portolan_base::sync::biased_lock::BiasedLock;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

/// Cost of a message in bytes, in addition to its body.
const OVERHEAD: u64 = 64;
/// Bytes that all peers may have in flight to a class, if this leaves each at least `SMALLEST`.
const ALL: u64 = 64 << 20;
const LARGEST: u64 = 4 << 20;
const SMALLEST: u64 = 256 << 10;

/// Window in bytes of a peer that is reached by a connection.
pub(crate) const OF_CONNECTION: u64 = 1 << 20;

/// Limit on the one-way calls held for a peer in bytes.
const MOST_ONE_WAY: u64 = 64 << 20;

pub fn cost(bytes: usize) -> u64 {
    bytes as u64 + OVERHEAD
}

pub fn window(peers: usize) -> u64 {
    (ALL / peers.max(1) as u64).clamp(SMALLEST, LARGEST)
}

/// Runs with `SUCCESS` when a message has been sent, or with the status of a discarded one.
pub(crate) type OnSent = Box<dyn FnOnce(Status) + Send>;

pub struct QueuedMessage {
    pub head: Head,
    pub body: Vec<u8>,
    pub sent: Option<OnSent>,
    /// The operation of the program, or 0 for a call.
    pub op: u64,
}

impl QueuedMessage {
    fn is_one_way(&self) -> bool {
        self.op == 0 && self.head.word == 0
    }
}

struct Window {
    room: u64,
    held: VecDeque<QueuedMessage>,
    /// Bytes of the one-way calls among those held.
    one_way: u64,
    draining: bool,
}

pub(crate) struct Flow {
    out: BiasedLock<[Window; 2]>,
    taken: [AtomicU64; 2],
    /// Bytes from a connected peer that have arrived and are not consumed yet.
    kept: [AtomicU64; 2],
    window: u64,
}

impl std::fmt::Debug for Flow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flow").field("window", &self.window).finish_non_exhaustive()
    }
}

impl Flow {
    pub fn new(window: u64) -> Flow {
        let held = VecDeque::new;
        let fresh = || Window { room: window, held: held(), one_way: 0, draining: false };
        let out = BiasedLock::new([fresh(), fresh()]);
        Flow { out, taken: Default::default(), kept: Default::default(), window }
    }

    pub fn admit(&self, which: usize, bytes: usize) -> bool {
        let window = &mut self.out.lock()[which];
        let cost = cost(bytes).min(self.window);
        if window.draining || !window.held.is_empty() || window.room < cost {
            return false;
        }
        window.room -= cost;
        true
    }

    /// Gives back the bytes of a message that was admitted and could not be sent.
    pub fn refund(&self, which: usize, bytes: usize) {
        let window = &mut self.out.lock()[which];
        window.room = window.room.saturating_add(cost(bytes).min(self.window)).min(self.window);
    }

    /// Holds a message that may not be sent yet. Returns it if the window allows it by now. Returns
    /// `AGAIN` for a one-way call if too many bytes of them are held.
    pub fn hold(&self, which: usize, held: QueuedMessage) -> Result<Option<QueuedMessage>> {
        let window = &mut self.out.lock()[which];
        let bytes = cost(held.body.len());
        let cost = bytes.min(self.window);
        if !window.draining && window.held.is_empty() && window.room >= cost {
            window.room -= cost;
            return Ok(Some(held));
        }
        if held.is_one_way() {
            if window.one_way + bytes > MOST_ONE_WAY {
                refuse!(
                    AGAIN,
                    "{} MiB of one-way calls wait until the peer consumes earlier ones; make \
                     progress and try again",
                    window.one_way >> 20
                );
            }
            window.one_way += bytes;
        }
        window.held.push_back(held);
        Ok(None)
    }

    /// Adds bytes that the receiver has consumed to the window. Returns true if the caller must now
    /// send the held messages, which [`Flow::next`] returns.
    pub fn credit(&self, which: usize, bytes: u64) -> bool {
        let window = &mut self.out.lock()[which];
        window.room = window.room.saturating_add(bytes).min(self.window);
        if window.draining || window.held.is_empty() {
            return false;
        }
        window.draining = true;
        true
    }

    /// Returns the next held message that may be sent. After `None`, other threads may send again.
    pub fn next(&self, which: usize) -> Option<QueuedMessage> {
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
        let bytes = cost(held.body.len());
        window.room -= bytes.min(self.window);
        if held.is_one_way() {
            window.one_way -= bytes;
        }
        Some(held)
    }

    pub fn withdraw(&self, op: u64) -> Option<QueuedMessage> {
        self.out.lock().iter_mut().find_map(|window| {
            let at = window.held.iter().position(|held| held.op == op)?;
            window.held.remove(at)
        })
    }

    /// Withdraws the request of a call, which is no operation of a program. Returns whether it was
    /// held.
    pub fn withdraw_call(&self, token: u64) -> bool {
        let held = &mut self.out.lock()[Kind::Unexpected as usize].held;
        let at = held.iter().position(|held| held.op == 0 && held.head.word == token);
        at.and_then(|at| held.remove(at)).is_some()
    }

    pub(crate) fn abandon(&self) -> Vec<QueuedMessage> {
        let mut windows = self.out.lock();
        let held = windows.iter_mut().flat_map(|window| {
            window.one_way = 0;
            window.held.drain(..)
        });
        held.collect()
    }

    /// Records the arrival of a message from a peer that is not trusted to respect its window.
    /// Returns false if the message exceeds the window. [`Flow::went`] is the inverse.
    pub fn came(&self, which: usize, bytes: usize) -> bool {
        let cost = cost(bytes).min(self.window);
        self.kept[which].fetch_add(cost, Ordering::Relaxed) + cost <= self.window
    }

    pub fn went(&self, which: usize, bytes: usize) {
        self.kept[which].fetch_sub(cost(bytes).min(self.window), Ordering::Relaxed);
    }

    /// Records that a message from the peer was consumed. Returns the number of bytes to report to
    /// the peer once they amount to a quarter of the window.
    pub fn took(&self, which: usize, bytes: usize) -> Option<u64> {
        let cost = cost(bytes).min(self.window);
        let taken = self.taken[which].fetch_add(cost, Ordering::Relaxed) + cost;
        (taken >= self.window / 4).then(|| self.taken[which].swap(0, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(op: u64, bytes: usize) -> QueuedMessage {
        let head = Head { kind: Kind::Unexpected, class: 0, tag: 0, word: 0 };
        QueuedMessage { head, body: vec![0; bytes], sent: None, op }
    }

    #[test]
    fn what_does_not_fit_waits_in_order() {
        let flow = Flow::new(1000);
        assert!(flow.admit(0, 500));
        assert!(!flow.admit(0, 500));
        assert!(flow.admit(1, 500), "the kinds have windows of their own");
        assert!(flow.hold(0, held(1, 500)).unwrap().is_none());
        assert!(flow.hold(0, held(2, 10)).unwrap().is_none());
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
        assert!(flow.hold(0, held(7, 900)).unwrap().is_none());
        assert_eq!(flow.withdraw(7).map(|h| h.op), Some(7));
        assert!(flow.withdraw(7).is_none());
        for token in [5, 6] {
            let held = held(0, 900);
            let head = Head { word: token, ..held.head };
            assert!(flow.hold(0, QueuedMessage { head, ..held }).unwrap().is_none());
        }
        assert_eq!([6, 6, 5, 7].map(|token| flow.withdraw_call(token)), [true, false, true, false]);
    }

    #[test]
    fn one_way_calls_are_held_up_to_a_limit() {
        let flow = Flow::new(1000);
        assert!(flow.admit(0, 900));
        let mebibyte = || held(0, (1 << 20) - OVERHEAD as usize);
        for _ in 0..64 {
            assert!(flow.hold(0, mebibyte()).unwrap().is_none());
        }
        let refused = flow.hold(0, mebibyte()).err().expect("one more is held");
        assert_eq!(refused.status(), Status::AGAIN);
        assert!(flow.hold(0, held(5, 100)).unwrap().is_none(), "an operation of the program");
        let call = Head { word: 9, ..held(0, 0).head };
        assert!(flow.hold(0, QueuedMessage { head: call, ..held(0, 100) }).unwrap().is_none());
        assert!(flow.credit(0, 1000));
        assert!(flow.next(0).is_some() && flow.next(0).is_none());
        assert!(flow.hold(0, mebibyte()).unwrap().is_none(), "one was sent");
        assert!(flow.hold(0, mebibyte()).is_err());
        assert_eq!(flow.abandon().len(), 66);
        assert!(flow.hold(0, mebibyte()).unwrap().is_none());
    }
}
