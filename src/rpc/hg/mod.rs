//! Calls that run on another rank.
//!
//! | module | owns |
//! |---|---|
//! | `program` | [`Class`], [`Context`] |
//! | `typed` | functions with types: [`Rpc`], [`Handle`], [`Call`] |
//! | `origin`, `target` | a call at its two ends |
//! | `context` | what waits for trigger |
//! | `class` | calls under way, the messages for them, pulling long parameters |
//! | `registry` | functions by name |
//! | `wire` | the heads of requests and answers |
//! | `payload` | encoded parameters |
//!
//! **The way of a call.** The origin encodes the input behind a head into a message
//! (`origin::Origin::forward`), notes where the answer goes, and sends it as an
//! unexpected message. The server's progress finds the function by its number and puts
//! the call into a context's queue; trigger runs it. The call is answered, then or
//! later, by a message that finds its origin by its token. What is too long for a
//! message is exposed, and pulled by the rank that is to have it, of any length.
//!
//! A call to oneself is not sent: it goes straight into the queue.
//!
//! **Errors travel.** A function that is not registered, an input that cannot be
//! decoded, a handler that fails or forgets the call: the origin gets the status, not a
//! time-out.
//!
//! ```no_run
//! use portolan::rpc::hg::Class;
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), portolan::rpc::Failure> {
//! let class = Class::init("mpi", true)?;
//! let context = class.context()?;
//! let add = class.serve("add", |call: portolan::rpc::hg::Call<(i64, i64), i64>| {
//!     let (a, b) = call.input()?;
//!     call.answer(&(a + b))
//! })?;
//! let server = class.lookup("mpi://0")?;
//! let handle = context.handle(&server, &add);
//! handle.forward(&(2, 3), |sum| println!("2 + 3 = {sum:?}"))?;
//! while !handle.is_done() {
//!     context.progress(Duration::from_millis(100))?;
//!     context.trigger(8);
//! }
//! context.trigger(8);
//! # drop(handle); drop(context);
//! class.finalize()
//! # }
//! ```

pub(crate) mod class;
pub(crate) mod context;
pub(crate) mod origin;
pub(crate) mod payload;
mod program;
pub(crate) mod registry;
pub(crate) mod target;
pub(crate) mod typed;
pub(crate) mod wire;

pub use program::{BulkOp, Class, Context};
pub use typed::{Call, Handle, Rpc};
