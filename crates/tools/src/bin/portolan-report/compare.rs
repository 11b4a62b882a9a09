//! Compares two runs of a program.
//!
//! Call times are compared per rank, so the runs may have different numbers of ranks.

use crate::model::{RankState, bytes, time};
use crate::run::AnalysedRun;
use crate::summary::one_line;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A value of both runs, formatted, and its change.
#[derive(Debug)]
pub struct ComparedValue {
    pub name: String,
    pub before: String,
    pub now: String,
    pub change: String,
}

/// A call on one path in both runs: its count, and its own time per rank in nanoseconds.
#[derive(Debug)]
pub struct ComparedCall {
    pub name: String,
    pub calls: [u64; 2],
    pub ns: [f64; 2],
}

impl ComparedCall {
    pub fn change(&self) -> String {
        change(self.ns[0], self.ns[1])
    }
}

#[derive(Debug)]
pub struct Compared {
    pub before: String,
    pub rows: Vec<ComparedValue>,
    pub calls: Vec<ComparedCall>,
    pub gone: Vec<String>,
    pub fresh: Vec<String>,
    pub remain: Vec<String>,
}

/// Formats a change: as a factor if it is 2 or more in either direction, otherwise in percent.
fn change(before: f64, now: f64) -> String {
    match (before > 0.0, now > 0.0) {
        (false, false) => "none".into(),
        (false, true) => "new".into(),
        (true, false) => "gone".into(),
        _ if before == now => "the same".into(),
        _ if now >= 2.0 * before => format!("{:.1} times", now / before),
        _ if before >= 2.0 * now => format!("1/{:.1}", before / now),
        _ => format!("{:+.1} %", (now / before - 1.0) * 100.0),
    }
}

pub fn compare(before: &AnalysedRun, now: &AnalysedRun) -> Compared {
    let both = [before, now];
    let ranks = both.map(|run| run.trace.files.len().max(1) as f64);
    let mut rows = Vec::new();
    let mut row = |name: String, values: [f64; 2], text: fn(f64) -> String| {
        if values != [0.0, 0.0] {
            let change = change(values[0], values[1]);
            rows.push(ComparedValue {
                name,
                before: text(values[0]),
                now: text(values[1]),
                change,
            });
        }
    };
    let number = |value: f64| crate::model::count(value as u64);
    row("ranks".into(), both.map(|run| run.trace.ranks as f64), number);
    row("wall time".into(), both.map(|run| run.trace.wall as f64), time);
    let a_rank = |of: &dyn Fn(&AnalysedRun) -> u64| [0, 1].map(|k| of(both[k]) as f64 / ranks[k]);
    row("in calls, a rank".into(), a_rank(&|run| run.analysis.sum(|r| r.in_calls())), time);
    for state in RankState::all().filter(|state| state.waits()) {
        let values = a_rank(&|run| run.analysis.sum(|r| r.states[state as usize]));
        row(format!("{}, a rank", state.name()), values, time);
    }
    row(
        "transfers and messages".into(),
        both.map(|r| r.analysis.matrix.total().calls as f64),
        number,
    );
    row("bytes moved".into(), both.map(|r| r.analysis.matrix.total().bytes as f64), bytes);
    let mut calls: BTreeMap<_, ComparedCall> = BTreeMap::new();
    for (k, run) in both.into_iter().enumerate() {
        for (key, stats) in &run.analysis.calls.0 {
            let name = match key.path {
                portolan_trace_format::kinds::PathTaken::None => key.name(),
                path => format!("{}, {}", key.name(), path.name()),
            };
            let blank = ComparedCall { name, calls: [0; 2], ns: [0.0; 2] };
            let to = calls.entry(*key).or_insert(blank);
            to.calls[k] = stats.count;
            to.ns[k] = stats.own as f64 / ranks[k];
        }
    }
    let mut calls: Vec<ComparedCall> = calls.into_values().collect();
    calls.sort_by(|a, b| (b.ns[1] - b.ns[0]).abs().total_cmp(&(a.ns[1] - a.ns[0]).abs()));
    calls.truncate(25);
    let (mut gone, mut fresh, mut remain) = (Vec::new(), Vec::new(), Vec::new());
    for old in &before.findings {
        match now.findings.iter().find(|finding| finding.kind == old.kind) {
            None => gone.push(format!("{}: {}", old.title, time(old.worth))),
            Some(new) => remain.push(format!(
                "{}: {}, and before {}",
                new.title,
                time(new.worth),
                time(old.worth)
            )),
        }
    }
    for new in &now.findings {
        if !before.findings.iter().any(|old| old.kind == new.kind) {
            fresh.push(format!("{}: {}", new.title, time(new.worth)));
        }
    }
    Compared { before: before.name.clone(), rows, calls, gone, fresh, remain }
}

impl Compared {
    pub fn text(&self) -> String {
        let mut text = format!("\nCompared with {}:\n", self.before);
        for row in &self.rows {
            let _ = writeln!(
                text,
                "{:>38}  {:>12} {:>12}  {}",
                row.name, row.before, row.now, row.change
            );
        }
        for call in self.calls.iter().take(12) {
            let _ = writeln!(
                text,
                "{:>38}  {:>12} {:>12}  {}",
                call.name,
                time(call.ns[0]),
                time(call.ns[1]),
                call.change()
            );
        }
        for (title, list) in
            [("resolved", &self.gone), ("new", &self.fresh), ("remains", &self.remain)]
        {
            for line in list {
                let _ = writeln!(text, "{title:>8}: {}", one_line(line));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::change;

    #[test]
    fn changes_in_words() {
        assert_eq!(change(2.0, 2.5), "+25.0 %");
        assert_eq!(change(2.0, 9.0), "4.5 times");
        assert_eq!(change(9.0, 2.0), "1/4.5");
        assert_eq!((change(0.0, 1.0).as_str(), change(1.0, 0.0).as_str()), ("new", "gone"));
    }
}
