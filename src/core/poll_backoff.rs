//! Back-off of polling loops: calls that test, probe or make progress once.
//!
//! A program may call them in a loop, which is a wait in effect. Where ranks outnumber cores
//! such a loop starves the rank that it waits for and, through MPI's own `sched_yield`,
//! everything else: on Linux 6.18 two loops over Open MPI left no turn to other processes for
//! minutes. So a thread that has polled for [`PATIENCE`] without doing anything else, and
//! without any event, naps with each further poll, until the bell of the rank's rings at the
//! latest.
//!
//! Invariant: a thread never naps here if ranks do not outnumber cores, or if it works between
//! polls.

use super::Core;
use crate::error::Result;
use crate::wait::Progress;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long a loop may poll without a nap.
const PATIENCE: Duration = Duration::from_micros(200);
/// Polls that are no further apart are a loop that does nothing else.
const CLOSE: Duration = Duration::from_micros(50);
const NAP: Duration = Duration::from_micros(20);

thread_local! {
    /// Of the loop that the thread seems to be in: when it began, and its last poll.
    static LOOP: Cell<Option<(Instant, Instant)>> = const { Cell::new(None) };
}

impl Core {
    /// Runs what is there to run for other ranks, once; true when anything
    /// happened.
    pub fn probe(&self) -> Result<bool> {
        let given_up = self.give_up();
        let polled = self.look(given_up.is_some());
        if let Some(given_up) = given_up {
            self.take_again(given_up);
        }
        polled
    }

    /// `waited_for` says that others waited for a lock of this thread: all that came
    /// meanwhile is handled first.
    fn look(&self, waited_for: bool) -> Result<bool> {
        while waited_for && self.poll()? {}
        let busy = self.poll()?;
        self.looked(busy);
        Ok(busy)
    }

    /// The calling thread has looked once, in a call that does not wait.
    #[inline]
    pub(crate) fn looked(&self, busy: bool) {
        if self.crowded {
            self.looked_in_a_crowd(busy);
        }
    }

    fn looked_in_a_crowd(&self, busy: bool) {
        if busy {
            return LOOP.set(None);
        }
        let now = Instant::now();
        let began = match LOOP.get() {
            Some((began, last)) if now - last < CLOSE => began,
            _ => now,
        };
        LOOP.set(Some((began, now)));
        // A handler must not wait, so it does not nap either.
        if now - began > PATIENCE && self.may_wait().is_ok() {
            self.waiting(true);
            self.nap(NAP);
            self.waiting(false);
            LOOP.set(Some((began, Instant::now())));
        }
    }
}
