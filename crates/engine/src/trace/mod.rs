//! Statistics (`PORTOLAN_STATS`) and trace files (`PORTOLAN_TRACE`) of a run.
//!
//! Each engine has an [`Observer`]. The layers report calls, waits and served requests to it. Each
//! thread counts and records for itself, without locks and waits. A separate thread writes the
//! file.
//!
//! | module | contents |
//! |---|---|
//! | `call_info` | descriptions of calls and waits; counters that are always active |
//! | `observer` | the functions that record calls, waits, served requests and regions |
//! | `entered` | calls and requests that are being recorded |
//! | `exclude` | exclusion of the library's own calls |
//! | `call_site` | the places in the program that call the library |
//! | `interface` | the interface through which a thread called the library |
//! | `counters` | the counters of a thread, and their sum |
//! | `log` | the events of a thread in memory |
//! | `writer` | the thread that writes the file, and what happens to events if it cannot |
//! | `usage` | the processor use of the process, for the trace |
//! | `clock` | a cheap clock in nanoseconds |
//!
//! The crate `portolan_trace_format` defines the format of the files.
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
pub(crate) mod usage;
mod writer;

pub use call_info::{Awaited, CallInfo, Settings, count};
pub use clock::wall;
pub use entered::{Entered, SHORT_NS, Serving};
pub use observer::Observer;
pub use portolan_trace_format::event::Place;
pub use portolan_trace_format::kinds::{Call, Cause, Interface, PathTaken, SegmentKind, Served};
