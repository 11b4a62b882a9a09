//! Random numbers that a seed repeats.

/// A generator (xorshift).
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// Creates the generator number `stream` of a seed.
    pub fn new(seed: u64, stream: u64) -> Rng {
        let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (stream + 1) << 20 | 1);
        for _ in 0..8 {
            rng.next();
        }
        rng
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }
}

/// Returns the seed of this run, which it prints.
pub fn seed() -> u64 {
    let given = std::env::var("PORTOLAN_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(1, |now| now.as_nanos() as u64 % 1_000_000)
    });
    println!("PORTOLAN_TEST_SEED={seed}");
    seed
}

/// Returns the number of rounds: `full` in a full run, and a tenth of it otherwise.
pub fn rounds(full: usize) -> usize {
    if std::env::var_os("PORTOLAN_TEST_FULL").is_some() { full } else { full / 10 }
}
