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

use crate::collective::{self, Board};
use crate::error::{Result, fail};
use crate::mpi::{Comm, CommHandle};
use crate::topology::Topology;
use crate::wait::Progress;
use bytemuck::Pod;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// An ordered set of ranks of the world.
#[derive(Debug)]
pub struct Group {
    key: u64,
    comm: Mutex<Option<Arc<Comm>>>,
    members: Vec<usize>,
    /// Numbers in the group by world rank, where the two differ: not in the world, which
    /// may have thousands.
    rank_of: Option<HashMap<usize, usize>>,
    me: usize,
    on_one_node: bool,
    freed: AtomicBool,
    board: OnceLock<Board>,
}

/// Distinguishes the groups that this rank has led.
static NEXT_KEY: AtomicU32 = AtomicU32::new(1);

impl Group {
    /// Wraps a communicator whose rank `i` is world rank `members[i]`.
    /// Collective over the communicator.
    pub(crate) fn new(
        comm: Comm,
        members: Vec<usize>,
        topology: &Topology,
        progress: &impl Progress,
    ) -> Result<Arc<Group>> {
        let me = comm.rank();
        let leader_key = ((members[0] as u64) << 32)
            | u64::from(if me == 0 { NEXT_KEY.fetch_add(1, Ordering::Relaxed) } else { 0 });
        let mut key = [leader_key];
        collective::broadcast(&comm, progress, bytemuck::bytes_of_mut(&mut key), 0)?;
        let differ = members.iter().enumerate().any(|(i, &w)| i != w);
        let rank_of = differ.then(|| members.iter().enumerate().map(|(i, &w)| (w, i)).collect());
        let node = topology.node_of(members[0]);
        Ok(Arc::new(Group {
            key: key[0],
            comm: Mutex::new(Some(Arc::new(comm))),
            on_one_node: members.iter().all(|&w| topology.node_of(w) == node),
            members,
            rank_of,
            me,
            freed: AtomicBool::new(false),
            board: OnceLock::new(),
        }))
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
        if !ranks.contains(&self.me) {
            return Ok(None);
        }
        // Members of disjoint groups may create them at the same time: the tag
        // is one that only the same list of ranks gives.
        let tag = ranks.iter().fold(ranks.len(), |h, &r| (h * 31 + r) & 0x3fff);
        let comm = self.comm()?.create_group(ranks, tag as i32)?;
        let members = ranks.iter().map(|&r| self.members[r]).collect();
        Group::new(comm, members, topology, progress).map(Some)
    }

    /// Unique among the groups of a job, and the same on all members.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// The calling rank's number in the group.
    pub fn rank(&self) -> usize {
        self.me
    }

    /// World ranks of the members, in the group's order.
    pub fn members(&self) -> &[usize] {
        &self.members
    }

    /// The world rank of a member.
    ///
    /// # Errors
    /// `Rank` outside the group.
    pub fn world_rank(&self, rank: usize) -> Result<usize> {
        match self.members.get(rank) {
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

    /// Gives a group whose ranks share memory a board to meet on. Collective.
    pub(crate) fn set_up_board(&self, dir: &str, progress: &impl Progress) -> Result<()> {
        if self.on_one_node
            && self.size() > 1
            && let Some(board) = Board::create(&*self.comm()?, &self.members, dir, progress)?
        {
            let _ = self.board.set(board);
        }
        Ok(())
    }

    /// Waits until all members have called.
    pub fn barrier<P: Progress + ?Sized>(&self, progress: &P) -> Result<()> {
        let comm = self.comm()?;
        match self.board.get() {
            Some(board) => board.barrier(progress),
            None => collective::barrier(&comm, progress),
        }
    }

    /// Every member's `item`, in the order of ranks.
    pub fn allgather<T: Pod, P: Progress + ?Sized>(
        &self,
        progress: &P,
        item: &T,
    ) -> Result<Vec<T>> {
        let comm = self.comm()?;
        match self.board.get() {
            Some(board) if Board::holds::<T>() => board.allgather(progress, item),
            _ => collective::allgather(&comm, progress, item),
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
            Some(comm) => comm.free(),
            None => Ok(()),
        }
    }
}
