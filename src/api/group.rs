//! Groups of ranks and their collectives.

use super::in_call::{InCall, public};
use super::{Element, Operator, Reducible, Runtime};
use crate::error::{Result, fail};
use crate::group;
use crate::runtime::Engine;
use std::sync::Arc;

/// An ordered set of ranks that communicate collectively.
///
/// Ranks that a group's functions take and return, and those of the segments and
/// mutexes made by it, are numbers in the group, from 0. A clone is the same
/// group. A group that is dropped and not freed keeps its communicator until the
/// runtime ends.
///
/// All ranks of a group make the same collective calls in the same order. Ranks compare the kind of
/// each call, its object, type, length, operator and root. If they differ, the call fails with
/// [`ErrorKind::Mismatch`](crate::error::ErrorKind) on all ranks and delivers no result. A rank that
/// only gives something, such as the root of a broadcast, does not wait for the others, and gets the
/// error from its next collective call. The group cannot be used any more then.
#[derive(Debug, Clone)]
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

    /// The runtime.
    pub fn runtime(&self) -> &'rt Runtime {
        self.rt
    }

    /// The calling rank's number in the group.
    pub fn rank(&self) -> usize {
        self.inner.rank()
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.inner.size()
    }

    /// The ranks of the world that are members, in the group's order.
    pub fn members(&self) -> &[usize] {
        self.inner.members()
    }

    /// The number in the group of a rank of the world.
    pub fn rank_of(&self, world: usize) -> Option<usize> {
        self.inner.rank_of(world)
    }

    /// Makes the group of `ranks` of this group, in this order. Collective over
    /// those ranks, which must all give the same list; a caller that is not among
    /// them gets `None` and waits for nobody.
    ///
    /// # Errors
    /// `Rank` for one outside this group or named twice; `Mismatch` where ranks give different lists.
    #[track_caller]
    pub fn subgroup(&self, ranks: &[usize]) -> Result<Option<Group<'rt>>> {
        let made = public("Group::subgroup", || self.engine().create_group(&self.inner, ranks))?;
        Ok(made.map(|inner| Group { rt: self.rt, inner }))
    }

    /// Frees the group. Collective. Its segments stay until they are freed.
    ///
    /// # Errors
    /// `Argument` for the world, `State` where a clone was freed already.
    #[track_caller]
    pub fn free(self) -> Result<()> {
        public("Group::free", || self.engine().free_group(&self.inner))
    }

    /// Completes what every rank has issued, to any rank, and waits until all
    /// ranks of the group are here. Collective.
    ///
    /// # Errors
    /// `Mismatch` where ranks make different collective calls; `State` after the group was freed;
    /// `Mpi`.
    #[track_caller]
    pub fn barrier(&self) -> Result<()> {
        super::unfreed::warn();
        #[cfg(feature = "array")]
        self.rt.count_barrier(&self.inner);
        public("Group::barrier", || self.engine().barrier_of(&self.inner))
    }

    /// Whether distributed arrays look for races.
    #[cfg(feature = "array")]
    pub(crate) fn looks_for_races(&self) -> bool {
        self.engine().config.check_races
    }

    /// Barriers of the group and of the world so far, where races are looked for: the same number
    /// on all ranks of the group, but for a constant.
    #[cfg(feature = "array")]
    pub(crate) fn barriers(&self) -> u64 {
        self.rt.barriers(&self.inner)
    }

    /// Copies `data` of rank `root` to all ranks. Collective; all ranks give as
    /// many elements and the same root.
    ///
    /// # Errors
    /// `Rank` for a root outside the group; `Mismatch` where ranks make different collective calls;
    /// `Mpi`.
    #[track_caller]
    pub fn broadcast<T: Element>(&self, root: usize, data: &mut [T]) -> Result<()> {
        const CALL: &str = "Group::broadcast";
        self.check_root(root).in_call(CALL)?;
        public(CALL, || self.inner.broadcast(self.engine(), data, root))
    }

    /// Combines `data` element by element over all ranks; the result is at
    /// `root`, and the other ranks' data stays as it was. Collective; all ranks give
    /// as many elements, the same operator and the same root.
    ///
    /// # Errors
    /// `Rank` for a root outside the group; `Mismatch` where ranks make different collective calls;
    /// `Mpi`.
    #[track_caller]
    pub fn reduce<T: Reducible>(&self, root: usize, data: &mut [T], op: Operator) -> Result<()> {
        const CALL: &str = "Group::reduce";
        self.check_root(root).in_call(CALL)?;
        public(CALL, || self.inner.reduce(self.engine(), data, op, Some(root)))
    }

    /// [`Group::reduce`] with the result on all ranks. Collective.
    ///
    /// # Errors
    /// `Mismatch` where ranks make different collective calls; `State` after the group was freed;
    /// `Mpi`.
    #[track_caller]
    pub fn all_reduce<T: Reducible>(&self, data: &mut [T], op: Operator) -> Result<()> {
        public("Group::all_reduce", || self.inner.reduce(self.engine(), data, op, None))
    }

    /// Combines one value of each rank; all get the result. Collective.
    ///
    /// # Errors
    /// As for [`Group::all_reduce`].
    #[track_caller]
    pub fn all_reduce_value<T: Reducible>(&self, value: T, op: Operator) -> Result<T> {
        let mut data = [value];
        public("Group::all_reduce_value", || self.all_reduce(&mut data, op))?;
        Ok(data[0])
    }

    /// One value of each rank, in the order of ranks. Collective.
    ///
    /// # Errors
    /// As for [`Group::all_reduce`].
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
