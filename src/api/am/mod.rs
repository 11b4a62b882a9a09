//! Active messages, typed: work that travels to the rank that has the data.
//!
//! A [`Message`] is a value that is sent to a rank and handled there. An [`Item`] is
//! a small piece of plain data, of which many travel together. Both are registered
//! by type, in the same order on every rank, by [`Handlers`]; that gives
//! [`Messages`], by which they are sent. A handler reaches this rank's data as
//! [`Context::state`].
//!
//! ```no_run
//! use portolan::{Context, Handlers, Item, Message};
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
//!     fn handle(self, context: &Context<'_>) -> Option<u64> {
//!         let counters = &context.state::<Counters>().0;
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
//!     fn apply(batch: &[Count], context: &Context<'_>) {
//!         let counters = &context.state::<Counters>().0;
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
//! # How handlers run
//! Handlers of a rank run one at a time, on whichever thread makes progress: the
//! program's, inside a call of this library, or the progress thread's while the
//! program computes. They may send messages; they must not wait, and a call that
//! would gives an error that names the handler. A message that is registered by
//! [`Handlers::blocking_message`] may wait: it runs on a thread of its own. Messages
//! from one rank to another are handled in the order in which they were sent, except
//! that long ones may be overtaken. A handler that panics ends the job.
//!
//! # Encoding
//! Messages and replies are encoded by serde in the format of `postcard`, which is
//! compact and needs no names of fields. Items travel as they lie in memory.
//!
//! | module | owns |
//! |---|---|
//! | `message` | the traits |
//! | `handlers` | registration |
//! | `messages` | sending |
//! | `batches` | items |
//! | `context` | what a handler sees |
//! | `reply` | answers, waited for |
//! | `serve` | the target's side: decoding, running, answering |
//! | `codec` | what travels |
//! | `shared` | what a registration keeps |

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
