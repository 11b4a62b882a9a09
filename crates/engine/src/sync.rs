//! The primitives of the lock-free modules. The crate in `models/` includes those modules and
//! replaces this one by the doubles of a model checker.

pub use crate::thread::this_thread;
pub use parking_lot::{Mutex, MutexGuard};
pub use std::sync::atomic;
pub use std::time::Instant;

/// Whether `membarrier(2)` may be used. Miri does not support it.
pub(crate) const MEMBARRIER: bool = !cfg!(miri);

/// Uses by other threads after which a lock checks whether to keep favouring its owner.
pub(crate) const BIAS_DOUBTED: u32 = 64;
