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

use crate::atomics::mutex::Mutexes;
use crate::collective;
use crate::config::{AtomicsChoice, Config, PathChoice, ThreadChoice};
use crate::error::{Error, ErrorKind, Result, fail};
use crate::group::Group;
use crate::memory::segment::{Memory, Segment};
use crate::memory::slab::Policy;
use crate::mpi::init::{self, ThreadLevel};
use crate::mpi::{Comm, CommHandle, Flavour, Window, p2p};
use crate::path::Path;
use crate::path::message::Messenger;
use crate::path::rma::TypeCache;
use crate::peer::{DIRTY_MESSAGE, DIRTY_RMA, Peer};
use crate::progress::ProgressThread;
use crate::topology::Topology;
use crate::wait::{Boot, Progress};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

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
    world: Arc<Group>,
    peers: Vec<Peer>,
    any_dirty: AtomicBool,
    messenger: Option<Messenger>,
    pub(crate) types: TypeCache,
    pub(crate) mutexes: Mutexes,
    groups: Mutex<Vec<Arc<Group>>>,
    level: ThreadLevel,
    ours: bool,
    stopped: AtomicBool,
    waiters: AtomicU32,
    polls: AtomicU32,
    spin: u32,
    thread: Mutex<Option<ProgressThread>>,
}

/// How many polls of a waiting rank without messages lie between two occasions
/// for MPI to make progress.
const POKE_EVERY: u32 = 64;

static CURRENT: AtomicPtr<Engine> = AtomicPtr::new(std::ptr::null_mut());
static OWNER: Mutex<Option<Arc<Engine>>> = Mutex::new(None);
/// World rank + 1 for messages of errors, also while starting and stopping.
static WORLD_RANK: AtomicUsize = AtomicUsize::new(0);

/// This process's rank, once it is known.
pub(crate) fn world_rank() -> Option<usize> {
    WORLD_RANK.load(Ordering::Relaxed).checked_sub(1)
}

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

fn start_log(config: &Config) {
    let level = std::env::var("ARMCI_VERBOSE")
        .is_ok_and(|v| !matches!(v.as_str(), "" | "0" | "n" | "no" | "f" | "false"));
    let filter = if level && config.log == Config::default().log { "info" } else { &config.log };
    // A host program, or an earlier start, may have installed a logger: theirs
    // then receives our records.
    let _ = env_logger::Builder::new().parse_filters(filter).format_timestamp(None).try_init();
}

/// How the job reaches memory: decided once, the same on all ranks.
struct Decision {
    policy: Policy,
    messages: bool,
    reason: String,
}

fn decide(config: &Config, topology: &Topology, world: &Comm) -> Result<Decision> {
    let one_node = topology.nodes() == 1;
    let (direct, remote) = match config.path {
        PathChoice::Direct if !one_node => fail!(
            Argument,
            "PORTOLAN_PATH=direct, but the ranks are on {} nodes that share no memory",
            topology.nodes()
        ),
        PathChoice::Direct => (true, None),
        PathChoice::Auto if one_node => (true, None),
        PathChoice::Auto => (true, Some(false)),
        PathChoice::Rma => (false, Some(true)),
        PathChoice::Message => (false, None),
    };
    let mpi_atomics = match config.atomics {
        AtomicsChoice::Native => false,
        AtomicsChoice::Auto => config.path == PathChoice::Rma,
        AtomicsChoice::Mpi if config.path == PathChoice::Message => {
            fail!(Argument, "PORTOLAN_ATOMICS=mpi needs MPI windows, which PORTOLAN_PATH=message excludes")
        }
        AtomicsChoice::Mpi => true,
    };
    let wanted = remote.is_some() || mpi_atomics;
    let forced = remote == Some(true) || config.atomics == AtomicsChoice::Mpi;
    let (mut windows, mut reason) = (false, String::from("all ranks share one node"));
    if config.path == PathChoice::Message {
        reason = "PORTOLAN_PATH=message".into();
    }
    let part = world.size() != job_size()?;
    if wanted && part && Flavour::built() == Flavour::OpenMpi {
        reason = "Open MPI's windows cannot be made by several parts of a job at a time".into();
        if topology.me() == 0 {
            log::warn!("messages are used instead of windows: {reason}");
        }
    } else if wanted {
        match probe_windows(world) {
            Ok(()) => {
                windows = true;
                reason = if forced {
                    "chosen by PORTOLAN_PATH or PORTOLAN_ATOMICS".into()
                } else {
                    "MPI's windows work between these nodes".into()
                };
            }
            Err(error) if forced => return Err(error),
            Err(error) => {
                reason = format!("MPI's windows do not work here ({})", error.detail());
                if topology.me() == 0 {
                    log::warn!("between nodes, messages are used: {reason}");
                }
            }
        }
    }
    Ok(Decision {
        policy: Policy {
            direct,
            windows,
            group_windows: Flavour::built() != Flavour::OpenMpi,
            mpi_atomics: mpi_atomics && windows,
            slab_bytes: config.slab_bytes,
            shm_dir: config.shm_dir.clone(),
        },
        messages: !one_node || !direct || mpi_atomics,
        reason,
    })
}

fn job_size() -> Result<usize> {
    // SAFETY: MPI_COMM_WORLD is live while MPI runs.
    unsafe { Comm::size_of(Comm::world_handle()) }
}

/// Tries a window of the whole world: creation, a put, a flush.
fn probe_windows(world: &Comm) -> Result<()> {
    let mut memory = vec![0u64; 64];
    let base = memory.as_mut_ptr().cast::<u8>();
    // SAFETY: `memory` outlives the window, which is freed below.
    let window = unsafe { Window::create(world, base, 512) };
    let verdict = window.as_ref().map(|_| ()).map_err(Clone::clone);
    if let Err(error) = collective::agree(world, &Boot, verdict) {
        // A window that exists on some ranks only cannot be freed collectively;
        // it goes with the process.
        std::mem::forget(memory);
        return Err(error);
    }
    let window = window?;
    let used = window.flush(world.rank());
    let freed = window.free();
    collective::agree(world, &Boot, used.and(freed))
}

impl Engine {
    /// Starts the engine over all ranks of `comm` (`None`: of the job).
    /// Collective.
    ///
    /// # Errors
    /// `State` where it runs already or MPI is not usable, `Argument` for a bad
    /// variable.
    ///
    /// # Safety
    /// `comm`, where given, must be a live communicator.
    pub unsafe fn start(comm: Option<CommHandle>) -> Result<Arc<Engine>> {
        let mut owner = OWNER.lock();
        if owner.is_some() {
            fail!(State, "the runtime runs already");
        }
        let config = Config::from_env()?;
        start_log(&config);
        let started = init::start()?;
        // SAFETY: MPI runs, and the caller vouches for `comm`.
        let world = unsafe { Comm::dup_of(comm.unwrap_or_else(Comm::world_handle)) }?;
        WORLD_RANK.store(world.rank() + 1, Ordering::Relaxed);
        let engine = Arc::new(Engine::build(config, started, world)?);
        engine.start_thread()?;
        init::at_finalize(host_finalizes)?;
        CURRENT.store(Arc::as_ptr(&engine).cast_mut(), Ordering::Release);
        *owner = Some(engine.clone());
        Ok(engine)
    }

    fn build(config: Config, started: init::Started, world: Comm) -> Result<Engine> {
        let gather = |c: &Comm, x: u64| collective::allgather(c, &Boot, &x);
        let topology = Arc::new(Topology::discover(&world, config.node_size, gather)?);
        let decision = decide(&config, &topology, &world)?;
        let messenger =
            if decision.messages { Some(Messenger::new(&world)?) } else { None };
        let ranks = world.size();
        let members = (0..ranks).collect();
        let world = Group::new(world, members, &topology, &Boot)?;
        if decision.policy.direct {
            world.set_up_board(&decision.policy.shm_dir, &Boot)?;
        }
        let on_node = topology.ranks_of(topology.my_node()).len() * topology.nodes()
            / topology.real_nodes().max(1);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Engine {
            memory: Memory::new(decision.policy, topology.clone()),
            remote_reason: decision.reason,
            peers: (0..ranks).map(|_| Peer::default()).collect(),
            any_dirty: AtomicBool::new(false),
            messenger,
            types: TypeCache::default(),
            mutexes: Mutexes::default(),
            groups: Mutex::new(vec![world.clone()]),
            world,
            level: started.level,
            ours: started.ours,
            stopped: AtomicBool::new(false),
            waiters: AtomicU32::new(0),
            polls: AtomicU32::new(0),
            // Polling longer is of use only with a core for every rank.
            spin: if on_node > cores { config.spin.min(20) } else { config.spin },
            thread: Mutex::new(None),
            topology,
            config,
        })
    }

    fn start_thread(self: &Arc<Engine>) -> Result<()> {
        let wanted = match self.config.progress_thread {
            ThreadChoice::Off => false,
            ThreadChoice::On => true,
            ThreadChoice::Auto => true,
        };
        if self.messenger.is_none() || !wanted || self.size() == 1 {
            return Ok(());
        }
        if self.level < ThreadLevel::Multiple {
            if self.rank() == 0 {
                log::warn!(
                    "MPI was initialised below MPI_THREAD_MULTIPLE, so there is no progress \
                     thread: a rank serves other nodes only inside calls of this library"
                );
            }
            return Ok(());
        }
        *self.thread.lock() = Some(ProgressThread::start(self)?);
        Ok(())
    }

    /// Stops the engine: completes everything, frees all segments and
    /// communicators, and finalises MPI if it was started here. Collective.
    pub fn stop() -> Result<()> {
        let Some(engine) = OWNER.lock().clone() else {
            return Err(not_running());
        };
        engine.close()?;
        init::forget_at_finalize()?;
        let ours = engine.ours;
        Engine::forget();
        drop(engine);
        if ours { init::finalize() } else { Ok(()) }
    }

    fn forget() {
        CURRENT.store(std::ptr::null_mut(), Ordering::Release);
        *OWNER.lock() = None;
    }

    fn close(&self) -> Result<()> {
        if self.stopped.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.wait_implicit()?;
        // Until every rank has fenced, others may still need us.
        self.barrier_of(&self.world)?;
        let groups = std::mem::take(&mut *self.groups.lock());
        for group in groups.iter().rev() {
            for segment in self.memory.segments_of(group) {
                self.memory.release(segment)?;
            }
            self.memory.close_group(group)?;
        }
        // Nobody asks for anything any more, but confirmations may be under way.
        self.barrier_of(&self.world)?;
        if let Some(thread) = self.thread.lock().take() {
            thread.stop();
        }
        self.drain_messages()?;
        for group in groups.iter().rev() {
            group.release_comm()?;
        }
        self.free_messenger()
    }

    /// Takes in what is under way before the communicators go.
    fn drain_messages(&self) -> Result<()> {
        let Some(messenger) = &self.messenger else {
            return Ok(());
        };
        let comm = self.world.comm()?;
        let mut barrier = comm.ibarrier()?;
        loop {
            let busy = messenger.poll(self)?;
            let passed = barrier.test()?;
            if passed && !busy && messenger.outstanding() == 0 {
                return Ok(());
            }
            if !busy {
                std::thread::yield_now();
            }
        }
    }

    fn free_messenger(&self) -> Result<()> {
        match &self.messenger {
            Some(messenger) => messenger.free(),
            None => Ok(()),
        }
    }

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

    pub(crate) fn mark_dirty(&self, rank: usize, bit: u8) {
        self.peers[rank].mark(bit);
        self.any_dirty.store(true, Ordering::Relaxed);
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

    /// Before an operation takes `path` to `target`: completes what went there
    /// by another one.
    #[inline]
    pub(crate) fn settle(&self, target: usize, path: Path) -> Result<()> {
        let dirty = self.peers[target].dirty();
        let own = match path {
            Path::Direct => 0,
            Path::Rma => DIRTY_RMA,
            Path::Message => DIRTY_MESSAGE,
        };
        if dirty & !own == 0 { Ok(()) } else { self.settle_others(target, dirty & !own) }
    }

    #[cold]
    fn settle_others(&self, target: usize, bits: u8) -> Result<()> {
        if bits & DIRTY_RMA != 0 {
            self.flush_windows(target)?;
        }
        if bits & DIRTY_MESSAGE != 0 {
            self.flush_messages(target)?;
        }
        Ok(())
    }

    fn flush_windows(&self, target: usize) -> Result<()> {
        let peer = &self.peers[target];
        let mut pending = peer.rma.lock();
        pending.flush()?;
        peer.clear(DIRTY_RMA);
        Ok(())
    }

    fn flush_messages(&self, target: usize) -> Result<()> {
        let messenger = self.messenger()?;
        let count = messenger.ask_confirmation(self, target)?;
        messenger.confirmed(self, target, count)?;
        let peer = &self.peers[target];
        let sent = peer.sent.lock();
        if sent.count == count {
            peer.clear(DIRTY_MESSAGE);
        }
        Ok(())
    }

    /// Returns when everything issued to `target` is done and visible there.
    #[inline]
    pub fn fence(&self, target: usize) -> Result<()> {
        self.check_rank(target)?;
        // Drains the stores of direct operations.
        std::sync::atomic::fence(Ordering::SeqCst);
        let dirty = self.peers[target].dirty();
        if dirty == 0 { Ok(()) } else { self.settle_others(target, dirty) }
    }

    /// [`Engine::fence`] for all targets.
    #[inline]
    pub fn fence_all(&self) -> Result<()> {
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.any_dirty.load(Ordering::Relaxed) { self.fence_dirty() } else { Ok(()) }
    }

    fn fence_dirty(&self) -> Result<()> {
        // Cleared first: what is issued meanwhile sets it again.
        self.any_dirty.store(false, Ordering::Relaxed);
        // All are asked before any is waited for.
        let mut asked = Vec::new();
        for (rank, peer) in self.peers.iter().enumerate() {
            if peer.dirty() & DIRTY_RMA != 0 {
                self.flush_windows(rank)?;
            }
            if peer.dirty() & DIRTY_MESSAGE != 0 {
                asked.push((rank, self.messenger()?.ask_confirmation(self, rank)?));
            }
        }
        for (rank, count) in asked {
            self.messenger()?.confirmed(self, rank, count)?;
            let peer = &self.peers[rank];
            if peer.sent.lock().count == count {
                peer.clear(DIRTY_MESSAGE);
            } else {
                self.any_dirty.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Fences everything and waits for all ranks of a group.
    pub fn barrier_of(&self, group: &Group) -> Result<()> {
        self.fence_all()?;
        group.barrier(self)
    }

    /// Allocates a segment. Collective over the group.
    pub fn allocate(&self, group: &Arc<Group>, bytes: usize) -> Result<Arc<Segment>> {
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
        if !group.is_freed() || group.live_segments.load(Ordering::Relaxed) > 0 {
            return Ok(());
        }
        self.memory.close_group(group)?;
        self.groups.lock().retain(|g| !Arc::ptr_eq(g, group));
        group.release_comm()
    }

    /// Waits for all operations without a handle to any target.
    pub fn wait_implicit(&self) -> Result<()> {
        for rank in 0..self.peers.len() {
            self.wait_implicit_to(rank)?;
        }
        Ok(())
    }

    /// Waits for all operations without a handle to `target`.
    pub fn wait_implicit_to(&self, target: usize) -> Result<()> {
        self.check_rank(target)?;
        let tally = &self.peers[target].implicit;
        crate::wait::until(
            self,
            &|| format!("{} operations without handle to rank {target}", tally.outstanding()),
            || tally.check(),
        )
    }

    pub(crate) fn waiters(&self) -> u32 {
        self.waiters.load(Ordering::Relaxed)
    }
}

impl Progress for Engine {
    #[inline]
    fn poll(&self) -> Result<bool> {
        match &self.messenger {
            Some(messenger) => messenger.poll(self),
            None => {
                // The host's own messages may need this rank: a call of ours is to
                // make progress for them as MPI's blocking calls do.
                if self.polls.fetch_add(1, Ordering::Relaxed) % POKE_EVERY == POKE_EVERY - 1 {
                    p2p::poke(&*self.world.comm()?)?;
                }
                Ok(false)
            }
        }
    }
    fn nap_on(&self, word: &AtomicU32, value: u32, nap: Duration) {
        // Without messages of ours nothing else needs this rank, but the host's
        // own may.
        let nap = if self.has_messages() {
            nap
        } else {
            self.polls.store(POKE_EVERY - 1, Ordering::Relaxed);
            Duration::from_millis(1)
        };
        crate::futex::wait(word, value, nap);
    }
    fn spin(&self) -> u32 {
        self.spin
    }
    fn watchdog(&self) -> Duration {
        self.config.watchdog
    }
    fn waiting(&self, begins: bool) {
        if begins {
            self.waiters.fetch_add(1, Ordering::Relaxed);
        } else {
            self.waiters.fetch_sub(1, Ordering::Relaxed);
        }
    }
    fn report(&self, what: &str, waited: Duration) {
        let dirty: Vec<usize> =
            (0..self.size()).filter(|&r| self.peers[r].dirty() != 0).collect();
        log::error!(
            "[{}] has waited {:.1} s for {what}; unfinished towards ranks {dirty:?}, {} MPI \
             requests outstanding",
            self.rank(),
            waited.as_secs_f64(),
            self.messenger.as_ref().map_or(0, Messenger::outstanding)
        );
    }
}

/// The host calls MPI_Finalize while the engine runs: close it, quietly usable
/// for a later `stop`.
fn host_finalizes() {
    let Some(engine) = OWNER.lock().clone() else {
        return;
    };
    if let Err(error) = engine.close() {
        log::error!("closing before MPI_Finalize: {error}");
    }
    Engine::forget();
}
