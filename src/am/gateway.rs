//! Batches to other nodes by way of one rank on each side.
//!
//! With many ranks, a buffer for each target holds few items, and each goes out as a
//! small message. So items for ranks of another node are first gathered at one rank
//! of the own node, the *gateway* to that node, from all ranks of the own one; they
//! travel together to one rank of the other node, which hands them out there.
//! Meanwhile each item carries its final rank.
//!
//! Each hop is a message, counted like any other, and what a gateway has gathered is
//! sent by the same flushes as what faces have collected, so that quiescence covers
//! all of it.

use super::Am;
use super::aggregate::send_batch;
use super::{Accept, Arrival, Handler, HandlerId};
use crate::core::handler;
use crate::error::{Result, fail};
use crate::mutation::{self, Fault};
use bytemuck::{Pod, Zeroable};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::mem::size_of;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The number of the handler below: the engine's own, the same on all ranks.
pub const GATEWAY: HandlerId = HandlerId(0);
/// Bytes that routing adds to a header.
pub const HEAD: usize = size_of::<GatewayHead>();
/// Gathered bytes that go together.
const FULL: usize = 48 << 10;

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct GatewayHead {
    item: u64,
    handler: u32,
    /// The node that the items go to.
    node: u32,
}

/// What is the same for all items of an aggregator.
#[derive(Debug)]
pub struct BatchFormat<'a> {
    /// The handler that gets them.
    pub handler: HandlerId,
    /// The header of their batches.
    pub header: &'a [u8],
    /// Bytes of an item.
    pub item: usize,
}

/// What goes together: the node, the handler, the item's size, the header.
type BatchKey = (usize, u16, usize, Vec<u8>);

#[derive(Debug)]
struct Gathered {
    bytes: Vec<u8>,
    since: Instant,
}

/// What this rank has gathered as a gateway. In an order that does not change from run to run,
/// so that a simulation can be repeated.
#[derive(Debug, Default)]
pub struct GatewayBatches {
    gathered: Mutex<BTreeMap<BatchKey, Gathered>>,
    /// Flushes that have taken items and not sent them yet.
    flushing: AtomicUsize,
}

impl GatewayBatches {
    /// Brings a batch for a rank of another node on its way.
    pub(super) fn collect(
        &self,
        am: &Am,
        way: &BatchFormat<'_>,
        target: usize,
        items: &[u8],
        count: usize,
    ) -> Result<()> {
        let mut bytes = Vec::with_capacity(items.len() + 4 * count);
        for n in 0..count {
            bytes.extend_from_slice(&(target as u32).to_ne_bytes());
            bytes.extend_from_slice(&items[n * way.item..][..way.item]);
        }
        let node = am.topology.node_of(target);
        let here = am.topology.ranks_of(am.topology.my_node());
        let gateway = here[node % here.len()];
        if gateway == am.rank() {
            return self.gather(am, way, node, &bytes);
        }
        pass_on(am, way, node, gateway, &bytes)
    }

    /// Adds items at their gateway.
    fn gather(&self, am: &Am, way: &BatchFormat<'_>, node: usize, bytes: &[u8]) -> Result<()> {
        let key = (node, way.handler.0, way.item, way.header.to_vec());
        let full = {
            let mut gathered = self.gathered.lock();
            let all = gathered
                .entry(key)
                .or_insert_with(|| Gathered { bytes: Vec::new(), since: Instant::now() });
            if all.bytes.is_empty() {
                all.since = Instant::now();
            }
            all.bytes.extend_from_slice(bytes);
            (all.bytes.len() >= FULL).then(|| std::mem::take(&mut all.bytes))
        };
        match full {
            Some(bytes) => forward(am, way, node, &bytes),
            None => Ok(()),
        }
    }

    /// Sends what is gathered, or what of it is old; true if anything was.
    pub(super) fn flush(&self, am: &Am, aged: bool) -> Result<bool> {
        let age = am.config.aggregate_age;
        let mut gathered = self.gathered.lock();
        self.flushing.fetch_add(1, Ordering::Relaxed);
        let ready: Vec<(BatchKey, Vec<u8>)> = gathered
            .iter_mut()
            .filter(|(_, g)| !g.bytes.is_empty() && (!aged || g.since.elapsed() >= age))
            .map(|(key, g)| (key.clone(), std::mem::take(&mut g.bytes)))
            .collect();
        drop(gathered);
        let sent = ready.iter().try_for_each(|((node, handler, item, header), bytes)| {
            let way = BatchFormat { handler: HandlerId(*handler), header, item: *item };
            forward(am, &way, *node, bytes)
        });
        self.flushing.fetch_sub(1, Ordering::Release);
        sent?;
        if !aged && handler::running().is_none() {
            am.wait_until(&|| "batches that other threads pass on".into(), || {
                Ok(self.flushing.load(Ordering::Acquire) == 0)
            })?;
        }
        Ok(!ready.is_empty())
    }

    /// Whether nothing is gathered.
    pub(super) fn is_empty(&self) -> bool {
        self.gathered.lock().values().all(|g| g.bytes.is_empty())
    }
}

/// From the gateway to its partner on the other node.
fn forward(am: &Am, way: &BatchFormat<'_>, node: usize, bytes: &[u8]) -> Result<()> {
    let there = am.topology.ranks_of(node);
    let partner = there[am.topology.my_node() % there.len()];
    pass_on(am, way, node, partner, bytes)
}

fn pass_on(am: &Am, way: &BatchFormat<'_>, node: usize, to: usize, bytes: &[u8]) -> Result<()> {
    let head =
        GatewayHead { item: way.item as u64, handler: way.handler.0.into(), node: node as u32 };
    let header = [bytemuck::bytes_of(&head), way.header].concat();
    am.send_message(to, GATEWAY, &header, bytes)
}

/// What a gateway, and its partner, do with items.
pub(crate) struct Gateway;

impl Handler for Gateway {
    fn arrive(&self, am: &Am, message: &Arrival<'_>) -> Result<Accept> {
        let Some((head, header)) = message.header.split_at_checked(HEAD) else {
            fail!(Internal, "rank {} sent a batch without its way", message.origin);
        };
        let head: GatewayHead = bytemuck::pod_read_unaligned(head);
        let (item, node) = (head.item as usize, head.node as usize);
        let way = BatchFormat { handler: HandlerId(head.handler as u16), header, item };
        let at_goal = node == am.topology.my_node();
        let origin = message.origin;
        if let Some(bytes) = message.data {
            if at_goal {
                hand_out(am, &way, origin, bytes)?;
            } else {
                am.state()?.gateway.gather(am, &way, node, bytes)?;
            }
            return Ok(Accept::DONE);
        }
        // Longer than what comes along: handled when it is here.
        let header = header.to_vec();
        let handler = way.handler;
        let then = move |am: &Am, bytes: Vec<u8>| {
            let way = BatchFormat { handler, header: &header, item };
            let done = if at_goal {
                hand_out(am, &way, origin, &bytes)
            } else {
                am.state().and_then(|state| state.gateway.gather(am, &way, node, &bytes))
            };
            if let Err(error) = done {
                log::error!("a batch from rank {origin} is lost: {error}");
                crate::process::end_job(error.kind().code());
            }
        };
        Ok(Accept { to: super::Destination::Buffer, then: super::Then::Inline(Box::new(then)) })
    }
}

/// Sorts items by their final rank and sends each its batch.
fn hand_out(am: &Am, way: &BatchFormat<'_>, origin: usize, bytes: &[u8]) -> Result<()> {
    let stride = way.item + 4;
    if !bytes.len().is_multiple_of(stride) {
        fail!(Internal, "rank {origin} sent {} bytes of items of {stride}", bytes.len());
    }
    let mut batches: BTreeMap<u32, (Vec<u8>, usize)> = BTreeMap::new();
    for item in bytes.chunks_exact(stride) {
        let (rank, item) = item.split_at(4);
        let rank = u32::from_ne_bytes(rank.try_into().unwrap_or_default());
        let batch = batches.entry(rank).or_default();
        batch.0.extend_from_slice(item);
        batch.1 += 1;
    }
    for (rank, (bytes, items)) in batches {
        let rank = rank as usize;
        // A batch goes with its header, and a ring of the node may take less than came.
        let most = am.eager_limit(rank) / way.item.max(1) * way.item;
        if bytes.len() <= most || most == 0 || mutation::is(Fault::HandedWhole) {
            send_batch(am, way.handler, way.header, rank, &bytes, items)?;
            continue;
        }
        for part in bytes.chunks(most) {
            send_batch(am, way.handler, way.header, rank, part, part.len() / way.item)?;
        }
    }
    Ok(())
}
