//! The connection of active messages to the other layers, and the polls and naps of all waits. A
//! wait polls the rings, the rank's messages to itself, and the message path, and shows this to the
//! node ([`super::poll_state`]). A long wait sleeps on the bell of the rings.

use super::poll_state::BATCH;
use super::shm_transport::ShmTransport;
use super::state::{AmState, RingState};
use super::{Am, Owner};
use crate::core::{count, handler};
use crate::mpi::p2p;
use portolan_base::error::Result;
use portolan_base::trace::Observer;
use portolan_base::wait::times::WOKEN_NAP;
use portolan_base::wait::watchdog::Standing;
use portolan_base::wait::{Ends, GivenUp, Patience, Progress};
use std::sync::Weak;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Number of polls per poll of MPI while rings are busy.
const BUSY_POKE: u32 = 16;
/// Number of polls per check for aged aggregated items, without a progress thread.
const FLUSH_EVERY: u32 = 64;
/// Maximum number of polls between two batches, because handlers may keep sending to this rank.
const BETWEEN_BATCHES: u32 = 8;
/// Number of polls per call that lets MPI make progress, without the message path.
const POKE_EVERY: u32 = 256;

impl Am {
    /// Registers this layer with the layers below it, and the owner with this layer.
    ///
    /// # Safety
    /// See [`crate::core::upper_layer::UpperLayer::set`], with `self`.
    pub unsafe fn connect(&self, owner: Weak<dyn Owner>) {
        let _ = self.owner.set(owner);
        // SAFETY: the caller upholds the contract of `UpperLayer::set`.
        unsafe {
            self.core().set_progress(self);
            self.ops.register_services();
            if let Ok(two_sided) = self.two_sided() {
                two_sided.services().register(&super::over_mpi::KINDS, self);
            }
        }
    }

    #[inline]
    fn rings(&self) -> Option<(&AmState, &ShmTransport)> {
        let state = self.started()?;
        Some((state, state.node.as_ref()?))
    }

    /// MPI is polled only if threads may call it.
    pub(crate) fn poll_by_thread(&self) -> Result<bool> {
        let busy = match self.started() {
            Some(state) => state.poll(self)?,
            None => false,
        };
        Ok(busy | self.poll_messages()?)
    }

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

    /// This thread will wait again soon, so other ranks need not wake the progress thread.
    #[inline]
    pub fn attend(&self) {
        if let Some((state, node)) = self.rings() {
            state.poll_state.touch(1, node, self.is_watched());
        }
    }

    /// Handles what has arrived, for a thread that has sent a full batch. Else senders wake the
    /// progress thread, which competes for the aggregator and the core.
    pub(super) fn serve_between_batches(&self) -> Result<()> {
        if handler::running().is_some() || super::lock::has_locked() {
            return Ok(());
        }
        let Some((state, node)) = self.rings() else { return Ok(()) };
        state.poll_state.touch(BATCH, node, self.is_watched());
        for _ in 0..BETWEEN_BATCHES {
            let busy = state.poll(self)?;
            if !(busy | (self.may_call_mpi() && self.poll_messages()?)) {
                break;
            }
        }
        Ok(())
    }

    /// Waits are so frequent that the progress thread stays back between them too.
    #[inline]
    pub(crate) fn lingers(&self) -> bool {
        self.started().is_some_and(|state| state.poll_state.lingers())
    }

    pub fn is_held_up(&self) -> bool {
        self.started().is_some_and(|state| state.is_held_up())
    }

    /// Sleeps for at most `nap` in a long wait. With rings, sleeps until their bell rings, and not
    /// at all if there is something to handle or `ready` returns true. Without rings, sleeps until
    /// `word` is woken, and not at all if it is no longer `value`.
    pub fn sleep_long(
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
            None => portolan_base::futex::wait(word, value, nap),
        }
        if !self.has_messages() {
            // MPI messages of the program may need this rank, so the next poll calls MPI.
            self.polls().store(0, Ordering::Relaxed);
        }
    }

    pub fn wake_sleepers(&self) {
        if let Some((_, node)) = self.rings() {
            node.wake_own();
        }
    }

    /// Runs `sleep` in a wait. The thread does not count as a waiter meanwhile.
    fn absent(&self, sleep: impl FnOnce()) {
        let Some((state, node)) = self.rings() else { return sleep() };
        self.waiters().fetch_sub(1, Ordering::SeqCst);
        if state.poll_state.sleep(node, self.waiters()) {
            state.poll_again(self);
        }
        node.rest(sleep);
        self.waiters().fetch_add(1, Ordering::SeqCst);
        state.poll_state.arrive(node);
    }

    pub(crate) fn pending_messages(&self) -> Vec<String> {
        let Some(state) = self.started() else { return Vec::new() };
        let (sent, handled) = (state.all_sent(), state.all_handled());
        let mut all = vec![format!("{sent} active messages sent, {handled} handled")];
        if state.is_held_up() {
            all.push("some wait for buffer space".into());
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
        // MPI messages of the program may need progress by this call, as by MPI's own.
        if polls.is_multiple_of(POKE_EVERY) && self.may_call_mpi() {
            p2p::poke(&*self.world().comm()?)?;
        }
        Ok(busy)
    }
    fn nap_on(&self, word: &AtomicU32, value: u32, nap: Duration) {
        // Without the message path, only MPI messages of the program may need polls, so nap longer.
        let nap = if self.has_messages() { nap } else { WOKEN_NAP };
        self.absent(|| portolan_base::futex::wait(word, value, nap));
        if !self.has_messages() && word.load(Ordering::Relaxed) == value {
            self.polls().store(0, Ordering::Relaxed);
        }
    }
    fn moves_data(&self) -> bool {
        self.has_long_messages()
    }
    fn patience(&self, ends: Ends) -> Patience {
        self.core().patience(ends)
    }
    fn traced_by(&self) -> Option<&Observer> {
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
                state.poll_again(self);
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
