//! What can be sent: messages and items.

use super::Context;
use bytemuck::Pod;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A value that is sent to a rank and handled there.
///
/// The value is encoded by serde, so it holds no references; bytes that need not be
/// encoded travel beside it ([`Messages::spawn_with`](super::Messages::spawn_with)).
pub trait Message: Serialize + DeserializeOwned + Send + 'static {
    /// What the handler answers; `()` where nothing.
    type Reply: Serialize + DeserializeOwned + Send + 'static;

    /// Runs on the rank that the message was sent to. It must not wait, unless it is
    /// registered by [`Handlers::blocking_message`](super::Handlers::blocking_message).
    fn handle(self, context: &Context<'_>) -> Self::Reply;

    /// The name in errors, the same on all ranks and no other's.
    fn name() -> &'static str {
        std::any::type_name::<Self>()
    }
}

/// A small piece of plain data, of which many travel together.
pub trait Item: Pod + Send + Sync {
    /// Runs on the rank that the items were sent to, for all that came together, in
    /// any order. It must not wait.
    fn apply(batch: &[Self], context: &Context<'_>);

    /// The name in errors, the same on all ranks and no other's.
    fn name() -> &'static str {
        std::any::type_name::<Self>()
    }
}
