//! Typed active messages; `messages.rs` is their public page.
//!
//! | module | contents |
//! |---|---|
//! | `message` | the traits |
//! | `handlers` | registration |
//! | `messages` | sending |
//! | `batches` | items |
//! | `context` | the context of a handler |
//! | `reply` | replies and waiting for them |
//! | `serve` | the target side: decoding, running, replying |
//! | `codec` | the wire format |
//! | `shared` | the state of a registration |

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
