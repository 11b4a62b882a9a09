//! Typed active messages: work that is sent to the rank that has the data.
//!
//! A [`Message`] is a value that is sent to a rank and handled there. An [`Item`] is a small unit
//! of plain data; many items are sent in one message. [`Handlers`] registers both by type, in the
//! same order on every rank, and returns [`Messages`], which sends them. A handler accesses this
//! rank's data through [`Delivery::state`].
//!
//! ```
//! use portolan::messages::{Delivery, Handlers, Item, Message};
//! use serde::{Deserialize, Serialize};
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering};
//!
//! struct Counters(Vec<AtomicU64>);
//!
//! /// Asks a rank for one of its counters.
//! #[derive(Serialize, Deserialize)]
//! struct Read {
//!     index: usize,
//! }
//!
//! impl Message for Read {
//!     type Reply = Option<u64>;
//!     fn handle(self, delivery: &Delivery<'_>) -> Option<u64> {
//!         let counters = &delivery.state::<Counters>().0;
//!         Some(counters.get(self.index)?.load(Ordering::Relaxed))
//!     }
//! }
//!
//! /// Adds one to a counter.
//! #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
//! #[repr(transparent)]
//! struct Count(u64);
//!
//! impl Item for Count {
//!     fn apply(batch: &[Count], delivery: &Delivery<'_>) {
//!         let counters = &delivery.state::<Counters>().0;
//!         for Count(index) in batch {
//!             counters[*index as usize].fetch_add(1, Ordering::Relaxed);
//!         }
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     portolan::run(|rt| {
//!         let mine = Arc::new(Counters((0..100).map(|_| AtomicU64::new(0)).collect()));
//!         let messages =
//!             Handlers::new().state(mine).message::<Read>().item::<Count>().register(rt)?;
//!         let counts = messages.batches::<Count>()?;
//!         for i in 0..1_000_000u64 {
//!             counts.push(i as usize % rt.size(), Count(i % 100))?;
//!         }
//!         messages.quiesce()?; // all counts of all ranks are in
//!         let value = messages.call(0, &Read { index: 7 })?.wait()?;
//!         println!("{value:?}");
//!         messages.free()
//!     })
//! }
//! ```
//!
//! # Completion
//! - [`Messages::spawn`] returns when the message is on its way and its value may be changed. It
//!   does not wait for the handler.
//! - [`Messages::call`] returns a [`Reply`]. [`Reply::wait`] returns when the handler has run and
//!   its reply has arrived.
//! - A pushed item ([`Messages::aggregate`], [`Batches::push`]) is sent when its batch is full, at
//!   the age of a millisecond, or by [`Messages::flush`]. The progress thread checks the age. If
//!   there is none, calls that wait check it.
//! - [`Messages::quiesce`] is collective. It returns when every message and item of the job has
//!   been handled, including those that handlers have sent.
//! - A [`Group::barrier`](crate::Group::barrier) and a fence do not complete messages.
//!
//! # How handlers run
//! The handlers of a rank run one at a time, on any thread that makes progress: a thread of the
//! program inside a call of this library, or the progress thread while the program computes.
//! Handlers may send messages but must not wait: a call that would wait returns an error that names
//! the handler, and ends the job if its memory is already in use. The handler of a message that is
//! registered by [`Handlers::blocking_message`] may wait, because it runs on a separate thread.
//! Messages from one rank to another are handled in sending order, but shorter messages may
//! overtake long ones. A handler that panics ends the job.
//!
//! # Encoding
//! Messages and replies are encoded by serde in the `postcard` format, which is compact and
//! contains no field names. Items are sent as the bytes of their memory representation.

// `serve` is the target side, `codec` the wire format, and `shared` the state of a registration.

mod batches;
mod codec;
mod endpoint;
mod handlers;
mod message;
mod reply;
mod serve;
mod shared;

pub use batches::Batches;
pub use endpoint::{Endpoint, Messages};
pub use handlers::Handlers;
pub use message::{Delivery, Item, Message};
pub use reply::Reply;
pub(crate) use serve::running_blocking;
