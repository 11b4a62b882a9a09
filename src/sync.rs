//! What the parts without locks are made of.
//!
//! The crate in `models/` includes the sources of these parts, puts the doubles of a model
//! checker in the place of this module, and so runs them in every order of their steps.

pub use crate::thread::this_thread;
pub use parking_lot::{Mutex, MutexGuard};
pub use std::hint::spin_loop;
pub use std::sync::atomic;
pub use std::thread::yield_now;
pub use std::time::Instant;

/// Whether `membarrier(2)` may be used: Miri knows nothing of it.
pub const MEMBARRIER: bool = !cfg!(miri);

/// After this many uses by other threads a lock checks whether it should still favour its
/// owner.
pub const BIAS_DOUBTED: u32 = 64;
