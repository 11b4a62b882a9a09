//! Groups of ranks and their collectives.

use super::in_call::{InCall, public};
use super::{Element, Operator, Reducible, Runtime};
use portolan_engine::error::{Result, fail};
use portolan_engine::group;
use portolan_engine::runtime::Engine;
use std::sync::Arc;

/// An ordered set of ranks that communicate collectively.
///
/// The functions of a group, and of the segments and mutexes that it creates, number ranks within
/// the group, from 0. A clone is the same group. A group that is dropped without being freed keeps
/// its communicator until the runtime ends.
///
/// All ranks of a group make the same collective calls in the same order. The ranks compare the
/// kind of each call, its object, type, length, operator and root. If these differ, the call fails
/// with [`ErrorKind::Mismatch`](crate::ErrorKind::Mismatch) on all ranks and delivers no result. A
/// rank that only provides data, such as the root of a broadcast, does not wait for the others and
/// gets the error from its next collective call. After a mismatch the group can no longer be used.
#[derive(Debug, Clone)]
#[must_use = "a group does nothing by itself"]
pub struct Group<'rt> {
    rt: &'rt Runtime,
    inner: Arc<group::Group>,
}

impl<'rt> Group<'rt> {
    pub(super) fn wrap(rt: &'rt Runtime, inner: Arc<group::Group>) -> Group<'rt> {
        Group { rt, inner }
    }

    #[inline]
    pub(super) fn engine(&self) -> &'rt Engine {
        self.rt.engine()
    }

    #[inline]
    pub(super) fn inner(&self) -> &Arc<group::Group> {
        &self.inner
    }

    /// Returns the runtime.
    pub fn runtime(&self) -> &'rt Runtime {
        self.rt
    }

    /// Returns the number of the calling rank in the group.
    pub fn rank(&self) -> usize {
        self.inner.rank()
    }

    /// Returns the number of ranks in the group.
    pub fn size(&self) -> usize {
        self.inner.size()
    }

    /// Returns the world ranks of the members, in the order of the group.
    pub fn members(&self) -> &[usize] {
        self.inner.members()
    }

    /// Returns the number of a world rank in the group, or `None` if it is not a member.
    pub fn rank_of(&self, world: usize) -> Option<usize> {
        self.inner.rank_of(world)
    }

    /// Creates the group of `ranks` of this group, in this order.
    ///
    /// Collective over `ranks`: they must all pass the same list. A caller that is not in the list
    /// gets `None` and does not wait.
    ///
    /// # Errors
    /// Returns `Rank` if a rank is outside this group or named twice, or `Mismatch` if the ranks
    /// pass different lists.
    #[track_caller]
    pub fn subgroup(&self, ranks: &[usize]) -> Result<Option<Group<'rt>>> {
        let made = public("Group::subgroup", || self.engine().create_group(&self.inner, ranks))?;
        Ok(made.map(|inner| Group { rt: self.rt, inner }))
    }

    /// Frees the group. Its segments stay valid until they are freed. Collective.
    ///
    /// # Errors
    /// Returns `Argument` for the world, or `State` if a clone was already freed.
    #[track_caller]
    pub fn free(self) -> Result<()> {
        public("Group::free", || self.engine().free_group(&self.inner))
    }

    /// Completes the operations of every rank of the group to all targets, and waits until all
    /// ranks of the group have called `barrier`. Collective.
    ///
    /// # Errors
    /// Returns `Mismatch` if the ranks make different collective calls, `State` if the group was
    /// freed, or `Mpi` if the operations cannot be completed.
    #[track_caller]
    pub fn barrier(&self) -> Result<()> {
        super::unfreed::warn();
        #[cfg(feature = "array")]
        self.rt.count_barrier(&self.inner);
        public("Group::barrier", || self.engine().barrier_of(&self.inner))
    }

    /// Returns whether distributed arrays check for races.
    #[cfg(feature = "array")]
    pub(crate) fn looks_for_races(&self) -> bool {
        self.engine().config.check_races
    }

    /// Returns the number of barriers of the group and of the world so far, if race checks are
    /// enabled. Apart from a constant, the number is the same on all ranks of the group.
    #[cfg(feature = "array")]
    pub(crate) fn barriers(&self) -> u64 {
        self.rt.barriers(&self.inner)
    }

    /// Copies `data` of rank `root` to all ranks of the group. Collective: all ranks pass the same
    /// number of elements and the same root.
    ///
    /// # Errors
    /// Returns `Rank` if `root` is outside the group, `Mismatch` if the ranks make different
    /// collective calls, or `Mpi` if communication fails.
    #[track_caller]
    pub fn broadcast<T: Element>(&self, root: usize, data: &mut [T]) -> Result<()> {
        const CALL: &str = "Group::broadcast";
        self.check_root(root).in_call(CALL)?;
        public(CALL, || self.inner.broadcast(self.engine(), data, root))
    }

    /// Combines `data` element by element over all ranks of the group.
    ///
    /// The result is in `data` at `root`. The data of the other ranks does not change. Collective:
    /// all ranks pass the same number of elements, the same operator and the same root.
    ///
    /// # Errors
    /// Returns `Rank` if `root` is outside the group, `Mismatch` if the ranks make different
    /// collective calls, or `Mpi` if communication fails.
    #[track_caller]
    pub fn reduce<T: Reducible>(&self, root: usize, data: &mut [T], op: Operator) -> Result<()> {
        const CALL: &str = "Group::reduce";
        self.check_root(root).in_call(CALL)?;
        public(CALL, || self.inner.reduce(self.engine(), data, op, Some(root)))
    }

    /// Combines `data` as [`Group::reduce`] does, and writes the result to `data` on all ranks.
    /// Collective.
    ///
    /// # Errors
    /// Returns `Mismatch` if the ranks make different collective calls, `State` if the group was
    /// freed, or `Mpi` if communication fails.
    #[track_caller]
    pub fn all_reduce<T: Reducible>(&self, data: &mut [T], op: Operator) -> Result<()> {
        public("Group::all_reduce", || self.inner.reduce(self.engine(), data, op, None))
    }

    /// Combines one value of each rank and returns the result on all ranks. Collective.
    ///
    /// # Errors
    /// Fails as [`Group::all_reduce`] does.
    #[track_caller]
    pub fn all_reduce_value<T: Reducible>(&self, value: T, op: Operator) -> Result<T> {
        let mut data = [value];
        public("Group::all_reduce_value", || self.all_reduce(&mut data, op))?;
        Ok(data[0])
    }

    /// Returns the value of each rank, in rank order, on all ranks. Collective.
    ///
    /// # Errors
    /// Fails as [`Group::all_reduce`] does.
    #[track_caller]
    pub fn all_gather<T: Element>(&self, value: T) -> Result<Vec<T>> {
        public("Group::all_gather", || self.inner.allgather(self.engine(), &value))
    }

    fn check_root(&self, root: usize) -> Result<()> {
        if root >= self.size() {
            fail!(Rank, "root {root} is outside the group of {} ranks", self.size());
        }
        Ok(())
    }
}
