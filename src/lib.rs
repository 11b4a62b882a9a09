//! Portolan: one-sided communication between MPI ranks.
//!
//! A rank puts bytes into, gets bytes from, and combines numbers with the memory
//! of other ranks, without those taking part. On a node this is load and store in
//! shared memory; between nodes MPI's one-sided calls or messages that the
//! owner's progress engine serves. The same engine carries a drop-in `libarmci`
//! for C and Fortran programs and the typed interface that this crate exports.
#![warn(missing_docs)]

pub mod am;
pub mod any_memory;
pub mod api;
pub mod atomics;
pub mod capi;
pub mod collective;
pub mod compose;
pub mod config;
pub mod core;
pub mod error;
pub mod futex;
pub mod group;
pub mod handles;
pub mod layout;
pub mod memory;
pub mod mpi;
#[doc(hidden)]
pub mod mutation;
pub mod ops;
pub mod path;
pub mod peer;
mod process;
pub mod progress;
pub mod rpc;
pub mod runtime;
pub mod sharing;
pub mod shm;
pub(crate) mod sync;
pub mod thread;
pub mod topology;
pub mod transfer;
pub mod wait;
pub mod watchdog;

pub use api::am::{Batches, Context, Endpoint, Handlers, Item, Message, Messages, Reply};
pub use api::{
    Accumulate, Atomic, Block, Builder, Complex, Composer, Composition, CompositionKind, Element,
    Group, Loaded, Local, Mapped, MutexGuard, MutexSet, Operator, Path, Pending, PendingGet,
    PendingVec, Pod, Reducible, Remote, Runtime, Scope, Segment, Slice, run,
};
pub use error::{Error, ErrorKind, Result};
