//! Groups: ordered sets of ranks, each with its own communicator.
//!
//! The world is a group like any other. [`crate::memory::segment::Memory`] keeps the memory of a
//! group under its [`Group::key`]. The creation of a group is collective over its members only. A
//! freed group can still free its segments; the last one frees its communicator.
//!
//! Collectives of short values use the nodes ([`crate::collective::Team`]), and collectives of long
//! values use MPI collectives on the communicator.

use crate::collective::{
    self, ElementType, Kind, Operator, Reducible, Sharing, Signature, Team, Wire,
};
use crate::mpi::{Comm, CommHandle};
use crate::topology::Topology;
use bytemuck::Pod;
use parking_lot::Mutex;
use portolan_base::digest;
use portolan_base::error::{Result, fail};
use portolan_base::trace::Call;
use portolan_base::wait::Progress;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

#[derive(Debug)]
pub struct Group {
    key: u64,
    comm: Mutex<Option<Arc<Comm>>>,
    team: Team,
    /// Ranks in the group by world rank, if the two differ. The world needs no such large table.
    rank_of: Option<HashMap<usize, usize>>,
    on_one_node: bool,
    freed: AtomicBool,
}

/// Maximum length in bytes of short values.
const MAX_SHORT: usize = 64 << 10;

/// Records a collective call. All of it counts as time that ranks wait for each other.
pub(super) fn meet<R>(
    progress: &dyn Progress,
    call: Call,
    bytes: usize,
    body: impl FnOnce() -> Result<R>,
) -> Result<R> {
    match progress.traced_by() {
        Some(observer) if observer.is_on() => observer.meet(call, bytes, body),
        _ => body(),
    }
}

/// Complete, so that different lists differ.
fn listed(ranks: &[usize]) -> String {
    let texts: Vec<String> = ranks.iter().map(usize::to_string).collect();
    texts.join(", ")
}

fn creation_of(members: &[usize]) -> String {
    format!("of the ranks {}", listed(members))
}

static NEXT_KEY: AtomicU32 = AtomicU32::new(1);

pub(crate) fn next_key() -> u32 {
    NEXT_KEY.fetch_add(1, Ordering::Relaxed)
}

/// From the world rank of a group's first member and the number that it chose.
fn full_key(first: usize, number: u32) -> u64 {
    (first as u64) << 32 | u64::from(number)
}

impl Group {
    /// Collective. `key` comes from [`next_key`] on rank 0.
    pub fn world(
        comm: Comm,
        wire: &Arc<Wire>,
        key: u32,
        sharing: Sharing<'_>,
        progress: &dyn Progress,
    ) -> Result<Arc<Group>> {
        let members = (0..comm.size()).collect();
        let key = full_key(0, key);
        let team = collective::scope(Kind::Start, 0, || {
            Team::create(wire, (Wire::WORLD, key), members, sharing, progress)
        })?;
        Ok(Group::of(comm, team, key, sharing.topology))
    }

    fn of(comm: Comm, team: Team, key: u64, topology: &Topology) -> Arc<Group> {
        let members = team.members();
        let differ = members.iter().enumerate().any(|(i, &w)| i != w);
        let rank_of = differ.then(|| members.iter().enumerate().map(|(i, &w)| (w, i)).collect());
        let node = topology.node_of(members[0]);
        Arc::new(Group {
            key,
            comm: Mutex::new(Some(Arc::new(comm))),
            on_one_node: members.iter().all(|&w| topology.node_of(w) == node),
            team,
            rank_of,
            freed: AtomicBool::new(false),
        })
    }

    /// Creates the group of `ranks` of `self`, in this order. Collective over those ranks. Returns
    /// `None` on any other rank. Fails with `Rank` if a rank is outside `self` or occurs twice, and
    /// with `State` if `self` was freed.
    pub fn subgroup(
        &self,
        ranks: &[usize],
        sharing: Sharing<'_>,
        progress: &dyn Progress,
    ) -> Result<Option<Arc<Group>>> {
        let Some(members) = self.members_of(ranks)? else {
            return Ok(None);
        };
        collective::scope_of(Kind::CreateGroup, &creation_of(&members), || {
            self.make(ranks, members, sharing, progress).map(Some)
        })
    }

    /// Compares the lists of ranks that create a group, without creating it. Collective over
    /// `ranks`, as [`Group::subgroup`] is. Returns whether this rank is one of them. Fails with
    /// `Mismatch` if the lists differ, and as `subgroup` does.
    pub fn agree_on_ranks(&self, ranks: &[usize], progress: &dyn Progress) -> Result<bool> {
        let Some(members) = self.members_of(ranks)? else {
            return Ok(false);
        };
        self.live_team()?;
        collective::scope_of(Kind::CreateGroup, &creation_of(&members), || {
            self.team.wire().agree_on_group(&members, progress, &0u64).map(|_| true)
        })
    }

    /// Returns the world ranks of `ranks`, or `None` if this rank is none of them.
    fn members_of(&self, ranks: &[usize]) -> Result<Option<Vec<usize>>> {
        let mut seen = vec![false; self.size()];
        for &r in ranks {
            match seen.get_mut(r) {
                None => {
                    fail!(Rank, "rank {r} is outside the parent group of {} ranks", self.size())
                }
                Some(true) => fail!(Rank, "rank {r} is named twice"),
                Some(unseen) => *unseen = true,
            }
        }
        let is_member = ranks.contains(&self.rank());
        Ok(is_member.then(|| ranks.iter().map(|&r| self.members()[r]).collect()))
    }

    fn make(
        &self,
        ranks: &[usize],
        members: Vec<usize>,
        sharing: Sharing<'_>,
        progress: &dyn Progress,
    ) -> Result<Arc<Group>> {
        let (key, tag) = self.agree_on_key(&members, progress)?;
        // Different members may create groups at the same time. The MPI tag is a hash of the ranks,
        // so that different lists are unlikely to share it.
        let list = ranks.iter().fold(ranks.len(), |h, &r| (h * 31 + r) & 0x3fff);
        let comm = self.comm()?.create_group(ranks, list as i32)?;
        let wire = self.team.wire();
        let team = Team::create(wire, (tag, key), members, sharing, progress)?;
        Ok(Group::of(comm, team, key, sharing.topology))
    }

    /// Returns a new key, and a tag that is free on all members. Collective over the members.
    fn agree_on_key(&self, members: &[usize], progress: &dyn Progress) -> Result<(u64, u32)> {
        let (wire, first) = (self.team.wire(), members[0]);
        let number = if first == self.members()[self.rank()] { next_key() } else { 0 };
        let all = wire.agree_on_group(members, progress, &[number, wire.next_tag()])?;
        let tag = all.iter().map(|of| of[1]).max().unwrap_or(0);
        Ok((full_key(first, all[0][0]), tag))
    }

    /// Makes collectives possible again after a mismatch. Collective over the members. Fails with
    /// `State` if there was no mismatch, or if the group was freed.
    pub fn resume(&self, sharing: Sharing<'_>, progress: &dyn Progress) -> Result<()> {
        let team = self.live_team()?;
        if !team.learns_of_mismatch() {
            fail!(State, "the collective calls of the group's ranks have not differed");
        }
        let members = self.members().to_vec();
        let list = format!("resumption of the group of the ranks {}", listed(&members));
        collective::scope_of(Kind::Described, &list, || {
            let (key, tag) = self.agree_on_key(&members, progress)?;
            let wire = self.team.wire();
            team.succeed_by(Team::create(wire, (tag, key), members, sharing, progress)?);
            Ok(())
        })
    }

    /// Returns whether collective calls have differed, and the group has not been resumed.
    pub fn has_mismatch(&self) -> bool {
        self.live_team().is_ok_and(Team::has_mismatch)
    }

    /// Unique among the groups of a job and the same on all members.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// Returns a digest that ranks compare instead of the value. All ranks of the job get the same
    /// digest of the same value.
    pub(crate) fn digest(&self, value: impl Hash) -> u64 {
        digest::keyed(self.team.wire().secret(), value)
    }

    pub fn size(&self) -> usize {
        self.team.members().len()
    }

    pub fn rank(&self) -> usize {
        self.team.rank()
    }

    pub fn members(&self) -> &[usize] {
        self.team.members()
    }

    pub fn world_rank(&self, rank: usize) -> Result<usize> {
        match self.members().get(rank) {
            Some(&w) => Ok(w),
            None => fail!(Rank, "rank {rank} is outside the group of {} ranks", self.size()),
        }
    }

    pub fn rank_of(&self, world: usize) -> Option<usize> {
        match &self.rank_of {
            Some(known) => known.get(&world).copied(),
            None => (world < self.size()).then_some(world),
        }
    }

    pub fn on_one_node(&self) -> bool {
        self.on_one_node
    }

    pub fn barrier(&self, progress: &dyn Progress) -> Result<()> {
        meet(progress, Call::Barrier, 0, || self.live_team()?.barrier(progress))
    }

    pub fn allgather<T: Pod>(&self, progress: &dyn Progress, item: &T) -> Result<Vec<T>> {
        meet(progress, Call::Exchange, size_of::<T>(), || match size_of::<T>() {
            0..=MAX_SHORT => self.live_team()?.allgather(progress, item),
            _ => {
                let call = Signature::here(Kind::AllGather).of(ElementType::of::<T>(), 1);
                self.live_team()?.meet(progress, call)?;
                collective::allgather(&*self.comm()?, progress, item)
            }
        })
    }

    /// All members pass the same length.
    pub fn broadcast<T: Pod>(
        &self,
        progress: &dyn Progress,
        data: &mut [T],
        root: usize,
    ) -> Result<()> {
        let of = (ElementType::of::<T>(), data.len());
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(data);
        meet(progress, Call::Broadcast, bytes.len(), || match bytes.len() {
            0..=MAX_SHORT => self.live_team()?.broadcast(progress, of, bytes, root),
            _ => {
                let call = Signature::here(Kind::Broadcast).of(of.0, of.1).rooted(root);
                self.live_team()?.meet(progress, call)?;
                collective::broadcast(&*self.comm()?, progress, bytes, root)
            }
        })
    }

    /// All members pass the same length and get the result, or only `root` if given.
    pub fn reduce<T: Reducible>(
        &self,
        progress: &dyn Progress,
        data: &mut [T],
        operator: Operator,
        root: Option<usize>,
    ) -> Result<()> {
        let team = self.live_team()?;
        if !T::allows(operator) {
            fail!(Type, "{operator:?} is not defined for the elements");
        }
        if collective::needs_no_other(data, operator, root, (self.rank(), self.size())) {
            return Ok(());
        }
        // In shared memory the ranks divide the work, which pays for any length. MPI has to call a
        // function of this library, because its own operators may treat NaN differently.
        let by_team = size_of_val(data) <= MAX_SHORT || root.is_none() && team.shares_memory();
        meet(progress, Call::Reduce, size_of_val(data), || {
            if by_team {
                return team.reduce(progress, (data, operator), root);
            }
            team.meet(progress, collective::reduction::<T>(data.len(), operator, root))?;
            collective::reduce(&*self.comm()?, progress, data, operator, root)
        })
    }

    /// See [`Team::agree`].
    pub fn agree(&self, progress: &dyn Progress, mine: Result<()>) -> Result<()> {
        self.live_team()?.agree(progress, mine)
    }

    pub(crate) fn live_team(&self) -> Result<&Team> {
        match &*self.comm.lock() {
            Some(_) => Ok(self.team.latest()),
            None => fail!(State, "the group was freed"),
        }
    }

    /// For collectives that all members call in the same order. Fails if freed.
    pub fn comm(&self) -> Result<Arc<Comm>> {
        match &*self.comm.lock() {
            Some(comm) => Ok(comm.clone()),
            None => fail!(State, "the group was freed"),
        }
    }

    pub fn comm_handle(&self) -> Result<CommHandle> {
        Ok(self.comm()?.handle())
    }

    pub fn is_freed(&self) -> bool {
        self.freed.load(Ordering::Relaxed)
    }

    /// Waits until all members free this group. They do not use its own collectives, because a rank
    /// that frees another group would not learn of the mistake.
    pub(crate) fn agree_to_free(&self, progress: &dyn Progress) -> Result<()> {
        self.team.wire().agree_on_group(self.members(), progress, &self.key).map(drop)
    }

    pub(crate) fn mark_freed(&self) {
        self.freed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn release_comm(&self) -> Result<()> {
        match self.comm.lock().take() {
            Some(comm) => {
                self.team.dissolve();
                comm.free()
            }
            None => Ok(()),
        }
    }

    /// Frees the communicator of the engine's collectives, after all groups. Collective.
    pub(crate) fn free_wire(&self) -> Result<()> {
        self.team.wire().comm().free()
    }
}
