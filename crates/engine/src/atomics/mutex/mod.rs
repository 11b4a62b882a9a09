//! Mutexes: collectively created sets of numbered first-come, first-served locks on each rank.
//!
//! A set is a segment. A mutex on rank `p` is a small state in `p`'s part: the
//! holder, a queue of waiting ranks (linked through one word for each rank), and a "granted" word
//! for each rank. A rank on `p`'s node changes the state itself under the stripe lock, and sleeps
//! on its own granted word (futex). Any other rank sends a request to `p`'s progress engine, and
//! receives a message when it holds the mutex. The releasing rank hands the mutex over to the first
//! rank in the queue. Ranks of one node that want the same mutex of another node form their own
//! queue ([`super::node_queue`]). The first one sends the request to the owner, and the mutex
//! passes from one rank to the next up to [`PASSES`] times. Then it returns to the owner, in the
//! name of the rank that requested it.
//!
//! Invariant: exactly one rank holds a mutex or is being notified that it does.

use super::node_queue::{NodeQueue, Turn};
use crate::ops::Ops;
use crate::path::mutex_service::hand_over;
use crate::path::two_sided::wire::RequestKind;
use portolan_base::error::{Result, fail};
use portolan_base::trace::Call;
use portolan_base::wait::{self, Progress};
pub use set::MutexSet;
use set::{BY_QUEUE, FoundMutex, INTERRUPTED};
use std::sync::atomic::{AtomicU64, Ordering};

mod set;

/// Maximum number of times that a mutex passes on within a node, each for the cost of a wake-up.
/// Sending it to another node through the owner costs two messages to ranks that have slept.
const PASSES: usize = 15;

fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static MINE: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    MINE.with(|n| *n)
}

impl Ops {
    /// Waits, if `wait`, while another thread of this rank holds the mutex. Returns the success.
    fn claim(&self, found: &FoundMutex<'_>, wait: bool) -> Result<bool> {
        let me = thread_number();
        let claim = || match found.held.compare_exchange(
            0,
            me,
            Ordering::Acquire,
            Ordering::Relaxed,
        ) {
            Ok(_) => Ok(true),
            Err(INTERRUPTED) => fail!(
                State,
                "mutex {} of rank {}: an earlier wait of this rank was interrupted, so the rank \
                 can lock the mutex no more",
                found.name.index,
                found.name.owner
            ),
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

    /// Waits in the queue while another rank holds the mutex. Fails with `Rank` or `Argument` for
    /// an invalid mutex, and with `State` if the set was destroyed or this thread holds it.
    pub fn lock(&self, set: &MutexSet, index: usize, rank: usize) -> Result<()> {
        let found = set.find(index, rank)?;
        self.observed(
            || found.call_info(Call::Lock),
            || {
                self.claim(&found, true)?;
                let mut queued = false;
                let taken = self.acquire(&found, &mut queued);
                if taken.is_err() {
                    // A lock that is granted later must not count as the answer to a later call.
                    found.held.store(if queued { INTERRUPTED } else { 0 }, Ordering::Release);
                }
                taken
            },
        )
    }

    /// Sets `queued` before the rank enters the queue.
    #[inline]
    fn acquire(&self, found: &FoundMutex<'_>, queued: &mut bool) -> Result<()> {
        let name = found.name;
        let what = || format!("mutex {} of rank {}", name.index, name.owner);
        if found.is_mapped() {
            let me = self.rank();
            let (state, lock) = found.state();
            if state.acquire(me, false) {
                return Ok(());
            }
            drop(lock);
            self.may_wait()?;
            *queued = true;
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
            return wait::while_equal(self, found.awaited(), &what, (word, 0), None)
                .inspect_err(|_| self.withdraw(found));
        }
        let ask = || {
            let owner = found.place.world;
            let sent = self.two_sided()?.command(self, owner, found.request(RequestKind::Lock))?;
            wait::until(self, found.awaited(), &what, || Ok(self.mutexes.take_grant(name)))?;
            self.peer(owner).answered(sent);
            Ok(())
        };
        let ask = || ask().inspect_err(|_| self.withdraw(found));
        self.may_wait()?;
        *queued = true;
        let Some(queue) = found.queue() else { return ask() };
        let mut turn = queue.enter(0);
        if turn == Turn::Waits {
            let waited = queue.wait(self, found.awaited(), &what);
            turn = waited.inspect_err(|_| self.leave_queue(found, &queue))?.0;
        }
        if turn == Turn::Alone {
            return ask();
        }
        if turn != Turn::Has {
            ask().inspect_err(|_| queue.leave())?;
            queue.taken(self.rank());
        }
        found.held.fetch_or(BY_QUEUE, Ordering::Relaxed);
        Ok(())
    }

    /// Leaves the queue of the owner after a failed wait, or releases the mutex that this rank has
    /// got meanwhile, so that other ranks can take it.
    #[cold]
    fn withdraw(&self, found: &FoundMutex<'_>) {
        let withdrawn = || {
            if !found.is_mapped() {
                let header = found.request(RequestKind::LockWithdrawal);
                return self.two_sided()?.command(self, found.place.world, header).map(drop);
            }
            let (state, lock) = found.state();
            let next = state.withdraw(self.rank());
            drop(lock);
            hand_over(self, state, found.name, Ok(next), found.place.world)
        };
        if let Err(error) = withdrawn() {
            log::error!("leaving the queue of a mutex: {error:#}");
        }
    }

    /// See [`Ops::withdraw`], for the queue of the node.
    #[cold]
    fn leave_queue(&self, found: &FoundMutex<'_>, queue: &NodeQueue) {
        match queue.give_up() {
            Turn::Leads => queue.leave(),
            Turn::Has => {
                found.held.fetch_or(BY_QUEUE, Ordering::Relaxed);
                if let Err(error) = self.release_mutex(found) {
                    log::error!("releasing a mutex after an interrupted wait: {error:#}");
                }
            }
            Turn::Waits | Turn::Alone => {}
        }
    }

    /// Takes a mutex if it is free. Returns whether the caller holds it now.
    pub fn try_lock(&self, set: &MutexSet, index: usize, rank: usize) -> Result<bool> {
        let found = set.find(index, rank)?;
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
        if found.is_mapped() {
            let (state, _lock) = found.state();
            return Ok(state.acquire(self.rank(), false));
        }
        let header = found.request(RequestKind::TryLock);
        Ok(self.two_sided()?.ask(self, found.place.world, header)? == 1)
    }

    /// Completes this rank's data transfers before another rank can take the mutex. Fails with
    /// `Rank` or `Argument` for an invalid mutex, and with `State` if this rank does not hold it.
    pub fn unlock(&self, set: &MutexSet, index: usize, rank: usize) -> Result<()> {
        let found = set.find(index, rank)?;
        if matches!(found.held.load(Ordering::Relaxed), 0 | INTERRUPTED) {
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

    #[inline(always)]
    fn release_mutex(&self, found: &FoundMutex<'_>) -> Result<()> {
        if found.is_mapped() {
            let (state, lock) = found.state();
            let next = state.release(self.rank());
            drop(lock);
            return match next {
                Ok(None) => Ok(()),
                next => hand_over(self, state, found.name, next, found.place.world),
            };
        }
        let by_queue = found.held.load(Ordering::Relaxed) & BY_QUEUE != 0;
        let queue = found.queue().filter(|_| by_queue);
        let holder = match &queue {
            Some(queue) => queue.pass_on(PASSES),
            None => Some(self.rank()),
        };
        let Some(holder) = holder else { return Ok(()) };
        let mut header = found.request(RequestKind::Unlock);
        header.tag = holder as u32;
        self.two_sided()?.command(self, found.place.world, header)?;
        if let Some(queue) = queue {
            queue.leave();
        }
        Ok(())
    }
}
