//! The primitives that the lock-free modules use.
//!
//! The crate in `models/` includes the sources of these modules and replaces this module by the
//! doubles of a model checker, which runs them in every order of their steps.

pub use crate::thread::this_thread;
pub use parking_lot::{Mutex, MutexGuard};
pub use std::sync::atomic;
pub use std::time::Instant;

/// Whether `membarrier(2)` may be used. Miri does not support it.
pub(crate) const MEMBARRIER: bool = !cfg!(miri);

/// Number of uses by other threads after which a lock checks whether it should still favour its
/// owner.
pub(crate) const BIAS_DOUBTED: u32 = 64;
