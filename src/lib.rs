//! Portolan: one-sided communication between MPI ranks.
//!
//! A rank puts bytes into, gets bytes from, and combines numbers with the memory
//! of other ranks, without those taking part. On a node this is load and store in
//! shared memory; between nodes MPI's one-sided calls or messages that the
//! owner's progress engine serves. The same engine carries a drop-in `libarmci`
//! for C and Fortran programs and the typed interface that this crate exports.
#![warn(missing_docs, unreachable_pub)]

mod am;
mod any_memory;
mod api;
#[cfg(feature = "array")]
pub mod array;
mod atomics;
mod capi;
mod collective;
mod compose;
mod config;
mod core;
pub mod error;
mod futex;
mod group;
mod handles;
#[doc(hidden)]
pub mod internals;
mod layout;
mod memory;
mod mpi;
mod mutation;
mod ops;
mod path;
mod peer;
mod process;
mod progress;
pub mod rpc;
mod runtime;
mod sharing;
mod shm;
mod sync;
mod thread;
mod topology;
mod trace;
mod transfer;
mod wait;
mod watchdog;

pub use api::am::{Batches, Context, Endpoint, Handlers, Item, Message, Messages, Reply};
pub use api::{
    Accumulate, Atomic, Block, Builder, CallStats, Complex, Composer, Composition, CompositionKind,
    Element, Group, Loaded, Local, Mapped, MutexGuard, MutexSet, Operator, Path, Pending,
    PendingGet, PendingVec, Pod, Reducible, Region, Remote, Runtime, Scope, Segment, Slice, Stats,
    ThreadLevel, TimeStats, run,
};
pub use config::{VARIABLES, Variable};
pub use error::{Error, ErrorKind, Result};
