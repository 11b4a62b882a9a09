//! The state that all layers of an engine share: the ranks, their memory, the outstanding
//! operations to each rank, and waiting. Each layer contains the next lower layer by value and
//! reaches it through `Deref`: [`crate::runtime::Engine`], [`crate::any_memory::AnyMemory`],
//! [`crate::am::Am`], [`crate::ops::Ops`], [`crate::path::Paths`], [`Core`]. Waits in any layer
//! make progress for all: [`Core`] forwards polls and naps to the layer of [`Core::set_progress`].

pub mod handler;
mod poll_backoff;
pub mod upper_layer;

use crate::config::Config;
use crate::error::{Result, fail, unless_forked};
use crate::group::Group;
use crate::memory::segment::Memory;
use crate::mpi::init::ThreadLevel;
use crate::peer::{CompletionCounter, Peer, Peers};
use crate::thread::this_thread;
use crate::topology::Topology;
use crate::trace::{Awaited, CallInfo, Cause, Entered, Observer, Serving, Settings};
use crate::wait::{Ends, GivenUp, LONGEST_NAP, Patience, Progress};
use crate::watchdog::Standing;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use upper_layer::UpperLayer;

#[derive(Debug)]
pub struct Core {
    pub config: Config,
    pub topology: Arc<Topology>,
    pub memory: Memory,
    world: Arc<Group>,
    peers: Peers,
    groups: Mutex<Vec<Arc<Group>>>,
    level: ThreadLevel,
    /// The thread that started the engine.
    home: usize,
    /// Some ranks are served by messages.
    messages: bool,
    /// There are messages but no thread that serves them.
    threadless: AtomicBool,
    watched: AtomicBool,
    /// The engine is ending. Its threads have ended or are about to end.
    alone: AtomicBool,
    closed: AtomicBool,
    waiters: AtomicU32,
    polls: AtomicU32,
    /// Approximate number of handled requests of other ranks, and its value at the last wait.
    served: AtomicU32,
    served_before: AtomicU32,
    spin: u32,
    /// Ranks per core if the node has more ranks than cores and polls call MPI, else 1.
    per_core: u32,
    crowded: bool,
    /// Calls are counted or traced. Stored beside fields that calls read anyway.
    observed: AtomicBool,
    observer: Box<Observer>,
    progress: UpperLayer<dyn Progress + Send + Sync>,
}

#[derive(Debug)]
pub struct Parts {
    pub config: Config,
    pub topology: Arc<Topology>,
    pub memory: Memory,
    pub world: Arc<Group>,
    pub level: ThreadLevel,
    pub messages: bool,
    pub crowded: bool,
}

impl Core {
    pub fn new(parts: Parts) -> Core {
        let Parts { config, topology, memory, world, level, messages, crowded } = parts;
        let ranks = topology.size();
        let observer = Box::new(Observer::new(Settings {
            stats: config.stats,
            traces: !config.trace.is_empty(),
            limit: config.trace_bytes as u64,
            counter: config.trace_counter,
            shift: config.trace_shift,
        }));
        Core {
            memory,
            peers: Peers::new(ranks),
            groups: Mutex::new(vec![world.clone()]),
            world,
            level,
            home: this_thread(),
            messages,
            threadless: AtomicBool::new(messages && ranks > 1),
            watched: AtomicBool::new(false),
            alone: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            waiters: AtomicU32::new(0),
            polls: AtomicU32::new(0),
            served: AtomicU32::new(0),
            served_before: AtomicU32::new(0),
            // Longer polling helps only if every rank has its own core.
            spin: if crowded { config.spin.min(20) } else { config.spin },
            per_core: if crowded && messages { ranks_per_core(&topology) } else { 1 },
            crowded,
            observed: AtomicBool::new(observer.is_on()),
            observer,
            progress: UpperLayer::default(),
            topology,
            config,
        }
    }

    /// # Safety
    /// See [`UpperLayer::set`].
    pub unsafe fn set_progress(&self, progress: &(dyn Progress + Send + Sync + 'static)) {
        // SAFETY: the caller guarantees the requirements of `UpperLayer::set`.
        unsafe { self.progress.set(progress) };
    }

    #[inline]
    pub fn observer(&self) -> &Observer {
        &self.observer
    }

    #[inline(always)]
    pub fn is_observed(&self) -> bool {
        self.observed.load(Ordering::Relaxed)
    }

    /// Called in a forked child: calls take the observed variant, which refuses them there.
    pub(crate) fn refuse_calls(&self) {
        self.observed.store(true, Ordering::Relaxed);
    }

    /// Returns `None` if calls are neither counted nor traced.
    #[inline(always)]
    pub fn begin_to_serve(&self) -> Option<Serving<'_>> {
        if self.is_observed() { self.observer.serve() } else { None }
    }

    /// Performs a call, and records it if it succeeds and calls are counted or traced.
    #[inline(always)]
    pub fn observed<R>(
        &self,
        call_info: impl FnOnce() -> CallInfo,
        body: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        if self.is_observed() { self.traced(false, |_: &R| call_info(), body) } else { body() }
    }

    /// For a call that may be short. `call_info` receives the result.
    #[inline(always)]
    pub fn observed_often<R>(
        &self,
        short: impl FnOnce() -> bool,
        call_info: impl FnOnce(&R) -> CallInfo,
        body: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        if self.is_observed() { self.traced(short(), call_info, body) } else { body() }
    }

    #[cold]
    #[inline(never)]
    fn traced<R>(
        &self,
        short: bool,
        call_info: impl FnOnce(&R) -> CallInfo,
        body: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        unless_forked()?;
        let entered = self.observer.enter(|| short);
        let done = body()?;
        if let Some(entered) = entered.filter(Entered::counts) {
            entered.leave(&call_info(&done));
        }
        Ok(done)
    }

    /// For calls that describe themselves only if a trace is written. `leave` records success.
    #[inline(always)]
    pub(crate) fn record<R>(
        &self,
        short: impl FnOnce() -> bool,
        leave: impl FnOnce(Entered<'_>, &R),
        body: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        unless_forked()?;
        let entered = self.observer.enter(short);
        let done = body()?;
        if let Some(entered) = entered {
            leave(entered, &done);
        }
        Ok(done)
    }

    #[inline]
    pub fn rank(&self) -> usize {
        self.topology.me()
    }

    #[inline]
    pub fn size(&self) -> usize {
        self.peers.len()
    }

    pub fn world(&self) -> &Arc<Group> {
        &self.world
    }

    /// In the order of their creation.
    pub fn groups(&self) -> &Mutex<Vec<Arc<Group>>> {
        &self.groups
    }

    pub fn thread_level(&self) -> ThreadLevel {
        self.level
    }

    pub fn has_messages(&self) -> bool {
        self.messages
    }

    pub fn is_crowded(&self) -> bool {
        self.crowded
    }

    #[inline]
    pub fn peer(&self, rank: usize) -> &Peer {
        self.peers.at(rank)
    }

    #[inline]
    pub fn peers(&self) -> &Peers {
        &self.peers
    }

    #[inline]
    pub fn check_rank(&self, rank: usize) -> Result<()> {
        if rank >= self.peers.len() {
            fail!(Rank, "rank {rank} is outside the {} ranks of the job", self.peers.len());
        }
        Ok(())
    }

    /// Returns whether `rank` maps the segments of `owner`.
    pub fn reaches_directly(&self, owner: usize, rank: usize) -> bool {
        owner == rank || self.memory.policy().direct && self.topology.same_node(owner, rank)
    }

    /// Threads of the engine may run: they may call MPI or do not have to, and it is not ending.
    #[inline]
    pub fn may_use_threads(&self) -> bool {
        let allowed = self.level == ThreadLevel::Multiple || !self.messages;
        allowed && !self.alone.load(Ordering::Relaxed)
    }

    pub(crate) fn end_threads(&self) {
        self.alone.store(true, Ordering::Relaxed);
    }

    /// The engine has stopped. Code that still refers to it must not wait any more.
    pub(crate) fn set_closed(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Below `MPI_THREAD_MULTIPLE`, only the thread that started the engine may.
    #[inline]
    pub(crate) fn may_call_mpi(&self) -> bool {
        self.level == ThreadLevel::Multiple || self.home == this_thread()
    }

    #[inline]
    pub fn may_use_messages(&self) -> bool {
        !self.messages || self.may_call_mpi()
    }

    pub fn has_thread(&self) -> bool {
        self.is_watched()
    }

    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Relaxed)
    }

    /// With a progress thread, some calls no longer serve other ranks.
    pub(crate) fn set_watched(&self, watched: bool) {
        self.watched.store(watched, Ordering::Relaxed);
        if watched {
            self.threadless.store(false, Ordering::Relaxed);
        }
    }

    /// If no thread serves them: a program may call these functions in a loop to wait for a rank.
    #[inline]
    pub(crate) fn serve_sometimes(&self) -> Result<()> {
        if self.is_time_to_serve() { self.serve() } else { Ok(()) }
    }

    /// Returns whether a call must serve other ranks: one in 16, if no thread serves them.
    #[inline]
    pub(crate) fn is_time_to_serve(&self) -> bool {
        const EVERY: u32 = 16;
        self.threadless.load(Ordering::Relaxed) && count(&self.polls).is_multiple_of(EVERY)
    }

    #[cold]
    pub fn serve(&self) -> Result<()> {
        if self.threadless.load(Ordering::Relaxed) {
            self.poll()?;
        }
        Ok(())
    }

    pub(crate) fn waiters(&self) -> &AtomicU32 {
        &self.waiters
    }

    #[inline]
    pub fn polls(&self) -> &AtomicU32 {
        &self.polls
    }

    pub(crate) fn note_served(&self) {
        count(&self.served);
    }

    pub fn idle_poll(&self) -> Duration {
        self.config.idle_poll
    }

    /// Serves other ranks meanwhile. Returns the first error of `done`, or `State` in a handler.
    pub fn wait_for(
        &self,
        awaited: impl Into<Awaited>,
        what: &dyn Fn() -> String,
        done: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        crate::wait::until(self, awaited, what, done)
    }

    /// Waits until all operations of a counter have ended, and returns their first failure. If the
    /// wait fails, as in a handler, ends the job: the operations may still use the caller's memory.
    pub fn complete(
        &self,
        awaited: impl Into<Awaited>,
        what: &dyn Fn() -> String,
        counter: &CompletionCounter,
    ) -> Result<()> {
        let done = self.wait_for(awaited, what, || counter.check());
        if let Err(error) = &done
            && counter.outstanding() > 0
        {
            log::error!("{} cannot be completed: {error:#}", what());
            crate::process::end_job(error.kind().code());
        }
        done
    }

    /// Without a cause of its own in the statistics.
    pub fn wait_until(
        &self,
        what: &dyn Fn() -> String,
        done: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        self.wait_for(Cause::Other, what, done)
    }
}

/// From this number of ranks per core, polls of waiting ranks cost more than they gain.
const MANY: u32 = 4;

/// Returns the number of ranks of this host per core that this rank may use, rounded up.
fn ranks_per_core(topology: &Topology) -> u32 {
    let near = (0..topology.size()).filter(|&rank| topology.same_host(rank, topology.me()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    near.count().div_ceil(cores) as u32
}

/// Returns the old value. Without a locked instruction, so concurrent increments may be lost.
#[inline]
pub fn count(counter: &AtomicU32) -> u32 {
    let n = counter.load(Ordering::Relaxed);
    counter.store(n.wrapping_add(1), Ordering::Relaxed);
    n
}

/// Forwards to the registered layer. Without one, there is nothing to serve.
impl Progress for Core {
    #[inline]
    fn poll(&self) -> Result<bool> {
        self.progress.get().map_or(Ok(false), Progress::poll)
    }
    fn nap(&self, nap: Duration) {
        match self.progress.get() {
            Some(above) => above.nap(nap),
            None => std::thread::sleep(nap),
        }
    }
    fn nap_on(&self, word: &AtomicU32, value: u32, nap: Duration) {
        match self.progress.get() {
            Some(above) => above.nap_on(word, value, nap),
            None => crate::futex::wait(word, value, nap),
        }
    }
    fn patience(&self, ends: Ends) -> Patience {
        let one = if self.crowded { Patience::SHARING } else { Patience::POLLING };
        let polling = Patience { spin: self.spin, ..one };
        if ends == Ends::Meeting {
            let Patience { first_nap, longest_nap, limit, .. } = polling;
            // Without a progress thread, only the polls of this wait serve messages: short naps.
            return match self.is_watched() || !self.messages {
                true => Patience::MEETING,
                false => Patience { first_nap, longest_nap, limit, ..Patience::MEETING },
            };
        }
        if self.per_core < MANY {
            return polling;
        }
        let limit = (self.config.idle_poll / 2).max(LONGEST_NAP);
        let shared = Patience { limit, ..polling }.shared(self.per_core);
        if ends == Ends::Polled || !self.is_watched() {
            return shared;
        }
        // A rank that recently served requests of other ranks keeps polling for more.
        let served = self.served.load(Ordering::Relaxed);
        if self.served_before.swap(served, Ordering::Relaxed) != served {
            return shared;
        }
        let (polls, limit) = (Duration::ZERO, self.config.idle_poll.max(LONGEST_NAP));
        let naps = Patience { first_nap: limit, longest_nap: limit, limit, ..shared };
        Patience { spin: 0, polls, naps_first: true, ..naps }
    }
    #[inline]
    fn may_wait(&self) -> Result<()> {
        unless_forked()?;
        if let Some(name) = handler::running() {
            fail!(State, "the handler {name} called a blocking function; handlers must not block");
        }
        if self.closed.load(Ordering::Acquire) {
            fail!(State, "the runtime or MPI was finalised");
        }
        Ok(())
    }
    fn traced_by(&self) -> Option<&Observer> {
        Some(&self.observer)
    }
    fn waiting(&self, begins: bool) {
        if let Some(above) = self.progress.get() {
            above.waiting(begins);
        }
    }
    #[inline]
    fn give_up(&self) -> Option<GivenUp> {
        self.progress.get().and_then(Progress::give_up)
    }
    fn take_again(&self, given_up: GivenUp) {
        if let Some(above) = self.progress.get() {
            above.take_again(given_up);
        }
    }
    fn report(&self, standing: &Standing<'_>) {
        match self.progress.get() {
            Some(above) => above.report(standing),
            None => standing.report("nothing, the runtime is starting"),
        }
    }
}
