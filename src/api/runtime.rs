//! The guard of the running library.

use super::in_call::{InCall, public};
use super::{Group, panic, unfreed};
use crate::error::Result;
use crate::mpi::CommHandle;
use crate::mpi::init::ThreadLevel;
use crate::path::Path;
use crate::runtime::{self, Engine, admission};
use crate::trace::{Face, face};
use std::marker::PhantomData;
use std::sync::Arc;

/// The running library; groups, segments and mutexes borrow from it.
///
/// There is one at a time in a process. Dropping it finalises the library,
/// which is collective: see [`Runtime::finalize`].
///
/// # Threads
/// The runtime and all that borrows from it stay on the thread that made them
/// (neither `Send` nor `Sync`), for three reasons. MPI wants to be finalised by
/// the thread that initialised it. Collective calls must come in the same order
/// on all ranks, which threads that share a group could not promise. And where
/// the program itself initialised MPI below `MPI_THREAD_MULTIPLE`, no other
/// thread may call it at all. Other threads compute on buffers and on
/// [`Local::as_slice`](super::Local::as_slice).
///
/// ```compile_fail,E0277
/// fn needs_send<T: Send>() {}
/// needs_send::<portolan::Segment<'static, f64>>();
/// ```
#[derive(Debug)]
pub struct Runtime {
    engine: Arc<Engine>,
    abort_on_panic: bool,
    finalized: bool,
    /// Barriers by the group's number, where distributed arrays look for races.
    #[cfg(feature = "array")]
    barriers: std::cell::RefCell<std::collections::HashMap<usize, u64>>,
    _one_thread: PhantomData<*const ()>,
}

/// How to start the runtime; made by [`Runtime::builder`].
#[derive(Debug, Clone)]
pub struct Builder {
    abort_on_panic: bool,
}

impl Builder {
    /// Whether a panic on this rank aborts the whole job; on by default.
    ///
    /// While the runtime lives, a panic hook then prints the rank and the message,
    /// runs the hook that was installed before, and calls `MPI_Abort`. It sees
    /// every panic of the process, also one that `catch_unwind` would stop, so a
    /// program that recovers from panics switches it off. A panic that then
    /// unwinds past the runtime leaves it unfinalised: the process must end, so
    /// that the launcher ends the other ranks.
    pub fn abort_on_panic(mut self, yes: bool) -> Builder {
        self.abort_on_panic = yes;
        self
    }

    /// Starts the runtime over all ranks of the job. Collective.
    ///
    /// # Errors
    /// As for [`Runtime::init`].
    pub fn init(self) -> Result<Runtime> {
        // SAFETY: no communicator is passed.
        let engine = unsafe { Engine::start(None) }.in_call("Runtime::init")?;
        Ok(self.guard(engine))
    }

    /// Starts the runtime over the ranks of an MPI communicator, which are the
    /// world then. Collective over it.
    ///
    /// # Errors
    /// As for [`Runtime::init`].
    ///
    /// # Safety
    /// MPI must be initialised and `comm` be a live intracommunicator.
    pub unsafe fn init_over(self, comm: CommHandle) -> Result<Runtime> {
        // SAFETY: passed on from the caller.
        let engine = unsafe { Engine::start(Some(comm)) }.in_call("Runtime::init_over")?;
        Ok(self.guard(engine))
    }

    fn guard(self, engine: Arc<Engine>) -> Runtime {
        if self.abort_on_panic {
            panic::arm();
        }
        face::set_default(Face::Rust);
        admission::set_runtime(true);
        let mut runtime = Runtime::over(engine);
        (runtime.abort_on_panic, runtime.finalized) = (self.abort_on_panic, false);
        runtime
    }
}

impl Runtime {
    /// Starts the runtime over all ranks of the job: initialises MPI, or adopts
    /// it where the program has done so. Collective.
    ///
    /// # Errors
    /// `State` where a runtime runs already or MPI cannot be used, `Argument`
    /// where an environment variable does not parse.
    pub fn init() -> Result<Runtime> {
        Runtime::builder().init()
    }

    /// Starts the runtime over the ranks of an MPI communicator. Collective.
    ///
    /// # Errors
    /// As for [`Runtime::init`].
    ///
    /// # Safety
    /// As for [`Builder::init_over`].
    pub unsafe fn init_over(comm: CommHandle) -> Result<Runtime> {
        // SAFETY: passed on from the caller.
        unsafe { Runtime::builder().init_over(comm) }
    }

    /// Starting with choices.
    pub fn builder() -> Builder {
        Builder { abort_on_panic: true }
    }

    /// Completes everything, frees what was not freed, and finalises MPI where
    /// the runtime initialised it. Collective over all ranks.
    ///
    /// Dropping the runtime does the same and logs an error instead of returning
    /// it. A function that returns early with an error on one rank drops its
    /// runtime there and waits for the other ranks: let [`run`](super::run) handle
    /// errors where they may differ between ranks. While a panic unwinds, the
    /// destructor does nothing.
    ///
    /// What borrows from the runtime cannot be used afterwards:
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
    /// `State` where the program has finalised MPI before.
    #[track_caller]
    pub fn finalize(mut self) -> Result<()> {
        self.finalized = true;
        unfreed::warn();
        public("Runtime::finalize", || self.end())
    }

    fn end(&self) -> Result<()> {
        let result = Engine::stop();
        if self.abort_on_panic {
            panic::disarm();
        }
        admission::set_runtime(false);
        result
    }

    /// The interface of an engine that something else started, and will stop.
    pub(crate) fn over(engine: Arc<Engine>) -> Runtime {
        Runtime {
            engine,
            abort_on_panic: false,
            finalized: true,
            #[cfg(feature = "array")]
            barriers: Default::default(),
            _one_thread: PhantomData,
        }
    }

    /// Counts a barrier of a group.
    #[cfg(feature = "array")]
    pub(super) fn count_barrier(&self, group: &Arc<crate::group::Group>) {
        if self.engine.config.check_races {
            *self.barriers.borrow_mut().entry(Arc::as_ptr(group) as usize).or_default() += 1;
        }
    }

    /// Barriers of a group and of the world.
    #[cfg(feature = "array")]
    pub(super) fn barriers(&self, group: &Arc<crate::group::Group>) -> u64 {
        let counts = self.barriers.borrow();
        let of = |g: &Arc<crate::group::Group>| {
            counts.get(&(Arc::as_ptr(g) as usize)).copied().unwrap_or_default()
        };
        let world = self.engine.world();
        of(group) + if Arc::ptr_eq(group, world) { 0 } else { of(world) }
    }

    /// The engine beneath.
    #[inline]
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The calling rank, from 0.
    #[inline]
    pub fn rank(&self) -> usize {
        self.engine.rank()
    }

    /// The number of ranks.
    #[inline]
    pub fn size(&self) -> usize {
        self.engine.size()
    }

    /// The group of all ranks.
    pub fn world(&self) -> Group<'_> {
        Group::wrap(self, self.engine.world().clone())
    }

    /// The number of the node that this rank is on. Ranks of one node reach each
    /// other's memory by load and store.
    pub fn node(&self) -> usize {
        self.engine.topology.my_node()
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.engine.topology.nodes()
    }

    /// The ranks of this node, ascending.
    pub fn node_ranks(&self) -> &[usize] {
        self.engine.topology.ranks_of(self.node())
    }

    /// Whether `rank` is on this rank's node.
    ///
    /// # Errors
    /// `Rank` outside the job.
    pub fn same_node(&self, rank: usize) -> Result<bool> {
        self.engine.check_rank(rank).in_call("Runtime::same_node")?;
        Ok(self.engine.topology.same_node(self.rank(), rank))
    }

    /// The path of puts and gets to a rank.
    ///
    /// # Errors
    /// `Rank` outside the job.
    pub fn path_to(&self, rank: usize) -> Result<Path> {
        self.engine.check_rank(rank).in_call("Runtime::path_to")?;
        Ok(self.engine.path_between(self.rank(), rank))
    }

    /// The thread level of MPI.
    pub fn thread_level(&self) -> ThreadLevel {
        self.engine.thread_level()
    }

    /// Whether a thread serves other ranks while this one computes. Where all
    /// ranks share a node there is none, because none is needed.
    pub fn has_progress_thread(&self) -> bool {
        self.engine.has_thread()
    }

    /// Returns when everything that this rank has issued to `rank` (of the
    /// world) is done and visible there.
    ///
    /// # Errors
    /// `Rank` outside the job.
    #[track_caller]
    pub fn fence(&self, rank: usize) -> Result<()> {
        public("Runtime::fence", || self.engine.fence(rank))
    }

    /// [`Runtime::fence`] for all ranks.
    #[track_caller]
    pub fn fence_all(&self) -> Result<()> {
        public("Runtime::fence_all", || self.engine.fence_all())
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let ours = runtime::current_arc().is_ok_and(|now| Arc::ptr_eq(&now, &self.engine));
        if self.finalized || !ours {
            // Done, or the program has finalised MPI under us.
            return;
        }
        if std::thread::panicking() {
            log::error!(
                "a panic passes the runtime, which is not finalised: the other ranks may be \
                 waiting for this one"
            );
            return;
        }
        if let Err(error) = self.end() {
            log::error!("{}", error.in_call("Runtime::drop"));
        }
    }
}
