//! The implementation of the public interface, which `lib.rs` and its modules export.
//!
//! `in_call` adds the name of the public call to errors. `exclusive`, `views`, `pending_array` and
//! `fresh_array` serve [`crate::array`]: lent parts, transfers of `ndarray` views, non-blocking
//! transfers, allocation. `unfreed` warns about objects that were dropped without being freed.

pub(crate) mod am;
mod atomic;
mod block;
#[cfg(feature = "compose")]
mod compose;
mod element;
#[cfg(feature = "array")]
mod exclusive;
#[cfg(feature = "array")]
pub(crate) mod fresh_array;
mod group;
pub(crate) mod in_call;
mod local;
mod mutex;
mod notify;
pub(crate) mod operator;
mod owned;
mod panic;
mod path;
mod pending;
#[cfg(feature = "array")]
pub(crate) mod pending_array;
mod remote;
mod run;
mod runtime;
mod scope;
mod segment;
mod stats;
mod strided;
mod unfreed;
#[cfg(feature = "array")]
pub(crate) mod views;

pub use block::Block;
#[cfg(feature = "compose")]
pub use compose::{Composer, Composition, CompositionKind, Loaded, Mapped, Slice};
pub use element::{Accumulate, Atomic, Element};
#[cfg(feature = "array")]
pub(crate) use exclusive::{Exclusive, Window};
pub use group::Group;
pub use local::Local;
pub use mutex::{MutexGuard, MutexSet};
pub use owned::PendingVec;
pub use path::TransferPath;
pub use remote::Remote;
pub use run::run;
pub use runtime::{OnPanic, Runtime, RuntimeBuilder};
pub use scope::{Pending, PendingGet, Scope};
pub use segment::Segment;
pub use stats::{Aggregated, CallStats, PeerWait, Region, Stats, TimeStats};
