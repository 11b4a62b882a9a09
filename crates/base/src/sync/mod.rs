//! Locks and lists for many readers or threads, and the primitives that they are made of.
//!
//! The crate in `models/` includes the lock-free modules and replaces these primitives by the doubles
//! of a model checker.

pub mod append_lists;
pub mod biased_lock;
pub mod brlock;
pub mod door;
pub mod membarrier;
mod reader_slot;
pub mod ring;
pub mod ring_memory;

pub use crate::thread::this_thread;
pub use parking_lot::{Mutex, MutexGuard};
pub use std::sync::atomic;
pub use std::time::Instant;

/// Whether `membarrier(2)` may be used. Miri does not support it.
pub(crate) const MEMBARRIER: bool = !cfg!(miri);

/// Uses by other threads after which a lock checks whether to keep favouring its owner.
pub(crate) const BIAS_DOUBTED: u32 = 64;
