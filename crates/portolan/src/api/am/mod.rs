//! Typed active messages; `messages.rs` is their public page.
//!
//! `serve` is the target side, `codec` the wire format, and `shared` the state of a registration.

mod batches;
mod codec;
mod context;
mod handlers;
mod message;
mod messages;
mod reply;
mod serve;
mod shared;

pub use batches::Batches;
pub use context::Context;
pub use handlers::Handlers;
pub use message::{Item, Message};
pub use messages::{Endpoint, Messages};
pub use reply::Reply;
pub(super) use serve::running_blocking;
