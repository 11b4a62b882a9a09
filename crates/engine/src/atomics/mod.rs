//! Atomic operations: atomicity domains, read-modify-write, mutexes, and flags.
//!
//! Every arena has one atomicity domain ([`crate::memory::arena::Domain`]). All accumulates and
//! read-modify-writes on the arena go through that domain, whichever rank issues them:
//!
//! * *native*: accumulates take the [`crate::path::lock_stripe`] locks at the beginning of the
//!   owner's region, and read-modify-writes are atomic instructions. Ranks on the owner's node
//!   execute both themselves. For other ranks the owner's progress engine executes them.
//! * *MPI*: `MPI_Accumulate`, `MPI_Fetch_and_op` and `MPI_Compare_and_swap` on the window of the
//!   arena, also between ranks of a node.
//!
//! Unaligned elements of an accumulate are in the native domain of every arena, because MPI
//! guarantees nothing for them. They are atomic against every accumulate on the same address. In a
//! native arena they are also atomic against accumulates that overlap them partially.
//!
//! A rank holds one lock stripe at a time, or two neighbours for an element that lies in both. It
//! never waits for anything else while it holds a stripe.

pub mod mutex;
mod node_queue;
pub mod notifications;
pub mod notify;
pub mod rmw;

pub use crate::path::ops::{Combine, Number, Rmw};
