//! Long data that follows a request on the data channel, on behalf of the services. The origin
//! announces the data in a request and sends it at once, as one or more MPI messages. MPI's
//! rendezvous keeps the bytes at the origin until the target receives them at the address that its
//! service has chosen.

use super::send::MAX_MESSAGE;
use super::service::{Incoming, Parcel};
use super::wire::RequestKind;
use super::{Action, Address, ServiceState, TwoSided};
use crate::mpi::{Request, p2p};
use crate::path::Paths;
use parking_lot::Mutex;
use portolan_base::error::Result;
use portolan_base::mutation::{self, Fault};
use std::sync::Arc;

#[derive(Debug)]
pub struct Leaving {
    kind: RequestKind,
    parcel: Parcel,
}

#[derive(Debug)]
pub struct Receiving {
    kind: RequestKind,
    source: usize,
    to: Address,
    len: usize,
    done: usize,
    tag: u32,
    parcel: Option<Parcel>,
    request: Option<Awaiting>,
}

#[derive(Debug, Clone, Copy)]
pub struct Awaiting {
    pub ticket: u64,
    pub cost: u64,
    pub ack: bool,
}

impl Receiving {
    pub fn new(
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
    pub(crate) fn data_slot(&self) -> u32 {
        self.tag() + 1
    }

    /// Sends data under a tag that a request has announced. The service of `kind` gets `parcel`
    /// back when all bytes have been sent ([`super::service::Service::left`]).
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
            let bytes = (len - sent).min(MAX_MESSAGE);
            // SAFETY: the caller keeps the bytes valid until all are sent.
            let request = unsafe {
                p2p::isend(&self.data, at.wrapping_add(sent), bytes, target, tag as i32)
            }?;
            sent += bytes;
            self.started(request, Action::DataLeft(leaving.clone()))?;
        }
        mutation::window(Fault::LostSent);
        // If another thread has completed all parts, this holds the last reference.
        if mutation::is(Fault::LostSent) { Ok(()) } else { self.data_left(leaving) }
    }

    /// A part has been sent, or all were started. The last one returns the parcel to the service.
    pub(super) fn data_left(&self, leaving: Arc<Mutex<Leaving>>) -> Result<()> {
        if let Some(Leaving { kind, parcel }) = Arc::into_inner(leaving).map(Mutex::into_inner) {
            self.services.of(kind)?.left(parcel);
        }
        Ok(())
    }

    /// Receives data whose request was counted on arrival.
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

    pub(super) fn receive_next(&self, receiving: Box<Receiving>) -> Result<(Request, Action)> {
        let Receiving { source, done, tag, .. } = *receiving;
        let bytes = (receiving.len - done).min(MAX_MESSAGE);
        let to = receiving.to.0.wrapping_add(done);
        // SAFETY: the service keeps the destination valid until it gets its parcel back.
        let request = unsafe { p2p::irecv(&self.data, to, bytes, Some(source), tag as i32) }?;
        Ok((request, Action::Data(receiving)))
    }

    pub(super) fn data_came(
        &self,
        paths: &Paths,
        serving: &mut ServiceState,
        mut receiving: Box<Receiving>,
    ) -> Result<()> {
        receiving.done += (receiving.len - receiving.done).min(MAX_MESSAGE);
        if receiving.done < receiving.len {
            let (request, action) = self.receive_next(receiving)?;
            serving.push(request, action);
            return Ok(());
        }
        self.offer(paths, serving, *receiving)
    }

    /// Returns the parcel to the service, in a later poll if another thread blocks it.
    pub(super) fn offer(
        &self,
        paths: &Paths,
        serving: &mut ServiceState,
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
        self.handled(paths, serving, source, cost, ack)?;
        self.drain(paths, serving, source)
    }
}
