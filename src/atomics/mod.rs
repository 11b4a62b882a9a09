//! Atomic operations: what makes them atomic, read-modify-write, mutexes, flags.
//!
//! Every slab has one atomicity domain ([`crate::memory::slab::Domain`]), and
//! all accumulates and read-modify-writes on it go through it, whoever issues
//! them:
//!
//! * *native*: the owner's slice begins with [`crate::path::stripe`] locks. Ranks on the
//!   owner's node take them themselves; for other ranks the owner's progress
//!   engine takes them.
//! * *MPI*: `MPI_Accumulate`, `MPI_Fetch_and_op` and `MPI_Compare_and_swap` on
//!   the slab's window, also on a node.
//!
//! Elements of an accumulate that are not aligned are in the native domain of every slab,
//! since MPI promises nothing for them: they are atomic against every accumulate on the same
//! address, and in a native slab also against those that overlap them in part.
//!
//! A rank holds one stripe at a time, or two neighbours for an element that lies in both,
//! and never waits for anything else while it does.

pub(crate) mod mutex;
mod node_queue;
pub(crate) mod notify;
pub(crate) mod rmw;

pub use crate::path::ops::Rmw;
