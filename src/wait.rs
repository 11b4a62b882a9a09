//! Waiting without hurting others.
//!
//! Ranks and progress threads share cores, so a waiting call polls for a short
//! while, then yields its core between polls, and at last naps between polls,
//! longer and longer. Every poll makes progress for other ranks too: a rank that
//! waits is a rank that serves.
//!
//! Where ranks outnumber cores, polls of many ranks that wait keep the core from the one that they
//! wait for ([`Patience`]): they share the polls and the time of one; naps grow with the time that
//! nothing has happened; and a thread that waits for a word, which another rank wakes, sleeps
//! and polls once in a while ([`Ends`]), unless others ask its rank for something.
//!
//! Invariant: nothing in the crate blocks inside MPI while another rank may need
//! this one, and no wait is silent: when it takes too long it reports what it
//! waits for ([`crate::watchdog`]).

use crate::error::Result;
use crate::futex;
use crate::trace::{self, Awaited, Observer};
use crate::watchdog::{self, Event, Standing, Watch};
use patience::FIRST_NAP;
pub(crate) use patience::{Ends, LONGEST_NAP, Naps, Patience};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
pub(crate) use turns::Turns;

mod patience;
mod turns;

/// A lock that is given up for a wait: how often it was taken.
#[derive(Debug)]
#[must_use]
pub struct GivenUp(pub(crate) u32);

/// What a waiting call polls.
pub trait Progress {
    /// Serves other ranks and completes own operations; true when anything
    /// happened. Never blocks.
    fn poll(&self) -> Result<bool>;

    /// Sleeps for up to `nap`; returns early when another rank rings.
    fn nap(&self, nap: Duration) {
        std::thread::sleep(nap);
    }

    /// Sleeps for up to `nap` while `word` is `value`; ends when a thread wakes the
    /// word.
    fn nap_on(&self, word: &AtomicU32, value: u32, nap: Duration) {
        futex::wait(word, value, nap);
    }

    /// How a thread waits.
    fn patience(&self, ends: Ends) -> Patience {
        if ends == Ends::Meeting { Patience::MEETING } else { Patience::POLLING }
    }

    /// Whether the caller may wait at all: an error where others depend on it.
    fn may_wait(&self) -> Result<()> {
        Ok(())
    }

    /// What is told of waits.
    fn told_by(&self) -> Option<&Observer>;

    /// Called when a wait begins and ends, so that a progress thread can stand
    /// back meanwhile.
    fn waiting(&self, _begins: bool) {}

    /// Called before a wait: gives up a lock that the caller holds between waits only.
    fn give_up(&self) -> Option<GivenUp> {
        None
    }

    /// Called after the wait: takes it again.
    fn take_again(&self, _given_up: GivenUp) {}

    /// Whether the caller is the one of its node to warn of a collective that takes long.
    fn may_warn(&self) -> bool {
        true
    }

    /// Reports a wait.
    fn report(&self, standing: &Standing<'_>) {
        let pending = crate::process::pending();
        standing.report(&pending.unwrap_or_else(|| "nothing, the runtime is starting".into()));
    }
}

/// Makes the wait of a layer that of the layer below it, by `Deref`.
macro_rules! progress_by_deref {
    ($layer:ty) => {
        impl $crate::wait::Progress for $layer {
            #[inline]
            fn poll(&self) -> $crate::error::Result<bool> {
                $crate::wait::Progress::poll(&**self)
            }
            fn nap(&self, nap: std::time::Duration) {
                $crate::wait::Progress::nap(&**self, nap);
            }
            fn nap_on(
                &self,
                word: &std::sync::atomic::AtomicU32,
                value: u32,
                nap: std::time::Duration,
            ) {
                $crate::wait::Progress::nap_on(&**self, word, value, nap);
            }
            fn patience(&self, ends: $crate::wait::Ends) -> $crate::wait::Patience {
                $crate::wait::Progress::patience(&**self, ends)
            }
            #[inline]
            fn may_wait(&self) -> $crate::error::Result<()> {
                $crate::wait::Progress::may_wait(&**self)
            }
            fn told_by(&self) -> Option<&$crate::trace::Observer> {
                $crate::wait::Progress::told_by(&**self)
            }
            fn waiting(&self, begins: bool) {
                $crate::wait::Progress::waiting(&**self, begins);
            }
            #[inline]
            fn give_up(&self) -> Option<$crate::wait::GivenUp> {
                $crate::wait::Progress::give_up(&**self)
            }
            fn take_again(&self, given_up: $crate::wait::GivenUp) {
                $crate::wait::Progress::take_again(&**self, given_up);
            }
            fn report(&self, standing: &$crate::watchdog::Standing<'_>) {
                $crate::wait::Progress::report(&**self, standing);
            }
        }
    };
}
pub(crate) use progress_by_deref;

/// A nap may last this part of the time for which nothing has happened.
const IDLE_SHARE: u32 = 32;

/// The ladder of a thread that finds nothing to do: it polls, then yields its core between
/// polls, and at last naps between them.
#[derive(Debug)]
pub(crate) struct Backoff {
    patience: Patience,
    polls: u32,
    naps: Naps,
}

impl Backoff {
    pub(crate) fn new(patience: Patience) -> Backoff {
        let naps = Naps::new(patience.first_nap, patience.limit);
        Backoff { patience, polls: 0, naps }
    }

    /// Something happened: the thread begins at the foot again.
    pub(crate) fn reset(&mut self) {
        self.polls = 0;
        self.naps = Naps::new(FIRST_NAP, self.patience.limit);
    }

    /// Counts a poll that found nothing; whether the thread polls again at once.
    pub(crate) fn spins(&mut self) -> bool {
        self.polls += 1;
        self.polls <= self.patience.spin
    }

    /// Yields or naps once, as a thread does that has been idle for so long; naps no longer
    /// than `longest`. Whether it was a nap.
    pub(crate) fn rest<P>(&mut self, progress: &P, idle: Duration, longest: Duration) -> bool
    where
        P: Progress + ?Sized,
    {
        let naps = idle >= self.patience.yields;
        if !naps {
            let begun = Instant::now();
            std::thread::yield_now();
            if begun.elapsed() > self.patience.soon {
                self.patience.yields = Duration::ZERO;
            }
        } else {
            let grown = (idle / IDLE_SHARE).max(self.patience.longest_nap);
            progress.nap(self.naps.take_up_to(grown.min(longest).min(self.patience.limit)));
        }
        naps
    }
}

/// Progress before the engine stands: there is nothing to serve.
#[derive(Debug)]
pub struct Boot;

impl Progress for Boot {
    fn told_by(&self) -> Option<&Observer> {
        None
    }
    fn poll(&self) -> Result<bool> {
        Ok(false)
    }
}

/// A thread that polls: it has given up the lock that it holds between waits only, and takes
/// it again at the end.
pub(crate) struct Unlocked<'a, P: Progress + ?Sized>(&'a P, Option<GivenUp>);

impl<'a, P: Progress + ?Sized> Unlocked<'a, P> {
    pub(crate) fn begin(progress: &'a P) -> Unlocked<'a, P> {
        Unlocked(progress, progress.give_up())
    }
}

impl<P: Progress + ?Sized> Drop for Unlocked<'_, P> {
    fn drop(&mut self) {
        if let Some(given_up) = self.1.take() {
            self.0.take_again(given_up);
        }
    }
}

/// A thread that waits, which the progress knows until the end of the wait.
pub(crate) struct Waiting<'a, P: Progress + ?Sized>(Unlocked<'a, P>);

impl<'a, P: Progress + ?Sized> Waiting<'a, P> {
    /// # Errors
    /// `State` where the thread must not wait.
    pub(crate) fn begin(progress: &'a P) -> Result<Waiting<'a, P>> {
        progress.may_wait()?;
        let unlocked = Unlocked::begin(progress);
        progress.waiting(true);
        Ok(Waiting(unlocked))
    }
}

impl<P: Progress + ?Sized> Drop for Waiting<'_, P> {
    fn drop(&mut self) {
        self.0.0.waiting(false);
    }
}

/// Waits until `done` says so, making progress meanwhile. `awaited` is what the statistics count the wait for, and `what`
/// describes it for the watchdog.
///
/// # Errors
/// The first error of `done` or of the progress engine.
pub(crate) fn until<P: Progress + ?Sized>(
    progress: &P,
    awaited: impl Into<Awaited>,
    what: &dyn Fn() -> String,
    mut done: impl FnMut() -> Result<bool>,
) -> Result<()> {
    if done()? {
        return Ok(());
    }
    not_yet(progress, &awaited.into(), what, &mut done)
}

/// The wait, told of to the observer.
fn not_yet<P: Progress + ?Sized>(
    progress: &P,
    awaited: &Awaited,
    what: &dyn Fn() -> String,
    done: &mut dyn FnMut() -> Result<bool>,
) -> Result<()> {
    let Some(observer) = progress.told_by() else {
        return rest_until(progress, awaited.cause, what, done, &mut Rests::default());
    };
    let (begun, mut rests) = (observer.begin(), Rests::default());
    let waited = rest_until(progress, awaited.cause, what, done, &mut rests);
    if rests.naps > 0 {
        trace::count(&observer.always.naps, rests.naps);
    }
    if begun.is_some() || rests.since.is_some() {
        observer.waited(begun, *awaited, rests.since.map(|since| since.elapsed()));
    }
    waited
}

/// When a thread that waits first rested, and how often it napped.
#[derive(Default)]
struct Rests {
    since: Option<Instant>,
    naps: u64,
}

/// The wait itself, once for each kind of progress.
fn rest_until<P: Progress + ?Sized>(
    progress: &P,
    awaited: trace::Cause,
    what: &dyn Fn() -> String,
    done: &mut dyn FnMut() -> Result<bool>,
    rests: &mut Rests,
) -> Result<()> {
    let _waiting = Waiting::begin(progress)?;
    let patience = progress.patience(Ends::Polled);
    let mut backoff = Backoff::new(patience);
    if patience.naps_first {
        rests.since = Some(Instant::now());
        rests.naps += 1;
        backoff.rest(progress, patience.limit, Duration::MAX);
        if done()? {
            return Ok(());
        }
    }
    let mut idle_since: Option<Instant> = None;
    let mut watch = Watch::new();
    if awaited == trace::Cause::Collective {
        watch = watch.warns();
    }
    loop {
        let busy = progress.poll()?;
        if done()? {
            // Short waits are many, and what ends them is noted mostly by itself.
            if idle_since.is_some() {
                watchdog::note(Event::Waited, usize::MAX);
            }
            return Ok(());
        }
        if busy {
            watch.progressed();
            idle_since = None;
            backoff.reset();
            continue;
        }
        if backoff.spins() {
            // Without a pause: a poll takes long enough, and a pause as long again.
            continue;
        }
        let now = Instant::now();
        let since = *idle_since.get_or_insert(now);
        rests.since.get_or_insert(now);
        rests.naps += u64::from(backoff.rest(progress, now - since, Duration::MAX));
        if let Some((cause, waited)) = watch.look(since, now)
            && (cause != watchdog::Cause::Early || progress.may_warn())
        {
            progress.report(&Standing { cause, what: &what(), waited, idle: now - since });
        }
    }
}

/// A progress that naps on a word.
struct OnWord<'a, P: ?Sized> {
    inner: &'a P,
    on: Word<'a>,
}

impl<P: Progress + ?Sized> Progress for OnWord<'_, P> {
    fn poll(&self) -> Result<bool> {
        self.inner.poll()
    }
    fn nap(&self, nap: Duration) {
        let Word { word, value, sleepers, .. } = self.on;
        if let Some(sleepers) = sleepers {
            sleepers.fetch_add(1, Ordering::SeqCst);
        }
        self.inner.nap_on(word, value, nap);
        if let Some(sleepers) = sleepers {
            sleepers.fetch_sub(1, Ordering::SeqCst);
        }
    }
    fn patience(&self, _: Ends) -> Patience {
        self.inner.patience(self.on.ends)
    }
    fn may_warn(&self) -> bool {
        (self.on.warns)()
    }
    fn may_wait(&self) -> Result<()> {
        self.inner.may_wait()
    }
    fn told_by(&self) -> Option<&Observer> {
        self.inner.told_by()
    }
    fn waiting(&self, begins: bool) {
        self.inner.waiting(begins);
    }
    fn give_up(&self) -> Option<GivenUp> {
        self.inner.give_up()
    }
    fn take_again(&self, given_up: GivenUp) {
        self.inner.take_again(given_up);
    }
    fn report(&self, standing: &Standing<'_>) {
        self.inner.report(standing);
    }
}

/// A word of shared memory that a wait sleeps on.
pub(crate) struct Word<'a> {
    /// The word.
    pub word: &'a AtomicU32,
    /// A thread sleeps while the word has this value.
    pub value: u32,
    /// Counts the threads that sleep on the word, for wakers that would save the call.
    pub sleepers: Option<&'a AtomicU32>,
    /// What ends the wait.
    pub ends: Ends,
    /// Whether the caller is the one of its node to warn of a wait that takes long.
    pub warns: &'a dyn Fn() -> bool,
}

/// As [`until`], asleep on a word where a plain wait would nap: ends as soon as a thread
/// changes the word and wakes it.
pub(crate) fn on_word<P: Progress + ?Sized>(
    progress: &P,
    awaited: impl Into<Awaited>,
    what: &dyn Fn() -> String,
    on: Word<'_>,
    done: impl FnMut() -> Result<bool>,
) -> Result<()> {
    until(&OnWord { inner: progress, on }, awaited, what, done)
}

/// Waits while a word of shared memory is `value`; sleeps on the word where a
/// plain wait would nap. A thread that changes the word wakes it, unless `sleepers`
/// is zero.
pub(crate) fn while_equal<P: Progress + ?Sized>(
    progress: &P,
    awaited: impl Into<Awaited>,
    what: &dyn Fn() -> String,
    word: &AtomicU32,
    value: u32,
    sleepers: Option<&AtomicU32>,
    ends: Ends,
) -> Result<()> {
    let on = Word { word, value, sleepers, ends, warns: &|| true };
    on_word(progress, awaited, what, on, || Ok(word.load(Ordering::Acquire) != value))
}

/// [`on_word`] of a wait that a thread ends by changing the word.
pub(crate) fn until_on<P: Progress + ?Sized>(
    progress: &P,
    awaited: impl Into<Awaited>,
    what: &dyn Fn() -> String,
    (word, value): (&AtomicU32, u32),
    done: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let on = Word { word, value, sleepers: None, ends: Ends::Woken, warns: &|| true };
    on_word(progress, awaited, what, on, done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Cause;
    use std::cell::Cell;

    #[test]
    fn waits_until_done_and_stops_on_errors() {
        let n = Cell::new(0);
        until(&Boot, Cause::Other, &|| "a count".into(), || {
            n.set(n.get() + 1);
            Ok(n.get() == 100)
        })
        .unwrap();
        assert_eq!(n.get(), 100);
        let failed = until(&Boot, Cause::Other, &String::new, || {
            Err(crate::error::Error::new(crate::error::ErrorKind::Internal, "x"))
        });
        assert!(failed.is_err());
    }

    /// Of a rank that shares its cores with many, and is woken.
    #[derive(Default)]
    struct Sleeper {
        polls: Cell<u32>,
        naps: Cell<u32>,
    }

    impl Progress for Sleeper {
        fn told_by(&self) -> Option<&Observer> {
            None
        }
        fn poll(&self) -> Result<bool> {
            self.polls.set(self.polls.get() + 1);
            Ok(false)
        }
        fn nap_on(&self, _: &AtomicU32, _: u32, _: Duration) {
            self.naps.set(self.naps.get() + 1);
        }
        fn patience(&self, ends: Ends) -> Patience {
            assert_eq!(ends, Ends::Woken);
            Patience { spin: 0, yields: Duration::ZERO, naps_first: true, ..Patience::POLLING }
        }
    }

    #[test]
    fn a_thread_that_is_woken_polls_once_a_nap() {
        let (sleeper, word) = (Sleeper::default(), AtomicU32::new(0));
        let done = || Ok(sleeper.naps.get() == 3);
        until_on(&sleeper, Cause::Handle, &String::new, (&word, 0), done).unwrap();
        assert_eq!((sleeper.naps.get(), sleeper.polls.get()), (3, 3));
    }
}
