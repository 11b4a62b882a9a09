//! Calls by the place in the program that makes them.

use crate::model::{Activity, TraceSpan};
use crate::read::Trace;
use crate::symbols::Symbols;
use portolan_trace_format::kinds::PathTaken;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Calls of one kind on one path, from one place. Times are nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SiteTotals {
    pub count: u64,
    pub bytes: u64,
    pub ns: u64,
    /// Time in waits, and in requests of others that were served meanwhile.
    pub waited: u64,
    /// Longest call: length, rank, start.
    pub longest: (u64, u32, u64),
}

impl SiteTotals {
    fn add(&mut self, other: &SiteTotals) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.ns += other.ns;
        self.waited += other.waited;
        self.longest = self.longest.max(other.longest);
    }
}

/// Call sites by number ([`Trace::chains`]), call and path.
#[derive(Debug, Default)]
pub struct CallSites {
    by_number: HashMap<(u32, Activity, PathTaken), SiteTotals>,
    /// The description of each number.
    pub lines: Vec<String>,
    /// The call sites, the most expensive first. Numbers with the same description are merged.
    pub rows: Vec<(String, Activity, PathTaken, SiteTotals)>,
}

impl CallSites {
    pub fn take(&mut self, span: &TraceSpan, own: u64) {
        let Some(site) = span.site else { return };
        let waits = if span.state().waits() { own } else { 0 };
        let one = SiteTotals {
            count: 1,
            bytes: span.bytes,
            ns: span.length(),
            waited: span.length() - own + waits,
            longest: (span.length(), span.rank, span.begin),
        };
        self.by_number.entry((site, span.what, span.path)).or_default().add(&one);
    }

    pub fn merge(&mut self, other: CallSites) {
        for (key, totals) in other.by_number {
            self.by_number.entry(key).or_default().add(&totals);
        }
    }

    /// Finds the lines of all sites. Returns descriptions of the files that cannot be used.
    pub fn resolve(&mut self, trace: &Trace) -> Vec<String> {
        let mut symbols = Symbols::new(trace.started);
        self.lines = trace.chains.iter().map(|chain| symbols.describe(chain)).collect();
        let mut rows: BTreeMap<(&str, Activity, PathTaken), SiteTotals> = BTreeMap::new();
        for ((site, call, path), totals) in &self.by_number {
            let Some(line) = self.lines.get(*site as usize) else { continue };
            rows.entry((line, *call, *path)).or_default().add(totals);
        }
        let row =
            |((line, call, path), totals): ((&str, _, _), _)| (line.into(), call, path, totals);
        self.rows = rows.into_iter().map(row).collect();
        self.rows.sort_by_key(|(.., totals)| Reverse(totals.ns));
        symbols.problems
    }

    /// Returns the line that spends most time in calls that `counts` selects, and its fraction of
    /// their time.
    pub fn busiest(&self, counts: impl Fn(Activity) -> bool) -> Option<(&str, f64)> {
        let mut lines: BTreeMap<&str, u64> = BTreeMap::new();
        for (line, _, _, totals) in self.rows.iter().filter(|(_, call, ..)| counts(*call)) {
            *lines.entry(line).or_default() += totals.ns;
        }
        let all: u64 = lines.values().sum();
        let (line, ns) = lines.into_iter().max_by_key(|(_, ns)| *ns)?;
        Some((line, ns as f64 / all.max(1) as f64))
    }
}
