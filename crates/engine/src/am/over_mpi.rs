//! Active messages over MPI, on the channel of the message path, with its flow control and fences.
//! A request of kind `AmEager` carries an eager record ([`super::wire`]), and one of kind `AmRts`
//! carries an RTS, whose data follows on the data channel ([`crate::path::two_sided::data`]) with
//! the tag in the request's header. Later requests of the same origin wait for it. `AmControl`
//! carries control records, which flow control and fences do not count.
//!
//! Handlers run under the dispatcher's lock. If another thread holds it, the request stays at the
//! head of its origin's queue, and the next poll tries again.

use super::Am;
use super::inbound::{InboundMessage, Via};
use super::wire::{self, MAX_HEADER, RecordHead};
use crate::path::Paths;
use crate::path::two_sided::Address;
use crate::path::two_sided::inbox;
use crate::path::two_sided::service::{Incoming, Parcel, Served, Service};
use crate::path::two_sided::wire::{AmHeader, RequestKind};
use portolan_base::error::{Result, fail};

/// In bytes.
pub(crate) const AM_EAGER_LIMIT: usize = 64 << 10;

// An eager message needs no announcement.
const _: () = assert!(
    size_of::<AmHeader>() + size_of::<RecordHead>() + MAX_HEADER + AM_EAGER_LIMIT <= inbox::SMALL
);

pub(super) const KINDS: [RequestKind; 3] =
    [RequestKind::AmEager, RequestKind::AmRts, RequestKind::AmControl];

struct OutgoingData(u64);

struct IncomingData {
    inbound: InboundMessage,
    /// For data that the handler does not want but MPI delivers.
    _unwanted: Vec<u8>,
}

impl InboundMessage {
    pub(super) fn receive(self, len: usize, tag: u32) -> Incoming {
        let mut unwanted = vec![0; if self.len == 0 { len } else { 0 }];
        let to = if self.len == 0 { unwanted.as_mut_ptr() } else { self.to };
        let parcel = Box::new(IncomingData { inbound: self, _unwanted: unwanted });
        Incoming { to: Address(to), len, tag, parcel }
    }
}

impl Am {
    fn am_request(&self, kind: RequestKind, tag: u32, parts: &[&[u8]]) -> Result<Vec<u8>> {
        let size: usize = parts.iter().map(|p| p.len()).sum();
        let header = AmHeader::new(kind, tag);
        let mut buffer = self.two_sided()?.buffer(size_of::<AmHeader>() + size);
        buffer.extend_from_slice(bytemuck::bytes_of(&header));
        for part in parts {
            buffer.extend_from_slice(part);
        }
        Ok(buffer)
    }

    pub(super) fn send_eager(&self, target: usize, parts: &[&[u8]]) -> Result<()> {
        let buffer = self.am_request(RequestKind::AmEager, 0, parts)?;
        self.two_sided()?.request(self, target, buffer).map(|_| ())
    }

    /// Sends a record that flow control and fences do not count. Never waits.
    pub(super) fn send_control(&self, target: usize, parts: &[&[u8]]) -> Result<()> {
        let buffer = self.am_request(RequestKind::AmControl, 0, parts)?;
        self.two_sided()?.send(target, buffer)
    }

    /// # Safety
    /// The data must be valid and unchanged until it has left, which ends the token.
    pub(super) unsafe fn send_rndv(
        &self,
        target: usize,
        parts: &[&[u8]],
        data: (*const u8, usize),
        token: u64,
    ) -> Result<()> {
        let two_sided = self.two_sided()?;
        let tag = two_sided.data_slot();
        let buffer = self.am_request(RequestKind::AmRts, tag, parts)?;
        two_sided.request(self, target, buffer)?;
        let parcel = Box::new(OutgoingData(token));
        // SAFETY: the caller guarantees the data until it has left.
        let sent = unsafe { two_sided.send_data(RequestKind::AmRts, target, data, tag, parcel) };
        // The target relies on the data, and MPI may be sending a part of it.
        sent.or_else(|error| error.end_job())
    }
}

impl Service for Am {
    fn serve(&self, _: &Paths, source: usize, kind: RequestKind, message: &[u8]) -> Result<Served> {
        let state = self.state()?;
        let (request, record) = AmHeader::split(message)?;
        let (head, rest) = wire::split(record)?;
        if kind == RequestKind::AmControl {
            state.control(self, source, &head, rest)?;
            return Ok(Served::Done);
        }
        let Some(mut dispatch) = state.dispatch.try_lock() else { return Ok(Served::Busy) };
        if kind == RequestKind::AmEager {
            state.eager(self, source, &head, rest)?;
            return Ok(Served::Done);
        }
        let via = Via::Mpi(request.tag);
        let incoming = state.announced(self, &mut dispatch.work, (via, source), &head, rest)?;
        Ok(incoming.map_or(Served::Done, Served::Data))
    }

    fn came(&self, source: usize, parcel: Parcel) -> Result<Option<Parcel>> {
        let state = self.state()?;
        let Some(_dispatch) = state.dispatch.try_lock() else { return Ok(Some(parcel)) };
        match parcel.downcast::<IncomingData>() {
            Ok(arriving) => state.finish(self, arriving.inbound)?,
            Err(_) => fail!(Internal, "rank {source} sent data that belongs to no active message"),
        }
        Ok(None)
    }

    fn left(&self, parcel: Parcel) {
        let traced = match (parcel.downcast::<OutgoingData>(), self.state()) {
            (Ok(leaving), Ok(state)) => state.source_left(self, leaving.0),
            _ => Ok(()),
        };
        if let Err(error) = traced {
            error.end_job();
        }
    }
}
