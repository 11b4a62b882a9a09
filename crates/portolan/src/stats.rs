//! Statistics of a rank, and marks of the program in its trace.
//!
//! [`Runtime::stats`](crate::Runtime::stats) returns the counters of the calling rank: calls by
//! kind and path, waits by cause and by rank, and work done for other ranks. No call of this module
//! is collective, and the counters of other ranks are not included.
//!
//! ```no_run
//! # fn step(rt: &portolan::Runtime) -> portolan::Result<()> {
//! rt.reset_stats();
//! {
//!     let _region = rt.region("exchange"); // in the trace, until it is dropped
//!     rt.fence_all()?;
//! }
//! for of in rt.stats().calls() {
//!     println!("{} by {}: {} calls, {} bytes, {:?}", of.call, of.path, of.calls, of.bytes, of.time);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What is counted
//! All calls are counted if `PORTOLAN_STATS=1` or `PORTOLAN_TRACE` is set. Otherwise a wait is
//! counted only if it outlasts its first polls ([`Stats::is_complete`]). A call is counted when it
//! returns. Times are wall-clock times, and those of short calls are estimated from a
//! sample. Regions and marks have an effect only in a trace (`PORTOLAN_TRACE`).

pub use crate::api::{Aggregated, CallStats, PeerWait, Region, Stats, TimeStats};
