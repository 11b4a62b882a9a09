//! The policy of all waits: what a thread does next that found nothing to do.
//!
//! [`Facts`] about a rank, and what ends its wait ([`Ends`]), give the [`Patience`] of the wait. A
//! [`Backoff`] then decides each [`Step`] of the thread from the time since the last event, and
//! from other work that competes for the core ([`contention`]). The thread carries the steps out:
//! in [`super::until`], at a lock, in a polling loop of the program, or on the progress thread.
//!
//! A waiting thread polls for up to two milliseconds, and then naps between polls for longer and
//! longer times. If other work competes for the core, it naps after 250 microseconds, or after 20
//! if ranks share the core: a thread that polls loses its core for a whole time slice, and a thread
//! that sleeps is woken within microseconds. It does not yield, because the core would go to the
//! competing process. While long messages are in flight, it polls on: MPI moves their bytes only in
//! these calls.
//!
//! If there are more ranks than cores, the polls of waiting ranks keep the core from the rank that
//! they wait for. A rank then yields between polls, while its yields are short; the ranks of a core
//! share the polls of one rank; naps grow with the idle time; and a thread that another rank wakes
//! through a word sleeps on the word and polls only occasionally, unless other ranks send requests
//! to its rank.
//!
//! Invariant: a wait for another rank or thread takes each step from here, and [`super::times`] has
//! the durations. What else a thread does is decided elsewhere: when the progress thread stands
//! back, when a lock hands the core over (`atomics::node_queue`), and whether an RPC class sleeps on
//! its descriptors.

use super::times::{
    AWAKE, AWAKE_BY_BELL, CHUNK_POLLS, CLASS_POLLS, CLASS_SLEEPS, CONTENDED_POLLS, FIRST_NAP,
    LONGEST_NAP, LOOP_NAP, LOOP_POLLS, MEETING_NAP, MEETING_POLLS, NETWORK_POLLS, POLLS,
    SERVED_NAP, SHARED_POLLS, SHORT_YIELD, THREAD_NAP, UNDISTURBED,
};
use super::{Progress, contention};
use std::time::Duration;

/// From this number of ranks per core, polls of waiting ranks cost more than they gain.
const MANY: u32 = 4;
/// Longer polling helps only if every rank has its own core.
const CROWDED_SPIN: u32 = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Poll,
    /// Yield the core to other ranks, and poll.
    Yield,
    /// Sleep for at most this time, and poll.
    Nap(Duration),
}

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
    fn take_up_to(&mut self, longest: Duration) -> Duration {
        let nap = self.next.min(longest);
        self.next = nap * 3;
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

/// Facts about a rank.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// The rank shares its core with another one, which it may wait for.
    pub crowded: bool,
    /// Ranks per core if the node has more ranks than cores and polls call MPI, else 1.
    pub per_core: u32,
    /// A progress thread serves other ranks.
    pub served: bool,
    /// Other ranks are served by messages.
    pub messages: bool,
    /// Number of polls before the thread reads the clock, as set by the user.
    pub spin: u32,
    /// Longest sleep of the progress thread.
    pub idle_poll: Duration,
}

/// The parameters of a wait.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Number of polls before the thread reads the clock.
    pub spin: u32,
    /// Number of polls for each later reading of the clock, a power of two.
    pub every: u32,
    /// Time that the thread polls before it naps.
    pub polls: Duration,
    /// `polls` while other work competes for the core, or `MAX` if that does not matter.
    pub contended: Duration,
    /// `polls` at least, while data moves.
    pub moving: Duration,
    /// Longest yield between polls, if the thread yields. After a longer one it naps.
    pub yields: Option<Duration>,
    /// Length of the first nap, if nothing has happened since the wait began, and after an event.
    pub first_nap: Duration,
    pub event_nap: Duration,
    /// Longest nap at first. The bound then grows with the idle time, divided by `share`, up to
    /// `limit`.
    pub longest_nap: Duration,
    pub share: u32,
    pub limit: Duration,
    /// Nap before the first poll: the end of the wait wakes the thread, and another one serves.
    pub naps_first: bool,
}

impl Patience {
    /// For a thread with a core of its own.
    pub const POLLING: Patience = Patience {
        spin: 50,
        every: 1,
        polls: POLLS,
        contended: CONTENDED_POLLS,
        moving: Duration::ZERO,
        yields: None,
        first_nap: FIRST_NAP,
        event_nap: FIRST_NAP,
        longest_nap: LONGEST_NAP,
        share: 32,
        limit: LONGEST_NAP,
        naps_first: false,
    };

    /// For ranks that share cores and wait for each other. A few ranks per core meet without
    /// sleeping. The yields of many would keep the core from the rank that they wait for, so they
    /// sleep. A rank that receives requests meanwhile naps like a polling one.
    pub const MEETING: Patience = Patience {
        spin: 20,
        polls: MEETING_POLLS,
        contended: SHARED_POLLS,
        yields: Some(SHORT_YIELD),
        first_nap: MEETING_NAP,
        longest_nap: MEETING_NAP,
        limit: MEETING_NAP,
        ..Patience::POLLING
    };

    /// For a polling loop of the program, which may do more than wait.
    pub const LOOP: Patience =
        Patience { polls: LOOP_POLLS, longest_nap: LOOP_NAP, limit: LOOP_NAP, ..Patience::POLLING };

    /// Another thread wakes this one, a third serves. Naps are short: a wake-up may be missing.
    pub(super) const SERVED: Patience = Patience {
        spin: 0,
        polls: Duration::ZERO,
        first_nap: SERVED_NAP,
        longest_nap: SERVED_NAP,
        limit: SERVED_NAP,
        ..Patience::POLLING
    };

    /// For the events of a network that wakes sleeping threads.
    pub const NETWORK: Patience = Patience {
        spin: 0,
        every: 16,
        polls: NETWORK_POLLS,
        contended: Duration::MAX,
        moving: CHUNK_POLLS,
        first_nap: UNDISTURBED,
        event_nap: UNDISTURBED,
        longest_nap: UNDISTURBED,
        limit: UNDISTURBED,
        ..Patience::POLLING
    };

    /// For the events of an RPC class of this rank that has been idle for some time. `limit`: its
    /// longest sleep.
    pub fn of_class(self, idle: Duration, limit: Duration) -> Patience {
        let limit = limit.max(LONGEST_NAP);
        let class = Patience { polls: CLASS_POLLS, share: 16, limit, ..self };
        if idle < CLASS_SLEEPS { class } else { Patience { spin: 0, first_nap: limit, ..class } }
    }

    /// For the progress thread. `longest`: its longest nap.
    pub fn of_thread(messages: bool, longest: Duration) -> Patience {
        let polls = if messages { AWAKE } else { AWAKE_BY_BELL };
        let (first_nap, event_nap) = (THREAD_NAP, THREAD_NAP);
        let thread = Patience { polls, first_nap, event_nap, ..Patience::POLLING };
        Patience { longest_nap: longest, limit: longest, ..thread }
    }

    /// For a wait of a rank. `requested` returns whether other ranks have sent it requests since
    /// the last call.
    pub fn of(facts: &Facts, ends: Ends, requested: impl FnOnce() -> bool) -> Patience {
        let Facts { crowded, per_core, served, messages, spin, idle_poll } = *facts;
        let polling = match crowded {
            false => Patience { spin, ..Patience::POLLING },
            true => Patience {
                spin: spin.min(CROWDED_SPIN),
                contended: SHARED_POLLS,
                yields: Some(SHORT_YIELD),
                ..Patience::POLLING
            },
        };
        if ends == Ends::Meeting {
            let Patience { first_nap, longest_nap, limit, .. } = polling;
            // Without a progress thread, only the polls of this wait serve messages: short naps.
            return match served || !messages {
                true => Patience::MEETING,
                false => Patience { first_nap, longest_nap, limit, ..Patience::MEETING },
            };
        }
        if per_core < MANY {
            return polling;
        }
        // The ranks of a core together poll about as long as one.
        let shared = Patience {
            spin: (polling.spin / per_core).max(1),
            polls: polling.polls / per_core,
            limit: (idle_poll / 2).max(LONGEST_NAP),
            ..polling
        };
        // A rank that recently served requests of other ranks keeps polling for more.
        if ends == Ends::Polled || !served || requested() {
            return shared;
        }
        let (polls, limit) = (Duration::ZERO, idle_poll.max(LONGEST_NAP));
        let naps = Patience { first_nap: limit, longest_nap: limit, limit, ..shared };
        Patience { spin: 0, polls, naps_first: true, ..naps }
    }
}

/// The state of a wait.
#[derive(Debug)]
pub struct Backoff {
    patience: Patience,
    polls: u32,
    naps: Naps,
}

impl Backoff {
    pub fn new(patience: Patience) -> Backoff {
        let naps = Naps::new(patience.first_nap, patience.limit);
        Backoff { patience, polls: 0, naps }
    }

    /// Something happened.
    pub fn reset(&mut self) {
        self.polls = 0;
        self.naps = Naps::new(self.patience.event_nap, self.patience.limit);
    }

    /// Counts a poll that found nothing. Returns whether the thread polls again at once.
    pub fn spins(&mut self) -> bool {
        self.polls += 1;
        self.polls <= self.patience.spin || self.polls & (self.patience.every - 1) != 0
    }

    /// The step after a poll that found nothing, `idle` after the last event. A nap lasts for at
    /// most `longest`. `moves_data`: see [`super::Progress::moves_data`].
    pub fn step(&mut self, idle: Duration, longest: Duration, moves_data: bool) -> Step {
        let Patience { polls, contended, moving, yields, share, .. } = self.patience;
        let polls = if moves_data { polls.max(moving) } else { polls };
        let contended = if moves_data { polls.max(contended) } else { contended };
        let may_poll = || contended == Duration::MAX || contention::may_poll(idle, contended);
        if idle < polls && may_poll() {
            let yields = yields.is_some() && !contention::is_present();
            return if yields { Step::Yield } else { Step::Poll };
        }
        let grown = (idle / share).max(self.patience.longest_nap);
        Step::Nap(self.naps.take_up_to(grown.min(longest).min(self.patience.limit)))
    }

    /// Carries out the next step, except for the poll. Returns whether the thread napped.
    pub fn rest<P>(&mut self, progress: &P, idle: Duration, longest: Duration) -> bool
    where
        P: Progress + ?Sized,
    {
        match self.step(idle, longest, progress.moves_data()) {
            Step::Poll => {}
            Step::Yield => self.yield_core(),
            Step::Nap(nap) => {
                progress.nap(nap);
                return true;
            }
        }
        false
    }

    /// Yields, and naps from now on if the yield gave the core to other work.
    pub(super) fn yield_core(&mut self) {
        let took = contention::timed_yield();
        if self.patience.yields.is_some_and(|soon| took > soon) {
            self.patience.polls = Duration::ZERO;
        }
    }
}

/// Waits for a lock that others hold for a few instructions. Yields from time to time, because the
/// holder may be preempted, or naps if other work competes for the core. Then calls `yielded`.
pub fn while_held(mut held: impl FnMut() -> bool, mut yielded: impl FnMut()) {
    const POLLS: u32 = 128;
    let mut polls = 0;
    while held() {
        polls += 1;
        if polls % POLLS > 0 {
            std::hint::spin_loop();
            continue;
        }
        match contention::is_present() {
            true => std::thread::sleep(FIRST_NAP),
            false => {
                contention::timed_yield();
            }
        }
        yielded();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Facts = Facts {
        crowded: false,
        per_core: 1,
        served: true,
        messages: true,
        spin: 50,
        idle_poll: Duration::from_millis(4),
    };

    #[test]
    fn an_idle_thread_polls_and_then_naps_for_longer_and_longer() {
        let mut backoff = Backoff::new(Patience::of(&ALONE, Ends::Polled, || false));
        assert_eq!((0..60).filter(|_| backoff.spins()).count(), 50);
        let mut step = |idle, moves| backoff.step(idle, Duration::MAX, moves);
        assert_eq!(step(Duration::ZERO, true), Step::Poll);
        assert_eq!(step(POLLS - Duration::from_micros(1), true), Step::Poll);
        let naps: Vec<_> = (0..5).map(|_| step(POLLS, true)).collect();
        let expected = [20, 60, 100, 100, 100].map(|us| Step::Nap(Duration::from_micros(us)));
        assert_eq!(naps, expected);
        backoff.reset();
        let at_most = Duration::from_micros(7);
        assert_eq!(backoff.step(POLLS, at_most, false), Step::Nap(at_most));
    }

    #[test]
    fn a_network_that_wakes_is_polled_briefly_and_longer_for_transfers() {
        let mut backoff = Backoff::new(Patience::NETWORK);
        let clocks: Vec<_> = (1..=32).filter(|_| !backoff.spins()).collect();
        assert_eq!(clocks, [16, 32]);
        for _ in 0..2 {
            let mut step = |idle, moves| backoff.step(idle, Duration::MAX, moves);
            assert_eq!(step(NETWORK_POLLS / 2, false), Step::Poll);
            assert_eq!(step(NETWORK_POLLS, true), Step::Poll);
            assert_eq!(step(NETWORK_POLLS, false), Step::Nap(UNDISTURBED));
            assert_eq!(step(CHUNK_POLLS, true), Step::Nap(UNDISTURBED));
            backoff.reset();
        }
    }

    #[test]
    fn a_class_that_has_long_been_idle_sleeps_at_once() {
        let limit = Duration::from_millis(4);
        let first = |idle| {
            let mut backoff = Backoff::new(Patience::POLLING.of_class(idle, limit));
            (backoff.spins(), backoff.step(idle.max(CLASS_POLLS), Duration::MAX, false))
        };
        assert_eq!(first(Duration::ZERO), (true, Step::Nap(FIRST_NAP)));
        assert_eq!(first(limit), (false, Step::Nap(limit / 16)));
        assert_eq!(first(100 * limit), (false, Step::Nap(limit)));
    }

    #[test]
    fn the_ranks_of_a_core_share_their_polls_and_sleep_until_woken() {
        let many = Facts { crowded: true, per_core: 8, ..ALONE };
        let polled = Patience::of(&many, Ends::Polled, || panic!("no question"));
        assert_eq!((polled.spin, polled.polls), (2, POLLS / 8));
        assert!(!polled.naps_first);
        let woken = Patience::of(&many, Ends::Woken, || false);
        assert!(woken.naps_first && woken.polls.is_zero());
        assert_eq!(woken.first_nap, many.idle_poll);
        assert!(!Patience::of(&many, Ends::Woken, || true).naps_first, "it serves requests");
        let unserved = Facts { served: false, ..many };
        assert!(!Patience::of(&unserved, Ends::Woken, || false).naps_first);
        assert_eq!(Patience::of(&unserved, Ends::Meeting, || false).limit, LONGEST_NAP);
        assert_eq!(Patience::of(&many, Ends::Meeting, || false).limit, MEETING_NAP);
    }
}
