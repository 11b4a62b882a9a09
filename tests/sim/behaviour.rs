//! How a machine behaves: what may happen to its ranks and messages, and how often.

use crate::dice::Dice;

/// How a run behaves: drawn from its seed, or set by a test.
#[derive(Debug, Clone)]
pub struct Behaviour {
    /// One MPI call in so many passes the baton on.
    pub switch_every: u64,
    /// A thread is interrupted at one use of the heap in so many, whatever locks it holds; 0 is
    /// never.
    pub interrupt_every: u64,
    /// Bounds of a message's time on the way, in nanoseconds.
    pub delay: (u64, u64),
    /// One message in so many takes a hundred times as long; 0 is none.
    pub late_every: u64,
    /// Messages up to so many bytes are sent eagerly, but for one in so many (0 is none).
    pub eager: usize,
    pub long_every: u64,
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
    /// The program gives collectives up half way, so messages and requests of theirs are left.
    pub gives_up: bool,
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
            interrupt_every: rng.pick(&[0, 20, 200]),
            delay: (shortest, shortest * rng.pick(&[2, 20, 200])),
            late_every: rng.pick(&[0, 10, 100]),
            eager: rng.pick(&[0, 64, 1 << 12, 1 << 16]),
            long_every: 8,
            ranks_per_host: rng.pick(&[1, 2, 4, 16]),
            cores: rng.pick(&[1, 4, 64]),
            slow,
            stopped,
            gone: None,
            most_switches: 5_000_000,
            gives_up: false,
        }
    }

    /// One without surprises.
    pub fn plain(ranks_per_host: usize) -> Behaviour {
        Behaviour {
            switch_every: 4,
            interrupt_every: 0,
            delay: (1_000, 2_000),
            late_every: 0,
            eager: 1 << 12,
            long_every: 8,
            ranks_per_host,
            cores: 1024,
            slow: Vec::new(),
            stopped: Vec::new(),
            gone: None,
            most_switches: u64::MAX,
            gives_up: false,
        }
    }
}
