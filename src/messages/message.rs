//! The traits of types that can be sent: messages and items.

use super::Delivery;
use bytemuck::Pod;
use serde::Serialize;
use serde::de::DeserializeOwned;

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
