//! What layers make of the requests of their kinds.
//!
//! The message path knows how requests travel, in what order they are handled, and how they
//! are confirmed. What a request asks for is the business of the [`Service`] that was
//! registered for its kind: transfers ([`super::serve`]), mutexes ([`crate::atomics::mutex`]),
//! active messages ([`crate::am`]).
//!
//! Invariant: a service never waits. What it cannot do now, because another thread has a lock
//! that it needs, it says ([`Served::Busy`]), and is asked again with the next poll; later
//! requests of the same origin wait behind it.

use super::Address;
use super::wire::RequestKind;
use crate::core::above::Above;
use crate::error::{Result, fail};
use crate::path::Transport;
use std::any::Any;

/// What a service keeps for bytes that are on their way.
pub(crate) type Parcel = Box<dyn Any + Send>;

/// Bytes that a service wants to receive.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// Where they go: valid for writes until the service gets its parcel back.
    pub(crate) to: Address,
    /// How many.
    pub len: usize,
    /// The tag under which the origin sends them.
    pub tag: u32,
    /// What the service gets back when they are all there.
    pub parcel: Parcel,
}

/// What became of a request.
#[derive(Debug)]
pub(crate) enum Served {
    /// It is handled.
    Done,
    /// Nothing: a lock is held by another thread.
    Busy,
    /// It is handled when these bytes have arrived. Later requests of the origin wait for that.
    Data(Incoming),
}

/// What serves requests.
pub(crate) trait Service: Send + Sync {
    /// Handles a request that `source` has sent.
    ///
    /// # Errors
    /// End the job: the origin counts on the request.
    fn serve(
        &self,
        transport: &Transport,
        source: usize,
        kind: RequestKind,
        message: &[u8],
    ) -> Result<Served>;

    /// The bytes of [`Incoming`] are there. The parcel comes back where a lock is held by
    /// another thread, to be offered again with the next poll.
    fn came(&self, _source: usize, _parcel: Parcel) -> Result<Option<Parcel>> {
        Ok(None)
    }

    /// Bytes that this rank sent for the service (`TwoSided::send_data`) have left.
    fn left(&self, _parcel: Parcel) {}
}

/// The services, by kind of request.
#[derive(Debug, Default)]
pub(crate) struct Services([Above<dyn Service>; RequestKind::COUNT]);

impl Services {
    /// Has requests of these kinds served.
    ///
    /// # Safety
    /// As for [`Above::set`].
    pub(crate) unsafe fn register(&self, kinds: &[RequestKind], service: &(dyn Service + 'static)) {
        for &kind in kinds {
            // SAFETY: passed on from the caller.
            unsafe { self.0[kind as usize].set(service) };
        }
    }

    /// What serves a kind.
    ///
    /// # Errors
    /// `State` where nothing on this rank does.
    #[inline]
    pub(crate) fn of(&self, kind: RequestKind) -> Result<&(dyn Service + 'static)> {
        match self.0[kind as usize].get() {
            Some(service) => Ok(service),
            None => fail!(State, "a request of kind {kind:?} came, which nothing serves here"),
        }
    }
}
