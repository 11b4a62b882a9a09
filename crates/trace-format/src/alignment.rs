//! Converts times of a rank's clock to the clock of rank 0, using the clock samples of its host.
//! The offset is interpolated linearly between samples, and constant before the first and after the
//! last one. Between samples the error bound grows by [`STRAY`]; outside of them it grows by
//! [`DRIFT`].

/// A comparison with the clock of rank 0, which shows `time + offset`. All values are nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Time of the rank's clock.
    pub time: u64,
    /// Difference to the clock of rank 0.
    pub offset: i64,
    /// Largest error of the offset.
    pub bound: u64,
}

/// Drift between two uncorrected crystals, in millionths.
pub const DRIFT: u64 = 100;
/// Deviation of the offset from a line between two samples, caused by changes of temperature, in
/// millionths of the time to the nearer sample.
pub const STRAY: u64 = 1;

/// The clock of one rank.
#[derive(Debug, Clone, Default)]
pub struct Alignment {
    samples: Vec<Sample>,
}

impl Alignment {
    /// Creates the alignment from samples in any order. Without samples, times are not changed.
    pub fn new(mut samples: Vec<Sample>) -> Alignment {
        samples.sort_by_key(|sample| sample.time);
        samples.dedup_by_key(|sample| sample.time);
        Alignment { samples }
    }

    /// Returns the samples, sorted by time.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Converts a time to the clock of rank 0.
    pub fn aligned(&self, time: u64) -> u64 {
        time.saturating_add_signed(self.offset(time))
    }

    /// Returns the offset to add to a time.
    pub fn offset(&self, time: u64) -> i64 {
        match self.around(time) {
            (Some(before), Some(after)) => {
                let length = (after.time - before.time) as i128;
                let into = (time - before.time) as i128;
                let change = (after.offset as i128) - (before.offset as i128);
                // Samples of a damaged file may have any values.
                let at = before.offset as i128 + change.saturating_mul(into) / length;
                at.clamp(i64::MIN.into(), i64::MAX.into()) as i64
            }
            (Some(one), None) | (None, Some(one)) => one.offset,
            (None, None) => 0,
        }
    }

    /// Returns the largest error of an aligned time, or `None` if there are no samples.
    pub fn bound(&self, time: u64) -> Option<u64> {
        match self.around(time) {
            (Some(before), Some(after)) => {
                let near = (time - before.time).min(after.time - time);
                let stray = near.saturating_mul(STRAY) / 1_000_000;
                Some(before.bound.max(after.bound).saturating_add(stray))
            }
            (Some(one), None) | (None, Some(one)) => {
                let drift = one.time.abs_diff(time).saturating_mul(DRIFT) / 1_000_000;
                Some(one.bound.saturating_add(drift))
            }
            (None, None) => None,
        }
    }

    /// Returns the drift against the clock of rank 0 in millionths, or `None` without two samples.
    pub fn drift(&self) -> Option<f64> {
        let (first, last) = (self.samples.first()?, self.samples.last()?);
        let length = last.time - first.time;
        let change = i128::from(last.offset) - i128::from(first.offset);
        (length > 0).then(|| change as f64 / length as f64 * 1e6)
    }

    /// Returns the last sample at or before a time, and the first one after it.
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
        assert_eq!(clock.bound(second - 500_000), Some(700 + 50));
        let none = Alignment::new(Vec::new());
        assert_eq!((none.aligned(77), none.bound(77), none.drift()), (77, None, None));
        // The aligned time would be negative.
        assert_eq!(Alignment::new(vec![sample(9, -5, 0)]).aligned(3), 0);
    }

    #[test]
    fn samples_of_a_damaged_file_may_have_any_values() {
        let sample = |time, offset| Sample { time, offset, bound: u64::MAX };
        let clock = Alignment::new(vec![sample(0, i64::MIN), sample(u64::MAX, i64::MAX)]);
        for time in [0, 1, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
            assert_eq!(clock.bound(time), Some(u64::MAX));
            clock.aligned(time);
        }
        assert!((clock.drift().unwrap() - 1e6).abs() < 1.0);
        let one = Alignment::new(vec![sample(5, 0)]);
        assert_eq!(one.bound(u64::MAX), Some(u64::MAX));
    }
}
