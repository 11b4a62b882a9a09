//! Random numbers that depend only on their seed, so any rank can repeat the numbers of another.

/// The generator `splitmix64`.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// Makes a generator. `stream` is usually a rank.
    pub fn new(seed: u64, stream: usize) -> Rng {
        let mut rng = Rng(seed ^ (stream as u64 + 1).wrapping_mul(0xd134_2543_de82_ef95));
        rng.next();
        rng
    }

    /// Returns the next number.
    #[expect(clippy::should_implement_trait, reason = "an endless sequence without an end to test")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// Returns the numbers below `n` in random order.
    pub fn permutation(&mut self, n: usize) -> Vec<u32> {
        let mut all: Vec<u32> = (0..n as u32).collect();
        for i in (1..n).rev() {
            all.swap(i, self.below(i + 1));
        }
        all
    }
}
