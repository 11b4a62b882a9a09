//! HTML tables: calls, counters and mutexes, regions, comparison of two runs.

use super::charts;
use crate::analyse::answers::PARTS;
use crate::analyse::calls::{CallKey, CallTotals, powers};
use crate::compare::Compared;
use crate::model::{bytes, count, percent, three, time};
use crate::run::AnalysedRun;
use maud::{Markup, html};
use portolan_trace_format::event::Place;
use portolan_trace_format::kinds::PathTaken;

/// Maximum number of rows in the table of calls.
const CALLS: usize = 60;
/// Maximum number of rows in the tables of counters and of regions.
const ROWS: usize = 25;

/// Renders a table. `rows` are its rows below the heads.
pub fn table(heads: &[&str], rows: Markup) -> Markup {
    html! {
        div.wide { table.figures {
            thead { tr { @for head in heads { th { (head) } } } }
            tbody { (rows) }
        } }
    }
}

/// Renders counts, sizes and times by call and path, most expensive first.
pub fn calls(run: &AnalysedRun) -> Markup {
    let mut all: Vec<(&CallKey, &CallTotals)> = run.analysis.calls.0.iter().collect();
    all.sort_by_key(|(key, stats)| (std::cmp::Reverse(stats.own), **key));
    let spans = |of: fn(&CallTotals) -> (u32, Vec<u64>)| {
        let all: Vec<(u32, u32)> = all
            .iter()
            .map(|(_, stats)| of(stats))
            .filter(|(_, counts)| !counts.is_empty())
            .map(|(first, counts)| (first, first + counts.len() as u32))
            .collect();
        let from = all.iter().map(|(from, _)| *from).min().unwrap_or(0);
        (from, all.iter().map(|(_, to)| *to).max().unwrap_or(from + 1))
    };
    let times = spans(|stats| powers(&stats.times));
    let sizes = spans(|stats| powers(&stats.sizes));
    let size_text = |power: u32| bytes(2f64.powi(power as i32));
    let time_text = |power: u32| time(2f64.powi(power as i32));
    let rows = html! {
        @for (key, stats) in all.iter().take(CALLS) {
            @let quantile = |q| time(stats.time_at(q) as f64);
            tr {
                td { (key.name()) } td { @if key.path != PathTaken::None { (key.path.name()) } }
                td { (count(stats.count)) }
                td { @if stats.bytes > 0 { (bytes(stats.bytes as f64)) } }
                td { (time(stats.own as f64)) }
                td { (quantile(0.5)) } td { (quantile(0.99)) } td { (time(stats.longest as f64)) }
                td { @let (first, counts) = powers(&stats.times); (charts::powers(first, &counts, times.0, times.1, &time_text)) }
                td { @if stats.bytes > 0 { @let (first, counts) = powers(&stats.sizes); (charts::powers(first, &counts, sizes.0, sizes.1, &size_text)) } }
            }
        }
    };
    html! {
        p.note {
            "Own time excludes calls inside a call. Distributions share one axis over all rows: times from "
            (time_text(times.0)) " to " (time_text(times.1)) ", sizes from " (size_text(sizes.0)) " to " (size_text(sizes.1))
            "; each bar covers a factor of two, and its height is the square root of its fraction."
        }
        (table(&["call", "path", "count", "bytes", "own time", "median", "99 %", "longest", "times", "sizes"], rows))
    }
}

pub fn place_text(place: &Place, mutex: bool) -> String {
    match place.segment {
        None => format!("address {:#x}", place.offset),
        Some(segment) if mutex => format!("mutex {} of set {segment}", place.offset),
        Some(segment) => format!("segment {segment}, byte {}", place.offset),
    }
}

pub fn objects(run: &AnalysedRun) -> Markup {
    let all = run.analysis.objects.hottest();
    if all.is_empty() {
        return html! { p { "No read-modify-write and no mutex was used." } };
    }
    html! {
        p.note { "The counters and mutexes on which calls spent most time. “At a time” is how many ranks were in a call there on average, from the first to the last." }
        (table(&["owner", "where", "kind", "calls", "ranks", "time", "a call", "at a time", "longest"], html! {
            @for (object, used) in all.iter().take(ROWS) {
                @let all = used.ns.max(used.waited);
                tr {
                    td { "rank " (object.owner) } td { (place_text(&object.place, object.mutex)) }
                    td { @if object.mutex { "mutex" } @else { "read-modify-write" } }
                    td { (count(used.calls)) } td { (used.origins.len()) } td { (time(all as f64)) }
                    td { (time(all as f64 / used.calls.max(1) as f64)) } td { (three(used.crowd())) }
                    (longest(used.longest))
                }
            }
        }))
    }
}

pub fn sites(run: &AnalysedRun) -> Markup {
    let rows = &run.analysis.sites.rows;
    html! {
        @if !rows.is_empty() {
            section #sites {
                h2 { "Call sites" }
                p.note { "The lines of the program that spend most time in calls. A program has lines if it was compiled with " code { "-g" } "." }
                (table(&["called at", "call", "path", "count", "bytes", "time", "waiting", "a call", "longest"], html! {
                    @for (line, call, path, of) in rows.iter().take(CALLS) { tr {
                        td { code { (line) } } td { (call.name()) } td { @if *path != PathTaken::None { (path.name()) } }
                        td { (count(of.count)) } td { @if of.bytes > 0 { (bytes(of.bytes as f64)) } }
                        td { (time(of.ns as f64)) } td { (percent(of.waited as f64, of.ns as f64)) }
                        td { (time(of.ns as f64 / of.count.max(1) as f64)) }
                        (longest(of.longest))
                    } }
                }))
            }
        }
    }
}

/// Renders the cell of the longest call, which shows it in the timeline.
fn longest((length, rank, begin): (u64, u32, u64)) -> Markup {
    html! {
        td { a href="#time" data-show={ (rank) " " (begin) " " (begin + length) } { (time(length as f64)) " on rank " (rank) } }
    }
}

pub fn answers(run: &AnalysedRun) -> Markup {
    let all = &run.analysis.answers;
    html! {
        @if !all.is_empty() {
            h3 { "What waits for answers consist of" }
            p.note { "The ranks that others waited for most, each with the rank that waited for it longest." }
            (table(&[&["for rank", "of rank", "waits", "time"][..], &PARTS].concat(), html! {
                @for of in all { tr {
                    td { (of.target) } td { (of.origin) } td { (count(of.waits)) } td { (time(of.total as f64)) }
                    @for part in of.parts { td { (percent(part as f64, of.total as f64)) } }
                } }
            }))
        }
    }
}

pub fn regions(run: &AnalysedRun) -> Markup {
    let regions = &run.analysis.regions;
    let mut all: Vec<_> = regions.names.iter().zip(&regions.stats).collect();
    all.sort_by_key(|(name, stats)| (std::cmp::Reverse(stats.ns), name.as_str()));
    html! {
        @if !all.is_empty() {
            section #regions {
                h2 { "Regions of the program" }
                (table(&["region", "times", "on average", "waiting", "a rank, least", "a rank, most", "which"], html! {
                    @for (name, stats) in all.iter().take(ROWS) {
                        @let least = stats.ranks.values().min().copied().unwrap_or(0);
                        @let (which, most) = stats.ranks.iter().max_by_key(|(_, ns)| **ns).map_or((0, 0), |(rank, ns)| (*rank, *ns));
                        tr {
                            td { (name) } td { (count(stats.count)) } td { (time(stats.ns as f64 / stats.count.max(1) as f64)) }
                            td { (percent(stats.waited as f64, stats.ns as f64)) }
                            td { (time(least as f64)) } td { (time(most as f64)) } td { "rank " (which) }
                        }
                    }
                }))
                @if !regions.marks.is_empty() {
                    p { "Marks: " @for (rank, at, text) in regions.marks.iter().take(ROWS) {
                        a href="#time" data-show={ (rank) " " (at) " " (at + 1000) } { (text) } " (rank " (rank) ", " (time(*at as f64)) ") "
                    } }
                }
            }
        }
    }
}

pub fn compared(compared: &Compared) -> Markup {
    html! {
        section #compared {
            h2 { "Compared with " (compared.before) }
            (table(&["", "before", "now", "change"], html! {
                @for row in &compared.rows { tr {
                    td { (row.name) } td { (row.before) } td { (row.now) } td { (row.change) }
                } }
            }))
            h3 { "Calls" }
            (table(&["call", "calls before", "now", "time before", "now", "change"], html! {
                @for call in &compared.calls { tr {
                    td { (call.name) } td { (count(call.calls[0])) } td { (count(call.calls[1])) }
                    td { (time(call.ns[0])) } td { (time(call.ns[1])) } td { (call.change()) }
                } }
            }))
            @for (title, list) in [("Resolved findings", &compared.gone), ("New findings", &compared.fresh), ("Remaining findings", &compared.remain)] {
                @if !list.is_empty() { h3 { (title) } ul { @for line in list.iter() { li { (line) } } } }
            }
        }
    }
}
