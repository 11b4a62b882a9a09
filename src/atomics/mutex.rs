//! Mutexes: collectively made sets, numbered locks on each rank, first come
//! first served.
//!
//! A set is a segment. **Native domain**: a mutex on rank `p` is a small state in
//! `p`'s piece, namely its holder, a queue of waiting ranks (linked through
//! one word for each rank), and one word for each rank that says "granted". A
//! rank on `p`'s node changes the state itself under the slice's lock and
//! sleeps on its own granted word (futex); any other rank asks `p`'s progress
//! engine and gets a message when the mutex is its own. Whoever releases hands
//! over to the first in the queue, by whichever of the two ways that rank waits.
//!
//! **MPI domain**: a queue lock on the window. The state is one word, the rank
//! that came last; a rank swaps itself in, tells its predecessor by message,
//! and is told by message when that one releases. Nobody polls the window.
//!
//! Invariant: exactly one rank holds a mutex or is being told that it does.

use crate::error::{Result, fail};
use crate::group::Group;
use crate::memory::segment::Segment;
use crate::mpi::Flavour;
use crate::path::message::wire::{Header, Kind};
use crate::path::{self, Path, rma};
use crate::runtime::Engine;
use crate::{futex, wait};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::stripe;

/// A collectively made set of mutexes.
#[derive(Debug)]
pub struct MutexSet {
    segment: Arc<Segment>,
    counts: Vec<usize>,
    places: Vec<Place>,
    held: Vec<AtomicU64>,
    live: AtomicBool,
}

/// A mutex, as messages name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Name {
    group: u64,
    set: u64,
    owner: u32,
    index: u32,
}

impl Name {
    fn operand(self) -> [u64; 3] {
        [self.group, self.set, u64::from(self.owner) << 32 | u64::from(self.index)]
    }

    fn of(header: &Header) -> Name {
        let [group, set, both] = header.operand;
        Name { group, set, owner: (both >> 32) as u32, index: both as u32 }
    }
}

/// What this rank knows of mutexes beyond their state in memory.
#[derive(Debug, Default)]
pub struct Mutexes {
    grants: Mutex<HashMap<Name, u32>>,
    successors: Mutex<HashMap<Name, usize>>,
}

impl Mutexes {
    pub(crate) fn granted(&self, header: &Header) {
        *self.grants.lock().entry(Name::of(header)).or_default() += 1;
    }

    pub(crate) fn next_is(&self, header: &Header, source: usize) {
        self.successors.lock().insert(Name::of(header), source);
    }

    fn take_grant(&self, name: Name) -> bool {
        let mut grants = self.grants.lock();
        match grants.get_mut(&name) {
            Some(n) => {
                *n -= 1;
                if *n == 0 {
                    grants.remove(&name);
                }
                true
            }
            None => false,
        }
    }
}

/// The state of a native mutex: `holder`, `head`, `tail` (world rank + 1, 0 is
/// none), then two words for each rank of the world: next in the queue, granted.
#[derive(Debug, Clone, Copy)]
struct State {
    words: *mut AtomicU32,
}

const FIXED: usize = 4;

/// Bytes of one mutex's state.
fn state_bytes(ranks: usize) -> usize {
    ((FIXED + 2 * ranks) * 4).next_multiple_of(64)
}

impl State {
    /// # Safety
    /// `base` must be the mapped state of a mutex.
    unsafe fn at(base: *mut u8) -> State {
        State { words: base.cast() }
    }

    fn word(&self, i: usize) -> &AtomicU32 {
        // SAFETY: the state holds FIXED + 2 * ranks aligned words, and callers
        // pass ranks of the world.
        unsafe { &*self.words.add(i) }
    }

    fn granted(&self, rank: usize) -> &AtomicU32 {
        self.word(FIXED + 2 * rank + 1)
    }

    fn next(&self, rank: usize) -> &AtomicU32 {
        self.word(FIXED + 2 * rank)
    }

    /// Takes the mutex for `rank`, or puts it into the queue. Under the lock.
    fn acquire(&self, rank: usize, queue: bool) -> bool {
        let (holder, head, tail) = (self.word(0), self.word(1), self.word(2));
        let me = rank as u32 + 1;
        if holder.load(Ordering::Relaxed) == 0 {
            holder.store(me, Ordering::Relaxed);
            return true;
        }
        if queue {
            self.next(rank).store(0, Ordering::Relaxed);
            self.granted(rank).store(0, Ordering::Relaxed);
            match tail.swap(me, Ordering::Relaxed) {
                0 => head.store(me, Ordering::Relaxed),
                last => self.next(last as usize - 1).store(me, Ordering::Relaxed),
            }
        }
        false
    }

    /// Releases the mutex; the first in the queue holds it from now on and is
    /// to be told. Under the lock.
    fn release(&self, rank: usize) -> std::result::Result<Option<usize>, u32> {
        let (holder, head, tail) = (self.word(0), self.word(1), self.word(2));
        let found = holder.load(Ordering::Relaxed);
        if found != rank as u32 + 1 {
            return Err(found);
        }
        let first = head.load(Ordering::Relaxed);
        holder.store(first, Ordering::Relaxed);
        if first == 0 {
            return Ok(None);
        }
        let first = first as usize - 1;
        let second = self.next(first).load(Ordering::Relaxed);
        head.store(second, Ordering::Relaxed);
        if second == 0 {
            tail.store(0, Ordering::Relaxed);
        }
        Ok(Some(first))
    }
}

/// Where the mutexes of one rank of a set are.
#[derive(Debug)]
struct Place {
    /// World rank of the owner.
    world: usize,
    /// Address of the first in the owner's space.
    address: usize,
    /// The owner's slice here, null where it is not mapped, and the first
    /// mutex's offset in it.
    slice: *mut u8,
    offset: usize,
    path: Path,
    /// Number of mutexes on the ranks before.
    before: usize,
}

// SAFETY: the pointer names the mapping of a slab that the set's segment keeps.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

/// A mutex that was found and checked.
struct Found<'a> {
    place: &'a Place,
    name: Name,
    /// Which thread of this rank holds it: see [`thread_number`]; 0 is none.
    held: &'a AtomicU64,
    at: usize,
}

impl Found<'_> {
    fn address(&self) -> usize {
        self.place.address + self.at
    }

    fn offset(&self) -> usize {
        self.place.offset + self.at
    }

    /// The state and the lock over it, on the direct path.
    fn state(&self) -> (State, stripe::Held) {
        let slice = self.place.slice;
        // SAFETY: the set keeps its segment, and so the slice and the state in
        // it, mapped.
        unsafe {
            let state = State::at(slice.wrapping_add(self.offset()));
            (state, stripe::take(slice, stripe::of(self.offset())))
        }
    }
}

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
    fn find(&self, index: usize, rank: usize, ranks: usize) -> Result<Found<'_>> {
        if !self.live.load(Ordering::Acquire) {
            fail!(State, "the mutexes were destroyed");
        }
        let Some(place) = self.places.get(rank) else {
            fail!(Rank, "rank {rank} is outside the group of {} ranks", self.places.len());
        };
        if index >= self.counts[rank] {
            fail!(Argument, "mutex {index} of rank {rank}, which has {} mutexes", self.counts[rank]);
        }
        let id = self.segment.id();
        let owner = place.world as u32;
        Ok(Found {
            place,
            name: Name { group: id.group, set: id.number, owner, index: index as u32 },
            held: &self.held[place.before + index],
            at: index * state_bytes(ranks),
        })
    }
}

impl Engine {
    /// Makes `count` mutexes on this rank, and as many as the others ask on
    /// theirs. Collective over the group.
    pub fn create_mutexes(&self, group: &Arc<Group>, count: usize) -> Result<Arc<MutexSet>> {
        let each = state_bytes(self.size());
        let bytes = match each.checked_mul(count) {
            Some(bytes) if count <= u32::MAX as usize => bytes,
            _ => fail!(Argument, "{count} mutexes on one rank are too many"),
        };
        let segment = self.allocate(group, bytes)?;
        let base = segment.my_base();
        if !base.is_null() {
            // SAFETY: our own fresh piece, which nobody uses before the barrier.
            unsafe { std::ptr::write_bytes(base, 0, bytes) };
        }
        self.barrier_of(group)?;
        let counts: Vec<usize> = segment.parts().iter().map(|p| p.len() / each).collect();
        let mut before = 0;
        let mut places = Vec::new();
        for (rank, part) in segment.parts().iter().enumerate() {
            let mut place = Place {
                world: group.members()[rank],
                address: part.address(),
                slice: std::ptr::null_mut(),
                offset: 0,
                path: Path::Direct,
                before,
            };
            if !part.is_empty() {
                let hit = self.memory.registry.find(place.world, part.address(), part.len())?;
                (place.slice, place.offset) = (hit.slice(), hit.offset);
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
        let held = set.held.iter().filter(|h| h.load(Ordering::Relaxed) != 0).count();
        self.barrier_of(set.group())?;
        self.release(set.segment.clone())?;
        if held > 0 {
            fail!(State, "{held} mutexes of the set were destroyed while this rank held them");
        }
        Ok(())
    }

    /// Notes that this thread is about to hold the mutex; another thread of this
    /// rank is waited for.
    fn claim(&self, found: &Found<'_>, wait: bool) -> Result<bool> {
        let me = thread_number();
        let claim = || match found.held.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Ok(true),
            Err(holder) if holder == me && wait => fail!(
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
            wait::until(self, &what, || {
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
        self.claim(&found, true)?;
        let taken = self.acquire(&found);
        if taken.is_err() {
            found.held.store(0, Ordering::Release);
        }
        taken
    }

    /// Where the window path finds the state.
    fn window_place(&self, found: &Found<'_>) -> Result<rma::Target> {
        let world = found.place.world;
        let hit = self.memory.registry.find(world, found.address(), 8)?;
        Ok(rma::Target {
            slab: hit.slab().clone(),
            world,
            rank: hit.group_rank(),
            offset: hit.offset,
        })
    }

    fn acquire(&self, found: &Found<'_>) -> Result<()> {
        let name = found.name;
        let what = || format!("mutex {} of rank {}", name.index, name.owner);
        let granted = || wait::until(self, &what, || Ok(self.mutexes.take_grant(name)));
        match found.place.path {
            Path::Direct => {
                let me = self.rank();
                let (state, lock) = found.state();
                if state.acquire(me, true) {
                    return Ok(());
                }
                drop(lock);
                let word = state.granted(me);
                wait::while_equal(self, &what, word, 0, None)
            }
            Path::Message => {
                let mut header = Header::new(Kind::Lock, found.address());
                header.operand = name.operand();
                self.messenger()?.command(self, found.place.world, header)?;
                granted()
            }
            Path::Rma => {
                let me = self.rank() as i64 + 1;
                let last = rma::rmw(self, &self.window_place(found)?, super::Rmw::SwapLong(me))?;
                if last == 0 {
                    return Ok(());
                }
                let mut header = Header::new(Kind::Next, 0);
                header.operand = name.operand();
                self.messenger()?.notice(last as usize - 1, header)?;
                granted()
            }
        }
    }

    /// Takes a mutex if it is free; never waits for another rank.
    pub fn try_lock(&self, set: &MutexSet, index: usize, rank: usize) -> Result<bool> {
        let found = set.find(index, rank, self.size())?;
        if !self.claim(&found, false)? {
            return Ok(false);
        }
        let got = self.try_acquire(&found);
        if !matches!(got, Ok(true)) {
            found.held.store(0, Ordering::Release);
        }
        got
    }

    fn try_acquire(&self, found: &Found<'_>) -> Result<bool> {
        match found.place.path {
            Path::Direct => {
                let (state, _lock) = found.state();
                Ok(state.acquire(self.rank(), false))
            }
            Path::Message => {
                let mut header = Header::new(Kind::TryLock, found.address());
                header.operand = found.name.operand();
                Ok(self.messenger()?.ask(self, found.place.world, header)? == 1)
            }
            Path::Rma => Ok(self.swap_if(found, 0, self.rank() as i64 + 1)? == 0),
        }
    }

    /// Compare-and-swap of a mutex's word in a window.
    fn swap_if(&self, found: &Found<'_>, expected: i64, new: i64) -> Result<i64> {
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
        self.fence_all()?;
        let released = self.release_mutex(&found);
        found.held.store(0, Ordering::Release);
        released
    }

    fn release_mutex(&self, found: &Found<'_>) -> Result<()> {
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
                let mut header = Header::new(Kind::Unlock, found.address());
                header.operand = name.operand();
                self.messenger()?.command(self, found.place.world, header)?;
                Ok(())
            }
            Path::Rma => {
                let me = self.rank() as i64 + 1;
                if self.swap_if(found, me, 0)? == me {
                    return Ok(());
                }
                let mut next = None;
                let what = || format!("the successor in mutex {} of rank {}", name.index, name.owner);
                wait::until(self, &what, || {
                    next = self.mutexes.successors.lock().remove(&name);
                    Ok(next.is_some())
                })?;
                let mut header = Header::new(Kind::Grant, 0);
                header.operand = name.operand();
                self.messenger()?.notice(next.expect("just found"), header)
            }
        }
    }
}

/// Whether the queue lock on windows can be used. Open MPI 4.1 dies in
/// `MPI_Compare_and_swap` (tests/mpi-bugs/compare_and_swap.c): there the owner
/// serves its mutexes by message, also where MPI is the atomicity domain. Nothing
/// but the lock itself touches the state, so that one mechanism is enough.
fn windows_lock() -> bool {
    Flavour::built() != Flavour::OpenMpi
}

/// Tells the next holder.
fn hand_over(
    engine: &Engine,
    state: State,
    name: Name,
    next: std::result::Result<Option<usize>, u32>,
    owner: usize,
) -> Result<()> {
    let next = match next {
        Ok(Some(next)) => next,
        Ok(None) => return Ok(()),
        Err(holder) => fail!(
            State,
            "mutex {} of rank {} is released by a rank that does not hold it (holder {})",
            name.index,
            name.owner,
            i64::from(holder) - 1
        ),
    };
    // Whoever shares the owner's memory sleeps on its word, others wait for a
    // message.
    if engine.reaches_directly(owner, next) {
        let word = state.granted(next);
        word.store(1, Ordering::Release);
        futex::wake_all(word);
        return Ok(());
    }
    let mut header = Header::new(Kind::Grant, 0);
    header.operand = name.operand();
    engine.messenger()?.notice(next, header)
}

/// Where a request of another rank finds the state of one of our mutexes.
fn own_state(engine: &Engine, header: &Header) -> Result<(State, *mut u8, usize)> {
    let bytes = state_bytes(engine.size());
    let (slab, offset) =
        engine.memory.registry.in_slice(engine.rank(), header.address as usize, bytes)?;
    // SAFETY: the state lies in our slice, which stays mapped: the requester
    // holds the set alive until it has released the mutex.
    let state = unsafe { State::at(slab.my_base().wrapping_add(offset)) };
    Ok((state, slab.my_base(), stripe::of(offset)))
}

pub(crate) fn serve_lock(engine: &Engine, source: usize, header: &Header) -> Result<()> {
    let (state, slice, stripe) = own_state(engine, header)?;
    let got = {
        // SAFETY: our own slice.
        let _held = unsafe { stripe::take(slice, stripe) };
        state.acquire(source, true)
    };
    if got {
        let mut grant = Header::new(Kind::Grant, 0);
        grant.operand = header.operand;
        engine.messenger()?.notice(source, grant)?;
    }
    Ok(())
}

pub(crate) fn serve_try(engine: &Engine, source: usize, header: &Header) -> Result<bool> {
    let (state, slice, stripe) = own_state(engine, header)?;
    // SAFETY: our own slice.
    let _held = unsafe { stripe::take(slice, stripe) };
    Ok(state.acquire(source, false))
}

pub(crate) fn serve_unlock(engine: &Engine, source: usize, header: &Header) -> Result<()> {
    let (state, slice, stripe) = own_state(engine, header)?;
    let next = {
        // SAFETY: our own slice.
        let _held = unsafe { stripe::take(slice, stripe) };
        state.release(source)
    };
    hand_over(engine, state, Name::of(header), next, engine.rank())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_first_come_first_served() {
        let mut memory = vec![0u32; state_bytes(4) / 4];
        // SAFETY: the vector is a zeroed state for four ranks.
        let state = unsafe { State::at(memory.as_mut_ptr().cast()) };
        assert!(state.acquire(2, true));
        assert!(!state.acquire(0, true));
        assert!(!state.acquire(3, true));
        assert!(!state.acquire(1, false));
        assert_eq!(state.release(0), Err(3));
        assert_eq!(state.release(2), Ok(Some(0)));
        assert!(!state.acquire(2, true));
        assert_eq!(state.release(0), Ok(Some(3)));
        assert_eq!(state.release(3), Ok(Some(2)));
        assert_eq!(state.release(2), Ok(None));
        assert!(state.acquire(1, false));
    }
}
