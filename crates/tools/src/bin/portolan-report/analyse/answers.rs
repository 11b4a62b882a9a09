//! The parts of waits for an answer: the request's way and its wait at the target, the service,
//! and the way back.
//!
//! This needs the events of both ranks, so it reads two files again, for the few targets that
//! others waited for most, each with the rank that waited longest. A wait is matched with the last
//! request of the origin that the target began to serve before its end.

use crate::model::{Activity, TraceSpan};
use crate::read::{StreamItem, Trace};
use portolan_trace_format::format::Role;
use portolan_trace_format::kinds::{Cause, Served};
use std::cmp::Reverse;

const TARGETS: usize = 3;
/// Maximum number of waits and of served requests per pair.
const MOST: usize = 1 << 18;

/// The parts of a wait, in the order of [`Answers::parts`].
pub const PARTS: [&str; 5] = [
    "on the way to the target",
    "at the target, until it began to serve the request",
    "served",
    "on the way back, until the origin continued",
    "without a served request",
];

/// The waits of one rank for another. Times are nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answers {
    pub target: u32,
    pub origin: u32,
    pub waits: u64,
    pub total: u64,
    pub parts: [u64; 5],
}

impl Answers {
    /// Adds a wait and the request that ended it: its start, its end, and the time since the
    /// target's previous look for requests.
    fn add(&mut self, (begin, end): (u64, u64), served: Option<(u64, u64, u64)>) {
        self.waits += 1;
        self.total += end - begin;
        let Some((from, to, queued)) = served else {
            self.parts[4] += end - begin;
            return;
        };
        let inside = |time: u64| time.clamp(begin, end);
        let marks = [begin, inside(from.saturating_sub(queued)), inside(from), inside(to), end];
        for (part, mark) in self.parts.iter_mut().zip(marks.windows(2)) {
            *part += mark[1] - mark[0];
        }
    }
}

pub fn is_answered(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::Answer
            | Cause::Handle
            | Cause::Fence
            | Cause::Credit
            | Cause::Ring
            | Cause::Rendezvous
            | Cause::Rpc
            | Cause::Other
    )
}

/// `awaited` has the time that others waited for each rank, and the rank that waited longest.
pub fn of(
    trace: &Trace,
    awaited: impl Iterator<Item = (u64, u32)>,
) -> Result<Vec<Answers>, String> {
    let mut targets: Vec<(u64, u32, u32)> = (0..)
        .zip(awaited)
        .filter(|(_, (ns, _))| *ns > 0)
        .map(|(rank, (ns, origin))| (ns, rank, origin))
        .collect();
    targets.sort_by_key(|&(ns, rank, _)| (Reverse(ns), rank));
    targets.truncate(TARGETS);
    let slack = trace.clock_bound.unwrap_or(0);
    targets.into_iter().map(|(_, target, origin)| of_pair(trace, target, origin, slack)).collect()
}

fn of_pair(trace: &Trace, target: u32, origin: u32, slack: u64) -> Result<Answers, String> {
    let mut waits: Vec<(u64, u64)> = Vec::new();
    spans(trace, origin, |span| {
        let Activity::Wait(cause) = span.what else { return };
        if span.peer == Some(target)
            && span.role == Role::Program
            && is_answered(cause)
            && waits.len() < MOST
        {
            waits.push((span.begin, span.end));
        }
    })?;
    let mut served: Vec<(u64, u64, u64)> = Vec::new();
    spans(trace, target, |span| {
        let Activity::Served(kind) = span.what else { return };
        if span.peer == Some(origin) && kind != Served::Completion && served.len() < MOST {
            served.push((span.begin, span.end, span.queued.unwrap_or(0)));
        }
    })?;
    served.sort_unstable();
    let mut answers = Answers { target, origin, ..Answers::default() };
    for (begin, end) in waits {
        let before = served.partition_point(|&(from, ..)| from <= end.saturating_add(slack));
        let last = served[..before].last().copied();
        answers.add((begin, end), last.filter(|&(_, to, _)| to > begin));
    }
    Ok(answers)
}

fn spans(trace: &Trace, rank: u32, mut take: impl FnMut(TraceSpan)) -> Result<(), String> {
    for file in trace.files.iter().filter(|file| file.rank == rank) {
        let with = |item: StreamItem<'_>| {
            if let StreamItem::Span(span) = item {
                take(span);
            }
        };
        file.stream(|_| true, with)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_has_its_parts() {
        let mut answers = Answers::default();
        answers.add((100, 200), Some((150, 170, 30)));
        assert_eq!(answers.parts, [20, 30, 20, 30, 0]);
        // The target had not looked for requests since before the wait, and served beyond its end.
        answers.add((100, 200), Some((180, 230, 500)));
        assert_eq!(answers.parts, [20, 110, 40, 30, 0]);
        answers.add((0, 10), None);
        assert_eq!((answers.parts[4], answers.waits, answers.total), (10, 3, 210));
        assert_eq!(answers.parts.iter().sum::<u64>(), answers.total);
    }
}
