//! Back-off for polling loops of the program: calls that test, probe or make progress once.
//!
//! A program may call these functions in a loop, which amounts to a wait. If the node has more
//! ranks than cores, the loop starves the rank that it waits for. Through MPI's `sched_yield` it
//! also starves every other process, on Linux 6.18 for minutes. Therefore a thread that has polled
//! for a while ([`LOOP_POLLS`]) without other work and without an event naps after each further
//! poll. The doorbell of the rank's rings ends a nap early. If the node has a core for each rank, no
//! thread naps here.
//!
//! [`LOOP_POLLS`]: portolan_base::wait::times::LOOP_POLLS

use super::Core;
use portolan_base::error::Result;
use portolan_base::wait::times::{CLOSE, LOOP_NAP};
use portolan_base::wait::{Backoff, Patience, Progress, Step};
use std::cell::Cell;
use std::time::Instant;

thread_local! {
    /// The start and the last poll of the busy loop that the thread appears to be in.
    static LOOP: Cell<Option<(Instant, Instant)>> = const { Cell::new(None) };
}

impl Core {
    /// Serves other ranks once, without waiting. Returns true if anything happened.
    pub fn probe(&self) -> Result<bool> {
        let given_up = self.give_up();
        let polled = self.poll_once(given_up.is_some());
        if let Some(given_up) = given_up {
            self.take_again(given_up);
        }
        polled
    }

    /// Threads may have waited for a lock that this one gave up, so handle all pending events.
    fn poll_once(&self, waited_for: bool) -> Result<bool> {
        while waited_for && self.poll()? {}
        let busy = self.poll()?;
        self.looked(busy);
        Ok(busy)
    }

    /// Records a poll in a call that does not wait.
    #[inline]
    pub fn looked(&self, busy: bool) {
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
        // A handler must not wait, and therefore must not nap.
        let step = Backoff::new(Patience::LOOP).step(now - began, LOOP_NAP, self.moves_data());
        if let Step::Nap(nap) = step
            && self.may_wait().is_ok()
        {
            self.waiting(true);
            self.nap(nap);
            self.waiting(false);
            LOOP.set(Some((began, Instant::now())));
        }
    }
}
