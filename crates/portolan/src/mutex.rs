//! Mutexes that are owned by ranks and can be locked by any rank.
//!
//! [`Group::mutexes`](crate::Group::mutexes) creates a [`MutexSet`] collectively. Each rank owns
//! some mutexes of the set, and any rank locks a mutex by its owner and its number. The guard
//! unlocks it.
//!
//! ```no_run
//! # fn update(rt: &portolan::Runtime, account: &portolan::Segment<'_, f64>) -> portolan::Result<()> {
//! let mutexes = rt.world().mutexes(1)?; // one mutex on each rank; collective
//! let guard = mutexes.lock(0, 0)?;
//! let balance = account.get_value(0, 0)?;
//! account.put_value(0, 0, balance * 1.01)?;
//! guard.unlock()?; // the put is visible to the next owner of the mutex
//! mutexes.free() // collective
//! # }
//! ```
//!
//! # Completion
//! Unlocking completes all operations that this rank has issued, to any rank, before another rank
//! can lock the mutex. A guard that is dropped unlocks in the same way, and logs an error instead
//! of returning it.

pub use crate::api::{MutexGuard, MutexSet};
