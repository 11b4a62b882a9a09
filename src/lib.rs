//! Portolan: one-sided communication between MPI ranks.
//!
//! A rank puts bytes into, gets bytes from, and combines numbers with the memory
//! of other ranks, without those taking part. On a node this is load and store in
//! shared memory; between nodes MPI's one-sided calls or messages that the
//! owner's progress engine serves. The same engine carries a drop-in `libarmci`
//! for C and Fortran programs and the typed interface that this crate exports.
//!
//! # Memory safety
//! **Guarantee.** Code without `unsafe` that calls this crate causes no undefined behaviour: on any
//! thread, with any arguments, in any order, before, during and after the life of the runtime, and
//! whatever *safe* code the other ranks run. It is upheld as follows.
//!
//! | what could go wrong | what prevents it |
//! |---|---|
//! | a transfer outside of a segment, or with lengths that do not match | the origin checks rank, offset and length before anything moves, against what all ranks agreed on when the segment was allocated; an owner that carries out a request checks it again |
//! | other ranks change memory that a reference denotes | safe functions copy ([`Local`]); references to a rank's part come from `unsafe` functions ([`Local::as_slice`]), or from `array`, which lends a part between collective calls |
//! | ranks call different collectives, or with other lengths, types or roots | the engine compares the calls before it moves bytes or lends a part; the call fails |
//! | a buffer is used or freed while a transfer is under way | borrows ([`Scope`]), or the transfer owns the buffer ([`PendingVec`], [`rpc::bulk::Buffer`]) |
//! | two threads use the bytes of a [`Bulk`](rpc::bulk::Bulk) at once | relaxed atomic accesses: [`rpc::bulk`] |
//! | use after [`Runtime::finalize`] | what borrows from the [`Runtime`] cannot outlive it; classes, contexts, calls and bulk handles of [`rpc`], which can, give errors of kind [`State`](ErrorKind::State) on every thread from the moment at which the runtime begins to end, and the end waits for calls in progress |
//! | MPI is called by a thread that may not | the runtime is not `Send`; below `MPI_THREAD_MULTIPLE` [`Messages::endpoint`] is refused, and [`rpc`] works only on the thread that started the runtime; at `MPI_THREAD_SINGLE` and `FUNNELED` the runtime starts only on the thread that initialised MPI |
//! | MPI is finalised by a safe binding while the runtime lives | calls give errors; where other threads may be in calls that borrow from the runtime, the job ends |
//! | damaged or forged messages, files and traces | they are decoded with checks, and refused ([`Handlers`], [`Composer`], [`rpc::proc`]) |
//!
//! **Assumptions.** The guarantee stands on what the crate cannot check:
//!
//! - `unsafe` Rust, C and Fortran on *any* rank keep to their contracts. By the C interfaces a rank may
//!   write into segments as by safe calls, which changes contents; but also while a part is lent by
//!   `array`, which safe calls cannot, and at addresses of memory that C programs share
//!   outside of segments.
//! - All ranks run the same version of this crate, and the same MPI, which keeps to its standard
//!   and to the thread level that it reports. Other users of MPI in the process, such as a Rust
//!   binding, do not free the communicator that the runtime was given, and leave its messages alone.
//! - No other process of the user changes the shared memory of the job, nor the memory of its ranks
//!   (`ptrace`, `/proc`), nor a file while it is mapped.
//! - The bytes of a bulk handle are those that a rank has serialised. Their checksum finds damage, and
//!   a handle is known by a random number of 64 bits; but a rank that makes up bytes around the number
//!   of a live handle can have memory of its owner copied that was never exposed.
//! - Memory that cannot be had is found out when it is reserved ([`ErrorKind::Memory`]); a kernel
//!   that gives away more than it has may still end the process.
//!
//! A rank that fails, or is killed, leaves the others with errors, or waiting; never with dangling memory.
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
mod message;
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
