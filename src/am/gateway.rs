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
use super::gathered::BatchFormat;
use super::{Accept, Arrival, Handler, HandlerId};
use crate::core::handler;
use crate::error::{Result, fail};
use crate::mutation::{self, Fault};
use crate::trace::Cause;
use bytemuck::{Pod, Zeroable};
use std::collections::BTreeMap;
use std::mem::size_of;

/// The number of the handler below: the engine's own, the same on all ranks.
pub(super) const GATEWAY: HandlerId = HandlerId(0);
/// Bytes that routing adds to a header.
pub(super) const HEAD: usize = size_of::<GatewayHead>();

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct GatewayHead {
    item: u64,
    handler: u32,
    /// The node that the items go to.
    node: u32,
}

impl Am {
    /// Brings a batch for a rank of another node on its way.
    pub(super) fn send_by_gateway(
        &self,
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
        let node = self.topology.node_of(target);
        let here = self.topology.ranks_of(self.topology.my_node());
        let gateway = here[node % here.len()];
        if gateway == self.rank() {
            return gather(self, way, node, &bytes);
        }
        pass_on(self, way, node, gateway, &bytes)
    }

    /// Sends what is gathered here, or what of it is old; true if anything was.
    pub(super) fn flush_gateway(&self, aged: bool) -> Result<bool> {
        let gateway = &self.state()?.gateway;
        let (ready, taken) = gateway.take_ready(aged.then_some(self.config.aggregate_age));
        let sent = ready.iter().try_for_each(|((node, handler, item, header), bytes)| {
            let way = BatchFormat { handler: HandlerId(*handler), header, item: *item };
            forward(self, &way, *node, bytes)
        });
        drop(taken);
        sent?;
        if !aged && handler::running().is_none() {
            self.wait_for(Cause::Message, &|| "batches that other threads pass on".into(), || {
                Ok(gateway.is_settled())
            })?;
        }
        Ok(!ready.is_empty())
    }
}

/// Adds items at their gateway, this rank.
fn gather(am: &Am, way: &BatchFormat<'_>, node: usize, bytes: &[u8]) -> Result<()> {
    match am.state()?.gateway.add(way, node, bytes) {
        Some(bytes) => forward(am, way, node, &bytes),
        None => Ok(()),
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
                gather(am, &way, node, bytes)?;
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
                gather(am, &way, node, &bytes)
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
