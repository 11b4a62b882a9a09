//! What all layers of an engine share: who the ranks are, their memory, what is outstanding
//! towards each, and how a thread waits.
//!
//! | module | owns |
//! |---|---|
//! | [`above`] | pointers to the layers that stand on one |
//! | [`handler`] | whether a thread runs a handler |
//! | `poll_backoff` | calls that look without waiting |
//!
//! The layers stand on each other by value, each reached from the next one by `Deref`:
//! [`crate::runtime::Engine`] on [`crate::any_memory::AnyMemory`], on [`crate::am::Am`], on
//! [`crate::ops::Ops`], on [`crate::path::Transport`], on [`Core`].
//!
//! **Waiting.** A wait of any layer makes progress for all: [`Core`] hands polls and naps to
//! the layer that was registered with [`Core::set_progress`].

pub(crate) mod above;
pub(crate) mod handler;
mod poll_backoff;

use crate::config::Config;
use crate::error::{Result, fail, unless_forked};
use crate::group::Group;
use crate::memory::segment::Memory;
use crate::mpi::init::ThreadLevel;
use crate::peer::{Peer, Peers};
use crate::thread::this_thread;
use crate::topology::Topology;
use crate::trace::{About, Awaited, Cause, Entered, Observer, Serving, Settings};
use crate::wait::{Ends, GivenUp, LONGEST_NAP, Patience, Progress};
use crate::watchdog::Standing;
use above::Above;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// The lowest layer of an engine.
#[derive(Debug)]
pub struct Core {
    /// The environment, as it was read at start.
    pub config: Config,
    /// Which ranks share memory.
    pub topology: Arc<Topology>,
    /// Segments and their addresses.
    pub memory: Memory,
    world: Arc<Group>,
    peers: Peers,
    groups: Mutex<Vec<Arc<Group>>>,
    level: ThreadLevel,
    /// The thread that started the engine.
    home: usize,
    /// There are ranks that are served by messages.
    messages: bool,
    /// There are messages, but no thread that serves them.
    threadless: AtomicBool,
    /// The progress thread runs.
    watched: AtomicBool,
    /// The engine ends, and its threads have ended or are about to.
    alone: AtomicBool,
    closed: AtomicBool,
    /// Threads that wait.
    waiters: AtomicU32,
    /// Polls of callers, roughly.
    polls: AtomicU32,
    /// Requests of other ranks that were handled, roughly, and how many at the last wait.
    served: AtomicU32,
    served_before: AtomicU32,
    /// How many polls a wait makes before it yields.
    spin: u32,
    /// How many ranks share a core, where the node has more ranks than cores and polls ask MPI.
    per_core: u32,
    /// The node has more ranks than cores.
    crowded: bool,
    /// Calls are counted or traced: beside the words that calls read anyway.
    observed: AtomicBool,
    observer: Box<Observer>,
    progress: Above<dyn Progress + Send + Sync>,
}

/// What a [`Core`] is made of.
#[derive(Debug)]
pub struct Parts {
    /// The environment.
    pub config: Config,
    /// Which ranks share memory.
    pub topology: Arc<Topology>,
    /// No segments yet.
    pub memory: Memory,
    /// The group of all ranks.
    pub world: Arc<Group>,
    /// MPI's thread level.
    pub level: ThreadLevel,
    /// There are ranks that are served by messages.
    pub messages: bool,
    /// The node has more ranks than cores.
    pub crowded: bool,
}

impl Core {
    /// Of these parts, with nothing outstanding.
    pub fn new(parts: Parts) -> Core {
        let Parts { config, topology, memory, world, level, messages, crowded } = parts;
        let ranks = topology.size();
        let observer = Box::new(Observer::new(Settings {
            stats: config.stats,
            traces: !config.trace.is_empty(),
            sample: config.trace_sample,
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
            // Polling longer is of use only with a core for every rank.
            spin: if crowded { config.spin.min(20) } else { config.spin },
            per_core: if crowded && messages { ranks_per_core(&topology) } else { 1 },
            crowded,
            observed: AtomicBool::new(observer.is_on()),
            observer,
            progress: Above::default(),
            topology,
            config,
        }
    }

    /// Has waits poll and nap by way of a layer above.
    ///
    /// # Safety
    /// As for [`Above::set`].
    pub unsafe fn set_progress(&self, progress: &(dyn Progress + Send + Sync + 'static)) {
        // SAFETY: passed on from the caller.
        unsafe { self.progress.set(progress) };
    }

    /// What is observed of the engine.
    #[inline]
    pub(crate) fn observer(&self) -> &Observer {
        &self.observer
    }

    /// Whether calls are counted or traced.
    #[inline(always)]
    pub(crate) fn is_observed(&self) -> bool {
        self.observed.load(Ordering::Relaxed)
    }

    /// In a child that was forked: calls go the way of observed ones from now on, which refuses them.
    pub(crate) fn refuse_calls(&self) {
        self.observed.store(true, Ordering::Relaxed);
    }

    /// The thread begins to serve another rank, where that is observed.
    #[inline(always)]
    pub(crate) fn begin_to_serve(&self) -> Option<Serving<'_>> {
        if self.is_observed() { self.observer.serve() } else { None }
    }

    /// Carries a call out and tells of it, where calls are observed: `about` says what it was when it has ended well.
    #[inline(always)]
    pub(crate) fn observed<R>(
        &self,
        about: impl FnOnce() -> About,
        body: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        if self.is_observed() { self.told(false, |_: &R| about(), body) } else { body() }
    }

    /// [`Core::observed`] of a call that may be one of many short ones. `about` sees what `body` returned.
    #[inline(always)]
    pub(crate) fn observed_often<R>(
        &self,
        short: impl FnOnce() -> bool,
        about: impl FnOnce(&R) -> About,
        body: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        if self.is_observed() { self.told(short(), about, body) } else { body() }
    }

    #[cold]
    #[inline(never)]
    fn told<R>(
        &self,
        short: bool,
        about: impl FnOnce(&R) -> About,
        body: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        unless_forked()?;
        let entered = self.observer.enter(short);
        let done = body()?;
        if let Some(entered) = entered.filter(Entered::counts) {
            entered.leave(&about(&done));
        }
        Ok(done)
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

    /// The live groups, in the order in which they were made.
    pub(crate) fn groups(&self) -> &Mutex<Vec<Arc<Group>>> {
        &self.groups
    }

    /// MPI's thread level.
    pub fn thread_level(&self) -> ThreadLevel {
        self.level
    }

    /// Whether some ranks are served by messages.
    pub fn has_messages(&self) -> bool {
        self.messages
    }

    /// Whether ranks outnumber the cores that this one runs on.
    pub fn is_crowded(&self) -> bool {
        self.crowded
    }

    /// What is outstanding towards a rank.
    #[inline]
    pub(crate) fn peer(&self, rank: usize) -> &Peer {
        self.peers.at(rank)
    }

    /// What is outstanding, by rank.
    #[inline]
    pub(crate) fn peers(&self) -> &Peers {
        &self.peers
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

    /// Whether a segment of `owner` is mapped by `rank`.
    pub fn reaches_directly(&self, owner: usize, rank: usize) -> bool {
        owner == rank || self.memory.policy().direct && self.topology.same_node(owner, rank)
    }

    /// Whether threads of the engine may call MPI, or need not.
    pub(crate) fn may_use_threads(&self) -> bool {
        let allowed = self.level == ThreadLevel::Multiple || !self.messages;
        allowed && !self.alone.load(Ordering::Relaxed)
    }

    /// The engine's threads end, or have ended.
    pub(crate) fn end_threads(&self) {
        self.alone.store(true, Ordering::Relaxed);
    }

    /// The engine has stopped: what still refers to it must not wait any more.
    pub(crate) fn set_closed(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Whether the calling thread may call MPI: below `MPI_THREAD_MULTIPLE` only the one that
    /// started the engine.
    #[inline]
    pub(crate) fn may_call_mpi(&self) -> bool {
        self.level == ThreadLevel::Multiple || self.home == this_thread()
    }

    /// Whether the calling thread may do what sends messages, or waits for them.
    #[inline]
    pub(crate) fn may_use_messages(&self) -> bool {
        !self.messages || self.may_call_mpi()
    }

    /// Whether a progress thread runs.
    pub fn has_thread(&self) -> bool {
        self.is_watched()
    }

    /// Whether a progress thread looks after this rank.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Relaxed)
    }

    /// A progress thread has started, or ends. Where it serves messages, calls that need no
    /// other rank need not.
    pub(crate) fn set_watched(&self, watched: bool) {
        self.watched.store(watched, Ordering::Relaxed);
        if watched {
            self.threadless.store(false, Ordering::Relaxed);
        }
    }

    /// Without a progress thread, calls that need no other rank serve others now and
    /// then: a program may wait for another rank by calling them in a loop.
    #[inline]
    pub(crate) fn serve_sometimes(&self) -> Result<()> {
        if self.is_time_to_serve() { self.serve() } else { Ok(()) }
    }

    /// Whether a call is to serve other ranks now: each of some calls, where no thread does it.
    #[inline]
    pub(crate) fn is_time_to_serve(&self) -> bool {
        const EVERY: u32 = 16;
        self.threadless.load(Ordering::Relaxed) && count(&self.polls).is_multiple_of(EVERY)
    }

    /// Serves other ranks where no thread does.
    #[cold]
    pub(crate) fn serve(&self) -> Result<()> {
        if self.threadless.load(Ordering::Relaxed) {
            self.poll()?;
        }
        Ok(())
    }

    /// Threads that wait.
    pub(crate) fn waiters(&self) -> &AtomicU32 {
        &self.waiters
    }

    /// A count of the polls of callers, roughly.
    #[inline]
    pub(crate) fn polls(&self) -> &AtomicU32 {
        &self.polls
    }

    /// Notes that a request of another rank was handled.
    pub(crate) fn note_served(&self) {
        count(&self.served);
    }

    /// Longest nap of a thread that looks after MPI.
    pub(crate) fn idle_poll(&self) -> Duration {
        self.config.idle_poll
    }

    /// Waits until `done` says so, serving others meanwhile.
    ///
    /// # Errors
    /// `State` in a handler; the first error of `done`.
    pub(crate) fn wait_for(
        &self,
        awaited: impl Into<Awaited>,
        what: &dyn Fn() -> String,
        done: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        crate::wait::until(self, awaited, what, done)
    }

    /// [`Core::wait_for`] of nothing that the statistics know.
    ///
    /// # Errors
    /// As there.
    pub fn wait_until(
        &self,
        what: &dyn Fn() -> String,
        done: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        self.wait_for(Cause::Other, what, done)
    }
}

/// With so many ranks to a core, polls of those that wait cost more than they find.
const MANY: u32 = 4;

/// How many ranks of this machine share one of the cores that this one may run on.
fn ranks_per_core(topology: &Topology) -> u32 {
    let near = (0..topology.size()).filter(|&rank| topology.same_host(rank, topology.me()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    near.count().div_ceil(cores) as u32
}

/// Counts, roughly where several threads do, without a locked instruction.
#[inline]
pub(crate) fn count(counter: &AtomicU32) -> u32 {
    let n = counter.load(Ordering::Relaxed);
    counter.store(n.wrapping_add(1), Ordering::Relaxed);
    n
}

/// By the layer that was registered; while there is none, there is nothing to serve.
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
        let polling = Patience { spin: self.spin, ..Patience::POLLING };
        if ends == Ends::Meeting {
            let Patience { first_nap, longest_nap, limit, .. } = polling;
            // Messages of a rank without the thread wait for no other poll.
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
        // A rank that others have asked for something lately looks after them.
        let served = self.served.load(Ordering::Relaxed);
        if self.served_before.swap(served, Ordering::Relaxed) != served {
            return shared;
        }
        let (yields, limit) = (Duration::ZERO, self.config.idle_poll.max(LONGEST_NAP));
        let naps = Patience { first_nap: limit, longest_nap: limit, limit, ..shared };
        Patience { spin: 0, yields, naps_first: true, ..naps }
    }
    #[inline]
    fn may_wait(&self) -> Result<()> {
        unless_forked()?;
        if let Some(name) = handler::running() {
            fail!(
                State,
                "the handler {name} called a function that would wait; handlers must not block"
            );
        }
        if self.closed.load(Ordering::Acquire) {
            fail!(State, "the runtime was finalised, or MPI under it");
        }
        Ok(())
    }
    fn told_by(&self) -> Option<&Observer> {
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
