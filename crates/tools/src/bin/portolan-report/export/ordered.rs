//! Converts the spans of one thread to enter and leave steps in time order.
//!
//! A file stores spans in the order of their ends, so an enclosing span follows the spans that it
//! contains. Few spans cross the boundary between two blocks. A first pass collects these and the
//! regions. In a second pass, the spans of each block are sorted, merged with the collected ones,
//! and entered and left using a stack. Memory holds one block and the collected spans.

use crate::model::TraceSpan;
use crate::read::{BlockRef, RankFile, StreamItem};
use std::cmp::Reverse;
use std::collections::HashMap;

#[derive(Debug, Clone, PartialEq)]
pub enum SpanOrRegion {
    Span(TraceSpan),
    Region(String),
}

/// A step of a thread: the time, and the span or region that it enters or leaves.
#[derive(Debug, PartialEq)]
pub enum ThreadStep<'a> {
    Enter(u64, &'a SpanOrRegion),
    Leave(u64, &'a SpanOrRegion),
}

type Interval = (u64, u64, SpanOrRegion);

/// Passes the steps of a thread to `take` in time order.
pub fn steps(
    file: &RankFile,
    thread: u32,
    mut take: impl FnMut(ThreadStep<'_>),
) -> Result<(), String> {
    let of_thread = |block: &BlockRef| block.thread == thread;
    let mut crossing = crossing(file, thread)?;
    crossing.sort_by_key(|(begin, end, _)| (Reverse(*begin), *end)); // the earliest is last
    let mut walk = Walk { stack: Vec::new(), crossing, now: 0 };
    let blocks: Vec<BlockRef> = file.blocks.iter().copied().filter(of_thread).collect();
    let mut before = 0;
    for block in blocks {
        let mut spans: Vec<TraceSpan> = Vec::new();
        file.stream(
            |other| other.at == block.at,
            |item| {
                if let StreamItem::Span(span) = item
                    && span.begin >= before
                {
                    spans.push(span);
                }
            },
        )?;
        // If two spans have the same times, the later one in the file contains the other.
        spans.reverse();
        spans.sort_by_key(|span| (span.begin, Reverse(span.end)));
        for span in spans {
            walk.enter_crossing(span.begin, span.end, &mut take);
            walk.enter((span.begin, span.end, SpanOrRegion::Span(span)), &mut take);
        }
        before = file.range(&block).1;
    }
    walk.enter_crossing(u64::MAX, 0, &mut take);
    walk.leave(u64::MAX, &mut take);
    Ok(())
}

struct Walk {
    stack: Vec<Interval>,
    crossing: Vec<Interval>,
    now: u64,
}

impl Walk {
    /// Enters the collected spans that contain a span with these times.
    fn enter_crossing(&mut self, begin: u64, end: u64, take: &mut impl FnMut(ThreadStep<'_>)) {
        while self.crossing.last().is_some_and(|(b, e, _)| *b < begin || *b == begin && *e >= end) {
            let held = self.crossing.pop().expect("there is one");
            self.enter(held, take);
        }
    }

    fn enter(&mut self, held: Interval, take: &mut impl FnMut(ThreadStep<'_>)) {
        self.leave(held.0, take);
        // Times never decrease, and a span ends no later than the one that contains it.
        let begin = held.0.max(self.now);
        let end = self.stack.last().map_or(held.1, |outer| held.1.min(outer.1)).max(begin);
        self.now = begin;
        take(ThreadStep::Enter(begin, &held.2));
        self.stack.push((begin, end, held.2));
    }

    fn leave(&mut self, until: u64, take: &mut impl FnMut(ThreadStep<'_>)) {
        while let Some((_, end, within)) = self.stack.pop_if(|(_, end, _)| *end <= until) {
            self.now = self.now.max(end);
            take(ThreadStep::Leave(self.now, &within));
        }
    }
}

fn crossing(file: &RankFile, thread: u32) -> Result<Vec<Interval>, String> {
    let mut found: Vec<Interval> = Vec::new();
    let mut open: Vec<(u64, String)> = Vec::new();
    let mut last = 0;
    let blocks: Vec<BlockRef> =
        file.blocks.iter().copied().filter(|b| b.thread == thread).collect();
    let mut before: HashMap<u64, u64> = HashMap::new();
    for pair in blocks.windows(2) {
        before.insert(pair[1].at, file.range(&pair[0]).1);
    }
    for block in &blocks {
        let limit = before.get(&block.at).copied().unwrap_or(0);
        file.stream(
            |other| other.at == block.at,
            |item| match item {
                StreamItem::Span(span) => {
                    last = last.max(span.end);
                    if span.begin < limit {
                        found.push((span.begin, span.end, SpanOrRegion::Span(span)));
                    }
                }
                StreamItem::Begin(time, _, name) => open.push((time, name.to_string())),
                StreamItem::End(time, _) => {
                    if let Some((begin, name)) = open.pop() {
                        found.push((begin, time, SpanOrRegion::Region(name)));
                    }
                }
                StreamItem::Mark(..) => {}
            },
        )?;
    }
    found.extend(
        open.into_iter().map(|(begin, name)| (begin, last.max(begin), SpanOrRegion::Region(name))),
    );
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::Trace;
    use crate::sample::{self, RankWriter, Size, metadata};
    use portolan_trace_format::event::Event;
    use portolan_trace_format::format::Role;
    use portolan_trace_format::kinds::{Call, Cause, Interface, PathTaken};
    use std::path::Path;
    use tempfile::tempdir;

    /// Checks that the steps nest and that their times never decrease. Returns the number of spans
    /// and regions, and the greatest depth.
    fn walked(place: &Path, thread: u32) -> (usize, usize) {
        let trace = Trace::open(place).expect("it can be read");
        let (mut open, mut now, mut all, mut deepest) = (Vec::new(), 0, 0, 0);
        steps(&trace.files[0], thread, |step| match step {
            ThreadStep::Enter(at, within) => {
                assert!(at >= now);
                now = at;
                open.push(within.clone());
                all += 1;
                deepest = deepest.max(open.len());
            }
            ThreadStep::Leave(at, within) => {
                assert!(at >= now);
                now = at;
                assert_eq!(open.pop().as_ref(), Some(within));
            }
        })
        .expect("it can be read");
        assert!(open.is_empty());
        (all, deepest)
    }

    #[test]
    fn a_sample_is_entered_and_left() {
        let place = tempdir().expect("it can be made");
        sample::write(place.path(), Size { ranks: 1, events: 100_000, hosts: 1 })
            .expect("it can be written");
        let (all, deepest) = walked(place.path(), 0);
        assert!(all > 50_000 && deepest >= 3, "{all} {deepest}");
    }

    #[test]
    fn a_call_around_many_blocks_is_entered_first() {
        let place = tempdir().expect("it can be made");
        let mut file = RankWriter::new(place.path(), &metadata(0, 1, 0)).expect("it can be made");
        for n in 0..1000u64 {
            let wait = Event::Wait {
                begin: 100 + n * 10,
                duration: 5,
                cause: Cause::Credit,
                peer: None,
                place: None,
            };
            file.put(0, Role::Program, wait);
            if n % 100 == 99 {
                file.flush(0);
            }
        }
        let (begin, duration) = (100, 20_000);
        file.put(
            0,
            Role::Program,
            Event::Call {
                begin,
                duration,
                call: Call::PutNb,
                interface: Interface::Armci,
                path: PathTaken::Message,
                peer: None,
                bytes: 1,
                blocks: 1,
                place: None,
                site: None,
            },
        );
        file.end().expect("it can be written");
        assert_eq!(walked(place.path(), 0), (1001, 2));
    }
}
