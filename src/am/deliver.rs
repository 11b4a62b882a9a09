//! The target's side: polling, records, long data on its way, answers.
//!
//! A record comes from a ring, from MPI, or from this rank itself, and meets its handler
//! in [`super::land`]. Data that came along is copied there, also where it came in the
//! records that follow ([`Kind::Begin`]); data that waits at the
//! origin is read from its memory, a part with each poll, or asked for in pieces
//! where the system does not allow that; over MPI it follows as a message of its
//! own.

use super::Am;
use super::HandlerId;
use super::gate::What;
use super::land::{Coming, Landing, fatal};
use super::node::Node;
use super::state::{Awaited, State};
use super::wire::{self, Head, Kind, Source};
use crate::anywhere::Span;
use crate::core::handler;
use crate::error::{Result, fail};
use crate::path::cross::{self, Direction};
use crate::watchdog::{self, Event};
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// Bytes that are read from an origin's memory in one poll.
const READ_AT_A_TIME: usize = 1 << 20;
/// Records of one ring that are handled in one poll.
const PER_POLL: usize = 64;
/// A look costs less than the lock under which it is made: so often does a poll look
/// at rings with nothing in them, while there are few.
const LOOKS: usize = 8;
const FEW: usize = 4;

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
    /// Data that was asked for in pieces, by its landing, and the origin's name for it.
    pieces: HashMap<u64, (Coming, u64)>,
    /// By ring: the message whose data comes in the records that follow.
    coming: HashMap<usize, Coming>,
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

impl State {
    /// Messages that this rank has sent.
    pub(crate) fn all_sent(&self) -> u64 {
        let in_rings = self.node.as_ref().map_or(0, Node::messages);
        self.sent.load(Ordering::Acquire) + in_rings
    }

    /// Messages that were handled here.
    pub(crate) fn all_handled(&self) -> u64 {
        self.handled.load(Ordering::Acquire) + self.handled_later.load(Ordering::Acquire)
    }

    /// Sends a record that is no message; never waits.
    pub(super) fn send_record(&self, am: &Am, target: usize, parts: &[&[u8]]) -> Result<()> {
        if target == am.rank() {
            let (head, rest) = wire::split(parts[0])?;
            return self.control(am, target, &head, rest);
        }
        match self.node.as_ref().and_then(|node| Some((node, node.index_of(target)?))) {
            Some((node, index)) => node.send(am, index, parts, (false, false)),
            None => am.send_notice(target, parts),
        }
    }

    /// A record of rank `from` that tells this one something.
    pub(crate) fn control(&self, am: &Am, from: usize, head: &Head, rest: &[u8]) -> Result<()> {
        let token = match head.kind()? {
            Kind::Ask | Kind::Stop => return self.at_gate(am, from, head),
            Kind::Handled => head.token,
            Kind::Left => wire::source(rest)?.0.token,
            kind => fail!(Internal, "{kind:?} is no answer"),
        };
        let awaited = self.tokens.lock().take(token);
        match awaited {
            Some(Awaited::Completion(signal)) | Some(Awaited::Source { signal, .. }) => {
                signal.tell(am);
                Ok(())
            }
            None => fail!(Internal, "an answer to nothing that was asked"),
        }
    }

    /// Handles a record of a ring.
    #[inline]
    fn record(&self, am: &Am, work: &mut Work, index: usize, record: &[u8]) -> Result<()> {
        let (head, rest) = wire::split(record)?;
        let origin = self.node.as_ref().map_or(0, |node| node.rank_of(index));
        match head.kind()? {
            Kind::Whole => {
                let (header, data) = wire::header(&head, rest)?;
                if data.len() as u64 != head.len {
                    fail!(Internal, "rank {origin} sent {} bytes for {}", data.len(), head.len);
                }
                self.arrive_whole(am, origin, &head, header, data)
            }
            Kind::Long => {
                let (source, rest) = wire::source(rest)?;
                let (header, _) = wire::header(&head, rest)?;
                if let Some(gate) = self.entry(origin, &head)?.held_back_by(origin, header) {
                    let header = header.to_vec();
                    let what = What::Long { head, header, index, source };
                    return self.hold(am, gate, origin, what);
                }
                self.begin_long(am, work, index, (&head, header), source, 0)
            }
            Kind::Pull => {
                let (source, _) = wire::source(rest)?;
                let len = head.len as usize;
                work.streams.push(Stream { index, source, len, landing: head.token, sent: 0 });
                Ok(())
            }
            Kind::Piece => self.piece(am, work, origin, &head, rest),
            Kind::Begin => {
                let (header, _) = wire::header(&head, rest)?;
                let coming = self.arrive_open(am, origin, &head, header)?;
                let coming = Coming::new(coming, head.len as usize);
                if work.coming.insert(index, coming).is_some() {
                    fail!(Internal, "rank {origin} began a message within another");
                }
                Ok(())
            }
            Kind::Next => {
                let Some(coming) = work.coming.get_mut(&index) else {
                    fail!(Internal, "rank {origin} sent data that belongs to no message");
                };
                if !coming.take(rest)? {
                    return Ok(());
                }
                match work.coming.remove(&index) {
                    Some(coming) => self.finish(am, coming.whole()),
                    None => Ok(()),
                }
            }
            Kind::Handled | Kind::Left | Kind::Ask | Kind::Stop => {
                self.control(am, origin, &head, rest)
            }
        }
    }

    /// Has the data of a long message of the node come. `number` is its gate's for it, or 0.
    pub(super) fn begin_long(
        &self,
        am: &Am,
        work: &mut Work,
        index: usize,
        (head, header): (&Head, &[u8]),
        source: Source,
        number: u64,
    ) -> Result<()> {
        let origin = self.node.as_ref().map_or(0, |node| node.rank_of(index));
        let crosses = self.may_cross(am, index);
        let mut landing = match crosses {
            true => self.arrive(am, origin, head, header)?,
            false => self.arrive_open(am, origin, head, header)?,
        };
        landing.number = number;
        if landing.len == 0 {
            self.left(am, origin, source)?;
            return self.finish(am, landing);
        }
        if crosses {
            work.reads.push(Read { landing, index, source, done: 0 });
            return Ok(());
        }
        work.last_landing += 1;
        let name = work.last_landing;
        let coming = Coming::new(landing, head.len as usize);
        work.pieces.insert(name, (coming, source.token));
        let head = Head { token: name, len: head.len, ..Head::new(Kind::Pull) };
        let parts = [bytemuck::bytes_of(&head), bytemuck::bytes_of(&source)];
        self.send_record(am, origin, &parts)
    }

    /// Tells the origin that its data has left.
    fn left(&self, am: &Am, origin: usize, source: Source) -> Result<()> {
        let head = Head::new(Kind::Left);
        self.send_record(am, origin, &[bytemuck::bytes_of(&head), bytemuck::bytes_of(&source)])
    }

    fn piece(
        &self,
        am: &Am,
        work: &mut Work,
        origin: usize,
        head: &Head,
        bytes: &[u8],
    ) -> Result<()> {
        let Some((coming, _)) = work.pieces.get_mut(&head.token) else {
            fail!(Internal, "rank {origin} sent a piece of a message that is not expected");
        };
        if head.len != coming.come() as u64 {
            fail!(
                Internal,
                "rank {origin} sent the piece at {}, not that at {}",
                head.len,
                coming.come()
            );
        }
        if coming.take(bytes)?
            && let Some((coming, token)) = work.pieces.remove(&head.token)
        {
            self.finish(am, coming.whole())?;
            self.left(am, origin, Source { address: 0, token })?;
        }
        Ok(())
    }

    /// Whether the memory of a rank of the node can be read; found out once.
    pub(crate) fn may_cross(&self, am: &Am, index: usize) -> bool {
        if !am.config.cross_memory {
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
    fn carry_on(&self, am: &Am, work: &mut Work) -> Result<bool> {
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
            // SAFETY: the handler promised a place for all of the data.
            unsafe { am.cross(node, read.index, &[span], Direction::Read) }?;
            read.done += bytes;
            if read.done < read.landing.len {
                n += 1;
                continue;
            }
            let Read { landing, source, .. } = work.reads.remove(n);
            let origin = landing.origin;
            self.finish(am, landing)?;
            self.left(am, origin, source)?;
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
                if !node.try_send(stream.index, &[bytemuck::bytes_of(&head), piece], false)? {
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
    pub(crate) fn poll(&self, am: &Am) -> Result<bool> {
        if self.node.is_none()
            && self.sent_locally.load(Ordering::Relaxed) == 0
            && self.later.is_idle()
            && self.behind_gates.load(Ordering::Relaxed) == 0
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
                        let result = self.record(am, work, index, record);
                        reader.advance();
                        result?;
                    }
                }
                if busy {
                    break;
                }
            }
            if !work.reads.is_empty() || !work.streams.is_empty() {
                busy |= self.carry_on(am, work)?;
            }
            busy |= node.send_all_kept();
        }
        if self.sent_locally.load(Ordering::Relaxed) > 0 {
            busy |= self.run_local(am)?;
        }
        if self.behind_gates.load(Ordering::Acquire) > 0 {
            busy |= self.release(am, work)?;
        }
        drop(dispatch);
        if self.behind_gates.load(Ordering::Relaxed) > 0 && handler::running().is_none() {
            busy |= self.run_jobs(am)?;
        }
        if !am.may_use_threads() && handler::running().is_none() {
            busy |= self.later.run_here(am);
        }
        Ok(busy)
    }

    /// Runs messages that handlers sent to their own rank.
    fn run_local(&self, am: &Am) -> Result<bool> {
        let mut busy = false;
        for _ in 0..PER_POLL {
            let Some(local) = self.local.lock().pop_front() else { break };
            self.sent_locally.fetch_sub(1, Ordering::Relaxed);
            busy = true;
            self.deliver_local(am, local.handler, &local.header, &local.data, local.token)?;
        }
        Ok(busy)
    }

    /// Handles a message of this rank to itself, under the dispatcher's lock.
    pub(super) fn deliver_local(
        &self,
        am: &Am,
        handler: HandlerId,
        header: &[u8],
        data: &[u8],
        token: u64,
    ) -> Result<()> {
        let head = Head::message(Kind::Whole, handler, header.len(), data.len(), token);
        self.arrive_whole(am, am.rank(), &head, header, data)
    }

    /// The dispatcher's lock, if it is free.
    pub(crate) fn try_dispatch(&self) -> Option<impl Sized + '_> {
        self.dispatch.try_lock()
    }

    /// Nobody polls any more: what came while others thought so is handled.
    pub(crate) fn look_again(&self, am: &Am) {
        while self.rings() == Rings::Ready {
            match self.poll(am) {
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
            let locked = self.locker.load(Ordering::Acquire) != 0;
            return if locked { Rings::Empty } else { Rings::Held };
        };
        let in_ring = match (&self.node, &dispatch.incoming) {
            (Some(node), Some(incoming)) => incoming.ready(node),
            _ => false,
        };
        let local = self.sent_locally.load(Ordering::Relaxed) > 0;
        if in_ring || local || self.gates_are_ready() { Rings::Ready } else { Rings::Empty }
    }
}
