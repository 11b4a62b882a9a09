//! What the parts without locks are made of.
//!
//! The crate in `models/` includes the sources of these parts, puts the doubles of a model
//! checker in the place of this module, and so runs them in every order of their steps.

pub(crate) use crate::thread::this_thread;
pub(crate) use parking_lot::{Mutex, MutexGuard};
pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic;
pub(crate) use std::thread::yield_now;
pub(crate) use std::time::Instant;

/// Whether `membarrier(2)` may be used: Miri knows nothing of it.
pub(crate) const MEMBARRIER: bool = !cfg!(miri);

/// After this many uses by other threads a lock checks whether it should still favour its
/// owner.
pub(crate) const BIAS_DOUBTED: u32 = 64;
