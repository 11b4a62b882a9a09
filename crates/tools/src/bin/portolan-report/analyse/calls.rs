//! Counts, bytes, and the distributions of sizes and times, by call and path.

use crate::model::{Activity, TraceSpan};
use hdrhistogram::Histogram;
use portolan_trace_format::kinds::{Call, PathTaken};
use std::collections::BTreeMap;

/// A call on one path. Transfers of several blocks are distinguished from contiguous ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallKey {
    pub what: Activity,
    pub path: PathTaken,
    pub strided: bool,
}

impl CallKey {
    pub fn name(self) -> String {
        let name = self.what.name();
        if self.strided { format!("{name}, strided") } else { name }
    }
}

#[derive(Debug)]
pub struct CallTotals {
    pub count: u64,
    pub bytes: u64,
    /// Total duration in nanoseconds, including nested spans.
    pub ns: u64,
    /// Total duration in nanoseconds, excluding nested spans.
    pub own: u64,
    pub shortest: u64,
    pub longest: u64,
    pub largest: u64,
    pub times: Histogram<u64>,
    pub sizes: Histogram<u64>,
}

impl Default for CallTotals {
    fn default() -> CallTotals {
        let new = || Histogram::new(2).expect("two digits are possible");
        CallTotals {
            count: 0,
            bytes: 0,
            ns: 0,
            own: 0,
            shortest: u64::MAX,
            longest: 0,
            largest: 0,
            times: new(),
            sizes: new(),
        }
    }
}

impl CallTotals {
    /// Returns a quantile of the durations, in nanoseconds. The histogram returns the upper end of
    /// a bucket, which may exceed the longest duration.
    pub fn time_at(&self, quantile: f64) -> u64 {
        self.times.value_at_quantile(quantile).min(self.longest)
    }

    pub fn size_at(&self, quantile: f64) -> u64 {
        self.sizes.value_at_quantile(quantile).min(self.largest)
    }
}

#[derive(Debug, Default)]
pub struct CallsByPath(pub BTreeMap<CallKey, CallTotals>);

impl CallsByPath {
    pub fn take(&mut self, span: &TraceSpan, own: u64) {
        let key = CallKey { what: span.what, path: span.path, strided: span.blocks > 1 };
        let stats = self.0.entry(key).or_default();
        stats.count += 1;
        stats.bytes += span.bytes;
        stats.ns += span.length();
        stats.own += own;
        stats.shortest = stats.shortest.min(span.length());
        stats.longest = stats.longest.max(span.length());
        stats.largest = stats.largest.max(span.bytes);
        // Recording fails only without memory, because `Histogram::new` enables resizing.
        let _ = stats.times.record(span.length().max(1));
        if span.bytes > 0 {
            let _ = stats.sizes.record(span.bytes);
        }
    }

    pub fn merge(&mut self, other: CallsByPath) {
        for (key, stats) in other.0 {
            let to = self.0.entry(key).or_default();
            to.count += stats.count;
            to.bytes += stats.bytes;
            to.ns += stats.ns;
            to.own += stats.own;
            to.shortest = to.shortest.min(stats.shortest);
            to.longest = to.longest.max(stats.longest);
            to.largest = to.largest.max(stats.largest);
            let _ = to.times.add(&stats.times);
            let _ = to.sizes.add(&stats.sizes);
        }
    }

    /// Returns the mean bandwidth of large contiguous transfers on a path in bytes per nanosecond,
    /// or `None` if there were none. Only call types with a mean size of at least 4096 bytes count.
    pub fn bandwidth(&self, path: PathTaken) -> Option<f64> {
        let large = self.0.iter().filter(|(key, stats)| {
            key.path == path
                && !key.strided
                && matches!(key.what, Activity::Call(_))
                && stats.bytes / stats.count.max(1) >= 4096
        });
        let (bytes, ns) = large.fold((0, 0), |(b, t), (_, s)| (b + s.bytes, t + s.ns));
        (bytes > 0 && ns > 0).then(|| bytes as f64 / ns as f64)
    }

    /// Returns the 2 % quantile of the duration of a call on a path in nanoseconds, or 0 if there
    /// was no such call. It estimates the duration without contention.
    pub fn quick(&self, call: Call, path: PathTaken) -> f64 {
        let key = CallKey { what: Activity::Call(call), path, strided: false };
        let found = self.0.get(&key).filter(|stats| stats.count > 0);
        found.map_or(0.0, |stats| stats.times.value_at_quantile(0.02) as f64)
    }
}

/// Counts the values of a histogram between consecutive powers of two. Returns the exponent of the
/// first power that has values, and the counts.
pub fn powers(histogram: &Histogram<u64>) -> (u32, Vec<u64>) {
    let mut counts = [0u64; 64];
    for value in histogram.iter_recorded() {
        let power = value.value_iterated_to().max(1).ilog2() as usize;
        counts[power] += value.count_at_value();
    }
    let Some(first) = counts.iter().position(|n| *n > 0) else { return (0, Vec::new()) };
    let last = counts.iter().rposition(|n| *n > 0).unwrap_or(first);
    (first as u32, counts[first..=last].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::span;

    #[test]
    fn strided_transfers_are_apart_and_extremes_are_exact() {
        let mut calls = CallsByPath::default();
        let get = |blocks, bytes, length| TraceSpan {
            path: PathTaken::Message,
            blocks,
            bytes,
            ..span(Activity::Call(Call::Get), 0, 0, length)
        };
        for one in [get(1, 100_001, 1_001), get(1, 99_999, 999), get(50, 100_000, 90_000)] {
            calls.take(&one, one.length());
        }
        let rows: Vec<(String, u64)> =
            calls.0.iter().map(|(key, stats)| (key.name(), stats.count)).collect();
        assert_eq!(rows, [("get".to_string(), 2), ("get, strided".to_string(), 1)]);
        let first = calls.0.values().next().expect("a row");
        assert_eq!((first.shortest, first.longest, first.largest), (999, 1_001, 100_001));
        assert_eq!(calls.bandwidth(PathTaken::Message), Some(100.0));
        assert_eq!((first.time_at(0.99), first.size_at(0.99)), (1_001, 100_001));
    }

    #[test]
    fn powers_of_two_are_counted() {
        let mut histogram = Histogram::new(2).expect("it can be made");
        for (value, n) in [(1, 3), (2, 1), (3, 1), (8, 5)] {
            histogram.record_n(value, n).expect("it is small");
        }
        assert_eq!(powers(&histogram), (0, vec![3, 2, 0, 5]));
        assert_eq!(powers(&Histogram::new(2).expect("it can be made")), (0, vec![]));
    }
}
