//! Mutexes: sets that are created collectively, with numbered locks on each rank. Each lock is
//! granted in first-come, first-served order.
//!
//! A set is a segment. **Native domain**: a mutex on rank `p` is a small state in `p`'s part of the
//! segment. The state consists of the holder, a queue of waiting ranks (linked through one word for
//! each rank), and a "granted" word for each rank. A rank on `p`'s node changes the state itself
//! under the stripe lock, and sleeps on its own granted word (futex). Any other rank sends a
//! request to `p`'s progress engine, and receives a message when it holds the mutex. The releasing
//! rank hands the mutex over to the first rank in the queue, by a wake-up or a message. Ranks of
//! one node that want the same mutex of another node form their own queue ([`super::node_queue`]).
//! The first rank sends the request to the owner, and the mutex passes from one rank to the next
//! without the owner, up to [`PASSES`] times. Then it returns to the owner, in the name of the rank
//! that requested it, and ranks of other nodes get their turn.
//!
//! **MPI domain**: a queue lock on the window. The state is one word, which holds the last rank of
//! the queue. A rank swaps itself in, notifies its predecessor by message, and receives a message
//! when the predecessor releases the mutex. No rank polls the window.
//!
//! Invariant: exactly one rank holds a mutex or is being notified that it does.

use super::node_queue::{NodeFile, NodeQueue, QueueEntry, Turn};
use crate::collective::{self, Kind};
use crate::error::{Result, fail};
use crate::group::Group;
use crate::memory::arena::Domain;
use crate::memory::registry::Hit;
use crate::memory::segment::{Purpose, Segment};
use crate::ops::Ops;
use crate::ops::traced::number_of;
use crate::path::mutex_service::state::{MutexState, state_bytes};
use crate::path::mutex_service::{MutexName, hand_over};
use crate::path::two_sided::wire::{RequestHeader, RequestKind};
use crate::path::{self, Capabilities, Path, RemotePlace, lock_stripe};
use crate::trace::{Call, PathTaken, SegmentKind};
use crate::wait::{self, Ends, Progress};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

mod traced;

/// A set of mutexes, created collectively.
#[derive(Debug)]
pub struct MutexSet {
    segment: Arc<Segment>,
    counts: Vec<usize>,
    places: Vec<OwnerMutexes>,
    held: Vec<AtomicU64>,
    live: AtomicBool,
}

/// The location of the mutexes of one rank of a set.
#[derive(Debug)]
struct OwnerMutexes {
    /// World rank of the owner.
    world: usize,
    /// Address of the first mutex in the address space of the owner.
    address: usize,
    /// Address of the owner's region in this rank, or null if it is not mapped, and the byte offset
    /// of the first mutex in it.
    region: *mut u8,
    offset: usize,
    access: Access,
    /// Queues of this node for the mutexes, if the node uses any.
    queues: Option<NodeFile>,
    /// Number of mutexes on all lower ranks of the group.
    before: usize,
}

// SAFETY: the pointer refers to the mapping of an arena, which the segment of the set keeps alive.
unsafe impl Send for OwnerMutexes {}
// SAFETY: the mapping is shared memory that is changed only through atomics, and the segment of the
// set keeps it alive.
unsafe impl Sync for OwnerMutexes {}

/// How a rank takes and releases the mutexes of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// By the state in shared memory, under its lock stripe.
    Direct,
    /// By requests to the owner.
    ByOwner,
    /// By swaps of a word in the MPI domain, through the transport of this path. The word names the
    /// last rank in the queue, and a message tells a rank its successor.
    ByWord(Path),
}

impl From<Access> for PathTaken {
    fn from(access: Access) -> PathTaken {
        match access {
            Access::Direct => PathTaken::Direct,
            Access::ByOwner => PathTaken::Message,
            Access::ByWord(path) => path.into(),
        }
    }
}

/// A mutex whose index and rank were checked.
struct FoundMutex<'a> {
    place: &'a OwnerMutexes,
    name: MutexName,
    /// The thread of this rank that holds the mutex ([`thread_number`]), or 0. Includes
    /// [`BY_QUEUE`] if the mutex came through the node's queue.
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

    /// Returns the queue of this node for the mutex, if the node uses one.
    fn queue(&self) -> Option<NodeQueue> {
        const KIND: u64 = 2;
        self.place.queues.map(|file| file.queue(self.place.world, self.address(), KIND))
    }

    /// Takes the stripe lock over the state on the direct path. Returns the state and the guard.
    fn state(&self) -> (MutexState, lock_stripe::LockStripeGuard) {
        let region = self.place.region;
        // SAFETY: the set keeps its segment alive, so the region and the state in it stay mapped.
        unsafe {
            let state = MutexState::at(region.wrapping_add(self.offset()));
            (state, lock_stripe::take(region, lock_stripe::of(self.offset())))
        }
    }
}

/// Maximum number of times that a mutex passes on within a node. Passing it on costs a wake-up.
/// Sending it through the owner to another node costs two messages to ranks that have slept.
const PASSES: usize = 15;

/// Flag in the number of a holding thread: the mutex came through the node's queue.
const BY_QUEUE: u64 = 1 << 63;

/// Returns a number above zero that identifies the calling thread.
fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static MINE: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    MINE.with(|n| *n)
}

impl MutexSet {
    /// Returns the number of mutexes of each rank of the group.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// Returns the group that created the set.
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

    /// Returns the mutexes that this rank holds.
    fn held(&self, ranks: usize) -> Vec<FoundMutex<'_>> {
        let all = self.places.iter().zip(&self.counts);
        let all = all.flat_map(|(place, &count)| (0..count).map(move |i| self.at(place, i, ranks)));
        all.filter(|found| found.held.load(Ordering::Relaxed) != 0).collect()
    }
}

impl Ops {
    /// Creates a set with `count` mutexes on this rank. Each rank passes its own count. Collective
    /// over the group.
    pub fn create_mutexes(&self, group: &Arc<Group>, count: usize) -> Result<Arc<MutexSet>> {
        self.create_mutexes_checked(group, Ok(count))
    }

    /// Performs [`Ops::create_mutexes`] for an interface that has already checked its arguments. If
    /// `count` is an error on one rank, all ranks return an error and none waits.
    pub fn create_mutexes_checked(
        &self,
        group: &Arc<Group>,
        count: Result<usize>,
    ) -> Result<Arc<MutexSet>> {
        collective::scope(Kind::CreateMutexes, 0, || self.make_mutexes(group, count))
    }

    fn make_mutexes(&self, group: &Arc<Group>, count: Result<usize>) -> Result<Arc<MutexSet>> {
        let each = state_bytes(self.size());
        // If a count is too large, the allocation fails on all ranks.
        let asked = count.map(|count| each.saturating_mul(count));
        let bytes = asked.as_ref().copied().unwrap_or(0);
        let segment = self.allocate_for(Purpose::Internal, group, asked)?;
        let base = segment.my_base();
        if !base.is_null() {
            // SAFETY: this rank's part of the new segment has `bytes` bytes, and no rank uses it
            // before the barrier.
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
                region: std::ptr::null_mut(),
                offset: 0,
                access: Access::Direct,
                queues: None,
                before,
            };
            if !part.is_empty() {
                let hit = self.memory.registry.find(place.world, part.address(), part.len())?;
                (place.region, place.offset) = (hit.region(), hit.offset);
                place.queues = NodeFile::of(self, hit.arena());
                place.access = self.mutex_access(&hit)?;
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

    /// Destroys a set. Collective over its group.
    ///
    /// # Errors
    /// Returns `State` if this rank still holds a mutex of the set, or if the set was destroyed
    /// before. Ranks without a held mutex succeed. The set is destroyed in any case.
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
        // The state of a later set may have the same addresses, so the queues must be free.
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

    /// Records that this thread is about to hold the mutex. With `wait`, waits while another thread
    /// of this rank holds it. Returns whether the claim succeeded.
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
                "mutex {} of rank {} is already held by the caller: waiting for it would deadlock",
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

    /// Takes a mutex. Waits in the queue while another rank holds it.
    ///
    /// # Errors
    /// Returns `Rank` or `Argument` if the mutex does not exist, and `State` if the set was
    /// destroyed or the calling thread already holds the mutex.
    pub fn lock(&self, set: &MutexSet, index: usize, rank: usize) -> Result<()> {
        let found = set.find(index, rank, self.size())?;
        self.observed(
            || found.call_info(Call::Lock),
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

    /// Returns how this rank accesses the mutexes of a region. If the transport of the MPI domain
    /// has no compare-and-swap, the native lock is used there too. This is safe, because only the
    /// lock accesses the state, so all accesses use the same mechanism.
    fn mutex_access(&self, hit: &Hit<'_>) -> Result<Access> {
        if hit.arena().domain() == Domain::Mpi {
            let path = path::for_atomics(hit.arena(), hit.region());
            let capabilities = self.transport(path)?.capabilities();
            if capabilities.contains(Capabilities::COMPARE_AND_SWAP) {
                return Ok(Access::ByWord(path));
            }
        }
        Ok(if hit.region().is_null() { Access::ByOwner } else { Access::Direct })
    }

    /// Returns the location of the word of a mutex, for [`Access::ByWord`].
    fn word_place(&self, found: &FoundMutex<'_>) -> Result<RemotePlace> {
        let world = found.place.world;
        let hit = self.memory.registry.find(world, found.address(), 8)?;
        Ok(RemotePlace {
            arena: hit.arena().clone(),
            world,
            rank: hit.group_rank(),
            offset: hit.offset,
            address: found.address(),
        })
    }

    #[inline]
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
        match found.place.access {
            Access::Direct => {
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
            Access::ByOwner => {
                self.may_wait()?;
                let Some(queue) = found.queue() else { return ask() };
                let turn = match queue.enter(0) {
                    QueueEntry::Alone => return ask(),
                    QueueEntry::Leads => Turn::Leads,
                    QueueEntry::Waits => queue.wait(self, found.awaited(), &what)?.0,
                };
                if turn != Turn::Has {
                    ask().inspect_err(|_| queue.leave())?;
                    queue.taken(self.rank());
                }
                found.held.fetch_or(BY_QUEUE, Ordering::Relaxed);
                Ok(())
            }
            Access::ByWord(path) => {
                let me = self.rank() as i64 + 1;
                let swap = super::Rmw::SwapLong(me);
                let last = self.transport(path)?.rmw(self, &self.word_place(found)?, swap)?;
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

    /// Takes a mutex if it is free. Returns whether the caller holds it now. Never waits for
    /// another rank to release it.
    pub fn try_lock(&self, set: &MutexSet, index: usize, rank: usize) -> Result<bool> {
        let found = set.find(index, rank, self.size())?;
        self.observed(|| found.call_info(Call::Lock), || self.try_take(&found))
    }

    fn try_take(&self, found: &FoundMutex<'_>) -> Result<bool> {
        if !self.claim(found, false)? {
            return Ok(false);
        }
        let got = self.try_acquire(found);
        if !matches!(got, Ok(true)) {
            found.held.store(0, Ordering::Release);
            // The holder may need this rank's progress before it can release the mutex.
            self.poll()?;
        }
        got
    }

    fn try_acquire(&self, found: &FoundMutex<'_>) -> Result<bool> {
        match found.place.access {
            Access::Direct => {
                let (state, _lock) = found.state();
                Ok(state.acquire(self.rank(), false))
            }
            Access::ByOwner => {
                let mut header = RequestHeader::new(RequestKind::TryLock, found.address());
                header.operand = found.name.operand();
                Ok(self.two_sided()?.ask(self, found.place.world, header)? == 1)
            }
            Access::ByWord(path) => Ok(self.swap_if(path, found, 0, self.rank() as i64 + 1)? == 0),
        }
    }

    /// Performs a compare-and-swap on the word of a mutex.
    fn swap_if(&self, path: Path, found: &FoundMutex<'_>, expected: i64, new: i64) -> Result<i64> {
        self.transport(path)?.compare_and_swap(&self.word_place(found)?, expected, new)
    }

    /// Releases a mutex. All data transfers that this rank has issued are complete before another
    /// rank can take the mutex.
    ///
    /// # Errors
    /// Returns `Rank` or `Argument` if the mutex does not exist, and `State` if this rank does not
    /// hold it.
    pub fn unlock(&self, set: &MutexSet, index: usize, rank: usize) -> Result<()> {
        let found = set.find(index, rank, self.size())?;
        if found.held.load(Ordering::Relaxed) == 0 {
            fail!(State, "mutex {index} of rank {rank} is not held by this rank");
        }
        self.observed(
            || found.call_info(Call::Unlock),
            || {
                self.fence_data()?;
                let released = self.release_mutex(&found);
                found.held.store(0, Ordering::Release);
                released
            },
        )
    }

    #[inline]
    fn release_mutex(&self, found: &FoundMutex<'_>) -> Result<()> {
        let name = found.name;
        match found.place.access {
            Access::Direct => {
                let (state, lock) = found.state();
                let next = state.release(self.rank());
                drop(lock);
                match next {
                    Ok(None) => Ok(()),
                    next => hand_over(self, state, name, next, found.place.world),
                }
            }
            Access::ByOwner => {
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
            Access::ByWord(path) => {
                let me = self.rank() as i64 + 1;
                if self.swap_if(path, found, me, 0)? == me {
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
