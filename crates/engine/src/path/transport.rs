//! The interface of a transport to memory that this process does not map, and the transports of one
//! engine, on top of the core layer ([`Paths`]).
//!
//! The layers above choose a path for each operation. Direct access stays inline in them.
//!
//! **Contract.** A place lies in a live segment, and elements of accumulates have their size. The
//! caller has completed the operations of other paths to the target. A transport marks the target
//! as pending ([`crate::core::peer::Peers::mark_pending`]) before an operation can be incomplete
//! there, and only a flush removes the mark.

use super::Path;
use super::ops::{Rmw, Transfer, TransferKind};
use super::rma::Rma;
use super::two_sided::TwoSided;
use crate::core::Core;
use crate::core::peer::CompletionCounter;
use crate::memory::arena::Arena;
use crate::memory::registry::Hit;
use portolan_base::error::{Result, fail};
use portolan_base::layout::Vector;
use portolan_base::layout::pairs::Pairs;
use portolan_base::trace::Cause;
use portolan_base::wait;
use std::cell::OnceCell;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

#[derive(Debug, Clone)]
pub struct RemotePlace {
    pub arena: Arc<Arena>,
    pub world: usize,
    /// Rank in the group of the arena.
    pub rank: usize,
    /// In bytes.
    pub offset: usize,
    /// Address in the owner's address space. A lookup in the arena would cost more.
    pub address: usize,
}

impl RemotePlace {
    /// Closes the registry, so that the caller may wait.
    pub(crate) fn of(hit: Hit<'_>, world: usize, offset: usize, address: usize) -> RemotePlace {
        let (arena, rank) = (hit.arena().clone(), hit.group_rank());
        RemotePlace { arena, world, rank, offset, address }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    All,
    Data,
}

pub trait Prepared: fmt::Debug + Send + Sync {
    fn path(&self) -> Path;

    /// Starts all puts. They are complete at the target after a flush. `counter` counts those that
    /// still read local memory; if it counts none, local memory is free after a flush.
    ///
    /// `then` is the address of an aligned `int` of the target, to be incremented after the bytes
    /// and after all earlier messages. Returns whether the message of the last bytes does this. If
    /// not, the caller increments the number.
    ///
    /// # Safety
    /// The segments must exist. The local bytes must stay valid and unchanged until they are free.
    unsafe fn start(
        &self,
        paths: &Paths,
        target: usize,
        counter: &Arc<CompletionCounter>,
        then: Option<usize>,
    ) -> Result<bool>;

    fn pairs(&self) -> &Pairs;
}

/// The counter of a transfer: the caller's, or one that a blocking transfer gets if it needs one.
#[derive(Debug)]
pub struct Completion<'a> {
    of_caller: Option<&'a Arc<CompletionCounter>>,
    fresh: OnceCell<Arc<CompletionCounter>>,
}

impl<'a> Completion<'a> {
    pub(crate) fn new(of_caller: Option<&'a Arc<CompletionCounter>>) -> Completion<'a> {
        Completion { of_caller, fresh: OnceCell::new() }
    }

    pub fn counter(&self) -> &Arc<CompletionCounter> {
        self.of_caller.unwrap_or_else(|| self.fresh.get_or_init(Arc::default))
    }

    /// Whether the caller waits until the transfer is complete locally.
    pub fn is_awaited(&self) -> bool {
        self.of_caller.is_none()
    }

    /// Returns the counter that the caller has to wait for.
    pub(crate) fn into_awaited(self) -> Option<Arc<CompletionCounter>> {
        self.fresh.into_inner()
    }
}

pub trait Transport: fmt::Debug + Send + Sync {
    fn path(&self) -> Path;

    /// Returns whether operations to one target take effect in the order of their calls, and
    /// whether an accumulate has read its source when the call returns.
    fn keeps_order(&self) -> bool {
        false
    }

    /// Starts a put, a get, or, except through windows, an accumulate. `completion` counts it if it
    /// is not complete locally on return.
    ///
    /// # Safety
    /// The local extent must be valid until the operation is complete locally: for writes in a get,
    /// else for reads. The remote extent must lie in the region of `place`.
    unsafe fn start(
        &self,
        paths: &Paths,
        transfer: &Transfer<'_>,
        place: &RemotePlace,
        completion: &Completion<'_>,
    ) -> Result<()>;

    /// Returns whether the blocks of a vector can be one operation.
    fn takes_vectors(&self) -> bool {
        false
    }

    /// Performs the transfer of a vector whose blocks lie in the region of `place`, which begins at
    /// the first block. It is complete locally on return. Returns false, and moves no byte, if the
    /// blocks should be issued one by one.
    ///
    /// # Safety
    /// The local blocks must be valid: for writes in a get, else for reads.
    unsafe fn vector(
        &self,
        _: &Paths,
        _: TransferKind,
        _: &RemotePlace,
        _: Vector<'_>,
    ) -> Result<bool> {
        Ok(false)
    }

    /// Returns the old value. Complete on return.
    fn rmw(&self, _: &Paths, _: &RemotePlace, _: Rmw) -> Result<i64> {
        fail!(Internal, "the path {} has no atomic operations", self.path().name())
    }

    /// Returns whether the target has executed everything that was sent to it.
    fn is_idle(&self, paths: &Paths, target: usize) -> bool {
        paths.peers().pending(target) & self.path().pending_bit() == 0
    }

    /// Returns `begun` for [`Transport::end_flush`], or `None` if all is complete.
    fn begin_flush(&self, paths: &Paths, target: usize, what: Flush) -> Result<Option<u64>>;

    fn end_flush(&self, paths: &Paths, target: usize, begun: u64) -> Result<()>;

    /// Prepares puts for all pairs, which lie in the region of the rank `rank` of the arena's
    /// group. Fails with `Memory`, or with `Mpi` if a datatype cannot be created.
    fn prepare(&self, arena: Arc<Arena>, rank: usize, pairs: Pairs) -> Result<Box<dyn Prepared>>;

    /// Completes own requests and serves other ranks. Returns whether anything happened.
    fn poll(&self, _: &Paths) -> Result<bool> {
        Ok(false)
    }
}

pub type Maker = fn() -> Box<dyn Transport>;

static INSTALLED: OnceLock<Maker> = OnceLock::new();

/// For all engines that start from now on, the same on every rank. Only the first call counts.
pub fn install(maker: Maker) {
    let _ = INSTALLED.set(maker);
}

#[derive(Debug)]
pub struct Paths {
    core: Core,
    two_sided: Option<TwoSided>,
    pub(super) rma: Rma,
    installed: Option<Box<dyn Transport>>,
}

impl Deref for Paths {
    type Target = Core;

    #[inline]
    fn deref(&self) -> &Core {
        &self.core
    }
}

impl Paths {
    /// `two_sided` is needed if messages serve some of the ranks.
    pub fn new(core: Core, two_sided: Option<TwoSided>) -> Paths {
        let installed = INSTALLED.get().map(|make| make());
        let rma = Rma::new(if core.memory.policy().windows { core.size() } else { 0 });
        Paths { core, two_sided, rma, installed }
    }

    pub fn is_any_installed() -> bool {
        INSTALLED.get().is_some()
    }

    /// The table of all transports. Fails with `Internal` for a direct or unused path.
    #[inline]
    pub fn transport(&self, path: Path) -> Result<&dyn Transport> {
        match path {
            Path::Rma => Ok(&self.rma),
            Path::Message => Ok(self.two_sided()?),
            Path::Direct => fail!(Internal, "direct access needs no transport"),
            Path::Installed => match &self.installed {
                Some(installed) => Ok(&**installed),
                None => fail!(Internal, "no transport is installed"),
            },
        }
    }

    pub fn flush(&self, path: Path, target: usize) -> Result<()> {
        let transport = self.transport(path)?;
        match transport.begin_flush(self, target, Flush::All)? {
            Some(begun) => transport.end_flush(self, target, begun),
            None => Ok(()),
        }
    }

    pub fn forget_types(&self) {
        self.rma.forget_types();
    }

    pub fn core(&self) -> &Core {
        &self.core
    }

    /// Returns the arena that contains `len` bytes at `address` of this rank, and their offset in
    /// its region. Checks addresses that come from other ranks; fails as
    /// [`crate::memory::registry::Registry::in_region`].
    pub fn own(&self, address: u64, len: usize) -> Result<(Arc<Arena>, usize)> {
        self.memory.registry.in_region(self.rank(), address as usize, len)
    }

    /// Fails with `Internal` if the job uses no messages.
    #[inline]
    pub fn two_sided(&self) -> Result<&TwoSided> {
        match &self.two_sided {
            Some(two_sided) => Ok(two_sided),
            None => {
                fail!(Internal, "a message is needed in a job that was started without messages")
            }
        }
    }

    /// Completes own requests and serves other ranks. Returns whether anything happened.
    #[inline]
    pub(crate) fn poll_messages(&self) -> Result<bool> {
        let other = match &self.installed {
            Some(installed) => installed.poll(self)?,
            None => false,
        };
        match &self.two_sided {
            Some(two_sided) => Ok(two_sided.poll(self)? || other),
            None => Ok(other),
        }
    }

    pub(crate) fn has_long_messages(&self) -> bool {
        self.two_sided.as_ref().is_some_and(TwoSided::has_long_messages)
    }

    pub fn outstanding(&self) -> usize {
        self.two_sided.as_ref().map_or(0, TwoSided::outstanding)
    }

    /// Serves all messages still in flight. Collective.
    pub(crate) fn drain_messages(&self) -> Result<()> {
        let Some(two_sided) = &self.two_sided else {
            return Ok(());
        };
        two_sided.await_acks(self)?;
        let comm = self.world().comm()?;
        let mut barrier = comm.ibarrier()?;
        let mut passed = false;
        wait::until(self, Cause::Start, &|| "the last messages of other ranks".into(), || {
            // A message sent before the barrier may become visible only after it.
            let idle = !two_sided.poll(self)?;
            let before = passed;
            passed = passed || barrier.test()?;
            Ok(before && idle && two_sided.outstanding() == 0)
        })
    }

    /// Collective. Nothing may be outstanding.
    pub fn free(&self) -> Result<()> {
        match &self.two_sided {
            Some(two_sided) => two_sided.free(),
            None => Ok(()),
        }
    }

    /// Returns the path of puts and gets from `origin` to ordinary segments of `target`.
    pub fn path_between(&self, origin: usize, target: usize) -> Path {
        let policy = self.memory.policy();
        match self.reaches_directly(target, origin) {
            true => Path::Direct,
            false => policy.remote_path(policy.windows),
        }
    }
}

crate::core::progress_by_deref!(Paths);
