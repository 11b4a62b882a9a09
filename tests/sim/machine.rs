//! The simulated machine: many threads, of which exactly one runs at a time.
//!
//! Each rank is a thread (and each thread that it starts is another of the same rank). The
//! thread that runs has the *baton*. Wherever it polls, yields, sleeps, waits for a futex or
//! calls MPI it comes to a *point*, where the machine may pass the baton to another thread:
//! which one, and how far the clock moves, is drawn from the seed. The clock is the machine's:
//! when all threads sleep it jumps to the first that wakes.
//!
//! Invariant: the state of the machine is touched by the holder of the baton alone, so the same
//! seed gives the same run. Its lock is never contended; it is there for the compiler.

use crate::dice::Dice;
use crate::network::Network;
use parking_lot::Mutex;
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

/// Where a futex lies: a file's device, inode and offset, or an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Word {
    Shared(u64, u64, u64),
    Private(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// May run.
    Ready,
    /// Sleeps, for the reason given.
    Asleep(&'static str),
    /// Has ended.
    Ended,
}

struct Thread {
    rank: usize,
    state: State,
    /// Counts its sleeps, so that a timer of an earlier one is known.
    sleeps: u64,
    /// Its last sleep was ended by the clock.
    timed_out: bool,
    /// The futex it sleeps on.
    word: Option<Word>,
    /// Threads that wait for its end.
    joiners: Vec<usize>,
    signal: Signal,
    /// Where it was seen last.
    at: &'static str,
    /// How often it has yielded or napped since it last got anything done.
    idle: u32,
}

/// What a thread waits for until it gets the baton.
#[derive(Clone, Copy)]
struct Signal(*mut libc::sem_t);

// SAFETY: a semaphore is for several threads.
unsafe impl Send for Signal {}

impl Signal {
    fn new() -> Signal {
        // SAFETY: sem_t is plain data, set up by sem_init; it stays until `free`.
        unsafe {
            let place = Box::into_raw(Box::new(std::mem::zeroed()));
            libc::sem_init(place, 0, 0);
            Signal(place)
        }
    }

    fn post(self) {
        // SAFETY: the semaphore lives.
        unsafe { libc::sem_post(self.0) };
    }

    fn wait(self) {
        // SAFETY: as above; an interrupted wait is begun again.
        while unsafe { libc::sem_wait(self.0) } != 0 {}
    }

    fn free(self) {
        // SAFETY: made by `new`, and nobody waits for it or will post it.
        unsafe {
            libc::sem_destroy(self.0);
            drop(Box::from_raw(self.0));
        }
    }
}

/// How a run behaves: drawn from its seed, or set by a test.
#[derive(Debug, Clone)]
pub struct Behaviour {
    /// One MPI call in so many passes the baton on.
    pub switch_every: u64,
    /// Bounds of a message's time on the way, in nanoseconds.
    pub delay: (u64, u64),
    /// One message in so many takes a hundred times as long; 0 is none.
    pub late_every: u64,
    /// Messages up to so many bytes are sent eagerly.
    pub eager: usize,
    /// Ranks of a host.
    pub ranks_per_host: usize,
    /// Cores that each host shows.
    pub cores: usize,
    /// Ranks that run seldom.
    pub slow: Vec<usize>,
    /// Ranks that stop at a time and go on at another.
    pub stopped: Vec<(usize, u64, u64)>,
    /// A rank that stops at a time for good.
    pub gone: Option<(usize, u64)>,
    /// Most passes of the baton before the run is taken for one without end.
    pub most_switches: u64,
}

impl Behaviour {
    /// Draws one.
    pub fn draw(rng: &mut Dice, ranks: usize) -> Behaviour {
        let mut slow = Vec::new();
        let mut stopped = Vec::new();
        if rng.one_in(3) {
            slow.push(rng.below(ranks as u64) as usize);
        }
        if rng.one_in(3) {
            let begin = rng.below(20_000_000);
            stopped.push((rng.below(ranks as u64) as usize, begin, begin + rng.below(50_000_000)));
        }
        let shortest = rng.pick(&[100, 1_000, 10_000]);
        Behaviour {
            switch_every: rng.pick(&[1, 2, 5, 20]),
            delay: (shortest, shortest * rng.pick(&[2, 20, 200])),
            late_every: rng.pick(&[0, 10, 100]),
            eager: rng.pick(&[0, 64, 1 << 12, 1 << 16]),
            ranks_per_host: rng.pick(&[1, 2, 4, 16]),
            cores: rng.pick(&[1, 4, 64]),
            slow,
            stopped,
            gone: None,
            most_switches: 20_000_000,
        }
    }

    /// One without surprises.
    pub fn plain(ranks_per_host: usize) -> Behaviour {
        Behaviour {
            switch_every: 4,
            delay: (1_000, 2_000),
            late_every: 0,
            eager: 1 << 12,
            ranks_per_host,
            cores: 1024,
            slow: Vec::new(),
            stopped: Vec::new(),
            gone: None,
            most_switches: u64::MAX,
        }
    }
}

/// The state of the machine.
pub struct Machine {
    pub seed: u64,
    /// By rank: what it says it does.
    steps: Vec<String>,
    pub ranks: usize,
    pub behaviour: Behaviour,
    pub network: Network,
    /// Nanoseconds since the start.
    pub now: u64,
    pub rng: Dice,
    threads: Vec<Thread>,
    ready: Vec<usize>,
    timers: BinaryHeap<Reverse<(u64, usize, u64)>>,
    /// Threads asleep on futexes, in the order in which they came.
    sleepers: HashMap<Word, Vec<usize>>,
    natives: HashMap<libc::pthread_t, usize>,
    /// Mappings of files: begin, then length, device, inode, offset.
    mappings: BTreeMap<u64, (u64, u64, u64, u64)>,
    alive: usize,
    pub switches: u64,
    hash: u64,
    events: u64,
    print: bool,
    main: Signal,
}

static MACHINE: Mutex<Option<Box<Machine>>> = Mutex::new(None);

const NOBODY: usize = usize::MAX;

thread_local! {
    /// The calling thread's number in the machine.
    static ME: Cell<usize> = const { Cell::new(NOBODY) };
    static RANK: Cell<usize> = const { Cell::new(NOBODY) };
    static SIGNAL: Cell<Option<Signal>> = const { Cell::new(None) };
    /// The machine itself is at work: what it calls is not simulated.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// The next thread that the calling one starts is this rank.
    static STARTS: Cell<usize> = const { Cell::new(NOBODY) };
}

/// Whether the calling thread is one of the machine and runs the code under test.
pub fn simulated() -> bool {
    ME.get() != NOBODY && !INSIDE.get()
}

/// The rank whose code the calling thread runs; none inside the machine.
pub fn running_rank() -> Option<usize> {
    simulated().then(|| RANK.get())
}

/// The calling thread's rank.
pub fn rank() -> usize {
    RANK.get()
}

/// Runs something with the machine's state.
pub fn with<R>(body: impl FnOnce(&mut Machine) -> R) -> R {
    let outside = INSIDE.replace(true);
    let result = body(MACHINE.lock().as_mut().expect("a machine runs"));
    INSIDE.set(outside);
    result
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Of all events in their order.
    pub trace: u64,
    pub events: u64,
    pub switches: u64,
    /// Simulated nanoseconds.
    pub time: u64,
    pub traffic: Vec<crate::network::Traffic>,
}

/// Runs `body` on each of `ranks` ranks, and checks that nothing of MPI is left over.
pub fn run(
    seed: u64,
    ranks: usize,
    behaviour: Behaviour,
    stack: usize,
    body: impl Fn(usize) + Send + Sync + 'static,
) -> Outcome {
    let main = Signal::new();
    let network = Network::new(ranks, behaviour.ranks_per_host);
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
        behaviour,
    }));
    let body = std::sync::Arc::new(body);
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
        machine.threads[first].signal
    });
    first.post();
    main.wait();
    for handle in handles {
        handle.join().expect("a rank's thread ends");
    }
    let machine = MACHINE.lock().take().expect("the machine that was made");
    machine.threads.iter().for_each(|thread| thread.signal.free());
    main.free();
    if let Err(left) = machine.network.is_clean() {
        fail_with(seed, &left, "");
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
    // SAFETY: the bytes are those of a string; then the process ends and runs nothing more.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        libc::_exit(1)
    }
}

/// Notes what the calling rank does, for a run that fails.
pub fn step(text: String) {
    let rank = RANK.get();
    with(|machine| machine.steps[rank] = text);
}

/// Ends the run as failed.
pub fn fail(why: &str) -> ! {
    let (seed, state) = with(|machine| (machine.seed, machine.describe()));
    fail_with(seed, &format!("rank {}: {why}", RANK.get() as isize), &state)
}

impl Machine {
    /// Notes an event.
    pub fn trace(&mut self, kind: &'static str, a: u64, b: u64) {
        self.events += 1;
        for word in [digest(kind), self.now, a, b] {
            self.hash = (self.hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
        }
        if self.print {
            eprintln!("{:>12} {kind} {a} {b}", self.now);
        }
    }

    /// Ends the run as failed; for what is found within the machine.
    pub fn fail(&self, why: &str) -> ! {
        fail_with(self.seed, &format!("rank {}: {why}", RANK.get() as isize), &self.describe())
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

    fn add_thread(&mut self, rank: usize) -> (usize, Signal) {
        let signal = Signal::new();
        let id = self.threads.len();
        self.threads.push(Thread {
            rank,
            state: State::Ready,
            sleeps: 0,
            timed_out: false,
            word: None,
            joiners: Vec::new(),
            signal,
            at: "start",
            idle: 0,
        });
        self.ready.push(id);
        self.alive += 1;
        (id, signal)
    }

    fn make_ready(&mut self, id: usize, timed_out: bool) {
        let thread = &mut self.threads[id];
        thread.state = State::Ready;
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

    fn put_to_sleep(&mut self, id: usize, why: &'static str, until: Option<u64>) {
        self.threads[id].state = State::Asleep(why);
        if let Some(at) = self.ready.iter().position(|&other| other == id) {
            self.ready.swap_remove(at);
        }
        if let Some(until) = until {
            self.timers.push(Reverse((until, id, self.threads[id].sleeps)));
        }
    }

    /// Chooses who runs next.
    fn pick(&mut self) -> usize {
        self.switches += 1;
        if self.switches > self.behaviour.most_switches {
            self.fail("the run does not end");
        }
        loop {
            while let Some(&Reverse((time, id, sleeps))) = self.timers.peek() {
                let thread = &self.threads[id];
                let valid = thread.sleeps == sleeps && matches!(thread.state, State::Asleep(_));
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

    /// How long a thread is away that gives the core up: the longer, the longer it has had
    /// nothing to do, which is one of the orders that a real machine may choose too.
    fn away(&mut self, id: usize) -> u64 {
        const LONGEST: u32 = 11;
        let idle = self.threads[id].idle.min(LONGEST);
        self.threads[id].idle += 1;
        1 + self.rng.below(1_000 << idle)
    }

    /// The calling thread gets something done.
    pub fn is_busy(&mut self) {
        if let Some(thread) = self.threads.get_mut(ME.get()) {
            thread.idle = 0;
        }
    }

    /// Where a word of shared memory lies in its file; its address, where it is in none.
    pub fn word_at(&self, address: u64) -> Word {
        match self.mappings.range(..=address).next_back() {
            Some((&base, &(len, device, inode, offset))) if address - base < len => {
                Word::Shared(device, inode, offset + (address - base))
            }
            _ => Word::Private(address),
        }
    }

    /// Notes a mapping of a file.
    pub fn map(&mut self, base: u64, len: u64, device: u64, inode: u64, offset: u64) {
        self.mappings.insert(base, (len, device, inode, offset));
    }

    /// Notes that a mapping is gone.
    pub fn unmap(&mut self, base: u64) {
        self.mappings.remove(&base);
    }
}

/// Of a name, alike in each run: not its address.
fn digest(name: &str) -> u64 {
    name.bytes().fold(0, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)))
}

/// Passes the baton on, unless it comes back at once.
fn pass(next: usize, theirs: Signal) {
    if next != ME.get() {
        theirs.post();
        SIGNAL.get().expect("a thread of the machine").wait();
    }
}

/// A point at which another thread may go on, or `always` does; the clock moves by up to `most`
/// nanoseconds.
pub fn point(at: &'static str, always: bool, most: u64) {
    let (next, theirs) = with(|machine| {
        let me = ME.get();
        machine.now += 1 + machine.rng.below(most);
        machine.threads[me].at = at;
        if always {
            let until = machine.now + machine.away(me);
            machine.put_to_sleep(me, at, Some(until));
        } else if !machine.rng.one_in(machine.behaviour.switch_every) {
            return (me, machine.threads[me].signal);
        }
        let next = machine.pick();
        (next, machine.threads[next].signal)
    });
    pass(next, theirs);
}

/// Only moves the clock.
pub fn tick(most: u64) -> u64 {
    with(|machine| {
        machine.now += 1 + machine.rng.below(most);
        machine.now
    })
}

/// Sleeps for so many nanoseconds, or until woken.
pub fn sleep(at: &'static str, nanoseconds: Option<u64>) {
    let (next, theirs) = with(|machine| {
        let me = ME.get();
        machine.threads[me].at = at;
        // A sleep takes a little longer than asked for.
        let late = machine.away(me);
        let until = nanoseconds.map(|n| machine.now.saturating_add(n).saturating_add(late));
        machine.put_to_sleep(me, at, until);
        let next = machine.pick();
        (next, machine.threads[next].signal)
    });
    pass(next, theirs);
}

/// Sleeps on a futex; false where the time was over first.
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

/// Wakes up to `most` threads that sleep on a futex; how many it were.
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

/// A thread that is about to start, as its creator hands it over.
pub struct Beginning {
    id: usize,
    rank: usize,
    signal: Signal,
}

/// Makes room for a thread that the calling one starts; none where it is not to be simulated.
pub fn begin_thread() -> Option<Beginning> {
    let rank = match STARTS.get() {
        NOBODY if simulated() => RANK.get(),
        NOBODY => return None,
        rank => rank,
    };
    Some(with(|machine| {
        let (id, signal) = machine.add_thread(rank);
        Beginning { id, rank, signal }
    }))
}

/// Notes by which handle a thread is joined.
pub fn began(native: libc::pthread_t, id: usize) {
    with(|machine| machine.natives.insert(native, id));
}

impl Beginning {
    pub fn id(&self) -> usize {
        self.id
    }

    /// The new thread waits for its first turn.
    pub fn enter(self) {
        RANK.set(self.rank);
        SIGNAL.set(Some(self.signal));
        self.signal.wait();
        ME.set(self.id);
    }
}

/// The calling thread ends.
pub fn end_thread() {
    let next = with(|machine| {
        let me = ME.get();
        if let Some(at) = machine.ready.iter().position(|&id| id == me) {
            machine.ready.swap_remove(at);
        }
        machine.threads[me].state = State::Ended;
        machine.alive -= 1;
        machine.trace("end", me as u64, 0);
        for joiner in std::mem::take(&mut machine.threads[me].joiners) {
            machine.make_ready(joiner, false);
        }
        if machine.alive == 0 {
            return machine.main;
        }
        let next = machine.pick();
        machine.threads[next].signal
    });
    ME.set(NOBODY);
    next.post();
}

/// Waits for the end of another thread of the machine; at once for one that is none.
pub fn await_end(native: libc::pthread_t) {
    loop {
        let waits = with(|machine| {
            let Some(&id) = machine.natives.get(&native) else { return false };
            if machine.threads[id].state == State::Ended {
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
