//! Mutexes that live on ranks and are taken by any of them.

use super::in_call::{InCall, public};
use super::{Group, unfreed};
use crate::atomics::mutex;
use crate::error::Result;
use std::sync::Arc;

/// Numbered mutexes on each rank of a group; first come, first served.
///
/// A set that is dropped and not freed keeps its memory until the runtime ends.
#[derive(Debug)]
pub struct MutexSet<'rt> {
    group: Group<'rt>,
    inner: Arc<mutex::MutexSet>,
    freed: bool,
}

/// A held mutex; dropping it releases.
///
/// Everything that this rank has issued, to any rank, is complete before another
/// rank can take the mutex.
#[derive(Debug)]
#[must_use = "a mutex is released when its guard is dropped"]
pub struct MutexGuard<'a> {
    set: &'a MutexSet<'a>,
    rank: usize,
    index: usize,
    held: bool,
}

impl<'rt> Group<'rt> {
    /// Makes `here` mutexes on this rank and as many as the other ranks ask for on
    /// theirs. Collective.
    ///
    /// # Errors
    /// `Memory` on all ranks where it cannot be had on one; `State` after the
    /// group was freed.
    #[track_caller]
    pub fn mutexes(&self, here: usize) -> Result<MutexSet<'rt>> {
        let inner = public("Group::mutexes", || self.engine().create_mutexes(self.inner(), here))?;
        Ok(MutexSet { group: self.clone(), inner, freed: false })
    }
}

impl MutexSet<'_> {
    /// The numbers of mutexes, by rank.
    pub fn counts(&self) -> &[usize] {
        self.inner.counts()
    }

    /// Takes mutex `index` of `rank`; waits while another rank holds it.
    ///
    /// # Errors
    /// `Rank`, `Argument` where there is no such mutex, `State` where this rank
    /// holds it already.
    #[track_caller]
    pub fn lock(&self, rank: usize, index: usize) -> Result<MutexGuard<'_>> {
        public("MutexSet::lock", || self.group.engine().lock(&self.inner, index, rank))?;
        Ok(MutexGuard { set: self, rank, index, held: true })
    }

    /// Takes mutex `index` of `rank` if it is free; `None` if it is not.
    ///
    /// # Errors
    /// `Rank`, `Argument` where there is no such mutex.
    pub fn try_lock(&self, rank: usize, index: usize) -> Result<Option<MutexGuard<'_>>> {
        let got = self.group.engine().try_lock(&self.inner, index, rank);
        let got = got.in_call("MutexSet::try_lock")?;
        Ok(got.then(|| MutexGuard { set: self, rank, index, held: true }))
    }

    /// Frees the mutexes. Collective; nobody may hold one:
    ///
    /// ```compile_fail,E0505
    /// fn held(set: portolan::MutexSet<'_>) -> portolan::Result<()> {
    ///     let guard = set.lock(0, 0)?;
    ///     set.free()?;
    ///     guard.unlock()
    /// }
    /// ```
    ///
    /// # Errors
    /// `State` where this rank forgot a guard; the mutexes are freed all the same.
    #[track_caller]
    pub fn free(mut self) -> Result<()> {
        self.freed = true;
        public("MutexSet::free", || self.group.engine().destroy_mutexes(&self.inner))
    }
}

impl MutexGuard<'_> {
    /// Releases the mutex.
    ///
    /// # Errors
    /// `Mpi`, where what this rank has issued cannot be completed.
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
        if !self.freed && !std::thread::panicking() && crate::runtime::is_running() {
            unfreed::note("a set of mutexes".into());
        }
    }
}
