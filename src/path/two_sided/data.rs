//! Long bytes that follow a request on the data channel, for the services.
//!
//! The origin announces them in a request and sends them at once; MPI's own rendezvous keeps
//! them where they are until the target, whose service has said where they go, receives them.
//! What is longer than one message of MPI's goes as several, in order.

use super::send::LONGEST;
use super::service::{Incoming, Parcel};
use super::wire::RequestKind;
use super::{Action, Address, Serving, TwoSided};
use crate::error::Result;
use crate::mpi::{Request, p2p};
use crate::mutation::{self, Fault};
use crate::path::Transport;
use parking_lot::Mutex;
use std::sync::Arc;

/// Bytes that leave: the parcel goes back to the service with the last of them.
#[derive(Debug)]
pub(crate) struct Leaving {
    kind: RequestKind,
    parcel: Parcel,
}

/// Bytes that come.
#[derive(Debug)]
pub(crate) struct Receiving {
    kind: RequestKind,
    source: usize,
    to: Address,
    len: usize,
    done: usize,
    tag: u32,
    parcel: Option<Parcel>,
    /// Their request, where it is to be counted when they are here.
    request: Option<Awaiting>,
}

/// A request that waits for its bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Awaiting {
    /// Its place among those of the origin.
    pub ticket: u64,
    /// Its own bytes.
    pub cost: u64,
    /// It asks for credits.
    pub ack: bool,
}

impl Receiving {
    pub(super) fn new(
        kind: RequestKind,
        source: usize,
        incoming: Incoming,
        request: Option<Awaiting>,
    ) -> Box<Receiving> {
        let Incoming { to, len, tag, parcel } = incoming;
        Box::new(Receiving { kind, source, to, len, done: 0, tag, parcel: Some(parcel), request })
    }
}

impl TwoSided {
    /// A tag for bytes that follow a request.
    pub(crate) fn data_slot(&self) -> u32 {
        self.tag() + 1
    }

    /// Sends bytes under a tag that a request has announced; the service of `kind` gets
    /// `parcel` back when they have left ([`super::service::Service::left`]).
    ///
    /// # Safety
    /// The bytes must be valid for reads and unchanged until then.
    pub(crate) unsafe fn send_data(
        &self,
        kind: RequestKind,
        target: usize,
        (at, len): (*const u8, usize),
        tag: u32,
        parcel: Parcel,
    ) -> Result<()> {
        let leaving = Arc::new(Mutex::new(Leaving { kind, parcel }));
        let mut sent = 0;
        while sent < len {
            let bytes = (len - sent).min(LONGEST);
            // SAFETY: the caller vouches for the bytes until the last piece is gone.
            let request = unsafe {
                p2p::isend(&self.data, at.wrapping_add(sent), bytes, target, tag as i32)
            }?;
            sent += bytes;
            self.started(request, Action::DataLeft(leaving.clone()))?;
        }
        mutation::window(Fault::LostSent);
        // Another thread may have seen all pieces leave by now.
        if mutation::is(Fault::LostSent) { Ok(()) } else { self.data_left(leaving) }
    }

    /// A piece has left, or all have been sent: the last of these tells the service.
    pub(super) fn data_left(&self, leaving: Arc<Mutex<Leaving>>) -> Result<()> {
        if let Some(Leaving { kind, parcel }) = Arc::into_inner(leaving).map(Mutex::into_inner) {
            self.services.of(kind)?.left(parcel);
        }
        Ok(())
    }

    /// Receives bytes whose request was counted when it came.
    pub(crate) fn receive_data(
        &self,
        kind: RequestKind,
        source: usize,
        incoming: Incoming,
    ) -> Result<()> {
        let (request, action) = self.receive_next(Receiving::new(kind, source, incoming, None))?;
        self.keep(request, action);
        Ok(())
    }

    /// Receives the next piece.
    pub(super) fn receive_next(&self, receiving: Box<Receiving>) -> Result<(Request, Action)> {
        let Receiving { source, done, tag, .. } = *receiving;
        let bytes = (receiving.len - done).min(LONGEST);
        let to = receiving.to.0.wrapping_add(done);
        // SAFETY: the service vouches for the place until it has its parcel back, which
        // travels with the action.
        let request = unsafe { p2p::irecv(&self.data, to, bytes, Some(source), tag as i32) }?;
        Ok((request, Action::Data(receiving)))
    }

    /// A piece is here.
    pub(super) fn data_came(
        &self,
        transport: &Transport,
        serving: &mut Serving,
        mut receiving: Box<Receiving>,
    ) -> Result<()> {
        receiving.done += (receiving.len - receiving.done).min(LONGEST);
        if receiving.done < receiving.len {
            let (request, action) = self.receive_next(receiving)?;
            serving.requests.push(request, action);
            return Ok(());
        }
        self.offer(transport, serving, *receiving)
    }

    /// Gives the parcel of bytes that are all here back to the service.
    pub(super) fn offer(
        &self,
        transport: &Transport,
        serving: &mut Serving,
        mut receiving: Receiving,
    ) -> Result<()> {
        let Receiving { kind, source, request, .. } = receiving;
        let Some(parcel) = receiving.parcel.take() else { return Ok(()) };
        if let Some(parcel) = self.services.of(kind)?.came(source, parcel)? {
            receiving.parcel = Some(parcel);
            serving.arrived.push(receiving);
            return Ok(());
        }
        let Some(Awaiting { ticket, cost, ack }) = request else { return Ok(()) };
        let origin = &mut serving.origins[source];
        debug_assert_eq!(origin.waiting.front().map(|w| w.ticket), Some(ticket));
        origin.waiting.pop_front();
        self.handled(transport, serving, source, cost, ack)?;
        self.drain(transport, serving, source)
    }
}
