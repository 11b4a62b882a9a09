//! Descriptions of calls and waits, settings of the observer, and counters that are always active.

use super::counters::{CAUSES, Spent, Sum};
use portolan_trace_format::event::Place;
use portolan_trace_format::kinds::{Call, Cause, PathTaken};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[derive(Debug, Clone, Default)]
pub struct Settings {
    pub stats: bool,
    pub traces: bool,
    /// In bytes; 0 means no limit.
    pub limit: u64,
    pub counter: bool,
    /// Offset added to the clock, for tests.
    pub shift: Duration,
}

/// Always active and cheap: each counts waits, or once for many calls.
#[derive(Debug, Default)]
pub struct Always {
    /// Waits that yielded or slept, by cause, and the nanoseconds since their first rest.
    rests: [(AtomicU64, AtomicU64); CAUSES],
    pub naps: AtomicU64,
    pub rendezvous: AtomicU64,
    /// Messages of aggregated items, and these items.
    pub batches: AtomicU64,
    pub items: AtomicU64,
    pub requests: AtomicU64,
}

impl Always {
    /// `time` is the time since the wait first yielded or slept.
    pub(super) fn rested(&self, cause: Cause, time: Duration) {
        let (waits, ns) = &self.rests[cause as usize];
        count(waits, 1);
        count(ns, time.as_nanos() as u64);
    }

    /// Adds all but the rests.
    pub(super) fn add_to(&self, sum: &mut Sum) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        sum.naps += read(&self.naps);
        sum.rendezvous += read(&self.rendezvous);
        sum.aggregated_messages += read(&self.batches);
        sum.aggregated_items += read(&self.items);
        sum.requests += read(&self.requests);
    }

    pub(super) fn rests(&self) -> [Spent; CAUSES] {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        self.rests.each_ref().map(|(count, ns)| Spent {
            count: read(count),
            ns: read(ns),
            longest: 0,
        })
    }
}

#[inline]
pub fn count(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

#[derive(Debug, Clone, Copy)]
pub struct CallInfo {
    pub call: Call,
    pub path: PathTaken,
    pub peer: Option<usize>,
    pub bytes: usize,
    pub blocks: usize,
    pub place: Option<Place>,
}

impl CallInfo {
    /// A call that moves no bytes and concerns no particular rank.
    pub fn new(call: Call) -> CallInfo {
        CallInfo { call, path: PathTaken::None, peer: None, bytes: 0, blocks: 1, place: None }
    }

    pub fn to(self, peer: usize) -> CallInfo {
        CallInfo { peer: Some(peer), ..self }
    }

    pub fn by(self, path: PathTaken) -> CallInfo {
        CallInfo { path, ..self }
    }

    pub fn moves(self, bytes: usize) -> CallInfo {
        CallInfo { bytes, ..self }
    }

    pub fn at(self, place: Option<Place>) -> CallInfo {
        CallInfo { place, ..self }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Awaited {
    pub cause: Cause,
    pub peer: Option<usize>,
    pub place: Option<Place>,
}

impl From<Cause> for Awaited {
    fn from(cause: Cause) -> Awaited {
        Awaited { cause, peer: None, place: None }
    }
}

impl Awaited {
    pub fn of(cause: Cause, peer: usize) -> Awaited {
        Awaited { peer: Some(peer), ..cause.into() }
    }
}
