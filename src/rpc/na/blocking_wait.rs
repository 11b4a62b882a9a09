//! Waiting in function shipping: a server that has nothing to do must cost nothing, and
//! wake at once.
//!
//! A waiting thread polls for a while, then yields, then takes short naps, as all waits of
//! the engine do. A class that has received nothing for [`SHORT_FOR`] sleeps longer, in
//! this wait and in those that follow: until a doorbell of the node's rings, until another
//! thread notifies the class's [`WakeSource`], or for the idle interval of the progress
//! thread, after which MPI is polled. First it is a part of it, which grows with the idle time; where this
//! library has no messages in MPI, only operations of the program itself can need the poll, and the time
//! grows to eight times the interval.
//!
//! Invariant: a thread that makes the condition of a wait true calls [`WakeSource::notify`]
//! afterwards ([`super::eventcount`]).

use super::class::Shared;
use super::eventcount::EventCount;
use crate::futex;
use crate::rpc::failure::Result;
use crate::runtime::Engine;
use crate::wait::{Backoff, Boot, Ends, LONGEST_NAP, Patience, Progress, Unlocked, Waiting};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a wait yields its core before it naps. A nap ends when the doorbell rings and
/// costs one wake-up; a yielding thread competes for the core with the rank it waits for.
const YIELD_FOR: Duration = Duration::from_micros(200);
/// How long it takes short naps before it sleeps longer.
const SHORT_FOR: Duration = Duration::from_millis(2);
/// A longer sleep takes this part of the time for which nothing has come, so that what then comes
/// by MPI is not served much later.
const SHARE: u32 = 16;
/// A thread that sends or runs callbacks polls once in this many steps.
const POLL_EVERY: u32 = 16;
/// How long a thread sleeps where every event comes with a wake-up.
const ALONE: Duration = Duration::from_millis(250);

/// Wakes the waiting threads of a class.
#[derive(Debug, Default)]
pub(crate) struct WakeSource {
    events: EventCount,
    /// Transfers whose end comes without a notification: a waiting thread must poll.
    moving: AtomicUsize,
    /// Steps of threads that send or run callbacks; need not be exact.
    turns: AtomicU32,
    idle: Idle,
}

/// Start of the idle period and the event count at that moment, in one word, so that it
/// needs no lock; its length picks the back-off of every waiting thread.
#[derive(Debug)]
struct Idle {
    /// Zero, or the event count in the upper half and the start in ticks in the lower one.
    since: AtomicU64,
    beginning: Instant,
}

/// A tick is 16.4 us; the ticks wrap after 19 hours, and then one wait begins with short
/// naps again.
const TICK: u32 = 14;

impl Default for Idle {
    fn default() -> Idle {
        Idle { since: AtomicU64::new(0), beginning: Instant::now() }
    }
}

impl Idle {
    /// How long the idle period lasts, if it began at this event count.
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

    /// Never zero, which stands for no idle period.
    fn ticks(&self) -> u32 {
        ((self.beginning.elapsed().as_nanos() >> TICK) as u32).max(1)
    }
}

impl WakeSource {
    /// The condition of a wait may have become true.
    #[inline]
    pub(crate) fn notify(&self, engine: Option<&Engine>) {
        self.events.notify(|word| wake(word, engine));
    }

    /// A transfer begins whose end must be polled for.
    pub(crate) fn transfer_begins(&self) {
        self.moving.fetch_add(1, Ordering::Release);
    }

    /// It has ended.
    pub(crate) fn transfer_ends(&self) {
        self.moving.fetch_sub(1, Ordering::Release);
    }

    /// How long nothing has happened, as far as waiting threads have seen.
    fn idle_for(&self, count: u32) -> Duration {
        self.idle.lasts(count).unwrap_or(Duration::ZERO)
    }

    /// An idle period begins, unless one lasts already; its length.
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

#[cold]
fn wake(word: &AtomicU32, engine: Option<&Engine>) {
    futex::wake_all(word);
    if let Some(engine) = engine {
        engine.wake_sleepers();
    }
}

/// When a wait is to end. Most end at once, so the clock is read late, and the time begins
/// with the first reading.
#[derive(Debug)]
pub(crate) struct Deadline {
    timeout: Duration,
    /// None in it: never.
    end: Option<Option<Instant>>,
}

impl Deadline {
    /// After so long.
    pub(crate) fn after(timeout: Duration) -> Deadline {
        Deadline { timeout, end: None }
    }

    /// A deadline that is no later than this one.
    pub(crate) fn within(&mut self, time: Duration) -> Deadline {
        let left = self.left();
        Deadline::after(left.min(time))
    }

    /// Whether a single poll is all.
    pub(crate) fn is_now(&self) -> bool {
        self.timeout.is_zero()
    }

    /// The time left; without a time-out, the longest that a thread may sleep.
    fn left(&mut self) -> Duration {
        let now = Instant::now();
        let end = *self.end.get_or_insert_with(|| now.checked_add(self.timeout));
        end.map_or(ALONE, |end| end.saturating_duration_since(now))
    }

    /// Whether the time is over.
    pub(crate) fn is_over(&mut self) -> bool {
        self.is_now() || self.left().is_zero()
    }
}

/// Waits until `done` is true or the time is over, making progress; polls at least once.
/// Returns whether `done` was true. An idle server waits for long, so the watchdog does not
/// observe this wait.
///
/// # Errors
/// Those of `done` and of progress; `FAIL` in a handler of active messages.
pub(crate) fn until(
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
    let progress = class.progress();
    let wake_source = &class.wake_source;
    let _waiting = Waiting::begin(progress)?;
    let was_idle = wake_source.idle_for(wake_source.events.now()) >= SHORT_FOR;
    let mut patience = Patience { yields: YIELD_FOR, ..progress.patience(Ends::Polled) };
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
        // The clock is not read while answers come at once.
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
        if idle < SHORT_FOR || class.must_poll() {
            backoff.rest(progress, idle, left);
        } else {
            let check = || Ok(class.poll()? | done()?);
            if sleep(class, idle, left, check)? && done()? {
                return Ok(true);
            }
        }
    }
}

/// A single poll for callers with a time-out of zero, whose loop is in effect a wait.
fn poll_once(class: &Arc<Shared>) -> Result<()> {
    let engine = class.engine();
    let _unlocked = Unlocked::begin(class.progress());
    engine.inspect(|engine| engine.attend());
    // MPI may need more than one call to bring a message up.
    let busy = class.poll()? || class.poll()?;
    engine.inspect(|engine| engine.looked(busy));
    Ok(())
}

/// Sleeps until another thread or rank wakes the class, at most so long that MPI is polled
/// often enough; not at all where the last check finds something. Returns what it has found.
fn sleep(
    class: &Shared,
    idle: Duration,
    left: Duration,
    check: impl FnOnce() -> Result<bool>,
) -> Result<bool> {
    let long = match class.engine() {
        None => ALONE,
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

    /// Wakes the waiting threads of the class.
    #[inline]
    pub(crate) fn notify(&self) {
        self.wake_source.notify(self.engine());
    }

    /// The thread sends or runs callbacks, and makes progress in between: other ranks need
    /// not wake the progress thread. Not in a handler of active messages.
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

    /// Whether an operation is pending whose end comes without a notification.
    fn must_poll(&self) -> bool {
        self.wake_source.moving.load(Ordering::Acquire) > 0
            || self.engine().is_some_and(|engine| engine.is_held_up())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::na::Class;

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
                shared.wake_source.notify(None);
            });
            // Much longer than any nap: only the notification ends it.
            let mut long = Deadline::after(Duration::from_secs(30));
            let done = || Ok(ready.load(Ordering::SeqCst) == 1);
            assert!(until(shared, &mut long, done).unwrap());
        });
        assert!(begun.elapsed() < Duration::from_secs(20));
        class.finalize().unwrap();
    }
}
