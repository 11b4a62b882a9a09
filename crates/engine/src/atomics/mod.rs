//! Atomic operations: read-modify-write, mutexes, and flags.
//!
//! All accumulates and read-modify-writes have one mechanism (invariant 2): accumulates take the
//! [`crate::path::lock_stripe`] locks in the owner's region, and read-modify-writes are atomic
//! instructions. The owner's progress engine executes them for ranks that do not map its memory.
//! Accumulates of unaligned elements are atomic against every accumulate that overlaps them.

pub mod mutex;
mod node_queue;
pub mod notifications;
pub mod put_flag;
pub mod rmw;

pub use crate::path::ops::{Combine, Number, Rmw};
