//! How long a waiting thread polls, yields and naps: what the ladder of [`super::Backoff`] is made of.

use std::time::Duration;

/// Yields this long, since the wait began or something last happened, before
/// the first nap.
const YIELD_FOR: Duration = Duration::from_micros(2000);
pub(super) const FIRST_NAP: Duration = Duration::from_micros(20);
pub(crate) const LONGEST_NAP: Duration = Duration::from_micros(100);
const MEETING_NAP: Duration = Duration::from_millis(1);

/// The naps of a thread that finds nothing to do: each twice as long as the one before.
#[derive(Debug, Clone)]
pub(crate) struct Naps {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Naps {
    /// From `first` up to `longest`.
    pub(crate) const fn new(first: Duration, longest: Duration) -> Naps {
        Naps { first, longest, next: first }
    }

    /// How long to nap now.
    pub(crate) fn take(&mut self) -> Duration {
        self.take_up_to(self.longest)
    }

    /// The same with a limit of now; the naps that follow start from what it gives.
    pub(crate) fn take_up_to(&mut self, longest: Duration) -> Duration {
        let nap = self.next.min(longest);
        self.next = nap * 2;
        nap
    }

    /// Something happened: the next nap is the first again.
    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }
}

/// What ends a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// What the waiting thread may have to poll for.
    Polled,
    /// A thread that wakes the waiting one.
    Woken,
    /// The last rank of a node to meet the others, which share cores with it: it wakes them.
    Meeting,
}

/// How a thread waits.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Polls before it yields.
    pub spin: u32,
    /// How long it yields before it naps.
    pub yields: Duration,
    /// It yields no more when a yield has taken longer.
    pub soon: Duration,
    /// Its first nap, unless something has happened since the wait began.
    pub first_nap: Duration,
    /// The longest, where little time has passed.
    pub longest_nap: Duration,
    /// The longest of all.
    pub limit: Duration,
    /// It naps before it first polls: it is woken when its wait is over, and another thread
    /// serves meanwhile.
    pub naps_first: bool,
}

impl Patience {
    /// Of a thread with a core of its own.
    pub const POLLING: Patience = Patience {
        spin: 50,
        yields: YIELD_FOR,
        soon: Duration::MAX,
        first_nap: FIRST_NAP,
        longest_nap: LONGEST_NAP,
        limit: LONGEST_NAP,
        naps_first: false,
    };

    /// Of ranks that share cores and meet: a few to a core meet without a sleep. Yields of many
    /// would keep the core from the one that they wait for, so then they sleep. A rank that others
    /// ask for something meanwhile naps as any that polls.
    pub(crate) const MEETING: Patience = Patience {
        spin: 20,
        yields: Duration::from_micros(400),
        soon: Duration::from_micros(120),
        first_nap: MEETING_NAP,
        longest_nap: MEETING_NAP,
        limit: MEETING_NAP,
        naps_first: false,
    };

    /// The same where so many ranks share a core.
    pub(crate) fn shared(self, ranks: u32) -> Patience {
        Patience { spin: (self.spin / ranks).max(1), yields: self.yields / ranks, ..self }
    }
}
