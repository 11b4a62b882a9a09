//! The state of a rank's active messages: handlers, awaited events, and the dispatcher's lock.

use super::Am;
use super::completion_thread::CompletionThread;
use super::inbound::{Deferral, EagerMessage, RndvState};
use super::poll_state::PollState;
use super::shm_transport::{Incoming, ShmTransport};
use super::work_split::JOBS;
use super::{Handler, HandlerId, Job, Signal};
use crate::core::answers::AwaitedAnswers;
use crate::memory::pool::Pool;
use crate::memory::sparse::Sparse;
use parking_lot::{Mutex, RwLock};
use portolan_base::error::{Result, fail};
use portolan_base::handles::Handles;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

pub struct HandlerEntry {
    pub name: &'static str,
    pub handler: Arc<dyn Handler>,
    pub gone: AtomicBool,
    pub deferral: Option<Arc<Deferral>>,
}

const SPARE_BYTES: usize = 1 << 20;

const CHUNK: usize = 1024;
type Chunk = Box<[OnceLock<HandlerEntry>]>;

/// Handlers by number. A lookup takes no lock, and a handler never moves.
pub struct Handlers {
    chunks: [OnceLock<Chunk>; 64],
    count: Mutex<usize>,
}

impl Default for Handlers {
    fn default() -> Self {
        Handlers { chunks: std::array::from_fn(|_| OnceLock::new()), count: Mutex::new(0) }
    }
}

impl Handlers {
    #[inline]
    pub fn get(&self, id: HandlerId) -> Option<&HandlerEntry> {
        let n = usize::from(id.0);
        self.chunks[n / CHUNK].get()?[n % CHUNK].get()
    }

    /// Fails with `Argument` if no number is left.
    pub fn add(&self, name: &'static str, handler: Arc<dyn Handler>) -> Result<HandlerId> {
        let mut count = self.count.lock();
        if *count >= CHUNK * self.chunks.len() {
            fail!(Argument, "all {count} handler numbers are in use");
        }
        let chunk = self.chunks[*count / CHUNK]
            .get_or_init(|| (0..CHUNK).map(|_| OnceLock::new()).collect());
        let deferral = handler.deferral();
        let entry = HandlerEntry { name, handler, gone: AtomicBool::new(false), deferral };
        if chunk[*count % CHUNK].set(entry).is_err() {
            fail!(Internal, "handler number {count} is taken");
        }
        *count += 1;
        Ok(HandlerId((*count - 1) as u16))
    }

    pub fn has(&self, name: &str) -> bool {
        self.any_live(|entry| entry.name == name)
    }

    pub(crate) fn has_deferral(&self, deferral: &Arc<Deferral>) -> bool {
        self.any_live(|entry| entry.deferral.as_ref().is_some_and(|own| Arc::ptr_eq(own, deferral)))
    }

    fn any_live(&self, is: impl Fn(&HandlerEntry) -> bool) -> bool {
        let count = *self.count.lock();
        (0..count).any(|n| {
            self.get(HandlerId(n as u16)).is_some_and(|e| is(e) && !e.gone.load(Ordering::Relaxed))
        })
    }
}

/// Returns a copy of the name that is never freed. Equal names share one.
pub(crate) fn intern(name: &str) -> &'static str {
    static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut names = NAMES.lock();
    if let Some(known) = names.iter().find(|n| **n == name) {
        return known;
    }
    let kept: &'static str = Box::leak(name.to_string().into_boxed_str());
    names.push(kept);
    kept
}

#[derive(Debug)]
pub enum AwaitedSignal {
    Completion(Signal),
    Source {
        signal: Signal,
        /// Data that the engine owns until it has left.
        _keep: Option<Vec<u8>>,
        target: usize,
    },
}

pub(crate) type Tokens = Handles<AwaitedSignal>;

pub(crate) fn sources_to(tokens: &Tokens, target: usize) -> Vec<u64> {
    let is =
        |a: &AwaitedSignal| matches!(a, AwaitedSignal::Source { target: t, .. } if *t == target);
    tokens.iter().filter(|(_, awaited)| is(awaited)).map(|(token, _)| token).collect()
}

#[derive(Debug)]
pub(crate) struct Dispatch {
    /// Without rings, empty.
    pub incoming: Incoming,
    pub work: RndvState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingState {
    Empty,
    Ready,
    /// Another thread handles messages, and then checks again.
    Busy,
}

/// The state of sends to the deferral queues of a rank.
#[derive(Debug, Default)]
pub(super) struct Towards {
    pub stopped: AtomicBool,
    pub sent: AtomicU64,
    /// Messages that a fence has found in place.
    pub fenced: AtomicU64,
}

/// Largest number of ranks whose messages are counted by target: quiescence sums all counts.
const COUNTED_TARGETS: usize = 64;

/// Sends collected items, or with the flag only aged ones.
pub type Hook = Arc<dyn Fn(&Am, bool) -> Result<()> + Send + Sync>;

pub struct AmState {
    pub node: Option<ShmTransport>,
    /// Whether memory can be read, by node index, once this was tried.
    pub(super) cma: Box<[OnceLock<bool>]>,
    pub handlers: Handlers,
    /// Locked while a job is offered there, and the number of parts that helpers have copied.
    pub(super) places: [Mutex<()>; JOBS],
    pub(super) helped: AtomicU64,
    pub(super) dispatch: Mutex<Dispatch>,
    pub(super) tokens: Mutex<Tokens>,
    /// Accesses that their owners perform ([`crate::any_memory`]).
    pub(crate) asked: AwaitedAnswers,
    /// Messages of this rank to itself, from a handler or while the handlers are locked.
    pub(super) local: Mutex<VecDeque<EagerMessage>>,
    pub(super) sent_locally: AtomicUsize,
    /// The `pthread_t` of the thread that has locked the handlers, or 0.
    pub(super) locker: AtomicU64,
    pub(super) completion_thread: CompletionThread<Job>,
    pub(crate) poll_state: PollState,
    pub(super) spares: Arc<Pool>,
    pub(super) held_up: AtomicBool,
    pub(super) flushing: AtomicBool,
    pub(super) hooks: RwLock<Vec<Hook>>,
    pub(super) deferrals: RwLock<Vec<Arc<Deferral>>>,
    /// Messages and completion handlers that deferral queues hold.
    pub(super) behind_deferrals: AtomicUsize,
    /// Messages that deferral queues hold and have not released. Other interfaces do not wait for
    /// them.
    pub(super) set_aside: AtomicU64,
    pub(super) towards: Sparse<Towards>,
    /// Messages for each target, without those in the rings of the node. One count for all targets
    /// if there are more than [`COUNTED_TARGETS`].
    pub(super) sent: Box<[AtomicU64]>,
    /// Under the dispatcher's lock.
    pub(super) handled: AtomicU64,
    /// Without that lock.
    pub(super) handled_on_thread: AtomicU64,
}

impl std::fmt::Debug for AmState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("sent", &self.all_sent())
            .field("handled", &self.all_handled())
            .field("later", &self.completion_thread)
            .finish_non_exhaustive()
    }
}

impl AmState {
    pub fn new(node: Option<ShmTransport>, node_ranks: usize, ranks: usize) -> AmState {
        let incoming = node.as_ref().map(Incoming::new).unwrap_or_default();
        let counts = if ranks <= COUNTED_TARGETS { ranks } else { 1 };
        AmState {
            node,
            cma: (0..node_ranks).map(|_| OnceLock::new()).collect(),
            handlers: Handlers::default(),
            places: Default::default(),
            helped: AtomicU64::new(0),
            dispatch: Mutex::new(Dispatch { incoming, work: RndvState::default() }),
            tokens: Mutex::default(),
            asked: AwaitedAnswers::default(),
            local: Mutex::default(),
            sent_locally: AtomicUsize::new(0),
            locker: AtomicU64::new(0),
            completion_thread: CompletionThread::default(),
            poll_state: PollState::default(),
            spares: Arc::new(Pool::new(16, SPARE_BYTES)),
            held_up: AtomicBool::new(false),
            flushing: AtomicBool::new(false),
            hooks: RwLock::default(),
            deferrals: RwLock::default(),
            behind_deferrals: AtomicUsize::new(0),
            set_aside: AtomicU64::new(0),
            towards: Sparse::new(ranks),
            sent: (0..counts).map(|_| AtomicU64::new(0)).collect(),
            handled: AtomicU64::new(0),
            handled_on_thread: AtomicU64::new(0),
        }
    }

    /// Returns the rings of the node, and the index there, if `target` is on this node.
    #[inline]
    pub(super) fn on_node(&self, target: usize) -> Option<(&ShmTransport, usize)> {
        let node = self.node.as_ref()?;
        Some((node, node.index_of(target)?))
    }
}
