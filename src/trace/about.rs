//! What layers say: what a call was, what a thread waits for; and what is counted always.

use super::counters::CAUSES;
use portolan_trace_format::event::Place;
use portolan_trace_format::kinds::{Call, Cause, PathTaken};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What an observer is to do.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    pub stats: bool,
    pub traces: bool,
    /// Of short calls one in so many has an event.
    pub sample: u32,
    /// The most bytes of a file; 0: no limit.
    pub limit: u64,
    /// The time-stamp counter may be the clock.
    pub counter: bool,
    /// Added to the clock, for tests.
    pub shift: Duration,
}

/// What is counted always: it happens where a thread waits, or once for many calls.
#[derive(Debug, Default)]
pub(crate) struct Always {
    /// Waits so long that the thread rested, and how long they were.
    rests: [(AtomicU64, AtomicU64); CAUSES],
    pub naps: AtomicU64,
    pub rendezvous: AtomicU64,
    /// Messages of aggregated items, and the items.
    pub batches: AtomicU64,
    pub items: AtomicU64,
    /// Requests of other ranks.
    pub requests: AtomicU64,
}

impl Always {
    /// A wait in which the thread rested for so long.
    pub(super) fn rested(&self, cause: Cause, time: Duration) {
        let (waits, ns) = &self.rests[cause as usize];
        count(waits, 1);
        count(ns, time.as_nanos() as u64);
    }

    /// All as they are now, the rests by cause first.
    pub(super) fn read(&self) -> Vec<u64> {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let rests = self.rests.iter().flat_map(|(count, ns)| [read(count), read(ns)]);
        let rest = [&self.naps, &self.rendezvous, &self.batches, &self.items, &self.requests];
        rests.chain(rest.map(read)).collect()
    }
}

/// Counts in a counter of [`Always`].
#[inline]
pub(crate) fn count(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

/// What a call was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About {
    pub call: Call,
    pub path: PathTaken,
    pub peer: Option<usize>,
    pub bytes: usize,
    pub blocks: usize,
    pub place: Option<Place>,
}

impl About {
    /// A call that moves no bytes and concerns no rank in particular.
    pub(crate) fn new(call: Call) -> About {
        About { call, path: PathTaken::None, peer: None, bytes: 0, blocks: 1, place: None }
    }

    pub(crate) fn to(self, peer: usize) -> About {
        About { peer: Some(peer), ..self }
    }

    pub(crate) fn by(self, path: PathTaken) -> About {
        About { path, ..self }
    }

    pub(crate) fn moves(self, bytes: usize) -> About {
        About { bytes, ..self }
    }

    pub(crate) fn at(self, place: Option<Place>) -> About {
        About { place, ..self }
    }
}

/// What a thread waits for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Awaited {
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
    /// A wait for a rank.
    pub(crate) fn of(cause: Cause, peer: usize) -> Awaited {
        Awaited { peer: Some(peer), ..cause.into() }
    }
}
