//! Traffic statistics by transport. `QUERY_STATISTICS` returns the sums over all,
//! `QUERY_SHM_STATISTICS` those of the node's shared memory, and `QUERY_LOCAL_SEND_STATISTICS`
//! those of messages to the task itself.

use super::types::Statistics;
use portolan_engine::am::Am;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrafficKind {
    Network,
    /// Shared memory of the node.
    Node,
    /// Delivery to the task itself.
    Own,
}

pub(crate) fn transports(engine: &Am) -> Box<[TrafficKind]> {
    let topology = &engine.topology;
    let node = topology.ranks_of(topology.my_node());
    let transport = |rank| match rank {
        _ if rank == engine.rank() => TrafficKind::Own,
        _ if node.contains(&rank) => TrafficKind::Node,
        _ => TrafficKind::Network,
    };
    (0..engine.size()).map(transport).collect()
}

#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub sent: AtomicU64,
    pub received: AtomicU64,
    pub bytes_sent: AtomicU64,
    pub bytes_received: AtomicU64,
    pub replies_sent: AtomicU64,
    pub replies_received: AtomicU64,
}

/// Relaxed, because these numbers order no other memory access.
pub(crate) fn add(to: &AtomicU64, n: usize) {
    to.fetch_add(n as u64, Ordering::Relaxed);
}

/// The counts of lost, duplicate and foreign packets stay 0: the transport is reliable.
pub(crate) fn sum<'a>(of: impl Iterator<Item = &'a Traffic>) -> Statistics {
    let read = |n: &AtomicU64| n.load(Ordering::Relaxed);
    of.fold(Statistics::default(), |s, t| Statistics {
        pkt_sent: s.pkt_sent + read(&t.sent),
        pkt_recv: s.pkt_recv + read(&t.received),
        data_sent: s.data_sent + read(&t.bytes_sent),
        data_recv: s.data_recv + read(&t.bytes_received),
        ack_send: s.ack_send + read(&t.replies_sent),
        ack_recv: s.ack_recv + read(&t.replies_received),
        ..s
    })
}
