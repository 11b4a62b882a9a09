//! The typed interface: one-sided communication for Rust programs.
//!
//! A program runs as several *ranks*, one process each, started by `mpirun`.
//! [`Runtime`] is the guard of the running library. Ranks form [`Group`]s;
//! a group allocates [`Segment`]s, arrays of which every rank owns a part and
//! any rank reads and writes any part, without the owner taking part.
//!
//! ```no_run
//! use portolan::Runtime;
//!
//! fn main() -> portolan::Result<()> {
//!     let rt = Runtime::init()?;
//!     let world = rt.world();
//!     let segment = world.allocate::<f64>(100)?; // 100 elements on each rank
//!     let next = (rt.rank() + 1) % rt.size();
//!     segment.put(next, 0, &[rt.rank() as f64])?; // into the neighbour's part
//!     world.barrier()?; // all puts are done and visible
//!     println!("{}", segment.local().read(0)); // what the other neighbour put
//!     segment.free()?;
//!     rt.finalize()
//! }
//! ```
//!
//! # What is collective
//! `init`, `finalize`, `allocate`, `free`, `subgroup`, `mutexes`, `barrier`,
//! `broadcast` and the reductions are *collective*: all ranks of the group call
//! them, in the same order. Everything else is called by one rank alone. No
//! destructor is collective except that of [`Runtime`], because destructors run
//! at moments that ranks do not share: a segment that is dropped and not freed
//! keeps its memory until the runtime ends, and says so in the log.
//!
//! # When a transfer is done
//! A blocking put returns when its source may be reused; a blocking get when the
//! elements are here. Blocking operations of one rank on one location take
//! effect in program order. A *fence* ([`Segment::fence`], [`Runtime::fence_all`])
//! returns when what this rank has put is visible at the target, and a
//! [`Group::barrier`] fences everything. Non-blocking transfers
//! ([`Runtime::scope`], [`Segment::get_owned`]) are ordered by their waits and
//! by fences only.
//!
//! # What the compiler checks, and what not
//! Elements are [`Element`]s: any bytes are a value, so no race between ranks
//! can make an invalid one. Races can still give old, new or mixed *contents*:
//! order them with fences, barriers, flags or mutexes. Bounds are checked before
//! anything moves. A buffer that a non-blocking get still fills
//! cannot be read, a segment cannot be freed while a transfer in a scope uses it,
//! and what borrows from the runtime cannot outlive it: see [`Runtime::scope`].
//!
//! The exact guarantee of memory safety is in the [crate's documentation](crate#memory-safety).
//!
//! # Errors and panics
//! Calls return [`crate::Error`], which names the call and the rank. An error or
//! a panic on one rank leaves the other ranks waiting for it, so a panic ends the job
//! ([`Builder::abort_on_panic`]), and [`run`] does the same for errors.
//!
//! | module | owns |
//! |---|---|
//! | `runtime`, `panic`, `run` | the guard, panics, a main function |
//! | `in_call` | errors name the public call |
//! | `group` | groups and their collectives |
//! | `element` | which types move, add, and count |
//! | `segment`, `atomic`, `notify` | operations on segments |
//! | `remote`, `local` | one rank's part: another's, one's own |
//! | `block`, `strided` | blocks of multi-dimensional arrays |
//! | `pending`, `scope`, `owned` | non-blocking transfers |
//! | `exclusive`, `views` | what [`crate::array`] stands on: parts lent to their owners, transfers of `ndarray` views |
//! | `mutex` | mutexes |
//! | `unfreed` | the warning about what was dropped and not freed |
//! | [`am`] | active messages |
//! | `stats` | statistics, regions and marks |
//! | `compose` | compositions: described once, performed many times |

pub(crate) mod am;
mod atomic;
mod block;
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
mod owned;
mod panic;
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

pub use crate::collective::{Element as Reducible, Operator};
pub use crate::mpi::init::ThreadLevel;
pub use crate::path::Path;
pub use block::Block;
pub use bytemuck::Pod;
pub use compose::{Composer, Composition, Kind as CompositionKind, Loaded, Mapped, Slice};
pub use element::{Accumulate, Atomic, Element};
#[cfg(feature = "array")]
pub(crate) use exclusive::{Exclusive, Window};
pub use group::Group;
pub use local::Local;
pub use mutex::{MutexGuard, MutexSet};
pub use num_complex::Complex;
pub use owned::PendingVec;
pub use remote::Remote;
pub use run::run;
pub use runtime::{Builder, Runtime};
pub use scope::{Pending, PendingGet, Scope};
pub use segment::Segment;
pub use stats::{CallStats, Region, Stats, TimeStats};
