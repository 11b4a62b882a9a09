//! The trace files of [Portolan](https://docs.rs/portolan): what `PORTOLAN_TRACE` writes and
//! `portolan-report` reads.
//!
//! Each rank of a job writes one file: a header, metadata in JSON, and blocks of events.
//!
//! ```
//! use portolan_trace_format::event::{Encoder, Event, Events};
//!
//! let mark = Event::Mark { time: 1_250, string: 7 };
//! let mut block = [0; 64];
//! let len = Encoder::new(1_000).put(&mark, &mut block);
//! let events: Vec<_> = Events::new(&block[..len], 1_000).collect();
//! assert_eq!(events, [Ok(mark)]);
//! ```
#![warn(missing_docs, unreachable_pub)]
#![forbid(unsafe_code)]

pub mod alignment;
pub mod event;
pub mod format;
pub mod kinds;
pub mod metadata;
#[cfg(feature = "read")]
pub mod read;
#[cfg(all(test, feature = "read"))]
mod tests;
