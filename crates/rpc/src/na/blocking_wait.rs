//! Blocking waits: an idle server uses no CPU time, and yet wakes immediately.
//!
//! The engine's wait loop carries them out, and its policy decides between polls and sleeps
//! ([`ClassWait`]). How long the class has been idle counts, not how long the wait lasts, because
//! servers wait again and again with short timeouts. A class over MPI takes short naps for some
//! time and then longer sleeps, up to the progress thread's idle interval, because MPI must be
//! polled. If the library itself has no messages in MPI, only the program's operations need the
//! poll, and the limit is eight times the interval. A doorbell of the node's rings or a thread that
//! notifies the class's [`WakeSource`] ends a sleep.
//!
//! If every event of the network wakes a sleeping thread ([`Capabilities::wakes`]), a thread sleeps
//! until an event. One thread sleeps in the network, and wakes the others when it leaves. Transfers
//! that wait for a peer of that network do not require polls ([`super::resting`]).
//!
//! A server may wait forever, so the watchdog reports a wait only on request, or if a peer does not
//! end an operation of this process ([`Shared::watch`]). A loop of polls with timeout zero counts as
//! a wait too, and so do waits with short timeouts. If the program does other work for longer than
//! [`UNWATCHED`], the time starts anew: meanwhile the peer may have waited for this process.
//!
//! [`Capabilities::wakes`]: super::plugin::Capabilities::wakes

use super::class::Shared;
use super::wait_descriptor::Descriptor;
use super::wake_source::WakeSource;
use crate::failure::{Failure, Result};
use portolan_base::error;
use portolan_base::futex;
use portolan_base::trace::Observer;
use portolan_base::wait::times::{CLASS_SLEEPS, UNDISTURBED, UNWATCHED, WATCHED_NAP};
use portolan_base::wait::watchdog::{ReportCause, Standing, Watch};
use portolan_base::wait::{self, Boot, Deadline, Ends, Patience, Progress, RepeatedWait, Unlocked};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A thread that sends or runs callbacks polls once in this many steps.
const POLL_EVERY: u32 = 16;
/// Polls with timeout zero that find nothing, until the watchdog checks the class: a check takes
/// locks and reads the clock. Loops with a poll every 60 ms are still seen ([`UNWATCHED`]).
const WATCH_EVERY: u32 = 32;

/// A wait for the events of a class, in the engine's wait loop.
struct ClassWait<'a> {
    class: &'a Arc<Shared>,
    /// Serves other ranks, and has the facts about this one.
    rank: &'a dyn Progress,
    wakes: bool,
    done: RefCell<&'a mut dyn FnMut() -> Result<bool>>,
    /// The failure that ends the wait.
    failed: RefCell<Option<Failure>>,
    /// The number of events before the last poll.
    count: Cell<u32>,
    /// The idle time of the class, if it was idle at the last poll.
    idle: Cell<Option<Duration>>,
    /// The last poll before a sleep was busy.
    was_busy: Cell<bool>,
    /// Longest nap while operations require polls.
    short: Cell<Duration>,
}

impl ClassWait<'_> {
    /// Returns true on failure too, because it ends the wait.
    fn ends_by(&self, result: Result<bool>) -> bool {
        result.unwrap_or_else(|failure| {
            *self.failed.borrow_mut() = Some(failure);
            true
        })
    }

    fn is_done(&self) -> bool {
        self.failed.borrow().is_some() || self.ends_by((self.done.borrow_mut())())
    }

    /// Sleeps until a thread, a rank or the network wakes the class, unless the last check finds
    /// that something has happened.
    fn sleep(&self, nap: Duration) {
        let check = || {
            self.was_busy.set(self.ends_by(self.class.poll()));
            Ok(self.was_busy.get() || self.is_done())
        };
        let slept = match self.class.engine() {
            _ if self.wakes => self.class.sleep_in_network(nap, check),
            engine => self.class.wake_source.events.sleep(check, |word, value| match engine {
                Some(engine) => {
                    engine.sleep_long(word, value, nap, || word.load(Ordering::SeqCst) != value);
                }
                None => futex::wait(word, value, nap),
            }),
        };
        self.ends_by(slept);
    }
}

impl Progress for ClassWait<'_> {
    fn delegate(&self) -> Option<&dyn Progress> {
        Some(self.rank)
    }
    fn poll(&self) -> error::Result<bool> {
        let WakeSource { events, idle, .. } = &self.class.wake_source;
        self.count.set(events.now());
        let busy = self.ends_by(self.class.poll()) | self.was_busy.take();
        if busy && self.idle.take().is_some() {
            idle.end();
        }
        if !busy && self.wakes {
            std::hint::spin_loop();
        }
        Ok(busy)
    }
    fn nap(&self, nap: Duration) {
        if nap >= WATCHED_NAP {
            self.class.watch(&[ReportCause::Asked, ReportCause::Slow]);
        }
        if self.wakes || self.idle.get() >= Some(CLASS_SLEEPS) && !self.class.must_poll() {
            self.sleep(nap);
        } else {
            self.rank.nap(nap.min(self.short.get()));
        }
    }
    fn moves_data(&self) -> bool {
        match self.wakes {
            true => self.class.wake_source.moving.load(Ordering::Relaxed) > 0,
            false => self.rank.moves_data(),
        }
    }
    fn idle(&self, here: Duration) -> Duration {
        if self.wakes {
            return here;
        }
        let idle = self.class.wake_source.idle.begins(self.count.get());
        self.idle.set(Some(idle));
        idle
    }
    fn patience(&self, ends: Ends) -> Patience {
        if self.wakes {
            return Patience::NETWORK;
        }
        let rank = self.rank.patience(ends);
        self.short.set(rank.limit);
        let WakeSource { events, idle, .. } = &self.class.wake_source;
        let limit = match self.class.engine() {
            None => UNDISTURBED,
            Some(engine) if engine.has_messages() => engine.idle_poll(),
            Some(engine) => engine.idle_poll() * 8,
        };
        rank.of_class(idle.lasts(events.now()).unwrap_or_default(), limit)
    }
    fn watch(&self) -> Watch {
        Watch::on_request()
    }
    fn traced_by(&self) -> Option<&Observer> {
        None
    }
}

impl Shared {
    /// Makes progress until `done` returns true or the deadline passes. Returns whether it did. Returns
    /// the errors of `done` and of progress, and `FAIL` in an active-message handler.
    pub fn until(
        self: &Arc<Shared>,
        deadline: &mut Deadline,
        mut done: impl FnMut() -> Result<bool>,
    ) -> Result<bool> {
        if done()? {
            return Ok(true);
        }
        if deadline.is_now() {
            self.poll_once()?;
            return done();
        }
        let wait = ClassWait {
            class: self,
            rank: self.progress(),
            wakes: self.wakes(),
            done: RefCell::new(&mut done),
            failed: RefCell::default(),
            count: Cell::default(),
            idle: Cell::default(),
            was_busy: Cell::default(),
            short: Cell::default(),
        };
        let what = || format!("an event of a class over {}", self.scheme().name());
        let waited = wait::until_deadline(&wait, deadline, &what, || Ok(wait.is_done()));
        match wait.failed.take() {
            Some(failure) => Err(failure),
            None => Ok(waited?),
        }
    }

    /// Polls once for a caller with a timeout of zero, which typically calls this in a loop.
    fn poll_once(self: &Arc<Shared>) -> Result<()> {
        let engine = self.engine();
        let _unlocked = Unlocked::begin(self.progress());
        engine.inspect(|engine| engine.attend());
        // MPI may need more than one call to deliver a message.
        let busy = self.poll()? || self.poll()?;
        engine.inspect(|engine| engine.looked(busy));
        if !busy {
            let polls = &self.wake_source.idle_polls;
            let count = polls.load(Ordering::Relaxed).wrapping_add(1);
            polls.store(count, Ordering::Relaxed);
            if count.is_multiple_of(WATCH_EVERY) {
                self.watch(&[ReportCause::Slow]);
            }
        }
        Ok(())
    }

    fn progress(&self) -> &dyn Progress {
        match self.engine() {
            Some(engine) => engine,
            None => &Boot,
        }
    }

    /// Reports to the watchdog that a peer does not end an operation of this process. The waits of
    /// all threads count as one. A wait answers requests for reports itself, so it leaves them out.
    /// A loop of polls does not.
    #[cold]
    fn watch(&self, left_out: &[ReportCause]) {
        let Some(mut watched) = self.wake_source.watched.try_lock() else { return };
        if !self.awaits_peers() {
            *watched = None;
            return;
        }
        let now = Instant::now();
        watched.take_if(|(_, last)| now - *last > UNWATCHED);
        let (waits, last) = watched.get_or_insert_with(|| (RepeatedWait::begin(), now));
        *last = now;
        if let Some(standing) = waits.check(self.wake_source.events.now(), "")
            && !left_out.contains(&standing.cause)
        {
            let over = self.scheme().name();
            let what = format!("calls or transfers over {over} that peers must end");
            self.progress().report(&Standing { what: &what, ..standing });
        }
    }

    #[inline]
    pub fn notify(&self) {
        self.wake_source.notify(|word| self.wake(word));
    }

    /// Records that something has arrived from the network, or that a peer is lost: transfers may
    /// advance.
    #[inline]
    pub(super) fn stir(&self) {
        let WakeSource { moving, resting, .. } = &self.wake_source;
        if moving.load(Ordering::Acquire) > 0 && resting.end_round() {
            self.notify();
        }
    }

    #[cold]
    fn wake(&self, word: &AtomicU32) {
        futex::wake_all(word);
        if let Some(engine) = self.engine() {
            engine.wake_sleepers();
        }
        if let Some(plugin) = &self.plugin {
            plugin.wake();
        }
    }

    pub(super) fn wakes(&self) -> bool {
        self.plugin.as_ref().is_some_and(|plugin| plugin.capabilities().wakes)
    }

    /// Sleeps in the network until an event, at most for `nap`; but not at all if the final `check`
    /// returns true. Returns the result of `check`.
    fn sleep_in_network(
        &self,
        nap: Duration,
        check: impl FnOnce() -> Result<bool>,
    ) -> Result<bool> {
        let Some(plugin) = &self.plugin else { return check() };
        let events = &self.wake_source.events;
        let checked = || {
            plugin.prepare_sleep();
            check()
        };
        events.sleep(checked, |word, value| {
            if !plugin.sleep(nap) {
                return futex::wait(word, value, nap);
            }
            if events.sleepers() > 1 {
                // No thread sleeps in the network now, so one of the others must.
                word.fetch_add(1, Ordering::SeqCst);
                futex::wake_all(word);
            }
        })
    }

    /// Marks the thread as active between waits, so that other ranks need not wake the progress
    /// thread. Not for active-message handlers.
    #[inline]
    pub(crate) fn attend(self: &Arc<Shared>) -> Result<()> {
        if let Some(engine) = self.engine() {
            let turn = self.wake_source.turns.load(Ordering::Relaxed).wrapping_add(1);
            self.wake_source.turns.store(turn, Ordering::Relaxed);
            engine.attend();
            if turn.is_multiple_of(POLL_EVERY) && engine.check_admits().is_ok() {
                self.poll()?;
            }
        }
        Ok(())
    }

    /// Creates a descriptor that becomes readable on every event of the class, or `None` if the
    /// network must be polled. Returns `NODEV` if the process has too many open files.
    pub(super) fn new_descriptor(&self) -> Result<Option<Arc<Descriptor>>> {
        let network = match &self.plugin {
            None if self.engine().is_none_or(|e| e.has_thread() || e.size() == 1) => None,
            Some(plugin) if plugin.capabilities().wakes && plugin.descriptor().is_some() => {
                plugin.descriptor()
            }
            _ => return Ok(None),
        };
        self.wake_source.descriptors.add(network).map(Some)
    }

    pub(super) fn arm(self: &Arc<Shared>, descriptor: &Descriptor) -> bool {
        self.wake_source.descriptors.arm(descriptor);
        if let Some(plugin) = &self.plugin {
            plugin.prepare_sleep();
            if !matches!(self.poll(), Ok(false)) {
                return true;
            }
        }
        self.has_wanted() || self.must_poll()
    }

    /// Returns whether a pending operation will complete without a notification.
    fn must_poll(&self) -> bool {
        self.wake_source.must_poll() || self.engine().is_some_and(|engine| engine.is_held_up())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::na::Class;

    #[test]
    fn sleepers_wake_and_waits_end_in_time() {
        let class = Class::new("self", false).unwrap();
        let shared = &class;
        let begun = Instant::now();
        let mut short = Deadline::after(Duration::from_millis(30));
        assert!(!shared.until(&mut short, || Ok(false)).unwrap());
        assert!(short.is_over());
        assert!(begun.elapsed() >= Duration::from_millis(30));
        let ready = AtomicU32::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(60));
                ready.store(1, Ordering::SeqCst);
                shared.notify();
            });
            // This timeout exceeds every nap, so only the notification can end the wait.
            let mut long = Deadline::after(Duration::from_secs(30));
            let done = || Ok(ready.load(Ordering::SeqCst) == 1);
            assert!(shared.until(&mut long, done).unwrap());
        });
        assert!(begun.elapsed() < Duration::from_secs(20));
        class.finalize().unwrap();
    }
}
