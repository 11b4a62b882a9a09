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
//! If `PORTOLAN_STATS=1` or `PORTOLAN_TRACE` is set, all calls, waits and requests of other ranks
//! are counted. Otherwise ([`Stats::is_complete`] returns false):
//!
//! - [`Stats::calls`], [`Stats::served`] and [`Stats::waited_for`] are empty, and
//!   [`Stats::longest_delay`] is zero;
//! - [`Stats::waits`] has only waits that outlast their first polls, with the time after these
//!   polls, and no longest time.
//!
//! A call is counted when it returns without an error. Times are wall-clock times, and those of
//! short calls are estimated from a sample. Regions and marks have an effect only in a trace
//! (`PORTOLAN_TRACE`).

pub use crate::api::{Aggregated, CallStats, PeerWait, Region, Stats, TimeStats};
