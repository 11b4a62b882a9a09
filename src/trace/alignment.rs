//! A rank's clock in that of rank 0, from the clock samples of its host.
//!
//! Between two samples the offset is taken as a line; before the first and behind the last it is theirs. The error
//! that is stated holds at the samples; between them it is the line's, and what a crystal may stray from a line
//! ([`STRAY`]), and outside of them what it may drift ([`DRIFT`]).

/// One comparison of the clock with that of rank 0: `time + offset` is the time there, give or take `bound`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The rank's clock.
    pub time: u64,
    /// What is to be added to it.
    pub offset: i64,
    /// The error is at most this.
    pub bound: u64,
}

/// How far clocks run apart, in millionths: of crystals without correction.
pub const DRIFT: u64 = 100;
/// How far the offset strays from a line between samples, in millionths of the time to the nearer of them: temperature.
pub const STRAY: u64 = 1;

/// The clock of one rank.
#[derive(Debug, Clone, Default)]
pub struct Alignment {
    samples: Vec<Sample>,
}

impl Alignment {
    /// From the samples, in any order; with none the clock is taken as rank 0's.
    pub fn new(mut samples: Vec<Sample>) -> Alignment {
        samples.sort_by_key(|sample| sample.time);
        samples.dedup_by_key(|sample| sample.time);
        Alignment { samples }
    }

    /// The samples, by time.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The time in rank 0's clock.
    pub fn aligned(&self, time: u64) -> u64 {
        time.saturating_add_signed(self.offset(time))
    }

    /// What is to be added to this time.
    pub fn offset(&self, time: u64) -> i64 {
        match self.around(time) {
            (Some(before), Some(after)) => {
                let length = (after.time - before.time) as i128;
                let into = (time - before.time) as i128;
                let change = (after.offset as i128) - (before.offset as i128);
                (before.offset as i128 + change * into / length) as i64
            }
            (Some(one), None) | (None, Some(one)) => one.offset,
            (None, None) => 0,
        }
    }

    /// The error of the aligned time is at most this; `None` without samples.
    pub fn bound(&self, time: u64) -> Option<u64> {
        match self.around(time) {
            (Some(before), Some(after)) => {
                let near = (time - before.time).min(after.time - time);
                Some(before.bound.max(after.bound) + near * STRAY / 1_000_000)
            }
            (Some(one), None) | (None, Some(one)) => {
                Some(one.bound + one.time.abs_diff(time) / 1_000_000 * DRIFT)
            }
            (None, None) => None,
        }
    }

    /// How fast the rank's clock runs against rank 0's, in millionths, from the first and the last sample; `None` with
    /// fewer than two.
    pub fn drift(&self) -> Option<f64> {
        let (first, last) = (self.samples.first()?, self.samples.last()?);
        let length = last.time - first.time;
        (length > 0).then(|| (last.offset - first.offset) as f64 / length as f64 * 1e6)
    }

    /// The samples before (or at) and after a time.
    fn around(&self, time: u64) -> (Option<Sample>, Option<Sample>) {
        let after = self.samples.partition_point(|sample| sample.time <= time);
        (after.checked_sub(1).map(|at| self.samples[at]), self.samples.get(after).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_between_samples_and_constant_outside() {
        let sample = |time, offset, bound| Sample { time, offset, bound };
        let second = 1_000_000_000;
        let clock = Alignment::new(vec![
            sample(3 * second, 5_000_020_000, 900),
            sample(second, 5_000_000_000, 700),
        ]);
        assert_eq!(clock.aligned(0), 5_000_000_000);
        assert_eq!(clock.aligned(2 * second), 7_000_010_000);
        assert_eq!(clock.aligned(4 * second), 9_000_020_000);
        assert_eq!(clock.drift(), Some(10.0));
        assert_eq!(clock.bound(2 * second), Some(1900));
        assert_eq!(clock.bound(3 * second), Some(900));
        assert_eq!(clock.bound(0), Some(700 + 100_000));
        let none = Alignment::new(Vec::new());
        assert_eq!((none.aligned(77), none.bound(77), none.drift()), (77, None, None));
        // A clock ahead of rank 0's, close to where it began.
        assert_eq!(Alignment::new(vec![sample(9, -5, 0)]).aligned(3), 0);
    }
}
