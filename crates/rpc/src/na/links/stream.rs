//! The bytes of a connection, without message boundaries. Rings and sockets implement the trait.

use crate::na::memory::Run;
pub(super) use portolan_engine::memory::runs::after;
use std::fmt;
use std::io;
use std::os::fd::RawFd;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    Bytes(usize),
    Nothing,
    End,
}

/// A connection. No call blocks, and errors mean that the connection is broken.
pub(super) trait Stream: Send + Sync + fmt::Debug {
    /// Writes as many bytes of `parts` as fit, in order, and returns their number. If some do not
    /// fit, the poller or the bell reports the connection once there is room.
    ///
    /// # Safety
    /// One thread at a time writes. `parts` must be valid for reads during the call. Other threads
    /// may write to them meanwhile.
    unsafe fn write(&self, parts: &[Run]) -> io::Result<usize>;

    /// Returns whether a write is a system call, so that short messages should share one.
    fn is_costly(&self) -> bool {
        false
    }

    /// Reads bytes, in order, into `parts`. Fails if the connection is broken.
    ///
    /// # Safety
    /// One thread at a time reads. `parts` must be valid for writes during the call. Other threads
    /// may access them meanwhile.
    unsafe fn read(&self, parts: &[Run]) -> io::Result<Read>;

    /// Called when the poller has reported the connection's descriptor.
    fn signalled(&self) {}

    fn descriptor(&self) -> RawFd;

    /// Returns the process ID of a peer on this host.
    fn process(&self) -> Option<u32> {
        None
    }

    /// Returns the process ID of a live peer whose memory the system lets this process access.
    fn accessible(&self) -> Option<u32> {
        None
    }

    /// Calls `copy`, which accesses memory of the peer, unless the peer has cut the connection. The
    /// peer's [`Stream::cut`] waits until `copy` returns.
    fn copy_for_peer(&self, _copy: &mut dyn FnMut()) {}

    /// Returns whether the peer can access the memory of this process.
    fn is_reachable(&self) -> bool {
        false
    }

    fn end_output(&self);

    /// Ends the connection in both directions. The peer then accesses no memory of this process.
    fn cut(&self);
}

pub(super) fn total(parts: &[Run]) -> usize {
    parts.iter().map(|run| run.len).sum()
}

pub(super) fn run_of(bytes: &[u8]) -> Run {
    Run { address: bytes.as_ptr() as usize, len: bytes.len() }
}
