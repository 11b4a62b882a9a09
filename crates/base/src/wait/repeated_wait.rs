//! Lets the watchdog see a call that consists of many short waits as one wait. [`RepeatedWait`]
//! times the whole loop. A change of the state that the caller passes counts as progress, and so
//! does a request or a message that this rank handles, but not the loop's own reductions and
//! barriers.

use super::watchdog::{self, Standing, Watch};
use super::{Backoff, Ends, Patience, Progress, Step, Waiting};
use crate::error::Result;
use crate::futex;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct RepeatedWait<S> {
    watch: Watch,
    /// Number of handled events, and the state, at the last change.
    seen: Option<(u32, S)>,
    since: Instant,
    backoff: Option<Backoff>,
}

impl<S: PartialEq> RepeatedWait<S> {
    pub fn begin() -> RepeatedWait<S> {
        RepeatedWait { watch: Watch::new(), seen: None, since: Instant::now(), backoff: None }
    }

    /// Called after each turn. Returns a report if one is due.
    pub fn check<'a>(&mut self, state: S, what: &'a str) -> Option<Standing<'a>> {
        let now = Instant::now();
        let seen = Some((watchdog::handled(), state));
        if seen != self.seen {
            (self.seen, self.since) = (seen, now);
            self.watch.progressed();
            self.backoff = None;
        }
        let (cause, waited) = self.watch.check(self.since, now)?;
        Some(Standing { cause, what, waited, idle: now - self.since })
    }

    /// Reports if due, and yields or naps. Fails with `State` if the thread must not wait.
    pub fn again<P: Progress + ?Sized>(
        &mut self,
        progress: &P,
        state: S,
        what: &dyn Fn() -> String,
    ) -> Result<()> {
        self.check_and_report(progress, state, what);
        let _waiting = Waiting::begin(progress)?;
        let patience = || Backoff::new(progress.patience(Ends::Polled));
        let backoff = self.backoff.get_or_insert_with(patience);
        backoff.rest(progress, self.since.elapsed(), Duration::MAX);
        Ok(())
    }

    fn check_and_report<P: Progress + ?Sized>(
        &mut self,
        progress: &P,
        state: S,
        what: &dyn Fn() -> String,
    ) {
        if let Some(standing) = self.check(state, "") {
            progress.report(&Standing { what: &what(), ..standing });
        }
    }
}

impl RepeatedWait<u32> {
    /// For a thread that does not poll, because another serves other ranks. Sleeps for a short time
    /// while `word` equals `value`, or until the word is woken.
    pub fn asleep<P: Progress + ?Sized>(
        &mut self,
        progress: &P,
        (word, value): (&AtomicU32, u32),
        what: &dyn Fn() -> String,
    ) {
        self.check_and_report(progress, value, what);
        let backoff = self.backoff.get_or_insert_with(|| Backoff::new(Patience::SERVED));
        if let Step::Nap(nap) = backoff.step(self.since.elapsed(), Duration::MAX, false) {
            futex::wait(word, value, nap);
        }
    }
}
