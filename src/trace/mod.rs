//! What a run leaves behind: the statistics of `PORTOLAN_STATS`, and the files of `PORTOLAN_TRACE`.
//!
//! An engine has an [`Observer`]. Layers tell it of calls, waits, and what they serve for other ranks; each thread
//! counts and records by itself, without locks and without waiting, and a thread of the observer's own writes the file.
//!
//! | module | owns |
//! |---|---|
//! | `about` | what a call was, what a thread waits for; what is counted always |
//! | `observer` | what layers tell: calls, waits, what is served, regions |
//! | `face` | which interface a thread was called by |
//! | `counters` | counters of a thread, and their sum |
//! | `log` | the events of a thread in memory |
//! | `writer` | the thread that writes the file, and what becomes of events when it cannot |
//! | `clock` | time in nanoseconds, cheaply |
//!
//! The format of the files is the crate `portolan_trace_format`.
//!
//! **Cost.** Where neither is asked for, a call pays for one load of a flag that lies beside what it reads anyway, and
//! the code for the other case is out of its way. Statistics time one of some thirty short calls; a trace times all.

mod about;
mod clock;
pub(crate) mod counters;
pub(crate) mod face;
mod log;
mod observer;
mod writer;

pub(crate) use about::{About, Awaited, Settings, count};
pub(crate) use clock::wall;
pub use observer::Observer;
pub(crate) use observer::{Entered, SHORT_NS, Serving};
pub(crate) use portolan_trace_format::event::Place;
pub(crate) use portolan_trace_format::kinds::{Call, Cause, Face, PathTaken, SegmentKind, Served};
