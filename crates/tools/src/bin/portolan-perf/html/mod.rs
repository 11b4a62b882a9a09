//! The HTML page, with a plot for each test and its figures below.
//!
//! The page is one file without external references. A short script hides a line when its name is
//! clicked. Lines differ in dash pattern and marker as well as in colour.

mod plot;

use crate::cases::TESTS;
use crate::format::{bytes, escaped, number};
use crate::report::{Metric, Report, ResultRow};

use plot::{Plot, PlotLine};
use std::fmt::Write;

const STYLE: &str = include_str!("../page.css");
const SCRIPT: &str = include_str!("../page.js");

pub fn page(report: &Report) -> String {
    let mut body = String::from("<h1>portolan-perf</h1>\n<table class=\"facts\">");
    let nodes: Vec<String> =
        report.nodes.iter().take(8).map(|(name, n)| format!("{n} on {name}")).collect();
    let mut fact = |name: &str, value: &str| {
        let _ = write!(body, "<tr><th>{}</th><td>{}</td></tr>", escaped(name), escaped(value));
    };
    fact("Portolan", &report.version);
    fact("MPI", &report.mpi);
    fact(
        "ranks",
        &format!("{} on {} nodes: {}", report.ranks, report.nodes.len(), nodes.join(", ")),
    );
    fact("cores", &format!("{} on the first node", report.cores));
    for (name, value) in &report.settings {
        fact(name, value);
    }
    body += "</table>\n";
    body += &advice(report);
    let charts = charts(report);
    if charts.len() > 1 {
        body += "<nav>";
        for (place, (name, _)) in charts.iter().enumerate() {
            let _ = write!(body, "<a href=\"#chart{place}\">{}</a> ", escaped(name));
        }
        body += "</nav>\n";
    }
    for (place, (name, rows)) in charts.iter().enumerate() {
        body += &section(place, name, rows, report.ranks);
    }
    if !report.skipped.is_empty() {
        body += "<h2>Not measured</h2>\n<ul>";
        for why in &report.skipped {
            let _ = write!(body, "<li>{}</li>", escaped(why));
        }
        body += "</ul>\n";
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>portolan-perf</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{body}\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

fn advice(report: &Report) -> String {
    if report.advice.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "<h2>Advice</h2>\n<table class=\"figures\"><tr><th>setting</th><th>measured</th></tr>",
    );
    for advice in &report.advice {
        let setting = match &advice.variable {
            Some(name) if advice.default => format!("{name}={} (the default)", advice.value),
            Some(name) => format!("{name}={}", advice.value),
            None => advice.value.clone(),
        };
        let _ = write!(
            text,
            "<tr><td>{}</td><td>{}</td></tr>",
            escaped(&setting),
            escaped(&advice.reason)
        );
    }
    text + "</table>\n"
}

/// Groups the rows that share a plot, in the order of the report.
fn charts(report: &Report) -> Vec<(String, Vec<&ResultRow>)> {
    let mut all: Vec<(String, Vec<&ResultRow>)> = Vec::new();
    for row in &report.rows {
        match all.iter_mut().find(|(name, _)| *name == row.chart()) {
            Some((_, rows)) => rows.push(row),
            None => all.push((row.chart(), vec![row])),
        }
    }
    all
}

/// Returns the lines of a plot: every path, and the bounds that were measured with the first path.
fn lines(rows: &[&ResultRow]) -> Vec<PlotLine> {
    let mut lines: Vec<PlotLine> = Vec::new();
    let mut add = |name: String, bound: bool, at: f64, figures: [f64; 3]| {
        let [middle, low, high] = figures;
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push((at, middle, low, high)),
            None => lines.push(PlotLine { name, bound, points: vec![(at, middle, low, high)] }),
        }
    };
    for row in rows {
        let at = row.bytes.unwrap_or(1) as f64;
        let all = |time: &crate::stats::Figure| {
            [time.median, time.low, time.high].map(|seconds| row.value(seconds))
        };
        add(format!("path {}", row.path), false, at, all(&row.time));
        if row.path == rows[0].path {
            for bound in &row.bounds {
                add(bound.name.clone(), true, at, all(&bound.time));
            }
        }
    }
    // Bounds follow the paths, so that the order is the same in all plots.
    lines.sort_by_key(|line| line.bound);
    lines
}

fn section(place: usize, name: &str, rows: &[&ResultRow], ranks: usize) -> String {
    let first = rows[0];
    let what = TESTS.iter().find(|t| t.name == first.test).map_or("", |t| t.what);
    let mut text = format!(
        "<section id=\"chart{place}\">\n<h2>{}</h2>\n<p>{} ({})</p>\n",
        escaped(name),
        escaped(what),
        escaped(&first.who(ranks))
    );
    let unit = match first.metric {
        Metric::Latency => "microseconds",
        Metric::Bandwidth => "MB/s",
    };
    if first.bytes.is_some() {
        text += &Plot { name, unit, lines: &lines(rows) }.svg();
        let _ = writeln!(text, "<details><summary>figures</summary>{}</details>", table(rows));
    } else {
        text += &table(rows);
    }
    text + "</section>\n"
}

fn table(rows: &[&ResultRow]) -> String {
    let unit = rows[0].metric.unit();
    let mut names: Vec<&str> = Vec::new();
    for bound in rows.iter().flat_map(|row| &row.bounds) {
        if !names.contains(&bound.name.as_str()) {
            names.push(&bound.name);
        }
    }
    let mut text = format!(
        "<table class=\"figures\"><tr><th>path</th><th>size</th><th>{unit}</th><th>±%</th><th>Mops/s</th>"
    );
    for name in &names {
        let _ = write!(text, "<th>{}</th><th>±%</th>", escaped(name));
    }
    text += "<th>of the bound</th></tr>\n";
    for row in rows {
        let _ = write!(
            text,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{:.1}</td><td>{}</td>",
            escaped(&row.path),
            row.bytes.map_or("-".into(), bytes),
            number(row.value(row.time.median)),
            row.time.spread() * 100.0,
            number(row.rate(row.time.median) / 1e6)
        );
        for name in &names {
            let bound = row.bounds.iter().find(|b| b.name == *name);
            let _ = write!(
                text,
                "<td>{}</td><td>{}</td>",
                bound.map_or("".into(), |b| number(row.value(b.time.median))),
                bound.map_or("".into(), |b| format!("{:.1}", b.time.spread() * 100.0))
            );
        }
        let part = row.of_bound.zip(row.bound.as_ref());
        let part = part.map(|(f, name)| format!("{:.0}% {}", f.median * 100.0, escaped(name)));
        let _ = writeln!(text, "<td>{}</td></tr>", part.unwrap_or_default());
    }
    text + "</table>"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{report, row};

    /// Returns the elements that are still open at the end of a page. Panics at the first closing
    /// tag that does not match.
    fn check_elements(page: &str) -> Vec<String> {
        const EMPTY: [&str; 1] = ["!DOCTYPE"];
        let mut open: Vec<String> = Vec::new();
        let mut rest = page;
        while let Some(start) = rest.find('<') {
            let end = start + rest[start..].find('>').expect("an element ends");
            let inside = &rest[start + 1..end];
            assert!(!inside.contains('<'), "<{inside}>");
            let name: String =
                inside.chars().take_while(|c| !c.is_whitespace() && *c != '>').collect();
            rest = &rest[end + 1..];
            if let Some(closed) = name.strip_prefix('/') {
                assert_eq!(
                    open.pop().as_deref(),
                    Some(closed),
                    "before {}",
                    &rest[..40.min(rest.len())]
                );
            } else if !inside.ends_with('/') && !EMPTY.contains(&name.as_str()) {
                open.push(name.clone());
                if name == "script" || name == "style" {
                    rest = &rest[rest.find(&format!("</{name}>")).expect("it is closed")..];
                }
            }
            assert_eq!(inside.matches('"').count() % 2, 0, "<{inside}>");
        }
        open
    }

    fn sample() -> Report {
        let mut rows: Vec<ResultRow> =
            (0..20).map(|n| row("put_lat", "direct", 1 << n, 1e-8 * f64::from(n + 1))).collect();
        rows.extend((0..20).map(|n| row("put_lat", "rma", 1 << n, 1e-6)));
        rows.extend((0..20).map(|n| row("put_bw", "direct", 1 << n, 1e-6)));
        let mut unsized_row = row("fadd", "direct", 1, 1e-8);
        unsized_row.bytes = None;
        rows.push(unsized_row);
        let mut report = report(rows);
        report.settings.push(("PORTOLAN_LOG".into(), "<script>\"&'\u{1}".into()));
        report
    }

    #[test]
    fn the_page_is_well_formed() {
        let page = page(&sample());
        assert_eq!(check_elements(&page), [""; 0]);
        assert!(page.contains("MPI &lt;x&gt; &amp; more"));
        assert!(page.contains("&lt;script&gt;&quot;&amp;&#39;\u{fffd}"));
        assert_eq!(page.matches("<section").count(), 3);
        assert_eq!(page.matches("<svg").count(), 2, "what has no sizes is a table");
        // The first plot has two paths and their bound, and the second has one path and its bound.
        assert_eq!(page.matches("class=\"line\"").count(), 5);
        assert!(page.contains("<th>memcpy</th><th>±%</th>") && page.contains("<td>5.0</td>"));
        assert!(!page.contains("NaN") && !page.contains("inf"));
    }

    #[test]
    fn the_page_names_nothing_outside() {
        let page = page(&sample());
        for outside in ["http:", "https:", "src=", "@import", "url(", "<link"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn an_empty_report_is_a_page() {
        assert_eq!(check_elements(&page(&report(Vec::new()))), [""; 0]);
        let one = report(vec![row("put_lat", "direct", 8, 1e-6)]);
        assert_eq!(check_elements(&page(&one)), [""; 0]);
        assert!(!page(&one).contains("NaN"));
    }
}
