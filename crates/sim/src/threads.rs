//! The operations of the machine's threads: points, sleep, futexes, beginning and end.

use crate::baton::Baton;
use crate::machine::{BATON, ME, NOBODY, RANK, STARTS, ThreadState, Word, simulated, with};

/// Passes the baton on, unless the calling thread is also the next one.
fn pass(next: usize, theirs: Baton) {
    if next != ME.get() {
        BATON.get().expect("a thread of the machine").pass(theirs);
    }
}

/// A point at which another thread may run. If `always` is set, the caller always gives up the
/// core. The clock moves by up to `most` nanoseconds.
pub fn point(at: &'static str, always: bool, most: u64) {
    let (next, theirs) = with(|machine| {
        let me = ME.get();
        machine.now += 1 + machine.rng.below(most);
        machine.threads[me].at = at;
        if always {
            let until = machine.now + machine.away(me);
            machine.put_to_sleep(me, at, Some(until));
        } else if !machine.rng.one_in(machine.behaviour.switch_every) {
            return (me, machine.threads[me].baton);
        }
        let next = machine.pick();
        (next, machine.threads[next].baton)
    });
    pass(next, theirs);
}

/// A use of the heap or a wake-up, at which the thread may be interrupted as anywhere. This tests
/// orders of events between the calls that the machine knows.
pub fn interrupt() {
    if simulated() {
        let now = with(|machine| {
            let every = machine.behaviour.interrupt_every;
            every > 0 && machine.rng.one_in(every)
        });
        if now {
            point("interrupt", true, 500);
        }
    }
}

/// Moves the clock by up to `most` nanoseconds. Returns the new time.
pub fn tick(most: u64) -> u64 {
    with(|machine| {
        machine.now += 1 + machine.rng.below(most);
        machine.now
    })
}

/// Sleeps for a number of nanoseconds, or until another thread wakes the caller.
pub fn sleep(at: &'static str, nanoseconds: Option<u64>) {
    let (next, theirs) = with(|machine| {
        let me = ME.get();
        machine.threads[me].at = at;
        // A sleep takes slightly longer than requested.
        let late = machine.away(me);
        let until = nanoseconds.map(|n| machine.now.saturating_add(n).saturating_add(late));
        machine.put_to_sleep(me, at, until);
        let next = machine.pick();
        (next, machine.threads[next].baton)
    });
    pass(next, theirs);
}

/// Sleeps on a futex. Returns false if the time passed before a wake-up.
pub fn futex_wait(word: Word, nanoseconds: Option<u64>) -> bool {
    with(|machine| {
        machine.threads[ME.get()].word = Some(word);
        machine.sleepers.entry(word).or_default().push(ME.get());
    });
    sleep("futex", nanoseconds);
    with(|machine| {
        let woken = !machine.threads[ME.get()].timed_out;
        if woken {
            machine.is_busy();
        }
        woken
    })
}

/// Wakes up to `most` threads that sleep on a futex. Returns how many it woke.
pub fn futex_wake(word: Word, most: usize) -> usize {
    with(|machine| {
        let sleepers = machine.sleepers.get(&word).cloned().unwrap_or_default();
        for &id in sleepers.iter().take(most) {
            machine.make_ready(id, false);
        }
        let woken = sleepers.len().min(most);
        machine.trace("wake", woken as u64, 0);
        woken
    })
}

/// A thread that is about to start. Its creator passes this value to it.
pub struct Beginning {
    id: usize,
    rank: usize,
    baton: Baton,
}

/// Adds a thread that the calling thread starts, or returns `None` if it is not simulated.
pub fn begin_thread() -> Option<Beginning> {
    let rank = match STARTS.get() {
        NOBODY if simulated() => RANK.get(),
        NOBODY => return None,
        rank => rank,
    };
    Some(with(|machine| {
        let (id, baton) = machine.add_thread(rank);
        Beginning { id, rank, baton }
    }))
}

/// Makes a new thread ready to run and records its native handle for `pthread_join`.
pub fn began(native: libc::pthread_t, id: usize) {
    with(|machine| {
        machine.natives.insert(native, id);
        machine.ready.push(id);
    });
}

impl Beginning {
    pub fn id(&self) -> usize {
        self.id
    }

    pub fn baton(&self) -> Baton {
        self.baton
    }

    pub fn enter(self) {
        RANK.set(self.rank);
        BATON.set(Some(self.baton));
        self.baton.enter();
        ME.set(self.id);
    }
}

/// Ends the run, whatever its threads wait for. None of them continues.
pub fn halt() {
    let main = with(|machine| {
        machine.halted = true;
        machine.main
    });
    BATON.get().expect("a thread of the machine").pass(main);
}

pub fn end_thread() {
    let next = with(|machine| {
        let me = ME.get();
        if let Some(at) = machine.ready.iter().position(|&id| id == me) {
            machine.ready.swap_remove(at);
        }
        machine.threads[me].state = ThreadState::Ended;
        machine.alive -= 1;
        machine.trace("end", me as u64, 0);
        for joiner in std::mem::take(&mut machine.threads[me].joiners) {
            machine.make_ready(joiner, false);
        }
        if machine.alive == 0 {
            return machine.main;
        }
        let next = machine.pick();
        machine.threads[next].baton
    });
    ME.set(NOBODY);
    BATON.get().expect("a thread of the machine").leave(next);
}

/// Waits for the end of another thread. Returns at once if it is not a thread of the machine.
pub fn await_end(native: libc::pthread_t) {
    loop {
        let waits = with(|machine| {
            let Some(&id) = machine.natives.get(&native) else { return false };
            if machine.threads[id].state == ThreadState::Ended {
                machine.natives.remove(&native);
                return false;
            }
            let me = ME.get();
            machine.threads[id].joiners.push(me);
            true
        });
        if !waits {
            return;
        }
        sleep("join", None);
    }
}
