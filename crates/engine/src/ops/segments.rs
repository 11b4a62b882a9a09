//! Collective creation and freeing of segments and groups. Invariant: all operations on a segment
//! are complete before its memory is freed, by a fence and a wait for the other ranks.

use super::Ops;
use super::traced::number_of;
use crate::collective::group::Group;
use crate::collective::{self, Kind, Sharing};
use crate::memory::segment::{Purpose, Segment};
use portolan_base::error::{Result, fail};
use portolan_base::trace::{Call, CallInfo, SegmentKind};
use std::sync::Arc;

impl Ops {
    /// Fences all targets and waits for all ranks of a group.
    pub fn barrier_of(&self, group: &Group) -> Result<()> {
        self.observed(
            || CallInfo::new(Call::Barrier),
            || {
                self.fence_all()?;
                group.barrier(self.core())
            },
        )
    }

    /// Collective. `bytes` is the length on this rank.
    pub fn allocate(&self, group: &Arc<Group>, bytes: usize) -> Result<Arc<Segment>> {
        self.allocate_for(Purpose::Addresses, group, Ok(bytes))
    }

    /// All ranks pass the same `purpose`. If `bytes` is an error on one rank, all ranks fail and
    /// none waits.
    pub fn allocate_for(
        &self,
        purpose: Purpose,
        group: &Arc<Group>,
        bytes: Result<usize>,
    ) -> Result<Arc<Segment>> {
        let len = bytes.as_ref().copied().unwrap_or(0);
        let bytes = bytes.map(|_| std::slice::from_ref(&len));
        match self.allocate_many(purpose, group, bytes)?.pop() {
            Some(segment) => Ok(segment),
            None => fail!(Internal, "a segment was asked for, and none was made"),
        }
    }

    /// Like [`Ops::allocate_for`], for several segments.
    pub fn allocate_many(
        &self,
        purpose: Purpose,
        group: &Arc<Group>,
        bytes: Result<&[usize]>,
    ) -> Result<Vec<Arc<Segment>>> {
        let asked = bytes
            .as_ref()
            .map_or(0, |bytes| bytes.iter().fold(0, |sum: usize, len| sum.saturating_add(*len)));
        let made = self.observed(
            || CallInfo::new(Call::Allocate).moves(asked),
            || {
                collective::scope(Kind::Allocate, 0, || {
                    self.memory.allocate_many(group, bytes, purpose, self.core())
                })
            },
        )?;
        if self.is_observed() {
            for segment in &made {
                let (bytes, ranks) = (segment.len_at(group.rank()) as u64, group.size() as u64);
                self.observer().made(number_of(segment.id()), bytes, ranks, SegmentKind::Memory);
            }
        }
        Ok(made)
    }

    /// Collective over the group of the segment.
    pub fn release(&self, segment: Arc<Segment>) -> Result<()> {
        let group = segment.group().clone();
        self.observed(
            || CallInfo::new(Call::Free),
            || {
                collective::scope(Kind::Free, segment.id().number, || {
                    self.barrier_of(&group)?;
                    self.memory.release(segment)?;
                    self.group_may_go(&group)
                })
            },
        )
    }

    /// Frees a new segment if it has no bytes on any rank: all ranks have a null address of it, so
    /// none can free it later. Collective, but waits for no rank.
    pub fn release_if_empty(&self, segment: Arc<Segment>) -> Result<()> {
        if segment.parts().all(|part| part.is_empty()) {
            return self.memory.release(segment);
        }
        Ok(())
    }

    /// Collective. `mine` is the segment's address here, or `None` if this rank has no bytes of it.
    pub fn release_at(&self, group: &Arc<Group>, mine: Option<usize>) -> Result<()> {
        self.observed(
            || CallInfo::new(Call::Free),
            || collective::scope(Kind::Free, 0, || self.release_from(group, mine)),
        )
    }

    fn release_from(&self, group: &Arc<Group>, mine: Option<usize>) -> Result<()> {
        self.wait_implicit()?;
        self.fence_all()?;
        match self.memory.agree_on(group, mine, self.core())? {
            Some(segment) => {
                self.memory.release(segment)?;
                self.group_may_go(group)
            }
            None => Ok(()),
        }
    }

    /// Collective over `ranks`, which are ranks of `parent`. Returns `None` on any other rank.
    pub fn create_group(&self, parent: &Group, ranks: &[usize]) -> Result<Option<Arc<Group>>> {
        let group = self.observed(
            || CallInfo::new(Call::Other),
            || parent.subgroup(ranks, self.sharing(), self.core()),
        )?;
        if let Some(group) = &group {
            self.groups().lock().push(group.clone());
        }
        Ok(group)
    }

    /// See [`Group::agree_on_ranks`]. Collective over `ranks`.
    pub fn agree_on_ranks(&self, parent: &Group, ranks: &[usize]) -> Result<bool> {
        self.observed(|| CallInfo::new(Call::Other), || parent.agree_on_ranks(ranks, self.core()))
    }

    fn sharing(&self) -> Sharing<'_> {
        let policy = self.memory.policy();
        Sharing {
            topology: &self.topology,
            direct: policy.direct,
            dir: &policy.shm_dir,
            crowded: self.is_crowded(),
        }
    }

    /// See [`Group::resume`]. Collective.
    pub fn resume_group(&self, group: &Group) -> Result<()> {
        self.observed(|| CallInfo::new(Call::Other), || group.resume(self.sharing(), self.core()))
    }

    /// Collective. Segments of the group stay until they are freed. Fails with `Mismatch` if the
    /// ranks free different groups of the same ranks.
    pub fn free_group(&self, group: &Arc<Group>) -> Result<()> {
        self.free_group_after(group, || group.agree_to_free(self.core()))
    }

    /// [`Ops::free_group`] that waits for the other members only if the group has windows. For
    /// programs that were written for implementations of ARMCI whose frees do not wait.
    pub fn free_group_unordered(&self, group: &Arc<Group>) -> Result<()> {
        self.free_group_after(group, || Ok(()))
    }

    /// Fails if no rank may free the group: with `Argument` for the group of all ranks, and with
    /// `State` for a group that was freed.
    pub fn check_freeable(&self, group: &Arc<Group>) -> Result<()> {
        if Arc::ptr_eq(group, self.world()) {
            fail!(Argument, "the group of all ranks cannot be freed");
        }
        if group.is_freed() {
            fail!(State, "the group was freed already");
        }
        Ok(())
    }

    fn free_group_after(
        &self,
        group: &Arc<Group>,
        agree: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        self.check_freeable(group)?;
        let free = || {
            agree()?;
            group.mark_freed();
            self.group_may_go(group)
        };
        self.observed(
            || CallInfo::new(Call::Other),
            || collective::scope(Kind::FreeGroup, group.key(), free),
        )
    }

    fn group_may_go(&self, group: &Arc<Group>) -> Result<()> {
        if !group.is_freed() || self.memory.any_live_of(group) {
            return Ok(());
        }
        // MPI's own wait in the freeing of windows does not serve other ranks. This barrier does.
        if self.memory.has_windows(group) {
            group.barrier(self.core())?;
        }
        self.memory.close_group(group)?;
        self.groups().lock().retain(|g| !Arc::ptr_eq(g, group));
        group.release_comm()
    }
}
