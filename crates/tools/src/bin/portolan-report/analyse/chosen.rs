//! Selects the events that the page contains individually.
//!
//! A short trace is included as a whole. From a longer one, the page takes the longest events of
//! each rank, and all events in time windows around the findings. Each window is shortened until it
//! contains at most [`WINDOW`] events.

use super::largest::{ByLength, Largest};
use crate::model::TraceSpan;
use crate::read::{StreamItem, Trace};
use portolan_trace_format::format::Role;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Maximum number of events in a trace that is included as a whole.
pub const ALL: u64 = 50_000;
/// Number of longest events to include, summed over ranks.
const LONGEST: usize = 24_000;
const WINDOW: usize = 4_000;

/// Returns how many of its longest events a rank keeps.
pub fn longest_of_rank(events: u64, ranks: usize) -> usize {
    if events <= ALL { ALL as usize } else { (LONGEST / ranks).max(8) }
}

#[derive(Debug, Default)]
pub struct Chosen {
    /// Spans, sorted by row and start; an enclosing span comes before the spans inside it.
    pub spans: Vec<TraceSpan>,
    /// Nesting depth of each span; [`BESIDE`] for the progress and completion threads.
    pub depths: Vec<u8>,
    /// Time ranges whose events are all included.
    pub windows: Vec<(u64, u64)>,
}

/// Depth of spans that were not recorded by a thread of the program.
pub const BESIDE: u8 = 9;

impl Chosen {
    /// Selects the events. `points` are the time ranges of the findings, most important first;
    /// `each` is the number of ranks per row.
    pub fn of(
        trace: &Trace,
        longest: &Largest<ByLength>,
        points: &[(u64, u64)],
        each: usize,
    ) -> Result<Chosen, String> {
        let mut spans: Vec<TraceSpan> = longest.iter().map(|ByLength(span)| *span).collect();
        let mut windows = vec![(0, trace.wall)];
        if trace.events() > ALL {
            windows = points.iter().map(|point| fitting(trace, *point)).collect();
            let mut reaches: HashMap<u32, u64> = HashMap::new();
            for span in &spans {
                let reach = reaches.entry(span.rank).or_default();
                *reach = span.length().max(*reach);
            }
            let found = gather(trace, &mut windows, &reaches)?;
            spans.extend(found);
        }
        spans.sort_by_key(|s| {
            (s.rank / each as u32, s.begin, Reverse(s.end), s.rank, s.thread, s.what)
        });
        spans.dedup_by_key(|s| (s.rank, s.thread, s.begin, s.end, s.what, s.peer));
        let depths = depths(&spans);
        Ok(Chosen { spans, depths, windows })
    }
}

/// Returns a window around the middle of a range. It is halved until the block index predicts at
/// most [`WINDOW`] events or the window is no longer than 1 µs.
fn fitting(trace: &Trace, (from, to): (u64, u64)) -> (u64, u64) {
    let (middle, mut half) = (from / 2 + to / 2, ((to - from) / 2).max(500));
    loop {
        let window = (middle.saturating_sub(half), (middle + half).min(trace.wall));
        if half <= 500 || expected(trace, window) <= WINDOW as f64 {
            return window;
        }
        half /= 2;
    }
}

fn expected(trace: &Trace, (from, to): (u64, u64)) -> f64 {
    let mut events = 0.0;
    for file in &trace.files {
        for block in file.blocks.iter().filter(|b| b.role != Role::Writer) {
            let (begin, end) = file.range(block);
            let inside = to.min(end).saturating_sub(from.max(begin));
            events += f64::from(block.events) * inside as f64 / (end - begin).max(1) as f64;
        }
    }
    events
}

/// Reads all spans that overlap a window, and shortens windows that contain too many.
fn gather(
    trace: &Trace,
    windows: &mut [(u64, u64)],
    reaches: &HashMap<u32, u64>,
) -> Result<Vec<TraceSpan>, String> {
    let mut found: Vec<Vec<TraceSpan>> = vec![Vec::new(); windows.len()];
    for file in &trace.files {
        // A span is stored in the block in which it ends, but may begin long before that block.
        let reach = reaches.get(&file.rank).copied().unwrap_or(0);
        file.stream(
            |block| {
                let (from, to) = file.range(block);
                let from = from.saturating_sub(reach);
                windows.iter().any(|window| from <= window.1 && window.0 <= to)
            },
            |item| {
                let StreamItem::Span(span) = item else { return };
                for (window, spans) in windows.iter().zip(&mut found) {
                    if span.begin <= window.1 && window.0 <= span.end {
                        spans.push(span);
                    }
                }
            },
        )?;
        for (window, spans) in windows.iter_mut().zip(&mut found).filter(|(_, s)| s.len() > WINDOW)
        {
            // Sorting by start keeps the spans that began before the window.
            spans.sort_by_key(|span| span.begin);
            window.1 = spans[WINDOW].begin.max(window.0 + 1) - 1;
            spans.truncate(WINDOW);
        }
    }
    Ok(found.concat())
}

fn depths(spans: &[TraceSpan]) -> Vec<u8> {
    let mut open: Vec<(u32, u32, u64)> = Vec::new();
    let mut row = None;
    spans
        .iter()
        .map(|span| {
            if row != Some(span.rank) {
                row = Some(span.rank);
                open.retain(|(rank, ..)| *rank == span.rank);
            }
            if span.role != Role::Program {
                return BESIDE;
            }
            open.retain(|(rank, thread, end)| {
                *rank != span.rank || *thread != span.thread || *end > span.begin
            });
            let of_thread = open.iter().filter(|(r, t, _)| (*r, *t) == (span.rank, span.thread));
            let depth = of_thread.count().min(8) as u8;
            open.push((span.rank, span.thread, span.end));
            depth
        })
        .collect()
}
