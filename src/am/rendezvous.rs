//! Long messages: the protocol for data that stays at the origin until its place is known.
//!
//! The origin keeps the data ([`Awaited::Source`](super::state::Awaited)) and sends an RTS, by
//! the transport to the target (`am::send`). The target runs the header handler, which says
//! where the data goes, and has it come as the transport can ([`Via`]):
//!
//! | transport | the data | the origin learns that it has left |
//! |---|---|---|
//! | ring, and the system lets a rank read another's memory | is read by the target, a part with each poll | by FIN |
//! | ring | comes in fragments, for which the target sends a CTS | by FIN |
//! | MPI | follows the RTS as a message of its own, which MPI holds back until it is received | by MPI |
//!
//! Then what the handler has left to run runs ([`super::handler_dispatch`]), and the origin gets
//! its signal. A message that a gate holds back begins the same way when it is released.
//!
//! Invariants: the data stays where it is, unchanged, until FIN or MPI's completion, each of
//! which ends the origin's token once. Bytes go to their place in order, and never more than
//! were announced.

use super::gate::{Gate, HeldKind};
use super::state::{AmState, Awaited};
use super::wire::{self, RecordHead, RecordKind, Source};
use super::{Am, Then};
use crate::error::{Result, fail};
use crate::path::cma::{self, Direction};
use crate::path::ops::Span;
use crate::path::two_sided::service::Incoming;
use crate::path::two_sided::wire::RequestKind;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes that are read from an origin's memory in one poll.
const READ_AT_A_TIME: usize = 1 << 20;

/// The transport that an RTS has come by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Via {
    /// The ring of this rank of the node.
    Ring(usize),
    /// MPI; the data comes under this tag.
    Mpi(u32),
}

/// A message whose data is on its way.
#[derive(Debug)]
pub(crate) struct InboundMessage {
    /// Where it comes from.
    pub origin: usize,
    /// Where the data goes.
    pub to: *mut u8,
    /// Bytes of it.
    pub len: usize,
    pub(super) name: &'static str,
    pub(super) token: u64,
    pub(super) buffer: Vec<u8>,
    pub(super) then: Then,
    /// Says where what follows may run.
    pub(super) gate: Option<Arc<Gate>>,
    /// The gate's number of the message, where it was held.
    pub(super) number: u64,
}

// SAFETY: the address is used by the thread that holds the inbound message; the handler that
// gave it promised that it stays valid.
unsafe impl Send for InboundMessage {}

/// A message whose data comes in parts, in order.
#[derive(Debug)]
pub(crate) struct Reassembly {
    inbound: InboundMessage,
    total: usize,
    received: usize,
}

impl Reassembly {
    /// None of `total` bytes has arrived.
    pub(crate) fn new(inbound: InboundMessage, total: usize) -> Reassembly {
        Reassembly { inbound, total, received: 0 }
    }

    /// How many bytes have arrived.
    pub(crate) fn received(&self) -> usize {
        self.received
    }

    /// Puts the next bytes in their place. True where they were the last.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<bool> {
        let Reassembly { inbound, total, received } = self;
        if *total - *received < bytes.len() {
            fail!(Internal, "rank {} sent more data than {total} bytes", inbound.origin);
        }
        if inbound.len > 0 {
            // SAFETY: the handler promised a place for all of the data, `total` bytes; and
            // a buffer has that capacity.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    bytes.as_ptr(),
                    inbound.to.add(*received),
                    bytes.len(),
                );
            }
        }
        *received += bytes.len();
        Ok(received == total)
    }

    /// The inbound message, when all of the data is there.
    pub(crate) fn whole(mut self) -> InboundMessage {
        assert_eq!(self.received, self.total, "a message that has not come whole");
        if self.inbound.buffer.capacity() > 0 {
            // SAFETY: the buffer was reserved for this many bytes, and all of them were
            // written, in order.
            unsafe { self.inbound.buffer.set_len(self.inbound.len) };
        }
        self.inbound
    }
}

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
    pub(super) reassembly: HashMap<usize, Reassembly>,
    last_landing: u64,
}

impl RndvState {
    /// Whether [`AmState::progress_rndv`] has something to do.
    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        !self.reads.is_empty() || !self.streams.is_empty()
    }
}

impl AmState {
    /// A long message is announced: its data comes, or its gate holds it. What MPI is to
    /// receive for it is returned.
    pub(super) fn announced(
        &self,
        am: &Am,
        work: &mut RndvState,
        (via, origin): (Via, usize),
        head: &RecordHead,
        rest: &[u8],
    ) -> Result<Option<Incoming>> {
        let (source, rest) = wire::source(rest)?;
        let (header, _) = wire::header(head, rest)?;
        if let Some(gate) = self.entry(origin, head)?.held_back_by(origin, header) {
            let what = HeldKind::Rts { head: *head, header: header.to_vec(), via, source };
            return self.hold(am, gate, origin, what).map(|()| None);
        }
        self.begin_rndv(am, work, (via, origin), (head, header), source, 0)
    }

    /// A long message that its gate has held under this number begins.
    pub(super) fn release_rndv(
        &self,
        am: &Am,
        work: &mut RndvState,
        from: (Via, usize),
        message: (&RecordHead, &[u8]),
        source: Source,
        number: u64,
    ) -> Result<()> {
        match self.begin_rndv(am, work, from, message, source, number)? {
            // Its request was counted when it was held.
            Some(incoming) => am.two_sided()?.receive_data(RequestKind::AmRts, from.1, incoming),
            None => Ok(()),
        }
    }

    /// Asks the handler where the data goes, and has it come. `number` is its gate's, or 0.
    fn begin_rndv(
        &self,
        am: &Am,
        work: &mut RndvState,
        (via, origin): (Via, usize),
        (head, header): (&RecordHead, &[u8]),
        source: Source,
        number: u64,
    ) -> Result<Option<Incoming>> {
        let len = head.len as usize;
        let in_fragments = matches!(via, Via::Ring(index) if !self.cma_allowed(am, index));
        let mut inbound = match in_fragments {
            true => self.arrive_unfilled(am, origin, head, header)?,
            false => self.arrive(am, origin, head, header)?,
        };
        inbound.number = number;
        match via {
            Via::Mpi(tag) => return Ok(Some(inbound.receive(len, tag))),
            Via::Ring(_) if inbound.len == 0 => {
                self.send_fin(am, origin, source)?;
                self.finish(am, inbound)?;
            }
            Via::Ring(_) if in_fragments => {
                work.last_landing += 1;
                let token = work.last_landing;
                work.pieces.insert(token, (Reassembly::new(inbound, len), source.token));
                let head = RecordHead { token, len: head.len, ..RecordHead::new(RecordKind::Cts) };
                let parts = [bytemuck::bytes_of(&head), bytemuck::bytes_of(&source)];
                self.send_record(am, origin, &parts)?;
            }
            Via::Ring(index) => work.reads.push(RndvRead { inbound, index, source, done: 0 }),
        }
        Ok(None)
    }

    /// The target wants data of this rank in fragments.
    pub(super) fn clear_to_send(
        &self,
        work: &mut RndvState,
        index: usize,
        head: &RecordHead,
        rest: &[u8],
    ) -> Result<()> {
        let (source, _) = wire::source(rest)?;
        let len = head.len as usize;
        work.streams.push(RndvSend { index, source, len, inbound: head.token, sent: 0 });
        Ok(())
    }

    /// The data that `token` names has left.
    pub(super) fn source_left(&self, am: &Am, token: u64) -> Result<()> {
        let awaited = self.tokens.lock().remove(token);
        match awaited {
            Some(Awaited::Source { signal, .. }) => signal.tell(am),
            _ => fail!(Internal, "data that was not sent has left"),
        }
        Ok(())
    }

    /// Tells the origin that its data has left.
    fn send_fin(&self, am: &Am, origin: usize, source: Source) -> Result<()> {
        let head = RecordHead::new(RecordKind::Fin);
        self.send_record(am, origin, &[bytemuck::bytes_of(&head), bytemuck::bytes_of(&source)])
    }

    /// A fragment that a CTS has asked for.
    pub(super) fn fragment(
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
    pub(super) fn progress_rndv(&self, am: &Am, work: &mut RndvState) -> Result<bool> {
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
}
