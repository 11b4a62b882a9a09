//! Active messages over MPI: on the channel of the requests, so that flow control
//! and fences are theirs too.
//!
//! A request of kind `Am` carries a whole record ([`crate::am::wire`]). One of kind
//! `AmLong` carries the record's head and header; the data follows as messages of
//! the data channel, which the target receives into the place that the handler has
//! given. `AmNotice` tells an origin something and is not counted.
//!
//! Handlers run under the dispatcher's lock. Where another thread has it, the
//! request waits at the head of its origin's queue, and is tried again with the
//! next poll.

use super::send::LONGEST;
use super::wire::{AmHeader, Kind};
use super::{Action, Core, Messenger, Waiting};
use crate::am::gate::What;
use crate::am::land::Landing;
use crate::am::{Signal, wire};
use crate::error::{Result, fail};
use crate::mpi::{Request, p2p};
use crate::mutation::{self, Fault};
use crate::runtime::Engine;
use std::mem::size_of;
use std::sync::Arc;

/// Longest data that travels along.
pub const AM_EAGER: usize = 64 << 10;

/// Data of a long active message that leaves.
#[derive(Debug)]
pub(crate) struct Leaving {
    signal: Signal,
    _keep: Option<Vec<u8>>,
}

/// Data of one that arrives.
#[derive(Debug)]
pub(crate) struct Arriving {
    landing: Landing,
    /// Where it is received to: the landing's place, or a buffer for data that
    /// nobody wants.
    to: super::Address,
    len: usize,
    done: usize,
    slot: u32,
    _unwanted: Vec<u8>,
}

impl Arriving {
    /// Nothing has come of `len` bytes.
    fn new(landing: Landing, len: usize, slot: u32) -> Box<Arriving> {
        // What nobody wants must be received all the same.
        let mut unwanted = Vec::new();
        let to = if landing.len == 0 {
            unwanted.resize(len, 0u8);
            unwanted.as_mut_ptr()
        } else {
            landing.to
        };
        let to = super::Address(to);
        Box::new(Arriving { landing, to, len, done: 0, slot, _unwanted: unwanted })
    }
}

/// Whether a request needs the dispatcher's lock.
pub(super) fn needs_dispatcher(message: &[u8]) -> bool {
    message.first().is_some_and(|&k| k == Kind::Am as u8 || k == Kind::AmLong as u8)
}

impl Messenger {
    fn am_request(&self, kind: Kind, slot: u32, parts: &[&[u8]]) -> Vec<u8> {
        let size: usize = parts.iter().map(|p| p.len()).sum();
        let header = AmHeader::new(kind, slot);
        let mut buffer = self.buffer(size_of::<AmHeader>() + size);
        buffer.extend_from_slice(bytemuck::bytes_of(&header));
        for part in parts {
            buffer.extend_from_slice(part);
        }
        buffer
    }

    /// Sends a record with its data.
    pub(crate) fn am_whole(&self, engine: &Engine, target: usize, parts: &[&[u8]]) -> Result<()> {
        let buffer = self.am_request(Kind::Am, 0, parts);
        self.request(engine, target, buffer).map(|_| ())
    }

    /// Sends a record that nobody counts. Never waits.
    pub(crate) fn am_notice(&self, target: usize, parts: &[&[u8]]) -> Result<()> {
        let buffer = self.am_request(Kind::AmNotice, 0, parts);
        self.send(target, buffer)
    }

    /// Announces a message and sends its data, which must stay valid until `signal`
    /// is told.
    ///
    /// # Safety
    /// The data must be valid for reads until then, or lie in `keep`.
    pub(crate) unsafe fn am_long(
        &self,
        engine: &Engine,
        target: usize,
        parts: &[&[u8]],
        data: (*const u8, usize),
        keep: Option<Vec<u8>>,
        signal: Signal,
    ) -> Result<()> {
        let slot = self.slot() + 1;
        let buffer = self.am_request(Kind::AmLong, slot, parts);
        self.request(engine, target, buffer)?;
        let (at, len) = data;
        let leaving = Arc::new(parking_lot::Mutex::new(Some(Leaving { signal, _keep: keep })));
        let mut sent = 0;
        while sent < len {
            let bytes = (len - sent).min(LONGEST);
            // SAFETY: the caller vouches for the data until the last piece is gone;
            // what was given away lives in the action until then.
            let request = unsafe {
                p2p::isend(&self.data, at.wrapping_add(sent), bytes, target, slot as i32)
            }?;
            sent += bytes;
            self.started(request, Action::AmLeft { leaving: leaving.clone() })?;
        }
        // Another thread may have seen all pieces leave by now.
        if !mutation::is(Fault::LostSent) {
            self.am_left(engine, leaving);
        }
        Ok(())
    }

    /// A piece of data has left, or all have been sent: the last of these tells the origin's
    /// signal.
    pub(super) fn am_left(
        &self,
        engine: &Engine,
        leaving: Arc<parking_lot::Mutex<Option<Leaving>>>,
    ) {
        if let Some(leaving) = Arc::into_inner(leaving)
            && let Some(Leaving { signal, .. }) = leaving.into_inner()
        {
            signal.tell(engine);
        }
    }

    /// Handles a request of kind `Am` or `AmLong`; true if it is finished. False
    /// where the request's own data follows. The caller holds the dispatcher's lock.
    pub(super) fn serve_am(
        &self,
        engine: &Engine,
        core: &mut Core,
        source: usize,
        message: &[u8],
    ) -> Result<bool> {
        let am = engine.am()?;
        let (request, record) = AmHeader::split(message)?;
        let (head, rest) = wire::split(record)?;
        let (header, data) = wire::header(&head, rest)?;
        if request.is_whole() {
            if data.len() as u64 != head.len {
                fail!(Internal, "rank {source} sent {} bytes for {}", data.len(), head.len);
            }
            am.arrive_whole(engine, source, &head, header, data)?;
            return Ok(true);
        }
        if let Some(gate) = am.entry(source, &head)?.held_back_by(source, header) {
            let (header, slot) = (header.to_vec(), request.slot);
            am.hold(engine, gate, source, What::OverMpi { head, header, slot })?;
            return Ok(true);
        }
        let landing = am.arrive(engine, source, &head, header)?;
        let arriving = Arriving::new(landing, head.len as usize, request.slot);
        let ticket = core.next_ticket;
        core.next_ticket += 1;
        let origin = &mut core.origins[source];
        origin.waiting.push_front(Waiting { ticket, ready: None });
        let cost = message.len() as u64;
        let (request, action) = self.am_receive(source, Some(ticket), cost, arriving)?;
        core.requests.push(request, action);
        Ok(false)
    }

    /// A long message that a gate has held meets its handler, and its data comes. The request
    /// itself was counted when it came. The caller holds the dispatcher's lock.
    pub(crate) fn am_released(
        &self,
        engine: &Engine,
        source: usize,
        (head, header): (&wire::Head, &[u8]),
        slot: u32,
        number: u64,
    ) -> Result<()> {
        let mut landing = engine.am()?.arrive(engine, source, head, header)?;
        landing.set_number(number);
        let arriving = Arriving::new(landing, head.len as usize, slot);
        let (request, action) = self.am_receive(source, None, 0, arriving)?;
        self.keep(request, action);
        Ok(())
    }

    /// Receives the next piece of a long message.
    fn am_receive(
        &self,
        source: usize,
        ticket: Option<u64>,
        cost: u64,
        arriving: Box<Arriving>,
    ) -> Result<(Request, Action)> {
        let bytes = (arriving.len - arriving.done).min(LONGEST);
        let to = arriving.to.0.wrapping_add(arriving.done);
        // SAFETY: the handler promised the place until the message is complete, or
        // the buffer travels with the action.
        let request =
            unsafe { p2p::irecv(&self.data, to, bytes, Some(source), arriving.slot as i32) }?;
        Ok((request, Action::AmData { source, ticket, cost, arriving }))
    }

    /// A piece of a long message has come.
    pub(super) fn am_data(
        &self,
        engine: &Engine,
        core: &mut Core,
        source: usize,
        ticket: Option<u64>,
        cost: u64,
        mut arriving: Box<Arriving>,
    ) -> Result<()> {
        arriving.done += (arriving.len - arriving.done).min(LONGEST);
        if arriving.done < arriving.len {
            let (request, action) = self.am_receive(source, ticket, cost, arriving)?;
            core.requests.push(request, action);
            return Ok(());
        }
        core.landed.push((source, ticket, cost, arriving));
        self.am_finish_landed(engine, core)
    }

    /// Finishes long messages whose data is in place, where the dispatcher is free.
    pub(super) fn am_finish_landed(&self, engine: &Engine, core: &mut Core) -> Result<()> {
        if core.landed.is_empty() {
            return Ok(());
        }
        let am = engine.am()?;
        let Some(_dispatch) = am.try_dispatch() else { return Ok(()) };
        for (source, ticket, cost, arriving) in std::mem::take(&mut core.landed) {
            am.finish(engine, arriving.landing)?;
            // One that a gate has held was counted before, and holds nothing back.
            if ticket.is_none() {
                continue;
            }
            let origin = &mut core.origins[source];
            debug_assert_eq!(origin.waiting.front().map(|w| w.ticket), ticket);
            origin.waiting.pop_front();
            self.handled(engine, core, source, cost, false)?;
            core.stalled.push(source);
        }
        Ok(())
    }
}
