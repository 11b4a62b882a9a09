//! Order and completion: fences, the change of path, waits without handles, and
//! the engine's part in waiting.

use super::{Engine, POKE_EVERY};
use crate::am::deliver::Rings;
use crate::error::{Result, fail};
use crate::mpi::p2p;
use crate::mutation::{self, Fault};
use crate::path::Path;
use crate::peer::{DIRTY_MESSAGE, DIRTY_RMA};
use crate::wait::{GivenUp, Progress};
use crate::watchdog::Standing;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// While rings are busy, MPI is polled with every so many of their polls.
const BUSY_POKE: u32 = 16;

/// Counts, roughly where several threads do, without a locked instruction.
#[inline]
fn count(counter: &AtomicU32) -> u32 {
    let n = counter.load(Ordering::Relaxed);
    counter.store(n.wrapping_add(1), Ordering::Relaxed);
    n
}

impl Engine {
    /// Before an operation takes `path` to `target`: completes what went there
    /// by another one.
    #[inline]
    pub(crate) fn settle(&self, target: usize, path: Path) -> Result<()> {
        if self.threadless.load(Ordering::Relaxed) {
            self.serve_sometimes()?;
        }
        let dirty = self.peers[target].dirty();
        let own = match path {
            Path::Direct => 0,
            Path::Rma => DIRTY_RMA,
            Path::Message => DIRTY_MESSAGE,
        };
        if dirty & !own == 0 { Ok(()) } else { self.settle_others(target, dirty & !own) }
    }

    /// Without a progress thread, calls that need nobody serve others now and
    /// then: a program may wait for another rank by calling them in a loop.
    #[cold]
    fn serve_sometimes(&self) -> Result<()> {
        const EVERY: u32 = 16;
        if count(&self.polls).is_multiple_of(EVERY) {
            self.poll()?;
        }
        Ok(())
    }

    #[cold]
    fn settle_others(&self, target: usize, bits: u8) -> Result<()> {
        if bits & DIRTY_RMA != 0 {
            self.flush_windows(target)?;
        }
        if bits & DIRTY_MESSAGE != 0 {
            self.flush_messages(target)?;
        }
        Ok(())
    }

    fn flush_windows(&self, target: usize) -> Result<()> {
        let peer = &self.peers[target];
        let mut pending = peer.rma.lock();
        pending.flush()?;
        self.mark_clean(target, DIRTY_RMA);
        Ok(())
    }

    fn flush_messages(&self, target: usize) -> Result<()> {
        let messenger = self.messenger()?;
        let count = messenger.ask_confirmation(self, target)?;
        messenger.confirmed(self, target, count)?;
        let peer = &self.peers[target];
        let sent = peer.sent.lock();
        if sent.count == count || mutation::is(Fault::FenceOfOthers) {
            self.mark_clean(target, DIRTY_MESSAGE);
        }
        Ok(())
    }

    /// Returns when everything issued to `target` is done and visible there.
    #[inline]
    pub fn fence(&self, target: usize) -> Result<()> {
        self.check_rank(target)?;
        // Drains the stores of direct operations.
        std::sync::atomic::fence(Ordering::SeqCst);
        let dirty = self.peers[target].dirty();
        if dirty == 0 { Ok(()) } else { self.settle_others(target, dirty) }
    }

    /// [`Engine::fence`] for all targets.
    #[inline]
    pub fn fence_all(&self) -> Result<()> {
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.dirty_peers.load(Ordering::Relaxed) > 0 { self.fence_dirty() } else { Ok(()) }
    }

    fn fence_dirty(&self) -> Result<()> {
        // All are asked before any is waited for.
        let mut asked = Vec::new();
        for (rank, peer) in self.peers.iter().enumerate() {
            if peer.dirty() & DIRTY_RMA != 0 {
                self.flush_windows(rank)?;
            }
            if peer.dirty() & DIRTY_MESSAGE != 0 {
                asked.push((rank, self.messenger()?.ask_confirmation(self, rank)?));
            }
        }
        for (rank, count) in asked {
            self.messenger()?.confirmed(self, rank, count)?;
            let sent = self.peers[rank].sent.lock();
            if sent.count == count {
                self.mark_clean(rank, DIRTY_MESSAGE);
            }
        }
        Ok(())
    }

    /// Waits for all operations without a handle to any target.
    pub fn wait_implicit(&self) -> Result<()> {
        for rank in 0..self.peers.len() {
            self.wait_implicit_to(rank)?;
        }
        Ok(())
    }

    /// Waits for all operations without a handle to `target`.
    pub fn wait_implicit_to(&self, target: usize) -> Result<()> {
        self.check_rank(target)?;
        let tally = &self.peers[target].implicit;
        crate::wait::until(
            self,
            &|| format!("{} operations without handle to rank {target}", tally.outstanding()),
            || tally.check(),
        )
    }
}

impl Engine {
    /// A look of the progress thread: MPI only where threads may call it.
    pub(crate) fn poll_by_thread(&self) -> Result<bool> {
        let busy = match self.started_am() {
            Some(am) => am.poll(self)?,
            None => false,
        };
        match &self.messenger {
            Some(messenger) => Ok(busy | messenger.poll(self)?),
            None => Ok(busy),
        }
    }

    /// Without a progress thread, waiting calls look after what grows old.
    fn flush_aged_sometimes(&self) -> Result<()> {
        const EVERY: u32 = 64;
        if let Some(am) = self.started_am()
            && crate::am::state::running().is_none()
            && count(&self.looks).is_multiple_of(EVERY)
            && !am.collects_nothing()
        {
            self.flush_hooks(true)?;
        }
        Ok(())
    }

    /// A thread does what it does between waits, and will wait soon: others need not
    /// wake the progress thread.
    #[inline]
    pub(crate) fn attend(&self) {
        if let Some(am) = self.started_am()
            && let Some(node) = &am.node
        {
            am.presence.touch(node, self.watched.load(Ordering::Relaxed));
        }
    }

    /// Whether a thread waits so often that the progress thread stands back between
    /// its waits as well.
    #[inline]
    pub(crate) fn lingers(&self) -> bool {
        self.started_am().is_some_and(|am| am.presence.lingers())
    }

    /// A count of the polls of callers, roughly.
    pub(crate) fn polled(&self) -> u32 {
        self.polls.load(Ordering::Relaxed)
    }

    /// Longest nap of a thread that looks after MPI.
    pub(crate) fn idle_poll(&self) -> std::time::Duration {
        self.config.idle_poll
    }

    /// Whether something waits here for room at another rank.
    pub(crate) fn is_held_up(&self) -> bool {
        self.started_am().is_some_and(|am| am.is_held_up())
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
        match self.started_am().and_then(|am| Some((am, am.node.as_ref()?))) {
            Some((am, node)) => self
                .absent(|| node.sleep(|| (am.rings() != Rings::Ready && !ready()).then_some(nap))),
            None => crate::futex::wait(word, value, nap),
        }
        if !self.has_messages() {
            // The host's own messages may need this rank: the next poll looks at them.
            self.polls.store(0, Ordering::Relaxed);
        }
    }

    /// Wakes the threads of this rank that sleep on its bell.
    pub(crate) fn wake_sleepers(&self) {
        if let Some(node) = self.started_am().and_then(|am| am.node.as_ref()) {
            node.wake_own();
        }
    }

    /// Runs something in which the thread does not poll, within a wait.
    fn absent(&self, sleep: impl FnOnce()) {
        let rings = self.started_am().and_then(|am| Some((am, am.node.as_ref()?)));
        let Some((am, node)) = rings else { return sleep() };
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        if am.presence.sleep(node, &self.waiters) {
            am.look_again(self);
        }
        node.rest(sleep);
        self.waiters.fetch_add(1, Ordering::SeqCst);
        am.presence.arrive(node);
    }
}

impl Progress for Engine {
    #[inline]
    fn poll(&self) -> Result<bool> {
        let polls = count(&self.polls);
        let busy = match self.started_am() {
            Some(am) => am.poll(self)?,
            None => false,
        };
        if busy && !polls.is_multiple_of(BUSY_POKE) {
            return Ok(true);
        }
        if !self.watched.load(Ordering::Relaxed) {
            self.flush_aged_sometimes()?;
        }
        match &self.messenger {
            Some(messenger) => Ok(busy | messenger.poll(self)?),
            None => {
                // The host's own messages may need this rank: a call of ours is to
                // make progress for them as MPI's blocking calls do.
                if polls.is_multiple_of(POKE_EVERY) && self.may_call_mpi() {
                    p2p::poke(&*self.world.comm()?)?;
                }
                Ok(busy)
            }
        }
    }
    fn nap_on(&self, word: &AtomicU32, value: u32, nap: Duration) {
        // Without messages of ours nothing else needs this rank, but the host's
        // own may.
        let nap = if self.has_messages() {
            nap
        } else {
            self.polls.store(0, Ordering::Relaxed);
            Duration::from_millis(1)
        };
        self.absent(|| crate::futex::wait(word, value, nap));
    }
    fn spin(&self) -> u32 {
        self.spin
    }
    fn nap(&self, nap: Duration) {
        match self.started_am().and_then(|am| Some((am, am.node.as_ref()?))) {
            Some((am, node)) => {
                self.absent(|| node.sleep(|| (am.rings() != Rings::Ready).then_some(nap)))
            }
            None => std::thread::sleep(nap),
        }
    }
    #[inline]
    fn may_wait(&self) -> Result<()> {
        if let Some(name) = crate::am::state::running() {
            fail!(
                State,
                "the handler {name} called a function that would wait; handlers must not block"
            );
        }
        Ok(())
    }
    fn waiting(&self, begins: bool) {
        let rings = self.started_am().and_then(|am| Some((am, am.node.as_ref()?)));
        if begins {
            self.waiters.fetch_add(1, Ordering::SeqCst);
            if let Some((am, node)) = rings {
                am.presence.arrive(node);
            }
        } else {
            self.waiters.fetch_sub(1, Ordering::SeqCst);
            if let Some((am, node)) = rings
                && am.presence.depart(node, &self.waiters, self.watched.load(Ordering::Relaxed))
            {
                am.look_again(self);
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
