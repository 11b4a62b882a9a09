//! The rendezvous protocol: long data stays at the origin until its destination is known.
//!
//! The origin keeps the data ([`AwaitedSignal::Source`]) and sends an RTS (`am::send`). The target
//! runs the header handler, which returns the destination. Then the data moves as the transport
//! ([`Via`]) and the support for cross-memory attach ([`cma`]) allow:
//!
//! | transport | the data | the data has left when |
//! |---|---|---|
//! | ring, with CMA | is read by the target, a block with each poll | FIN arrives |
//! | ring, without CMA | is sent in fragments, which the target requests by a CTS | FIN arrives |
//! | MPI | follows as a message that MPI holds until it is received | MPI's send completes |
//!
//! Then the action of the handler runs ([`super::handler_dispatch`]), and the origin gets its
//! signal. A message that a deferral queue holds begins in the same way when it is released.
//!
//! Invariants: the data stays unchanged until FIN or MPI's completion, which ends the origin's
//! token once. Bytes are written to the destination in order, and never more than announced.

use super::Am;
use super::inbound::{HeldKind, Reassembly, RndvRead, RndvSend, RndvState, Via};
use super::state::{AmState, AwaitedSignal};
use super::wire::{self, RecordHead, RecordKind, Source};
use crate::memory::runs::{Direction, Span};
use crate::path::cma;
use crate::path::two_sided::service::Incoming;
use portolan_base::error::{Result, fail};
use std::collections::hash_map::Entry;
use std::sync::atomic::Ordering;

/// Bytes that one poll reads from an origin's memory.
const READ_AT_A_TIME: usize = 1 << 20;

impl AmState {
    /// Starts the transfer, or holds the message. Returns the receive that MPI must perform.
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
        if let Some(deferral) = self.entry(origin, head)?.held_back_by(origin, header) {
            let what = HeldKind::Rts { head: *head, header: header.to_vec(), via, source };
            return self.hold(am, deferral, origin, what).map(|()| None);
        }
        self.begin_rndv(am, work, (via, origin), (head, header), source, 0)
    }

    /// Asks the handler for the destination. Returns the receive that MPI must perform, if any.
    pub(super) fn begin_rndv(
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
        let mut inbound = self.arrive(am, origin, head, header)?;
        inbound.number = number;
        match via {
            Via::Mpi(tag) => return Ok(Some(inbound.receive(len, tag))),
            Via::Ring(_) if inbound.len == 0 => {
                self.send_fin(am, origin, source)?;
                self.finish(am, inbound)?;
            }
            Via::Ring(index) if in_fragments => {
                work.last_landing += 1;
                let token = work.last_landing;
                let reassembly = Reassembly { inbound, total: len, received: 0 };
                work.chunks.insert((index, token), (reassembly, Some(source.token)));
                let head = RecordHead { token, len: head.len, ..RecordHead::new(RecordKind::Cts) };
                let parts = [bytemuck::bytes_of(&head), bytemuck::bytes_of(&source)];
                self.send_record(am, origin, &parts)?;
            }
            Via::Ring(index) => work.reads.push(RndvRead { inbound, index, source, done: 0 }),
        }
        Ok(None)
    }

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

    pub(super) fn source_left(&self, am: &Am, token: u64) -> Result<()> {
        let awaited = self.tokens.lock().remove(token);
        match awaited {
            Some(AwaitedSignal::Source { signal, .. }) => signal.notify(am),
            _ => fail!(Internal, "completion of data that was not sent"),
        }
        Ok(())
    }

    fn send_fin(&self, am: &Am, origin: usize, source: Source) -> Result<()> {
        let head = RecordHead::new(RecordKind::Fin);
        self.send_record(am, origin, &[bytemuck::bytes_of(&head), bytemuck::bytes_of(&source)])
    }

    pub(super) fn fragment(
        &self,
        am: &Am,
        work: &mut RndvState,
        (index, origin): (usize, usize),
        head: &RecordHead,
        bytes: &[u8],
    ) -> Result<()> {
        let Entry::Occupied(mut entry) = work.chunks.entry((index, head.token)) else {
            fail!(Internal, "rank {origin} sent part of a message that is not expected");
        };
        let (reassembly, requested) = entry.get_mut();
        if requested.is_some() && head.len != reassembly.received as u64 {
            fail!(
                Internal,
                "rank {origin} sent the part at offset {}, but the next offset is {}",
                head.len,
                reassembly.received
            );
        }
        if !reassembly.take(bytes)? {
            return Ok(());
        }
        let (reassembly, requested) = entry.remove();
        self.finish(am, reassembly.inbound)?;
        match requested {
            Some(token) => self.send_fin(am, origin, Source { address: 0, token }),
            None => Ok(()),
        }
    }

    /// Returns whether this rank can read the memory of a rank of the node. The first call tries.
    pub(crate) fn cma_allowed(&self, am: &Am, index: usize) -> bool {
        if !am.config.cross_memory {
            return false;
        }
        let Some(node) = &self.node else { return false };
        *self.cma[index].get_or_init(|| {
            let (pid, address, expected) = node.process(index);
            let mut mark = 0u64;
            let local = &raw mut mark as usize;
            let span = Span { local, remote: address as usize, bytes: 8 };
            // SAFETY: the local side of the span is `mark`, valid for writes.
            let read = unsafe { cma::transfer(pid, &[span], Direction::Get) };
            let allowed = read.is_ok() && mark == expected;
            if !allowed {
                log::info!("memory of rank {} is not read directly", node.rank_of(index));
            }
            allowed
        })
    }

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
            // SAFETY: the handler promised that the destination is valid for all data.
            let moved = unsafe { am.cma_transfer(node, read.index, &[span], Direction::Get) };
            if let Err(error) = moved {
                // Not an error of the call that polls, which may concern other ranks.
                let (name, origin) = (read.inbound.name, read.inbound.origin);
                error.end_job_in(format_args!(
                    "the data of rank {origin} for the handler {name} cannot be read"
                ));
            }
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
                // SAFETY: this rank, the origin, keeps the data until FIN, after the last fragment.
                let chunk = unsafe {
                    let from = stream.source.address as usize + stream.sent;
                    std::slice::from_raw_parts(from as *const u8, bytes)
                };
                if !node.try_send(stream.index, &[bytemuck::bytes_of(&head), chunk])? {
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
