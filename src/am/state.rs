//! What a rank keeps for active messages: handlers, what it awaits, the lock under
//! which handlers run.

use super::Am;
use super::completion_thread::CompletionThread;
use super::gate::Gate;
use super::poll_state::PollState;
use super::rendezvous::RndvState;
use super::shm_transport::{Incoming, ShmTransport};
use super::work_split::JobSlots;
use super::{Handler, HandlerId, Signal};
use crate::error::{Result, fail};
use crate::handles::Handles;
use crate::memory::buffer_pool::BufferPool;
use crate::memory::sparse::Sparse;
use parking_lot::{Mutex, RwLock};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// A registered handler.
pub(crate) struct HandlerEntry {
    /// What reports call it.
    pub name: &'static str,
    /// What runs.
    pub handler: Arc<dyn Handler>,
    /// It was unregistered.
    pub gone: AtomicBool,
    /// Says when it may run.
    pub gate: Option<Arc<Gate>>,
}

/// Bytes of all buffers that no aggregator of a rank fills just now.
const SPARE_BYTES: usize = 1 << 20;

const CHUNK: usize = 1024;
type Chunk = Box<[OnceLock<HandlerEntry>]>;

/// The handlers by number: found without a lock, never moved.
pub(crate) struct Handlers {
    chunks: [OnceLock<Chunk>; 64],
    count: Mutex<usize>,
}

impl Default for Handlers {
    fn default() -> Self {
        Handlers { chunks: std::array::from_fn(|_| OnceLock::new()), count: Mutex::new(0) }
    }
}

impl Handlers {
    /// The handler of a number.
    #[inline]
    pub(crate) fn get(&self, id: HandlerId) -> Option<&HandlerEntry> {
        let n = usize::from(id.0);
        self.chunks[n / CHUNK].get()?[n % CHUNK].get()
    }

    /// Adds a handler under the next number.
    pub(crate) fn add(&self, name: &'static str, handler: Arc<dyn Handler>) -> Result<HandlerId> {
        let mut count = self.count.lock();
        if *count >= CHUNK * self.chunks.len() {
            fail!(Argument, "there are {count} handlers, and no more numbers for them");
        }
        let chunk = self.chunks[*count / CHUNK]
            .get_or_init(|| (0..CHUNK).map(|_| OnceLock::new()).collect());
        let gate = handler.gate();
        let entry = HandlerEntry { name, handler, gone: AtomicBool::new(false), gate };
        if chunk[*count % CHUNK].set(entry).is_err() {
            fail!(Internal, "handler number {count} is taken");
        }
        *count += 1;
        Ok(HandlerId((*count - 1) as u16))
    }

    /// Whether a live handler has the name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.any_live(|entry| entry.name == name)
    }

    /// Whether a live handler has the gate.
    pub(crate) fn has_gate(&self, gate: &Arc<Gate>) -> bool {
        self.any_live(|entry| entry.gate.as_ref().is_some_and(|own| Arc::ptr_eq(own, gate)))
    }

    fn any_live(&self, is: impl Fn(&HandlerEntry) -> bool) -> bool {
        let count = *self.count.lock();
        (0..count).any(|n| {
            self.get(HandlerId(n as u16)).is_some_and(|e| is(e) && !e.gone.load(Ordering::Relaxed))
        })
    }
}

/// Names live as long as the process; the same name is kept once.
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

/// What the origin awaits.
#[derive(Debug)]
pub(crate) enum Awaited {
    /// That a message was handled.
    Completion(Signal),
    /// That data has left.
    Source {
        /// What the origin gets.
        signal: Signal,
        /// Data that was given away.
        _keep: Option<Vec<u8>>,
        /// The target's rank.
        target: usize,
    },
}

/// What the origin awaits, by token.
pub(crate) type Tokens = Handles<Awaited>;

/// The tokens of data that is still to leave to `target`.
pub(crate) fn sources_to(tokens: &Tokens, target: usize) -> Vec<u64> {
    let is = |a: &Awaited| matches!(a, Awaited::Source { target: t, .. } if *t == target);
    tokens.iter().filter(|(_, awaited)| is(awaited)).map(|(token, _)| token).collect()
}

/// What handlers run under.
#[derive(Debug)]
pub(crate) struct Dispatch {
    /// Rings to read.
    pub incoming: Option<Incoming>,
    /// Long messages under way.
    pub work: RndvState,
}

/// What a thread finds that would sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RingState {
    /// Nothing.
    Empty,
    /// Something to handle.
    Ready,
    /// Another thread handles what there is, and looks again when it is done.
    Busy,
}

/// A message to oneself that a handler sent.
#[derive(Debug)]
pub(crate) struct SelfMessage {
    /// Its handler.
    pub handler: HandlerId,
    /// Its header.
    pub header: Vec<u8>,
    /// Its data.
    pub data: Vec<u8>,
    /// The token of its completion.
    pub token: u64,
}

/// What goes to a rank through gates.
#[derive(Debug, Default)]
pub(super) struct Towards {
    /// The rank has said to send no more.
    pub stopped: AtomicBool,
    /// Messages sent.
    pub sent: AtomicU64,
    /// Of these, those that a fence has found in place.
    pub fenced: AtomicU64,
}

/// A face's function that sends what it has collected.
pub type Hook = Arc<dyn Fn(&Am, bool) -> Result<bool> + Send + Sync>;

/// Active messages of this rank.
pub(crate) struct AmState {
    /// The rings, where they carry messages.
    pub node: Option<ShmTransport>,
    /// Whether a rank's memory can be read: 0 unknown, 1 yes, 2 no; by rank of the node.
    pub(super) cma: Vec<AtomicU8>,
    pub(crate) handlers: Handlers,
    /// Where transfers are offered for help.
    pub(crate) places: JobSlots,
    pub(super) dispatch: Mutex<Dispatch>,
    pub(super) tokens: Mutex<Tokens>,
    pub(super) local: Mutex<VecDeque<SelfMessage>>,
    /// How many there are.
    pub(super) sent_locally: AtomicUsize,
    /// The thread that has locked the handlers, or 0 (see [`super::lock`]).
    pub(super) locker: AtomicU64,
    pub(super) completion_thread: CompletionThread,
    pub(crate) poll_state: PollState,
    /// Buffers of batches.
    pub(super) spares: Arc<BufferPool>,
    /// Pieces of long messages wait for room.
    pub(super) held_up: AtomicBool,
    /// A thread sends what has grown old.
    pub(super) flushing: AtomicBool,
    pub(super) hooks: RwLock<Vec<Hook>>,
    pub(super) gates: RwLock<Vec<Arc<Gate>>>,
    /// What gates hold, messages and completion handlers.
    pub(super) behind_gates: AtomicUsize,
    /// Messages among it: neither handled nor to be waited for by other faces.
    pub(super) set_aside: AtomicU64,
    /// By target.
    pub(super) towards: Sparse<Towards>,
    /// Messages that this rank has sent, without those in the node's rings.
    pub(super) sent: AtomicU64,
    /// Messages that were handled here under the dispatcher's lock.
    pub(super) handled: AtomicU64,
    /// Those that were handled elsewhere.
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
    /// With these rings, where there are any, in a job of `ranks` ranks.
    pub(crate) fn new(node: Option<ShmTransport>, node_ranks: usize, ranks: usize) -> AmState {
        let incoming = node.as_ref().map(Incoming::new);
        AmState {
            node,
            cma: (0..node_ranks).map(|_| AtomicU8::new(0)).collect(),
            handlers: Handlers::default(),
            places: JobSlots::default(),
            dispatch: Mutex::new(Dispatch { incoming, work: RndvState::default() }),
            tokens: Mutex::default(),
            local: Mutex::default(),
            sent_locally: AtomicUsize::new(0),
            locker: AtomicU64::new(0),
            completion_thread: CompletionThread::default(),
            poll_state: PollState::default(),
            spares: Arc::new(BufferPool::new(16, SPARE_BYTES)),
            held_up: AtomicBool::new(false),
            flushing: AtomicBool::new(false),
            hooks: RwLock::default(),
            gates: RwLock::default(),
            behind_gates: AtomicUsize::new(0),
            set_aside: AtomicU64::new(0),
            towards: Sparse::new(ranks),
            sent: AtomicU64::new(0),
            handled: AtomicU64::new(0),
            handled_on_thread: AtomicU64::new(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_stand_for_one_thing() {
        let mut tokens = Tokens::default();
        let a = tokens.insert(Awaited::Completion(Signal::None));
        let b = tokens.insert(Awaited::Source { signal: Signal::None, _keep: None, target: 3 });
        assert_eq!(sources_to(&tokens, 3), [b]);
        assert!(tokens.remove(a).is_some());
        assert!(tokens.remove(a).is_none());
        let c = tokens.insert(Awaited::Completion(Signal::None));
        assert!(c != a && tokens.get(a).is_none());
        assert!(tokens.remove(0).is_none());
    }
}
