//! How long a waiting thread polls, yields and naps: the parameters of [`super::Backoff`].

use super::times::{
    CONTENDED_POLLS, FIRST_NAP, LONGEST_NAP, MEETING_NAP, MEETING_POLLS, POLLS, SERVED_NAP,
    SHARED_POLLS, SHORT_YIELD,
};
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Naps {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Naps {
    pub const fn new(first: Duration, longest: Duration) -> Naps {
        Naps { first, longest, next: first }
    }

    pub fn take(&mut self) -> Duration {
        self.take_up_to(self.longest)
    }

    /// The next nap is now at most `longest`. Later naps grow from it.
    pub(crate) fn take_up_to(&mut self, longest: Duration) -> Duration {
        let nap = self.next.min(longest);
        self.next = nap * 2;
        nap
    }

    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// An event that the waiting thread may have to poll for.
    Polled,
    /// Another thread, which wakes the waiting one.
    Woken,
    /// The last of several ranks to arrive, which wakes the others. They share the cores of a node.
    Meeting,
}

#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Number of polls before the thread reads the clock.
    pub spin: u32,
    /// Time that the thread polls before it naps.
    pub polls: Duration,
    /// `polls` while other work competes for the core.
    pub contended: Duration,
    /// Longest yield between polls, if the thread yields. After a longer one it naps.
    pub yields: Option<Duration>,
    /// Length of the first nap, if nothing has happened since the wait began.
    pub first_nap: Duration,
    /// Longest nap at first. The bound then grows with the idle time, up to `limit`.
    pub longest_nap: Duration,
    pub limit: Duration,
    /// Nap before the first poll: the end of the wait wakes the thread, and another one serves.
    pub naps_first: bool,
}

impl Patience {
    /// For a thread with a core of its own.
    pub const POLLING: Patience = Patience {
        spin: 50,
        polls: POLLS,
        contended: CONTENDED_POLLS,
        yields: None,
        first_nap: FIRST_NAP,
        longest_nap: LONGEST_NAP,
        limit: LONGEST_NAP,
        naps_first: false,
    };

    /// For a rank that shares its core with another one, which it may wait for.
    pub(crate) const SHARING: Patience =
        Patience { contended: SHARED_POLLS, yields: Some(SHORT_YIELD), ..Patience::POLLING };

    /// For ranks that share cores and wait for each other. A few ranks per core meet without
    /// sleeping. The yields of many would keep the core from the rank that they wait for, so they
    /// sleep. A rank that receives requests meanwhile naps like a polling one.
    pub(crate) const MEETING: Patience = Patience {
        spin: 20,
        polls: MEETING_POLLS,
        contended: SHARED_POLLS,
        yields: Some(SHORT_YIELD),
        first_nap: MEETING_NAP,
        longest_nap: MEETING_NAP,
        limit: MEETING_NAP,
        naps_first: false,
    };

    /// Others hold the lock for a few instructions.
    pub(super) const LOCK: Patience = Patience { spin: 127, ..Patience::POLLING };

    /// Another thread wakes this one, a third serves. Naps are short: a wake-up may be missing.
    pub(super) const SERVED: Patience = Patience {
        spin: 0,
        polls: Duration::ZERO,
        first_nap: SERVED_NAP,
        longest_nap: SERVED_NAP,
        limit: SERVED_NAP,
        ..Patience::POLLING
    };

    /// Ranks that share a core together poll about as long as one.
    pub fn shared(self, ranks: u32) -> Patience {
        Patience { spin: (self.spin / ranks).max(1), polls: self.polls / ranks, ..self }
    }
}
