//! The engine: one per process, from start to stop.
//!
//! [`Engine::start`] initialises or adopts MPI, finds the topology, decides
//! which paths the job uses, and starts the progress thread where one is
//! needed. [`Engine::stop`] undoes it all. Both are collective. The engine may be
//! started again after it was stopped, as long as MPI runs.
//!
//! The C faces reach the engine through [`current`], one atomic load; the Rust
//! interface holds it by reference count. Calls on other threads must have
//! returned before the engine is stopped, as for MPI itself.

use crate::am::Am;
use crate::atomics::mutex::Mutexes;
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result, fail};
use crate::group::Group;
use crate::memory::segment::{Memory, Segment};
use crate::mpi::init::ThreadLevel;
use crate::path::Path;
use crate::path::message::Messenger;
use crate::path::rma::TypeCache;
use crate::peer::Peer;
use crate::progress::ProgressThread;
use crate::topology::Topology;
use crate::watchdog::Watchdog;
use parking_lot::{Mutex, RwLock};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

mod choice;
mod cores;
mod fence;
pub(crate) mod host;
pub(crate) mod log_sink;
mod looks;
mod paths;
mod report;
mod start;
mod trial;

/// The running engine of this process.
#[derive(Debug)]
pub struct Engine {
    /// The environment, as it was read at start.
    pub config: Config,
    /// Who shares memory with whom.
    pub topology: Arc<Topology>,
    /// Segments and their addresses.
    pub memory: Memory,
    /// Why transfers between nodes take the path they take.
    pub remote_reason: String,
    /// What was measured for that, a line for each kind of pair: where, and what.
    pub remote_measured: Vec<(&'static str, String)>,
    world: Arc<Group>,
    peers: Vec<Peer>,
    /// At least as many as have a bit of their summary set.
    dirty_peers: AtomicUsize,
    messenger: Option<Messenger>,
    pub(crate) types: TypeCache,
    pub(crate) mutexes: Mutexes,
    groups: Mutex<Vec<Arc<Group>>>,
    level: ThreadLevel,
    ours: bool,
    stopped: AtomicBool,
    waiters: AtomicU32,
    /// The progress thread runs.
    watched: AtomicBool,
    polls: AtomicU32,
    /// Polls without a progress thread.
    looks: AtomicU32,
    /// There are messages, but no thread that serves them.
    threadless: AtomicBool,
    /// The engine ends, and its threads have ended or are about to.
    alone: AtomicBool,
    spin: u32,
    /// The node has more ranks than cores.
    crowded: bool,
    thread: Mutex<Option<ProgressThread>>,
    watchdog: Mutex<Option<Watchdog>>,
    am: OnceLock<Am>,
    /// Blocking calls of MPI by the program wait in the engine's way.
    host_waits: bool,
    /// Such waits may poll.
    host_open: RwLock<bool>,
}

/// How many polls of a waiting rank without messages lie between two occasions
/// for MPI to make progress.
const POKE_EVERY: u32 = 256;

static CURRENT: AtomicPtr<Engine> = AtomicPtr::new(std::ptr::null_mut());
static OWNER: Mutex<Option<Arc<Engine>>> = Mutex::new(None);

/// The running engine.
///
/// # Errors
/// `State` before start and after stop.
#[inline]
pub fn current() -> Result<&'static Engine> {
    let engine = CURRENT.load(Ordering::Acquire);
    if engine.is_null() {
        return Err(not_running());
    }
    // SAFETY: the pointer is that of the engine in OWNER, which stays until
    // `stop`; callers on other threads return before that (see the module).
    Ok(unsafe { &*engine })
}

#[cold]
fn not_running() -> Error {
    Error::new(
        ErrorKind::State,
        "the runtime is not initialised, or was finalised already; initialise it first",
    )
}

/// Whether an engine runs.
pub fn is_running() -> bool {
    !CURRENT.load(Ordering::Acquire).is_null()
}

/// The engine, by reference count.
pub fn current_arc() -> Result<Arc<Engine>> {
    OWNER.lock().clone().ok_or_else(not_running)
}

/// The engine by reference count, where one runs.
fn try_running() -> Option<Arc<Engine>> {
    if is_running() { OWNER.lock().clone() } else { None }
}

/// What the engine has pending, where there is one and no thread starts or stops it.
fn pending() -> Option<String> {
    Some(OWNER.try_lock()?.as_ref()?.pending())
}

impl Engine {
    /// The calling rank.
    #[inline]
    pub fn rank(&self) -> usize {
        self.topology.me()
    }

    /// The number of ranks.
    #[inline]
    pub fn size(&self) -> usize {
        self.peers.len()
    }

    /// The group of all ranks.
    pub fn world(&self) -> &Arc<Group> {
        &self.world
    }

    /// MPI's thread level.
    pub fn thread_level(&self) -> ThreadLevel {
        self.level
    }

    /// Whether a progress thread runs.
    pub fn has_thread(&self) -> bool {
        self.thread.lock().is_some()
    }

    /// Whether some ranks are served by messages.
    pub fn has_messages(&self) -> bool {
        self.messenger.is_some()
    }

    pub(crate) fn messenger(&self) -> Result<&Messenger> {
        match &self.messenger {
            Some(messenger) => Ok(messenger),
            None => fail!(Internal, "a message was needed in a job that decided to use none"),
        }
    }

    pub(crate) fn peer(&self, rank: usize) -> &Peer {
        &self.peers[rank]
    }

    /// # Errors
    /// `Rank` for a rank outside the world.
    #[inline]
    pub fn check_rank(&self, rank: usize) -> Result<()> {
        if rank >= self.peers.len() {
            fail!(Rank, "rank {rank} is outside the {} ranks of the job", self.peers.len());
        }
        Ok(())
    }

    /// Notes something unfinished towards `rank`. Under the lock of what the bit
    /// stands for, as is [`Engine::mark_clean`].
    pub(crate) fn mark_dirty(&self, rank: usize, bit: u8) {
        let peer = &self.peers[rank];
        if peer.dirty() & bit != 0 {
            return;
        }
        // Counted first, so that the count is never too low: other threads' fences
        // skip everything when it is zero.
        self.dirty_peers.fetch_add(1, Ordering::Relaxed);
        if !peer.mark(bit) {
            self.dirty_peers.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Notes that all that the bit stands for is finished.
    pub(crate) fn mark_clean(&self, rank: usize, bit: u8) {
        if self.peers[rank].clear(bit) {
            self.dirty_peers.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether a segment of `owner` is mapped by `rank`.
    pub fn reaches_directly(&self, owner: usize, rank: usize) -> bool {
        owner == rank || self.memory.policy().direct && self.topology.same_node(owner, rank)
    }

    /// The path of puts and gets from `origin` to ordinary segments of `target`.
    pub fn path_between(&self, origin: usize, target: usize) -> Path {
        if self.reaches_directly(target, origin) {
            Path::Direct
        } else if self.memory.policy().windows {
            Path::Rma
        } else {
            Path::Message
        }
    }

    /// Fences everything and waits for all ranks of a group.
    pub fn barrier_of(&self, group: &Group) -> Result<()> {
        self.fence_all()?;
        group.barrier(self)
    }

    /// Allocates a segment. Collective over the group.
    pub fn allocate(&self, group: &Arc<Group>, bytes: usize) -> Result<Arc<Segment>> {
        self.memory.allocate(group, Ok(bytes), self)
    }

    /// As [`Engine::allocate`], for a face that has checked its arguments: where
    /// they are bad on one rank, all ranks get an error, and none waits.
    pub fn allocate_checked(
        &self,
        group: &Arc<Group>,
        bytes: Result<usize>,
    ) -> Result<Arc<Segment>> {
        self.memory.allocate(group, bytes, self)
    }

    /// Frees a segment of which all ranks of its group hold the reference.
    /// Collective.
    pub fn release(&self, segment: Arc<Segment>) -> Result<()> {
        let group = segment.group().clone();
        self.barrier_of(&group)?;
        self.memory.release(segment)?;
        self.group_may_go(&group)
    }

    /// Frees the segment that begins at `mine` on this rank (`None` where this
    /// rank has no bytes of it). Collective over the group.
    pub fn release_at(&self, group: &Arc<Group>, mine: Option<usize>) -> Result<()> {
        self.wait_implicit()?;
        self.fence_all()?;
        match self.memory.agree_on(group, mine, self)? {
            Some(segment) => {
                self.memory.release(segment)?;
                self.group_may_go(group)
            }
            None => Ok(()),
        }
    }

    /// Makes a group of world-ranked or parent-ranked members.
    pub fn create_group(&self, parent: &Group, ranks: &[usize]) -> Result<Option<Arc<Group>>> {
        let group = parent.subgroup(ranks, &self.topology, self)?;
        if let Some(group) = &group {
            let policy = self.memory.policy();
            if policy.direct {
                group.set_up_board(&policy.shm_dir, self)?;
            }
            self.groups.lock().push(group.clone());
        }
        Ok(group)
    }

    /// Frees a group. Collective over it. Its memory stays until it is freed.
    pub fn free_group(&self, group: &Arc<Group>) -> Result<()> {
        if Arc::ptr_eq(group, &self.world) {
            fail!(Argument, "the group of all ranks cannot be freed");
        }
        if group.is_freed() {
            fail!(State, "the group was freed already");
        }
        group.mark_freed();
        self.group_may_go(group)
    }

    fn group_may_go(&self, group: &Arc<Group>) -> Result<()> {
        if !group.is_freed() || self.memory.any_live_of(group) {
            return Ok(());
        }
        // MPI's own wait for the others serves nobody: this one does.
        if self.memory.has_windows(group) {
            group.barrier(self)?;
        }
        self.memory.close_group(group)?;
        self.groups.lock().retain(|g| !Arc::ptr_eq(g, group));
        group.release_comm()
    }

    /// Active messages, where they were started.
    #[inline]
    pub(crate) fn started_am(&self) -> Option<&Am> {
        self.am.get()
    }

    /// Whether threads of the engine may call MPI, or need not.
    pub(crate) fn may_use_threads(&self) -> bool {
        let allowed = self.level == ThreadLevel::Multiple || self.messenger.is_none();
        allowed && !self.alone.load(Ordering::Relaxed)
    }

    /// Whether the calling thread may call MPI: one of the program may, by its calls of
    /// ours, but no other thread unless MPI allows any.
    pub(crate) fn may_call_mpi(&self) -> bool {
        self.level == ThreadLevel::Multiple || !crate::am::later::on_completion_thread()
    }

    pub(crate) fn waiters(&self) -> &AtomicU32 {
        &self.waiters
    }
}
