//! The primitives that the lock-free modules use.
//!
//! The crate in `models/` includes the sources of these modules and replaces this module by the
//! doubles of a model checker, which runs them in every order of their steps.

pub(crate) use crate::thread::this_thread;
pub(crate) use parking_lot::{Mutex, MutexGuard};
pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic;
pub(crate) use std::thread::yield_now;
pub(crate) use std::time::Instant;

/// Whether `membarrier(2)` may be used. Miri does not support it.
pub(crate) const MEMBARRIER: bool = !cfg!(miri);

/// Number of uses by other threads after which a lock checks whether it should still favour its
/// owner.
pub(crate) const BIAS_DOUBTED: u32 = 64;
