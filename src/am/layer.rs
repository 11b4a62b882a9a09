//! The place of active messages among the layers, and the waits of all layers.
//!
//! A wait polls the rings of the node, what this rank has sent to itself, and the message path.
//! While it lasts the other ranks of the node know that this one polls ([`super::poll_state`]);
//! when it has lasted it sleeps on the bell of its rings.

use super::shm_transport::ShmTransport;
use super::state::{AmState, RingState};
use super::{Am, Owner};
use crate::core::{count, handler};
use crate::error::Result;
use crate::mpi::p2p;
use crate::trace::Observer;
use crate::wait::{Ends, GivenUp, Patience, Progress};
use crate::watchdog::Standing;
use std::sync::Weak;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// While rings are busy, MPI is polled once in this many of their polls.
const BUSY_POKE: u32 = 16;
/// The same of looks after collected messages that grow old, where no progress thread has them.
const FLUSH_EVERY: u32 = 64;
/// How many polls of a waiting rank without messages lie between two occasions
/// for MPI to make progress.
const POKE_EVERY: u32 = 256;

impl Am {
    /// Makes the layer known to those below, and the owner to this one.
    ///
    /// # Safety
    /// As for [`crate::core::above::Above::set`].
    pub(crate) unsafe fn connect(&self, owner: Weak<dyn Owner>) {
        let _ = self.owner.set(owner);
        // SAFETY: passed on from the caller.
        unsafe {
            self.core().set_progress(self);
            self.ops.register_services();
            if let Ok(two_sided) = self.two_sided() {
                two_sided.services().register(&super::over_mpi::KINDS, self);
            }
        }
    }

    /// The rings, where there are any.
    fn rings(&self) -> Option<(&AmState, &ShmTransport)> {
        let state = self.started()?;
        Some((state, state.node.as_ref()?))
    }

    /// The progress thread polls: MPI only where threads may call it.
    pub(crate) fn poll_by_thread(&self) -> Result<bool> {
        let busy = match self.started() {
            Some(state) => state.poll(self)?,
            None => false,
        };
        Ok(busy | self.poll_messages()?)
    }

    /// Without a progress thread, waiting calls look after what grows old.
    #[cold]
    fn flush_aged(&self) -> Result<()> {
        if let Some(state) = self.started()
            && handler::running().is_none()
            && !state.collects_nothing()
        {
            self.flush_hooks(true)?;
        }
        Ok(())
    }

    /// A thread does what it does between waits, and will wait soon: others need not
    /// wake the progress thread.
    #[inline]
    pub(crate) fn attend(&self) {
        if let Some((state, node)) = self.rings() {
            state.poll_state.touch(node, self.is_watched());
        }
    }

    /// Whether a thread waits so often that the progress thread stands back between
    /// its waits as well.
    #[inline]
    pub(crate) fn lingers(&self) -> bool {
        self.started().is_some_and(|state| state.poll_state.lingers())
    }

    /// Whether something waits here for room at another rank.
    pub(crate) fn is_held_up(&self) -> bool {
        self.started().is_some_and(|state| state.is_held_up())
    }

    /// Sleeps within a wait that has lasted: until the bell of the rank's rings, or,
    /// without rings, until `word`, which is `value`, is woken; at most for `nap`. Not
    /// at all where `ready` says that there is something.
    pub(crate) fn sleep_long(
        &self,
        word: &AtomicU32,
        value: u32,
        nap: Duration,
        ready: impl FnOnce() -> bool,
    ) {
        match self.rings() {
            Some((state, node)) => self.absent(|| {
                node.sleep(|| (state.rings() != RingState::Ready && !ready()).then_some(nap));
            }),
            None => crate::futex::wait(word, value, nap),
        }
        if !self.has_messages() {
            // The host's own messages may need this rank: the next poll looks at them.
            self.polls().store(0, Ordering::Relaxed);
        }
    }

    /// Wakes the threads of this rank that sleep on its bell.
    pub(crate) fn wake_sleepers(&self) {
        if let Some((_, node)) = self.rings() {
            node.wake_own();
        }
    }

    /// Runs something in which the thread does not poll, within a wait.
    fn absent(&self, sleep: impl FnOnce()) {
        let Some((state, node)) = self.rings() else { return sleep() };
        self.waiters().fetch_sub(1, Ordering::SeqCst);
        if state.poll_state.sleep(node, self.waiters()) {
            state.look_again(self);
        }
        node.rest(sleep);
        self.waiters().fetch_add(1, Ordering::SeqCst);
        state.poll_state.arrive(node);
    }

    /// What is pending, in words, for reports.
    pub(crate) fn pending_messages(&self) -> Vec<String> {
        let Some(state) = self.started() else { return Vec::new() };
        let (sent, handled) = (state.all_sent(), state.all_handled());
        let mut all = vec![format!("{sent} active messages sent, {handled} handled")];
        if state.is_held_up() {
            all.push("some wait for room".into());
        }
        all
    }
}

impl Progress for Am {
    #[inline]
    fn poll(&self) -> Result<bool> {
        let polls = count(self.polls());
        let busy = match self.started() {
            Some(state) => state.poll(self)?,
            None => false,
        };
        if busy && !polls.is_multiple_of(BUSY_POKE) {
            return Ok(true);
        }
        if polls.is_multiple_of(FLUSH_EVERY) && !self.is_watched() {
            self.flush_aged()?;
        }
        if self.has_messages() {
            return Ok(busy | self.poll_messages()?);
        }
        // The host's own messages may need this rank: a call of ours is to
        // make progress for them as MPI's blocking calls do.
        if polls.is_multiple_of(POKE_EVERY) && self.may_call_mpi() {
            p2p::poke(&*self.world().comm()?)?;
        }
        Ok(busy)
    }
    fn nap_on(&self, word: &AtomicU32, value: u32, nap: Duration) {
        // Without messages of ours nothing else needs this rank, but the host's
        // own may.
        let nap = if self.has_messages() { nap } else { Duration::from_millis(1) };
        self.absent(|| crate::futex::wait(word, value, nap));
        if !self.has_messages() && word.load(Ordering::Relaxed) == value {
            self.polls().store(0, Ordering::Relaxed);
        }
    }
    fn patience(&self, ends: Ends) -> Patience {
        self.core().patience(ends)
    }
    fn told_by(&self) -> Option<&Observer> {
        Some(self.observer())
    }
    fn nap(&self, nap: Duration) {
        match self.rings() {
            Some((state, node)) => {
                self.absent(|| node.sleep(|| (state.rings() != RingState::Ready).then_some(nap)))
            }
            None => std::thread::sleep(nap),
        }
    }
    #[inline]
    fn may_wait(&self) -> Result<()> {
        self.core().may_wait()
    }
    fn waiting(&self, begins: bool) {
        if begins {
            self.waiters().fetch_add(1, Ordering::SeqCst);
            if let Some((state, node)) = self.rings() {
                state.poll_state.arrive(node);
            }
        } else {
            self.waiters().fetch_sub(1, Ordering::SeqCst);
            if let Some((state, node)) = self.rings()
                && state.poll_state.depart(node, self.waiters(), self.is_watched())
            {
                state.look_again(self);
            }
        }
    }
    #[inline]
    fn give_up(&self) -> Option<GivenUp> {
        self.give_up_handlers()
    }
    fn take_again(&self, given_up: GivenUp) {
        self.take_handlers_again(given_up);
    }
    fn report(&self, standing: &Standing<'_>) {
        standing.report(&self.pending());
    }
}
