//! Mutexes that are owned by ranks and can be locked by any rank.
//!
//! [`Group::mutexes`](crate::Group::mutexes) creates a [`MutexSet`] collectively. Each rank owns
//! some mutexes of the set, and any rank locks a mutex by its owner and its number. The guard
//! unlocks it.
//!
//! ```
//! fn main() -> std::process::ExitCode {
//!     portolan::run(|rt| -> portolan::Result<()> {
//!         let world = rt.world();
//!         let account = world.allocate::<f64>(1)?;
//!         let mutexes = world.mutexes(1)?; // one mutex on each rank; collective
//!         let guard = mutexes.lock(0, 0)?;
//!         let balance = account.get_value(0, 0)?;
//!         account.put_value(0, 0, balance + 1.5)?;
//!         guard.unlock()?; // the put is visible to the next owner of the mutex
//!         world.barrier()?;
//!         assert_eq!(account.get_value(0, 0)?, 1.5 * rt.size() as f64);
//!         mutexes.free()?; // collective
//!         account.free()
//!     })
//! }
//! ```
//!
//! # Completion
//! Unlocking completes all operations that this rank has issued, to any rank, before another rank
//! can lock the mutex. A guard that is dropped unlocks in the same way, and logs an error instead
//! of returning it.
use crate::in_call::{InCall, public};
use crate::{Group, unfreed};
use portolan_base::error::Result;
use portolan_engine::atomics::mutex;
use std::sync::Arc;

/// A set of mutexes, numbered on each rank of a group.
///
/// Waiting ranks get a mutex in the order of their requests, except that it may pass several times
/// between waiting ranks of one node before a rank of another node gets it. A set that is dropped
/// without being freed keeps its memory until the runtime ends.
#[derive(Debug)]
#[must_use = "the memory of a dropped set is released only when the runtime ends; call `free`"]
pub struct MutexSet<'rt> {
    group: Group<'rt>,
    inner: Arc<mutex::MutexSet>,
    freed: bool,
}

/// A guard of a locked mutex. Dropping it unlocks the mutex.
///
/// All operations that this rank has issued, to any rank, are complete before another rank can lock
/// the mutex.
#[derive(Debug)]
#[must_use = "a mutex is released when its guard is dropped"]
pub struct MutexGuard<'a> {
    set: &'a MutexSet<'a>,
    rank: usize,
    index: usize,
    held: bool,
}

impl<'rt> Group<'rt> {
    /// Creates `here` mutexes on this rank. Each rank passes its own number. Collective.
    ///
    /// # Errors
    /// Returns `Memory` on all ranks if an allocation fails, or `State` if the group was freed.
    #[track_caller]
    pub fn mutexes(&self, here: usize) -> Result<MutexSet<'rt>> {
        let inner =
            public("Group::mutexes", || self.engine().create_mutexes(self.inner(), Ok(here)))?;
        Ok(MutexSet { group: self.clone(), inner, freed: false })
    }
}

impl MutexSet<'_> {
    /// Returns the number of mutexes on each rank, indexed by rank.
    pub fn counts(&self) -> &[usize] {
        self.inner.counts()
    }

    /// Locks mutex `index` of `rank`. Waits while another rank holds it.
    ///
    /// # Errors
    /// Returns `Rank` if `rank` is outside the group, `Argument` if the mutex does not exist, or
    /// `State` if this rank already holds it.
    #[track_caller]
    pub fn lock(&self, rank: usize, index: usize) -> Result<MutexGuard<'_>> {
        public("MutexSet::lock", || self.group.engine().lock(&self.inner, index, rank))?;
        Ok(MutexGuard { set: self, rank, index, held: true })
    }

    /// Locks mutex `index` of `rank` if it is free. Returns `None` if any rank holds it, also this
    /// one.
    ///
    /// # Errors
    /// Returns `Rank` if `rank` is outside the group, or `Argument` if the mutex does not exist.
    pub fn try_lock(&self, rank: usize, index: usize) -> Result<Option<MutexGuard<'_>>> {
        let got = self.group.engine().try_lock(&self.inner, index, rank);
        let got = got.in_call("MutexSet::try_lock")?;
        Ok(got.then(|| MutexGuard { set: self, rank, index, held: true }))
    }

    /// Frees the mutexes. Collective.
    ///
    /// No rank may hold one of them:
    ///
    /// ```compile_fail,E0505
    /// fn held(set: portolan::mutex::MutexSet<'_>) -> portolan::Result<()> {
    ///     let guard = set.lock(0, 0)?;
    ///     set.free()?;
    ///     guard.unlock()
    /// }
    /// ```
    ///
    /// # Errors
    /// Returns `State` if this rank forgot a guard. The mutexes are freed even so.
    #[track_caller]
    pub fn free(mut self) -> Result<()> {
        self.freed = true;
        public("MutexSet::free", || self.group.engine().destroy_mutexes(&self.inner))
    }
}

impl MutexGuard<'_> {
    /// Unlocks the mutex.
    ///
    /// # Errors
    /// Returns `Mpi` if the operations that this rank has issued cannot be completed.
    pub fn unlock(mut self) -> Result<()> {
        self.held = false;
        self.release().in_call("MutexGuard::unlock")
    }

    fn release(&self) -> Result<()> {
        self.set.group.engine().unlock(&self.set.inner, self.index, self.rank)
    }
}

impl Drop for MutexGuard<'_> {
    fn drop(&mut self) {
        if self.held
            && let Err(error) = self.release()
        {
            log::error!("{}", error.in_call("MutexGuard::drop"));
        }
    }
}

impl Drop for MutexSet<'_> {
    fn drop(&mut self) {
        if !self.freed && !std::thread::panicking() && portolan_engine::runtime::is_running() {
            unfreed::note("a set of mutexes".into());
        }
    }
}
