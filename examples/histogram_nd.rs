//! A histogram in three dimensions: all ranks count samples into one distributed array.
//!
//! The ranks count their samples in batches and add each batch with `scatter_add`, which sorts the
//! elements by owner. At the end the program checks the total and each bin.
//!
//! Usage: histogram_nd [bins along a side, 16] [samples of each rank, 200000]

use ndarray::Ix3;
use portolan::Runtime;
use portolan::array::{DistArray, Distribution, Options};
use portolan::reduce::Sum;
use std::collections::HashMap;
use std::error::Error;
use std::process::ExitCode;

const BATCH: usize = 10_000;

/// Returns the samples of a rank, sums of two random numbers, so the middle bins are fuller.
fn samples(rank: usize, count: usize, bins: usize) -> impl Iterator<Item = [usize; 3]> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(rank as u64 + 1);
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize
    };
    (0..count).map(move |_| [(); 3].map(|()| (random() % bins + random() % bins) / 2))
}

fn count(rt: &Runtime, bins: usize, each: usize) -> Result<(), Box<dyn Error>> {
    // ANCHOR: count
    let options = Options::named("bins").distribution(Distribution::block_cyclic([4, 4, 4]));
    let histogram = DistArray::<i64, Ix3>::with(&rt.world(), [bins; 3], options)?;
    let mut mine = samples(rt.rank(), each, bins);
    loop {
        // Combine the samples of the batch that fall into the same bin.
        let mut batch: HashMap<[usize; 3], i64> = HashMap::new();
        mine.by_ref().take(BATCH).for_each(|bin| *batch.entry(bin).or_default() += 1);
        if batch.is_empty() {
            break;
        }
        let (indices, counts): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        histogram.scatter_add(&indices, 1, &counts)?;
    }
    histogram.sync()?;
    // ANCHOR_END: count

    let total = histogram.sum()?;
    let fullest = histogram.max()?.ok_or("no bins")?;
    let mut wrong = 0;
    if rt.rank() == 0 {
        let mut expected = ndarray::Array3::<i64>::zeros([bins; 3]);
        for rank in 0..rt.size() {
            samples(rank, each, bins).for_each(|bin| expected[bin] += 1);
        }
        let counted = histogram.get(histogram.whole())?;
        wrong = counted.iter().zip(&expected).filter(|(a, b)| a != b).count() as i64;
        println!(
            "histogram: {total} samples in {bins}^3 bins, the fullest is {:?} with {}",
            fullest.index, fullest.value
        );
    }
    wrong = rt.world().all_reduce_value(wrong, Sum)?;
    histogram.free()?;
    if total != (each * rt.size()) as i64 || wrong > 0 {
        return Err(format!("{total} samples are counted, and {wrong} bins are wrong").into());
    }
    Ok(())
}

fn main() -> ExitCode {
    let number =
        |i: usize, or: usize| std::env::args().nth(i).and_then(|a| a.parse().ok()).unwrap_or(or);
    portolan::run(|rt| count(rt, number(1, 16), number(2, 200_000)))
}
