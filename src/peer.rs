//! What this rank has outstanding towards one target.
//!
//! A fence looks at this and at nothing else: its cost does not grow with the
//! number of segments. Message traffic is counted: the target confirms how many
//! requests and bytes it has handled, in order. Window traffic is a short list of
//! windows with unfinished operations and the address ranges they touch.
//!
//! The [`Peers::pending`] bits are a summary that the fast path reads with one
//! load: a byte for each rank of the job. A [`Peer`] is made when something is first issued to
//! its rank otherwise than directly, for a rank talks to few others.

use crate::error::{Error, Result};
use crate::memory::slab::Slab;
use crate::memory::sparse::Sparse;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Window operations are unfinished.
pub(crate) const PENDING_RMA: u8 = 1;
/// Messages are unconfirmed.
pub(crate) const PENDING_MESSAGE: u8 = 2;

/// Counts operations that have not completed locally.
#[derive(Debug, Default)]
pub struct CompletionCounter {
    outstanding: AtomicUsize,
    failure: Mutex<Option<Error>>,
}

impl CompletionCounter {
    /// Notes an operation that begins.
    pub fn begin(&self) {
        self.outstanding.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes one that ended.
    pub fn end(&self) {
        self.outstanding.fetch_sub(1, Ordering::Release);
    }

    /// Notes one that failed; the next [`CompletionCounter::check`] returns the error.
    pub fn fail(&self, error: Error) {
        self.failure.lock().get_or_insert(error);
        self.end();
    }

    /// Whether all have completed.
    ///
    /// # Errors
    /// The first failure, once.
    pub fn check(&self) -> Result<bool> {
        if self.outstanding.load(Ordering::Acquire) != 0 {
            return Ok(false);
        }
        match self.failure.lock().take() {
            Some(error) => Err(error),
            None => Ok(true),
        }
    }

    /// How many are outstanding.
    pub fn outstanding(&self) -> usize {
        self.outstanding.load(Ordering::Acquire)
    }
}

/// The kinds of window operation, as far as their order matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RmaKind {
    /// Put.
    Put,
    /// Get that has not been waited for.
    Get,
    /// Accumulate: ordered among themselves by MPI.
    Accumulate,
}

/// An unfinished window operation: what it does to which addresses.
#[derive(Debug, Clone, Copy)]
struct Touch {
    kind: RmaKind,
    from: usize,
    to: usize,
}

/// Window operations to one target.
#[derive(Debug, Default)]
pub(crate) struct RmaPending {
    windows: Vec<(Arc<Slab>, usize)>,
    touched: Vec<Touch>,
}

/// How many unfinished window operations are told apart before a flush.
const MOST_TOUCHED: usize = 16;

impl RmaPending {
    /// Whether an operation on `from..to` must wait for unfinished ones.
    pub(crate) fn conflicts(&self, kind: RmaKind, from: usize, to: usize) -> bool {
        self.touched.len() >= MOST_TOUCHED
            || self.touched.iter().any(|t| {
                t.from < to
                    && from < t.to
                    && !(kind == RmaKind::Accumulate && t.kind == RmaKind::Accumulate)
                    && !(kind == RmaKind::Get && t.kind == RmaKind::Get)
            })
    }

    /// Notes an operation.
    pub(crate) fn note(
        &mut self,
        slab: &Arc<Slab>,
        group_rank: usize,
        kind: RmaKind,
        from: usize,
        to: usize,
    ) {
        if !self.windows.iter().any(|(s, _)| Arc::ptr_eq(s, slab)) {
            self.windows.push((slab.clone(), group_rank));
        }
        self.touched.push(Touch { kind, from, to });
    }

    /// Completes everything at the target.
    pub(crate) fn flush(&mut self) -> Result<()> {
        for (slab, rank) in &self.windows {
            if let Some(window) = slab.window() {
                window.flush(*rank)?;
            }
        }
        self.windows.clear();
        self.touched.clear();
        Ok(())
    }
}

/// What was sent to a target by message.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Sent {
    /// Requests.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Requests since the last fence, and how many there were before that one. Programs repeat
    /// themselves: a fence is expected after as many.
    since: u16,
    run: u16,
    /// How many of the last requests are [`Weight::Bare`], or flushes.
    bare: u16,
    /// The last request asks the target to confirm.
    asks: bool,
    /// Requests were confirmed by their answers ([`Peer::answered`]).
    pub answered: bool,
}

/// What a request means to a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// It moves data, or may.
    Data,
    /// It moves none, or its call returns with the answer: mutexes, read-modify-writes.
    Bare,
    /// It asks the target to confirm, and nothing else.
    Flush,
}

impl Sent {
    /// Counts a request; whether it is to ask the target to confirm, as one does that asks for
    /// nothing else, and one after which a fence is expected.
    pub(crate) fn count(&mut self, bytes: u64, weight: Weight) -> bool {
        self.count += 1;
        self.bytes += bytes;
        self.bare = if weight == Weight::Data { 0 } else { self.bare.saturating_add(1) };
        self.since = self.since.saturating_add(u16::from(weight == Weight::Data));
        let expected = self.since == self.run && self.since < u16::MAX;
        self.asks = weight == Weight::Flush || weight == Weight::Data && expected;
        self.asks
    }

    /// As many requests as must be confirmed for all data to be in place.
    pub(crate) fn data(&self) -> u64 {
        self.count - u64::from(self.bare)
    }

    /// A fence follows the last request.
    pub(crate) fn fenced(&mut self) {
        if self.since > 0 {
            self.run = std::mem::take(&mut self.since);
        }
    }

    /// Whether the target will confirm the last request without being asked again.
    pub(crate) fn is_asked(&self) -> bool {
        self.asks
    }
}

/// Everything outstanding towards one target.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    /// Held while a request is counted and sent, so that the two agree.
    pub(crate) sent: Mutex<Sent>,
    confirmed_count: AtomicU64,
    confirmed_bytes: AtomicU64,
    /// Window operations.
    pub(crate) rma: Mutex<RmaPending>,
    /// Operations without a handle, once there were any.
    implicit: OnceLock<Arc<CompletionCounter>>,
}

impl Peer {
    /// The counter of operations without a handle.
    #[inline]
    pub(crate) fn implicit(&self) -> &Arc<CompletionCounter> {
        self.implicit.get_or_init(Arc::default)
    }

    /// The same, if there were any.
    pub(crate) fn used_implicit(&self) -> Option<&Arc<CompletionCounter>> {
        self.implicit.get()
    }

    /// Notes that the target has handled `count` requests and `bytes` bytes in all.
    pub(crate) fn confirm(&self, count: u64, bytes: u64) {
        self.confirmed_bytes.fetch_max(bytes, Ordering::Relaxed);
        self.confirmed_count.fetch_max(count, Ordering::Release);
    }

    /// Notes that the request after which this was sent is answered: the target handles requests in
    /// order, so that the answer confirms those before as well. An acknowledgement that the
    /// target has sent of its own accord may still be on its way.
    pub(crate) fn answered(&self, sent: Sent) {
        self.confirm(sent.count, sent.bytes);
        self.sent.lock().answered = true;
    }

    /// Requests that the target has confirmed.
    pub(crate) fn confirmed(&self) -> u64 {
        self.confirmed_count.load(Ordering::Acquire)
    }

    /// Bytes that are sent and not confirmed.
    pub(crate) fn in_flight(&self, sent: &Sent) -> u64 {
        sent.bytes.saturating_sub(self.confirmed_bytes.load(Ordering::Relaxed))
    }
}

/// What is outstanding towards all ranks.
#[derive(Debug)]
pub(crate) struct Peers {
    /// By rank: [`PENDING_RMA`] and [`PENDING_MESSAGE`].
    summary: Box<[AtomicU8]>,
    peers: Sparse<Peer>,
    /// At least as many as have a bit of their summary set.
    dirty: AtomicUsize,
}

impl Peers {
    /// Of so many ranks, with nothing outstanding.
    pub(crate) fn new(ranks: usize) -> Peers {
        Peers {
            summary: (0..ranks).map(|_| AtomicU8::new(0)).collect(),
            peers: Sparse::new(ranks),
            dirty: AtomicUsize::new(0),
        }
    }

    /// The number of ranks.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.summary.len()
    }

    /// What is outstanding towards a rank: [`PENDING_RMA`] and [`PENDING_MESSAGE`].
    #[inline]
    pub(crate) fn pending(&self, rank: usize) -> u8 {
        self.summary[rank].load(Ordering::Relaxed)
    }

    /// A rank's, made where it was not used.
    #[inline]
    pub(crate) fn at(&self, rank: usize) -> &Peer {
        &self.peers[rank]
    }

    /// A rank's, if it was used.
    #[inline]
    pub(crate) fn used(&self, rank: usize) -> Option<&Peer> {
        self.peers.get(rank)
    }

    /// Those that were used, by rank.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Peer)> {
        self.peers.iter()
    }

    /// Whether anything is unfinished towards any rank.
    #[inline]
    pub(crate) fn any_dirty(&self) -> bool {
        self.dirty.load(Ordering::Relaxed) > 0
    }

    /// Notes something unfinished towards `rank`. Under the lock of what the bit
    /// stands for, as is [`Peers::mark_complete`].
    pub(crate) fn mark_pending(&self, rank: usize, bit: u8) {
        if self.pending(rank) & bit != 0 {
            return;
        }
        // Counted first, so that the count is never too low: other threads' fences
        // skip everything when it is zero.
        self.dirty.fetch_add(1, Ordering::Relaxed);
        if self.summary[rank].fetch_or(bit, Ordering::Relaxed) != 0 {
            self.dirty.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Notes that all that the bit stands for is finished.
    pub(crate) fn mark_complete(&self, rank: usize, bit: u8) {
        if self.summary[rank].fetch_and(!bit, Ordering::Relaxed) == bit {
            self.dirty.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_window_operations_conflict() {
        let mut pending = RmaPending::default();
        pending.touched.push(Touch { kind: RmaKind::Put, from: 100, to: 200 });
        assert!(pending.conflicts(RmaKind::Get, 150, 160));
        assert!(pending.conflicts(RmaKind::Put, 199, 300));
        assert!(!pending.conflicts(RmaKind::Get, 200, 300));
        pending.touched.clear();
        pending.touched.push(Touch { kind: RmaKind::Accumulate, from: 0, to: 8 });
        assert!(!pending.conflicts(RmaKind::Accumulate, 0, 8));
        assert!(pending.conflicts(RmaKind::Put, 0, 8));
    }

    #[test]
    fn a_fence_is_expected_where_the_last_one_was() {
        let mut sent = Sent::default();
        let asks: Vec<bool> = (0..3).map(|_| sent.count(8, Weight::Data)).collect();
        assert_eq!(asks, [false; 3], "nothing is known yet");
        sent.fenced();
        assert!(sent.count(8, Weight::Flush) && sent.is_asked());
        sent.fenced(); // of another thread: changes nothing
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
    fn a_tally_reports_failure_once() {
        let counter = CompletionCounter::default();
        counter.begin();
        assert!(!counter.check().unwrap());
        counter.fail(Error::new(crate::error::ErrorKind::Internal, "x"));
        assert!(counter.check().is_err());
        assert!(counter.check().unwrap());
    }
}
