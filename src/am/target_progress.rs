//! The target's side: polling, records, long data on its way, answers.
//!
//! A record comes from a ring, from MPI, or from this rank itself; [`super::handler_dispatch`]
//! runs its handler. Eager data is copied there, also where it comes in fragments in the records
//! that follow ([`RecordKind::EagerFirst`]). Data that waits at the origin is read from its
//! memory, a part with each poll; where the system does not allow that, the target sends a CTS
//! and gets it in fragments. Over MPI it follows as a message of its own.

use super::Am;
use super::HandlerId;
use super::gate::HeldKind;
use super::handler_dispatch::{InboundMessage, Reassembly, fatal};
use super::shm_transport::ShmTransport;
use super::state::{AmState, Awaited};
use super::wire::{self, RecordHead, RecordKind, Source};
use crate::any_memory::Span;
use crate::core::handler;
use crate::error::{Result, fail};
use crate::path::cma::{self, Direction};
use crate::watchdog::{self, Event};
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// Bytes that are read from an origin's memory in one poll.
const READ_AT_A_TIME: usize = 1 << 20;
/// Records of one ring that are handled in one poll.
const PER_POLL: usize = 64;
/// Checking a ring costs less than the lock under which it is done: a poll checks empty rings
/// this often, while there are few of them.
const LOOKS: usize = 8;
const FEW: usize = 4;

/// Data that is read from its origin's memory.
#[derive(Debug)]
struct RndvRead {
    inbound: InboundMessage,
    index: usize,
    source: Source,
    done: usize,
}

/// Data that a target has asked for in pieces.
#[derive(Debug)]
struct RndvSend {
    index: usize,
    source: Source,
    len: usize,
    inbound: u64,
    sent: usize,
}

/// Long messages under way, on either side.
#[derive(Debug, Default)]
pub(crate) struct RndvState {
    reads: Vec<RndvRead>,
    streams: Vec<RndvSend>,
    /// Data that was asked for in pieces, by its inbound message, and the origin's name for it.
    pieces: HashMap<u64, (Reassembly, u64)>,
    /// By ring: the message whose data comes in the records that follow.
    reassembly: HashMap<usize, Reassembly>,
    last_landing: u64,
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

impl AmState {
    /// Messages that this rank has sent.
    pub(crate) fn all_sent(&self) -> u64 {
        let in_rings = self.node.as_ref().map_or(0, ShmTransport::messages);
        self.sent.load(Ordering::Acquire) + in_rings
    }

    /// Messages that were handled here.
    pub(crate) fn all_handled(&self) -> u64 {
        self.handled.load(Ordering::Acquire) + self.handled_on_thread.load(Ordering::Acquire)
    }

    /// Sends a record that is no message; never waits.
    pub(super) fn send_record(&self, am: &Am, target: usize, parts: &[&[u8]]) -> Result<()> {
        if target == am.rank() {
            let (head, rest) = wire::split(parts[0])?;
            return self.control(am, target, &head, rest);
        }
        match self.node.as_ref().and_then(|node| Some((node, node.index_of(target)?))) {
            Some((node, index)) => node.send(am, index, parts, (false, false)),
            None => am.send_control(target, parts),
        }
    }

    /// A record of rank `from` that tells this one something.
    pub(crate) fn control(
        &self,
        am: &Am,
        from: usize,
        head: &RecordHead,
        rest: &[u8],
    ) -> Result<()> {
        let token = match head.kind()? {
            RecordKind::GateFence | RecordKind::GateStop => return self.at_gate(am, from, head),
            RecordKind::Ack => head.token,
            RecordKind::Fin => wire::source(rest)?.0.token,
            kind => fail!(Internal, "{kind:?} is no answer"),
        };
        let awaited = self.tokens.lock().remove(token);
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
    fn record(&self, am: &Am, work: &mut RndvState, index: usize, record: &[u8]) -> Result<()> {
        let (head, rest) = wire::split(record)?;
        let origin = self.node.as_ref().map_or(0, |node| node.rank_of(index));
        match head.kind()? {
            RecordKind::Eager => {
                let (header, data) = wire::header(&head, rest)?;
                if data.len() as u64 != head.len {
                    fail!(Internal, "rank {origin} sent {} bytes for {}", data.len(), head.len);
                }
                self.arrive_eager(am, origin, &head, header, data)
            }
            RecordKind::Rts => {
                let (source, rest) = wire::source(rest)?;
                let (header, _) = wire::header(&head, rest)?;
                if let Some(gate) = self.entry(origin, &head)?.held_back_by(origin, header) {
                    let header = header.to_vec();
                    let what = HeldKind::Rts { head, header, index, source };
                    return self.hold(am, gate, origin, what);
                }
                self.begin_rndv(am, work, index, (&head, header), source, 0)
            }
            RecordKind::Cts => {
                let (source, _) = wire::source(rest)?;
                let len = head.len as usize;
                work.streams.push(RndvSend { index, source, len, inbound: head.token, sent: 0 });
                Ok(())
            }
            RecordKind::RndvFragment => self.fragment(am, work, origin, &head, rest),
            RecordKind::EagerFirst => {
                let (header, _) = wire::header(&head, rest)?;
                let reassembly = self.arrive_unfilled(am, origin, &head, header)?;
                let reassembly = Reassembly::new(reassembly, head.len as usize);
                if work.reassembly.insert(index, reassembly).is_some() {
                    fail!(Internal, "rank {origin} began a message within another");
                }
                Ok(())
            }
            RecordKind::EagerFragment => {
                let Some(reassembly) = work.reassembly.get_mut(&index) else {
                    fail!(Internal, "rank {origin} sent data that belongs to no message");
                };
                if !reassembly.take(rest)? {
                    return Ok(());
                }
                match work.reassembly.remove(&index) {
                    Some(reassembly) => self.finish(am, reassembly.whole()),
                    None => Ok(()),
                }
            }
            RecordKind::Ack | RecordKind::Fin | RecordKind::GateFence | RecordKind::GateStop => {
                self.control(am, origin, &head, rest)
            }
        }
    }

    /// Has the data of a long message of the node come. `number` is its gate's for it, or 0.
    pub(super) fn begin_rndv(
        &self,
        am: &Am,
        work: &mut RndvState,
        index: usize,
        (head, header): (&RecordHead, &[u8]),
        source: Source,
        number: u64,
    ) -> Result<()> {
        let origin = self.node.as_ref().map_or(0, |node| node.rank_of(index));
        let crosses = self.cma_allowed(am, index);
        let mut inbound = match crosses {
            true => self.arrive(am, origin, head, header)?,
            false => self.arrive_unfilled(am, origin, head, header)?,
        };
        inbound.number = number;
        if inbound.len == 0 {
            self.send_fin(am, origin, source)?;
            return self.finish(am, inbound);
        }
        if crosses {
            work.reads.push(RndvRead { inbound, index, source, done: 0 });
            return Ok(());
        }
        work.last_landing += 1;
        let name = work.last_landing;
        let reassembly = Reassembly::new(inbound, head.len as usize);
        work.pieces.insert(name, (reassembly, source.token));
        let head = RecordHead { token: name, len: head.len, ..RecordHead::new(RecordKind::Cts) };
        let parts = [bytemuck::bytes_of(&head), bytemuck::bytes_of(&source)];
        self.send_record(am, origin, &parts)
    }

    /// Tells the origin that its data has left.
    fn send_fin(&self, am: &Am, origin: usize, source: Source) -> Result<()> {
        let head = RecordHead::new(RecordKind::Fin);
        self.send_record(am, origin, &[bytemuck::bytes_of(&head), bytemuck::bytes_of(&source)])
    }

    fn fragment(
        &self,
        am: &Am,
        work: &mut RndvState,
        origin: usize,
        head: &RecordHead,
        bytes: &[u8],
    ) -> Result<()> {
        let Some((reassembly, _)) = work.pieces.get_mut(&head.token) else {
            fail!(Internal, "rank {origin} sent a piece of a message that is not expected");
        };
        if head.len != reassembly.received() as u64 {
            fail!(
                Internal,
                "rank {origin} sent the piece at {}, not that at {}",
                head.len,
                reassembly.received()
            );
        }
        if reassembly.take(bytes)?
            && let Some((reassembly, token)) = work.pieces.remove(&head.token)
        {
            self.finish(am, reassembly.whole())?;
            self.send_fin(am, origin, Source { address: 0, token })?;
        }
        Ok(())
    }

    /// Whether the memory of a rank of the node can be read; found out once.
    pub(crate) fn cma_allowed(&self, am: &Am, index: usize) -> bool {
        if !am.config.cross_memory {
            return false;
        }
        let Some(node) = &self.node else { return false };
        match self.cma[index].load(Ordering::Relaxed) {
            0 => {
                let (pid, address, expected) = node.process(index);
                let mut mark = 0u64;
                let local = &raw mut mark as usize;
                let span = Span { local, remote: address as usize, bytes: 8 };
                // SAFETY: the local side is the number above.
                let read = unsafe { cma::transfer(pid, &[span], Direction::Read) };
                let allowed = read.is_ok() && mark == expected;
                if !allowed {
                    log::info!("memory of rank {} is not read directly", node.rank_of(index));
                }
                self.cma[index].store(if allowed { 1 } else { 2 }, Ordering::Relaxed);
                allowed
            }
            known => known == 1,
        }
    }

    /// Carries long messages on; true if anything happened.
    fn progress_rndv(&self, am: &Am, work: &mut RndvState) -> Result<bool> {
        let Some(node) = &self.node else { return Ok(false) };
        let mut busy = !work.reads.is_empty();
        let mut n = 0;
        while n < work.reads.len() {
            let read = &mut work.reads[n];
            let bytes = (read.inbound.len - read.done).min(READ_AT_A_TIME);
            let span = Span {
                local: read.inbound.to as usize + read.done,
                remote: read.source.address as usize + read.done,
                bytes,
            };
            // SAFETY: the handler promised a place for all of the data.
            unsafe { am.cma_transfer(node, read.index, &[span], Direction::Read) }?;
            read.done += bytes;
            if read.done < read.inbound.len {
                n += 1;
                continue;
            }
            let RndvRead { inbound, source, .. } = work.reads.remove(n);
            let origin = inbound.origin;
            self.finish(am, inbound)?;
            self.send_fin(am, origin, source)?;
        }
        let most = node.longest() - size_of::<RecordHead>();
        for stream in &mut work.streams {
            while stream.sent < stream.len {
                let bytes = (stream.len - stream.sent).min(most);
                let head = RecordHead {
                    token: stream.inbound,
                    len: stream.sent as u64,
                    ..RecordHead::new(RecordKind::RndvFragment)
                };
                // SAFETY: the origin keeps the data until FIN, which the target
                // sends after the last fragment.
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
            && self.completion_thread.is_idle()
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
                busy |= self.progress_rndv(am, work)?;
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
            busy |= self.completion_thread.run_here(am);
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
        let head = RecordHead::message(RecordKind::Eager, handler, header.len(), data.len(), token);
        self.arrive_eager(am, am.rank(), &head, header, data)
    }

    /// The dispatcher's lock, if it is free.
    pub(crate) fn try_dispatch(&self) -> Option<impl Sized + '_> {
        self.dispatch.try_lock()
    }

    /// No thread polls any more: handles messages of ranks that still took this one for attended.
    pub(crate) fn look_again(&self, am: &Am) {
        while self.rings() == RingState::Ready {
            match self.poll(am) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => fatal(&error),
            }
        }
    }

    /// Whether a record waits for room in a ring: no doorbell rings for that.
    pub(crate) fn is_held_up(&self) -> bool {
        self.held_up.load(Ordering::Relaxed) || self.node.as_ref().is_some_and(ShmTransport::keeps)
    }

    /// Whether nothing is collected that grows old.
    pub(crate) fn collects_nothing(&self) -> bool {
        self.hooks.read().is_empty() && self.gateway.is_empty()
    }

    /// Ends the completion thread, when it has nothing to do any more.
    pub(crate) fn stop(&self) {
        self.completion_thread.stop();
    }

    /// What there is to do.
    pub(crate) fn rings(&self) -> RingState {
        let Some(dispatch) = self.dispatch.try_lock() else {
            // A face's lock may be held for long.
            let locked = self.locker.load(Ordering::Acquire) != 0;
            return if locked { RingState::Empty } else { RingState::Busy };
        };
        let in_ring = match (&self.node, &dispatch.incoming) {
            (Some(node), Some(incoming)) => incoming.ready(node),
            _ => false,
        };
        let local = self.sent_locally.load(Ordering::Relaxed) > 0;
        if in_ring || local || self.gates_are_ready() { RingState::Ready } else { RingState::Empty }
    }
}
