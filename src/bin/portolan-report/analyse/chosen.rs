//! The events that the page has one by one.
//!
//! Where the trace is short, all. Else the longest of each rank, and all in windows of time around what
//! the findings point at. A window is made so short that no more than [`WINDOW`] events are in it.

use super::ByKey;
use super::matrix::keep_most;
use crate::model::Span;
use crate::read::{Item, Trace};
use portolan::internals::trace::format::Role;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// A trace of at most as many events is in the page as a whole.
pub const ALL: u64 = 50_000;
/// The longest ones, of all ranks.
const LONGEST: usize = 24_000;
/// Events of a window.
const WINDOW: usize = 4_000;

/// The longest events of a rank, or of all.
#[derive(Debug)]
pub struct Longest {
    most: usize,
    heap: BinaryHeap<Reverse<(u64, ByKey)>>,
}

impl Longest {
    /// How many of each rank.
    pub fn share(events: u64, ranks: usize) -> usize {
        if events <= ALL { ALL as usize } else { (LONGEST / ranks).max(8) }
    }

    pub fn new(most: usize) -> Longest {
        Longest { most, heap: BinaryHeap::new() }
    }

    pub fn take(&mut self, span: Span) {
        keep_most(&mut self.heap, (span.length(), ByKey(span)), self.most);
    }

    pub fn merge(&mut self, other: Longest) {
        self.heap.extend(other.heap);
    }

    fn spans(&self) -> impl Iterator<Item = Span> + '_ {
        self.heap.iter().map(|Reverse((_, ByKey(span)))| *span)
    }
}

/// What the page gets.
#[derive(Debug, Default)]
pub struct Chosen {
    /// By row, begin, and outer ones first.
    pub spans: Vec<Span>,
    /// How deep each is inside others; the progress thread's are [`BESIDE`].
    pub depths: Vec<u8>,
    /// Ranges of time of which all events are here.
    pub windows: Vec<(u64, u64)>,
}

/// The depth of what no thread of the program does.
pub const BESIDE: u8 = 9;

impl Chosen {
    /// `points` are ranges of time that findings point at, the most important first.
    pub fn of(
        trace: &Trace,
        longest: &Longest,
        points: &[(u64, u64)],
        each: usize,
    ) -> Result<Chosen, String> {
        let mut spans: Vec<Span> = longest.spans().collect();
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

/// The window around the middle of a range in which there are few enough events, by the index.
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

/// All spans that touch the windows; shortens a window that has too many.
fn gather(
    trace: &Trace,
    windows: &mut [(u64, u64)],
    reaches: &HashMap<u32, u64>,
) -> Result<Vec<Span>, String> {
    let mut found: Vec<Vec<Span>> = vec![Vec::new(); windows.len()];
    for file in &trace.files {
        // A span stands in the block in which it ends, and may have begun long before.
        let reach = reaches.get(&file.rank).copied().unwrap_or(0);
        file.stream(
            |block| {
                let (from, to) = file.range(block);
                let from = from.saturating_sub(reach);
                windows.iter().any(|window| from <= window.1 && window.0 <= to)
            },
            |item| {
                let Item::Span(span) = item else { return };
                for (window, spans) in windows.iter().zip(&mut found) {
                    if span.begin <= window.1 && window.0 <= span.end {
                        spans.push(span);
                    }
                }
            },
        )?;
        for (window, spans) in windows.iter_mut().zip(&mut found).filter(|(_, s)| s.len() > WINDOW)
        {
            // Those that reach into the window from before stay.
            spans.sort_by_key(|span| span.begin);
            window.1 = spans[WINDOW].begin.max(window.0 + 1) - 1;
            spans.truncate(WINDOW);
        }
    }
    Ok(found.concat())
}

fn depths(spans: &[Span]) -> Vec<u8> {
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
