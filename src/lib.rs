//! One-sided communication between the ranks of an MPI job.
//!
//! A rank puts data into the memory of other ranks, gets data from it and accumulates into it,
//! without the participation of those ranks. It also sends work to the rank that owns the data.
//! Within a node, Portolan uses loads and stores in shared memory. Between nodes, it uses MPI's
//! one-sided calls, or messages that the owner's progress engine serves.
//!
//! # A first program
//! A program runs as several *ranks*, one process each, started by `mpirun`. [`Runtime`] is the
//! guard of the running library. Ranks form [`Group`]s. A group allocates [`Segment`]s: every rank
//! owns a part of a segment, and any rank reads and writes any part.
//!
//! ```
#![doc = include_str!("../examples/hello_put.rs")]
//! ```
//!
//! [`run`] starts and ends the runtime, and ends the job if a rank fails. [`Runtime::init`] and
//! [`Runtime::finalize`] start and end it in programs without the closure.
//!
//! Examples of this documentation that are complete programs run as one rank, too: MPI starts a
//! process without a launcher as a job of its own.
//!
//! # Rules of completion and order
//! - A *blocking put* or accumulate returns when its source may be reused. This may be before its
//!   elements are visible at the target.
//! - A *blocking get* returns when the elements are in the target buffer.
//! - Blocking operations of one rank on one location take effect in program order: a get returns
//!   what the same rank has put before. Operations of different ranks are not ordered.
//! - A *fence* ([`Segment::fence`], [`Runtime::fence`], [`Runtime::fence_all`]) returns when
//!   everything that this rank has put or accumulated is visible at the target, or at all targets.
//! - A [`Group::barrier`] fences all targets on every rank of the group, and then waits for all
//!   ranks of the group.
//! - *Non-blocking transfers* ([`Runtime::scope`], [`Segment::start_get`]) are ordered only by
//!   their waits and by fences: see [`transfer`].
//! - *Atomic operations* ([`Segment::load`], [`Segment::store`], [`Segment::fetch_add`],
//!   [`Segment::compare_swap`] and so on) are complete on return. Those of all ranks on one
//!   element, accumulates included, take effect one after the other. They are not atomic with
//!   respect to puts.
//! - A flag ([`Segment::put_notify`]) orders earlier operations to the same rank before what that
//!   rank does next. The unlocking of a [`mutex`] orders all earlier operations before what the
//!   next holder does.
//! - Operations complete although the target computes and makes no call of this library, if there
//!   is a progress thread ([`Runtime::has_progress_thread`]) or none is needed.
//!
//! # Collective calls
//! All ranks of the group make a *collective* call, in the same order. These calls are collective:
//!
//! - `init`, `finalize`, `allocate`, `free`, `mutexes` and `barrier`;
//! - `subgroup`, over the ranks of the new group;
//! - the functions of [`Group`] that exchange data: `broadcast`, reductions, scans, gathers,
//!   `scatter` and exchanges of all ranks;
//! - calls of the modules `array`, [`compose`], [`messages`] and [`rpc`] whose documentation says
//!   so.
//!
//! A single rank makes all other calls on its own. Ranks drop objects at different times, so the
//! destructor of [`Runtime`] is the only collective one. A segment that is dropped without being
//! freed keeps its memory until the runtime ends, and a warning is logged.
//!
//! # What the compiler checks
//! Elements are [`Element`]s: every bit pattern is a valid value, so no race between ranks can
//! create an invalid one. Races can still produce old, new or mixed *contents*: order accesses with
//! fences, barriers, flags or mutexes. Bounds are checked before any data moves. A buffer cannot be
//! read while a non-blocking get fills it, a segment cannot be freed while a transfer in a scope
//! uses it, and objects that borrow from the runtime cannot outlive it: see [`Runtime::scope`].
//!
//! # Errors and panics
//! Calls return [`Error`], which names the call and the rank. Only remote calls have another error
//! type, [`rpc::Failure`], because a status travels between the ranks; it converts into [`Error`].
//! If one rank fails or panics, the other ranks would wait for it forever. A panic therefore ends
//! the job ([`RuntimeBuilder::on_panic`]), and [`run`] does the same for errors.
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | the root | [`Runtime`], [`Group`], [`Segment`], element types, errors |
//! | [`transfer`] | parts of segments, blocks of arrays, non-blocking transfers |
//! | [`reduce`] | operators and element types of reductions and scans |
//! | [`mutex`] | mutexes that any rank can lock |
//! | [`messages`] | typed active messages: work that is sent to the data |
//! | [`compose`] | transfers that are described once and performed many times (feature `compose`) |
//! | `array` | distributed arrays on `ndarray` (feature `array`) |
//! | [`rpc`] | remote procedure calls, also between services, and bulk data (feature `rpc`) |
//! | [`stats`] | statistics, regions and marks of the program in its trace |
//!
//! # Dependencies in the interface
//! `bytemuck`, `mpi`, `ndarray`, `num_complex` and `serde` occur in signatures, and are
//! re-exported in the versions that this crate uses. A new major version of one of them is a
//! breaking change of this crate.
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
//! - *Other ranks modify memory that a reference denotes.* Safe functions copy
//!   ([`Local`](transfer::Local)). References to a rank's part come from `unsafe` functions
//!   ([`Local::as_slice`](transfer::Local::as_slice)), or from `array`, which gives the owner
//!   exclusive access between two collective calls.
//! - *Ranks make different collective calls, or pass different lengths, types or roots.* The engine
//!   compares the calls before it moves data or gives access to a part. If they differ, the call fails. Only
//!   the members of a new group compare the call of [`Group::subgroup`]; others keep waiting, and
//!   report the wait.
//! - *A buffer is used or freed during a transfer.* The transfer borrows the buffer
//!   ([`Scope`](transfer::Scope)) or owns it ([`Segment::start_get`],
//!   [`Buffer`](rpc::bulk::Buffer)).
//! - *Two threads access the bytes of a [`Bulk`](rpc::bulk::Bulk) at once.* The accesses are
//!   relaxed atomics: see [`rpc::bulk`].
//! - *Use after [`Runtime::finalize`].* Objects that borrow from the [`Runtime`] cannot outlive it.
//!   Classes, contexts and calls of [`rpc`] can outlive it. On every thread they return errors of
//!   kind [`State`](ErrorKind::State) from the moment the runtime begins to stop, and the stop
//!   waits for calls in progress. A [`Bulk`](rpc::bulk::Bulk) keeps its memory, which can still be
//!   read and written.
//! - *A thread that must not call MPI calls it.* The runtime is not `Send`. Below
//!   `MPI_THREAD_MULTIPLE`, if messages use MPI,
//!   [`Messages::endpoint`](messages::Messages::endpoint) returns an error, and classes of [`rpc`]
//!   over MPI work only on the thread that started the runtime. At `MPI_THREAD_SINGLE` and
//!   `MPI_THREAD_FUNNELED`, the runtime starts only on the thread that initialised MPI.
//! - *A safe binding finalises MPI while the runtime is alive.* Later calls return errors. If other
//!   threads may be in calls that borrow from the runtime, the job is aborted.
//! - *Damaged or forged messages, files and traces.* Decoders check and reject them
//!   ([`Handlers`](messages::Handlers), [`Composer`](compose::Composer), [`rpc::encoding`]).
//!
//! **Assumptions.** The guarantee relies on conditions that the crate cannot check:
//!
//! - `unsafe` Rust, C and Fortran code on *any* rank keeps to its contracts. Through the C
//!   interfaces a rank can write into segments. Safe calls can do so too, which only changes
//!   contents. Unlike safe calls, the C interfaces can also write to a part while
//!   its owner has exclusive access, and to memory that C programs share outside segments.
//! - All ranks run the same version of this crate and the same MPI library, which keeps to the MPI
//!   standard and to the thread level that it reports. Other users of MPI in the process, such as a
//!   Rust binding, neither free the communicators that the runtime has created, nor receive their
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
// The text links to modules that only exist with their feature.
#![cfg_attr(not(all(feature = "compose", feature = "rpc")), allow(rustdoc::broken_intra_doc_links))]

#[cfg(feature = "array")]
pub mod array;
mod atomic;
mod binding;
#[cfg(feature = "compose")]
pub mod compose;
mod element;
mod group;
mod in_call;
#[doc(hidden)]
pub mod internals;
pub mod messages;
pub mod mutex;
mod one_thread;
mod panic;
mod path;
#[cfg(test)]
mod random;
pub mod reduce;
#[cfg(feature = "rpc")]
pub mod rpc;
mod run;
mod runtime;
mod segment;
pub mod stats;
pub mod transfer;
mod unfreed;

#[cfg(feature = "interpose")]
use portolan_interpose as _;

pub use element::{Accumulate, Atomic, Element};
pub use group::Group;
pub use path::TransferPath;
#[doc(inline)]
pub use portolan_base::error::{Error, ErrorKind, Result};
#[doc(inline)]
pub use portolan_engine::mpi::init::ThreadLevel;
pub use run::run;
pub use runtime::{OnPanic, Runtime, RuntimeBuilder};
pub use segment::Segment;

pub use bytemuck;
pub use mpi;
#[cfg(feature = "array")]
pub use ndarray;
pub use num_complex;
pub use serde;
