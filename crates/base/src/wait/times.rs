//! The durations of all waits of engine and RPC, with the reason for each.
//!
//! [`super::policy`] explains how a wait goes from polls to naps. The limits on the time that a
//! peer has to answer are parts of protocols, and are next to their code.

use std::time::Duration;

const fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

// ------------------------------------------------------------ polls before the first nap

/// A rank with a core of its own: the rank that it waits for may be late by less than this, and
/// then finds it awake.
pub const POLLS: Duration = us(2000);
/// While other work competes for the core: about the cost of a nap and a wake-up.
pub const CONTENDED_POLLS: Duration = us(250);
/// While ranks share the core and other work competes for it: the polls of a rank delay the others,
/// and look like other work to them.
pub const SHARED_POLLS: Duration = us(20);
/// A meeting of ranks that share cores: a few ranks per core arrive within it, without sleeping.
pub const MEETING_POLLS: Duration = us(400);
/// A loop of the program that polls: it may do more than wait, so it gives the core away early.
pub const LOOP_POLLS: Duration = us(200);
/// An RPC class: its server waits most of the time, and must leave the core to other work.
pub const CLASS_POLLS: Duration = us(200);
/// A network that wakes sleeping threads: a reply on the same host arrives within it, and a wake-up
/// costs about 5 us.
pub const NETWORK_POLLS: Duration = us(20);
/// Such a network while a transfer is in progress: the peer copies a chunk of 1 MiB within it, and a
/// wake-up can cost as much as the copy does.
pub const CHUNK_POLLS: Duration = us(200);
/// The progress thread after an event: about that until the next request of a blocking caller.
pub const AWAKE: Duration = us(30);
/// [`AWAKE`] if every message rings the doorbell. The core then belongs to the computing rank.
pub const AWAKE_BY_BELL: Duration = us(3);

// ------------------------------------------------------------ naps and sleeps

/// The first nap: about what a wake-up costs, so a shorter one would spare nothing.
pub const FIRST_NAP: Duration = us(20);
/// The first nap of the progress thread. On a virtual machine, a wake-up delays a computation that
/// fills the caches by up to 100 us.
pub const THREAD_NAP: Duration = us(100);
/// The longest nap of a wait whose end rings no bell: the nap delays it by at most this.
pub const LONGEST_NAP: Duration = us(100);
/// In a loop of the program that polls: short, because the loop may do more than wait.
pub const LOOP_NAP: Duration = us(20);
/// In a meeting: the last rank to arrive wakes the others, so a nap only bounds what else is
/// missed.
pub const MEETING_NAP: Duration = ms(1);
/// While a third thread serves and another wakes: short, because a wake-up may be missing.
pub const SERVED_NAP: Duration = ms(1);
/// On a word, without a message path: only MPI messages of the program may need polls.
pub const WOKEN_NAP: Duration = ms(1);
/// A wait of RPC in deeply nested handlers: how long handlers may end before it begins more.
pub const NESTED: Duration = us(250);
/// While something waits for space at another rank, or for another thread: neither rings a bell.
pub const HELD_UP: Duration = us(100);
/// A sleep that every event ends: it only bounds the damage of an error.
pub const UNDISTURBED: Duration = ms(250);
/// How long an RPC class must be idle before its waits sleep until woken: to count as a sleeper
/// costs a barrier in all threads of the process.
pub const CLASS_SLEEPS: Duration = ms(2);
/// How long after an event other ranks count as active, and the progress thread naps for half of
/// its longest time. A wake-up costs 25 to 100 us, so shorter naps would use more of a core.
pub const LATELY: Duration = ms(100);

// ------------------------------------------------------------ evidence of other work

/// Longest yield between ranks that share a core. A longer one gave the core to other work.
pub const SHORT_YIELD: Duration = us(120);
/// Longest time between two polls of a thread that runs.
pub const GAP: Duration = us(200);
/// A yield that takes longer gave the core to other work for a time slice.
pub const SLICE: Duration = ms(1);
/// How long contention is assumed at first: some time slices.
pub const FIRST_SPAN: Duration = ms(20);
/// How long contention is assumed at most: one long poll per second finds out whether it lasts.
pub const LONGEST_SPAN: Duration = Duration::from_secs(1);
/// Polls of a program closer together than this count as a busy loop.
pub const CLOSE: Duration = us(50);

// ------------------------------------------------------------ other threads of a waiting rank

/// Time until the progress thread first checks a rank that begins to linger: a check takes the core
/// from the waiting thread, which costs it a few percent at first.
pub const LINGER: Duration = us(200);
/// 32 waits within it make a rank linger: one in 20 us. Waking the progress thread between two of
/// them would cost about 25 us.
pub const OFTEN: Duration = us(640);

// ------------------------------------------------------------ questions during a wait

/// Between two questions whether a signal interrupts the wait: a person does not notice it.
pub const INTERRUPT: Duration = ms(20);
/// Polls between two checks of a collective for an alarm that take longer contain yields or naps,
/// beside which a check costs little.
pub const ALARM: Duration = us(10);
/// A wait of an RPC class shows itself to the watchdog before naps of this length and longer: it
/// takes locks for that.
pub const WATCHED_NAP: Duration = ms(1);
/// A longer time between two such checks means that the program did something else than wait. Eight
/// times the longest sleep ([`UNDISTURBED`]).
pub const UNWATCHED: Duration = Duration::from_secs(2);
/// Between two questions whether the process of a copy still lives: a system call each.
pub const ALIVE: Duration = ms(20);

// ------------------------------------------------------------ the watchdog

/// Shortest and longest period of the watchdog's thread. It bounds the error of the time of the
/// last event, and an idle thread must not cost more.
pub const WATCHDOG: (Duration, Duration) = (ms(50), Duration::from_secs(1));
/// Time for a waiting thread to answer a signal, twice its longest sleep ([`UNDISTURBED`]). After it
/// the rank is considered to compute.
pub const ANSWER: Duration = ms(500);
/// Between two looks whether a waiting thread has answered.
pub const ANSWER_LOOK: Duration = ms(5);
/// Time for the reports of other ranks before the job ends.
pub const LAST_WORDS: Duration = Duration::from_secs(1);
