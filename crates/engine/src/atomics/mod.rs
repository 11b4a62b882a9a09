//! Atomic operations: atomicity domains, read-modify-write, mutexes, and flags.
//!
//! Every arena has one atomicity domain ([`crate::memory::arena::Domain`], invariant 2) for all
//! accumulates and read-modify-writes on it:
//!
//! - *native*: accumulates take the [`crate::path::lock_stripe`] locks in the owner's region, and
//!   read-modify-writes are atomic instructions. The owner's progress engine executes them for
//!   ranks of other nodes.
//! - *MPI*: `MPI_Accumulate`, `MPI_Fetch_and_op` and `MPI_Compare_and_swap` on the arena's window,
//!   also between ranks of a node.
//!
//! Unaligned elements of an accumulate are in the native domain of every arena, because MPI
//! guarantees nothing for them. They are atomic against every accumulate on the same address, in a
//! native arena even if it overlaps in part.

pub mod mutex;
mod node_queue;
pub mod notifications;
pub mod put_flag;
pub mod rmw;

pub use crate::path::ops::{Combine, Number, Rmw};
