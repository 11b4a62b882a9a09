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
use crate::path::message::wire::{Header, Kind};
use crate::path::{self, Path, rma};
use crate::runtime::Engine;
use crate::wait::{self, Progress};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::ThreadId;
use std::time::Duration;

use super::stripe;

/// A collectively made set of mutexes.
#[derive(Debug)]
pub struct MutexSet {
    segment: Arc<Segment>,
    counts: Vec<usize>,
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
    held: Mutex<HashMap<Name, ThreadId>>,
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

fn futex(word: &AtomicU32, operation: i32, value: u32, timeout: Option<Duration>) {
    let time = timeout.map(|t| libc::timespec {
        tv_sec: t.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(t.subsec_nanos()),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word is mapped and aligned, the time is valid or null. The
    // word is shared between processes, so the private flag is not set.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, time) };
}

/// Sleeps on a word of shared memory where a plain wait would nap.
struct OnWord<'a> {
    engine: &'a Engine,
    word: &'a AtomicU32,
}

impl Progress for OnWord<'_> {
    fn poll(&self) -> Result<bool> {
        self.engine.poll()
    }
    fn nap(&self, nap: Duration) {
        // Without messages nothing else needs this rank: sleep until woken, but
        // look round now and then for the watchdog's sake.
        let nap = if self.engine.has_messages() { nap } else { Duration::from_millis(100) };
        futex(self.word, libc::FUTEX_WAIT, 0, Some(nap));
    }
    fn spin(&self) -> u32 {
        self.engine.spin()
    }
    fn watchdog(&self) -> Duration {
        self.engine.watchdog()
    }
    fn waiting(&self, begins: bool) {
        self.engine.waiting(begins);
    }
    fn report(&self, what: &str, waited: Duration) {
        self.engine.report(what, waited);
    }
}

/// A mutex that was found and checked.
struct Found {
    name: Name,
    world: usize,
    address: usize,
    state: *mut u8,
    path: Path,
    slice: *mut u8,
    stripe: usize,
    place: rma::Target,
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
}

impl Engine {
    /// Makes `count` mutexes on this rank, and as many as the others ask on
    /// theirs. Collective over the group.
    pub fn create_mutexes(&self, group: &Arc<Group>, count: usize) -> Result<Arc<MutexSet>> {
        let bytes = match state_bytes(self.size()).checked_mul(count) {
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
        let counts =
            segment.parts().iter().map(|p| p.len() / state_bytes(self.size())).collect();
        Ok(Arc::new(MutexSet { segment, counts, live: AtomicBool::new(true) }))
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
        let id = set.segment.id();
        let mut held = 0;
        self.mutexes.held.lock().retain(|n, _| {
            let mine = (n.group, n.set) == (id.group, id.number);
            held += usize::from(mine);
            !mine
        });
        self.barrier_of(set.group())?;
        self.release(set.segment.clone())?;
        if held > 0 {
            fail!(State, "{held} mutexes of the set were destroyed while this rank held them");
        }
        Ok(())
    }

    fn find_mutex(&self, set: &MutexSet, index: usize, rank: usize) -> Result<Found> {
        if !set.live.load(Ordering::Acquire) {
            fail!(State, "the mutexes were destroyed");
        }
        let world = set.group().world_rank(rank)?;
        if index >= set.counts[rank] {
            fail!(
                Argument,
                "mutex {index} of rank {rank}, which has {} mutexes",
                set.counts[rank]
            );
        }
        let part = &set.segment.parts()[rank];
        let address = part.address() + index * state_bytes(self.size());
        let hit = self.memory.registry.find(world, address, state_bytes(self.size()))?;
        let id = set.segment.id();
        Ok(Found {
            name: Name { group: id.group, set: id.number, owner: world as u32, index: index as u32 },
            world,
            address,
            state: hit.slice().wrapping_add(hit.offset),
            path: path::for_atomics(hit.slab(), hit.slice()),
            slice: hit.slice(),
            stripe: stripe::of(hit.offset),
            place: rma::Target {
                slab: hit.slab().clone(),
                world,
                rank: hit.group_rank(),
                offset: hit.offset,
            },
        })
    }

    /// Notes that this thread is about to hold the mutex; another thread of this
    /// rank is waited for.
    fn claim(&self, name: Name, wait: bool) -> Result<bool> {
        let me = std::thread::current().id();
        let mut tried = false;
        let claim = || {
            let mut held = self.mutexes.held.lock();
            match held.get(&name) {
                None => {
                    held.insert(name, me);
                    Ok(true)
                }
                Some(&thread) if thread == me && wait => fail!(
                    State,
                    "mutex {} of rank {} is held by the caller already: waiting for it would \
                     never end",
                    name.index,
                    name.owner
                ),
                Some(_) => Ok(false),
            }
        };
        let what = || format!("another thread to release mutex {} of rank {}", name.index, name.owner);
        wait::until(self, &what, || {
            let got = claim()?;
            tried = got;
            Ok(got || !wait)
        })?;
        Ok(tried)
    }

    /// Takes a mutex; waits in turn while another rank holds it.
    ///
    /// # Errors
    /// `Rank`, `Argument` (no such mutex), `State` (destroyed, or held by the
    /// caller already).
    pub fn lock(&self, set: &MutexSet, index: usize, rank: usize) -> Result<()> {
        let found = self.find_mutex(set, index, rank)?;
        self.claim(found.name, true)?;
        let taken = self.acquire(&found);
        if taken.is_err() {
            self.mutexes.held.lock().remove(&found.name);
        }
        taken
    }

    fn acquire(&self, found: &Found) -> Result<()> {
        let name = found.name;
        let what = || format!("mutex {} of rank {}", name.index, name.owner);
        let granted = || wait::until(self, &what, || Ok(self.mutexes.take_grant(name)));
        match found.path {
            Path::Direct => {
                // SAFETY: the slice and the state in it stay mapped while the
                // set lives, which `place` guarantees.
                let state = unsafe { State::at(found.state) };
                let me = self.rank();
                {
                    // SAFETY: as above.
                    let _held = unsafe { stripe::take(found.slice, found.stripe) };
                    if state.acquire(me, true) {
                        return Ok(());
                    }
                }
                let word = state.granted(me);
                wait::until(&OnWord { engine: self, word }, &what, || {
                    Ok(word.load(Ordering::Acquire) == 1)
                })
            }
            Path::Message => {
                let mut header = Header::new(Kind::Lock, found.address);
                header.operand = name.operand();
                self.messenger()?.command(self, found.world, header)?;
                granted()
            }
            Path::Rma => {
                let me = self.rank() as i64 + 1;
                let last = rma::rmw(self, &found.place, super::Rmw::SwapLong(me))?;
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
        let found = self.find_mutex(set, index, rank)?;
        if !self.claim(found.name, false)? {
            return Ok(false);
        }
        let got = self.try_acquire(&found);
        if !matches!(got, Ok(true)) {
            self.mutexes.held.lock().remove(&found.name);
        }
        got
    }

    fn try_acquire(&self, found: &Found) -> Result<bool> {
        match found.path {
            Path::Direct => {
                // SAFETY: as in `acquire`.
                unsafe {
                    let _held = stripe::take(found.slice, found.stripe);
                    Ok(State::at(found.state).acquire(self.rank(), false))
                }
            }
            Path::Message => {
                let mut header = Header::new(Kind::TryLock, found.address);
                header.operand = found.name.operand();
                Ok(self.messenger()?.ask(self, found.world, header)? == 1)
            }
            Path::Rma => {
                let window = found.place.slab.window().expect("the path needs a window");
                let me = self.rank() as i64 + 1;
                // SAFETY: the state's first word lies in the owner's slice.
                let found = unsafe {
                    window.compare_and_swap(0, me, found.place.rank, found.place.offset)
                }?;
                Ok(found == 0)
            }
        }
    }

    /// Releases a mutex. Everything that this rank has issued is complete before
    /// another rank can take it.
    ///
    /// # Errors
    /// `Rank`, `Argument`, or `State` where this rank does not hold the mutex.
    pub fn unlock(&self, set: &MutexSet, index: usize, rank: usize) -> Result<()> {
        let found = self.find_mutex(set, index, rank)?;
        if !self.mutexes.held.lock().contains_key(&found.name) {
            fail!(State, "mutex {index} of rank {rank} is not held by this rank");
        }
        self.fence_all()?;
        let released = self.release_mutex(&found);
        self.mutexes.held.lock().remove(&found.name);
        released
    }

    fn release_mutex(&self, found: &Found) -> Result<()> {
        let name = found.name;
        match found.path {
            Path::Direct => {
                // SAFETY: as in `acquire`.
                let state = unsafe { State::at(found.state) };
                let next = {
                    // SAFETY: as above.
                    let _held = unsafe { stripe::take(found.slice, found.stripe) };
                    state.release(self.rank())
                };
                hand_over(self, state, name, next, found.world)
            }
            Path::Message => {
                let mut header = Header::new(Kind::Unlock, found.address);
                header.operand = name.operand();
                self.messenger()?.command(self, found.world, header)?;
                Ok(())
            }
            Path::Rma => {
                let window = found.place.slab.window().expect("the path needs a window");
                let me = self.rank() as i64 + 1;
                // SAFETY: the state's first word lies in the owner's slice.
                let last = unsafe {
                    window.compare_and_swap(me, 0, found.place.rank, found.place.offset)
                }?;
                if last == me {
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
        futex(word, libc::FUTEX_WAKE, 1, None);
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
