//! A histogram whose bins are distributed over the ranks.
//!
//! Each rank draws samples, counts them in batches, and adds each batch to the bins of all ranks by
//! non-blocking accumulates while it counts the next batch. All ranks add to the same bins at the
//! same time. At the end every rank draws the samples of all ranks again and checks its own bins.
//!
//! Usage: histogram [samples per rank, 4000000] [bins, 4096]

use portolan::reduce::Sum;
use std::error::Error;
use std::ops::Range;
use std::process::ExitCode;
use std::time::Instant;

const BATCH: usize = 100_000;

/// A generator of pseudo-random bins. Each is the sum of two random numbers, so the middle bins are
/// the most frequent.
struct Samples {
    state: u64,
    bins: usize,
}

impl Samples {
    fn of(rank: usize, bins: usize) -> Samples {
        Samples { state: 0x9e37_79b9_7f4a_7c15 ^ (rank as u64 + 1) << 17, bins }
    }
}

impl Iterator for Samples {
    type Item = usize;
    fn next(&mut self) -> Option<usize> {
        self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let (a, b) = (self.state >> 48, self.state >> 32 & 0xffff);
        Some((a + b) as usize * self.bins / (2 << 16))
    }
}

fn owned(rank: usize, ranks: usize, bins: usize) -> Range<usize> {
    bins * rank / ranks..bins * (rank + 1) / ranks
}

fn argument(position: usize, default: usize) -> Result<usize, Box<dyn Error>> {
    match std::env::args().nth(position) {
        Some(text) => text.parse().map_err(|_| format!("'{text}' is no number").into()),
        None => Ok(default),
    }
}

fn main() -> ExitCode {
    portolan::run(|rt| -> Result<(), Box<dyn Error>> {
        let (samples, bins) = (argument(1, 4_000_000)?, argument(2, 4096)?.max(1));
        let world = rt.world();
        let own = owned(rt.rank(), rt.size(), bins);
        let histogram = world.allocate::<i64>(own.len())?;

        let begun = Instant::now();
        let mut source = Samples::of(rt.rank(), bins).take(samples);
        let (mut full, mut filling) = (vec![0i64; bins], vec![0i64; bins]);
        let mut left = samples;
        while left > 0 {
            left -= left.min(BATCH);
            // ANCHOR: scope
            rt.scope(|s| {
                // In the first iteration all counts are zero.
                for i in 0..rt.size() {
                    // Each rank starts with a different owner.
                    let owner = (rt.rank() + i) % rt.size();
                    let part = owned(owner, rt.size(), bins);
                    s.accumulate(&histogram, owner, 0, 1, &full[part])?;
                }
                filling.fill(0);
                for bin in source.by_ref().take(BATCH) {
                    filling[bin] += 1;
                }
                Ok(())
            })?;
            // ANCHOR_END: scope
            std::mem::swap(&mut full, &mut filling);
        }
        for owner in 0..rt.size() {
            histogram.accumulate(owner, 0, 1, &full[owned(owner, rt.size(), bins)])?;
        }
        world.barrier()?;
        let seconds = begun.elapsed().as_secs_f64();

        let mut expected = vec![0i64; own.len()];
        for rank in 0..rt.size() {
            for bin in Samples::of(rank, bins).take(samples).filter(|b| own.contains(b)) {
                expected[bin - own.start] += 1;
            }
        }
        let counted = histogram.local().to_vec();
        let mut sums = [
            counted.iter().sum::<i64>(),
            counted.iter().zip(&expected).filter(|(c, e)| c != e).count() as i64,
        ];
        world.all_reduce(&mut sums, Sum)?;
        let [total, wrong] = sums;
        let drawn = samples * rt.size();
        if rt.rank() == 0 {
            println!(
                "histogram: {drawn} samples in {bins} bins on {} ranks, {:.1} million samples a \
                 second; {total} counted, {wrong} bins wrong",
                rt.size(),
                drawn as f64 / seconds / 1e6
            );
        }
        histogram.free()?;
        if wrong == 0 && total == drawn as i64 {
            Ok(())
        } else {
            Err(format!("{wrong} bins are wrong, {total} of {drawn} counted").into())
        }
    })
}
