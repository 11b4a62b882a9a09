//! Items that a gateway gathers for other nodes until they are worth a message
//! ([`super::gateway`]).

use super::HandlerId;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Gathered bytes that go together.
const FULL: usize = 48 << 10;

/// What is the same for all items of an aggregator.
#[derive(Debug)]
pub(super) struct BatchFormat<'a> {
    /// The handler that gets them.
    pub handler: HandlerId,
    /// The header of their batches.
    pub header: &'a [u8],
    /// Bytes of an item.
    pub item: usize,
}

/// What goes together: the node, the handler, the item's size, the header.
pub(super) type BatchKey = (usize, u16, usize, Vec<u8>);

#[derive(Debug)]
struct Gathered {
    bytes: Vec<u8>,
    since: Instant,
}

/// What this rank has gathered as a gateway. In an order that does not change from run to run,
/// so that a simulation can be repeated.
#[derive(Debug, Default)]
pub(super) struct GatewayBatches {
    gathered: Mutex<BTreeMap<BatchKey, Gathered>>,
    /// Flushes that have taken items and not sent them yet.
    flushing: AtomicUsize,
}

/// Items were taken and are not sent until this is dropped.
pub(super) struct Flushing<'a>(&'a AtomicUsize);

impl Drop for Flushing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

impl GatewayBatches {
    /// Adds items; all of their kind are returned where they are worth a message.
    pub(super) fn add(&self, way: &BatchFormat<'_>, node: usize, bytes: &[u8]) -> Option<Vec<u8>> {
        let key = (node, way.handler.0, way.item, way.header.to_vec());
        let mut gathered = self.gathered.lock();
        let all = gathered
            .entry(key)
            .or_insert_with(|| Gathered { bytes: Vec::new(), since: Instant::now() });
        if all.bytes.is_empty() {
            all.since = Instant::now();
        }
        all.bytes.extend_from_slice(bytes);
        (all.bytes.len() >= FULL).then(|| std::mem::take(&mut all.bytes))
    }

    /// Takes all items, or those that have waited for `age`.
    pub(super) fn take_ready(
        &self,
        age: Option<Duration>,
    ) -> (Vec<(BatchKey, Vec<u8>)>, Flushing<'_>) {
        let mut gathered = self.gathered.lock();
        self.flushing.fetch_add(1, Ordering::Relaxed);
        let ready = gathered
            .iter_mut()
            .filter(|(_, g)| !g.bytes.is_empty() && age.is_none_or(|age| g.since.elapsed() >= age))
            .map(|(key, g)| (key.clone(), std::mem::take(&mut g.bytes)))
            .collect();
        (ready, Flushing(&self.flushing))
    }

    /// Whether what was taken is sent.
    pub(super) fn is_settled(&self) -> bool {
        self.flushing.load(Ordering::Acquire) == 0
    }

    /// Whether nothing is gathered.
    pub(super) fn is_empty(&self) -> bool {
        self.gathered.lock().values().all(|g| g.bytes.is_empty())
    }
}
