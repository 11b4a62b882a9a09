//! The ranks of a group by node, and their collectives of short values.
//!
//! Ranks of a node use shared memory ([`super::shared_area`]). Nodes exchange messages
//! ([`super::message_group`]) through one rank each: the *leader*, the first rank of the node in
//! the group. So only leaders poll MPI for collectives. A root that is not a leader exchanges its
//! data with the leader through shared memory. Without shared memory on some node, each rank counts
//! as a node.
//!
//! Invariants: all members have the same view of the nodes, and perform the same steps. No result
//! depends on a rank that made a different call: each step and each message carries the call
//! ([`super::call`]), and the [alarm](super::alarm) ends the collective if the calls differ.

mod node_file;

use super::alarm::Alarm;
use super::call::{ElementType, Signature};
use super::kind::Kind;
use super::message_group::{MessageGroup, Running};
use super::shared_area::SharedArea;
use super::slots::Slots;
use super::wire::Wire;
use super::{Operator, Reducible};
use crate::topology::Topology;
use bytemuck::Pod;
use portolan_base::error::Result;
use portolan_base::shm::SharedFile;
use portolan_base::wait::Progress;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

#[derive(Debug, Clone, Copy)]
pub struct Sharing<'a> {
    pub topology: &'a Topology,
    pub direct: bool,
    pub dir: &'a str,
    /// There are more ranks than cores.
    pub crowded: bool,
}

#[derive(Debug)]
struct Nodes {
    node_of: Vec<u32>,
    leaders: Vec<usize>,
    shared_area: Option<SharedArea>,
}

#[derive(Debug)]
pub struct Team {
    wire: Arc<Wire>,
    tag: u32,
    /// World ranks of the members, and the caller's index among them.
    members: Arc<[usize]>,
    me: usize,
    alarm: Alarm,
    exchanges: AtomicU32,
    here: Vec<usize>,
    nodes: Option<Nodes>,
    /// The team that takes the place of this one after a mismatch.
    successor: OnceLock<Box<Team>>,
}

impl Team {
    /// Creates the collective areas of a group if ranks share memory. Collective over the members,
    /// which have agreed on the tag and the key of the group.
    pub fn create(
        wire: &Arc<Wire>,
        (tag, key): (u32, u64),
        members: Vec<usize>,
        sharing: Sharing<'_>,
        progress: &dyn Progress,
    ) -> Result<Team> {
        wire.take_tag(tag)?;
        let topology = sharing.topology;
        let is_here = |rank: &usize| topology.same_node(members[*rank], topology.me());
        let here: Vec<usize> = (0..members.len()).filter(is_here).collect();
        let me = here.iter().copied().find(|&rank| members[rank] == topology.me()).unwrap_or(0);
        let mut numbers = std::collections::HashMap::new();
        let mut leaders = Vec::new();
        let mut node_of = Vec::new();
        for &world in members.iter().filter(|_| sharing.direct) {
            let number = numbers.entry(topology.node_of(world)).or_insert_with(|| {
                leaders.push(world);
                leaders.len() as u32 - 1
            });
            node_of.push(*number);
        }
        let members: Arc<[usize]> = members.into();
        let alarm = |all: &[usize], own: usize| {
            let others: Vec<usize> = all.iter().copied().filter(|&world| world != own).collect();
            let others = (!others.is_empty()).then(|| (wire.clone(), others));
            Alarm::new(others, key, members.clone())
        };
        let mut team = Team {
            wire: wire.clone(),
            tag,
            me,
            here,
            alarm: alarm(&members, members[me]),
            exchanges: AtomicU32::new(0),
            members: members.clone(),
            nodes: None,
            successor: OnceLock::new(),
        };
        if !sharing.direct || leaders.len() == team.size() {
            return Ok(team);
        }
        let ranks = team.here.len();
        let reserve = |file: &SharedFile| match team.leads() {
            true => Slots::prepare(file, ranks),
            false => Ok(()),
        };
        let len = Slots::file_len(ranks);
        if let Some(file) = team.share_if_possible(progress, sharing.dir, len, reserve)? {
            let place = team.place();
            let world: Vec<usize> = team.here.iter().map(|&rank| team.members[rank]).collect();
            let whereabouts = Some(wire.clone());
            let shared_area =
                SharedArea::on(file, place, world.clone(), sharing.crowded, whereabouts);
            if tag == Wire::WORLD {
                wire.set_world(shared_area.slots().clone(), world);
            }
            // On other nodes, only leaders poll for messages.
            team.alarm = alarm(&leaders, team.members[team.here[0]]);
            team.alarm.set_slots(shared_area.slots().clone());
            let shared_area = (ranks > 1).then_some(shared_area);
            team.nodes = Some(Nodes { node_of, leaders, shared_area });
        }
        Ok(team)
    }

    /// Returns the last successor of this team.
    pub fn latest(&self) -> &Team {
        let mut team = self;
        while let Some(next) = team.successor.get() {
            team = next;
        }
        team
    }

    /// Makes another team of the same members the successor of this one, which has none.
    pub(crate) fn succeed_by(&self, team: Team) {
        let _ = self.successor.set(Box::new(team));
    }

    pub(crate) fn has_mismatch(&self) -> bool {
        self.alarm.is_raised()
    }

    /// Like [`Team::has_mismatch`], on a rank that may not have waited for others since.
    pub(crate) fn learns_of_mismatch(&self) -> bool {
        self.alarm.check_others().is_err()
    }

    /// World ranks.
    pub fn members(&self) -> &[usize] {
        &self.members
    }

    pub fn rank(&self) -> usize {
        self.me
    }

    fn size(&self) -> usize {
        self.members.len()
    }

    fn place(&self) -> usize {
        self.here.binary_search(&self.me).unwrap_or(0)
    }

    fn leads(&self) -> bool {
        self.here.first() == Some(&self.me)
    }

    fn shared_area(&self) -> Option<&SharedArea> {
        self.nodes.as_ref()?.shared_area.as_ref()
    }

    fn circle_size(&self) -> usize {
        self.nodes.as_ref().map_or(self.size(), |nodes| nodes.leaders.len())
    }

    fn node_of(&self, rank: usize) -> usize {
        self.nodes.as_ref().map_or(rank, |nodes| nodes.node_of[rank] as usize)
    }

    fn in_circle<R>(
        &self,
        running: &Running<'_>,
        body: impl FnOnce(&MessageGroup<'_>) -> Result<R>,
    ) -> Result<R> {
        body(&MessageGroup {
            wire: self.wire.comm(),
            tag: self.tag as i32,
            ranks: self.nodes.as_ref().map_or(&self.members, |nodes| &nodes.leaders),
            me: self.node_of(self.me),
            number: self.exchanges.fetch_add(1, Ordering::Relaxed),
            running,
        })
    }

    /// Fails, before the caller arrives, if the alarm is raised or the thread must not wait.
    fn run<R>(
        &self,
        progress: &dyn Progress,
        call: Signature,
        what: &dyn Fn() -> String,
        body: impl FnOnce(&Running<'_>) -> Result<R>,
    ) -> Result<R> {
        progress.may_wait()?;
        if self.shared_area().is_none() {
            self.alarm.check()?;
        }
        let call = call.in_scope(self.wire.secret());
        let warns = || self.shared_area().is_none_or(SharedArea::is_first_here);
        body(&Running { progress, what, call, alarm: &self.alarm, warns: &warns })
    }

    fn is_in_circle(&self) -> bool {
        self.circle_size() > 1 && (self.shared_area().is_none() || self.leads())
    }

    pub fn barrier(&self, progress: &dyn Progress) -> Result<()> {
        self.meet(progress, Signature::here(Kind::Barrier))
    }

    /// Waits until all members are in the same call, before an MPI collective.
    pub(crate) fn meet(&self, progress: &dyn Progress, call: Signature) -> Result<()> {
        let what = || match self.circle_size() {
            1 => "a barrier".into(),
            _ => format!("a barrier of {} ranks", self.size()),
        };
        self.run(progress, call, &what, |running| {
            let meet = |_: &mut [u8]| self.in_circle(running, |circle| circle.barrier());
            match self.shared_area() {
                None => meet(&mut []),
                Some(shared_area) if self.circle_size() == 1 => shared_area.barrier(running, None),
                Some(shared_area) => shared_area.barrier(running, Some(&meet)),
            }
        })
    }

    pub fn allgather<T: Pod>(&self, progress: &dyn Progress, item: &T) -> Result<Vec<T>> {
        let call = Signature::here(Kind::AllGather).of(ElementType::of::<T>(), 1);
        let what = || format!("an allgather of {} ranks", self.size());
        self.run(progress, call, &what, |running| self.gather(running, item))
    }

    fn gather<T: Pod>(&self, running: &Running<'_>, item: &T) -> Result<Vec<T>> {
        let own = bytemuck::bytes_of(item);
        let len = own.len();
        let mut all = self.gather_here(running, own)?;
        let value = |bytes: &[u8]| bytemuck::pod_read_unaligned(bytes);
        // Items of a single node are already in the order of the group.
        if self.circle_size() == 1 && len > 0 {
            return Ok(all.chunks_exact(len).map(value).collect());
        }
        if self.circle_size() > 1 {
            let mut nodes = vec![0; self.circle_size()];
            (0..self.size()).for_each(|rank| nodes[self.node_of(rank)] += len);
            if self.is_in_circle() {
                all = self.in_circle(running, |circle| circle.allgather(&all, &|n| nodes[n]))?;
            }
            all.resize(len * self.size(), 0);
            if let Some(shared_area) = self.shared_area() {
                shared_area.broadcast(running, &mut all, 0)?;
            }
        }
        // `all` holds the items node by node. `next` has the offset of each node's next item.
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

    fn gather_here(&self, running: &Running<'_>, own: &[u8]) -> Result<Vec<u8>> {
        let Some(shared_area) = self.shared_area() else { return Ok(own.to_vec()) };
        let block_len = shared_area.block_len(running, own.len())?;
        if own.len() <= block_len {
            return shared_area.allgather(running, own);
        }
        let mut all = vec![Vec::with_capacity(own.len()); self.here.len()];
        for fragment in own.chunks(block_len) {
            let fragments = shared_area.allgather(running, fragment)?;
            let fragments = fragments.chunks_exact(fragment.len());
            all.iter_mut()
                .zip(fragments)
                .for_each(|(all, fragment)| all.extend_from_slice(fragment));
        }
        Ok(all.concat())
    }

    /// `element` is for the comparison of calls.
    pub fn broadcast(
        &self,
        progress: &dyn Progress,
        (element, count): (ElementType, usize),
        data: &mut [u8],
        root: usize,
    ) -> Result<()> {
        let call = Signature::here(Kind::Broadcast).of(element, count).rooted(root);
        let what = || format!("a broadcast to {} ranks", self.size());
        if data.is_empty() {
            return progress.may_wait();
        }
        self.run(progress, call, &what, |running| {
            // From the root to its node, between leaders, and from each other leader to its node.
            let node = self.node_of(root);
            let here = self.node_of(self.me) == node;
            let place = self.here.binary_search(&root).unwrap_or(0);
            if let Some(shared_area) = self.shared_area().filter(|_| here) {
                shared_area.broadcast(running, data, place)?;
            }
            if self.is_in_circle() {
                self.in_circle(running, |circle| circle.broadcast(data, node))?;
            }
            match self.shared_area().filter(|_| !here) {
                Some(shared_area) => shared_area.broadcast(running, data, 0),
                None => Ok(()),
            }
        })
    }

    /// All members receive the result, or only `root` if given; the others then keep their data.
    pub fn reduce<T: Reducible>(
        &self,
        progress: &dyn Progress,
        (data, operator): (&mut [T], Operator),
        root: Option<usize>,
    ) -> Result<()> {
        let call = reduction::<T>(data.len(), operator, root);
        let what = || format!("a reduction of {} ranks", self.size());
        if data.is_empty() {
            return progress.may_wait();
        }
        self.run(progress, call, &what, |running| match root {
            None => self.all_reduce(running, (data, operator)),
            Some(root) => self.reduce_to(running, (data, operator), root),
        })
    }

    pub fn shares_memory(&self) -> bool {
        self.circle_size() == 1 && self.shared_area().is_some()
    }

    fn reduce_to<T: Reducible>(
        &self,
        running: &Running<'_>,
        (data, operator): (&mut [T], Operator),
        root: usize,
    ) -> Result<()> {
        // Place of the rank that continues with the combined values of the node: the leader if
        // there are other nodes, else the root.
        let between = self.circle_size() > 1;
        let place = if between { 0 } else { self.here.binary_search(&root).unwrap_or(0) };
        let mut sum = data.to_vec();
        if let Some(shared_area) = self.shared_area() {
            shared_area.reduce(running, (&mut sum, operator), place)?;
        }
        let node = self.node_of(root);
        if self.is_in_circle() {
            self.in_circle(running, |circle| circle.reduce(&mut sum, operator, node))?;
        }
        if between
            && self.node_of(self.me) == node
            && self.here[0] != root
            && let Some(shared_area) = self.shared_area()
        {
            shared_area.broadcast(running, bytemuck::cast_slice_mut(&mut sum), 0)?;
        }
        if root == self.me {
            data.copy_from_slice(&sum);
        }
        Ok(())
    }

    fn all_reduce<T: Reducible>(
        &self,
        running: &Running<'_>,
        (data, operator): (&mut [T], Operator),
    ) -> Result<()> {
        let combine =
            |sum: &mut [T]| self.in_circle(running, |circle| circle.all_reduce(sum, operator));
        let Some(shared_area) = self.shared_area() else {
            // A copy, so that a failure leaves the data unchanged.
            let mut sum = data.to_vec();
            combine(&mut sum)?;
            data.copy_from_slice(&sum);
            return Ok(());
        };
        if self.circle_size() == 1 {
            return shared_area.all_reduce(running, (data, operator), None);
        }
        if size_of_val(data) <= shared_area.block_len(running, size_of_val(data))? {
            let work = |bytes: &mut [u8]| {
                let mut sum = vec![T::zeroed(); bytes.len() / size_of::<T>()];
                bytemuck::cast_slice_mut(&mut sum).copy_from_slice(bytes);
                combine(&mut sum)?;
                bytes.copy_from_slice(bytemuck::cast_slice(&sum));
                Ok(())
            };
            return shared_area.all_reduce(running, (data, operator), Some(&work));
        }
        let mut sum = data.to_vec();
        shared_area.reduce(running, (&mut sum, operator), 0)?;
        if self.leads() {
            combine(&mut sum)?;
        }
        shared_area.broadcast(running, bytemuck::cast_slice_mut(&mut sum), 0)?;
        data.copy_from_slice(&sum);
        Ok(())
    }

    /// Either all members succeed, or a failed member returns its own error, and every other member
    /// returns the error of the lowest rank that failed.
    pub fn agree(&self, progress: &dyn Progress, mine: Result<()>) -> Result<()> {
        self.agree_in(progress, reduction::<i64>(1, Operator::Min, None), mine)
    }

    /// Agrees as [`Team::agree`] does, once all members are in the same call.
    pub(crate) fn agree_in(
        &self,
        progress: &dyn Progress,
        call: Signature,
        mine: Result<()>,
    ) -> Result<()> {
        let mut first = [match &mine {
            Ok(()) => i64::MAX,
            Err(_) => self.me as i64,
        }];
        let what = || format!("an agreement of {} ranks", self.size());
        self.run(progress, call, &what, |running| {
            self.all_reduce(running, (&mut first, Operator::Min))
        })?;
        let Ok(rank) = usize::try_from(first[0]) else { return mine };
        if first[0] == i64::MAX {
            return Ok(());
        }
        let mut verdict = super::Verdict::of(&mine);
        let bytes = bytemuck::bytes_of_mut(&mut verdict);
        self.broadcast(progress, (ElementType::BYTES, bytes.len()), bytes, rank)?;
        mine?;
        verdict.result_of(rank)
    }

    /// Releases the tag of a freed group, unless an alarm was raised: messages may be left.
    pub(crate) fn dissolve(&self) {
        if let Some(successor) = self.successor.get() {
            successor.dissolve();
        }
        if !self.alarm.is_raised() {
            self.wire.give_tag_back(self.tag);
        }
    }

    pub fn wire(&self) -> &Arc<Wire> {
        &self.wire
    }
}

pub(crate) fn reduction<T: Reducible>(
    count: usize,
    operator: Operator,
    root: Option<usize>,
) -> Signature {
    let kind = if root.is_some() { Kind::Reduce } else { Kind::AllReduce };
    let call = Signature::here(kind).of(ElementType::of::<T>(), count).by(operator);
    root.map_or(call, |root| call.rooted(root))
}
