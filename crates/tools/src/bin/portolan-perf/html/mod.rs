//! The HTML page, with a plot for each test and its figures below.
//!
//! The page is one file without external references. A short script hides a line when its name is
//! clicked. Lines differ in dash pattern and marker as well as in colour.

mod plot;

use crate::cases::TESTS;
use crate::format::{bytes, number};
use crate::output::harmless;
use crate::report::{Metric, Report, ResultRow};

use maud::{DOCTYPE, Markup, PreEscaped, html};
use plot::{Plot, PlotLine};

const STYLE: &str = include_str!("../page.css");
const SCRIPT: &str = include_str!("../page.js");

pub fn page(report: &Report) -> String {
    let charts = charts(report);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "portolan-perf" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "portolan-perf" }
                (facts(report))
                (advice(report))
                @if charts.len() > 1 {
                    nav { @for (place, (name, _)) in charts.iter().enumerate() {
                        a href={ "#chart" (place) } { (name) } " "
                    } }
                }
                @for (place, (name, rows)) in charts.iter().enumerate() {
                    (section(place, name, rows, report.ranks))
                }
                @if !report.skipped.is_empty() {
                    h2 { "Not measured" }
                    ul { @for why in &report.skipped { li { (why) } } }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    harmless(&page.into_string()).into()
}

fn facts(report: &Report) -> Markup {
    let nodes: Vec<String> =
        report.nodes.iter().take(8).map(|(name, n)| format!("{n} on {name}")).collect();
    html! {
        table.facts {
            tr { th { "Portolan" } td { (report.version) } }
            tr { th { "MPI" } td { (report.mpi) } }
            tr { th { "ranks" } td { (report.ranks) " on " (report.nodes.len()) " nodes: " (nodes.join(", ")) } }
            tr { th { "cores" } td { (report.cores) " on the first node" } }
            @for (name, value) in &report.settings { tr { th { (name) } td { (value) } } }
        }
    }
}

fn advice(report: &Report) -> Markup {
    html! {
        @if !report.advice.is_empty() {
            h2 { "Advice" }
            table.figures {
                tr { th { "setting" } th { "measured" } }
                @for advice in &report.advice { tr {
                    td {
                        @if let Some(name) = &advice.variable { (name) "=" }
                        (advice.value)
                        @if advice.variable.is_some() && advice.default { " (the default)" }
                    }
                    td { (advice.reason) }
                } }
            }
        }
    }
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

fn section(place: usize, name: &str, rows: &[&ResultRow], ranks: usize) -> Markup {
    let first = rows[0];
    let what = TESTS.iter().find(|t| t.name == first.test).map_or("", |t| t.what);
    let unit = match first.metric {
        Metric::Latency => "microseconds",
        Metric::Bandwidth => "MB/s",
    };
    html! {
        section id={ "chart" (place) } {
            h2 { (name) }
            p { (what) " (" (first.who(ranks)) ")" }
            @if first.bytes.is_some() {
                (Plot { name, unit, lines: &lines(rows) }.svg())
                details { summary { "figures" } (table(rows)) }
            } @else { (table(rows)) }
        }
    }
}

fn table(rows: &[&ResultRow]) -> Markup {
    let mut names: Vec<&str> = Vec::new();
    for bound in rows.iter().flat_map(|row| &row.bounds) {
        if !names.contains(&bound.name.as_str()) {
            names.push(&bound.name);
        }
    }
    let percent = |part: f64| format!("{:.1}", part * 100.0);
    html! {
        table.figures {
            tr {
                th { "path" } th { "size" } th { (rows[0].metric.unit()) } th { "±%" } th { "Mops/s" }
                @for name in &names { th { (name) } th { "±%" } }
                th { "of the bound" }
            }
            @for row in rows { tr {
                td { (row.path) } td { (row.bytes.map_or("-".into(), bytes)) }
                td { (number(row.value(row.time.median))) } td { (percent(row.time.spread())) }
                td { (number(row.rate(row.time.median) / 1e6)) }
                @for name in &names {
                    @if let Some(bound) = row.bounds.iter().find(|b| b.name == *name) {
                        td { (number(row.value(bound.time.median))) } td { (percent(bound.time.spread())) }
                    } @else { td {} td {} }
                }
                td { @if let (Some(part), Some(name)) = (row.of_bound, &row.bound) {
                    (format!("{:.0}% {name}", part.median * 100.0))
                } }
            } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{report, row};

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
    fn the_page_shows_each_row() {
        let page = page(&sample());
        assert!(page.contains("MPI &lt;x&gt; &amp; more"));
        assert!(page.contains("&lt;script&gt;&quot;&amp;'\\u{1}"));
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
        for rows in [Vec::new(), vec![row("put_lat", "direct", 8, 1e-6)]] {
            assert!(!page(&report(rows)).contains("NaN"));
        }
    }
}
