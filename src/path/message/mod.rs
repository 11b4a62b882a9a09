//! Two-sided messages, served by the target's progress engine.
//!
//! | module | owns |
//! |---|---|
//! | [`wire`] | the form of a request |
//! | [`am`] | active messages on this channel |
//! | [`inbox`] | receives that wait for requests |
//! | [`send`] | the origin: requests, flow control, answers |
//! | [`blocks`] | the origin: many small blocks in one request |
//! | [`serve`] | the target: carrying requests out, in order |
//!
//! Requests travel on one communicator with one tag, into receives that are posted
//! in advance ([`inbox`]), so the requests of one origin are handled in the order in which they
//! were sent. Answers and bytes that go straight into place travel on a second
//! communicator, each with a tag (*slot*) that the origin chose.
//!
//! **Bounds.** An origin has at most `PORTOLAN_FLIGHT_BYTES` and
//! [`MOST_IN_FLIGHT`] requests unconfirmed at a target; beyond that it waits,
//! and serves others while it does. The target confirms every [`CONFIRM_EVERY`]
//! requests or quarter of the bytes, and when asked. So a flood of puts holds a
//! bounded amount of memory at the target.
//!
//! **No deadlock.** Serving never waits: answers are started and polled, and a
//! request whose bytes are still on their way holds back only the later
//! requests of the same origin.

pub mod am;
pub mod blocks;
pub mod inbox;
pub mod send;
pub mod serve;
pub mod wire;

use self::inbox::Inbox;
use crate::error::Result;
use crate::layout::Shape;
use crate::memory::buffers::Buffers;
use crate::memory::slab::Slab;
use crate::mpi::{Comm, Request, Requests, p2p};
use crate::mutation::{self, Fault};
use crate::peer::Tally;
use crate::runtime::Engine;
use crate::watchdog::{self, Event};
use parking_lot::Mutex;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};

/// Most unconfirmed requests from one origin to one target.
pub const MOST_IN_FLIGHT: u64 = 512;
/// The target confirms at least every so many requests.
pub const CONFIRM_EVERY: u64 = 32;
/// Messages taken in one poll.
const PER_POLL: usize = 32;

/// An address that an outstanding request names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Address(pub *mut u8);

// SAFETY: an address is a number; those who dereference it answer for that.
unsafe impl Send for Address {}

/// A number that an answer will bring.
#[derive(Debug, Default)]
pub(crate) struct Number {
    pub tally: Tally,
    pub value: AtomicI64,
}

/// What to do when a request completes.
#[derive(Debug)]
pub(crate) enum Action {
    /// A message of ours has left: its buffer is free.
    Sent(Vec<u8>),
    /// A message from memory that others own has left.
    Left { tally: Option<Arc<Tally>>, _keep: Option<Arc<Slab>> },
    /// An answer has come into its place.
    Answer { tally: Arc<Tally>, bytes: usize },
    /// An answer has come and is to be spread along a shape.
    Spread { tally: Arc<Tally>, buffer: Vec<u8>, to: Address, shape: Shape },
    /// An answer has come and is to be spread over blocks.
    Scatter { tally: Arc<Tally>, buffer: Vec<u8>, to: Vec<(Address, usize)> },
    /// A number has come.
    Value { number: Arc<Number>, buffer: Vec<u8> },
    /// A long request has come.
    Inbound { source: usize, ticket: u64, buffer: Vec<u8>, bytes: usize },
    /// Bytes of a put have come into place.
    Landed { source: usize, ticket: u64, _slab: Arc<Slab>, cost: u64 },
    /// Data of a long active message has left.
    AmLeft { leaving: Arc<Mutex<Option<am::Leaving>>> },
    /// Data of one has come into place.
    AmData { source: usize, ticket: Option<u64>, cost: u64, arriving: Box<am::Arriving> },
    /// A window operation is done.
    Rma { tally: Arc<Tally>, _buffer: Option<Arc<Vec<u8>>> },
}

/// A request of an origin that cannot be handled yet.
#[derive(Debug)]
struct Waiting {
    ticket: u64,
    /// The request, once it is here; `None` while its own bytes or those that
    /// it announced are on their way.
    ready: Option<(Vec<u8>, usize)>,
}

/// What an origin has asked of this rank.
#[derive(Debug, Default)]
struct Origin {
    waiting: VecDeque<Waiting>,
    handled: u64,
    handled_bytes: u64,
    confirmed: u64,
    confirmed_bytes: u64,
}

#[derive(Debug, Default)]
struct Core {
    requests: Requests<Action>,
    /// By rank.
    origins: Vec<Origin>,
    next_ticket: u64,
    inbox: Inbox,
    /// Origins whose first request is here, but waits for the dispatcher.
    stalled: Vec<usize>,
    /// Long active messages that wait for it: source, ticket, cost.
    landed: Vec<(usize, Option<u64>, u64, Box<am::Arriving>)>,
}

/// The message path of this rank.
#[derive(Debug)]
pub struct Messenger {
    requests: Comm,
    data: Comm,
    core: Mutex<Core>,
    /// Requests that were started since the last poll.
    fresh: Mutex<Vec<(Request, Action)>>,
    /// Whether there are any.
    any_fresh: AtomicBool,
    buffers: Buffers,
    next_slot: AtomicU32,
}

/// Buffers kept for reuse, and their bytes together.
const KEEP_BUFFERS: usize = 64;
const KEEP_BYTES: usize = 4 << 20;
/// Those that a thread keeps for itself, so that small messages need no lock for them.
const KEEP_AT_HAND: usize = 4;
/// Longest of these.
const SMALL_BUFFER: usize = 4 << 10;

thread_local! {
    static AT_HAND: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

impl Messenger {
    /// Makes the two communicators. Collective.
    pub fn new(world: &Comm) -> Result<Messenger> {
        let requests = world.dup()?;
        let inbox = Inbox::open(&requests)?;
        Ok(Messenger {
            requests,
            data: world.dup()?,
            core: Mutex::new(Core {
                origins: (0..world.size()).map(|_| Origin::default()).collect(),
                inbox,
                ..Core::default()
            }),
            fresh: Mutex::new(Vec::new()),
            any_fresh: AtomicBool::new(false),
            buffers: Buffers::new(KEEP_BUFFERS, KEEP_BYTES),
            next_slot: AtomicU32::new(0),
        })
    }

    /// Frees the communicators. Collective; nothing may be outstanding.
    pub fn free(&self) -> Result<()> {
        self.core.lock().inbox.close()?;
        self.requests.free()?;
        self.data.free()
    }

    /// An empty buffer with room for `bytes`.
    fn buffer(&self, bytes: usize) -> Vec<u8> {
        match AT_HAND.with_borrow_mut(Vec::pop) {
            Some(mut buffer) => {
                buffer.clear();
                buffer.reserve(bytes);
                buffer
            }
            None => self.buffers.take(bytes),
        }
    }

    fn recycle(&self, buffer: Vec<u8>) {
        let kept = buffer.capacity() <= SMALL_BUFFER
            && AT_HAND.with_borrow(|at_hand| at_hand.len() < KEEP_AT_HAND);
        if kept {
            AT_HAND.with_borrow_mut(|at_hand| at_hand.push(buffer));
        } else {
            self.buffers.give(buffer);
        }
    }

    /// A tag for an answer (`even`) and for bytes that follow (`even + 1`).
    /// Should a tag come round while its last use is outstanding, MPI's order of
    /// matching still pairs them rightly.
    fn slot(&self) -> u32 {
        self.next_slot.fetch_add(1, Ordering::Relaxed) % 16_000 * 2
    }

    /// Hands a started request over to the next poll, unless it is done already.
    pub(crate) fn started(&self, mut request: Request, action: Action) -> Result<()> {
        if let Action::Sent(buffer) = action {
            if request.test()? {
                self.recycle(buffer);
            } else {
                self.keep(request, Action::Sent(buffer));
            }
            return Ok(());
        }
        self.keep(request, action);
        Ok(())
    }

    fn keep(&self, request: Request, action: Action) {
        let mut fresh = self.fresh.lock();
        fresh.push((request, action));
        self.any_fresh.store(true, Ordering::Relaxed);
    }

    /// How many requests are outstanding, for reports.
    pub fn outstanding(&self) -> usize {
        self.fresh.lock().len() + self.core.try_lock().map_or(0, |c| c.requests.len())
    }

    /// Completes own requests and serves others; true when anything happened.
    /// Where another thread is at it, returns at once.
    pub fn poll(&self, engine: &Engine) -> Result<bool> {
        let Some(mut core) = self.core.try_lock() else {
            return Ok(false);
        };
        let core = &mut *core;
        let mut busy = false;
        if self.any_fresh.load(Ordering::Relaxed) {
            let mut fresh = self.fresh.lock();
            self.any_fresh.store(false, Ordering::Relaxed);
            for (request, action) in fresh.drain(..) {
                core.requests.push(request, action);
            }
        }
        if !core.requests.is_empty() {
            let mut done = Vec::new();
            core.requests.poll(&mut done)?;
            busy |= !done.is_empty();
            for completed in done {
                let answer = !matches!(completed.tag, Action::Sent(_) | Action::Left { .. });
                watchdog::note(if answer { Event::Answer } else { Event::Left }, usize::MAX);
                self.complete(engine, core, completed.tag, completed.bytes)?;
            }
        }
        if !core.landed.is_empty() {
            self.am_finish_landed(engine, core)?;
        }
        for source in std::mem::take(&mut core.stalled) {
            self.drain(engine, core, source)?;
        }
        for _ in 0..PER_POLL {
            let Some(arrived) = core.inbox.take()? else { break };
            busy = true;
            watchdog::note(Event::Request, arrived.source);
            let message = &arrived.buffer[..arrived.bytes];
            let accepted = self.accept(engine, core, arrived.source, message);
            core.inbox.give_back(&self.requests, arrived.buffer)?;
            accepted?;
            // Another look costs a call of MPI, and this may be what the caller waits for.
            if core.requests.is_empty() {
                break;
            }
        }
        if !busy {
            core.inbox.post_all(&self.requests)?;
        }
        Ok(busy)
    }

    fn complete(&self, engine: &Engine, core: &mut Core, action: Action, got: usize) -> Result<()> {
        match action {
            Action::Sent(buffer) => self.recycle(buffer),
            Action::Left { tally, .. } => {
                if let Some(tally) = tally {
                    tally.end();
                }
            }
            Action::Answer { tally, bytes } => send::answered(&tally, got, bytes),
            Action::Spread { tally, buffer, to, shape } => {
                let bytes = shape.bytes();
                if got == bytes {
                    // SAFETY: the get that posted this keeps its destination
                    // valid until the tally says that it is done.
                    unsafe { send::spread(&buffer, to, &shape) };
                }
                self.recycle(buffer);
                send::answered(&tally, got, bytes);
            }
            Action::Scatter { tally, buffer, to } => {
                let bytes = to.iter().map(|(_, n)| n).sum();
                if got == bytes {
                    // SAFETY: as for Spread.
                    unsafe { blocks::scatter(&buffer, &to) };
                }
                self.recycle(buffer);
                send::answered(&tally, got, bytes);
            }
            Action::Value { number, buffer } => {
                send::number_arrived(&number, &buffer, got);
                self.recycle(buffer);
            }
            Action::Inbound { source, ticket, buffer, bytes } => {
                let origin = &mut core.origins[source];
                if let Some(w) = origin.waiting.iter_mut().find(|w| w.ticket == ticket) {
                    w.ready = Some((buffer, bytes));
                }
                self.drain(engine, core, source)?;
            }
            Action::Landed { source, ticket, cost, .. } => {
                let origin = &mut core.origins[source];
                debug_assert_eq!(origin.waiting.front().map(|w| w.ticket), Some(ticket));
                origin.waiting.pop_front();
                self.handled(engine, core, source, cost, false)?;
                self.drain(engine, core, source)?;
            }
            Action::AmLeft { leaving } => self.am_left(engine, leaving),
            Action::AmData { source, ticket, cost, arriving } => {
                self.am_data(engine, core, source, ticket, cost, arriving)?
            }
            Action::Rma { tally, .. } => tally.end(),
        }
        Ok(())
    }

    /// Handles a request, or queues it behind what the same origin sent before.
    fn accept(
        &self,
        engine: &Engine,
        core: &mut Core,
        source: usize,
        message: &[u8],
    ) -> Result<()> {
        if message.first() == Some(&(wire::Kind::Follows as u8)) {
            return self.await_request(core, source, message);
        }
        if core.origins[source].waiting.is_empty() || mutation::is(Fault::OutOfOrder) {
            if let Some(served) = self.try_serve(engine, core, source, message) {
                return served;
            }
            core.stalled.push(source);
        }
        let ticket = core.next_ticket;
        core.next_ticket += 1;
        let ready = Some((message.to_vec(), message.len()));
        core.origins[source].waiting.push_back(Waiting { ticket, ready });
        Ok(())
    }

    /// A long request follows: receives it.
    fn await_request(&self, core: &mut Core, source: usize, message: &[u8]) -> Result<()> {
        let (header, _, _) = wire::decode(message)?;
        let bytes = header.operand[0] as usize;
        let ticket = core.next_ticket;
        core.next_ticket += 1;
        let mut buffer = self.buffer(bytes);
        buffer.resize(bytes, 0);
        let (to, tag) = (buffer.as_mut_ptr(), header.slot as i32);
        // SAFETY: the buffer travels with the action and is not touched until
        // the receive has completed; moving a Vec does not move its bytes.
        let request = unsafe { p2p::irecv(&self.data, to, bytes, Some(source), tag) }?;
        core.origins[source].waiting.push_back(Waiting { ticket, ready: None });
        core.requests.push(request, Action::Inbound { source, ticket, buffer, bytes });
        Ok(())
    }

    /// Handles a request; `None` where it needs the dispatcher and another thread has
    /// it.
    fn try_serve(
        &self,
        engine: &Engine,
        core: &mut Core,
        source: usize,
        message: &[u8],
    ) -> Option<Result<()>> {
        if !am::needs_dispatcher(message) {
            return Some(self.serve(engine, core, source, message));
        }
        let am = match engine.am() {
            Ok(am) => am,
            Err(error) => return Some(Err(error)),
        };
        let _dispatch = am.try_dispatch()?;
        Some(match self.serve_am(engine, core, source, message) {
            Ok(true) => self.handled(engine, core, source, message.len() as u64, false),
            other => other.map(|_| ()),
        })
    }

    /// Handles queued requests of an origin as far as they are here.
    fn drain(&self, engine: &Engine, core: &mut Core, source: usize) -> Result<()> {
        loop {
            let origin = &mut core.origins[source];
            let Some(first) = origin.waiting.front_mut() else {
                return Ok(());
            };
            let Some((buffer, bytes)) = first.ready.take() else {
                return Ok(());
            };
            let Some(waiting) = origin.waiting.pop_front() else { return Ok(()) };
            match self.try_serve(engine, core, source, &buffer[..bytes]) {
                Some(served) => served?,
                None => {
                    let ready = Some((buffer, bytes));
                    let origin = &mut core.origins[source];
                    origin.waiting.push_front(Waiting { ready, ..waiting });
                    core.stalled.push(source);
                    return Ok(());
                }
            }
            self.recycle(buffer);
        }
    }
}
