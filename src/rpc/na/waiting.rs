//! Waiting in function shipping: servers that have nothing to do must cost nothing, and
//! wake at once.
//!
//! Who waits polls for a while, then yields, then takes short naps, as all waits of the
//! engine do. A class that has heard nothing for [`SHORT_FOR`] sleeps longer, in this
//! wait and in those that follow: until the bell of the node's rings, until [`News`]
//! tells it that another thread has brought something, or for the idle time of the
//! progress thread, after which MPI is looked at (twice that where this library has no
//! messages there).
//!
//! Invariant: whoever changes what a waiting thread waits for calls [`News::tell`]
//! afterwards ([`super::changes`]).

use super::changes::Changes;
use super::class::Shared;
use crate::futex;
use crate::rpc::failure::Result;
use crate::runtime::Engine;
use crate::wait::Progress;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a wait yields its core before it naps. Naps end with the bell, so they cost
/// a wake-up and no more, while who yields keeps the core from whom it waits for.
const YIELD_FOR: Duration = Duration::from_micros(200);
/// How long it takes short naps before it sleeps longer.
const SHORT_FOR: Duration = Duration::from_millis(2);
const FIRST_NAP: Duration = Duration::from_micros(20);
const LONGEST_NAP: Duration = Duration::from_micros(100);
/// How long others count as heard of lately, where MPI must be looked at.
const LATELY: Duration = Duration::from_millis(100);
/// So many steps of a thread that sends or runs callbacks go with one poll.
const POLL_EVERY: u32 = 16;
/// Sleeps where nobody else can bring anything but who wakes us.
const ALONE: Duration = Duration::from_millis(250);

/// Tells waiting threads of a class that something has changed.
#[derive(Debug, Default)]
pub struct News {
    changes: Changes,
    /// Transfers whose end nobody tells of: who waits must look.
    moving: AtomicUsize,
    /// Steps of threads that send or run callbacks; it need not be exact.
    turns: AtomicU32,
    idle: Idle,
}

/// Since when there was nothing, and at which count of changes: how long that is, all
/// waits go by, so that it needs no lock.
#[derive(Debug)]
struct Idle {
    /// Zero, or the count in the upper half and the ticks since the beginning below.
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
    /// How long there was nothing, where that began at this count.
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

    /// Never zero, which would look like none.
    fn ticks(&self) -> u32 {
        ((self.beginning.elapsed().as_nanos() >> TICK) as u32).max(1)
    }
}

impl News {
    /// Something has changed.
    #[inline]
    pub fn tell(&self, engine: Option<&Engine>) {
        self.changes.tell(|word| wake(word, engine));
    }

    /// A transfer begins that must be looked after.
    pub fn transfer_begins(&self) {
        self.moving.fetch_add(1, Ordering::Release);
    }

    /// It has ended.
    pub fn transfer_ends(&self) {
        self.moving.fetch_sub(1, Ordering::Release);
    }

    /// How long nothing has happened, as far as waits have seen.
    fn idle_for(&self, count: u32) -> Duration {
        self.idle.lasts(count).unwrap_or(Duration::ZERO)
    }

    /// Nothing happens from now on, unless that is known since earlier.
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

/// Says that a thread waits, and that it does not any more.
struct Waiting<'a>(Option<&'a Engine>);

impl<'a> Waiting<'a> {
    fn begin(engine: Option<&'a Engine>) -> Result<Waiting<'a>> {
        if let Some(engine) = engine {
            engine.may_wait()?;
            engine.waiting(true);
        }
        Ok(Waiting(engine))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(engine) = self.0 {
            engine.waiting(false);
        }
    }
}

/// When a wait is to end. Most end at once, so the clock is looked at late, and the time
/// begins with the first look.
#[derive(Debug)]
pub(crate) struct Deadline {
    timeout: Duration,
    /// None in it: never.
    end: Option<Option<Instant>>,
}

impl Deadline {
    /// After so long.
    pub fn after(timeout: Duration) -> Deadline {
        Deadline { timeout, end: None }
    }

    /// One that is no later than this one.
    pub fn within(&mut self, time: Duration) -> Deadline {
        let left = self.left();
        Deadline::after(left.min(time))
    }

    /// Whether one look is all.
    pub fn is_now(&self) -> bool {
        self.timeout.is_zero()
    }

    /// How long it still is, and at most so long as one may sleep without a time-out.
    fn left(&mut self) -> Duration {
        let now = Instant::now();
        let end = *self.end.get_or_insert_with(|| now.checked_add(self.timeout));
        end.map_or(ALONE, |end| end.saturating_duration_since(now))
    }

    /// Whether the time is over.
    pub fn is_over(&mut self) -> bool {
        self.is_now() || self.left().is_zero()
    }
}

/// Waits until `done` says so or the time is over, making progress; at least one look
/// is taken. True where `done` has said so. An idle server waits for long, so the
/// watchdog says nothing here.
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
        look_once(class)?;
        return done();
    }
    let engine = class.engine();
    let news = &class.news;
    let _waiting = Waiting::begin(engine)?;
    let mut spin = engine.map_or(50, Progress::spin);
    if news.idle_for(news.changes.now()) >= SHORT_FOR {
        spin = 0;
    }
    let (mut polls, mut nap, mut was_idle) = (0, FIRST_NAP, false);
    loop {
        let count = news.changes.now();
        let busy = class.poll()?;
        if done()? {
            return Ok(true);
        }
        polls += 1;
        if busy {
            (polls, nap) = (polls & 15, FIRST_NAP);
            if std::mem::take(&mut was_idle) {
                news.idle_ends();
            }
        }
        // The clock is not looked at where answers come at once.
        if polls & 15 != 0 && polls <= spin {
            continue;
        }
        let left = deadline.left();
        if left.is_zero() {
            return Ok(false);
        }
        if busy || polls <= spin {
            continue;
        }
        let idle = news.idle_begins(count);
        was_idle = true;
        if idle < YIELD_FOR {
            std::thread::yield_now();
        } else if idle < SHORT_FOR || class.must_look() {
            match engine {
                Some(engine) => engine.nap(nap.min(left)),
                None => std::thread::sleep(nap.min(left)),
            }
            nap = (nap * 2).min(LONGEST_NAP);
        } else {
            let look = || Ok(class.poll()? | done()?);
            if sleep(class, idle, left, look)? && done()? {
                return Ok(true);
            }
        }
    }
}

/// One look, for who polls in a loop: which need not wait to be one who waits.
fn look_once(class: &Arc<Shared>) -> Result<()> {
    let engine = class.engine();
    engine.inspect(|engine| engine.attend());
    // MPI may need more than one call to bring a message up.
    let busy = class.poll()? || class.poll()?;
    engine.inspect(|engine| engine.looked(busy));
    Ok(())
}

/// Sleeps until somebody wakes the class, at most so long that MPI is looked at often
/// enough; not at all where the last look finds something, which is said.
fn sleep(
    class: &Shared,
    idle: Duration,
    left: Duration,
    look: impl FnOnce() -> Result<bool>,
) -> Result<bool> {
    let longest = match class.engine() {
        None => ALONE,
        Some(engine) if idle < LATELY => engine.idle_poll() / 8,
        Some(engine) if engine.has_messages() => engine.idle_poll(),
        // Nobody but the program itself can have anything under way in MPI.
        Some(engine) => engine.idle_poll() * 2,
    };
    let nap = longest.max(LONGEST_NAP).min(left);
    class.news.changes.sleep(look, |word, value| match class.engine() {
        Some(engine) => {
            engine.sleep_long(word, value, nap, || word.load(Ordering::SeqCst) != value);
        }
        None => futex::wait(word, value, nap),
    })
}

impl Shared {
    /// Tells waiting threads that something has changed.
    #[inline]
    pub(crate) fn tell(&self) {
        self.news.tell(self.engine());
    }

    /// The thread sends or runs something, and makes progress in between: others need
    /// not wake the progress thread. Not in a handler of active messages.
    #[inline]
    pub(crate) fn attend(self: &Arc<Shared>) -> Result<()> {
        if let Some(engine) = self.engine() {
            let turn = self.news.turns.load(Ordering::Relaxed).wrapping_add(1);
            self.news.turns.store(turn, Ordering::Relaxed);
            engine.attend();
            if turn.is_multiple_of(POLL_EVERY) {
                self.poll()?;
            }
        }
        Ok(())
    }

    /// Whether something is under way whose end nobody tells of.
    fn must_look(&self) -> bool {
        self.news.moving.load(Ordering::Acquire) > 0
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
        let told = AtomicU32::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(60));
                told.store(1, Ordering::SeqCst);
                shared.news.tell(None);
            });
            // Much longer than any nap: only the news ends it.
            let mut long = Deadline::after(Duration::from_secs(30));
            let done = || Ok(told.load(Ordering::SeqCst) == 1);
            assert!(until(shared, &mut long, done).unwrap());
        });
        assert!(begun.elapsed() < Duration::from_secs(20));
        class.finalize().unwrap();
    }
}
