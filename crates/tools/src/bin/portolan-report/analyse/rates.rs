//! Bandwidth and operation rate over time, by path.

use crate::model::{Activity, TraceSpan};
use portolan_trace_format::kinds::PathTaken;

/// Number of intervals of the job.
pub const COLUMNS: usize = 256;
const PATHS: usize = PathTaken::ALL.len();

#[derive(Debug)]
pub struct Rates {
    wall: u64,
    bytes: Vec<f64>,
    operations: Vec<f64>,
}

impl Rates {
    pub fn new(wall: u64) -> Rates {
        let zeroes = || vec![0.0; PATHS * COLUMNS];
        Rates { wall: wall.max(1), bytes: zeroes(), operations: zeroes() }
    }

    /// Adds a call that moves bytes. They are spread over its duration.
    pub fn take(&mut self, span: &TraceSpan) {
        if !matches!(span.what, Activity::Call(_)) || span.moves() == 0 {
            return;
        }
        let row = span.path as usize * COLUMNS;
        let length = span.length().max(1);
        let column = |time: u64| {
            let at = u128::from(time) * COLUMNS as u128 / u128::from(self.wall);
            (at as usize).min(COLUMNS - 1)
        };
        let (first, last) = (column(span.begin), column(span.begin + length - 1));
        self.operations[row + first] += 1.0;
        let width = self.wall as f64 / COLUMNS as f64;
        for at in first..=last {
            let from = (at as f64 * width).max(span.begin as f64);
            let to = ((at + 1) as f64 * width).min((span.begin + length) as f64);
            let part = if first == last { 1.0 } else { (to - from).max(0.0) / length as f64 };
            self.bytes[row + at] += span.bytes as f64 * part;
        }
    }

    pub fn merge(&mut self, other: &Rates) {
        self.bytes.iter_mut().zip(&other.bytes).for_each(|(to, from)| *to += from);
        self.operations.iter_mut().zip(&other.operations).for_each(|(to, from)| *to += from);
    }

    /// Returns the paths with operations: bytes and operations per second in each interval.
    pub fn by_path(&self) -> Vec<(PathTaken, Vec<f64>, Vec<f64>)> {
        let seconds = self.wall as f64 / COLUMNS as f64 / 1e9;
        let row = |values: &[f64], path: PathTaken| -> Vec<f64> {
            let from = path as usize * COLUMNS;
            values[from..from + COLUMNS].iter().map(|value| value / seconds).collect()
        };
        let paths = PathTaken::ALL
            .iter()
            .map(|path| (*path, row(&self.bytes, *path), row(&self.operations, *path)));
        paths.filter(|(.., operations)| operations.iter().any(|rate| *rate > 0.0)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::span;
    use portolan_trace_format::kinds::Call;

    #[test]
    fn bytes_are_spread_and_operations_counted_once() {
        let wall = COLUMNS as u64 * 1_000;
        let mut rates = Rates::new(wall);
        let put = TraceSpan {
            bytes: 4_000,
            peer: Some(1),
            path: PathTaken::Message,
            ..span(Activity::Call(Call::Put), 0, 500, 4_000)
        };
        rates.take(&put);
        let mut both = Rates::new(wall);
        both.merge(&rates);
        both.take(&TraceSpan { begin: wall - 1, end: wall, ..put });
        let all = both.by_path();
        let [(PathTaken::Message, bytes, operations)] = &all[..] else { panic!("{all:?}") };
        // An interval is a microsecond.
        assert_eq!(bytes[..6], [5e8, 1e9, 1e9, 1e9, 5e8, 0.0]);
        assert_eq!((bytes[COLUMNS - 1], operations[0], operations[1]), (4e9, 1e6, 0.0));
    }
}
