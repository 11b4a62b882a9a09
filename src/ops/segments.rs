//! Segments and groups, made and unmade by their ranks together.
//!
//! Invariant: before memory goes, everything issued to it is complete: freeing fences and
//! meets the other ranks first.

use super::Ops;
use super::told::number_of;
use crate::collective::{self, Kind, Sharing};
use crate::error::{Result, fail};
use crate::group::Group;
use crate::memory::segment::{Purpose, Segment};
use crate::trace::{About, Call, SegmentKind};
use std::sync::Arc;

impl Ops {
    /// Fences everything and waits for all ranks of a group.
    pub fn barrier_of(&self, group: &Group) -> Result<()> {
        self.observed(
            || About::new(Call::Barrier),
            || {
                self.fence_all()?;
                group.barrier(self.core())
            },
        )
    }

    /// Allocates a segment. Collective over the group.
    pub fn allocate(&self, group: &Arc<Group>, bytes: usize) -> Result<Arc<Segment>> {
        self.allocate_checked(group, Ok(bytes))
    }

    /// As [`Ops::allocate`], for a face that has checked its arguments: where
    /// they are bad on one rank, all ranks get an error, and none waits.
    pub fn allocate_checked(
        &self,
        group: &Arc<Group>,
        bytes: Result<usize>,
    ) -> Result<Arc<Segment>> {
        self.allocate_for(Purpose::Addresses, group, bytes)
    }

    /// [`Ops::allocate_checked`] for a purpose; all ranks give the same.
    pub fn allocate_for(
        &self,
        purpose: Purpose,
        group: &Arc<Group>,
        bytes: Result<usize>,
    ) -> Result<Arc<Segment>> {
        let asked = bytes.as_ref().copied().unwrap_or(0);
        let made = self.observed(
            || About::new(Call::Allocate).moves(asked),
            || {
                collective::scope(Kind::Allocate, 0, || {
                    self.memory.allocate(group, bytes, purpose, self.core())
                })
            },
        )?;
        self.tell_of(&made);
        Ok(made)
    }

    /// Allocates several segments at once, as [`Ops::allocate_checked`]. Collective over the
    /// group.
    pub fn allocate_many(
        &self,
        group: &Arc<Group>,
        bytes: Result<&[usize]>,
    ) -> Result<Vec<Arc<Segment>>> {
        self.allocate_many_for(Purpose::Addresses, group, bytes)
    }

    /// [`Ops::allocate_many`] for a purpose; all ranks give the same.
    pub fn allocate_many_for(
        &self,
        purpose: Purpose,
        group: &Arc<Group>,
        bytes: Result<&[usize]>,
    ) -> Result<Vec<Arc<Segment>>> {
        let asked = bytes
            .as_ref()
            .map_or(0, |bytes| bytes.iter().fold(0, |sum: usize, len| sum.saturating_add(*len)));
        let made = self.observed(
            || About::new(Call::Allocate).moves(asked),
            || {
                collective::scope(Kind::Allocate, 0, || {
                    self.memory.allocate_many(group, bytes, purpose, self.core())
                })
            },
        )?;
        made.iter().for_each(|segment| self.tell_of(segment));
        Ok(made)
    }

    /// Defines a segment in the trace.
    fn tell_of(&self, segment: &Segment) {
        if self.is_observed() {
            self.observer().segments_change();
            let group = segment.group();
            let (bytes, ranks) = (segment.len_at(group.rank()) as u64, group.size() as u64);
            self.observer().made(number_of(segment.id()), bytes, ranks, SegmentKind::Memory);
        }
    }

    /// Frees a segment of which all ranks of its group hold the reference.
    /// Collective.
    pub fn release(&self, segment: Arc<Segment>) -> Result<()> {
        let group = segment.group().clone();
        self.observer().segments_change();
        self.observed(
            || About::new(Call::Free),
            || {
                collective::scope(Kind::Free, segment.id().number, || {
                    self.barrier_of(&group)?;
                    self.memory.release(segment)?;
                    self.group_may_go(&group)
                })
            },
        )
    }

    /// Frees the segment that begins at `mine` on this rank (`None` where this
    /// rank has no bytes of it). Collective over the group.
    pub fn release_at(&self, group: &Arc<Group>, mine: Option<usize>) -> Result<()> {
        self.observer().segments_change();
        self.observed(
            || About::new(Call::Free),
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

    /// Makes a group of world-ranked or parent-ranked members.
    pub fn create_group(&self, parent: &Group, ranks: &[usize]) -> Result<Option<Arc<Group>>> {
        let policy = self.memory.policy();
        let crowded = self.is_crowded();
        let sharing = Sharing { direct: policy.direct, dir: &policy.shm_dir, crowded };
        let group = parent.subgroup(ranks, &self.topology, sharing, self.core())?;
        if let Some(group) = &group {
            self.groups().lock().push(group.clone());
        }
        Ok(group)
    }

    /// Frees a group. Collective over it. Its memory stays until it is freed.
    pub fn free_group(&self, group: &Arc<Group>) -> Result<()> {
        if Arc::ptr_eq(group, self.world()) {
            fail!(Argument, "the group of all ranks cannot be freed");
        }
        if group.is_freed() {
            fail!(State, "the group was freed already");
        }
        group.mark_freed();
        collective::scope(Kind::FreeGroup, 0, || self.group_may_go(group))
    }

    fn group_may_go(&self, group: &Arc<Group>) -> Result<()> {
        if !group.is_freed() || self.memory.any_live_of(group) {
            return Ok(());
        }
        // MPI's own wait for the other ranks would serve none of them: this one does.
        if self.memory.has_windows(group) {
            group.barrier(self.core())?;
        }
        self.memory.close_group(group)?;
        self.groups().lock().retain(|g| !Arc::ptr_eq(g, group));
        group.release_comm()
    }
}
