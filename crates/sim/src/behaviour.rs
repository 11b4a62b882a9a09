//! The behaviour of a machine: what may happen to its ranks and messages, and how often.

use crate::dice::Dice;

#[derive(Debug, Clone)]
pub struct Behaviour {
    /// Average number of MPI calls after which the baton is passed on.
    pub switch_every: u64,
    /// A thread is interrupted at one in this many uses of the heap, whatever locks it holds. 0 is
    /// never.
    pub interrupt_every: u64,
    /// Minimum and maximum delay of a message, in nanoseconds.
    pub delay: (u64, u64),
    /// One in this many messages, on average, is delayed a hundred times longer, or none if
    /// this is 0.
    pub late_every: u64,
    /// Maximum bytes of an eager message, except for one message in `long_every` (0: none).
    pub eager: usize,
    pub long_every: u64,
    pub ranks_per_host: usize,
    /// Number of cores that each host reports.
    pub cores: usize,
    pub slow: Vec<usize>,
    /// Ranks that stop: rank, begin and end in nanoseconds.
    pub stopped: Vec<(usize, u64, u64)>,
    /// A rank that stops for good, and when, in nanoseconds.
    pub gone: Option<(usize, u64)>,
    /// Maximum number of passes of the baton. Beyond it the run is considered endless.
    pub most_switches: u64,
    /// Whether the program abandons collectives, which leaves messages and requests behind.
    pub gives_up: bool,
    /// Whether ranks write reports. The symbols of their stack traces stay on the heap.
    pub reports: bool,
}

impl Behaviour {
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
            most_switches: 20_000_000,
            gives_up: false,
            reports: false,
        }
    }

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
            reports: false,
        }
    }
}
