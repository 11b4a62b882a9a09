//! The statistics of an engine, for the program and for the table of `PORTOLAN_STATS`. At the end
//! of the engine the ranks reduce all values to sum, minimum, maximum and the rank that has the
//! maximum, and rank 0 writes the table.

use super::Engine;
use crate::collective::Operator;
use portolan_base::error::Result;
use portolan_base::trace::counters::{CALLS, CAUSES, Calls, PATHS, SERVED, Sum};
use portolan_base::trace::{Call, Cause, PathTaken, Served, usage};
use std::fmt::Write;
use std::time::Instant;

#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    /// All calls were counted: `PORTOLAN_STATS` or `PORTOLAN_TRACE` is set.
    pub complete: bool,
    pub seconds: f64,
    pub sum: Sum,
    pub peak_memory: u64,
    pub dropped_events: u64,
}

impl Statistics {
    pub fn call(&self, call: usize) -> Calls {
        total(self.sum.calls[call].iter())
    }

    pub fn path(&self, path: usize) -> Calls {
        total(self.sum.calls.iter().map(|paths| &paths[path]))
    }

    /// Returns the rank that this rank waited for longest in total, and the time in nanoseconds.
    pub fn most_waited_for(&self) -> Option<(u32, u64)> {
        let all = self.sum.waited_for.iter().map(|(&rank, &ns)| (rank, ns));
        all.max_by_key(|&(rank, ns)| (ns, std::cmp::Reverse(rank)))
    }

    /// Passes the name and the value of each nonzero count to `to`.
    pub fn record(&self, mut to: impl FnMut(&str, u64)) {
        for (name, value) in self.rows().iter().filter(|(_, value)| *value != 0) {
            to(name, *value as u64);
        }
    }

    fn rows(&self) -> Vec<(String, i64)> {
        let mut rows: Vec<(String, u64)> = Vec::new();
        for (call, paths) in Call::ALL.iter().zip(&self.sum.calls) {
            for (path, of) in PathTaken::ALL.iter().zip(paths) {
                let name = format!("{}, {}", call.name(), path.name());
                let three = [("calls", of.calls), ("bytes", of.bytes), ("ns", of.ns)];
                rows.extend(three.map(|(what, value)| (format!("{name}: {what}"), value)));
            }
        }
        let waits = Cause::ALL.iter().map(|cause| format!("wait for {}", cause.name()));
        let served = Served::ALL.iter().map(|kind| format!("served {}", kind.name()));
        let spent = self.sum.waits.iter().chain(&self.sum.served);
        for (name, of) in waits.chain(served).zip(spent) {
            let three = [("number", of.count), ("ns", of.ns), ("longest ns", of.longest)];
            rows.extend(three.map(|(what, value)| (format!("{name}: {what}"), value)));
        }
        let single = [
            ("longest service delay, ns", self.sum.delays.longest),
            ("bytes served", self.sum.served_bytes),
            ("naps", self.sum.naps),
            ("rendezvous", self.sum.rendezvous),
            ("aggregated messages", self.sum.aggregated_messages),
            ("aggregated items", self.sum.aggregated_items),
            ("requests served", self.sum.requests),
            ("peak memory, bytes", self.peak_memory),
            ("dropped events", self.dropped_events),
        ];
        rows.extend(single.map(|(name, value)| (name.into(), value)));
        rows.into_iter().map(|(name, n)| (name, i64::try_from(n).unwrap_or(i64::MAX))).collect()
    }
}

fn total<'a>(all: impl Iterator<Item = &'a Calls>) -> Calls {
    all.fold(Calls::default(), |sum, one| Calls {
        calls: sum.calls + one.calls,
        bytes: sum.bytes + one.bytes,
        ns: sum.ns + one.ns,
    })
}

#[derive(Debug)]
struct Row {
    name: String,
    sum: i64,
    least: i64,
    most: i64,
    most_of: i64,
}

impl Engine {
    pub fn statistics(&self) -> Statistics {
        self.statistics_of(false)
    }

    /// Since the last reset, or since the start with `all_time`.
    fn statistics_of(&self, all_time: bool) -> Statistics {
        let since = if all_time { self.started } else { *self.counted_since.lock() };
        Statistics {
            complete: self.is_observed(),
            seconds: since.elapsed().as_secs_f64(),
            sum: self.observer().sum(all_time),
            peak_memory: usage::peak_memory(),
            dropped_events: self.observer().dropped(),
        }
    }

    pub fn reset_statistics(&self) {
        self.observer().reset();
        *self.counted_since.lock() = Instant::now();
    }

    pub(super) fn trace_statistics(&self) {
        self.statistics_of(true).record(|name, value| self.observer().counter(name, value));
    }

    /// If `PORTOLAN_STATS` is set. Collective.
    pub(super) fn write_statistics(&self) -> Result<()> {
        if !self.config.stats {
            return Ok(());
        }
        let mine = self.statistics_of(true);
        let (names, own): (Vec<String>, Vec<i64>) = mine.rows().into_iter().unzip();
        let world = self.world();
        let reduced = |mut values: Vec<i64>, operator| -> Result<Vec<i64>> {
            world.reduce(self.core(), &mut values, operator, None)?;
            Ok(values)
        };
        let sum = reduced(own.clone(), Operator::Sum)?;
        let least = reduced(own.clone(), Operator::Min)?;
        let most = reduced(own.clone(), Operator::Max)?;
        let me = self.rank() as i64;
        let has_most =
            own.iter().zip(&most).map(|(own, most)| if own == most { me } else { i64::MAX });
        let most_of = reduced(has_most.collect(), Operator::Min)?;
        let mut waited_for = vec![0i64; self.size()];
        for (&rank, &ns) in &mine.sum.waited_for {
            if let Some(of) = waited_for.get_mut(rank as usize) {
                *of = ns as i64;
            }
        }
        let waited_for = reduced(waited_for, Operator::Sum)?;
        if self.rank() == 0 {
            let row = |(n, name)| {
                let (least, most, most_of) = (least[n], most[n], most_of[n]);
                Row { name, sum: sum[n], least, most, most_of }
            };
            let rows: Vec<Row> = names.into_iter().enumerate().map(row).collect();
            let text = table(&rows, &waited_for, self.size(), mine.seconds);
            portolan_base::process::message::write(text.as_bytes());
        }
        Ok(())
    }
}

fn table(rows: &[Row], waited_for: &[i64], ranks: usize, seconds: f64) -> String {
    let mut text = format!("Portolan's statistics: {ranks} ranks, {seconds:.3} s\n");
    let mut head = |what: &str| {
        let _ = writeln!(
            text,
            "  {what:<42} {:>12} {:>12} {:>12} {:>7}",
            "mean", "least", "most", "of rank"
        );
    };
    head("calls of a rank, by call and path");
    let mean = |row: &Row| row.sum as f64 / ranks as f64;
    let line = |text: &mut String, name: &str, row: &Row, show: &dyn Fn(f64) -> String| {
        let _ = writeln!(
            text,
            "  {name:<42} {:>12} {:>12} {:>12} {:>7}",
            show(mean(row)),
            show(row.least as f64),
            show(row.most as f64),
            row.most_of
        );
    };
    let mut at = rows;
    let mut next = || {
        let (first, rest) = at.split_at(3);
        at = rest;
        [&first[0], &first[1], &first[2]]
    };
    for call in Call::ALL {
        for path in PathTaken::ALL {
            let [calls, bytes, time] = next();
            if calls.sum == 0 {
                continue;
            }
            let name = match path {
                PathTaken::None => call.name().to_string(),
                path => format!("{}, {}", call.name(), path.name()),
            };
            line(&mut text, &name, calls, &number);
            if bytes.sum > 0 {
                line(&mut text, "    bytes", bytes, &bytes_text);
            }
            line(&mut text, "    time", time, &time_text);
        }
    }
    text.push_str("  waits of a rank, by what was waited for\n");
    for (n, name) in
        Cause::ALL.iter().map(|c| c.name()).chain(Served::ALL.iter().map(|s| s.name())).enumerate()
    {
        if n == CAUSES {
            text.push_str("  served for other ranks\n");
        }
        let [count, time, longest] = next();
        if count.sum > 0 {
            line(&mut text, name, count, &number);
            line(&mut text, "    time", time, &time_text);
            line(&mut text, "    longest", longest, &time_text);
        }
    }
    text.push_str("  others\n");
    for row in at.iter().filter(|row| row.sum > 0) {
        let (name, show): (&str, &dyn Fn(f64) -> String) = match row.name.rsplit_once(", ") {
            Some((name, "ns")) => (name, &time_text),
            Some((name, _)) => (name, &bytes_text),
            None if row.name.starts_with("bytes") => (&row.name, &bytes_text),
            None => (&row.name, &number),
        };
        line(&mut text, name, row, show);
    }
    let [messages, items] = [at[4].sum, at[5].sum];
    if messages > 0 {
        let _ = writeln!(
            text,
            "  {:<42} {:>12.1}",
            "items of an aggregated message",
            items as f64 / messages as f64
        );
    }
    let mut most: Vec<(usize, i64)> =
        waited_for.iter().copied().enumerate().filter(|&(_, ns)| ns > 0).collect();
    most.sort_by_key(|&(rank, ns)| (std::cmp::Reverse(ns), rank));
    let most: Vec<String> = most
        .iter()
        .take(5)
        .map(|&(rank, ns)| format!("{rank} ({})", time_text(ns as f64)))
        .collect();
    if !most.is_empty() {
        let _ = writeln!(text, "  ranks that were waited for longest, of all: {}", most.join(", "));
    }
    text
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 || value >= 1000.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

fn bytes_text(bytes: f64) -> String {
    scaled(bytes, &[("B", 1024.0), ("KiB", 1024.0), ("MiB", 1024.0), ("GiB", 1024.0), ("TiB", 1e9)])
}

fn time_text(ns: f64) -> String {
    scaled(ns, &[("ns", 1e3), ("us", 1e3), ("ms", 1e3), ("s", 1e12)])
}

fn scaled(mut value: f64, units: &[(&str, f64)]) -> String {
    for (unit, next) in units {
        if value < *next {
            let digits = if value.fract() == 0.0 || value >= 100.0 { 0 } else { 1 };
            return format!("{value:.digits$} {unit}");
        }
        value /= next;
    }
    format!("{value}")
}

pub const COUNTS: [usize; 4] = [CALLS, PATHS, CAUSES, SERVED];

#[cfg(test)]
mod tests {
    use super::*;
    use portolan_base::trace::counters::Spent;

    #[test]
    fn counts_have_names_and_units() {
        let mut sum =
            Sum { naps: 5, aggregated_messages: 2, aggregated_items: 7, ..Sum::default() };
        sum.calls[Call::Put as usize][PathTaken::Direct as usize] =
            Calls { calls: 4, bytes: 32, ns: 40 };
        sum.waits[Cause::Lock as usize] = Spent { count: 2, ns: 3_000, longest: 2_000 };
        sum.waited_for.insert(1, 3_000);
        let statistics = Statistics {
            complete: true,
            seconds: 1.0,
            sum,
            peak_memory: 1 << 20,
            dropped_events: 0,
        };
        let mut traced = Vec::new();
        statistics.record(|name, value| traced.push((name.to_string(), value)));
        assert!(traced.contains(&("put, direct: bytes".into(), 32)), "{traced:?}");
        assert!(traced.contains(&("wait for lock: longest ns".into(), 2_000)), "{traced:?}");
        assert_eq!(statistics.most_waited_for(), Some((1, 3_000)));
        assert_eq!(
            statistics.call(Call::Put as usize),
            statistics.path(PathTaken::Direct as usize)
        );

        let row = |(name, v)| Row { name, sum: 2 * v, least: v, most: v, most_of: 0 };
        let rows: Vec<Row> = statistics.rows().into_iter().map(row).collect();
        let text = table(&rows, &[0, 6_000], 2, 1.5);
        for part in [
            "2 ranks, 1.500 s",
            "put, direct",
            "32 B",
            "lock",
            "3 us",
            "naps",
            "1 MiB",
            "items of an aggregated message                      3.5",
            "ranks that were waited for longest, of all: 1 (6 us)",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains("rendezvous") && !text.contains("get"), "{text}");
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(time_text(999.0), "999 ns");
        assert_eq!(time_text(1_500.0), "1.5 us");
        assert_eq!(time_text(2e10), "20 s");
        assert_eq!(bytes_text(3.0 * 1024.0 * 1024.0), "3 MiB");
        assert_eq!(
            (number(2.0), number(2.25), number(12345.5)),
            ("2".into(), "2.2".into(), "12346".into())
        );
    }
}
