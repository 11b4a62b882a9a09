//! The outstanding operations of this rank to one target. A fence reads only this state. Messages
//! are counted: the target confirms how many requests and bytes it has handled, in order. The fast
//! path reads [`Peers::pending`], one byte for each rank of the job. A [`Peer`] is created when the
//! first non-direct operation to its rank is issued. Other transports keep more about their
//! operations ([`crate::path::rma`]).

#[cfg(doc)]
use crate::memory::arena::Path;
use crate::memory::sparse::Sparse;
use parking_lot::Mutex;
use portolan_base::error::{Error, Result};
use portolan_base::trace::{Awaited, Cause};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The operations of a counter have several targets.
const SEVERAL: u32 = u32::MAX;

/// Counts operations that are not complete locally.
#[derive(Debug, Default)]
pub struct CompletionCounter {
    outstanding: AtomicUsize,
    /// The target of the operations + 1, [`SEVERAL`], or 0 if unknown.
    target: AtomicU32,
    failure: Mutex<Option<Error>>,
}

impl CompletionCounter {
    pub fn begin(&self) {
        self.outstanding.fetch_add(1, Ordering::Relaxed);
    }

    pub fn end(&self) {
        self.outstanding.fetch_sub(1, Ordering::Release);
    }

    pub fn fail(&self, error: Error) {
        self.failure.lock().get_or_insert(error);
        self.end();
    }

    /// Returns whether all operations are complete, then with their first failure once.
    pub fn check(&self) -> Result<bool> {
        if self.outstanding.load(Ordering::Acquire) != 0 {
            return Ok(false);
        }
        match self.failure.lock().take() {
            Some(error) => Err(error),
            None => Ok(true),
        }
    }

    /// Records the target of an operation that is about to begin, for waits to name.
    pub fn toward(&self, target: usize) {
        let (new, known) = (target as u32 + 1, self.target.load(Ordering::Relaxed));
        if known != new {
            let alone = known == 0 || self.outstanding.load(Ordering::Relaxed) == 0;
            self.target.store(if alone { new } else { SEVERAL }, Ordering::Relaxed);
        }
    }

    pub fn outstanding(&self) -> usize {
        self.outstanding.load(Ordering::Acquire)
    }
}

impl From<&CompletionCounter> for Awaited {
    fn from(counter: &CompletionCounter) -> Awaited {
        let target = counter.target.load(Ordering::Relaxed);
        let peer = (target != SEVERAL).then_some(target).and_then(|target| target.checked_sub(1));
        Awaited { peer: peer.map(|peer| peer as usize), ..Cause::Handle.into() }
    }
}

#[derive(Debug, Default, Clone, Copy)]
pub struct Sent {
    pub count: u64,
    pub bytes: u64,
    /// Number of data requests since the last fence, and between that fence and the one before.
    /// Programs repeat their patterns, so the next fence is expected after the same number.
    since: u16,
    run: u16,
    /// Number of consecutive last requests that are [`Weight::Bare`] or [`Weight::Flush`].
    bare: u16,
    /// The last request asks the target to confirm.
    asks: bool,
    /// An answer has confirmed requests ([`Peer::answered`]).
    pub answered: bool,
}

/// The meaning of a request for a fence. A flush only asks the target to confirm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    Data,
    /// No data, or the call returns with the answer: mutexes and read-modify-writes.
    Bare,
    Flush,
}

impl Sent {
    /// Counts a request. Returns whether it must ask the target to confirm: a flush does, and so
    /// does a data request after which a fence is expected.
    pub fn count(&mut self, bytes: u64, weight: Weight) -> bool {
        self.count += 1;
        self.bytes += bytes;
        self.bare = if weight == Weight::Data { 0 } else { self.bare.saturating_add(1) };
        self.since = self.since.saturating_add(u16::from(weight == Weight::Data));
        let expected = self.since == self.run && self.since < u16::MAX;
        self.asks = weight == Weight::Flush || weight == Weight::Data && expected;
        self.asks
    }

    /// Number of requests to confirm before all data is in place.
    pub fn data(&self) -> u64 {
        self.count - u64::from(self.bare)
    }

    /// A fence follows the last request.
    pub fn fenced(&mut self) {
        if self.since > 0 {
            self.run = std::mem::take(&mut self.since);
        }
    }

    /// The target will confirm the last request without another one.
    pub(crate) fn is_asked(&self) -> bool {
        self.asks
    }
}

#[derive(Debug, Default)]
pub struct Peer {
    /// Locked while a request is counted and sent, so that counts and messages have one order.
    pub sent: Mutex<Sent>,
    confirmed_count: AtomicU64,
    confirmed_bytes: AtomicU64,
    /// Of operations without a handle.
    implicit: OnceLock<Arc<CompletionCounter>>,
}

impl Peer {
    #[inline]
    pub fn implicit(&self) -> &Arc<CompletionCounter> {
        self.implicit.get_or_init(Arc::default)
    }

    pub(crate) fn used_implicit(&self) -> Option<&Arc<CompletionCounter>> {
        self.implicit.get()
    }

    pub fn confirm(&self, count: u64, bytes: u64) {
        self.confirmed_bytes.fetch_max(bytes, Ordering::Relaxed);
        self.confirmed_count.fetch_max(count, Ordering::Release);
    }

    /// `sent` is the count that includes the answered request. Requests are handled in order, so
    /// the answer also confirms earlier ones. Their acknowledgement may still be in flight.
    pub fn answered(&self, sent: Sent) {
        self.confirm(sent.count, sent.bytes);
        self.sent.lock().answered = true;
    }

    pub(crate) fn confirmed(&self) -> u64 {
        self.confirmed_count.load(Ordering::Acquire)
    }

    pub(crate) fn in_flight(&self, sent: &Sent) -> u64 {
        sent.bytes.saturating_sub(self.confirmed_bytes.load(Ordering::Relaxed))
    }
}

#[derive(Debug)]
pub struct Peers {
    /// The bits of paths with unfinished operations ([`Path::pending_bit`]), by rank.
    summary: Box<[AtomicU8]>,
    peers: Sparse<Peer>,
    /// Upper bound of the ranks with nonzero `summary`.
    dirty: AtomicUsize,
}

impl Peers {
    pub fn new(ranks: usize) -> Peers {
        Peers {
            summary: (0..ranks).map(|_| AtomicU8::new(0)).collect(),
            peers: Sparse::new(ranks),
            dirty: AtomicUsize::new(0),
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.summary.len()
    }

    #[inline]
    pub fn pending(&self, rank: usize) -> u8 {
        self.summary[rank].load(Ordering::Relaxed)
    }

    #[inline]
    pub fn at(&self, rank: usize) -> &Peer {
        &self.peers[rank]
    }

    #[inline]
    pub fn used(&self, rank: usize) -> Option<&Peer> {
        self.peers.get(rank)
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &Peer)> {
        self.peers.iter()
    }

    #[inline]
    pub(crate) fn any_dirty(&self) -> bool {
        self.dirty.load(Ordering::Relaxed) > 0
    }

    /// The caller holds the lock of the summarised state, as in [`Peers::mark_complete`], and has
    /// used the rank's [`Peer`]: fences of all ranks look at those.
    pub fn mark_pending(&self, rank: usize, bit: u8) {
        if self.pending(rank) & bit != 0 {
            return;
        }
        // First, so that the count is never too low: at zero, fences of other threads do nothing.
        self.dirty.fetch_add(1, Ordering::Relaxed);
        if self.summary[rank].fetch_or(bit, Ordering::Relaxed) != 0 {
            self.dirty.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub fn mark_complete(&self, rank: usize, bit: u8) {
        if self.summary[rank].fetch_and(!bit, Ordering::Relaxed) == bit {
            self.dirty.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_expected_where_the_last_one_was() {
        let mut sent = Sent::default();
        let asks: Vec<bool> = (0..3).map(|_| sent.count(8, Weight::Data)).collect();
        assert_eq!(asks, [false; 3], "nothing is known yet");
        sent.fenced();
        assert!(sent.count(8, Weight::Flush) && sent.is_asked());
        sent.fenced(); // a fence of another thread changes nothing
        let asks: Vec<bool> = (0..4).map(|_| sent.count(8, Weight::Data)).collect();
        assert_eq!(asks, [false, false, true, false]);
        assert!(!sent.is_asked(), "this run was longer");
        sent.fenced();
        assert!(!sent.count(8, Weight::Bare));
        let asks: Vec<bool> = (0..4).map(|_| sent.count(8, Weight::Data)).collect();
        assert_eq!(asks, [false, false, false, true]);
        assert!(!sent.count(8, Weight::Bare) && !sent.is_asked());
        assert_eq!((sent.count, sent.bytes, sent.data()), (14, 112, 13));
    }

    #[test]
    fn a_wait_names_the_target_if_there_is_one() {
        let counter = CompletionCounter::default();
        let begin = |target| {
            counter.toward(target);
            counter.begin();
            Awaited::from(&counter).peer
        };
        assert_eq!(Awaited::from(&counter).peer, None);
        assert_eq!((begin(0), begin(0), begin(3), begin(3)), (Some(0), Some(0), None, None));
        (0..4).for_each(|_| counter.end());
        assert_eq!((begin(3), begin(3)), (Some(3), Some(3)));
    }

    #[test]
    fn a_tally_reports_failure_once() {
        let counter = CompletionCounter::default();
        counter.begin();
        assert!(!counter.check().unwrap());
        counter.fail(Error::new(portolan_base::error::ErrorKind::Internal, "x"));
        assert!(counter.check().is_err());
        assert!(counter.check().unwrap());
    }
}
