//! Unfinished puts and gets with their completion actions, for [`super::finish`].

use super::types::{ComplHandler, Counter, ErrorOf, Hook, SendHandler};
use parking_lot::Mutex;
use portolan_engine::core::peer::CompletionCounter;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug)]
pub(crate) struct Done {
    pub of: ErrorOf,
    pub target: usize,
    /// An address at the other rank, or 0.
    pub tgt_cntr: u64,
    pub org_cntr: *const Counter,
    pub cmpl_cntr: *const Counter,
    pub sent: Option<Hook<SendHandler>>,
    /// The completion handler of a get.
    pub got: Option<Hook<ComplHandler>>,
}

// SAFETY: the counters are atomic, and the program keeps them valid until they have counted.
unsafe impl Send for Done {}

#[derive(Debug, Default)]
pub(crate) struct Pending {
    pub(super) list: Mutex<Vec<(Arc<CompletionCounter>, Done)>>,
    /// The number of transfers in the list or being finished.
    pub(super) left: AtomicUsize,
}

impl Pending {
    pub(crate) fn add(&self, counter: Arc<CompletionCounter>, done: Done) {
        self.left.fetch_add(1, Ordering::SeqCst);
        self.list.lock().push((counter, done));
    }

    pub(crate) fn left(&self) -> usize {
        self.left.load(Ordering::SeqCst)
    }
}
