//! Statistics (`PORTOLAN_STATS`) and trace files (`PORTOLAN_TRACE`) of a run.
//!
//! Each engine has an [`Observer`]. The layers report calls, waits and served requests to it. Each
//! thread counts and records for itself, without locks and waits. A separate thread writes the
//! file, in the format of the crate `portolan_trace_format`.
//!
//! **Cost.** If neither is enabled, a call only loads one flag, beside data that it reads anyway,
//! and the code of the other case is out of its path. Statistics time about one in thirty short
//! calls; a trace times all calls.

mod call_info;
mod call_site;
mod clock;
pub mod counters;
mod entered;
mod exclude;
pub mod interface;
mod log;
mod observer;
pub mod usage;
mod writer;

pub use call_info::{Awaited, CallInfo, Settings, count};
pub use clock::wall;
pub use entered::{Entered, Serving};
pub use observer::Observer;
pub use portolan_trace_format::event::Place;
pub use portolan_trace_format::kinds::{
    Call, Cause, Interface, MpiCall, PathTaken, SegmentKind, Served,
};
