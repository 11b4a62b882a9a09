//! The typed interface: one-sided communication for Rust programs.
//!
//! A program runs as several *ranks*, one process each, started by `mpirun`. [`Runtime`] is the
//! guard of the running library. Ranks form [`Group`]s. A group allocates [`Segment`]s: every rank
//! owns a part of a segment, and any rank can read and write any part without the participation of
//! its owner.
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
//! # Collective calls
//! `init`, `finalize`, `allocate`, `free`, `subgroup`, `mutexes`, `barrier`, `broadcast` and the
//! reductions are *collective*: all ranks of the group call them, in the same order. A single rank
//! makes all other calls on its own. Ranks drop objects at different times, so the destructor of
//! [`Runtime`] is the only collective one. A segment that is dropped without being freed keeps its
//! memory until the runtime ends, and a warning is logged.
//!
//! # Completion of transfers
//! A blocking put returns when its source may be reused. A blocking get returns when the elements
//! are in the target buffer. Blocking operations of one rank on one location take effect in program
//! order. A *fence* ([`Segment::fence`], [`Runtime::fence_all`]) returns when everything that this
//! rank has put is visible at the target. A [`Group::barrier`] fences all targets. Non-blocking
//! transfers ([`Runtime::scope`], [`Segment::get_owned`]) are ordered only by their waits and by
//! fences.
//!
//! # What the compiler checks
//! Elements are [`Element`]s: every bit pattern is a valid value, so no race between ranks can
//! create an invalid one. Races can still produce old, new or mixed *contents*: order accesses with
//! fences, barriers, flags or mutexes. Bounds are checked before any data moves. A buffer cannot be
//! read while a non-blocking get fills it, a segment cannot be freed while a transfer in a scope
//! uses it, and objects that borrow from the runtime cannot outlive it: see [`Runtime::scope`].
//!
//! The exact guarantee of memory safety is in the [crate's documentation](crate#memory-safety).
//!
//! # Errors and panics
//! Calls return [`crate::Error`], which names the call and the rank. If one rank fails or panics,
//! the other ranks would wait for it forever. A panic therefore ends the job
//! ([`Builder::abort_on_panic`]), and [`run`] does the same for errors.
//!
//! | module | contents |
//! |---|---|
//! | `runtime`, `panic`, `run` | the guard, the panic hook, a main function |
//! | `in_call` | the name of the public call in errors |
//! | `group` | groups and their collectives |
//! | `element` | element types: transfer, accumulate, atomics |
//! | `segment`, `atomic`, `notify` | operations on segments |
//! | `remote`, `local` | the part of one rank: a remote one, the own one |
//! | `block`, `strided` | blocks of multi-dimensional arrays |
//! | `pending`, `scope`, `owned` | non-blocking transfers |
//! | `exclusive`, `views` | for [`crate::array`]: lent parts, transfers of `ndarray` views |
//! | `pending_array`, `fresh_array` | for [`crate::array`]: non-blocking transfers, allocation |
//! | `mutex` | mutexes |
//! | `unfreed` | warnings about objects that were dropped without being freed |
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
pub use portolan_engine::collective::{Element as Reducible, Operator};
pub use portolan_engine::mpi::init::ThreadLevel;
pub use portolan_engine::path::Path;
pub use remote::Remote;
pub use run::run;
pub use runtime::{Builder, Runtime};
pub use scope::{Pending, PendingGet, Scope};
pub use segment::Segment;
pub use stats::{CallStats, Region, Stats, TimeStats};
