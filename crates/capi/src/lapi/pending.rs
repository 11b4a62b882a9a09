//! Unfinished transfers and their completion actions.
//!
//! A put or get that the engine completes at once is finished in its own call. Other transfers are
//! kept here until [`super::finish`] finishes them.

use super::types::{ComplHandler, Counter, ErrorOf, Hook, SendHandler};
use parking_lot::Mutex;
use portolan_engine::peer::CompletionCounter;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The completion actions of a transfer.
#[derive(Debug)]
pub(crate) struct Done {
    /// The kind of transfer.
    pub of: ErrorOf,
    /// The other rank.
    pub target: usize,
    /// The address of a counter at the other rank, or 0.
    pub tgt_cntr: u64,
    /// The origin counter, or null.
    pub org_cntr: *const Counter,
    /// The completion counter, or null.
    pub cmpl_cntr: *const Counter,
    /// The send completion handler.
    pub sent: Option<Hook<SendHandler>>,
    /// The completion handler of a get.
    pub got: Option<Hook<ComplHandler>>,
}

// SAFETY: the counters are atomic, and the program keeps them valid until they have counted.
unsafe impl Send for Done {}

/// The unfinished transfers.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    pub(super) list: Mutex<Vec<(Arc<CompletionCounter>, Done)>>,
    /// The number of transfers in the list or being finished.
    pub(super) left: AtomicUsize,
}

impl Pending {
    /// Adds a transfer.
    pub(crate) fn add(&self, counter: Arc<CompletionCounter>, done: Done) {
        self.left.fetch_add(1, Ordering::SeqCst);
        self.list.lock().push((counter, done));
    }

    /// Returns the number of unfinished transfers.
    pub(crate) fn left(&self) -> usize {
        self.left.load(Ordering::SeqCst)
    }
}
