//! Charts over time as SVG: bandwidth and operation rate by path, and the critical path.

use super::charts::fixed;
use super::tables::table;
use crate::analyse::critical::{Part, Reason};
use crate::analyse::rates::COLUMNS;
use crate::model::{bytes, percent, three, time};
use crate::run::AnalysedRun;
use maud::{Markup, html};
use portolan_trace_format::kinds::PathTaken;
use std::fmt::Write;

const WIDTH: f64 = 900.0;
/// Height of a chart of rates.
const HEIGHT: f64 = 90.0;
/// Maximum number of rows and of drawn parts of the critical path.
const ROWS: usize = 24;
const DRAWN: usize = 4000;

fn colour(path: PathTaken) -> &'static str {
    match path {
        PathTaken::Direct => "#0072b2",
        PathTaken::Rma => "#009e73",
        PathTaken::Message => "#d55e00",
        PathTaken::Ring => "#e69f00",
        PathTaken::Cma => "#56b4e9",
        PathTaken::Buffer => "#cc79a7",
        PathTaken::None => "#5e6a7d",
    }
}

fn reason_colour(reason: Reason) -> &'static str {
    match reason {
        Reason::Works => "#0072b2",
        Reason::Answers => "#d55e00",
        Reason::Unknown => "#a5aab2",
    }
}

pub fn rates(run: &AnalysedRun) -> Markup {
    let paths = run.analysis.rates.by_path();
    let wall = run.trace.wall as f64;
    if paths.is_empty() {
        return html! { p.note { "No transfer was recorded." } };
    }
    let bandwidth: Vec<_> = paths.iter().map(|(path, bytes, _)| (*path, &bytes[..])).collect();
    let operations: Vec<_> = paths.iter().map(|(path, _, n)| (*path, &n[..])).collect();
    html! {
        (chart("Bandwidth by path", &bandwidth, wall, &|rate| format!("{}/s", bytes(rate))))
        (chart("Operations per second by path", &operations, wall, &rate_text))
    }
}

fn rate_text(rate: f64) -> String {
    match rate {
        r if r >= 1e6 => format!("{} M/s", three(r / 1e6)),
        r if r >= 1e3 => format!("{} k/s", three(r / 1e3)),
        r => format!("{}/s", three(r)),
    }
}

fn chart(
    title: &str,
    paths: &[(PathTaken, &[f64])],
    wall: f64,
    text: &dyn Fn(f64) -> String,
) -> Markup {
    let most = paths.iter().flat_map(|(_, rates)| rates.iter()).copied().fold(0.0, f64::max);
    let top = if most > 0.0 { most } else { 1.0 };
    let wide = WIDTH / COLUMNS as f64;
    let line = |rates: &[f64]| {
        let mut points = String::new();
        for (k, rate) in rates.iter().enumerate() {
            let y = HEIGHT - rate / top * (HEIGHT - 4.0);
            let _ = write!(points, "{},{} ", fixed(k as f64 * wide), fixed(y));
            let _ = write!(points, "{},{} ", fixed((k + 1) as f64 * wide), fixed(y));
        }
        points
    };
    html! {
        figure {
            figcaption {
                b { (title) } ": up to " (text(most)) ". "
                @for (path, rates) in paths {
                    @let mean = rates.iter().sum::<f64>() / rates.len() as f64;
                    span.key { i style={ "background:" (colour(*path)) } {} (path.name()) ", " (text(mean)) " on average" }
                }
            }
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT + 16.0) } role="img" aria-label=(title) {
                rect.plot x="0" y="0" width=(WIDTH) height=(HEIGHT) {}
                @for (path, rates) in paths {
                    polyline points=(line(rates)) fill="none" stroke=(colour(*path)) stroke-width="1.5" {
                        title { (path.name()) }
                    }
                }
                (axis(wall, HEIGHT))
            }
        }
    }
}

fn axis(wall: f64, height: f64) -> Markup {
    html! {
        text x="0" y=(height + 13.0) { "0" }
        text x=(WIDTH / 2.0) y=(height + 13.0) text-anchor="middle" { (time(wall / 2.0)) }
        text x=(WIDTH) y=(height + 13.0) text-anchor="end" { (time(wall)) }
    }
}

/// Draws the critical path: one row for each of the ranks with most time on it.
pub fn critical(run: &AnalysedRun) -> Markup {
    let path = &run.analysis.critical;
    let ranks = path.ranks();
    let Some((first, _)) = ranks.first() else { return html! {} };
    let all = path.whole();
    let wall = run.trace.wall as f64;
    let rows: Vec<u32> = ranks.iter().take(ROWS).map(|(rank, _)| *rank).collect();
    let high = 14.0;
    let height = rows.len() as f64 * high;
    // A long path has parts that are too short to be seen.
    let mut shown: Vec<&Part> = path.parts.iter().collect();
    if shown.len() > DRAWN {
        shown.sort_by_key(|part| std::cmp::Reverse(part.end - part.begin));
        shown.truncate(DRAWN);
        shown.sort_by_key(|part| part.begin);
    }
    let left = 46.0;
    let x = |at: u64| left + at as f64 / wall * (WIDTH - left);
    let row_of = |rank: u32| rows.iter().position(|row| *row == rank);
    let y = |row: usize| row as f64 * high;
    html! {
        figure {
            figcaption {
                b { "Critical path" } ": the chain of work and waits that determines how long the job takes. "
                @if path.is_unknown() {
                    "Most of it is waits for ranks that the trace does not name. "
                } @else { "Rank " (first) " has most of it. " }
                @for (reason, text) in [
                    (Reason::Works, "the rank works"), (Reason::Answers, "another rank waits for its answer"),
                    (Reason::Unknown, "the rank waits, for a rank that the trace does not name"),
                ] { span.key { i style={ "background:" (reason_colour(reason)) } {} (text) } }
            }
            svg viewBox={ "0 0 " (WIDTH) " " (height + 16.0) } role="img" aria-label="Critical path: ranks from top to bottom, time from left to right" {
                @for (row, rank) in rows.iter().enumerate() {
                    text x=(left - 6.0) y=(fixed(y(row) + 11.0)) text-anchor="end" { (rank) }
                    rect.plot x=(left) y=(fixed(y(row) + 1.0)) width=(WIDTH - left) height=(high - 2.0) {}
                }
                @for pair in shown.windows(2) {
                    @if let (Some(from), Some(to)) = (row_of(pair[0].rank), row_of(pair[1].rank)) {
                        @if from != to {
                            line.jump x1=(fixed(x(pair[1].begin))) x2=(fixed(x(pair[1].begin)))
                                y1=(fixed(y(from) + high / 2.0)) y2=(fixed(y(to) + high / 2.0)) {}
                        }
                    }
                }
                @for part in shown.iter() {
                    @if let Some(row) = row_of(part.rank) {
                        rect x=(fixed(x(part.begin))) y=(fixed(y(row) + 2.0)) height=(high - 4.0)
                            width=(fixed((x(part.end) - x(part.begin)).max(0.4)))
                            fill=(reason_colour(part.reason)) {}
                    }
                }
                (axis(wall, height))
            }
        }
        (table(&["rank", "on the path", "", "the job would be shorter by up to"], html! {
            @for (rank, ns) in ranks.iter().take(8) {
                @let gain = path.gain.get(*rank as usize).copied().unwrap_or(0) as f64;
                tr {
                    td { (rank) } td { (time(*ns as f64)) } td { (percent(*ns as f64, all as f64)) }
                    td { (time(gain)) " (" (percent(gain, wall)) ")" }
                }
            }
        }))
        p.note { "The last column is the time that the job would gain if this rank needed no time for its parts. At a collective call, the job then waits for the rank that arrived before it." }
    }
}
