//! Transfers under way, and what is to happen when one is done.
//!
//! A put or get that the engine completes at once is finished in its own call. Others
//! are kept here until they are finished ([`super::finish`]).

use super::types::{ComplHandler, Counter, ErrorOf, Hook, SendHandler};
use crate::peer::CompletionCounter;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is to happen when a transfer is done.
#[derive(Debug)]
pub(crate) struct Done {
    /// The kind of the transfer.
    pub of: ErrorOf,
    /// The other rank.
    pub target: usize,
    /// A counter there; 0 none.
    pub tgt_cntr: u64,
    /// The origin's counter, or null.
    pub org_cntr: *const Counter,
    /// The completion counter, or null.
    pub cmpl_cntr: *const Counter,
    /// The send completion handler.
    pub sent: Option<Hook<SendHandler>>,
    /// The completion handler of a get.
    pub got: Option<Hook<ComplHandler>>,
}

// SAFETY: the counters are the user's, who keeps them until they count; they are
// atomic.
unsafe impl Send for Done {}

/// Transfers that are not done.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    pub(super) list: Mutex<Vec<(Arc<CompletionCounter>, Done)>>,
    /// Those in the list and those that are being finished.
    pub(super) left: AtomicUsize,
}

impl Pending {
    /// Adds one.
    pub(crate) fn add(&self, counter: Arc<CompletionCounter>, done: Done) {
        self.left.fetch_add(1, Ordering::SeqCst);
        self.list.lock().push((counter, done));
    }

    /// How many are left.
    pub(crate) fn left(&self) -> usize {
        self.left.load(Ordering::SeqCst)
    }
}
