//! Mutexes: collectively made sets, numbered locks on each rank, first come
//! first served.
//!
//! A set is a segment. **Native domain**: a mutex on rank `p` is a small state in
//! `p`'s piece, namely its holder, a queue of waiting ranks (linked through
//! one word for each rank), and one word for each rank that says "granted". A
//! rank on `p`'s node changes the state itself under the slice's lock and
//! sleeps on its own granted word (futex); any other rank asks `p`'s progress
//! engine and gets a message when the mutex is its own. The rank that releases hands
//! over to the first in the queue, by whichever of the two ways that rank waits. Ranks of one
//! node that want the same mutex of another node form a queue of their own
//! ([`super::node_queue`]): the first asks the owner, and the mutex passes from one to the next
//! without the owner, up to [`PASSES`] times; then it goes back, in the name of the rank that
//! asked, and ranks of other nodes have their turn.
//!
//! **MPI domain**: a queue lock on the window. The state is one word, the rank
//! that came last; a rank swaps itself in, tells its predecessor by message,
//! and gets a message when that one releases. No rank polls the window.
//!
//! Invariant: exactly one rank holds a mutex or is being told that it does.

use super::node_queue::{Entry, NodeFile, NodeQueue, Told};
use crate::collective::{self, Kind};
use crate::error::{Result, fail};
use crate::group::Group;
use crate::memory::segment::{Purpose, Segment};
use crate::mpi::Flavour;
use crate::ops::Ops;
use crate::ops::told::number_of;
use crate::path::two_sided::wire::{RequestHeader, RequestKind};
use crate::path::{self, Path, rma, stripe};
use crate::trace::{Call, SegmentKind};
use crate::wait::{self, Ends, Progress};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serve::{MutexName, hand_over};
use state::{MutexState, state_bytes};

pub(crate) mod serve;
mod state;
mod told;

/// A collectively made set of mutexes.
#[derive(Debug)]
pub struct MutexSet {
    segment: Arc<Segment>,
    counts: Vec<usize>,
    places: Vec<OwnerMutexes>,
    held: Vec<AtomicU64>,
    live: AtomicBool,
}

/// Where the mutexes of one rank of a set are.
#[derive(Debug)]
struct OwnerMutexes {
    /// World rank of the owner.
    world: usize,
    /// Address of the first in the owner's space.
    address: usize,
    /// The owner's slice here, null where it is not mapped, and the first
    /// mutex's offset in it.
    slice: *mut u8,
    offset: usize,
    path: Path,
    /// Where ranks of this node queue for the mutexes, if they do.
    queues: Option<NodeFile>,
    /// Number of mutexes on the ranks before.
    before: usize,
}

// SAFETY: the pointer names the mapping of a slab that the set's segment keeps.
unsafe impl Send for OwnerMutexes {}
// SAFETY: as above.
unsafe impl Sync for OwnerMutexes {}

/// A mutex that was found and checked.
struct FoundMutex<'a> {
    place: &'a OwnerMutexes,
    name: MutexName,
    /// Which thread of this rank holds it: see [`thread_number`]; 0 is none. [`BY_QUEUE`] where
    /// it came by the node's queue.
    held: &'a AtomicU64,
    at: usize,
}

impl FoundMutex<'_> {
    fn address(&self) -> usize {
        self.place.address + self.at
    }

    fn offset(&self) -> usize {
        self.place.offset + self.at
    }

    /// Where ranks of this node queue for the mutex, if they do.
    fn queue(&self) -> Option<NodeQueue> {
        const KIND: u64 = 2;
        self.place.queues.map(|file| file.queue(self.place.world, self.address(), KIND))
    }

    /// The state and the lock over it, on the direct path.
    fn state(&self) -> (MutexState, stripe::StripeGuard) {
        let slice = self.place.slice;
        // SAFETY: the set keeps its segment, and so the slice and the state in
        // it, mapped.
        unsafe {
            let state = MutexState::at(slice.wrapping_add(self.offset()));
            (state, stripe::take(slice, stripe::of(self.offset())))
        }
    }
}

/// How often a mutex passes on within a node: a pass costs a wake-up, and its way by the owner to
/// another node two messages to ranks that have slept.
const PASSES: usize = 15;

/// Added to the number of a thread that holds a mutex which came by its node's queue.
const BY_QUEUE: u64 = 1 << 63;

/// A number for the calling thread, above zero.
fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static MINE: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    MINE.with(|n| *n)
}

impl MutexSet {
    /// How many mutexes each rank of the group has.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// The group that made the set.
    pub fn group(&self) -> &Arc<Group> {
        self.segment.group()
    }

    #[inline]
    fn find(&self, index: usize, rank: usize, ranks: usize) -> Result<FoundMutex<'_>> {
        if !self.live.load(Ordering::Acquire) {
            fail!(State, "the mutexes were destroyed");
        }
        let Some(place) = self.places.get(rank) else {
            fail!(Rank, "rank {rank} is outside the group of {} ranks", self.places.len());
        };
        if index >= self.counts[rank] {
            fail!(
                Argument,
                "mutex {index} of rank {rank}, which has {} mutexes",
                self.counts[rank]
            );
        }
        Ok(self.at(place, index, ranks))
    }

    #[inline]
    fn at<'a>(&'a self, place: &'a OwnerMutexes, index: usize, ranks: usize) -> FoundMutex<'a> {
        let id = self.segment.id();
        let owner = place.world as u32;
        FoundMutex {
            place,
            name: MutexName { group: id.group, set: id.number, owner, index: index as u32 },
            held: &self.held[place.before + index],
            at: index * state_bytes(ranks),
        }
    }

    /// The mutexes that this rank holds.
    fn held(&self, ranks: usize) -> Vec<FoundMutex<'_>> {
        let all = self.places.iter().zip(&self.counts);
        let all = all.flat_map(|(place, &count)| (0..count).map(move |i| self.at(place, i, ranks)));
        all.filter(|found| found.held.load(Ordering::Relaxed) != 0).collect()
    }
}

impl Ops {
    /// Makes `count` mutexes on this rank, and as many as the others ask on
    /// theirs. Collective over the group.
    pub fn create_mutexes(&self, group: &Arc<Group>, count: usize) -> Result<Arc<MutexSet>> {
        self.create_mutexes_checked(group, Ok(count))
    }

    /// As [`Ops::create_mutexes`], for a face that has checked its arguments:
    /// where they are bad on one rank, all ranks get an error, and none waits.
    pub fn create_mutexes_checked(
        &self,
        group: &Arc<Group>,
        count: Result<usize>,
    ) -> Result<Arc<MutexSet>> {
        collective::scope(Kind::CreateMutexes, 0, || self.make_mutexes(group, count))
    }

    fn make_mutexes(&self, group: &Arc<Group>, count: Result<usize>) -> Result<Arc<MutexSet>> {
        let each = state_bytes(self.size());
        // A count that is too large is refused by the allocation, on all ranks.
        let asked = count.map(|count| each.saturating_mul(count));
        let bytes = asked.as_ref().copied().unwrap_or(0);
        let segment = self.allocate_for(Purpose::Internal, group, asked)?;
        let base = segment.my_base();
        if !base.is_null() {
            // SAFETY: our own fresh piece, which no rank uses before the barrier.
            unsafe { std::ptr::write_bytes(base, 0, bytes) };
        }
        self.barrier_of(group)?;
        let counts: Vec<usize> = segment.parts().map(|p| p.len() / each).collect();
        let mut before = 0;
        let mut places = Vec::new();
        for (rank, part) in segment.parts().enumerate() {
            let mut place = OwnerMutexes {
                world: group.members()[rank],
                address: part.address(),
                slice: std::ptr::null_mut(),
                offset: 0,
                path: Path::Direct,
                queues: None,
                before,
            };
            if !part.is_empty() {
                let hit = self.memory.registry.find(place.world, part.address(), part.len())?;
                (place.slice, place.offset) = (hit.slice(), hit.offset);
                place.queues = NodeFile::of(self, hit.slab());
                place.path = match path::for_atomics(hit.slab(), hit.slice()) {
                    Path::Rma if windows_lock() => Path::Rma,
                    _ if hit.slice().is_null() => Path::Message,
                    _ => Path::Direct,
                };
            }
            places.push(place);
            before += counts[rank];
        }
        let held = (0..before).map(|_| AtomicU64::new(0)).collect();
        let mine = counts.get(group.rank()).copied().unwrap_or(0) as u64;
        let (number, ranks) = (number_of(segment.id()), group.size() as u64);
        self.observer().made(number, mine, ranks, SegmentKind::Mutexes);
        Ok(Arc::new(MutexSet { segment, counts, places, held, live: AtomicBool::new(true) }))
    }

    /// Unmakes a set. Collective over its group.
    ///
    /// # Errors
    /// `State`, on the ranks concerned, where this rank still holds a mutex of
    /// the set or it was unmade before; the set is then unmade all the same.
    pub fn destroy_mutexes(&self, set: &MutexSet) -> Result<()> {
        if !set.live.swap(false, Ordering::AcqRel) {
            fail!(State, "the mutexes were destroyed already");
        }
        let number = set.segment.id().number;
        collective::scope(Kind::FreeMutexes, number, || self.unmake_mutexes(set))
    }

    fn unmake_mutexes(&self, set: &MutexSet) -> Result<()> {
        let held = set.held(self.size());
        self.barrier_of(set.group())?;
        // A later set may have its state at the same addresses.
        for found in held.iter().filter(|f| f.held.load(Ordering::Relaxed) & BY_QUEUE != 0) {
            if let Some(queue) = found.queue() {
                queue.leave();
            }
        }
        self.release(set.segment.clone())?;
        let held = held.len();
        if held > 0 {
            fail!(State, "{held} mutexes of the set were destroyed while this rank held them");
        }
        Ok(())
    }

    /// Notes that this thread is about to hold the mutex; another thread of this
    /// rank is waited for.
    fn claim(&self, found: &FoundMutex<'_>, wait: bool) -> Result<bool> {
        let me = thread_number();
        let claim = || match found.held.compare_exchange(
            0,
            me,
            Ordering::Acquire,
            Ordering::Relaxed,
        ) {
            Ok(_) => Ok(true),
            Err(holder) if holder & !BY_QUEUE == me && wait => fail!(
                State,
                "mutex {} of rank {} is held by the caller already: waiting for it would never end",
                found.name.index,
                found.name.owner
            ),
            Err(_) => Ok(false),
        };
        let mut got = claim()?;
        if !got && wait {
            let name = found.name;
            let what =
                || format!("another thread to release mutex {} of rank {}", name.index, name.owner);
            wait::until(self, found.awaited(), &what, || {
                got = claim()?;
                Ok(got)
            })?;
        }
        Ok(got)
    }

    /// Takes a mutex; waits in turn while another rank holds it.
    ///
    /// # Errors
    /// `Rank`, `Argument` (no such mutex), `State` (destroyed, or held by the
    /// caller already).
    pub fn lock(&self, set: &MutexSet, index: usize, rank: usize) -> Result<()> {
        let found = set.find(index, rank, self.size())?;
        self.observed(
            || found.about(Call::Lock),
            || {
                self.claim(&found, true)?;
                let taken = self.acquire(&found);
                if taken.is_err() {
                    found.held.store(0, Ordering::Release);
                }
                taken
            },
        )
    }

    /// Where the window path finds the state.
    fn window_place(&self, found: &FoundMutex<'_>) -> Result<rma::RmaTarget> {
        let world = found.place.world;
        let hit = self.memory.registry.find(world, found.address(), 8)?;
        Ok(rma::RmaTarget {
            slab: hit.slab().clone(),
            world,
            rank: hit.group_rank(),
            offset: hit.offset,
        })
    }

    fn acquire(&self, found: &FoundMutex<'_>) -> Result<()> {
        let name = found.name;
        let what = || format!("mutex {} of rank {}", name.index, name.owner);
        let granted =
            || wait::until(self, found.awaited(), &what, || Ok(self.mutexes.take_grant(name)));
        let ask = || {
            let mut header = RequestHeader::new(RequestKind::Lock, found.address());
            header.operand = name.operand();
            let owner = found.place.world;
            let sent = self.two_sided()?.command(self, owner, header)?;
            granted()?;
            self.peer(owner).answered(sent);
            Ok(())
        };
        match found.place.path {
            Path::Direct => {
                let me = self.rank();
                let (state, lock) = found.state();
                if state.acquire(me, true) {
                    return Ok(());
                }
                drop(lock);
                let word = state.granted(me);
                let what = || match state.holder() {
                    Some(holder) => format!("{}, which rank {holder} holds", what()),
                    None => what(),
                };
                wait::while_equal(self, found.awaited(), &what, word, 0, None, Ends::Woken)
            }
            Path::Message => {
                self.may_wait()?;
                let Some(queue) = found.queue() else { return ask() };
                let told = match queue.enter(0) {
                    Entry::Alone => return ask(),
                    Entry::Leads => Told::Leads,
                    Entry::Waits => queue.wait(self, found.awaited(), &what)?.0,
                };
                if told != Told::Has {
                    ask().inspect_err(|_| queue.leave())?;
                    queue.taken(self.rank());
                }
                found.held.fetch_or(BY_QUEUE, Ordering::Relaxed);
                Ok(())
            }
            Path::Rma => {
                let me = self.rank() as i64 + 1;
                let last = rma::rmw(self, &self.window_place(found)?, super::Rmw::SwapLong(me))?;
                if last == 0 {
                    return Ok(());
                }
                let mut header = RequestHeader::new(RequestKind::LockSuccessor, 0);
                header.operand = name.operand();
                self.two_sided()?.notice(last as usize - 1, header)?;
                granted()
            }
        }
    }

    /// Takes a mutex if it is free; never waits for another rank.
    pub fn try_lock(&self, set: &MutexSet, index: usize, rank: usize) -> Result<bool> {
        let found = set.find(index, rank, self.size())?;
        self.observed(|| found.about(Call::Lock), || self.try_take(&found))
    }

    fn try_take(&self, found: &FoundMutex<'_>) -> Result<bool> {
        if !self.claim(found, false)? {
            return Ok(false);
        }
        let got = self.try_acquire(found);
        if !matches!(got, Ok(true)) {
            found.held.store(0, Ordering::Release);
            // Its holder may need this rank to release it.
            self.poll()?;
        }
        got
    }

    fn try_acquire(&self, found: &FoundMutex<'_>) -> Result<bool> {
        match found.place.path {
            Path::Direct => {
                let (state, _lock) = found.state();
                Ok(state.acquire(self.rank(), false))
            }
            Path::Message => {
                let mut header = RequestHeader::new(RequestKind::TryLock, found.address());
                header.operand = found.name.operand();
                Ok(self.two_sided()?.ask(self, found.place.world, header)? == 1)
            }
            Path::Rma => Ok(self.swap_if(found, 0, self.rank() as i64 + 1)? == 0),
        }
    }

    /// Compare-and-swap of a mutex's word in a window.
    fn swap_if(&self, found: &FoundMutex<'_>, expected: i64, new: i64) -> Result<i64> {
        let place = self.window_place(found)?;
        let window = place.slab.window().expect("the path was chosen because there is a window");
        // SAFETY: the state's first word lies in the owner's slice.
        unsafe { window.compare_and_swap(expected, new, place.rank, place.offset) }
    }

    /// Releases a mutex. Everything that this rank has issued is complete before
    /// another rank can take it.
    ///
    /// # Errors
    /// `Rank`, `Argument`, or `State` where this rank does not hold the mutex.
    pub fn unlock(&self, set: &MutexSet, index: usize, rank: usize) -> Result<()> {
        let found = set.find(index, rank, self.size())?;
        if found.held.load(Ordering::Relaxed) == 0 {
            fail!(State, "mutex {index} of rank {rank} is not held by this rank");
        }
        self.observed(
            || found.about(Call::Unlock),
            || {
                self.fence_data()?;
                let released = self.release_mutex(&found);
                found.held.store(0, Ordering::Release);
                released
            },
        )
    }

    fn release_mutex(&self, found: &FoundMutex<'_>) -> Result<()> {
        let name = found.name;
        match found.place.path {
            Path::Direct => {
                let (state, lock) = found.state();
                let next = state.release(self.rank());
                drop(lock);
                match next {
                    Ok(None) => Ok(()),
                    next => hand_over(self, state, name, next, found.place.world),
                }
            }
            Path::Message => {
                let by_queue = found.held.load(Ordering::Relaxed) & BY_QUEUE != 0;
                let queue = found.queue().filter(|_| by_queue);
                let holder = match &queue {
                    Some(queue) => queue.pass_on(PASSES),
                    None => Some(self.rank()),
                };
                let Some(holder) = holder else { return Ok(()) };
                let mut header = RequestHeader::new(RequestKind::Unlock, found.address());
                header.operand = name.operand();
                header.tag = holder as u32;
                self.two_sided()?.command(self, found.place.world, header)?;
                if let Some(queue) = queue {
                    queue.leave();
                }
                Ok(())
            }
            Path::Rma => {
                let me = self.rank() as i64 + 1;
                if self.swap_if(found, me, 0)? == me {
                    return Ok(());
                }
                let mut next = None;
                let what =
                    || format!("the successor in mutex {} of rank {}", name.index, name.owner);
                wait::until(self, found.awaited(), &what, || {
                    next = self.mutexes.successors.lock().remove(&name);
                    Ok(next.is_some())
                })?;
                let mut header = RequestHeader::new(RequestKind::LockGrant, 0);
                header.operand = name.operand();
                self.two_sided()?.notice(next.expect("just found"), header)
            }
        }
    }
}

/// Whether the queue lock on windows can be used. Open MPI 4.1 dies in `MPI_Compare_and_swap`
/// (tests/mpi-bugs/compare_and_swap.c): there the owner serves its mutexes by message, also where
/// MPI is the atomicity domain. Nothing but the lock itself touches the state, so one will do.
fn windows_lock() -> bool {
    Flavour::built() != Flavour::OpenMpi
}
