//! The target's side: handlers, bytes into place, what runs then, answers.
//!
//! A record comes from a ring, from MPI, or from this rank itself. Its handler says
//! where the data goes. Data that came along is copied; data that waits at the
//! origin is read from its memory, a part with each poll, or asked for in pieces
//! where the system does not allow that; over MPI it follows as a message of its
//! own. When it is in place, the message's [`Then`] runs, and the origin is told.

use super::node::Node;
use super::state::{Am, Awaited, Entry, Running};
use super::wire::{self, Head, Kind, Source};
use super::{Accept, Arrival, Destination, HandlerId, Signal, Then};
use crate::error::{Error, ErrorKind, Result, fail};
use crate::path::anywhere::Span;
use crate::path::cross::{self, Direction};
use crate::runtime::Engine;
use crate::watchdog::{self, Event};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

/// Bytes that are read from an origin's memory in one poll.
const READ_AT_A_TIME: usize = 1 << 20;
/// Records of one ring that are handled in one poll.
const PER_POLL: usize = 64;
/// A look costs less than the lock under which it is made: so often does a poll look
/// at rings with nothing in them, while there are few.
const LOOKS: usize = 8;
const FEW: usize = 4;

/// A message whose data is on its way.
#[derive(Debug)]
pub struct Landing {
    /// Where it comes from.
    pub origin: usize,
    /// Where the data goes.
    pub to: *mut u8,
    /// Bytes of it.
    pub len: usize,
    name: &'static str,
    token: u64,
    buffer: Vec<u8>,
    then: Then,
}

// SAFETY: the address is used by the thread that holds the landing; the handler that
// gave it promised that it stays valid.
unsafe impl Send for Landing {}

/// Data that is read from its origin's memory.
#[derive(Debug)]
struct Read {
    landing: Landing,
    index: usize,
    source: Source,
    done: usize,
}

/// Data that a target has asked for in pieces.
#[derive(Debug)]
struct Stream {
    index: usize,
    source: Source,
    len: usize,
    landing: u64,
    sent: usize,
}

/// Long messages under way, on either side.
#[derive(Debug, Default)]
pub struct Work {
    reads: Vec<Read>,
    streams: Vec<Stream>,
    /// Landings of data that comes in pieces, and how much of it has come.
    pieces: HashMap<u64, (Landing, usize, u64)>,
    last_landing: u64,
}

/// What a thread finds that would sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rings {
    /// Nothing.
    Empty,
    /// Something to handle.
    Ready,
    /// Another thread handles what there is, and looks again when it is done.
    Held,
}

/// An error of a handler ends the job: the origin counts on the message.
#[cold]
fn fatal(error: &Error) -> ! {
    log::error!("{error}");
    crate::mpi::init::abort(error.kind().code())
}

#[inline]
fn guarded<R>(name: &'static str, body: impl FnOnce() -> Result<R>) -> R {
    let _running = Running::enter(name);
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => {
            let text = format!("the handler {name} failed: {}", error.detail());
            fatal(&Error::new(error.kind(), text))
        }
        Err(panic) => {
            let text = panic
                .downcast_ref::<&str>()
                .map(|s| (*s).to_string())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_default();
            fatal(&Error::new(ErrorKind::Internal, format!("the handler {name} panicked: {text}")))
        }
    }
}

impl Signal {
    /// Tells whoever waits.
    pub(crate) fn tell(self, engine: &Engine) {
        match self {
            Signal::None => {}
            Signal::Tally(tally) => tally.end(),
            Signal::Count(counter) => {
                // SAFETY: who made the signal vouches for the counter's life.
                unsafe { (*counter).fetch_add(1, Ordering::Release) };
            }
            Signal::Call(call) => {
                // Others may need the thread, and it may hold their lock.
                let _running = Running::enter("a completion signal");
                call(engine);
            }
        }
    }
}

impl Am {
    /// Runs the header handler of a message that came with its data, and what follows.
    #[inline]
    pub(crate) fn arrive_whole(
        &self,
        engine: &Engine,
        origin: usize,
        head: &Head,
        header: &[u8],
        data: &[u8],
    ) -> Result<()> {
        let entry = self.entry(origin, head)?;
        let arrival = Arrival { origin, header, len: data.len(), data: Some(data) };
        let accept = guarded(entry.name, || entry.handler.arrive(engine, &arrival));
        match accept {
            Accept { to: Destination::Taken, then: Then::Nothing } => {
                self.handled_here(engine, origin, head.token)
            }
            accept => {
                let landing = self.place(origin, head, entry.name, accept, Some(data))?;
                self.finish(engine, landing)
            }
        }
    }

    #[inline]
    fn entry(&self, origin: usize, head: &Head) -> Result<&Entry> {
        let id = head.handler();
        let Some(entry) = self.handlers.get(id) else {
            fail!(Internal, "rank {origin} sent a message for handler {}, unknown here", id.0);
        };
        if entry.gone.load(Ordering::Relaxed) {
            fail!(State, "rank {origin} sent a message for {}, which is unregistered", entry.name);
        }
        Ok(entry)
    }

    /// Runs the header handler of a message. `None` where the message is finished;
    /// else the landing of the data, which is copied already where it came along.
    pub(crate) fn arrive(
        &self,
        engine: &Engine,
        origin: usize,
        head: &Head,
        header: &[u8],
        data: Option<&[u8]>,
    ) -> Result<Landing> {
        let entry = self.entry(origin, head)?;
        let arrival = Arrival { origin, header, len: head.len as usize, data };
        let accept = guarded(entry.name, || entry.handler.arrive(engine, &arrival));
        self.place(origin, head, entry.name, accept, data)
    }

    /// The landing of a message where its handler wants it.
    fn place(
        &self,
        origin: usize,
        head: &Head,
        name: &'static str,
        accept: Accept,
        data: Option<&[u8]>,
    ) -> Result<Landing> {
        let len = head.len as usize;
        let mut landing = Landing {
            origin,
            to: std::ptr::null_mut(),
            len: 0,
            name,
            token: head.token,
            buffer: Vec::new(),
            then: accept.then,
        };
        match accept.to {
            Destination::Taken => {}
            Destination::At(to) => {
                if to.is_null() && len > 0 {
                    let text = format!("no place for {len} bytes from rank {origin}");
                    guarded(name, || Err::<(), _>(Error::new(ErrorKind::Address, text)));
                }
                (landing.to, landing.len) = (to, len);
                if let Some(data) = data {
                    // SAFETY: the handler promised a place for the data.
                    unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), to, len) };
                }
            }
            Destination::Buffer => match data {
                Some(data) => landing.buffer = data.to_vec(),
                None => {
                    landing.buffer.try_reserve_exact(len).map_err(|_| {
                        Error::new(
                            ErrorKind::Memory,
                            format!("{len} bytes for a message from rank {origin}"),
                        )
                    })?;
                    landing.buffer.resize(len, 0);
                    (landing.to, landing.len) = (landing.buffer.as_mut_ptr(), len);
                }
            },
        }
        Ok(landing)
    }

    /// The data is in place: runs what is to run, and tells the origin.
    pub(crate) fn finish(&self, engine: &Engine, landing: Landing) -> Result<()> {
        let Landing { origin, token, buffer, then, name, .. } = landing;
        match then {
            Then::Nothing => self.handled_here(engine, origin, token),
            Then::Inline(run) => {
                guarded(name, || {
                    run(engine, buffer);
                    Ok(())
                });
                self.handled_here(engine, origin, token)
            }
            Then::Later(run) => {
                let job = Box::new(move |engine: &Engine| {
                    if catch_unwind(AssertUnwindSafe(|| run(engine, buffer))).is_err() {
                        let text = format!("a completion handler of {name} panicked");
                        fatal(&Error::new(ErrorKind::Internal, text));
                    }
                    let told = engine.am().and_then(|am| am.handled_later(engine, origin, token));
                    if let Err(error) = told {
                        fatal(&error);
                    }
                });
                self.later.push(job, engine.may_use_threads())
            }
        }
    }

    /// Counts a message as handled, under the dispatcher's lock, and tells its origin
    /// where that waits.
    #[inline]
    fn handled_here(&self, engine: &Engine, origin: usize, token: u64) -> Result<()> {
        self.tell_handled(engine, origin, token)?;
        // The lock keeps other threads from counting, so that this needs no locked
        // instruction.
        let handled = self.handled.load(Ordering::Relaxed);
        self.handled.store(handled + 1, Ordering::Release);
        Ok(())
    }

    /// The same for a message that a completion thread has handled.
    fn handled_later(&self, engine: &Engine, origin: usize, token: u64) -> Result<()> {
        self.tell_handled(engine, origin, token)?;
        self.handled_later.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    #[inline]
    fn tell_handled(&self, engine: &Engine, origin: usize, token: u64) -> Result<()> {
        if token == 0 {
            return Ok(());
        }
        let head = Head { token, ..Head::new(Kind::Handled) };
        self.send_record(engine, origin, &[bytemuck::bytes_of(&head)])
    }

    /// Messages that this rank has sent.
    pub(super) fn all_sent(&self) -> u64 {
        let in_rings = self.node.as_ref().map_or(0, Node::messages);
        self.sent.load(Ordering::Acquire) + in_rings
    }

    /// Messages that were handled here.
    pub(super) fn all_handled(&self) -> u64 {
        self.handled.load(Ordering::Acquire) + self.handled_later.load(Ordering::Acquire)
    }

    /// Sends a record that is no message; never waits.
    fn send_record(&self, engine: &Engine, target: usize, parts: &[&[u8]]) -> Result<()> {
        if target == engine.rank() {
            let (head, rest) = wire::split(parts[0])?;
            return self.control(engine, &head, rest);
        }
        match self.node.as_ref().and_then(|node| Some((node, node.index_of(target)?))) {
            Some((node, index)) => node.send(engine, index, parts, (false, false)),
            None => engine.messenger()?.am_notice(target, parts),
        }
    }

    /// A record that tells the origin something.
    pub(crate) fn control(&self, engine: &Engine, head: &Head, rest: &[u8]) -> Result<()> {
        let token = match head.kind()? {
            Kind::Handled => head.token,
            Kind::Left => wire::source(rest)?.0.token,
            kind => fail!(Internal, "{kind:?} is no answer"),
        };
        let awaited = self.tokens.lock().take(token);
        match awaited {
            Some(Awaited::Completion(signal)) | Some(Awaited::Source { signal, .. }) => {
                signal.tell(engine);
                Ok(())
            }
            None => fail!(Internal, "an answer to nothing that was asked"),
        }
    }

    /// Handles a record of a ring.
    #[inline]
    fn record(&self, engine: &Engine, work: &mut Work, index: usize, record: &[u8]) -> Result<()> {
        let (head, rest) = wire::split(record)?;
        let origin = self.node.as_ref().map_or(0, |node| node.rank_of(index));
        match head.kind()? {
            Kind::Whole => {
                let (header, data) = wire::header(&head, rest)?;
                if data.len() as u64 != head.len {
                    fail!(Internal, "rank {origin} sent {} bytes for {}", data.len(), head.len);
                }
                self.arrive_whole(engine, origin, &head, header, data)
            }
            Kind::Long => {
                let (source, rest) = wire::source(rest)?;
                let (header, _) = wire::header(&head, rest)?;
                let landing = self.arrive(engine, origin, &head, header, None)?;
                if landing.len == 0 {
                    self.left(engine, origin, source)?;
                    return self.finish(engine, landing);
                }
                if self.may_cross(engine, index) {
                    work.reads.push(Read { landing, index, source, done: 0 });
                    return Ok(());
                }
                work.last_landing += 1;
                let name = work.last_landing;
                work.pieces.insert(name, (landing, 0, source.token));
                let head = Head { token: name, len: head.len, ..Head::new(Kind::Pull) };
                let parts = [bytemuck::bytes_of(&head), bytemuck::bytes_of(&source)];
                self.send_record(engine, origin, &parts)
            }
            Kind::Pull => {
                let (source, _) = wire::source(rest)?;
                let len = head.len as usize;
                work.streams.push(Stream { index, source, len, landing: head.token, sent: 0 });
                Ok(())
            }
            Kind::Piece => self.piece(engine, work, origin, &head, rest),
            Kind::Handled | Kind::Left => self.control(engine, &head, rest),
        }
    }

    /// Tells the origin that its data has left.
    fn left(&self, engine: &Engine, origin: usize, source: Source) -> Result<()> {
        let head = Head::new(Kind::Left);
        self.send_record(engine, origin, &[bytemuck::bytes_of(&head), bytemuck::bytes_of(&source)])
    }

    fn piece(
        &self,
        engine: &Engine,
        work: &mut Work,
        origin: usize,
        head: &Head,
        bytes: &[u8],
    ) -> Result<()> {
        let Some((landing, come, token)) = work.pieces.get_mut(&head.token) else {
            fail!(Internal, "rank {origin} sent a piece of a message that is not expected");
        };
        let offset = head.len as usize;
        if landing.len.checked_sub(offset).is_none_or(|room| room < bytes.len()) {
            fail!(Internal, "rank {origin} sent a piece that leaves its message");
        }
        // SAFETY: the piece lies in the place that the handler gave.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), landing.to.add(offset), bytes.len())
        };
        *come += bytes.len();
        if *come == landing.len {
            let source = Source { address: 0, token: *token };
            if let Some((landing, ..)) = work.pieces.remove(&head.token) {
                self.finish(engine, landing)?;
            }
            self.left(engine, origin, source)?;
        }
        Ok(())
    }

    /// Whether the memory of a rank of the node can be read; found out once.
    pub(crate) fn may_cross(&self, engine: &Engine, index: usize) -> bool {
        if !engine.config.cross_memory {
            return false;
        }
        let Some(node) = &self.node else { return false };
        match self.cross[index].load(Ordering::Relaxed) {
            0 => {
                let (pid, address, expected) = node.process(index);
                let mut mark = 0u64;
                let local = &raw mut mark as usize;
                let span = Span { local, remote: address as usize, bytes: 8 };
                // SAFETY: the local side is the number above.
                let read = unsafe { cross::transfer(pid, &[span], Direction::Read) };
                let allowed = read.is_ok() && mark == expected;
                if !allowed {
                    log::info!("memory of rank {} is not read directly", node.rank_of(index));
                }
                self.cross[index].store(if allowed { 1 } else { 2 }, Ordering::Relaxed);
                allowed
            }
            known => known == 1,
        }
    }

    /// Carries long messages on; true if anything happened.
    fn carry_on(&self, engine: &Engine, work: &mut Work) -> Result<bool> {
        let Some(node) = &self.node else { return Ok(false) };
        let mut busy = !work.reads.is_empty();
        let mut n = 0;
        while n < work.reads.len() {
            let read = &mut work.reads[n];
            let bytes = (read.landing.len - read.done).min(READ_AT_A_TIME);
            let span = Span {
                local: read.landing.to as usize + read.done,
                remote: read.source.address as usize + read.done,
                bytes,
            };
            let (pid, ..) = node.process(read.index);
            // SAFETY: the handler promised a place for all of the data.
            unsafe { cross::transfer(pid, &[span], Direction::Read) }?;
            read.done += bytes;
            if read.done < read.landing.len {
                n += 1;
                continue;
            }
            let Read { landing, source, .. } = work.reads.remove(n);
            let origin = landing.origin;
            self.finish(engine, landing)?;
            self.left(engine, origin, source)?;
        }
        let most = node.longest() - size_of::<Head>();
        for stream in &mut work.streams {
            while stream.sent < stream.len {
                let bytes = (stream.len - stream.sent).min(most);
                let head = Head {
                    token: stream.landing,
                    len: stream.sent as u64,
                    ..Head::new(Kind::Piece)
                };
                // SAFETY: the origin keeps the data until it is told that it has
                // left, which the target tells after the last piece.
                let piece = unsafe {
                    let from = stream.source.address as usize + stream.sent;
                    std::slice::from_raw_parts(from as *const u8, bytes)
                };
                if !node.try_send(stream.index, &[bytemuck::bytes_of(&head), piece])? {
                    break;
                }
                stream.sent += bytes;
                busy = true;
            }
        }
        work.streams.retain(|stream| stream.sent < stream.len);
        self.held_up.store(!work.streams.is_empty(), Ordering::Relaxed);
        Ok(busy)
    }

    /// Handles what is there; true if anything happened. Where another thread is at
    /// it, or this one already, returns at once.
    #[inline]
    pub(crate) fn poll(&self, engine: &Engine) -> Result<bool> {
        if self.node.is_none()
            && self.sent_locally.load(Ordering::Relaxed) == 0
            && self.later.is_idle()
        {
            return Ok(false);
        }
        let Some(mut dispatch) = self.dispatch.try_lock() else { return Ok(false) };
        let super::state::Dispatch { incoming, work } = &mut *dispatch;
        let mut busy = false;
        if let (Some(node), Some(incoming)) = (&self.node, incoming) {
            incoming.look_for_new(node);
            let looks = if incoming.open() <= FEW { LOOKS } else { 1 };
            for _ in 0..looks {
                for n in 0..incoming.open() {
                    let (index, reader) = incoming.ring(n);
                    for i in 0..PER_POLL {
                        let Some(record) = reader.peek() else { break };
                        busy = true;
                        if i == 0 {
                            watchdog::note(Event::Message, node.rank_of(index));
                        }
                        let result = self.record(engine, work, index, record);
                        reader.advance();
                        result?;
                    }
                }
                if busy {
                    break;
                }
            }
            if !work.reads.is_empty() || !work.streams.is_empty() {
                busy |= self.carry_on(engine, work)?;
            }
            busy |= node.send_all_kept();
        }
        if self.sent_locally.load(Ordering::Relaxed) > 0 {
            busy |= self.run_local(engine)?;
        }
        drop(dispatch);
        if !engine.may_use_threads() && super::state::running().is_none() {
            busy |= self.later.run_here(engine);
        }
        Ok(busy)
    }

    /// Runs messages that handlers sent to their own rank.
    fn run_local(&self, engine: &Engine) -> Result<bool> {
        let mut busy = false;
        for _ in 0..PER_POLL {
            let Some(local) = self.local.lock().pop_front() else { break };
            self.sent_locally.fetch_sub(1, Ordering::Relaxed);
            busy = true;
            self.deliver_local(engine, local.handler, &local.header, &local.data, local.token)?;
        }
        Ok(busy)
    }

    /// Handles a message of this rank to itself, under the dispatcher's lock.
    pub(super) fn deliver_local(
        &self,
        engine: &Engine,
        handler: HandlerId,
        header: &[u8],
        data: &[u8],
        token: u64,
    ) -> Result<()> {
        let head = Head::message(Kind::Whole, handler, header.len(), data.len(), token);
        let landing = self.arrive(engine, engine.rank(), &head, header, Some(data))?;
        self.finish(engine, landing)
    }

    /// The dispatcher's lock, if it is free.
    pub(crate) fn try_dispatch(&self) -> Option<impl Sized + '_> {
        self.dispatch.try_lock()
    }

    /// Nobody polls any more: what came while others thought so is handled.
    pub(crate) fn look_again(&self, engine: &Engine) {
        while self.rings() == Rings::Ready {
            match self.poll(engine) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => fatal(&error),
            }
        }
    }

    /// Whether something waits for room in a ring, of which nobody tells.
    pub(crate) fn is_held_up(&self) -> bool {
        self.held_up.load(Ordering::Relaxed) || self.node.as_ref().is_some_and(Node::keeps)
    }

    /// Whether nothing is collected that grows old.
    pub(crate) fn collects_nothing(&self) -> bool {
        self.hooks.read().is_empty() && self.routes.is_empty()
    }

    /// Ends the completion thread, when it has nothing to do any more.
    pub(crate) fn stop(&self) {
        self.later.stop();
    }

    /// What there is to do.
    pub(crate) fn rings(&self) -> Rings {
        let Some(dispatch) = self.dispatch.try_lock() else {
            // A face's lock may be held for long.
            let locked = self.locked.load(Ordering::Acquire);
            return if locked { Rings::Empty } else { Rings::Held };
        };
        let in_ring = match (&self.node, &dispatch.incoming) {
            (Some(node), Some(incoming)) => incoming.ready(node),
            _ => false,
        };
        if in_ring || self.sent_locally.load(Ordering::Relaxed) > 0 {
            Rings::Ready
        } else {
            Rings::Empty
        }
    }
}
