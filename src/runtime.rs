//! The guard of the running library.

use crate::in_call::{InCall, public};
use crate::one_thread::OneThread;
use crate::{Group, TransferPath, panic, unfreed};
use mpi::ffi::MPI_Comm;
use mpi::traits::Communicator;
#[cfg(feature = "array")]
use parking_lot::Mutex;
use portolan_base::error::Result;
use portolan_base::process;
use portolan_base::trace::{Interface, interface};
use portolan_engine::mpi::init::{self, ThreadLevel};
use portolan_engine::mpi::{Flavour, launcher};
use portolan_engine::runtime::{self, Engine, admission};
use std::io::IsTerminal;
use std::sync::Arc;

/// The guard of the running library. Groups, segments and mutexes borrow from it.
///
/// A process has at most one. Dropping it finalises the library, which is collective: see
/// [`Runtime::finalize`].
///
/// # Threads
/// The runtime and everything that borrows from it stay on the thread that created them (they are
/// neither `Send` nor `Sync`): the thread that initialised MPI must finalise it, ranks must make
/// collective calls in the same order, and below `MPI_THREAD_MULTIPLE` no other thread may call
/// MPI. Other threads can compute on buffers and on [`Local::as_slice`](crate::transfer::Local::as_slice).
///
/// ```compile_fail,E0277
/// fn needs_send<T: Send>() {}
/// needs_send::<portolan::Segment<'static, f64>>();
/// ```
#[derive(Debug)]
#[must_use = "dropping the runtime finalises it, which is collective"]
pub struct Runtime {
    _thread: OneThread,
    engine: Arc<Engine>,
    on_panic: OnPanic,
    finalized: bool,
    /// The number of barriers of each group, by the group's key. Distributed arrays use them to
    /// detect races.
    #[cfg(feature = "array")]
    barriers: Mutex<std::collections::HashMap<u64, u64>>,
}

/// The effect of a panic on this rank while the runtime is alive; see [`RuntimeBuilder::on_panic`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnPanic {
    /// The panic aborts the whole job.
    #[default]
    Abort,
    /// The panic unwinds or aborts the process, as in a program without this crate.
    Unwind,
}

/// The start options of the runtime. Created by [`Runtime::builder`].
#[derive(Debug, Clone)]
#[must_use = "the runtime starts when `init` or `init_over` is called"]
pub struct RuntimeBuilder {
    on_panic: OnPanic,
    pub(crate) hooks: Hooks,
}

/// Functions of a binding to another language; see [`crate::binding`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Hooks {
    pub interrupted: Option<fn() -> bool>,
    pub caller: Option<fn() -> Option<String>>,
    pub keeps_mapped: Option<fn() -> bool>,
}

impl RuntimeBuilder {
    /// Sets the effect of a panic on this rank. The default is [`OnPanic::Abort`].
    ///
    /// With [`OnPanic::Abort`], a panic hook is active while the runtime is alive. It prints the
    /// rank and the message, runs the previously installed hook, and calls `MPI_Abort`. The hook
    /// sees every panic of the process, including those that `catch_unwind` would catch, so a
    /// program that recovers from panics must disable it. Without the hook, a panic that unwinds
    /// past the runtime leaves it unfinalised: the process must then exit, so that the launcher
    /// ends the other ranks.
    pub fn on_panic(mut self, effect: OnPanic) -> RuntimeBuilder {
        self.on_panic = effect;
        self
    }

    /// Starts the runtime over all ranks of the job. Collective.
    ///
    /// # Errors
    /// Fails as [`Runtime::init`] does.
    pub fn init(self) -> Result<Runtime> {
        let alone = !launcher::is_there() && self.hooks.caller.is_none();
        // SAFETY: no communicator is passed.
        let engine = unsafe { Engine::start(None) }.in_call("Runtime::init")?;
        if alone && engine.size() == 1 {
            suggest_launcher();
        }
        Ok(self.guard(engine))
    }

    /// Starts the runtime over the ranks of a communicator of the crate [`mpi`], which become the
    /// world. Collective over the communicator.
    ///
    /// # Errors
    /// Fails as [`Runtime::init`] does, and with `Argument` for an intercommunicator.
    pub fn init_over(self, comm: &impl Communicator) -> Result<Runtime> {
        // SAFETY: communicators of `mpi` are live while they are borrowed, and the engine uses a
        // duplicate. It rejects intercommunicators, and starts only if MPI has not been finalised.
        unsafe { self.init_over_raw(comm.as_raw()) }
    }

    /// Starts the runtime over the ranks of an MPI communicator, as [`RuntimeBuilder::init_over`]
    /// does, for programs that call MPI's C interface.
    ///
    /// # Errors
    /// Fails as [`RuntimeBuilder::init_over`] does.
    ///
    /// # Safety
    /// MPI must be initialised, and `comm` must be a live communicator.
    pub unsafe fn init_over_raw(self, comm: MPI_Comm) -> Result<Runtime> {
        // SAFETY: by contract, MPI is initialised and `comm` is live.
        let engine = unsafe { Engine::start(Some(comm)) }.in_call("Runtime::init_over")?;
        Ok(self.guard(engine))
    }

    fn guard(self, engine: Arc<Engine>) -> Runtime {
        if let Some(interrupted) = self.hooks.interrupted {
            process::set_interrupted(interrupted);
        }
        if let Some(caller) = self.hooks.caller {
            process::set_caller(caller);
        }
        if let Some(keeps) = self.hooks.keeps_mapped {
            process::set_keeps_mapped(keeps);
        }
        if self.on_panic == OnPanic::Abort {
            panic::arm();
        }
        interface::set_default(Interface::Rust);
        admission::set_runtime(true);
        let mut runtime = Runtime::over(engine);
        (runtime.on_panic, runtime.finalized) = (self.on_panic, false);
        runtime
    }
}

/// Says how a program is started as several ranks: as a warning to a terminal. The output of a
/// script contains it only if `PORTOLAN_LOG` asks for information.
fn suggest_launcher() {
    let terminal = std::io::stderr().is_terminal();
    let program = std::env::args().next().unwrap_or_default();
    log::log!(
        if terminal { log::Level::Warn } else { log::Level::Info },
        "no launcher has started this program, so it runs as one rank; for four, run `mpiexec -n 4 \
         {program}` with the mpiexec of {}, or `mpirun.sh -n 4 {program}` of Portolan's sources",
        Flavour::name_of_built()
    );
}

impl Runtime {
    /// Starts the runtime over all ranks of the job. Initialises MPI, or adopts it if the program
    /// has already initialised it. Collective.
    ///
    /// # Errors
    /// Returns `State` if a runtime is already running, MPI cannot be used, or another job writes
    /// its traces to the directory in `PORTOLAN_TRACE`. Returns `Argument` if an environment
    /// variable is invalid or differs between ranks, `Memory` if memory runs out, or `Mpi` if a
    /// call of MPI fails.
    pub fn init() -> Result<Runtime> {
        Runtime::builder().init()
    }

    /// Starts the runtime over the ranks of a communicator of the crate [`mpi`], which become the
    /// world. The program may free the communicator afterwards. It drops the runtime before the
    /// `Universe` of `mpi`, which finalises MPI. Collective over the communicator.
    ///
    /// ```
    /// use portolan::Runtime;
    /// use portolan::mpi::topology::{Color, Communicator};
    ///
    /// fn main() -> portolan::Result<()> {
    ///     let universe = portolan::mpi::initialize().expect("MPI starts once");
    ///     let world = universe.world();
    ///     let half = world.split_by_color(Color::with_value(world.rank() % 2)).expect("a color");
    ///     let rt = Runtime::init_over(&half)?; // the even ranks, and the odd ranks
    ///     println!("{} of {}", rt.rank(), rt.size());
    ///     rt.finalize()
    /// }
    /// ```
    ///
    /// [`RuntimeBuilder::init_over_raw`] takes a handle of MPI's C interface.
    ///
    /// # Errors
    /// Fails as [`RuntimeBuilder::init_over`] does.
    pub fn init_over(comm: &impl Communicator) -> Result<Runtime> {
        Runtime::builder().init_over(comm)
    }

    /// Returns a builder that starts the runtime with non-default options.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder { on_panic: OnPanic::default(), hooks: Hooks::default() }
    }

    /// Returns whether the runtime of this process runs: it has started, and neither the program
    /// nor its `MPI_Finalize` has ended it.
    pub fn is_running() -> bool {
        process::is_running()
    }

    /// Ends all ranks of the job with an exit code, or with 1 if the code is 0. Can be called at
    /// any time. It ends only the calling process in a forked child, and while MPI does not run.
    pub fn abort(code: i32) -> ! {
        unfreed::forget();
        init::abort(code)
    }

    /// Completes all operations, frees everything that was not freed, and finalises MPI if the
    /// runtime initialised it. Collective over all ranks.
    ///
    /// Dropping the runtime does the same, but logs an error instead of returning it. A function
    /// that returns early with an error on one rank drops its runtime there and waits for the other
    /// ranks, so use [`run`](super::run) if errors may differ between ranks. While a panic unwinds,
    /// the destructor does nothing.
    ///
    /// Objects that borrow from the runtime cannot be used afterwards:
    ///
    /// ```compile_fail,E0505
    /// fn after(rt: portolan::Runtime) -> portolan::Result<()> {
    ///     let world = rt.world();
    ///     rt.finalize()?;
    ///     world.barrier()
    /// }
    /// ```
    ///
    /// # Errors
    /// Returns `State` if the program has already finalised MPI, or `Mpi` if the operations cannot
    /// be completed.
    #[track_caller]
    pub fn finalize(mut self) -> Result<()> {
        self.finalized = true;
        unfreed::warn();
        public("Runtime::finalize", || self.end())
    }

    pub(crate) fn end(&self) -> Result<()> {
        let result = Engine::stop();
        self.release();
        result
    }

    /// Ends what the process does only while it has a runtime.
    fn release(&self) {
        if self.on_panic == OnPanic::Abort {
            panic::disarm();
        }
        admission::set_runtime(false);
    }

    /// Returns a `Runtime` over an engine that other code started and will stop.
    pub(crate) fn over(engine: Arc<Engine>) -> Runtime {
        Runtime {
            _thread: OneThread::default(),
            engine,
            on_panic: OnPanic::Unwind,
            finalized: true,
            #[cfg(feature = "array")]
            barriers: Default::default(),
        }
    }

    /// Counts a barrier of a group, if race checks are enabled.
    #[cfg(feature = "array")]
    pub(crate) fn count_barrier(&self, group: &Arc<portolan_engine::collective::group::Group>) {
        if self.engine.config.check_races {
            *self.barriers.lock().entry(group.key()).or_default() += 1;
        }
    }

    /// Makes the number of counted barriers equal on all ranks, and larger than before. Collective.
    #[cfg(feature = "array")]
    pub(crate) fn level_barriers(&self, group: &crate::Group<'_>) -> Result<()> {
        if self.engine.config.check_races {
            let own = self.barriers.lock().get(&group.key()).copied().unwrap_or_default();
            let most = group.all_reduce_value(own, crate::reduce::Max)?;
            self.barriers.lock().insert(group.key(), most + 1);
        }
        Ok(())
    }

    #[cfg(feature = "array")]
    pub(crate) fn barriers(&self, group: &Arc<portolan_engine::collective::group::Group>) -> u64 {
        let counts = self.barriers.lock();
        let of = |g: &Arc<portolan_engine::collective::group::Group>| {
            counts.get(&g.key()).copied().unwrap_or_default()
        };
        let world = self.engine.world();
        of(group) + if Arc::ptr_eq(group, world) { 0 } else { of(world) }
    }

    #[inline]
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns the calling rank, counted from 0.
    #[inline]
    pub fn rank(&self) -> usize {
        self.engine.rank()
    }

    /// Returns the number of ranks.
    #[inline]
    pub fn size(&self) -> usize {
        self.engine.size()
    }

    /// Returns the group of all ranks.
    pub fn world(&self) -> Group<'_> {
        Group::wrap(self, self.engine.world().clone())
    }

    /// Returns the number of the node of this rank. Ranks of one node access each other's memory by
    /// load and store, unless `PORTOLAN_PATH` chooses another path ([`Runtime::path_to`]).
    pub fn node(&self) -> usize {
        self.engine.topology.my_node()
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.engine.topology.nodes()
    }

    /// Returns the ranks of this node, in ascending order.
    pub fn node_ranks(&self) -> &[usize] {
        self.engine.topology.ranks_of(self.node())
    }

    /// Returns whether `rank` is on the same node as this rank.
    ///
    /// # Errors
    /// Returns `Rank` if `rank` is outside the job.
    pub fn same_node(&self, rank: usize) -> Result<bool> {
        self.engine.check_rank(rank).in_call("Runtime::same_node")?;
        Ok(self.engine.topology.same_node(self.rank(), rank))
    }

    /// Returns the path of puts and gets to `rank`.
    ///
    /// # Errors
    /// Returns `Rank` if `rank` is outside the job.
    pub fn path_to(&self, rank: usize) -> Result<TransferPath> {
        self.engine.check_rank(rank).in_call("Runtime::path_to")?;
        Ok(TransferPath::of(self.engine.path_between(self.rank(), rank)))
    }

    /// Returns the thread level of MPI.
    pub fn thread_level(&self) -> ThreadLevel {
        self.engine.thread_level()
    }

    /// Returns whether a progress thread serves other ranks while this rank computes. If all ranks
    /// share a node, transfers need none. It then starts with the first messages, composer or RPC
    /// class over MPI.
    pub fn has_progress_thread(&self) -> bool {
        self.engine.has_thread()
    }

    /// Completes all operations that this rank has issued to `rank` (a world rank). On return they
    /// are visible at the target.
    ///
    /// # Errors
    /// Returns `Rank` if `rank` is outside the job, or `Mpi` if the operations cannot be completed.
    #[track_caller]
    pub fn fence(&self, rank: usize) -> Result<()> {
        public("Runtime::fence", || self.engine.fence(rank))
    }

    /// Completes all operations that this rank has issued to any rank, like [`Runtime::fence`].
    ///
    /// # Errors
    /// Returns `Mpi` if the operations cannot be completed.
    #[track_caller]
    pub fn fence_all(&self) -> Result<()> {
        public("Runtime::fence_all", || self.engine.fence_all())
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let current = runtime::current_arc();
        let ours = current.as_ref().is_ok_and(|now| Arc::ptr_eq(now, &self.engine));
        if self.finalized || !ours {
            if !self.finalized && current.is_err() {
                self.release(); // the program has finalised MPI, which stopped the engine
            }
            return;
        }
        if std::thread::panicking() {
            log::error!(
                "a panic unwinds past the runtime, which is not finalised: the other ranks may \
                 be waiting for this one"
            );
            return;
        }
        if let Err(error) = self.end() {
            log::error!("{}", error.in_call("Runtime::drop"));
        }
    }
}
