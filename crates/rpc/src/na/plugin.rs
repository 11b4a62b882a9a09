//! The interface of a network that reaches other processes through connections.
//!
//! A class uses either the engine or a plug-in. The peers of a plug-in are [`Peer::Remote`] with a
//! connection number that the plug-in issues and never reuses.
//!
//! A plug-in delivers messages by [`Shared::arrived`] from within [`Plugin::poll`]. It checks them
//! first ([`Shared::may_come`]), because a peer is not trusted to follow the protocol. When a
//! connection ends, it calls [`Shared::lost`] once.

use super::address::Peer;
use super::class::Shared;
use super::memory::Run;
use super::transfer::Direction;
use super::wire::Head;
use crate::failure::Result;
use portolan_engine::am::Data;
use portolan_engine::core::peer::CompletionCounter;
use portolan_engine::memory::shm_export::ShmKey;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capabilities {
    /// Whether every network event ends [`Plugin::sleep`]. Otherwise waiting threads must poll.
    pub wakes: bool,
    /// Whether [`Plugin::hold`] has an effect.
    pub holds: bool,
}

/// A part of a transfer, at most [`super::wire::CHUNK`] bytes long.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub direction: Direction,
    /// The number of the peer's memory handle.
    pub id: u64,
    pub offset: usize,
    /// The local memory. It stays valid until the counter of the chunk is done.
    pub runs: Vec<Run>,
    /// Set if the local memory is exported to the host.
    pub shm_key: Option<ShmKey>,
}

pub(crate) trait Plugin: Send + Sync {
    fn capabilities(&self) -> Capabilities;

    /// Returns the address of this process that other processes can look up, if there is one.
    fn own_name(&self) -> Option<String>;

    fn name_of(&self, peer: u32) -> String;

    /// Returns the peer at an address. The first message to it connects. Returns `INVALID_ARG` if
    /// the address is malformed.
    fn connect(&self, name: &str) -> Result<Peer>;

    /// Returns whether a peer is a class of this process, or `None` if it is not connected.
    fn is_of_this_process(&self, peer: u32) -> Option<bool>;

    /// Returns the process of a peer that is connected through shared memory.
    fn process_of(&self, _peer: u32) -> Option<u32> {
        None
    }

    /// Sends a message. The bytes are copied before the call returns, or have been sent. Returns
    /// `HOSTUNREACH` if the connection has ended or no process listens at the address, `PERMISSION`
    /// if the process refuses the connection, and `TIMEOUT` if it does not respond.
    fn send(&self, class: &Shared, peer: u32, head: &Head, body: Data<'_>) -> Result<()>;

    /// Starts the transfer of a chunk. Increments the counter, which is decremented when the bytes
    /// have arrived. Fails like [`Plugin::send`], with the counter unchanged.
    fn transfer(
        &self,
        class: &Shared,
        peer: u32,
        chunk: Chunk,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()>;

    /// Lets the network hold the short messages that this thread sends from now on, or not any
    /// more.
    fn hold(&self, _hold: bool) {}

    /// Transmits what threads have held. [`Plugin::poll`] does so too.
    fn transmit(&self) {}

    /// Handles what has arrived, without blocking. Returns whether anything happened.
    fn poll(&self, class: &Shared) -> Result<bool>;

    /// Prepares [`Plugin::sleep`]: an event after this call ends the sleep.
    fn prepare_sleep(&self) {}

    /// Sleeps until an event, a call of [`Plugin::wake`] or the end of `nap`. Returns false without
    /// sleeping if another thread sleeps here.
    fn sleep(&self, _nap: Duration) -> bool {
        false
    }

    fn wake(&self) {}

    /// Returns whether so many bytes wait for a peer that it should cause no more of them. If that
    /// changes, the plug-in calls [`Shared::fell_behind`].
    fn is_behind(&self, _peer: u32) -> bool {
        false
    }

    /// Ends the connections of a peer, which is lost then.
    fn give_up(&self, peer: u32, why: &str);

    /// Returns a descriptor that becomes readable on an event after [`Plugin::prepare_sleep`].
    fn descriptor(&self) -> Option<RawFd> {
        None
    }

    /// Returns whether the connections belong to the parent of this process, which lives.
    fn is_copy(&self) -> bool {
        false
    }

    /// Closes all connections after outgoing messages have been sent, and stops to listen.
    fn close(&self, class: &Shared);

    fn refused(&self) -> u64;

    /// Returns the open connections, one per line.
    #[cfg(test)]
    fn describe(&self) -> String;
}
