//! Services: the handlers of requests, by kind.
//!
//! The message path determines how requests travel, are ordered, and are confirmed. The [`Service`]
//! for the kind of a request executes it: transfers ([`super::serve`]), mutexes
//! ([`crate::atomics::mutex`]), active messages ([`crate::am`]).
//!
//! Invariant: a service never waits. If another thread holds a lock that it needs, it returns
//! [`Served::Busy`], and the next poll calls it again. Later requests of the same origin wait.

use super::Address;
use super::wire::RequestKind;
use crate::core::upper_layer::UpperLayer;
use crate::path::Paths;
use portolan_base::error::{Result, fail};
use std::any::Any;

pub type Parcel = Box<dyn Any + Send>;

#[derive(Debug)]
pub struct Incoming {
    /// Valid for writes until the service gets its parcel back.
    pub to: Address,
    pub len: usize,
    pub tag: u32,
    /// Returned to the service when all bytes have arrived.
    pub parcel: Parcel,
}

#[derive(Debug)]
pub enum Served {
    Done,
    /// Nothing was done, because another thread holds a lock.
    Busy,
    /// The request is handled when this data has arrived.
    Data(Incoming),
}

pub trait Service: Send + Sync {
    /// An error ends the job, because the origin relies on the request.
    fn serve(
        &self,
        paths: &Paths,
        source: usize,
        kind: RequestKind,
        message: &[u8],
    ) -> Result<Served>;

    /// Takes the parcel of [`Incoming`] when all bytes have arrived, or returns it if another
    /// thread holds a lock; the next poll then calls this again.
    fn came(&self, _source: usize, _parcel: Parcel) -> Result<Option<Parcel>> {
        Ok(None)
    }

    fn left(&self, _parcel: Parcel) {}
}

#[derive(Debug, Default)]
pub struct Services([UpperLayer<dyn Service>; RequestKind::COUNT]);

impl Services {
    /// # Safety
    /// See [`UpperLayer::set`].
    pub unsafe fn register(&self, kinds: &[RequestKind], service: &(dyn Service + 'static)) {
        for &kind in kinds {
            // SAFETY: the caller guarantees that the service lives long enough.
            unsafe { self.0[kind as usize].set(service) };
        }
    }

    /// Fails with `State` if this rank does not serve the kind.
    #[inline]
    pub fn of(&self, kind: RequestKind) -> Result<&(dyn Service + 'static)> {
        match self.0[kind as usize].get() {
            Some(service) => Ok(service),
            None => {
                fail!(State, "a request of kind {kind:?} arrived, but no service handles it here")
            }
        }
    }
}
