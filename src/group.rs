//! Groups: ordered sets of ranks with a communicator of their own.
//!
//! The world is a group like any other. Its memory is kept by
//! [`crate::memory::segment::Memory`] under its [`Group::key`], which is
//! unique among all groups of the job, so that ranks that belong to several groups never
//! confuse them.
//!
//! Creating a group is collective over its members only; ranks outside may call
//! too and get nothing. A group that is freed while segments of it live stays
//! usable for freeing those, and its communicator goes with the last of them.
//!
//! Collectives of short values go by nodes ([`crate::collective::Team`]), those of long ones by
//! MPI's own over the communicator.

use crate::collective::{self, Element, ElementType, Kind, Operator, Sharing, Team, Wire};
use crate::error::{Result, fail};
use crate::mpi::{Comm, CommHandle};
use crate::topology::Topology;
use crate::trace::Call;
use crate::wait::Progress;
use bytemuck::Pod;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// An ordered set of ranks of the world.
#[derive(Debug)]
pub struct Group {
    key: u64,
    comm: Mutex<Option<Arc<Comm>>>,
    team: Team,
    /// Numbers in the group by world rank, where the two differ: not in the world, which
    /// may have thousands.
    rank_of: Option<HashMap<usize, usize>>,
    on_one_node: bool,
    freed: AtomicBool,
}

/// Longer values travel by MPI's collectives.
const LONGEST: usize = 64 << 10;

/// Carries a collective call out, and tells the observer of it: all of it is time in which ranks wait for each other.
fn meet<R, P: Progress + ?Sized>(
    progress: &P,
    call: Call,
    bytes: usize,
    body: impl FnOnce() -> Result<R>,
) -> Result<R> {
    match progress.told_by() {
        Some(observer) if observer.is_on() => observer.meet(call, bytes, body),
        _ => body(),
    }
}

/// A list of ranks for a message, which two different lists do not share.
fn listed(ranks: &[usize]) -> String {
    let texts: Vec<String> = ranks.iter().map(usize::to_string).collect();
    texts.join(", ")
}

/// Distinguishes the groups that this rank has led.
static NEXT_KEY: AtomicU32 = AtomicU32::new(1);

/// A number that no other group that this rank leads has.
pub(crate) fn next_key() -> u32 {
    NEXT_KEY.fetch_add(1, Ordering::Relaxed)
}

/// The key of a group whose first member, of the world, has given the number.
fn full_key(first: usize, number: u32) -> u64 {
    (first as u64) << 32 | u64::from(number)
}

impl Group {
    /// The group of all ranks, in their order; `key` is one of rank 0 ([`next_key`]).
    /// Collective.
    pub(crate) fn world(
        comm: Comm,
        wire: &Arc<Wire>,
        key: u32,
        topology: &Topology,
        sharing: Sharing<'_>,
        progress: &impl Progress,
    ) -> Result<Arc<Group>> {
        let members = (0..comm.size()).collect();
        let key = full_key(0, key);
        let team = collective::scope(Kind::Start, 0, || {
            Team::create(wire, (Wire::WORLD, key), members, topology, sharing, progress)
        })?;
        Ok(Group::of(comm, team, key, topology))
    }

    /// Wraps a communicator whose ranks are those of `team`.
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

    /// Makes the group of `ranks` (ranks of `self`, in this order). Collective
    /// over those ranks; a caller that is not among them gets `None`.
    ///
    /// # Errors
    /// `Rank` for a rank outside `self` or named twice; `State` where `self`
    /// was freed.
    pub(crate) fn subgroup(
        &self,
        ranks: &[usize],
        topology: &Topology,
        sharing: Sharing<'_>,
        progress: &impl Progress,
    ) -> Result<Option<Arc<Group>>> {
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
        if !ranks.contains(&self.rank()) {
            return Ok(None);
        }
        let members: Vec<usize> = ranks.iter().map(|&r| self.members()[r]).collect();
        let list = format!("of the ranks {}", listed(&members));
        collective::scope_of(Kind::CreateGroup, &list, || {
            self.make(ranks, members, topology, sharing, progress).map(Some)
        })
    }

    fn make(
        &self,
        ranks: &[usize],
        members: Vec<usize>,
        topology: &Topology,
        sharing: Sharing<'_>,
        progress: &impl Progress,
    ) -> Result<Arc<Group>> {
        let wire = self.team.wire();
        let first = members[0];
        let number = if first == topology.me() { next_key() } else { 0 };
        // The first member's number, and a tag that is above all of every member's.
        let all = wire.agree_on_group(&members, progress, &[number, wire.next_tag()])?;
        let (key, tag) =
            (full_key(first, all[0][0]), all.iter().map(|of| of[1]).max().unwrap_or(0));
        // Members of disjoint groups may create them at the same time: the tag
        // is one that only the same list of ranks gives.
        let list = ranks.iter().fold(ranks.len(), |h, &r| (h * 31 + r) & 0x3fff);
        let comm = self.comm()?.create_group(ranks, list as i32)?;
        let team = Team::create(wire, (tag, key), members, topology, sharing, progress)?;
        Ok(Group::of(comm, team, key, topology))
    }

    /// Unique among the groups of a job, and the same on all members.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.team.members().len()
    }

    /// The calling rank's number in the group.
    pub fn rank(&self) -> usize {
        self.team.rank()
    }

    /// World ranks of the members, in the group's order.
    pub fn members(&self) -> &[usize] {
        self.team.members()
    }

    /// The world rank of a member.
    ///
    /// # Errors
    /// `Rank` outside the group.
    pub fn world_rank(&self, rank: usize) -> Result<usize> {
        match self.members().get(rank) {
            Some(&w) => Ok(w),
            None => fail!(Rank, "rank {rank} is outside the group of {} ranks", self.size()),
        }
    }

    /// The number in the group of a world rank.
    pub fn rank_of(&self, world: usize) -> Option<usize> {
        match &self.rank_of {
            Some(known) => known.get(&world).copied(),
            None => (world < self.size()).then_some(world),
        }
    }

    /// Whether all members share one node.
    pub fn on_one_node(&self) -> bool {
        self.on_one_node
    }

    /// Waits until all members have called.
    pub fn barrier<P: Progress + ?Sized>(&self, progress: &P) -> Result<()> {
        meet(progress, Call::Barrier, 0, || self.live_team()?.barrier(progress))
    }

    /// Every member's `item`, in the order of ranks.
    pub fn allgather<T: Pod, P: Progress + ?Sized>(
        &self,
        progress: &P,
        item: &T,
    ) -> Result<Vec<T>> {
        meet(progress, Call::Exchange, size_of::<T>(), || match size_of::<T>() {
            0..=LONGEST => self.live_team()?.allgather(progress, item),
            _ => {
                self.live_team()?.meet_to_gather::<T, P>(progress)?;
                collective::allgather(&*self.comm()?, progress, item)
            }
        })
    }

    /// Copies `data` of `root` to all members.
    pub fn broadcast<T: Pod, P: Progress + ?Sized>(
        &self,
        progress: &P,
        data: &mut [T],
        root: usize,
    ) -> Result<()> {
        let of = (ElementType::of::<T>(), data.len());
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(data);
        meet(progress, Call::Broadcast, bytes.len(), || match bytes.len() {
            0..=LONGEST => self.live_team()?.broadcast(progress, of, bytes, root),
            _ => {
                self.live_team()?.meet_to_broadcast(progress, of, root)?;
                collective::broadcast(&*self.comm()?, progress, bytes, root)
            }
        })
    }

    /// Combines `data` element by element over all members; the result is everywhere, or only
    /// at `root` (elsewhere `data` is then left as it was).
    pub fn reduce<T: Element, P: Progress + ?Sized>(
        &self,
        progress: &P,
        data: &mut [T],
        operator: Operator,
        root: Option<usize>,
    ) -> Result<()> {
        let team = self.live_team()?;
        if collective::needs_no_other(data, operator, root, (self.rank(), self.size())) {
            return Ok(());
        }
        meet(progress, Call::Reduce, size_of_val(data), || match size_of_val(data) {
            0..=LONGEST => team.reduce(progress, (data, operator), root),
            _ => {
                team.meet_to_reduce::<T, P>(progress, (data.len(), operator), root)?;
                collective::reduce(&*self.comm()?, progress, data, operator, root)
            }
        })
    }

    /// Every member says whether its part of a collective step went well; all succeed, or all
    /// get the error of the lowest rank that failed.
    pub fn agree<P: Progress + ?Sized>(&self, progress: &P, mine: Result<()>) -> Result<()> {
        self.live_team()?.agree(progress, mine)
    }

    /// The members by nodes.
    pub(crate) fn live_team(&self) -> Result<&Team> {
        match &*self.comm.lock() {
            Some(_) => Ok(&self.team),
            None => fail!(State, "the group was freed"),
        }
    }

    /// The communicator, for collectives in the group's order of calls.
    pub(crate) fn comm(&self) -> Result<Arc<Comm>> {
        match &*self.comm.lock() {
            Some(comm) => Ok(comm.clone()),
            None => fail!(State, "the group was freed"),
        }
    }

    /// The communicator's MPI handle.
    pub fn comm_handle(&self) -> Result<CommHandle> {
        Ok(self.comm()?.handle())
    }

    /// Whether `mark_freed` was called.
    pub fn is_freed(&self) -> bool {
        self.freed.load(Ordering::Relaxed)
    }

    /// Notes that the group is freed.
    pub(crate) fn mark_freed(&self) {
        self.freed.store(true, Ordering::Relaxed);
    }

    /// Frees the communicator. Collective.
    pub(crate) fn release_comm(&self) -> Result<()> {
        match self.comm.lock().take() {
            Some(comm) => {
                self.team.dissolve();
                comm.free()
            }
            None => Ok(()),
        }
    }

    /// Frees the communicator of all groups' messages, when the groups are gone. Collective.
    pub(crate) fn free_wire(&self) -> Result<()> {
        self.team.wire().comm().free()
    }
}
