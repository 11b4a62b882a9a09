//! Medians and their spread.
//!
//! A figure is the median of the rounds together with the quartiles. Load on the machine slows down
//! single rounds, sometimes many of them, and would distort a mean or a standard deviation.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    pub median: f64,
    pub low: f64,
    pub high: f64,
    pub rounds: usize,
}

impl Figure {
    pub fn of(values: &[f64]) -> Option<Figure> {
        if values.is_empty() {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Figure {
            median: quantile(&sorted, 0.5),
            low: quantile(&sorted, 0.25),
            high: quantile(&sorted, 0.75),
            rounds: sorted.len(),
        })
    }

    /// The quotients of two series, round by round: lasting load mostly cancels out.
    pub fn of_ratios(above: &[f64], below: &[f64]) -> Option<Figure> {
        let ratios: Vec<f64> =
            above.iter().zip(below).filter(|(_, b)| **b > 0.0).map(|(a, b)| a / b).collect();
        Figure::of(&ratios)
    }

    /// Returns half the interquartile range, as a fraction of the median.
    pub fn spread(&self) -> f64 {
        if self.median > 0.0 { (self.high - self.low) / 2.0 / self.median } else { 0.0 }
    }

    pub fn overlaps(&self, other: &Figure) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// Returns a quantile of ascending values, interpolated between the two nearest ones.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = part * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_quartiles() {
        assert_eq!(Figure::of(&[]), None);
        let one = Figure::of(&[7.0]).unwrap();
        assert_eq!((one.median, one.low, one.high, one.rounds), (7.0, 7.0, 7.0, 1));
        let five = Figure::of(&[5.0, 1.0, 4.0, 2.0, 3.0]).unwrap();
        assert_eq!((five.median, five.low, five.high), (3.0, 2.0, 4.0));
        let four = Figure::of(&[4.0, 1.0, 2.0, 3.0]).unwrap();
        assert_eq!((four.median, four.low, four.high), (2.5, 1.75, 3.25));
        assert_eq!(five.spread(), 1.0 / 3.0);
    }

    #[test]
    fn one_slow_round_moves_no_median() {
        let calm = Figure::of(&[1.0, 1.1, 0.9, 1.0, 1.0]).unwrap();
        let loaded = Figure::of(&[1.0, 1.1, 0.9, 1.0, 50.0]).unwrap();
        assert_eq!(calm.median, loaded.median);
        assert!(calm.overlaps(&loaded));
        assert!(!calm.overlaps(&Figure::of(&[2.0, 2.1, 2.2]).unwrap()));
    }

    #[test]
    fn ratios_of_rounds() {
        // Both series are slower in the last round, and the quotient stays the same.
        let ratio = Figure::of_ratios(&[2.0, 2.0, 20.0], &[1.0, 1.0, 10.0]).unwrap();
        assert_eq!((ratio.median, ratio.low, ratio.high), (2.0, 2.0, 2.0));
        assert_eq!(Figure::of_ratios(&[1.0], &[0.0]), None);
    }
}
