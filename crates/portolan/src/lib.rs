//! Portolan: one-sided communication between MPI ranks.
//!
//! A rank puts data into the memory of other ranks, gets data from it, and accumulates into it,
//! without the participation of those ranks. Within a node, Portolan uses loads and stores in
//! shared memory. Between nodes, it uses MPI's one-sided calls, or messages that the owner's
//! progress engine serves. The same engine implements a drop-in `libarmci` for C and Fortran
//! programs and the typed interface that this crate exports.
//!
//! # Memory safety
//! **Guarantee.** Code without `unsafe` that calls this crate causes no undefined behaviour: on any
//! thread, with any arguments, in any order, before, during and after the life of the runtime, and
//! whatever *safe* code the other ranks run. The following list names each hazard and what prevents
//! it.
//!
//! - *A transfer outside a segment, or with mismatched lengths.* The origin checks rank, offset and
//!   length before any data moves, against the lengths that all ranks agreed on when the segment
//!   was allocated. An owner that executes a request checks it again.
//! - *Other ranks modify memory that a reference denotes.* Safe functions copy ([`Local`]).
//!   References to a rank's part come from `unsafe` functions ([`Local::as_slice`]), or from
//!   `array`, which lends a part between two collective calls.
//! - *Ranks make different collective calls, or pass different lengths, types or roots.* The engine
//!   compares the calls before it moves data or lends a part. If they differ, the call fails.
//! - *A buffer is used or freed during a transfer.* The transfer borrows the buffer ([`Scope`]) or
//!   owns it ([`PendingVec`], [`rpc::bulk::Buffer`]).
//! - *Two threads access the bytes of a [`Bulk`](rpc::bulk::Bulk) at once.* The accesses are
//!   relaxed atomics: see [`rpc::bulk`].
//! - *Use after [`Runtime::finalize`].* Objects that borrow from the [`Runtime`] cannot outlive it.
//!   Classes, contexts, calls and bulk handles of [`rpc`] can outlive it. On every thread they
//!   return errors of kind [`State`](ErrorKind::State) from the moment the runtime begins to stop,
//!   and the stop waits for calls in progress.
//! - *A thread that must not call MPI calls it.* The runtime is not `Send`. Below
//!   `MPI_THREAD_MULTIPLE`, [`Messages::endpoint`] returns an error if messages use MPI, and
//!   [`rpc`] works only on the thread that started the runtime. At `MPI_THREAD_SINGLE` and
//!   `MPI_THREAD_FUNNELED`, the runtime starts only on the thread that initialised MPI.
//! - *A safe binding finalises MPI while the runtime is alive.* Later calls return errors. If other
//!   threads may be in calls that borrow from the runtime, the job is aborted.
//! - *Damaged or forged messages, files and traces.* Decoders check and reject them ([`Handlers`],
//!   [`Composer`], [`rpc::proc`]).
//!
//! **Assumptions.** The guarantee relies on conditions that the crate cannot check:
//!
//! - `unsafe` Rust, C and Fortran code on *any* rank keeps to its contracts. Through the C
//!   interfaces a rank can write into segments. Safe calls can do so too, which only changes
//!   contents. Unlike safe calls, the C interfaces can also write to a part that `array` has lent,
//!   and to memory that C programs share outside segments.
//! - All ranks run the same version of this crate and the same MPI library, which keeps to the MPI
//!   standard and to the thread level that it reports. Other users of MPI in the process, such as a
//!   Rust binding, do not free the communicator that the runtime was given, and do not receive its
//!   messages.
//! - No other process of the user modifies the shared memory of the job, the memory of its ranks
//!   (`ptrace`, `/proc`), or a file while it is mapped.
//! - The bytes of a bulk handle are those that a rank has serialised. A checksum detects damage,
//!   and a 64-bit random number identifies the handle. However, a rank that forges bytes around the
//!   number of a live handle can obtain memory of the owner that was never registered.
//! - The kernel honours memory reservations. The crate reports a failed allocation when it reserves
//!   the memory ([`ErrorKind::Memory`]). A kernel that overcommits memory may still kill the
//!   process.
//!
//! If a rank fails or is killed, the other ranks get errors or keep waiting. They never access
//! dangling memory.
#![warn(missing_docs, unreachable_pub)]

mod api;
#[cfg(feature = "array")]
pub mod array;
pub mod error;
#[doc(hidden)]
pub mod internals;
pub mod rpc;

#[cfg(feature = "interpose")]
use portolan_interpose as _;

pub use api::am::{Batches, Context, Endpoint, Handlers, Item, Message, Messages, Reply};
pub use api::{
    Accumulate, Atomic, Block, Builder, CallStats, Complex, Composer, Composition, CompositionKind,
    Element, Group, Loaded, Local, Mapped, MutexGuard, MutexSet, Operator, Path, Pending,
    PendingGet, PendingVec, Pod, Reducible, Region, Remote, Runtime, Scope, Segment, Slice, Stats,
    ThreadLevel, TimeStats, run,
};
pub use error::{Error, ErrorKind, Result};
#[doc(inline)]
pub use portolan_engine::config::{VARIABLES, Variable};
