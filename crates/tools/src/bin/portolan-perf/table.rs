//! The printed table, in columns like those of the OSU benchmarks and `ucx_perftest`.

use crate::cases::Test;
use crate::format::number;
use crate::plan::TargetActivity;
use crate::report::{ALL_RANKS, Metric, Report, ResultRow};
use std::fmt::Write;

pub fn head(report: &Report) -> String {
    let mut text = format!("# Portolan {}, {}\n", report.version, report.mpi);
    let nodes: Vec<String> =
        report.nodes.iter().map(|(name, ranks)| format!("{ranks} on {name}")).collect();
    let more = nodes.len().saturating_sub(8);
    let mut places = nodes[..nodes.len() - more].join(", ");
    if more > 0 {
        places += &format!(" and {more} nodes more");
    }
    let _ = writeln!(text, "# ranks: {places}; {} cores on the first node", report.cores);
    for (name, value) in &report.settings {
        let _ = writeln!(text, "# {name}={value}");
    }
    if report.ranks_on_first_host() > report.cores {
        text += "# There are more ranks than cores, so the figures are not reliable.\n";
    }
    text
}

/// Returns the line of a row, after a heading if it begins a series. `series` holds the series of the
/// last row, and the call updates it.
pub fn next(series: &mut Option<String>, what: &str, row: &ResultRow, ranks: usize) -> String {
    let of_row = Some(row.series());
    let heading = if *series == of_row { String::new() } else { heading(what, row, ranks) };
    *series = of_row;
    heading + &line(row)
}

fn heading(what: &str, row: &ResultRow, ranks: usize) -> String {
    let mut text = format!("\n# {}: {what}\n# {}", row.test, row.who(ranks));
    if row.target == TargetActivity::Computes {
        text += "; the target computes meanwhile";
    }
    if let Some(element) = &row.element {
        let _ = write!(text, "; {element}");
    }
    let _ = writeln!(text, "; path {}{}", row.path, taken(row));
    let unit = row.metric.unit();
    let figure = match row.metric {
        Metric::Latency => "Latency(us)",
        Metric::Bandwidth => "Bandw.(MB/s)",
    };
    let mut line = format!("{:>10} {figure:>13} {:>6} {:>10}", "Bytes", "+-%", "Mops/s");
    for bound in &row.bounds {
        let _ = write!(line, " {:>14} {:>6}", format!("{}({unit})", short(&bound.name)), "+-%");
    }
    let _ = writeln!(line, "  of the bound");
    line.replace_range(..1, "#");
    text + &line
}

/// Shortens a name so that it fits its column.
fn short(name: &str) -> &str {
    match name {
        "target waits" => "waits",
        other => other,
    }
}

/// Returns the path that was taken, if the library chose another one than requested.
fn taken(row: &ResultRow) -> String {
    if row.taken == row.path || row.taken == ALL_RANKS {
        String::new()
    } else {
        format!(" ({})", row.taken)
    }
}

fn line(row: &ResultRow) -> String {
    let value = |time: f64| number(row.value(time));
    let size = row.bytes.map_or("-".into(), |n| n.to_string());
    let mut line = format!(
        "{size:>10} {:>13} {:>6.1} {:>10}",
        value(row.time.median),
        row.time.spread() * 100.0,
        number(row.rate(row.time.median) / 1e6)
    );
    for bound in &row.bounds {
        let spread = bound.time.spread() * 100.0;
        let _ = write!(line, " {:>14} {spread:>6.1}", value(bound.time.median));
    }
    if let (Some(part), Some(bound)) = (&row.of_bound, &row.bound) {
        let _ = write!(line, "  {:.0}% {bound}", part.median * 100.0);
    }
    line + "\n"
}

pub fn whole(report: &Report, tests: &[Test]) -> String {
    let mut text = head(report);
    let mut before = None;
    for row in &report.rows {
        let what = tests.iter().find(|t| t.name == row.test).map_or("", |t| t.what);
        text += &next(&mut before, what, row, report.ranks);
    }
    text + &end(report)
}

/// Returns the text after the figures: skipped cases and advice.
pub fn end(report: &Report) -> String {
    let mut text = String::new();
    for skipped in &report.skipped {
        let _ = writeln!(text, "# not measured: {skipped}");
    }
    text + &crate::advise::text(&report.advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{report, row};

    #[test]
    fn columns_stand_below_their_heads() {
        let mut rows = vec![row("put_lat", "direct", 8, 1e-6), row("put_lat", "direct", 64, 2e-6)];
        rows.push(row("put_bw", "rma", 1 << 20, 1e-3));
        let text = whole(&report(rows), crate::cases::TESTS);
        let heads: Vec<&str> = text.lines().filter(|l| l.contains("of the bound")).collect();
        assert_eq!(heads.len(), 2, "{text}");
        let figures: Vec<&str> = text.lines().filter(|l| l.starts_with(' ')).collect();
        assert_eq!(figures.len(), 3, "{text}");
        let at = heads[0].find("Latency(us)").unwrap() + "Latency(us)".len();
        assert_eq!(&figures[0][at - 5..at], "1.000");
        assert!(figures[2].contains("1049"), "a MiB in a millisecond: {}", figures[2]);
        assert!(figures[0].contains("50% memcpy"));
        // Each bound has its own spread, below its own heading.
        let at = heads[0].rfind("+-%").unwrap() + "+-%".len();
        assert_eq!(&figures[0][at - 4..at], " 5.0", "{text}");
        assert_eq!(heads[0].matches("+-%").count(), 2);
        assert!(text.contains("PORTOLAN_AM=1") && text.contains("rank 0 to rank 1"));
    }

    #[test]
    fn many_nodes_are_one_line() {
        let mut report = report(Vec::new());
        report.nodes = (0..1000).map(|n| (format!("node{n}"), 4)).collect();
        let text = head(&report);
        assert!(text.contains("and 992 nodes more"), "{text}");
        assert!(text.contains("more ranks than cores"));
    }
}
