//! Two-sided messages, served by the target's progress engine.
//!
//! Requests travel on one communicator with one tag, into receives that are posted in advance
//! ([`inbox`]), so those of one origin are handled in order. Answers, and bytes that are received
//! in place, travel on a second communicator, each with a tag that the origin chose.
//!
//! **Bounds.** An origin has at most `PORTOLAN_FLIGHT_BYTES` bytes and [`MOST_IN_FLIGHT`] requests
//! unconfirmed at a target. Beyond that it waits, and serves other ranks meanwhile. The target
//! confirms after every [`CREDIT_EVERY`] requests, after every quarter of the bytes, and on demand.
//! The last request before a fence carries the demand if the origin has predicted the fence
//! ([`crate::core::peer::Sent`]); otherwise a separate request does.
//!
//! **No deadlock.** Serving never waits: answers are started and polled. A request whose bytes are
//! still in flight delays only the later requests of the same origin.

mod blocks;
pub mod data;
pub mod inbox;
mod prepared;
pub mod send;
pub mod serve;
pub mod service;
mod transport;
pub mod wire;

use self::inbox::Inbox;
use self::service::{Served, Services};
use crate::collective;
use crate::core::peer::CompletionCounter;
use crate::memory::arena::Arena;
use crate::memory::pool::Pool;
use crate::memory::runs::{Direction, Run, beside};
use crate::memory::sparse::Sparse;
use crate::mpi::{Comm, Request, Requests};
use crate::path::{Paths, kernel};
use parking_lot::Mutex;
use portolan_base::error::Result;
use portolan_base::layout::Shape;
use portolan_base::mutation::{self, Fault};
use portolan_base::trace;
use portolan_base::wait::watchdog::{self, ProgressEvent};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};

/// Maximum number of unconfirmed requests from one origin to one target.
pub const MOST_IN_FLIGHT: u64 = 512;
/// The target returns credits at least once per this many requests.
pub(crate) const CREDIT_EVERY: u64 = 32;
const PER_POLL: usize = 32;

#[derive(Debug, Clone, Copy)]
pub struct Address(pub *mut u8);

// SAFETY: only a number here. Each dereference has its own justification.
unsafe impl Send for Address {}

#[derive(Debug, Default)]
pub struct Number {
    pub counter: CompletionCounter,
    pub value: AtomicI64,
}

#[derive(Debug)]
pub enum Action {
    /// A message has left a buffer of this path.
    Sent(Vec<u8>),
    /// A message has left memory of the caller or of a segment.
    Left { counter: Option<Arc<CompletionCounter>>, _keep: Option<Arc<Arena>> },
    /// An answer has arrived in place.
    Answer { counter: Arc<CompletionCounter>, bytes: usize },
    /// An answer has arrived in a buffer, to be copied along a shape.
    Spread { counter: Arc<CompletionCounter>, buffer: Vec<u8>, to: Address, shape: Shape },
    /// An answer has arrived in a buffer, to be copied to a list of blocks.
    Scatter { counter: Arc<CompletionCounter>, buffer: Vec<u8>, to: Vec<Run> },
    /// A number has arrived.
    Value { number: Arc<Number>, buffer: Vec<u8> },
    /// A long request has arrived.
    Inbound { source: usize, ticket: u64, buffer: Vec<u8>, bytes: usize },
    /// A part of the data of a service has been sent.
    DataLeft(Arc<Mutex<data::Leaving>>),
    /// A part of the data that follows a request has arrived in place.
    Data(Box<data::Receiving>),
    /// A window operation is complete.
    Rma(Arc<CompletionCounter>),
}

impl Action {
    /// Whether MPI moves many bytes, in calls of this rank.
    fn is_long(&self) -> bool {
        match self {
            Action::Left { .. } | Action::Inbound { .. } => true,
            Action::DataLeft(_) | Action::Data(_) => true,
            Action::Answer { bytes, .. } => *bytes >= send::IN_PLACE,
            _ => false,
        }
    }
}

#[derive(Debug)]
struct WaitingRequest {
    ticket: u64,
    /// The request and its length in bytes. `None` while its bytes or data are in flight.
    ready: Option<(Vec<u8>, usize)>,
}

#[derive(Debug, Default)]
struct Origin {
    waiting: VecDeque<WaitingRequest>,
    handled: u64,
    handled_bytes: u64,
    confirmed: u64,
    confirmed_bytes: u64,
}

#[derive(Debug, Default)]
struct ServiceState {
    requests: Requests<Action>,
    /// Number of these that are long.
    long: usize,
    origins: Sparse<Origin>,
    next_ticket: u64,
    inbox: Inbox,
    in_stream: bool,
    /// End of the last poll, if calls are observed. Requests found later arrived after it.
    polled: Option<u64>,
    /// Origins whose first queued request is ready, but whose service another thread blocks.
    stalled: Vec<usize>,
    /// Data that has arrived, but whose service another thread blocks.
    arrived: Vec<data::Receiving>,
}

#[derive(Debug)]
pub struct TwoSided {
    requests: Comm,
    data: Comm,
    serving: Mutex<ServiceState>,
    services: Services,
    fresh: Mutex<Vec<(Request, Action)>>,
    any_fresh: AtomicBool,
    /// Whether long messages were in flight at the end of the last poll.
    has_long: AtomicBool,
    buffers: Pool,
    next_tag: AtomicU32,
}

const KEEP_BUFFERS: usize = 64;
const KEEP_BYTES: usize = 4 << 20;

impl ServiceState {
    fn push(&mut self, request: Request, action: Action) {
        self.long += usize::from(action.is_long());
        self.requests.push(request, action);
    }
}

impl TwoSided {
    /// Collective.
    pub fn new(world: &Comm) -> Result<TwoSided> {
        let requests = collective::dup(world)?;
        let inbox = Inbox::open(&requests)?;
        Ok(TwoSided {
            requests,
            data: collective::dup(world)?,
            serving: Mutex::new(ServiceState {
                origins: Sparse::new(world.size()),
                inbox,
                ..ServiceState::default()
            }),
            services: serve::services(),
            fresh: Mutex::new(Vec::new()),
            any_fresh: AtomicBool::new(false),
            has_long: AtomicBool::new(false),
            buffers: Pool::new(KEEP_BUFFERS, KEEP_BYTES),
            next_tag: AtomicU32::new(0),
        })
    }

    pub fn services(&self) -> &Services {
        &self.services
    }

    /// Collective. Nothing may be outstanding.
    pub fn free(&self) -> Result<()> {
        self.serving.lock().inbox.close()?;
        self.requests.free()?;
        self.data.free()
    }

    pub fn buffer(&self, bytes: usize) -> Vec<u8> {
        self.buffers.take(bytes)
    }

    fn recycle(&self, buffer: Vec<u8>) {
        self.buffers.give(buffer);
    }

    /// Returns an even tag for an answer; the next one is for data that follows a request. Tags are
    /// reused: MPI matches messages with the same tag in order, so outstanding uses do not matter.
    fn tag(&self) -> u32 {
        self.next_tag.fetch_add(1, Ordering::Relaxed) % 16_000 * 2
    }

    /// Passes a started request to the next poll, unless it is a complete send.
    #[inline]
    pub fn started(&self, mut request: Request, action: Action) -> Result<()> {
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

    pub fn outstanding(&self) -> usize {
        self.fresh.lock().len() + self.serving.try_lock().map_or(0, |s| s.requests.len())
    }

    /// Whether long messages are in flight, which MPI moves in calls of this rank.
    pub(crate) fn has_long_messages(&self) -> bool {
        self.has_long.load(Ordering::Relaxed)
    }

    /// Returns whether anything happened, and false if another thread is polling.
    pub fn poll(&self, paths: &Paths) -> Result<bool> {
        let Some(mut serving) = self.serving.try_lock() else {
            return Ok(false);
        };
        let serving = &mut *serving;
        let mut busy = false;
        if self.any_fresh.load(Ordering::Relaxed) {
            let mut fresh = self.fresh.lock();
            self.any_fresh.store(false, Ordering::Relaxed);
            for (request, action) in fresh.drain(..) {
                serving.push(request, action);
            }
        }
        // One MPI call, which takes about the time of a small message, tests all requests.
        let mut done = Vec::new();
        let message = serving.requests.poll(serving.inbox.next(), &mut done)?;
        let mut next = message.map(|message| serving.inbox.received(message));
        busy |= !done.is_empty();
        for completed in done {
            let answer = !matches!(completed.tag, Action::Sent(_) | Action::Left { .. });
            watchdog::note(
                if answer { ProgressEvent::Answer } else { ProgressEvent::Left },
                usize::MAX,
            );
            serving.long -= usize::from(completed.tag.is_long());
            self.complete(paths, serving, completed.tag, completed.bytes)?;
        }
        for receiving in std::mem::take(&mut serving.arrived) {
            self.offer(paths, serving, receiving)?;
        }
        for source in std::mem::take(&mut serving.stalled) {
            self.drain(paths, serving, source)?;
        }
        let mut taken = 0;
        while let Some(arrived) = next.take() {
            busy = true;
            taken += 1;
            watchdog::note(ProgressEvent::Request, arrived.source);
            let message = &arrived.buffer[..arrived.bytes];
            let accepted = self.accept(paths, serving, arrived.source, message);
            serving.inbox.give_back(&self.requests, arrived.buffer)?;
            accepted?;
            // Each further check costs an MPI call, and the caller may wait for the request just
            // handled. So continue only if own requests are outstanding or the last poll found one.
            let last = serving.requests.is_empty() && !serving.in_stream;
            if last || taken == PER_POLL {
                break;
            }
            next = serving.inbox.take()?;
        }
        serving.in_stream = taken > 0;
        if self.has_long.load(Ordering::Relaxed) != (serving.long > 0) {
            self.has_long.store(serving.long > 0, Ordering::Relaxed);
        }
        if paths.is_observed() {
            serving.polled = paths.observer().begin();
        }
        if !busy {
            serving.inbox.post_all(&self.requests)?;
        }
        Ok(busy)
    }

    fn complete(
        &self,
        paths: &Paths,
        serving: &mut ServiceState,
        action: Action,
        got: usize,
    ) -> Result<()> {
        match action {
            Action::Sent(buffer) => self.recycle(buffer),
            Action::Left { counter, .. } => {
                if let Some(counter) = counter {
                    counter.end();
                }
            }
            Action::Answer { counter, bytes } => send::answered(&counter, got, bytes),
            Action::Spread { counter, buffer, to, shape } => {
                let bytes = shape.bytes();
                if got == bytes {
                    // SAFETY: the caller keeps the destination valid until the counter is done.
                    unsafe { send::spread(&buffer, to, &shape) };
                }
                self.recycle(buffer);
                send::answered(&counter, got, bytes);
            }
            Action::Scatter { counter, buffer, to } => {
                let bytes = to.iter().map(|run| run.len).sum();
                if got == bytes {
                    let spans = beside(to, buffer.as_ptr() as usize);
                    // SAFETY: the caller keeps the blocks valid until the counter is done.
                    unsafe { kernel::copy_spans(spans, Direction::Put) };
                }
                self.recycle(buffer);
                send::answered(&counter, got, bytes);
            }
            Action::Value { number, buffer } => {
                send::number_arrived(&number, &buffer, got);
                self.recycle(buffer);
            }
            Action::Inbound { source, ticket, buffer, bytes } => {
                let origin = &mut serving.origins[source];
                if let Some(w) = origin.waiting.iter_mut().find(|w| w.ticket == ticket) {
                    w.ready = Some((buffer, bytes));
                }
                self.drain(paths, serving, source)?;
            }
            Action::DataLeft(leaving) => self.data_left(leaving)?,
            Action::Data(receiving) => self.data_came(paths, serving, receiving)?,
            Action::Rma(counter) => counter.end(),
        }
        Ok(())
    }

    /// Handles a request, or queues it after earlier requests of the same origin.
    fn accept(
        &self,
        paths: &Paths,
        serving: &mut ServiceState,
        source: usize,
        message: &[u8],
    ) -> Result<()> {
        if message.first() == Some(&(wire::RequestKind::Announce as u8)) {
            return self.await_request(serving, source, message);
        }
        if serving.origins[source].waiting.is_empty() || mutation::is(Fault::OutOfOrder) {
            if let Some(served) = self.try_serve(paths, serving, source, message) {
                return served;
            }
            serving.stalled.push(source);
        }
        let ticket = serving.next_ticket;
        serving.next_ticket += 1;
        let ready = Some((message.to_vec(), message.len()));
        serving.origins[source].waiting.push_back(WaitingRequest { ticket, ready });
        Ok(())
    }

    fn await_request(
        &self,
        serving: &mut ServiceState,
        source: usize,
        message: &[u8],
    ) -> Result<()> {
        let (header, _, _) = wire::decode(message)?;
        let bytes = header.operand[0] as usize;
        let ticket = serving.next_ticket;
        serving.next_ticket += 1;
        let (request, buffer) = self.receive(source, header.tag, bytes)?;
        serving.origins[source].waiting.push_back(WaitingRequest { ticket, ready: None });
        serving.push(request, Action::Inbound { source, ticket, buffer, bytes });
        Ok(())
    }

    /// Returns `None` if another thread blocks the service.
    fn try_serve(
        &self,
        paths: &Paths,
        serving: &mut ServiceState,
        source: usize,
        message: &[u8],
    ) -> Option<Result<()>> {
        match self.serve(paths, serving, source, message) {
            Ok(true) => Some(Ok(())),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// Handles a request and records it. Returns false if another thread blocks its service.
    fn serve(
        &self,
        paths: &Paths,
        serving: &mut ServiceState,
        source: usize,
        message: &[u8],
    ) -> Result<bool> {
        let kind = wire::RequestKind::of(message)?;
        let (cost, ack) = (message.len() as u64, wire::asks_for_ack(message));
        let traced = paths.begin_to_serve();
        let served = self.services.of(kind)?.serve(paths, source, kind, message)?;
        if let (Some(traced), Some(kind), false) =
            (traced, kind.traced_as(), matches!(served, Served::Busy))
        {
            trace::count(&paths.observer().always.requests, 1);
            let bytes = wire::moved_bytes(wire::RequestKind::of(message)?, message);
            traced.end(kind, Some(source), bytes, serving.polled);
        }
        match served {
            Served::Busy => return Ok(false),
            Served::Done if kind.is_counted() => {
                self.handled(paths, serving, source, cost, ack)?;
            }
            Served::Done => {}
            Served::Data(incoming) => {
                let ticket = serving.next_ticket;
                serving.next_ticket += 1;
                let waiting = WaitingRequest { ticket, ready: None };
                serving.origins[source].waiting.push_front(waiting);
                let request = data::Awaiting { ticket, cost, ack };
                let receiving = data::Receiving::new(kind, source, incoming, Some(request));
                let (request, action) = self.receive_next(receiving)?;
                serving.push(request, action);
            }
        }
        Ok(true)
    }

    /// Handles the queued requests of an origin, up to the first that is not ready.
    fn drain(&self, paths: &Paths, serving: &mut ServiceState, source: usize) -> Result<()> {
        loop {
            let origin = &mut serving.origins[source];
            let Some(first) = origin.waiting.front_mut() else {
                return Ok(());
            };
            let Some((buffer, bytes)) = first.ready.take() else {
                return Ok(());
            };
            let Some(waiting) = origin.waiting.pop_front() else { return Ok(()) };
            match self.try_serve(paths, serving, source, &buffer[..bytes]) {
                Some(served) => served?,
                None => {
                    let ready = Some((buffer, bytes));
                    let origin = &mut serving.origins[source];
                    origin.waiting.push_front(WaitingRequest { ready, ..waiting });
                    serving.stalled.push(source);
                    return Ok(());
                }
            }
            self.recycle(buffer);
        }
    }
}
