//! Types that can be sent, messages and items, and the argument of their handlers.

use super::endpoint::{Endpoint, sending};
use super::{Batches, Reply};
use bytemuck::Pod;
use portolan_base::error::Result;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;
use std::borrow::Cow;
use std::cell::{Cell, OnceCell};

/// A value that is sent to a rank and handled there.
///
/// It is encoded by serde, so it cannot hold references. Bytes that need no encoding can be sent
/// with it as a payload ([`Messages::spawn_with`](super::Messages::spawn_with)).
pub trait Message: Serialize + DeserializeOwned + Send + 'static {
    /// The reply of the handler; `()` if there is none.
    type Reply: Serialize + DeserializeOwned + Send + 'static;

    /// Handles the message on the rank that it was sent to. It must not wait, unless the type is
    /// registered by [`Handlers::blocking_message`](super::Handlers::blocking_message).
    fn handle(self, delivery: &Delivery<'_>) -> Self::Reply;

    /// Returns the name under which the type is registered. It must be unique, and the same on all
    /// ranks. Errors show it.
    fn name() -> &'static str {
        std::any::type_name::<Self>()
    }
}

/// A small unit of plain data. Many items are sent in one message.
pub trait Item: Pod + Send + Sync {
    /// Handles a batch of items, in any order, on the rank that they were sent to. Must not wait.
    fn apply(batch: &[Self], delivery: &Delivery<'_>);

    /// Returns the name under which the type is registered. It must be unique, and the same on all
    /// ranks. Errors show it.
    fn name() -> &'static str {
        std::any::type_name::<Self>()
    }
}

/// The delivery of a message, or of a batch of items, to its handler: its origin and payload, this
/// rank's state, and functions that send messages.
#[derive(Debug)]
pub struct Delivery<'a> {
    endpoint: Endpoint<'a>,
    origin: usize,
    name: &'static str,
    payload: Payload<'a>,
}

pub(super) struct Payload<'a> {
    /// Set if the payload lies in the received message.
    borrowed: &'a [u8],
    /// Set if this rank owns the payload and no call has read or taken it yet.
    own: Cell<Option<Vec<u8>>>,
    /// The owned payload after the first [`Payload::bytes`].
    shown: OnceCell<Vec<u8>>,
}

impl std::fmt::Debug for Payload<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Payload").field("borrowed", &self.borrowed.len()).finish_non_exhaustive()
    }
}

impl<'a> Payload<'a> {
    pub(super) fn borrowed(bytes: &'a [u8]) -> Payload<'a> {
        Payload { borrowed: bytes, own: Cell::new(None), shown: OnceCell::new() }
    }
    pub(super) fn own(bytes: Vec<u8>) -> Payload<'a> {
        Payload { borrowed: &[], own: Cell::new(Some(bytes)), shown: OnceCell::new() }
    }
    fn bytes(&self) -> &[u8] {
        if !self.borrowed.is_empty() {
            return self.borrowed;
        }
        self.shown.get_or_init(|| self.own.take().unwrap_or_default())
    }
    fn take(&self) -> Vec<u8> {
        match self.own.take() {
            Some(bytes) => bytes,
            None => self.bytes().to_vec(),
        }
    }
}

impl<'a> Delivery<'a> {
    pub(super) fn new(
        endpoint: Endpoint<'a>,
        origin: usize,
        name: &'static str,
        payload: Payload<'a>,
    ) -> Delivery<'a> {
        Delivery { endpoint, origin, name, payload }
    }

    pub(super) fn checked(&self) -> Endpoint<'a> {
        self.endpoint
    }

    /// Returns the rank that sent the message.
    pub fn origin(&self) -> usize {
        self.origin
    }

    /// Returns the payload that was sent with the message
    /// ([`Messages::spawn_with`](super::Messages::spawn_with)).
    pub fn payload(&self) -> &[u8] {
        self.payload.bytes()
    }

    /// Returns the payload as an owned vector. A long payload is not copied unless
    /// [`Delivery::payload`] has been called before. Afterwards the payload of this delivery may be
    /// empty.
    pub fn take_payload(&self) -> Vec<u8> {
        self.payload.take()
    }

    /// Returns this rank's state of type `S`, as passed to
    /// [`Handlers::state`](super::Handlers::state).
    ///
    /// # Panics
    /// Panics if this rank registered no state of type `S`. The panic ends the job.
    #[inline]
    #[track_caller]
    pub fn state<S: Any + Send + Sync>(&self) -> &'a S {
        match self.find_state() {
            Some(state) => state,
            None => panic!(
                "the handler {} needs the state {}, which was not passed to Handlers::state",
                self.name,
                std::any::type_name::<S>()
            ),
        }
    }

    /// Returns this rank's state of type `S`, if there is one.
    #[inline]
    pub fn find_state<S: Any + Send + Sync>(&self) -> Option<&'a S> {
        self.endpoint.shared.state()
    }

    sending!("Delivery");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_can_be_seen_and_taken() {
        let borrowed = Payload::borrowed(b"abc");
        assert_eq!((borrowed.bytes(), borrowed.take()), (&b"abc"[..], b"abc".to_vec()));
        let own = Payload::own(vec![1; 1000]);
        let at = own.own.take().inspect(|v| own.own.set(Some(v.clone()))).unwrap();
        assert_eq!(own.take(), at);
        assert!(own.bytes().is_empty() && own.take().is_empty());
        let seen = Payload::own(vec![2; 10]);
        assert_eq!(seen.bytes(), [2; 10]);
        assert_eq!(seen.take(), [2; 10]);
        assert_eq!(seen.bytes(), [2; 10]);
    }
}
