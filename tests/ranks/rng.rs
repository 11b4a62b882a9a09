//! Random numbers that every rank can reproduce.

/// A generator of `fastrand` with the calls that the checks use.
#[derive(Debug, Clone)]
pub struct Rng(fastrand::Rng);

impl Rng {
    /// Returns a generator for a seed and for numbers that distinguish its uses.
    pub fn new(seed: u64, parts: &[u64]) -> Rng {
        let mix = |seed: u64, &part: &u64| {
            fastrand::Rng::with_seed(seed).u64(..).wrapping_add(part.wrapping_mul(0x9e37_79b9))
        };
        Rng(fastrand::Rng::with_seed(parts.iter().fold(seed, mix)))
    }

    pub fn next(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// Returns a number below `n`, or 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        if n == 0 { 0 } else { self.0.usize(..n) }
    }

    /// Both limits are included.
    pub fn range(&mut self, lo: usize, hi: usize) -> usize {
        self.0.usize(lo..=hi)
    }

    /// Returns true in one of `n` calls on average.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        let mut out = vec![0; n];
        self.0.fill(&mut out);
        out
    }

    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        self.0.shuffle(list);
    }
}
