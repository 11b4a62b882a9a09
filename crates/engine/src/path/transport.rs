//! The interface of a transport to memory that this process does not map.
//!
//! A transport is a folder below `path`, and a row in the table of [`Paths`]. The layers above
//! choose a path for each operation and call the transport of that path through this trait. Direct
//! access is not a transport: it stays inline in the callers.
//!
//! **Contract.** All arguments were checked: a place lies in a live segment, and elements of
//! accumulates have their size. The caller has completed the operations of other paths to the
//! target. A transport marks the target as pending ([`crate::peer::Peers::mark_pending`]) before an
//! operation can be incomplete there, and only a flush removes the mark.

use super::ops::{Rmw, TransferKind};
use super::two_sided::blocks::Batch;
use super::{Capabilities, Path, Paths};
use crate::error::{Result, fail};
use crate::layout::Shape;
use crate::layout::pairs::Pairs;
use crate::memory::arena::Arena;
use crate::peer::CompletionCounter;
use std::fmt;
use std::sync::Arc;

/// A location in the region of a target.
#[derive(Debug, Clone)]
pub struct RemotePlace {
    /// The arena.
    pub arena: Arc<Arena>,
    /// World rank of the owner.
    pub world: usize,
    /// Rank of the owner in the group of the arena.
    pub rank: usize,
    /// Byte offset in the region of the owner.
    pub offset: usize,
    /// The address in the owner's address space. The caller knows it, and a lookup in the arena
    /// costs more than the field.
    pub address: usize,
}

/// The operations that a flush completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// All operations.
    All,
    /// Operations that move data, without the requests of mutexes.
    Data,
}

/// Transfers to one target that are prepared once and started many times.
pub trait Prepared: fmt::Debug + Send + Sync {
    /// Returns the path.
    fn path(&self) -> Path;

    /// Starts all puts. They are complete at the target after a flush. `counter` counts those that
    /// still read local memory on return; without counts, local memory is free after a flush.
    ///
    /// # Safety
    /// The local bytes must stay valid and unchanged until they are free, and the segments must
    /// exist.
    unsafe fn start(
        &self,
        paths: &Paths,
        target: usize,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()>;

    /// Returns all pairs of addresses.
    fn pairs(&self) -> &Pairs;
}

/// A transport to memory that is not mapped.
pub trait Transport: fmt::Debug + Send + Sync {
    /// Returns the path that the transport serves.
    fn path(&self) -> Path;

    /// Returns what the transport can do.
    fn capabilities(&self) -> Capabilities;

    /// Starts a put, get or accumulate along a shape. If the operation is not complete locally on
    /// return, `counter` counts it. If `counter` is `None` and one is needed, returns a new one.
    ///
    /// # Safety
    /// `local` must be valid for the local extent of the shape until the operation is complete
    /// locally: for writes in a get, else for reads. The remote extent must lie in the region of
    /// `place`.
    unsafe fn start(
        &self,
        paths: &Paths,
        kind: TransferKind,
        place: &RemotePlace,
        local: *mut u8,
        shape: &Shape,
        counter: Option<&Arc<CompletionCounter>>,
    ) -> Result<Option<Arc<CompletionCounter>>>;

    /// Sends the blocks of a batch, which is empty afterwards. Called only with
    /// [`Capabilities::BATCH`].
    ///
    /// # Safety
    /// The local blocks of a put or accumulate must be valid for reads until this returns. Those of
    /// a get must be valid for writes until `counter` is done.
    unsafe fn send_batch(
        &self,
        _: &Paths,
        _: &mut Batch,
        _: &Arc<CompletionCounter>,
    ) -> Result<()> {
        fail!(Internal, "the path {} sends no batches", self.path().name())
    }

    /// Combines a number at the target and returns its old value. Complete on return.
    fn rmw(&self, paths: &Paths, place: &RemotePlace, op: Rmw) -> Result<i64>;

    /// Returns whether the target has executed everything that was sent to it.
    fn is_idle(&self, paths: &Paths, target: usize) -> bool {
        paths.peers().pending(target) & self.path().pending_bit() == 0
    }

    /// Begins to complete the operations to `target`. Returns the argument of
    /// [`Transport::end_flush`], or `None` if they are complete.
    fn begin_flush(&self, paths: &Paths, target: usize, what: Flush) -> Result<Option<u64>>;

    /// Waits for a flush to end. `begun` is the result of [`Transport::begin_flush`].
    fn end_flush(&self, paths: &Paths, target: usize, begun: u64) -> Result<()>;

    /// Prepares puts for all pairs, which lie in the region of the rank `rank` of the arena's
    /// group.
    ///
    /// # Errors
    /// Returns `Memory` if a list cannot be allocated, and `Mpi` if a datatype cannot be created.
    fn prepare(&self, arena: Arc<Arena>, rank: usize, pairs: Pairs) -> Result<Box<dyn Prepared>>;

    /// Completes own requests and serves other ranks. Returns whether anything happened.
    fn poll(&self, _: &Paths) -> Result<bool> {
        Ok(false)
    }
}
