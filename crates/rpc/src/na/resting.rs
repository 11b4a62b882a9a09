//! Transfers that rest: they cannot advance before a connected peer answers.
//!
//! Waiting threads, and programs that wait for a descriptor, must poll for transfers, except for
//! those that rest. A peer that is stopped thus costs no processor time. Transfers rest in
//! *rounds*. Each time something arrives from a network, a round ends, and no transfer rests until
//! it has been examined again.
//!
//! Invariant: the round does not change between the examination of a transfer and its rest.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of a round. It wraps around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Round(u32);

/// The round in the upper half, and the number of transfers that rest in the lower half.
#[derive(Debug, Default)]
pub(super) struct Resting(AtomicU64);

fn round_of(word: u64) -> Round {
    Round((word >> 32) as u32)
}

impl Resting {
    pub fn round(&self) -> Round {
        round_of(self.0.load(Ordering::Acquire))
    }

    pub fn count(&self) -> usize {
        self.0.load(Ordering::Acquire) as u32 as usize
    }

    /// Ends the round. Returns whether a transfer rested.
    pub fn end_round(&self) -> bool {
        let next = |word| Some(u64::from(round_of(word).0.wrapping_add(1)) << 32);
        let ended = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        ended.is_ok_and(|word| word as u32 > 0)
    }

    /// Counts a transfer that rests, unless the round has ended. Returns whether it does.
    pub fn begin(&self, round: Round) -> bool {
        self.change(round, |word| word + 1)
    }

    /// Ends the rest of a transfer, unless the round has ended.
    pub fn end(&self, round: Round) {
        self.change(round, |word| word - 1);
    }

    fn change(&self, round: Round, changed: impl Fn(u64) -> u64) -> bool {
        let change = |word| (round_of(word) == round).then(|| changed(word));
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, change).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_rests_in_a_later_round() {
        let resting = Resting::default();
        let first = resting.round();
        assert!(resting.begin(first) && resting.begin(first));
        resting.end(first);
        assert_eq!(resting.count(), 1);
        assert!(resting.end_round());
        assert_eq!(resting.count(), 0);
        assert!(!resting.begin(first), "something has arrived since it was examined");
        resting.end(first);
        assert_eq!(resting.count(), 0);
        assert!(!resting.end_round());
        assert!(resting.begin(resting.round()));
        assert_eq!(resting.count(), 1);
    }
}
