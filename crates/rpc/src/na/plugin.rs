//! The types that a class and its plug-in ([`Plugin`](super::class::Plugin)) exchange.

use super::memory::Run;
use portolan_engine::any_memory::Direction;
use portolan_engine::memory::shm_export::ShmKey;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capabilities {
    /// Whether every network event ends `Plugin::sleep`. Otherwise waiting threads must poll.
    pub wakes: bool,
    /// Whether `Plugin::hold` has an effect.
    pub holds: bool,
}

/// A part of a transfer, at most [`super::wire::CHUNK`] bytes long.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub direction: Direction,
    /// The number of the peer's memory handle.
    pub id: u64,
    pub offset: usize,
    /// The number of the local memory handle.
    pub local: u64,
    /// The local memory. It stays valid until the counter of the chunk is done.
    pub runs: Vec<Run>,
    /// Set if the local memory is exported to the host.
    pub shm_key: Option<ShmKey>,
}
