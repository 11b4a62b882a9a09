//! Active messages over MPI: on the channel of the requests, so that flow control
//! and fences are theirs too.
//!
//! A request of kind `Am` carries a whole record ([`super::wire`]). One of kind
//! `AmLong` carries the record's head and header; the data follows on the data channel
//! ([`crate::path::message::data`]), into the place that the handler has given. `AmNotice`
//! tells an origin something and is not counted.
//!
//! Handlers run under the dispatcher's lock. Where another thread has it, the
//! request waits at the head of its origin's queue, and is tried again with the
//! next poll.

use super::gate::What;
use super::land::Landing;
use super::wire;
use super::{Am, Signal};
use crate::error::{Result, fail};
use crate::path::Transport;
use crate::path::message::Address;
use crate::path::message::service::{Incoming, Parcel, Served, Service};
use crate::path::message::wire::{AmHeader, Kind};

/// Longest data that travels along.
pub const AM_EAGER: usize = 64 << 10;

/// The kinds of request that this module serves.
pub(super) const KINDS: [Kind; 3] = [Kind::Am, Kind::AmLong, Kind::AmNotice];

/// Data of a long active message that leaves.
struct Leaving {
    signal: Signal,
    _keep: Option<Vec<u8>>,
}

/// Data of one that arrives.
struct Arriving {
    landing: Landing,
    /// Where data goes that the handler does not want, but MPI has sent.
    _unwanted: Vec<u8>,
}

/// What is to be received for a message of `len` bytes.
fn incoming(landing: Landing, len: usize, slot: u32) -> Incoming {
    let mut unwanted = Vec::new();
    let to = if landing.len == 0 {
        unwanted.resize(len, 0u8);
        unwanted.as_mut_ptr()
    } else {
        landing.to
    };
    let parcel = Box::new(Arriving { landing, _unwanted: unwanted });
    Incoming { to: Address(to), len, slot, parcel }
}

impl Am {
    fn am_request(&self, kind: Kind, slot: u32, parts: &[&[u8]]) -> Result<Vec<u8>> {
        let size: usize = parts.iter().map(|p| p.len()).sum();
        let header = AmHeader::new(kind, slot);
        let mut buffer = self.messenger()?.buffer(size_of::<AmHeader>() + size);
        buffer.extend_from_slice(bytemuck::bytes_of(&header));
        for part in parts {
            buffer.extend_from_slice(part);
        }
        Ok(buffer)
    }

    /// Sends a record with its data.
    pub(super) fn send_whole(&self, target: usize, parts: &[&[u8]]) -> Result<()> {
        let buffer = self.am_request(Kind::Am, 0, parts)?;
        self.messenger()?.request(self, target, buffer).map(|_| ())
    }

    /// Sends a record that is not counted. Never waits.
    pub(super) fn send_notice(&self, target: usize, parts: &[&[u8]]) -> Result<()> {
        let buffer = self.am_request(Kind::AmNotice, 0, parts)?;
        self.messenger()?.send(target, buffer)
    }

    /// Announces a message and sends its data, which must stay valid until `signal`
    /// is told.
    ///
    /// # Safety
    /// The data must be valid for reads until then, or lie in `keep`.
    pub(super) unsafe fn send_long(
        &self,
        target: usize,
        parts: &[&[u8]],
        data: (*const u8, usize),
        keep: Option<Vec<u8>>,
        signal: Signal,
    ) -> Result<()> {
        let messenger = self.messenger()?;
        let slot = messenger.data_slot();
        let buffer = self.am_request(Kind::AmLong, slot, parts)?;
        messenger.request(self, target, buffer)?;
        let parcel = Box::new(Leaving { signal, _keep: keep });
        // SAFETY: the caller vouches for the data, or the parcel keeps it.
        unsafe { messenger.send_data(Kind::AmLong, target, data, slot, parcel) }
    }

    /// A long message that a gate has held meets its handler, and its data comes. The request
    /// itself was counted when it came. The caller holds the dispatcher's lock.
    pub(super) fn receive_held(
        &self,
        source: usize,
        (head, header): (&wire::Head, &[u8]),
        slot: u32,
        number: u64,
    ) -> Result<()> {
        let mut landing = self.state()?.arrive(self, source, head, header)?;
        landing.set_number(number);
        let incoming = incoming(landing, head.len as usize, slot);
        self.messenger()?.receive_data(Kind::AmLong, source, incoming)
    }
}

impl Service for Am {
    fn serve(&self, _: &Transport, source: usize, kind: Kind, message: &[u8]) -> Result<Served> {
        let state = self.state()?;
        let (request, record) = AmHeader::split(message)?;
        let (head, rest) = wire::split(record)?;
        if kind == Kind::AmNotice {
            state.control(self, source, &head, rest)?;
            return Ok(Served::Done);
        }
        let Some(_dispatch) = state.try_dispatch() else { return Ok(Served::Busy) };
        let (header, data) = wire::header(&head, rest)?;
        if kind == Kind::Am {
            if data.len() as u64 != head.len {
                fail!(Internal, "rank {source} sent {} bytes for {}", data.len(), head.len);
            }
            state.arrive_whole(self, source, &head, header, data)?;
            return Ok(Served::Done);
        }
        if let Some(gate) = state.entry(source, &head)?.held_back_by(source, header) {
            let (header, slot) = (header.to_vec(), request.slot);
            state.hold(self, gate, source, What::OverMpi { head, header, slot })?;
            return Ok(Served::Done);
        }
        let landing = state.arrive(self, source, &head, header)?;
        Ok(Served::Data(incoming(landing, head.len as usize, request.slot)))
    }

    fn came(&self, source: usize, parcel: Parcel) -> Result<Option<Parcel>> {
        let state = self.state()?;
        let Some(_dispatch) = state.try_dispatch() else { return Ok(Some(parcel)) };
        match parcel.downcast::<Arriving>() {
            Ok(arriving) => state.finish(self, arriving.landing)?,
            Err(_) => fail!(Internal, "data of rank {source} that belongs to no active message"),
        }
        Ok(None)
    }

    fn left(&self, parcel: Parcel) {
        if let Ok(leaving) = parcel.downcast::<Leaving>() {
            leaving.signal.tell(self);
        }
    }
}
