//! Compares two results.
//!
//! A figure has changed if its median differs by more than the tolerance **and** the interquartile
//! ranges of both runs do not overlap, so that noise does not count as a change. Rows are paired by
//! [`ResultRow::key`]. Rows that only one of the runs has are counted, but they are not failures.

use crate::report::{Report, ResultRow};
use crate::stats::Figure;
use clap::ValueEnum;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The quantity that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Quantity {
    /// Times.
    Time,
    /// Speed as a fraction of the bound's speed.
    Bound,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpeedChange {
    Same,
    Faster,
    Slower,
}

#[derive(Debug)]
struct RowPair {
    series: String,
    bytes: Option<usize>,
    /// New speed divided by the old speed.
    speed: f64,
    verdict: SpeedChange,
}

#[derive(Debug)]
pub struct Compared {
    pairs: Vec<RowPair>,
    by: Quantity,
    /// Number of rows that only the old results have, and that only the new ones have.
    only: (usize, usize),
}

/// Higher is faster. The quartiles stay in ascending order.
fn speed(row: &ResultRow, by: Quantity) -> Option<Figure> {
    match by {
        Quantity::Bound => row.of_bound,
        Quantity::Time => {
            let Figure { median, low, high, rounds } = row.time;
            Some(Figure { median: 1.0 / median, low: 1.0 / high, high: 1.0 / low, rounds })
        }
    }
}

fn verdict(old: &Figure, new: &Figure, tolerance: f64) -> SpeedChange {
    if old.overlaps(new) {
        SpeedChange::Same
    } else if new.median * (1.0 + tolerance) < old.median {
        SpeedChange::Slower
    } else if old.median * (1.0 + tolerance) < new.median {
        SpeedChange::Faster
    } else {
        SpeedChange::Same
    }
}

pub fn compare(old: &Report, new: &Report, by: Quantity, tolerance: f64) -> Compared {
    let mut before: BTreeMap<_, _> = old.rows.iter().map(|row| (row.key(), row)).collect();
    let (mut pairs, mut alone) = (Vec::new(), 0);
    for row in &new.rows {
        let was = before.remove(&row.key()).and_then(|was| speed(was, by));
        let (Some(was), Some(is)) = (was, speed(row, by)) else {
            alone += 1;
            continue;
        };
        pairs.push(RowPair {
            series: row.series(),
            bytes: row.bytes,
            speed: is.median / was.median,
            verdict: verdict(&was, &is, tolerance),
        });
    }
    Compared { pairs, by, only: (before.len(), alone) }
}

impl Compared {
    fn count(&self, verdict: SpeedChange) -> usize {
        self.pairs.iter().filter(|pair| pair.verdict == verdict).count()
    }

    /// Returns the number of figures that have become slower. Returns 1 if the results have no
    /// figure in common, because such a comparison proves nothing.
    pub fn slower(&self) -> usize {
        if self.pairs.is_empty() { 1 } else { self.count(SpeedChange::Slower) }
    }

    pub fn text(&self, tolerance: f64) -> String {
        let what = match self.by {
            Quantity::Time => "speed",
            Quantity::Bound => "part of the bound",
        };
        let mut text = format!(
            "\n# compared: {what}, tolerance {:.0} %, and more than the quartiles of both runs\n",
            tolerance * 100.0
        );
        if self.pairs.is_empty() {
            text += "the results have no figure in common\n";
            return text;
        }
        for pair in self.pairs.iter().filter(|pair| pair.verdict != SpeedChange::Same) {
            let word = if pair.verdict == SpeedChange::Slower { "SLOWER" } else { "faster" };
            let size = pair.bytes.map(|n| format!(", {n} bytes")).unwrap_or_default();
            let percent = (pair.speed - 1.0) * 100.0;
            let _ = writeln!(text, "{word} {percent:+6.1} %  {}{size}", pair.series);
        }
        let _ = write!(
            text,
            "{} the same, {} faster, {} slower",
            self.count(SpeedChange::Same),
            self.count(SpeedChange::Faster),
            self.count(SpeedChange::Slower)
        );
        if self.only != (0, 0) {
            let _ = write!(text, "; only before: {}, only now: {}", self.only.0, self.only.1);
        }
        text + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{report, row};

    fn figures(seconds: &[f64]) -> Report {
        let sizes = [8, 64, 512];
        let rows = seconds.iter().zip(sizes).map(|(s, n)| row("put_lat", "direct", n, *s));
        report(rows.collect())
    }

    #[test]
    fn only_what_leaves_tolerance_and_noise_has_changed() {
        let old = figures(&[1e-6, 1e-6, 1e-6]);
        // The quartiles of all rows are 5 % below and above the median.
        let new = figures(&[1.08e-6, 1.5e-6, 0.5e-6]);
        let compared = compare(&old, &new, Quantity::Time, 0.01);
        assert_eq!(compared.slower(), 1);
        let text = compared.text(0.01);
        assert!(text.contains("1 the same, 1 faster, 1 slower"), "{text}");
        assert!(text.contains("SLOWER  -33.3 %  put_lat pair, path direct, 64 bytes"), "{text}");
        // The change exceeds the noise but not the tolerance.
        assert_eq!(compare(&old, &new, Quantity::Time, 0.6).slower(), 0);
        assert_eq!(compare(&old, &old, Quantity::Time, 0.0).slower(), 0);
    }

    #[test]
    fn parts_of_the_bound_forgive_another_machine() {
        let (old, mut new) = (figures(&[1e-6]), figures(&[9e-6]));
        assert_eq!(compare(&old, &new, Quantity::Time, 0.1).slower(), 1);
        assert_eq!(compare(&old, &new, Quantity::Bound, 0.1).slower(), 0);
        let half = |f: Figure| Figure {
            median: f.median / 2.0,
            low: f.low / 2.0,
            high: f.high / 2.0,
            ..f
        };
        new.rows[0].of_bound = new.rows[0].of_bound.map(half);
        assert_eq!(compare(&old, &new, Quantity::Bound, 0.1).slower(), 1);
    }

    #[test]
    fn rows_of_one_run_are_counted() {
        let old = figures(&[1e-6, 1e-6]);
        let mut new = figures(&[1e-6]);
        new.rows.push(row("get_lat", "rma", 8, 1.0));
        let text = compare(&old, &new, Quantity::Time, 0.1).text(0.1);
        assert!(
            text.contains("1 the same, 0 faster, 0 slower; only before: 1, only now: 1"),
            "{text}"
        );
        let nothing = compare(&figures(&[]), &new, Quantity::Time, 0.1);
        assert_eq!(nothing.slower(), 1);
        assert!(nothing.text(0.1).contains("no figure in common"));
    }
}
