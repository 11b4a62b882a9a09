//! Calls that run on another rank. `portolan::rpc` describes their use.
//!
//! **Life of a call.** The origin encodes the input behind a head (`origin::Origin::forward`),
//! registers a token for the answer, and sends the request as an unexpected message. Progress at
//! the server finds the function by its number and queues the call in a context; trigger runs it.
//! The server answers at once or later, with the token. Parameters that do not fit a message are
//! registered as memory, and the receiver pulls them. A call to the own process is queued directly.
//!
//! **Errors.** If a function is not registered, its input cannot be decoded, or its handler fails
//! or drops the call, the origin receives a status.

pub mod call_pool;
pub mod class;
pub mod context;
pub mod origin;
pub mod payload;
mod program;
pub mod registry;
pub mod target;
pub mod typed;
pub mod wire;

pub use program::{BulkOp, Class, Context, Listen};
pub use typed::{Call, Handle, Rpc};
