//! Renders the page: one self-contained HTML file of at most 5 MB.
//!
//! Text, tables and static charts are plain HTML and SVG, readable without a script and in print.
//! The script draws the matrix and the timeline from arrays that are embedded as base64-encoded raw
//! deflate, which browsers decompress themselves (`blobs`). If the page is too large, the finest
//! levels of the timeline are removed one by one until it fits or only one level remains.

mod blobs;
mod charts;
mod over_time;
mod tables;

pub use tables::place_text;

use crate::analyse::chosen::Chosen;
use crate::analyse::findings::ORDER;
use crate::compare::Compared;
use crate::model::{RankState, time};
use crate::run::AnalysedRun;
use crate::summary::facts;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Maximum size of the page in bytes.
const LIMIT: usize = 5_000_000;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = concat!(
    include_str!("data.js"),
    include_str!("matrix.js"),
    include_str!("timeline.js"),
    include_str!("control.js"),
    include_str!("main.js"),
);

pub fn page(run: &AnalysedRun, compared: Option<&Compared>) -> Result<String, String> {
    let points: Vec<(u64, u64)> = run.findings.iter().map(|f| (f.at.1, f.at.2)).collect();
    let each = run.analysis.levels.grid.each;
    let chosen = Chosen::of(&run.trace, &run.analysis.longest, &points, each)?;
    let mut levels = run.analysis.levels.levels.clone();
    loop {
        let blobs = blobs::Blobs::of(run, &levels, &chosen)?;
        let page = document(run, compared, &blobs, &chosen).into_string();
        if page.len() <= LIMIT || levels.len() < 2 {
            return Ok(page);
        }
        levels.pop();
    }
}

fn document(
    run: &AnalysedRun,
    compared: Option<&Compared>,
    blobs: &blobs::Blobs,
    chosen: &Chosen,
) -> Markup {
    let title = match run.trace.files.first().and_then(|f| f.meta.program.first()) {
        Some(program) => program.rsplit('/').next().unwrap_or(program).to_string(),
        None => run.name.clone(),
    };
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "portolan-report: " (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (title) }
                    nav {
                        @if compared.is_some() { a href="#compared" { "compared" } }
                        a href="#findings" { "findings" } a href="#time" { "timeline" }
                        a href="#rates" { "over time" } a href="#moved" { "matrix" } a href="#calls" { "calls" }
                        @if !run.analysis.sites.rows.is_empty() { a href="#sites" { "call sites" } }
                        a href="#load" { "load" } a href="#meet" { "counters and mutexes" }
                        @if !run.analysis.regions.names.is_empty() { a href="#regions" { "regions" } }
                    }
                }
                p #fault hidden {}
                main {
                    table.facts { @for (name, value) in facts(run) { tr { th { (name) } td { (value) } } } }
                    (problems(run))
                    @if let Some(compared) = compared { (tables::compared(compared)) }
                    (found(run))
                    (timeline(run, chosen))
                    section #rates { h2 { "Over time" } (over_time::rates(run)) (over_time::critical(run)) }
                    (matrix())
                    section #calls { h2 { "Calls: sizes and times" } (tables::calls(run)) }
                    (tables::sites(run))
                    section #load { h2 { "Load of the ranks" } (charts::load(run)) (tables::answers(run)) }
                    section #meet { h2 { "Counters and mutexes" } (tables::objects(run)) }
                    (tables::regions(run))
                }
                div #hint hidden {}
                script #data type="application/json" { (PreEscaped(&blobs.json)) }
                @for (name, text) in &blobs.packed {
                    script id={ "blob-" (name) } type="application/octet-stream" { (PreEscaped(text)) }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

fn problems(run: &AnalysedRun) -> Markup {
    const SHOWN: usize = 12;
    let all = &run.trace.problems;
    html! {
        @if !all.is_empty() {
            section.problems {
                h2 { "What is missing" }
                p { "The rest of the trace is used." }
                ul {
                    @for problem in all.iter().take(SHOWN) { li { (problem) } }
                    @if all.len() > SHOWN { li { "and " (all.len() - SHOWN) " more" } }
                }
            }
        }
    }
}

fn found(run: &AnalysedRun) -> Markup {
    let wall = run.trace.wall as f64;
    html! {
        section #findings {
            h2 { "Findings" }
            @if run.findings.is_empty() {
                p { "None: no known problem costs 1 % of the time or more." }
            } @else {
                p.note { (ORDER) " Findings overlap: one wait may have two reasons." }
            }
            ol {
                @for finding in &run.findings {
                    @let (rank, from, to) = finding.at;
                    li id={ "finding-" (finding.kind) } {
                        h3 { (finding.title) }
                        p.worth {
                            span.bar { span style={ "width:" (format!("{:.1}", (finding.worth / wall * 100.0).min(100.0))) "%" } {} }
                            b { (time(finding.worth)) } " of " (time(wall)) "; the cost summed over all ranks is " (time(finding.sum))
                        }
                        p { (prose(&finding.text)) }
                        p { (prose(&finding.advice)) }
                        p { a href="#time" data-show={ (rank) " " (from) " " (to) } { "show it in the timeline" }
                            " (rank " (rank) ", at " (time(from as f64)) ")" }
                    }
                }
            }
        }
    }
}

fn prose(text: &str) -> Markup {
    html! {
        @for (number, part) in text.split('`').enumerate() {
            @if number % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn timeline(run: &AnalysedRun, chosen: &Chosen) -> Markup {
    let all = chosen.spans.len() as u64 >= run.analysis.sum(|r| r.events);
    html! {
        section #time {
            h2 { "Timeline" }
            p.keys {
                @for state in RankState::all() {
                    span { i style={ "background:" (state.colour()) } {} (state.name()) }
                }
                span { i.row {} "outside of calls" }
            }
            p.tools {
                @for (key, text, title) in [
                    ("+", "+", "zoom in: + or w"), ("-", "−", "zoom out: - or s"),
                    ("ArrowLeft", "←", "earlier: left or a"), ("ArrowRight", "→", "later: right or d"),
                    ("[", "fewer ranks", "zoom in on ranks: ["), ("]", "more ranks", "zoom out of ranks: ]"),
                    ("Home", "whole job", "show all: Home or 0"),
                    ("p", "previous wait", "the longest waits: p"), ("n", "next wait", "the longest waits: n"),
                ] {
                    button data-do=(key) title=(title) { (text) }
                }
            }
            canvas #timeline tabindex="0" role="img" aria-describedby="timeline-status" aria-label="Timeline: ranks from top to bottom, time from left to right" {}
            p #timeline-status aria-live="polite" {}
            p #timeline-chosen aria-live="polite" {}
            p.note {
                "Drag to move, with Shift to zoom into a range; the wheel zooms when the picture has the focus, with Shift on ranks. "
                @if all { "All events are in this page." }
                @else {
                    "Zoomed out, each column shows the fractions of its time by activity; zoomed in, the longest events of each rank are drawn, and all events around the findings."
                }
            }
            div.search {
                label for="search" { "The longest waits, filtered by words as in “rank 3 lock”: " }
                input #search type="search" autocomplete="off";
                span #waits-count {}
                ol #waits {}
            }
        }
    }
}

fn matrix() -> Markup {
    html! {
        section #moved {
            h2 { "Communication matrix" }
            p.tools {
                @for (number, name) in ["bytes", "calls", "mean time of a call"].into_iter().enumerate() {
                    label { input type="radio" name="measure" value=(number) checked[number == 0]; (name) }
                }
            }
            canvas #matrix-scale {}
            canvas #matrix tabindex="0" role="img" aria-label="Communication matrix: origins from top to bottom, targets from left to right" {}
            div #matrix-chosen aria-live="polite" {}
            p.note { "Colours are logarithmic; outlined squares are hosts. Click or use the arrows to choose a cell; + and − zoom, Home shows all." }
        }
    }
}

#[cfg(test)]
mod tests;
