//! Active messages over MPI: on the channel of the requests, so that flow control
//! and fences are theirs too.
//!
//! A request of kind `AmEager` carries a whole record ([`super::wire`]). One of kind
//! `AmRts` carries the record's head and header; the data follows on the data channel
//! ([`crate::path::two_sided::data`]), into the place that the handler has given. `AmControl`
//! carries what an origin is to know, and is not counted.
//!
//! Handlers run under the dispatcher's lock. Where another thread has it, the
//! request waits at the head of its origin's queue, and is tried again with the
//! next poll.

use super::gate::HeldKind;
use super::handler_dispatch::InboundMessage;
use super::wire;
use super::{Am, Signal};
use crate::error::{Result, fail};
use crate::path::Transport;
use crate::path::two_sided::Address;
use crate::path::two_sided::service::{Incoming, Parcel, Served, Service};
use crate::path::two_sided::wire::{AmHeader, RequestKind};

/// Longest data that travels along.
pub(crate) const AM_EAGER_LIMIT: usize = 64 << 10;

/// The kinds of request that this module serves.
pub(super) const KINDS: [RequestKind; 3] =
    [RequestKind::AmEager, RequestKind::AmRts, RequestKind::AmControl];

/// Data of a long active message that leaves.
struct OutgoingData {
    signal: Signal,
    _keep: Option<Vec<u8>>,
}

/// Data of one that arrives.
struct IncomingData {
    inbound: InboundMessage,
    /// Where data goes that the handler does not want, but MPI has sent.
    _unwanted: Vec<u8>,
}

/// What is to be received for a message of `len` bytes.
fn incoming(inbound: InboundMessage, len: usize, tag: u32) -> Incoming {
    let mut unwanted = Vec::new();
    let to = if inbound.len == 0 {
        unwanted.resize(len, 0u8);
        unwanted.as_mut_ptr()
    } else {
        inbound.to
    };
    let parcel = Box::new(IncomingData { inbound, _unwanted: unwanted });
    Incoming { to: Address(to), len, tag, parcel }
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

    /// Sends a record with its data.
    pub(super) fn send_eager(&self, target: usize, parts: &[&[u8]]) -> Result<()> {
        let buffer = self.am_request(RequestKind::AmEager, 0, parts)?;
        self.two_sided()?.request(self, target, buffer).map(|_| ())
    }

    /// Sends a record that is not counted. Never waits.
    pub(super) fn send_control(&self, target: usize, parts: &[&[u8]]) -> Result<()> {
        let buffer = self.am_request(RequestKind::AmControl, 0, parts)?;
        self.two_sided()?.send(target, buffer)
    }

    /// Announces a message and sends its data, which must stay valid until `signal`
    /// is told.
    ///
    /// # Safety
    /// The data must be valid for reads until then, or lie in `keep`.
    pub(super) unsafe fn send_rndv(
        &self,
        target: usize,
        parts: &[&[u8]],
        data: (*const u8, usize),
        keep: Option<Vec<u8>>,
        signal: Signal,
    ) -> Result<()> {
        let two_sided = self.two_sided()?;
        let tag = two_sided.data_slot();
        let buffer = self.am_request(RequestKind::AmRts, tag, parts)?;
        two_sided.request(self, target, buffer)?;
        let parcel = Box::new(OutgoingData { signal, _keep: keep });
        // SAFETY: the caller vouches for the data, or the parcel keeps it.
        unsafe { two_sided.send_data(RequestKind::AmRts, target, data, tag, parcel) }
    }

    /// A long message that a gate has held meets its handler, and its data comes. The request
    /// itself was counted when it came. The caller holds the dispatcher's lock.
    pub(super) fn receive_held(
        &self,
        source: usize,
        (head, header): (&wire::RecordHead, &[u8]),
        tag: u32,
        number: u64,
    ) -> Result<()> {
        let mut inbound = self.state()?.arrive(self, source, head, header)?;
        inbound.set_number(number);
        let incoming = incoming(inbound, head.len as usize, tag);
        self.two_sided()?.receive_data(RequestKind::AmRts, source, incoming)
    }
}

impl Service for Am {
    fn serve(
        &self,
        _: &Transport,
        source: usize,
        kind: RequestKind,
        message: &[u8],
    ) -> Result<Served> {
        let state = self.state()?;
        let (request, record) = AmHeader::split(message)?;
        let (head, rest) = wire::split(record)?;
        if kind == RequestKind::AmControl {
            state.control(self, source, &head, rest)?;
            return Ok(Served::Done);
        }
        let Some(_dispatch) = state.try_dispatch() else { return Ok(Served::Busy) };
        let (header, data) = wire::header(&head, rest)?;
        if kind == RequestKind::AmEager {
            if data.len() as u64 != head.len {
                fail!(Internal, "rank {source} sent {} bytes for {}", data.len(), head.len);
            }
            state.arrive_eager(self, source, &head, header, data)?;
            return Ok(Served::Done);
        }
        if let Some(gate) = state.entry(source, &head)?.held_back_by(source, header) {
            let (header, tag) = (header.to_vec(), request.tag);
            state.hold(self, gate, source, HeldKind::RtsOverMpi { head, header, tag })?;
            return Ok(Served::Done);
        }
        let inbound = state.arrive(self, source, &head, header)?;
        Ok(Served::Data(incoming(inbound, head.len as usize, request.tag)))
    }

    fn came(&self, source: usize, parcel: Parcel) -> Result<Option<Parcel>> {
        let state = self.state()?;
        let Some(_dispatch) = state.try_dispatch() else { return Ok(Some(parcel)) };
        match parcel.downcast::<IncomingData>() {
            Ok(arriving) => state.finish(self, arriving.inbound)?,
            Err(_) => fail!(Internal, "data of rank {source} that belongs to no active message"),
        }
        Ok(None)
    }

    fn left(&self, parcel: Parcel) {
        if let Ok(leaving) = parcel.downcast::<OutgoingData>() {
            leaving.signal.tell(self);
        }
    }
}
