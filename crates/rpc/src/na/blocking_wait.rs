//! Blocking waits: an idle server uses no CPU time, and yet wakes immediately.
//!
//! A waiting thread polls, then takes short naps like all waits of the engine. After a class has
//! received nothing for [`CLASS_SLEEPS`], the sleeps become longer, up to the progress thread's idle
//! interval, because MPI must be polled. If the library itself has no messages in MPI, only the
//! program's operations need the poll, and the limit is eight times the interval. A doorbell of the
//! node's rings or a thread that notifies the class's [`WakeSource`] ends a sleep.
//!
//! If every event of the network wakes a sleeping thread ([`Capabilities::wakes`]), a waiting
//! thread polls for [`NETWORK_POLLS`] and then sleeps until an event. One thread sleeps in the network,
//! and wakes the others when it leaves.
//!
//! Transfers that wait for a peer of that network do not require polls ([`super::resting`]).
//!
//! [`Capabilities::wakes`]: super::plugin::Capabilities::wakes
//!
//! Invariant: a thread that makes the condition of a wait true calls [`WakeSource::notify`]
//! afterwards ([`super::eventcount`]).

use super::class::Shared;
use super::eventcount::EventCount;
use super::resting::{Resting, Round};
use super::wait_descriptor::{Descriptor, Descriptors};
use crate::failure::Result;
use portolan_engine::futex;
use portolan_engine::wait::times::{
    CHUNK_POLLS, CLASS_POLLS, CLASS_SLEEPS, LONGEST_NAP, NETWORK_POLLS, UNDISTURBED,
};
use portolan_engine::wait::{Backoff, Boot, Ends, Patience, Progress, Unlocked, Waiting};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A long sleep lasts 1/`SHARE` of the idle time so far (within the limits in `sleep`), so that a
/// message that arrives through MPI is not delayed much further.
const SHARE: u32 = 16;
/// A thread that sends or runs callbacks polls once in this many steps.
const POLL_EVERY: u32 = 16;

#[derive(Debug, Default)]
pub(crate) struct WakeSource {
    events: EventCount,
    /// File descriptors that programs wait for instead of sleeping here.
    pub(super) descriptors: Descriptors,
    /// Number of transfers. Waiting threads must poll for those that do not rest.
    moving: AtomicUsize,
    resting: Resting,
    /// Steps of threads that send or run callbacks; approximate.
    turns: AtomicU32,
    idle: Idle,
}

/// The start of the idle period and the event count at that time, packed into one word so that no
/// lock is needed. The length of the idle period determines the back-off of every waiting thread.
#[derive(Debug)]
struct Idle {
    /// Zero, or the event count in the upper half and the start time in ticks in the lower half.
    since: AtomicU64,
    beginning: Instant,
}

/// Binary logarithm of a tick in nanoseconds: a tick is 16.4 us. The ticks wrap after 19 hours; one
/// wait then starts with short naps again.
const TICK: u32 = 14;

impl Default for Idle {
    fn default() -> Idle {
        Idle { since: AtomicU64::new(0), beginning: Instant::now() }
    }
}

impl Idle {
    fn lasts(&self, count: u32) -> Option<Duration> {
        let since = self.since.load(Ordering::Relaxed);
        if since == 0 || (since >> 32) as u32 != count {
            return None;
        }
        let ticks = self.ticks().wrapping_sub(since as u32);
        Some(Duration::from_nanos(u64::from(ticks) << TICK))
    }

    fn begin(&self, count: u32) {
        let since = u64::from(count) << 32 | u64::from(self.ticks());
        self.since.store(since, Ordering::Relaxed);
    }

    fn end(&self) {
        self.since.store(0, Ordering::Relaxed);
    }

    /// Returns the time in ticks, but never zero, which means that no idle period lasts.
    fn ticks(&self) -> u32 {
        ((self.beginning.elapsed().as_nanos() >> TICK) as u32).max(1)
    }
}

impl WakeSource {
    /// Announces that the condition of a wait may have become true.
    #[inline]
    fn notify(&self, wake: impl FnOnce(&AtomicU32)) {
        self.events.notify(wake);
        self.descriptors.notify();
    }

    /// Records the start of a transfer, before it is examined for the first time.
    pub(crate) fn transfer_begins(&self) {
        self.moving.fetch_add(1, Ordering::Release);
    }

    /// Records the end of a transfer that does not rest.
    pub(crate) fn transfer_ends(&self) {
        self.moving.fetch_sub(1, Ordering::Release);
    }

    /// Returns the current round, before a transfer is examined.
    pub(super) fn round(&self) -> Round {
        self.resting.round()
    }

    /// Ends the earlier rest of a transfer, and begins a rest in `round`, if any. Returns the
    /// round of the new rest.
    pub(super) fn rest(&self, earlier: Option<Round>, round: Option<Round>) -> Option<Round> {
        if earlier == round {
            return round;
        }
        earlier.into_iter().for_each(|round| self.resting.end(round));
        round.filter(|round| self.resting.begin(*round))
    }

    fn must_poll(&self) -> bool {
        self.moving.load(Ordering::Acquire) > self.resting.count()
    }

    fn spin_for(&self) -> Duration {
        if self.moving.load(Ordering::Relaxed) > 0 { CHUNK_POLLS } else { NETWORK_POLLS }
    }

    fn idle_for(&self, count: u32) -> Duration {
        self.idle.lasts(count).unwrap_or(Duration::ZERO)
    }

    /// Starts an idle period unless one already lasts, and returns its length so far.
    fn idle_begins(&self, count: u32) -> Duration {
        self.idle.lasts(count).unwrap_or_else(|| {
            self.idle.begin(count);
            Duration::ZERO
        })
    }

    fn idle_ends(&self) {
        self.idle.end();
    }
}

/// The deadline of a wait. Most waits end immediately, so the clock is first read late, and the
/// timeout counts from that reading.
#[derive(Debug)]
pub struct Deadline {
    timeout: Duration,
    /// `None` until the clock is first read; the inner `None` means no deadline.
    end: Option<Option<Instant>>,
}

impl Deadline {
    pub fn after(timeout: Duration) -> Deadline {
        Deadline { timeout, end: None }
    }

    /// Returns a deadline no later than this one and at most `time` from now.
    pub fn within(&mut self, time: Duration) -> Deadline {
        let left = self.left();
        Deadline::after(left.min(time))
    }

    pub(crate) fn is_now(&self) -> bool {
        self.timeout.is_zero()
    }

    /// Returns the remaining time, or the maximum sleep if there is no deadline.
    fn left(&mut self) -> Duration {
        let now = Instant::now();
        let end = *self.end.get_or_insert_with(|| now.checked_add(self.timeout));
        end.map_or(UNDISTURBED, |end| end.saturating_duration_since(now))
    }

    pub fn is_over(&mut self) -> bool {
        self.is_now() || self.left().is_zero()
    }
}

/// Makes progress until `done` returns true or the deadline passes. Returns whether it did. The
/// watchdog does not observe this wait, because an idle server may wait for long. Returns the
/// errors of `done` and of progress, and `FAIL` in an active-message handler.
pub fn until(
    class: &Arc<Shared>,
    deadline: &mut Deadline,
    mut done: impl FnMut() -> Result<bool>,
) -> Result<bool> {
    if done()? {
        return Ok(true);
    }
    if deadline.is_now() {
        poll_once(class)?;
        return done();
    }
    if class.wakes() {
        return until_woken(class, deadline, done);
    }
    let progress = class.progress();
    let wake_source = &class.wake_source;
    let _waiting = Waiting::begin(progress)?;
    let was_idle = wake_source.idle_for(wake_source.events.now()) >= CLASS_SLEEPS;
    let mut patience = Patience { polls: CLASS_POLLS, ..progress.patience(Ends::Polled) };
    if was_idle {
        patience.spin = 0;
    }
    let mut backoff = Backoff::new(patience);
    let (mut polls, mut was_idle) = (0u32, false);
    loop {
        let count = wake_source.events.now();
        let busy = class.poll()?;
        if done()? {
            return Ok(true);
        }
        if busy {
            backoff.reset();
            if std::mem::take(&mut was_idle) {
                wake_source.idle_ends();
            }
        }
        let again = busy || backoff.spins();
        polls = polls.wrapping_add(1);
        // While progress is continuous, the clock is read only at every 16th poll.
        if again && !polls.is_multiple_of(16) {
            continue;
        }
        let left = deadline.left();
        if left.is_zero() {
            return Ok(false);
        }
        if again {
            continue;
        }
        let idle = wake_source.idle_begins(count);
        was_idle = true;
        if idle < CLASS_SLEEPS || class.must_poll() {
            backoff.rest(progress, idle, left);
        } else {
            let check = || Ok(class.poll()? | done()?);
            if sleep(class, idle, left, check)? && done()? {
                return Ok(true);
            }
        }
    }
}

/// Implements [`until`] for a network that wakes sleeping threads.
fn until_woken(
    class: &Arc<Shared>,
    deadline: &mut Deadline,
    mut done: impl FnMut() -> Result<bool>,
) -> Result<bool> {
    let (mut since, mut polls) = (None, 0u32);
    loop {
        let busy = class.poll()?;
        if done()? {
            return Ok(true);
        }
        polls = polls.wrapping_add(1);
        if busy {
            since = None;
        } else if polls.is_multiple_of(16) {
            let begun = *since.get_or_insert_with(Instant::now);
            if begun.elapsed() >= class.wake_source.spin_for() {
                let left = deadline.left();
                if left.is_zero() {
                    return Ok(false);
                }
                if class.sleep_in_network(left.min(UNDISTURBED), || Ok(class.poll()? | done()?))?
                    && done()?
                {
                    return Ok(true);
                }
                since = None;
            }
        }
        std::hint::spin_loop();
    }
}

/// Polls once for a caller with a timeout of zero, which typically calls this in a loop.
fn poll_once(class: &Arc<Shared>) -> Result<()> {
    let engine = class.engine();
    let _unlocked = Unlocked::begin(class.progress());
    engine.inspect(|engine| engine.attend());
    // MPI may need more than one call to deliver a message.
    let busy = class.poll()? || class.poll()?;
    engine.inspect(|engine| engine.looked(busy));
    Ok(())
}

/// Sleeps until another thread or rank wakes the class, or until MPI must be polled again. Does not
/// sleep if the final `check` returns true. Returns the result of `check`.
fn sleep(
    class: &Shared,
    idle: Duration,
    left: Duration,
    check: impl FnOnce() -> Result<bool>,
) -> Result<bool> {
    let long = match class.engine() {
        None => UNDISTURBED,
        Some(engine) => {
            let interval = engine.idle_poll();
            let longest = if engine.has_messages() { interval } else { interval * 8 };
            (idle / SHARE).clamp(interval / 8, longest)
        }
    };
    let nap = long.max(LONGEST_NAP).min(left);
    class.wake_source.events.sleep(check, |word, value| match class.engine() {
        Some(engine) => {
            engine.sleep_long(word, value, nap, || word.load(Ordering::SeqCst) != value);
        }
        None => futex::wait(word, value, nap),
    })
}

impl Shared {
    fn progress(&self) -> &dyn Progress {
        match self.engine() {
            Some(engine) => engine,
            None => &Boot,
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

    /// Sleeps in the network until an event, at most for `nap`; otherwise like [`sleep`].
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
        let shared = &class.shared;
        let begun = Instant::now();
        let mut short = Deadline::after(Duration::from_millis(30));
        assert!(!until(shared, &mut short, || Ok(false)).unwrap());
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
            assert!(until(shared, &mut long, done).unwrap());
        });
        assert!(begun.elapsed() < Duration::from_secs(20));
        class.finalize().unwrap();
    }
}
