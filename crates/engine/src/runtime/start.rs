//! Start and stop of the engine.
//!
//! The start creates two communicators and exchanges the data of all ranks once
//! ([`super::startup_record`]). [`super::path_selection`] chooses the paths to memory. The ranks of
//! a node then meet in shared memory.
//!
//! Invariant: the start does not wait inside MPI, where many ranks that share cores delay each
//! other, except for the creation of windows, if they may be used.

use super::progress_thread::ProgressThread;
use super::startup_record::{self, StartupRecord};
use super::{
    CURRENT, Engine, OWNER, admission, host, log_sink, oversubscription, path_selection, trace_lock,
};
use crate::am::shm_transport::ShmTransport;
use crate::am::{self, Am, Owner};
use crate::collective::group::Group;
use crate::collective::{self, Kind, Sharing, Wire};
use crate::core::{self, Core};
use crate::memory::arena::Policy;
use crate::memory::segment::Memory;
use crate::mpi::init::{self, ThreadLevel};
use crate::mpi::{Comm, CommHandle, Flavour, exit_guard};
use crate::ops::Ops;
use crate::path::Paths;
use crate::path::two_sided::TwoSided;
use crate::topology::Topology;
use parking_lot::{Mutex, RwLock};
use portolan_base::config::{self, AmChoice, Config, SplitChoice, agreed};
use portolan_base::error::{Result, fail, unless_forked};
use portolan_base::process;
use portolan_base::trace::{Call, CallInfo};
use portolan_base::wait::Boot;
use portolan_base::wait::watchdog::{self, Watchdog};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

/// # Safety
/// `comm` must be live, or null.
unsafe fn check_comm(comm: CommHandle) -> Result<()> {
    if comm == Comm::null_handle() {
        fail!(Argument, "the communicator is MPI_COMM_NULL");
    }
    // SAFETY: the caller guarantees that a communicator other than null is live.
    if unsafe { Comm::is_inter(comm) }? {
        fail!(Argument, "the communicator is an intercommunicator; an intracommunicator is needed");
    }
    Ok(())
}

static STARTS: AtomicUsize = AtomicUsize::new(0);

impl Engine {
    /// Starts the engine over all ranks of `comm`, or of the job for `None`. Collective. Fails as
    /// [`Engine::over`], with `State` if the engine already runs or MPI is not usable, and with
    /// `Argument` for an invalid variable or a communicator that is null or an intercommunicator.
    ///
    /// # Safety
    /// `comm`, if given, must be a live communicator.
    pub unsafe fn start(comm: Option<CommHandle>) -> Result<Arc<Engine>> {
        unless_forked()?;
        let _one = admission::begin();
        let mut owner = OWNER.lock();
        if owner.is_some() {
            fail!(State, "the runtime is already running");
        }
        let mut config = Config::from_env()?;
        config.trace_start = STARTS.fetch_add(1, Ordering::Relaxed);
        if config.trace_start > 0 && !config.trace.is_empty() {
            config.trace = format!("{}/start-{}", config.trace, config.trace_start + 1);
        }
        log_sink::start(&config);
        watchdog::configure(&config);
        let started = init::start(config.launcher_check)?;
        let comm = comm.unwrap_or_else(Comm::world_handle);
        // SAFETY: MPI runs, and the caller guarantees that `comm` is live.
        unsafe { check_comm(comm) }?;
        let watchdog = Watchdog::start(&config);
        // SAFETY: MPI runs, and the caller guarantees that `comm` is live.
        let world = unsafe { collective::dup_of(comm) }?;
        process::set_world_rank(world.rank());
        if world.rank() == 0 {
            config::warn_of_unknown();
        }
        let engine = Engine::over(config, started, world)?;
        engine.log_start();
        *engine.watchdog.lock() = watchdog;
        init::at_finalize(host_will_finalize, host_finalizes)?;
        exit_guard::watch();
        process::watch_forks(super::forked);
        CURRENT.store(Arc::as_ptr(&engine).cast_mut(), Ordering::Release);
        *owner = Some(engine.clone());
        engine.open_host();
        process::set_running(true);
        process::set_pending(super::pending);
        admission::open();
        Ok(engine)
    }

    fn log_start(&self) {
        if self.rank() == 0 {
            let (version, mpi) = (env!("CARGO_PKG_VERSION"), Flavour::name_of_built());
            let (ranks, nodes) = (self.size(), self.topology.nodes());
            log::info!("Portolan {version} for {mpi}; ranks: {ranks}, nodes: {nodes}");
        }
    }

    /// Checks that the engine runs over the ranks of `comm`, in the same order. Local. Fails with
    /// `Argument` if `comm` is null or an intercommunicator, and with `State` if its ranks differ.
    ///
    /// # Safety
    /// `comm` must be live, or null.
    pub unsafe fn check_same(&self, comm: CommHandle) -> Result<()> {
        // SAFETY: the caller guarantees a live or null `comm`, and `check_comm` rejects null.
        let same = unsafe {
            check_comm(comm)?;
            self.world().comm()?.has_ranks_of(comm)?
        };
        if !same {
            fail!(
                State,
                "the runtime is already running, over {} ranks that are not those of this communicator \
                 in this order; end it first, or start it over that communicator",
                self.size()
            );
        }
        Ok(())
    }

    /// Creates an engine over `world`, which it then owns. Collective. A process may have several
    /// engines; [`Engine::start`] makes one of them the process's engine. [`Engine::close`] ends
    /// it. Fails with `Argument` for invalid settings, and with `Mpi` or `Memory`.
    pub fn over(config: Config, started: init::Started, world: Comm) -> Result<Arc<Engine>> {
        let engine = Arc::new(Engine::build(config, started, world)?);
        engine.connect();
        engine.start_thread()?;
        engine.begin_trace()?;
        Ok(engine)
    }

    fn build(mut config: Config, started: init::Started, world: Comm) -> Result<Engine> {
        if config.chunk_bytes == 0 {
            config.chunk_bytes = path_selection::chunk_bytes();
        }
        let wire = Arc::new(Wire::new(collective::dup(&world)?));
        let may_wait = host::may_take_part(&config, &world)?;
        let (trace_lock, in_use) = trace_lock::of(&config, world.rank());
        let all = wire.introduce(&StartupRecord::own(&config, may_wait, in_use))?;
        agreed::compare(all.iter().map(|one| &one.settings))?;
        if all[0].traces_in_use != 0 {
            fail!(
                State,
                "PORTOLAN_TRACE: another job that is still running writes its traces to {}; name \
                 another directory, or wait until that job has ended",
                trace_lock::directory(&config).display()
            );
        }
        wire.set_secret(all[0].secret);
        let labels = startup_record::labels(&all);
        let addresses: Vec<_> = all.iter().map(|one| one.addresses).collect();
        watchdog::hosts::configure(world.rank(), &addresses, |rank| labels[rank]);
        let topology = Arc::new(Topology::from_labels(world.rank(), &labels, config.node_size));
        if config.split == SplitChoice::Auto {
            config.split = path_selection::split(&topology);
        }
        let any_crowded = oversubscription::is_any_crowded(&all, &topology);
        let decision = path_selection::decide(&config, &topology, &world)?;
        let two_sided = if decision.messages { Some(TwoSided::new(&world)?) } else { None };
        let crowded = oversubscription::is_crowded(topology.me(), &all, &topology);
        let host_waits = host::takes_part(two_sided.is_some(), any_crowded, &all);
        let Policy { direct, shm_dir: dir, .. } = &decision.policy;
        let sharing = Sharing { topology: &topology, direct: *direct, dir, crowded };
        let world = Group::world(world, &wire, all[0].key, sharing, &Boot)?;
        drop(all);
        let core = Core::new(core::Parts {
            memory: Memory::new(decision.policy, topology.clone()),
            world,
            level: started.level,
            messages: two_sided.is_some(),
            crowded,
            topology,
            config,
        });
        Ok(Engine {
            layers: Am::new(Ops::new(Paths::new(core, two_sided))),
            remote_reason: decision.reason,
            ours: started.ours,
            stopped: AtomicBool::new(false),
            thread: Mutex::new(None),
            started: Instant::now(),
            counted_since: Mutex::new(Instant::now()),
            watchdog: Mutex::new(None),
            trace_lock: Mutex::new(trace_lock),
            host_waits,
            host_open: RwLock::new(true),
        })
    }

    fn connect(self: &Arc<Engine>) {
        let owner: Weak<dyn Owner> = Arc::<Engine>::downgrade(self);
        // SAFETY: all are parts of the engine, which does not move. None uses another in its drop.
        unsafe { Am::connect(self, owner) };
    }

    /// Has no effect if active messages are started. Collective.
    pub fn start_am(&self) -> Result<()> {
        if self.started().is_some() {
            return Ok(());
        }
        collective::scope(Kind::StartMessages, 0, || self.begin_am())
    }

    fn begin_am(&self) -> Result<()> {
        let node = match self.config.am {
            AmChoice::Mpi => None,
            _ => ShmTransport::create(self.world(), &self.topology, &self.config, self.core())?,
        };
        if node.is_none() && self.config.am == AmChoice::Node {
            fail!(Memory, "PORTOLAN_AM=node, but no shared memory is available for rings");
        }
        if node.is_none() && !self.has_messages() && self.size() > 1 {
            fail!(
                Memory,
                "no shared memory for active messages in {}; set PORTOLAN_AM=mpi",
                self.config.shm_dir
            );
        }
        let ranks = self.topology.ranks_of(self.topology.my_node()).len();
        self.begin(am::AmState::new(node, ranks, self.size()))?;
        self.register_accesses()?;
        if self.has_thread() || !self.config.progress_thread {
            return Ok(());
        }
        if self.size() > 1 && self.may_use_threads() {
            self.run_thread()?;
        }
        Ok(())
    }

    fn start_thread(&self) -> Result<()> {
        if !self.has_messages() || !self.config.progress_thread || self.size() == 1 {
            return Ok(());
        }
        if self.thread_level() < ThreadLevel::Multiple {
            if self.rank() == 0 {
                log::warn!(
                    "MPI was initialised below MPI_THREAD_MULTIPLE, so there is no progress \
                     thread: a rank serves other nodes only inside calls of this library"
                );
            }
            return Ok(());
        }
        self.run_thread()
    }

    fn run_thread(&self) -> Result<()> {
        *self.thread.lock() = Some(ProgressThread::start(self)?);
        self.set_watched(true);
        Ok(())
    }

    /// Waits for calls of function shipping, completes all operations, frees all segments and
    /// communicators, and finalises MPI if the library must do so. Collective. Fails as
    /// [`Engine::close`], and with `State` if no engine is running, in a handler, inside a call of
    /// function shipping, or if another thread starts or stops the engine.
    pub fn stop() -> Result<()> {
        if Engine::stop_within_mpi()? { init::finalize() } else { Ok(()) }
    }

    /// Like [`Engine::stop`], but does not finalise MPI, so that an engine can be started again.
    /// Returns whether the library must finalise MPI. Collective.
    pub fn stop_within_mpi() -> Result<bool> {
        let _one = admission::begin_to_end()?;
        let engine = super::current_arc()?;
        admission::shut(&engine)?;
        engine.close()?;
        init::forget_at_finalize()?;
        let ours = engine.ours;
        Engine::forget();
        drop(engine);
        Ok(ours)
    }

    fn forget() {
        process::set_running(false);
        process::forget_functions();
        CURRENT.store(std::ptr::null_mut(), Ordering::Release);
        *OWNER.lock() = None;
        admission::gone();
    }

    /// Completes all operations, frees all segments and communicators, and ends the engine's
    /// threads. Collective. If it fails before all ranks have completed their operations, it can be
    /// repeated. Otherwise a second call does nothing. Fails as a flush hook or MPI.
    pub fn close(&self) -> Result<()> {
        if self.stopped.load(Ordering::Acquire) {
            return Ok(());
        }
        collective::scope(Kind::Finalize, 0, || {
            process::ask_keeps_mapped();
            self.complete_all()?;
            // From here on, a second call could not repeat what the first one has done.
            self.stopped.store(true, Ordering::Release);
            self.end_all()
        })
    }

    /// Other ranks may need this rank until every rank has fenced. Recorded as one barrier.
    fn complete_all(&self) -> Result<()> {
        self.observed(
            || CallInfo::new(Call::Barrier),
            || {
                self.wait_implicit()?;
                if self.started().is_some() {
                    self.quiesce()?;
                }
                self.barrier_of(self.world())
            },
        )
    }

    fn end_all(&self) -> Result<()> {
        let _own = self.observer().exclude_meetings();
        self.end_trace()?;
        self.write_statistics()?;
        let groups = std::mem::take(&mut *self.groups().lock());
        for group in groups.iter().rev() {
            for segment in self.memory.segments_of(group) {
                self.memory.release(segment)?;
            }
            self.memory.close_group(group)?;
        }
        // Now no rank sends requests, but credit acks may be in flight.
        self.barrier_of(self.world())?;
        self.stop_threads();
        self.shut_host();
        self.drain_messages()?;
        self.forget_types();
        for group in groups.iter().rev() {
            group.release_comm()?;
        }
        self.world().free_wire()?;
        let freed = self.free();
        self.set_closed();
        self.observer().close();
        drop(self.trace_lock.lock().take());
        drop(self.watchdog.lock().take());
        freed
    }

    /// After the queued completion handlers. From now on, waiting threads do the work.
    fn stop_threads(&self) {
        self.end_threads();
        if let Some(state) = self.started() {
            state.stop();
        }
        if let Some(thread) = self.thread.lock().take() {
            self.set_watched(false);
            thread.stop(self);
        }
    }
}

/// Runs before `MPI_Finalize` of the program, and ends the engine's threads. From the beginning of
/// `MPI_Finalize`, MPICH assumes a single thread: a thread that is then inside MPI leaves without
/// releasing MPI's locks, and `MPI_Finalize` aborts.
fn host_will_finalize() {
    let Some(engine) = OWNER.lock().clone() else {
        return;
    };
    let shut = admission::check_end_by_host()
        .and_then(|()| admission::begin_to_end())
        .and_then(|_one| admission::shut(&engine));
    if let Err(error) = shut {
        // MPI would end under a running call.
        error.end_job_in("MPI_Finalize is called while the runtime is in use");
    }
    engine.stop_threads();
}

/// Interfaces that the program finalises after MPI then find no engine.
fn host_finalizes() {
    let Ok(engine) = super::current_arc() else {
        return;
    };
    // Without the crate `portolan-interpose`, nothing has called this before `MPI_Finalize`.
    host_will_finalize();
    if let Err(error) = engine.close() {
        log::error!("closing before MPI_Finalize: {error:#}");
    }
    Engine::forget();
}
