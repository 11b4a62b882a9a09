//! The ranks of a group, by nodes: how they meet and combine values.
//!
//! On a node by its board in shared memory ([`super::board`]); between nodes by messages, one
//! rank a node ([`super::circle`]): the *leader*, which is the node's first in the group, or the
//! root of a broadcast or reduction. So a rank that waits for others of its node sleeps on a word,
//! and only leaders poll MPI for messages of collectives.
//!
//! Where ranks share no memory, or there is none for boards on some node, each rank counts as a
//! node of its own here.
//!
//! Invariant: all members have the same picture of the nodes, and take the same steps.

use super::board::{Board, Representative};
use super::circle::Circle;
use super::share::{self, Meeting};
use super::slots::Slots;
use super::wire::Wire;
use super::{Element, Operator};
use crate::error::{Error, ErrorKind, Result};
use crate::shm::{Descriptor, SharedFile};
use crate::topology::Topology;
use crate::wait::Progress;
use bytemuck::Pod;
use std::sync::Arc;

/// What the ranks of a node may have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sharing<'a> {
    /// Whether ranks of a node share memory.
    pub direct: bool,
    /// Where its files are.
    pub dir: &'a str,
    /// Ranks outnumber cores.
    pub crowded: bool,
}

/// The nodes of a group of which some have several members.
#[derive(Debug)]
struct Nodes {
    /// By rank of the group.
    node_of: Vec<u32>,
    /// World rank of each node's first member.
    leaders: Vec<usize>,
    /// That of the caller's node, where it has several members.
    board: Option<Board>,
}

/// The ranks of a group.
#[derive(Debug)]
pub(crate) struct Team {
    wire: Arc<Wire>,
    tag: u32,
    /// World ranks, and the caller's place among them.
    members: Vec<usize>,
    me: usize,
    /// Ranks of the group on the caller's node.
    here: Vec<usize>,
    nodes: Option<Nodes>,
}

impl Team {
    /// Makes the boards of a group, where ranks share memory. Collective over the members, who
    /// have agreed on the tag.
    pub(crate) fn create<P: Progress + ?Sized>(
        wire: &Arc<Wire>,
        tag: u32,
        members: Vec<usize>,
        topology: &Topology,
        sharing: Sharing<'_>,
        progress: &P,
    ) -> Result<Team> {
        wire.take_tag(tag)?;
        let is_here = |rank: &usize| topology.same_node(members[*rank], topology.me());
        let here: Vec<usize> = (0..members.len()).filter(is_here).collect();
        let me = here.iter().copied().find(|&rank| members[rank] == topology.me());
        let mut team =
            Team { wire: wire.clone(), tag, me: me.unwrap_or(0), here, members, nodes: None };
        let mut numbers = std::collections::HashMap::new();
        let mut leaders = Vec::new();
        let mut node_of = Vec::new();
        for &world in team.members.iter().filter(|_| sharing.direct) {
            let number = numbers.entry(topology.node_of(world)).or_insert_with(|| {
                leaders.push(world);
                leaders.len() as u32 - 1
            });
            node_of.push(*number);
        }
        if !sharing.direct || leaders.len() == team.size() {
            return Ok(team);
        }
        let ranks = team.here.len();
        let reserve = |file: &SharedFile| match team.leads() {
            true => file.reserve(0, Slots::reserved_len(ranks)).map_err(|e| {
                let bytes = Slots::reserved_len(ranks);
                Error::new(ErrorKind::Memory, format!("{bytes} bytes of shared memory: {e}"))
            }),
            false => Ok(()),
        };
        match team.share(progress, sharing.dir, Slots::file_len(ranks), reserve) {
            Ok(file) => {
                let place = team.place();
                let world = team.here.iter().map(|&rank| team.members[rank]).collect();
                let board = Board::on(file, place, world, sharing.crowded);
                let board = (ranks > 1).then_some(board);
                team.nodes = Some(Nodes { node_of, leaders, board });
            }
            Err(error) => log::debug!("ranks of a node meet by messages: {error}"),
        }
        Ok(team)
    }

    /// World ranks of the members.
    pub(crate) fn members(&self) -> &[usize] {
        &self.members
    }

    /// The caller's rank in the group.
    pub(crate) fn rank(&self) -> usize {
        self.me
    }

    fn size(&self) -> usize {
        self.members.len()
    }

    /// The caller's place on its node.
    fn place(&self) -> usize {
        self.here.binary_search(&self.me).unwrap_or(0)
    }

    /// Whether the caller is the first of its node.
    fn leads(&self) -> bool {
        self.here.first() == Some(&self.me)
    }

    fn board(&self) -> Option<&Board> {
        self.nodes.as_ref()?.board.as_ref()
    }

    /// The number of nodes.
    fn circle_size(&self) -> usize {
        self.nodes.as_ref().map_or(self.size(), |nodes| nodes.leaders.len())
    }

    /// The node of a rank of the group.
    fn node_of(&self, rank: usize) -> usize {
        self.nodes.as_ref().map_or(rank, |nodes| nodes.node_of[rank] as usize)
    }

    /// Runs `body` in the circle of the nodes, each of which its leader stands for, or the rank
    /// `root` of the group for its own.
    fn in_circle<P: Progress + ?Sized>(
        &self,
        progress: &P,
        what: &dyn Fn() -> String,
        root: Option<usize>,
        body: impl FnOnce(&Circle<'_, P>),
    ) {
        let leaders = self.nodes.as_ref().map_or(&self.members, |nodes| &nodes.leaders);
        let root = root.map(|root| (self.node_of(root), self.members[root]));
        let replaced = root.filter(|&(node, world)| leaders[node] != world).map(|(node, world)| {
            let mut ranks = leaders.clone();
            ranks[node] = world;
            ranks
        });
        body(&Circle {
            wire: self.wire.comm(),
            tag: self.tag as i32,
            ranks: replaced.as_ref().unwrap_or(leaders),
            me: self.node_of(self.me),
            progress,
            what,
        });
    }

    /// The place on the caller's node of the rank that stands for it, where `root` does so for
    /// its own.
    fn place_for(&self, root: usize) -> usize {
        match self.nodes {
            Some(_) => self.here.binary_search(&root).unwrap_or(0),
            None => self.place(),
        }
    }

    /// Waits until all members have called.
    pub(crate) fn barrier<P: Progress + ?Sized>(&self, progress: &P) -> Result<()> {
        // A thread that may not wait must not count as arrived.
        progress.may_wait()?;
        let what = || format!("a barrier of {} ranks", self.size());
        let meet = || self.in_circle(progress, &what, None, |circle| circle.barrier());
        match self.board() {
            None => meet(),
            Some(board) if self.circle_size() == 1 => {
                board.barrier(progress, &|| "a barrier".into(), None)?;
            }
            Some(board) => {
                let leader = Representative { place: 0, work: &|_| meet() };
                board.barrier(progress, &what, Some(&leader))?;
            }
        }
        Ok(())
    }

    /// Every member's `item`, in the order of ranks.
    pub(crate) fn allgather<T: Pod, P: Progress + ?Sized>(
        &self,
        progress: &P,
        item: &T,
    ) -> Result<Vec<T>> {
        progress.may_wait()?;
        let what = || format!("an allgather of {} ranks", self.size());
        let own = bytemuck::bytes_of(item);
        let len = own.len();
        let mut all = self.gather_here(progress, &what, own)?;
        let value = |bytes: &[u8]| bytemuck::pod_read_unaligned(bytes);
        // The ranks of a node are in the order of the group already.
        if self.circle_size() == 1 && len > 0 {
            return Ok(all.chunks_exact(len).map(value).collect());
        }
        if self.circle_size() > 1 {
            let mut nodes = vec![0; self.circle_size()];
            (0..self.size()).for_each(|rank| nodes[self.node_of(rank)] += len);
            if self.board().is_none() || self.leads() {
                self.in_circle(progress, &what, None, |circle| {
                    all = circle.allgather(&all, &|node| nodes[node]);
                });
            }
            all.resize(len * self.size(), 0);
            if let Some(board) = self.board() {
                board.broadcast(progress, &what, &mut all, 0)?;
            }
        }
        // Node after node: where the next item of each is.
        let mut next = vec![0; self.circle_size()];
        (0..self.size()).for_each(|rank| next[self.node_of(rank)] += len);
        let mut at = 0;
        next.iter_mut().for_each(|next| at += std::mem::replace(next, at));
        let item = |rank| {
            let from = &mut next[self.node_of(rank)];
            let bytes = &all[*from..*from + len];
            *from += len;
            value(bytes)
        };
        Ok((0..self.size()).map(item).collect())
    }

    /// The bytes of all ranks of the node.
    fn gather_here<P: Progress + ?Sized>(
        &self,
        progress: &P,
        what: &dyn Fn() -> String,
        own: &[u8],
    ) -> Result<Vec<u8>> {
        let Some(board) = self.board() else { return Ok(own.to_vec()) };
        let piece_len = board.piece_len(progress, what, own.len())?;
        if own.len() <= piece_len {
            return board.allgather(progress, what, own);
        }
        let mut all = vec![Vec::with_capacity(own.len()); self.here.len()];
        for piece in own.chunks(piece_len) {
            let pieces = board.allgather(progress, what, piece)?;
            let pieces = pieces.chunks_exact(piece.len());
            all.iter_mut().zip(pieces).for_each(|(all, piece)| all.extend_from_slice(piece));
        }
        Ok(all.concat())
    }

    /// Copies `data` of `root` to all members.
    pub(crate) fn broadcast<P: Progress + ?Sized>(
        &self,
        progress: &P,
        data: &mut [u8],
        root: usize,
    ) -> Result<()> {
        progress.may_wait()?;
        let what = || format!("a broadcast to {} ranks", self.size());
        let place = self.place_for(root);
        if !data.is_empty() && self.circle_size() > 1 && place == self.place() {
            let node = self.node_of(root);
            let root = Some(root);
            self.in_circle(progress, &what, root, |circle| circle.broadcast(data, node));
        }
        match self.board() {
            Some(board) => board.broadcast(progress, &what, data, place),
            None => Ok(()),
        }
    }

    /// Combines `data` of all members, everywhere or at `root`; elsewhere it stays as it was.
    pub(crate) fn reduce<T: Element, P: Progress + ?Sized>(
        &self,
        progress: &P,
        (data, operator): (&mut [T], Operator),
        root: Option<usize>,
    ) -> Result<()> {
        progress.may_wait()?;
        let what = || format!("a reduction of {} ranks", self.size());
        if data.is_empty() {
            return Ok(());
        }
        let Some(root) = root else { return self.all_reduce(progress, &what, (data, operator)) };
        let mut sum = data.to_vec();
        let place = self.place_for(root);
        if let Some(board) = self.board() {
            board.reduce(progress, &what, (&mut sum, operator), place)?;
        }
        if self.circle_size() > 1 && place == self.place() {
            let node = self.node_of(root);
            self.in_circle(progress, &what, Some(root), |circle| {
                circle.reduce(&mut sum, operator, node);
            });
        }
        if root == self.me {
            data.copy_from_slice(&sum);
        }
        Ok(())
    }

    fn all_reduce<T: Element, P: Progress + ?Sized>(
        &self,
        progress: &P,
        what: &dyn Fn() -> String,
        (data, operator): (&mut [T], Operator),
    ) -> Result<()> {
        let combine = |data: &mut [T]| {
            self.in_circle(progress, what, None, |circle| circle.all_reduce(data, operator));
        };
        let Some(board) = self.board() else {
            combine(data);
            return Ok(());
        };
        if self.circle_size() == 1 {
            return board.all_reduce(progress, what, (data, operator), None);
        }
        if size_of_val(data) <= board.piece_len(progress, what, size_of_val(data))? {
            let work = |bytes: &mut [u8]| {
                let mut sum = vec![T::zeroed(); bytes.len() / size_of::<T>()];
                bytemuck::cast_slice_mut(&mut sum).copy_from_slice(bytes);
                combine(&mut sum);
                bytes.copy_from_slice(bytemuck::cast_slice(&sum));
            };
            let leader = Representative { place: 0, work: &work };
            return board.all_reduce(progress, what, (data, operator), Some(&leader));
        }
        board.reduce(progress, what, (data, operator), 0)?;
        if self.leads() {
            combine(data);
        }
        board.broadcast(progress, what, bytemuck::cast_slice_mut(data), 0)
    }

    /// An agreement: every member says whether its part of a collective step went well; all
    /// succeed, or all get the error of the lowest rank that failed.
    pub(crate) fn agree<P: Progress + ?Sized>(&self, progress: &P, mine: Result<()>) -> Result<()> {
        let mut first = [match &mine {
            Ok(()) => i64::MAX,
            Err(_) => self.me as i64,
        }];
        self.reduce(progress, (&mut first, Operator::Min), None)?;
        let Ok(rank) = usize::try_from(first[0]) else { return mine };
        if first[0] == i64::MAX {
            return Ok(());
        }
        let mut verdict = super::Verdict::of(&mine);
        self.broadcast(progress, bytemuck::bytes_of_mut(&mut verdict), rank)?;
        mine?;
        verdict.result_of(rank)
    }

    /// A file of `len` bytes that the leader of each node makes and the members on its node
    /// map; `prepare` is what each does with it before all agree that it is there.
    /// Collective. Nodes may give different lengths.
    ///
    /// # Errors
    /// `Memory` on all members where it cannot be had on one.
    pub(crate) fn share<P: Progress + ?Sized>(
        &self,
        progress: &P,
        dir: &str,
        len: usize,
        prepare: impl Fn(&SharedFile) -> Result<()>,
    ) -> Result<SharedFile> {
        share::file(&OnNodes { team: self, progress }, dir, len, prepare)
    }

    /// The group is gone: its tag may be another's.
    pub(crate) fn dissolve(&self) {
        self.wire.give_tag_back(self.tag);
    }

    pub(crate) fn wire(&self) -> &Arc<Wire> {
        &self.wire
    }
}

/// How the members on each node come to have a file.
struct OnNodes<'a, P: Progress + ?Sized> {
    team: &'a Team,
    progress: &'a P,
}

impl<P: Progress + ?Sized> Meeting for OnNodes<'_, P> {
    fn leads(&self) -> bool {
        self.team.leads()
    }
    fn offer(&self, mut own: Descriptor) -> Result<Descriptor> {
        let team = self.team;
        let what = || format!("a file of the {} ranks of a node", team.here.len());
        let bytes = bytemuck::bytes_of_mut(&mut own);
        match team.board() {
            Some(board) => board.broadcast(self.progress, &what, bytes, 0)?,
            None => Circle {
                wire: team.wire.comm(),
                tag: team.tag as i32,
                ranks: &team.here.iter().map(|&rank| team.members[rank]).collect::<Vec<_>>(),
                me: team.place(),
                progress: self.progress,
                what: &what,
            }
            .broadcast(bytes, 0),
        }
        Ok(own)
    }
    fn agree(&self, mine: Result<()>) -> Result<()> {
        self.team.agree(self.progress, mine)
    }
}
