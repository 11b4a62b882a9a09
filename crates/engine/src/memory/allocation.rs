//! Collective allocation of segments by the ranks of a group.
//!
//! Each rank allocates one contiguous range for all segments of the call, in an arena of the group
//! with enough space, and announces it in one allgather. If a rank finds no space, the same
//! allgather carries the lengths of the regions of a new arena and the files that the node leaders
//! (the lowest rank of each node) created for it; a second allgather carries the addresses. A
//! further exchange carries the lengths of several segments if they differ.
//!
//! A 64-bit digest replaces the lengths, so that the message fits in one slot of the node's
//! shared-memory collective area ([`portolan_base::digest`]).
//!
//! **Invariant.** A failure on one rank fails the call on all ranks and changes nothing on any of
//! them (invariant 7). Decisions depend only on the messages, which all ranks see.

use super::arena::{self, Arena};
use super::group_arenas::GroupArenas;
use super::own_region::OwnRegion;
use super::part::{PartPlace, Segment};
use super::partition::{
    FAILED, LEADS, MOST, Made, NEED, Partition, REFUSED, Survey, digest, no_memory, refused,
    stretch_bytes,
};
use super::per_rank::PerRank;
use super::registry::SegmentId;
use super::segment::{Memory, Purpose, rounded};
use crate::collective::group::Group;
use portolan_base::error::{Error, ErrorKind, Result, fail};
use portolan_base::shm::{self, Descriptor, FreshFile, SharedFile};
use portolan_base::wait::Progress;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Number of lengths per allgather if lengths differ between ranks.
const TOGETHER: usize = 512;

/// Places of the blocks of a segment, and the arenas that contain them.
type Found = (PerRank<PartPlace>, Vec<Arc<Arena>>);

/// The ranges of all ranks, or why there are none.
struct Attempt {
    mine: Partition,
    all: Vec<Partition>,
    survey: Survey,
    done: Result<()>,
}

impl Attempt {
    /// Whether a rank lacks memory. All ranks conclude the same.
    fn is_short(&self) -> bool {
        let is_memory = |error: &Error| error.kind() == ErrorKind::Memory;
        self.done.as_ref().is_err_and(is_memory) && !self.survey.is_refused()
    }
}

impl Memory {
    /// Allocates one segment for each length in `asked`: this rank's parts, in bytes. Collective.
    /// The ranks may pass different lengths, but the same number of them. A rank whose arguments
    /// are invalid passes the error, so that the others do not wait for it.
    ///
    /// Fails on all ranks: with `Memory` if the memory of one rank cannot be allocated (the error
    /// names that rank, the requested size and the free memory), with `Argument` if they request
    /// different numbers of segments, and with `State` if the group was freed. A rank that passes
    /// an error gets it back; the others get an error of the same kind.
    pub fn allocate_many(
        &self,
        group: &Arc<Group>,
        asked: Result<&[usize]>,
        purpose: Purpose,
        progress: &dyn Progress,
    ) -> Result<Vec<Arc<Segment>>> {
        if group.is_freed() {
            fail!(State, "the group was freed");
        }
        let holdings = self.of(group);
        let asked = asked.and_then(|lens| match lens.len() {
            0..MOST => Ok(lens),
            n => fail!(Argument, "{n} segments at once; {} are the most", MOST - 1),
        });
        let mut attempt = self.attempt(group, &holdings, &asked, progress)?;
        if attempt.is_short() {
            self.release_unused();
            // No rank measures the free memory before all have released theirs.
            group.allgather(progress, &0u8)?;
            attempt = self.attempt(group, &holdings, &asked, progress)?;
        }
        let Attempt { mine, all, survey, done } = attempt;
        let lens = asked?;
        done?;
        let others = match survey.same_lengths || lens.len() == 1 {
            true => None,
            false => Some(gather_lengths(group, lens, progress)?),
        };
        let found = match survey.alike {
            true => alike(&holdings, &mine, lens)?,
            false => unlike(&holdings, &all, lens, others.as_deref())?,
        };
        Ok(self.publish(group, &holdings, purpose, found))
    }

    /// Finds a range on each rank. If a rank has none, no rank keeps its own.
    fn attempt(
        &self,
        group: &Arc<Group>,
        holdings: &GroupArenas,
        asked: &Result<&[usize]>,
        progress: &dyn Progress,
    ) -> Result<Attempt> {
        let (mut mine, file) = match asked {
            Ok(lens) => self.partition(group, holdings, lens),
            Err(error) => (refused(error), None),
        };
        let mut all = group.allgather(progress, &mine)?;
        let mut survey = Survey::of(&all);
        let mut done = survey.check(group, &all);
        if done.is_ok() && survey.need {
            done = self.check_room(group, &all).and_then(|()| {
                self.partition_new(group, holdings, file, &mut all, &survey, progress)
            });
            mine = all[group.rank()];
            survey = Survey::of(&all);
        }
        if done.is_err() {
            uncut(holdings, &mine);
        }
        Ok(Attempt { mine, all, survey, done })
    }

    fn partition(
        &self,
        group: &Group,
        holdings: &GroupArenas,
        lens: &[usize],
    ) -> (Partition, Option<FreshFile>) {
        let stretch = stretch_bytes(lens);
        let held = holdings.arenas.lock().iter().map(|s| s.own.len()).sum();
        let neighbours = holdings.neighbours(group, &self.topology);
        let leads = neighbours.leader() == group.rank();
        let mut partition = Partition {
            asked: if let [len] = lens { *len } else { stretch } as u64,
            arena: NEED,
            capacity: arena::capacity(&self.policy, 0, held) as u64,
            digest: digest(group, lens),
            count: lens.len() as u32 | if leads { LEADS } else { 0 },
            ..bytemuck::Zeroable::zeroed()
        };
        if stretch == 0 {
            partition.arena = 0;
            return (partition, None);
        }
        if stretch > isize::MAX as usize / 2 {
            partition.arena = FAILED;
            partition.place = shm::room_in(&self.policy.shm_dir).unwrap_or(0) as u64;
            return (partition, None);
        }
        for arena in holdings.arenas.lock().iter() {
            match arena.own.partition(stretch) {
                Ok(Some(offset)) => {
                    partition.arena = u64::from(arena.number());
                    partition.place = offset as u64;
                    return (partition, None);
                }
                Ok(None) => {}
                Err(_) => {
                    partition.arena = FAILED;
                    break;
                }
            }
        }
        partition.place = shm::room_in(&self.policy.shm_dir).unwrap_or(usize::MAX) as u64;
        partition.capacity = arena::capacity(&self.policy, stretch, held) as u64;
        let wanted = leads && partition.arena == NEED;
        let file = wanted.then(|| FreshFile::create(&self.policy.shm_dir).ok()).flatten();
        let Some(Ok((device, inode, pid, fd))) = file.as_ref().map(FreshFile::place) else {
            return (partition, None);
        };
        let Ok(device) = u32::try_from(device) else { return (partition, None) };
        (Partition { device, inode, pid, fd, ..partition }, file)
    }

    fn check_room(&self, group: &Group, all: &[Partition]) -> Result<()> {
        let waiting = || {
            let cuts =
                group.members().iter().zip(all).filter(|(_, partition)| partition.arena == NEED);
            cuts.map(|(&world, partition)| (world, self.topology.node_of(world), partition))
        };
        let mut needed = vec![0u64; self.topology.nodes()];
        for (_, node, partition) in waiting() {
            needed[node] = needed[node].saturating_add(partition.asked);
        }
        let short = waiting().filter(|&(_, node, partition)| partition.place < needed[node]);
        let Some(node) = short.map(|(_, node, _)| node).min() else { return Ok(()) };
        let most = waiting()
            .filter(|&(_, at, _)| at == node)
            .max_by_key(|(.., partition)| partition.asked);
        let (world, _, partition) = most.expect("one waits");
        Err(no_memory(world, partition, needed[node]))
    }

    fn partition_new(
        &self,
        group: &Arc<Group>,
        holdings: &GroupArenas,
        file: Option<FreshFile>,
        all: &mut [Partition],
        survey: &Survey,
        progress: &dyn Progress,
    ) -> Result<()> {
        let lens = PerRank::of(all.iter().map(|partition| partition.capacity as usize));
        let neighbours = holdings.neighbours(group, &self.topology);
        let (offset, total) = neighbours.layout(&lens);
        let leader = neighbours.leader();
        let me = all[group.rank()];
        let fill = |file: Result<SharedFile>| {
            let start = arena::start(holdings.arenas.lock().len());
            let own = file.map(|file| OwnRegion::new(file, offset, lens.at(group.rank()), start));
            self.fill(group, holdings, own, (&me, &lens), progress)
        };
        let mut made = None;
        if !survey.no_file {
            let opened = match file {
                Some(file) => file.map(total),
                None => {
                    let Partition { device, inode, pid, fd, .. } = all[leader];
                    SharedFile::open(&Descriptor::unnamed(device.into(), inode, pid, fd), total)
                }
            };
            made = fill(opened)?;
        }
        if made.is_none() {
            let dir = &self.policy.shm_dir;
            made = fill(Ok(group.live_team()?.share(progress, dir, total, |_| Ok(()))?))?;
        }
        let Some((arena, slices)) = made else {
            fail!(Internal, "a file that all ranks have mapped is not mapped");
        };
        let failed = slices.iter().position(|made| made.verdict == FAILED);
        let arena = match (failed, arena) {
            (None, Some(arena)) => arena,
            (failed, arena) => {
                arena.iter().for_each(|arena| self.registry.remove_arena(arena));
                let rank = failed.unwrap_or(group.rank());
                let partition = Partition { place: slices[rank].free, ..all[rank] };
                return Err(no_memory(group.members()[rank], &partition, partition.asked));
            }
        };
        let number = arena.number().into();
        let bases = PerRank::of(slices.iter().map(|made| made.base as usize));
        arena.complete(group, bases).inspect_err(|_| self.registry.remove_arena(&arena))?;
        self.registry.complete_arena();
        holdings.arenas.lock().push(arena);
        for (partition, made) in
            all.iter_mut().zip(slices).filter(|(partition, _)| partition.arena == NEED)
        {
            (partition.arena, partition.place) = (number, made.offset);
        }
        Ok(())
    }

    /// Allocates this rank's range in its region of a new arena, if it needs one. Returns `None` on
    /// all ranks if one could not map its file. The registry knows the region before the exchange,
    /// because other ranks can address it afterwards.
    #[expect(clippy::type_complexity, reason = "a pair that is taken apart at once")]
    fn fill(
        &self,
        group: &Arc<Group>,
        holdings: &GroupArenas,
        own: Result<Result<OwnRegion>>,
        (partition, lens): (&Partition, &PerRank<usize>),
        progress: &dyn Progress,
    ) -> Result<Option<(Option<Arc<Arena>>, Vec<Made>)>> {
        let number = holdings.next_arena();
        let mut mine = Made { verdict: FAILED, ..bytemuck::Zeroable::zeroed() };
        let mut arena = None;
        match own {
            Ok(Ok(own)) => {
                let stretch = match partition.arena {
                    NEED => own.partition(rounded(partition.asked as usize)).ok().flatten(),
                    _ => Some(0),
                };
                if let Some(stretch) = stretch {
                    (mine.verdict, mine.base, mine.offset) = (0, own.base() as u64, stretch as u64);
                    let numbered = (number, holdings.neighbours(group, &self.topology));
                    let (topology, policy) = (&self.topology, &self.policy);
                    let made = Arena::new(group, topology, policy, numbered, lens.clone(), own);
                    self.registry.add_arena(&made, group);
                    arena = Some(made);
                }
            }
            Ok(Err(error)) => log::debug!("memory of an arena: {error:#}"),
            Err(error) => {
                log::debug!("shared memory of an arena: {error:#}");
                mine.verdict = NEED;
            }
        }
        if mine.verdict == FAILED {
            mine.free = shm::room_in(&self.policy.shm_dir).unwrap_or(0) as u64;
        }
        let all = group.allgather(progress, &mine)?;
        if all.iter().any(|made| made.verdict == NEED) {
            arena.iter().for_each(|arena| self.registry.remove_arena(arena));
            return Ok(None);
        }
        Ok(Some((arena, all)))
    }

    fn publish(
        &self,
        group: &Arc<Group>,
        holdings: &GroupArenas,
        purpose: Purpose,
        found: Vec<Found>,
    ) -> Vec<Arc<Segment>> {
        let segments: Vec<Arc<Segment>> = found
            .into_iter()
            .map(|(places, arenas)| {
                arenas.iter().for_each(|arena| {
                    arena.live.fetch_add(1, Ordering::Relaxed);
                });
                let id = SegmentId { group: group.key(), number: holdings.next_segment() };
                let (group, arenas) = (group.clone(), arenas.into());
                Arc::new(Segment { id, group, purpose, arenas, places })
            })
            .collect();
        self.registry.add_segments(&segments);
        self.segments.lock().extend(segments.iter().map(|segment| (segment.id, segment.clone())));
        segments
    }
}

fn uncut(holdings: &GroupArenas, partition: &Partition) {
    if partition.asked == 0 || partition.arena >= REFUSED {
        return;
    }
    if let Ok(arena) = holdings.numbered(partition.arena) {
        arena.own.uncut(partition.place as usize, rounded(partition.asked as usize));
    }
}

fn gather_lengths(group: &Group, lens: &[usize], progress: &dyn Progress) -> Result<Vec<usize>> {
    let (ranks, count) = (group.size(), lens.len());
    let mut all = vec![0; ranks * count];
    for (part, some) in lens.chunks(TOGETHER).enumerate() {
        let mut mine = [0u64; TOGETHER];
        mine.iter_mut().zip(some).for_each(|(to, &len)| *to = len as u64);
        for (rank, theirs) in group.allgather(progress, &mine)?.iter().enumerate() {
            let at = rank * count + part * TOGETHER;
            let to = all[at..][..some.len()].iter_mut();
            to.zip(theirs).for_each(|(to, &len)| *to = len as usize);
        }
    }
    Ok(all)
}

fn alike(holdings: &GroupArenas, mine: &Partition, lens: &[usize]) -> Result<Vec<Found>> {
    let arena = if mine.asked == 0 { None } else { Some(holdings.numbered(mine.arena)?) };
    let mut next = mine.place as usize;
    let found = lens.iter().map(|&len| {
        let place = PartPlace::new(mine.arena as u32, next, len);
        next += rounded(len);
        let here = arena.clone().filter(|_| len > 0);
        (PerRank::Alike(place), here.into_iter().collect())
    });
    Ok(found.collect())
}

/// `others` has the lengths of all ranks if they differ and there are several segments.
fn unlike(
    holdings: &GroupArenas,
    all: &[Partition],
    lens: &[usize],
    others: Option<&[usize]>,
) -> Result<Vec<Found>> {
    let mut next: Vec<usize> = all.iter().map(|partition| partition.place as usize).collect();
    let mut found = Vec::with_capacity(lens.len());
    for n in 0..lens.len() {
        let len_at = |rank: usize| match others {
            Some(others) => others[rank * lens.len() + n],
            None if lens.len() == 1 => all[rank].asked as usize,
            None => lens[n],
        };
        let mut arenas: Vec<Arc<Arena>> = Vec::new();
        let mut places = Vec::with_capacity(all.len());
        for (rank, partition) in all.iter().enumerate() {
            let len = len_at(rank);
            places.push(PartPlace::new(partition.arena as u32, next[rank], len));
            next[rank] += rounded(len);
            if len > 0 && !arenas.iter().any(|arena| u64::from(arena.number()) == partition.arena) {
                arenas.push(holdings.numbered(partition.arena)?);
            }
        }
        found.push((PerRank::of(places.iter().copied()), arenas));
    }
    Ok(found)
}
