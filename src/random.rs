//! Random input for tests. Every run of a test uses the same seeds.

use fastrand::Rng;

/// Runs a test with random numbers of `count` seeds, of a few in Miri. Prints the seed if it fails.
pub(crate) fn cases(count: u64, test: impl Fn(&mut Rng)) {
    struct Seed(u64);
    impl Drop for Seed {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("the test fails with seed {}", self.0);
            }
        }
    }
    let count = if cfg!(miri) { 4 } else { count };
    for seed in 0..count {
        let shown = Seed(seed);
        test(&mut Rng::with_seed(shown.0));
    }
}

/// Returns a list of `n` random values.
pub(crate) fn list<T>(rng: &mut Rng, n: usize, value: impl Fn(&mut Rng) -> T) -> Vec<T> {
    (0..n).map(|_| value(rng)).collect()
}

/// Returns a small number, or one near a limit at which arithmetic overflows.
pub(crate) fn extreme(rng: &mut Rng) -> usize {
    if rng.u32(0..3) > 0 {
        rng.usize(0..20)
    } else {
        (1usize << rng.u32(0..64)).wrapping_add_signed(rng.isize(-2..3))
    }
}
