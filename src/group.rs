//! Groups of ranks and their collectives.

use crate::in_call::{InCall, public};
use crate::reduce::Operator;
use crate::{Element, Runtime};
use portolan_base::error::{Result, fail};
use portolan_engine::collective::group;
use portolan_engine::collective::{self, Kind, Reducible};
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
/// gets the error from its next collective call. After a mismatch the group makes no collective call
/// until all of its ranks [resume](Group::resume) it.
#[derive(Debug, Clone)]
#[must_use = "a group does nothing by itself"]
pub struct Group<'rt> {
    rt: &'rt Runtime,
    inner: Arc<group::Group>,
}

impl<'rt> Group<'rt> {
    pub(crate) fn wrap(rt: &'rt Runtime, inner: Arc<group::Group>) -> Group<'rt> {
        Group { rt, inner }
    }

    #[inline]
    pub(crate) fn engine(&self) -> &'rt Engine {
        self.rt.engine()
    }

    #[inline]
    pub(crate) fn inner(&self) -> &Arc<group::Group> {
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

    /// Creates the group of `ranks` of this group, in this order. Collective over `ranks`: they
    /// must all pass the same list. A caller that is not in the list gets `None` and does not wait.
    ///
    /// # Errors
    /// Returns `Rank` if a rank is outside this group or named twice, `Mismatch` if the ranks pass
    /// different lists, or `State` if this group was freed.
    #[track_caller]
    pub fn subgroup(&self, ranks: &[usize]) -> Result<Option<Group<'rt>>> {
        let made = public("Group::subgroup", || self.engine().create_group(&self.inner, ranks))?;
        Ok(made.map(|inner| Group { rt: self.rt, inner }))
    }

    /// Splits the group: the ranks that pass the same `color` become a group, in the order of `key`,
    /// and in their order in this group where keys are equal. A rank that passes `None` as the color
    /// joins no group and gets `None`. Collective over this group.
    ///
    /// ```no_run
    /// # fn rows(world: &portolan::Group<'_>, columns: usize) -> portolan::Result<()> {
    /// let row = world.split(world.rank() / columns, 0)?.expect("every rank has a color");
    /// # row.free()
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns `State` if this group was freed, or `Mismatch` if the ranks make different collective
    /// calls.
    #[track_caller]
    pub fn split(&self, color: impl Into<Option<usize>>, key: usize) -> Result<Option<Group<'rt>>> {
        public("Group::split", || match self.ranks_of_color(color.into(), key)? {
            Some(ranks) => self.subgroup(&ranks),
            None => Ok(None),
        })
    }

    /// Returns the ranks of the group that [`Group::split`] creates for the caller. Collective.
    pub(crate) fn ranks_of_color(
        &self,
        color: Option<usize>,
        key: usize,
    ) -> Result<Option<Vec<usize>>> {
        let mine = [usize::from(color.is_some()), color.unwrap_or(0), key];
        let gather = || self.inner.allgather(self.engine(), &mine);
        let all = collective::scope_of(Kind::Described, "split of a group", gather)?;
        if color.is_none() {
            return Ok(None);
        }
        let mut ranks: Vec<usize> =
            (0..all.len()).filter(|rank| all[*rank][..2] == mine[..2]).collect();
        ranks.sort_by_key(|rank| all[*rank][2]);
        Ok(Some(ranks))
    }

    /// Makes collective calls possible again after one has failed with
    /// [`ErrorKind::Mismatch`](crate::ErrorKind::Mismatch) on all ranks: the group, its clones and
    /// the objects that belong to it. Collective. The ranks must agree, by their program, on what
    /// they do next. Objects that only some of them were about to create or to free do not exist, or
    /// stay.
    ///
    /// # Errors
    /// Returns `State` if no calls have differed, or if the group was freed. Returns `Mismatch` if
    /// the creation or the free of a group was one of the different calls.
    #[track_caller]
    pub fn resume(&self) -> Result<()> {
        public("Group::resume", || self.engine().resume_group(&self.inner))?;
        #[cfg(feature = "array")]
        self.rt.level_barriers(self)?;
        Ok(())
    }

    /// Returns whether collective calls have differed, and the group has not been resumed.
    pub fn has_mismatch(&self) -> bool {
        self.inner.has_mismatch()
    }

    /// Frees the group. Its segments stay valid until they are freed. Collective.
    ///
    /// # Errors
    /// Returns `Argument` for the world, `State` if a clone was already freed, or `Mismatch` if the
    /// ranks free different groups of the same ranks.
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

    /// A barrier that returns the least `value` of all ranks.
    #[cfg(feature = "array")]
    pub(crate) fn barrier_with(&self, value: u64) -> Result<u64> {
        self.rt.count_barrier(&self.inner);
        self.engine().fence_all()?;
        self.all_reduce_value(value, crate::reduce::Min)
    }

    /// Runs `body` as one collective call, whose arguments must be the same on all ranks. `call` is
    /// a text with these arguments. If the texts differ, the group's collective calls in `body`
    /// fail with `Mismatch` on all ranks, as they do if they differ themselves. The error contains
    /// the beginning of each text, and its ranks.
    ///
    /// ```no_run
    /// # fn make(group: &portolan::Group<'_>, start: i64) -> portolan::Result<()> {
    /// let counter = group.described(&format!("counter({start})"), || group.allocate::<i64>(1))?;
    /// # counter.free()
    /// # }
    /// ```
    pub fn described<R>(&self, call: &str, body: impl FnOnce() -> R) -> R {
        collective::scope_of(Kind::Described, call, body)
    }

    /// Returns the key of the group, unique among the groups of a job and the same on all ranks.
    #[cfg(feature = "array")]
    pub(crate) fn key(&self) -> u64 {
        self.inner.key()
    }

    #[cfg(feature = "array")]
    pub(crate) fn looks_for_races(&self) -> bool {
        self.engine().config.check_races
    }

    /// Returns the number of barriers of the group and of the world so far, if race checks are
    /// enabled. It is the same on all ranks of the group, apart from a constant.
    #[cfg(feature = "array")]
    pub(crate) fn barriers(&self) -> u64 {
        self.rt.barriers(&self.inner)
    }

    /// Copies `data` of rank `root` to all ranks of the group. Collective: all ranks pass the same
    /// number of elements and the same root.
    ///
    /// # Errors
    /// Returns `Rank` if `root` is outside the group, `Mismatch` if the ranks make different
    /// collective calls, `State` if the group was freed, or `Mpi` if communication fails.
    #[track_caller]
    pub fn broadcast<T: Element>(&self, root: usize, data: &mut [T]) -> Result<()> {
        const CALL: &str = "Group::broadcast";
        self.check_root(root).in_call(CALL)?;
        public(CALL, || self.inner.broadcast(self.engine(), data, root))
    }

    /// Combines `data` element by element over all ranks of the group. The result is in `data` at
    /// `root`. The data of the other ranks does not change. Collective: all ranks pass the same
    /// number of elements, the same operator and the same root.
    ///
    /// # Errors
    /// Fails as [`Group::broadcast`] does.
    #[track_caller]
    pub fn reduce<T: Reducible, O: Operator<T>>(
        &self,
        root: usize,
        data: &mut [T],
        _operator: O,
    ) -> Result<()> {
        const CALL: &str = "Group::reduce";
        self.check_root(root).in_call(CALL)?;
        public(CALL, || self.inner.reduce(self.engine(), data, O::OPERATOR, Some(root)))
    }

    /// Combines `data` as [`Group::reduce`] does, and writes the result to `data` on all ranks.
    /// Collective.
    ///
    /// # Errors
    /// Returns `Mismatch` if the ranks make different collective calls, `State` if the group was
    /// freed, or `Mpi` if communication fails.
    #[track_caller]
    pub fn all_reduce<T: Reducible, O: Operator<T>>(
        &self,
        data: &mut [T],
        _operator: O,
    ) -> Result<()> {
        public("Group::all_reduce", || self.inner.reduce(self.engine(), data, O::OPERATOR, None))
    }

    /// Combines one value of each rank and returns the result on all ranks. Collective.
    ///
    /// # Errors
    /// Fails as [`Group::all_reduce`] does.
    #[track_caller]
    pub fn all_reduce_value<T: Reducible, O: Operator<T>>(
        &self,
        value: T,
        operator: O,
    ) -> Result<T> {
        let mut data = [value];
        public("Group::all_reduce_value", || self.all_reduce(&mut data, operator))?;
        Ok(data[0])
    }

    /// Combines `data` element by element over the ranks up to and including the calling one. The
    /// result replaces `data`. Collective: all ranks pass the same number of elements and the same
    /// operator.
    ///
    /// # Errors
    /// Fails as [`Group::all_reduce`] does.
    #[track_caller]
    pub fn scan<T: Reducible, O: Operator<T>>(&self, data: &mut [T], _operator: O) -> Result<()> {
        let (kind, operator) = (Kind::Scan, O::OPERATOR);
        public("Group::scan", || self.inner.scan(self.engine(), kind, data, operator))
    }

    /// Combines `data` element by element over the ranks of the group below the calling one. The
    /// result replaces `data`. Rank 0 gets the neutral value: 0 for sums, the largest value of the
    /// type, or infinity, for minima, and so on. Collective as [`Group::scan`] is.
    ///
    /// ```no_run
    /// use portolan::reduce::Sum;
    ///
    /// # fn write(group: &portolan::Group<'_>, mine: &[f64]) -> portolan::Result<usize> {
    /// // The index of the first own element if the elements of all ranks follow each other.
    /// let mut begin = [mine.len() as u64];
    /// group.scan_exclusive(&mut begin, Sum)?;
    /// Ok(begin[0] as usize)
    /// # }
    /// ```
    ///
    /// # Errors
    /// Fails as [`Group::all_reduce`] does.
    #[track_caller]
    pub fn scan_exclusive<T: Reducible, O: Operator<T>>(
        &self,
        data: &mut [T],
        _operator: O,
    ) -> Result<()> {
        let (kind, operator) = (Kind::ExclusiveScan, O::OPERATOR);
        public("Group::scan_exclusive", || self.inner.scan(self.engine(), kind, data, operator))
    }

    /// Returns the value of each rank, in rank order, on all ranks. Collective.
    ///
    /// # Errors
    /// Fails as [`Group::all_reduce`] does.
    #[track_caller]
    pub fn all_gather<T: Element>(&self, value: T) -> Result<Vec<T>> {
        public("Group::all_gather", || self.inner.allgather(self.engine(), &value))
    }

    /// Returns the `data` of all ranks, in rank order, at `root`, and `None` on the other ranks.
    /// Collective: all ranks pass the same number of elements, at most 2^31-1, and the same root.
    ///
    /// # Errors
    /// Fails as [`Group::broadcast`]. Returns `Argument` on all ranks for too many elements.
    #[track_caller]
    pub fn gather<T: Element>(&self, root: usize, data: &[T]) -> Result<Option<Vec<T>>> {
        const CALL: &str = "Group::gather";
        self.check_root(root).in_call(CALL)?;
        public(CALL, || self.inner.gather(self.engine(), data, root))
    }

    /// Copies a different part of the root's `data` to `part` of each rank: the first elements to
    /// rank 0, the next ones to rank 1, and so on. Collective: all ranks pass a `part` of the same
    /// length, at most 2^31-1 elements, and the same root. The other ranks' `data` is ignored and
    /// can be empty.
    ///
    /// # Errors
    /// Fails as [`Group::broadcast`] does. Returns `Argument` on all ranks if the root's `data` has
    /// another length than all parts together, or if there are too many elements.
    #[track_caller]
    pub fn scatter<T: Element>(&self, root: usize, data: &[T], part: &mut [T]) -> Result<()> {
        const CALL: &str = "Group::scatter";
        self.check_root(root).in_call(CALL)?;
        public(CALL, || self.inner.scatter(self.engine(), data, part, root))
    }

    /// Sends a different part of `data` to each rank: the first elements to rank 0, the next ones
    /// to rank 1, and so on. Returns the parts that the ranks have sent to this one, in rank order.
    /// Collective: all ranks pass the same number of elements, at most 2^31-1.
    ///
    /// # Errors
    /// Fails as [`Group::all_reduce`] does. Returns `Argument` on all ranks if the number of
    /// elements is not divisible by the number of ranks or is too large.
    #[track_caller]
    pub fn all_to_all<T: Element>(&self, data: &[T]) -> Result<Vec<T>> {
        public("Group::all_to_all", || self.inner.all_to_all(self.engine(), data))
    }

    /// Sends `parts[i]` to rank `i`, for each rank of the group. Returns the parts that the ranks
    /// have sent to this one, in rank order. Parts can have any length. Collective.
    ///
    /// ```no_run
    /// # fn sort(group: &portolan::Group<'_>, keys: &[u64]) -> portolan::Result<Vec<u64>> {
    /// // Sends each key to the rank that its lowest bits select.
    /// let mut parts = vec![Vec::new(); group.size()];
    /// for &key in keys {
    ///     parts[key as usize % group.size()].push(key);
    /// }
    /// Ok(group.all_to_all_varied(&parts)?.concat())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Fails as [`Group::all_reduce`] does. Returns `Argument` on all ranks if one of them does not
    /// pass a part for each rank, or would send or receive more than 2^31-1 elements.
    #[track_caller]
    pub fn all_to_all_varied<T: Element>(&self, parts: &[impl AsRef<[T]>]) -> Result<Vec<Vec<T>>> {
        let counts: Vec<usize> = parts.iter().map(|part| part.as_ref().len()).collect();
        let data: Vec<T> = parts.iter().flat_map(|part| part.as_ref()).copied().collect();
        public("Group::all_to_all_varied", || {
            let (all, counts) = self.inner.all_to_all_varied(self.engine(), &data, &counts)?;
            let mut rest = &all[..];
            let part = |&count: &usize| {
                let (part, others) = rest.split_at(count);
                rest = others;
                part.to_vec()
            };
            Ok(counts.iter().map(part).collect())
        })
    }

    fn check_root(&self, root: usize) -> Result<()> {
        if root >= self.size() {
            fail!(Rank, "root {root} is outside the group of {} ranks", self.size());
        }
        Ok(())
    }
}
