//! The simulated machine: many threads, one of which runs at a time.
//!
//! Each rank is a thread, and each thread that it starts is another thread of the same rank. The
//! thread that runs has the *baton*. When it polls, yields, sleeps, waits for a futex or calls MPI,
//! it reaches a *point*, at which the machine may pass the baton to another thread. The seed
//! decides which thread that is and how far the clock moves. The clock belongs to the machine: if
//! all threads sleep, it jumps to the earliest wake-up time.
//!
//! Invariant: only the holder of the baton accesses the state of the machine, so the same seed
//! gives the same run. The lock of the state is never contended; the compiler requires it.

use crate::baton::Baton;
use crate::behaviour::Behaviour;
use crate::dice::Dice;
use crate::memory;
use crate::network::Network;
use parking_lot::Mutex;
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

/// The location of a futex: a file's device, inode and offset, or an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Word {
    Shared(u64, u64, u64),
    Private(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadState {
    Ready,
    Asleep(&'static str),
    Ended,
}

pub struct Thread {
    pub rank: usize,
    pub state: ThreadState,
    /// Number of its sleeps. It identifies timers of earlier sleeps.
    pub sleeps: u64,
    /// Whether the clock ended its last sleep.
    pub timed_out: bool,
    pub word: Option<Word>,
    /// Threads that wait for its end.
    pub joiners: Vec<usize>,
    pub baton: Baton,
    /// The name of the last point that it reached.
    pub at: &'static str,
    /// How often it has yielded or napped since it last made progress.
    pub idle: u32,
}

pub struct Machine {
    pub seed: u64,
    steps: Vec<String>,
    pub ranks: usize,
    pub behaviour: Behaviour,
    pub network: Network,
    /// Nanoseconds since the start.
    pub now: u64,
    pub rng: Dice,
    pub threads: Vec<Thread>,
    pub ready: Vec<usize>,
    timers: BinaryHeap<Reverse<(u64, usize, u64)>>,
    /// Threads asleep on futexes, in order of arrival.
    pub sleepers: HashMap<Word, Vec<usize>>,
    pub natives: HashMap<libc::pthread_t, usize>,
    /// Mappings of files: begin, then length, device, inode, offset.
    mappings: BTreeMap<u64, (u64, u64, u64, u64)>,
    pub alive: usize,
    pub switches: u64,
    hash: u64,
    events: u64,
    print: bool,
    pub main: Baton,
    /// Whether the run is over although threads are left.
    pub halted: bool,
}

static MACHINE: Mutex<Option<Box<Machine>>> = Mutex::new(None);

pub const NOBODY: usize = usize::MAX;

/// Heap bytes that a rank may leave: names and slots that a process keeps for its next engine.
const MOST_LEFT: i64 = 32 << 10;

thread_local! {
    pub static ME: Cell<usize> = const { Cell::new(NOBODY) };
    pub static RANK: Cell<usize> = const { Cell::new(NOBODY) };
    pub static BATON: Cell<Option<Baton>> = const { Cell::new(None) };
    /// Whether the machine itself is running. Its calls are not simulated.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    pub static STARTS: Cell<usize> = const { Cell::new(NOBODY) };
}

/// Returns whether the calling thread belongs to the machine and runs the code under test.
pub fn simulated() -> bool {
    ME.get() != NOBODY && !INSIDE.get()
}

/// Returns the rank whose memory the calling thread uses, even while an ended thread destroys its
/// thread-local values. Returns `None` inside the machine.
pub fn counted_rank() -> Option<usize> {
    (RANK.get() != NOBODY && !INSIDE.get()).then(|| RANK.get())
}

pub fn rank() -> usize {
    RANK.get()
}

pub fn with<R>(body: impl FnOnce(&mut Machine) -> R) -> R {
    let outside = INSIDE.replace(true);
    let result = body(MACHINE.lock().as_mut().expect("a machine runs"));
    INSIDE.set(outside);
    result
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Hash of all events in order.
    pub trace: u64,
    pub events: u64,
    pub switches: u64,
    pub time: u64,
    pub traffic: Vec<crate::network::Traffic>,
}

/// Runs `body` on each of `ranks` ranks and checks that no memory and no MPI object is left.
pub fn run(
    seed: u64,
    ranks: usize,
    behaviour: Behaviour,
    stack: usize,
    body: impl Fn(usize) + Send + Sync + 'static,
) -> Outcome {
    let main = Baton::new();
    let network = Network::new(ranks);
    *MACHINE.lock() = Some(Box::new(Machine {
        seed,
        steps: vec![String::new(); ranks],
        ranks,
        network,
        now: 0,
        rng: Dice::new(seed),
        threads: Vec::new(),
        ready: Vec::new(),
        timers: BinaryHeap::new(),
        sleepers: HashMap::new(),
        natives: HashMap::new(),
        mappings: BTreeMap::new(),
        alive: 0,
        switches: 0,
        hash: 0xcbf2_9ce4_8422_2325,
        events: 0,
        print: std::env::var_os("SIM_TRACE").is_some(),
        main,
        halted: false,
        behaviour,
    }));
    let body = std::sync::Arc::new(body);
    memory::reset_all();
    let handles: Vec<_> = (0..ranks)
        .map(|rank| {
            let body = body.clone();
            STARTS.set(rank);
            let started = std::thread::Builder::new().stack_size(stack).spawn(move || {
                if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(rank))).is_err() {
                    fail("a rank panicked");
                }
            });
            STARTS.set(NOBODY);
            started.expect("a thread for each rank")
        })
        .collect();
    let first = with(|machine| {
        let first = machine.pick();
        machine.threads[first].baton
    });
    main.pass(first);
    if !with(|machine| machine.halted) {
        handles.into_iter().for_each(|handle| handle.join().expect("a rank's thread ends"));
    }
    drop(body);
    let machine = MACHINE.lock().take().expect("the machine that was made");
    if !machine.halted {
        let left = memory::held_by_all() / ranks as i64;
        if left > MOST_LEFT && !machine.behaviour.reports && !machine.behaviour.gives_up {
            fail_with(seed, &format!("{left} bytes of heap are left of each rank"), "");
        }
        if let Err(left) = machine.is_clean() {
            fail_with(seed, &left, "");
        }
        machine.threads.iter().for_each(|thread| thread.baton.free());
        main.free();
    }
    Outcome {
        trace: machine.hash,
        events: machine.events,
        switches: machine.switches,
        time: machine.now,
        traffic: machine.network.traffic.clone(),
    }
}

fn fail_with(seed: u64, why: &str, state: &str) -> ! {
    let text = format!("\nseed {seed}: FAILED: {why}\n{state}");
    // SAFETY: the string is valid during the write. Then the process ends and runs nothing more.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        libc::_exit(1)
    }
}

/// Records what the calling rank is doing, for the report of a failed run.
pub fn step(text: String) {
    let rank = RANK.get();
    let before = with(|machine| std::mem::replace(&mut machine.steps[rank], text));
    drop(before); // dropped here so that it counts as the rank's memory
}

pub fn fail(why: &str) -> ! {
    let (seed, state) = with(|machine| (machine.seed, machine.describe()));
    fail_with(seed, &format!("rank {}: {why}", RANK.get() as isize), &state)
}

impl Machine {
    pub fn trace(&mut self, kind: &'static str, a: u64, b: u64) {
        self.events += 1;
        for word in [digest(kind), self.now, a, b] {
            self.hash = (self.hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
        }
        if self.print {
            eprintln!("{:>12} {kind} {a} {b}", self.now);
        }
    }

    /// Ends the run as failed, from within the machine.
    pub fn fail(&self, why: &str) -> ! {
        fail_with(self.seed, &format!("rank {}: {why}", RANK.get() as isize), &self.describe())
    }

    /// Returns an error if something is left at the end of a run.
    fn is_clean(&self) -> Result<(), String> {
        if !self.behaviour.gives_up {
            self.network.is_clean()?;
        }
        if let Some((base, (len, ..))) = self.mappings.first_key_value() {
            let count = self.mappings.len();
            return Err(format!(
                "{count} mappings are left, the first of {len} bytes at {base:#x}"
            ));
        }
        if !self.sleepers.is_empty() {
            return Err("threads are left on futexes".into());
        }
        Ok(())
    }

    fn describe(&self) -> String {
        let mut text = format!("  at {} ns, after {} switches\n", self.now, self.switches);
        for (id, thread) in self.threads.iter().enumerate().take(64) {
            let rank = thread.rank;
            let waiting = self.network.describe(rank);
            let (state, at) = (thread.state, thread.at);
            let step = &self.steps[rank];
            text +=
                &format!("  thread {id} of rank {rank}, {step}: {state:?} at {at}; {waiting}\n");
        }
        text
    }

    pub fn add_thread(&mut self, rank: usize) -> (usize, Baton) {
        let baton = Baton::new();
        let id = self.threads.len();
        self.threads.push(Thread {
            rank,
            state: ThreadState::Ready,
            sleeps: 0,
            timed_out: false,
            word: None,
            joiners: Vec::new(),
            baton,
            at: "start",
            idle: 0,
        });
        self.alive += 1;
        (id, baton)
    }

    pub fn make_ready(&mut self, id: usize, timed_out: bool) {
        let thread = &mut self.threads[id];
        thread.state = ThreadState::Ready;
        thread.timed_out = timed_out;
        thread.sleeps += 1;
        if let Some(word) = thread.word.take() {
            let left = self.sleepers.get_mut(&word).map_or(0, |all| {
                all.retain(|&other| other != id);
                all.len()
            });
            if left == 0 {
                self.sleepers.remove(&word);
            }
        }
        self.ready.push(id);
    }

    pub fn put_to_sleep(&mut self, id: usize, why: &'static str, until: Option<u64>) {
        self.threads[id].state = ThreadState::Asleep(why);
        if let Some(at) = self.ready.iter().position(|&other| other == id) {
            self.ready.swap_remove(at);
        }
        if let Some(until) = until {
            self.timers.push(Reverse((until, id, self.threads[id].sleeps)));
        }
    }

    pub fn pick(&mut self) -> usize {
        self.switches += 1;
        if self.switches > self.behaviour.most_switches {
            self.fail("the run does not end");
        }
        loop {
            while let Some(&Reverse((time, id, sleeps))) = self.timers.peek() {
                let thread = &self.threads[id];
                let valid =
                    thread.sleeps == sleeps && matches!(thread.state, ThreadState::Asleep(_));
                if valid && time > self.now {
                    break;
                }
                self.timers.pop();
                if valid {
                    self.make_ready(id, true);
                }
            }
            if self.ready.is_empty() {
                match self.timers.peek() {
                    Some(&Reverse((time, ..))) => self.now = self.now.max(time),
                    None => self.fail("all threads sleep, and nothing will wake them"),
                }
                continue;
            }
            let mut id = self.draw_ready();
            for _ in 0..4 {
                if !self.behaviour.slow.contains(&self.threads[id].rank) || self.rng.one_in(8) {
                    break;
                }
                id = self.draw_ready();
            }
            let rank = self.threads[id].rank;
            if self.behaviour.gone.is_some_and(|(gone, at)| gone == rank && self.now >= at) {
                self.put_to_sleep(id, "gone", None);
                self.trace("gone", rank as u64, 0);
                continue;
            }
            let now = self.now;
            let stop =
                |&&(who, from, to): &&(usize, u64, u64)| who == rank && from <= now && now < to;
            if let Some(&(_, _, until)) = self.behaviour.stopped.iter().find(stop) {
                self.put_to_sleep(id, "stopped", Some(until));
                continue;
            }
            self.trace("run", id as u64, 0);
            return id;
        }
    }

    fn draw_ready(&mut self) -> usize {
        self.ready[self.rng.below(self.ready.len() as u64) as usize]
    }

    /// Returns how many nanoseconds a thread stays away after it gives up the core. The bound grows
    /// with the time that the thread has been idle, as it may on a real machine.
    pub fn away(&mut self, id: usize) -> u64 {
        const MAX_EXPONENT: u32 = 11;
        let idle = self.threads[id].idle.min(MAX_EXPONENT);
        self.threads[id].idle += 1;
        1 + self.rng.below(1_000 << idle)
    }

    pub fn is_busy(&mut self) {
        if let Some(thread) = self.threads.get_mut(ME.get()) {
            thread.idle = 0;
        }
    }

    /// Returns the location of a word in its mapped file, or its address if it is in none.
    pub fn word_at(&self, address: u64) -> Word {
        match self.mappings.range(..=address).next_back() {
            Some((&base, &(len, device, inode, offset))) if address - base < len => {
                Word::Shared(device, inode, offset + (address - base))
            }
            _ => Word::Private(address),
        }
    }

    pub fn map(&mut self, base: u64, len: u64, device: u64, inode: u64, offset: u64) {
        self.mappings.insert(base, (len, device, inode, offset));
    }

    pub fn unmap(&mut self, base: u64) {
        self.mappings.remove(&base);
    }
}

/// Returns a hash of a name's characters, not of its address, so that it is the same in each run.
fn digest(name: &str) -> u64 {
    name.bytes().fold(0, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)))
}
