//! A product of distributed matrices, computed and timed in two ways.
//!
//! Either each rank computes its own block of the result, or the ranks take tiles of the result
//! from counters. The program checks the result with a vector: `c x` must equal `a (b x)`, which is
//! cheap to compute at any size.
//!
//! Usage: matmul [rows and columns, 512] [tile, 128]

use ndarray::{Array1, Ix2};
use portolan::Runtime;
use portolan::array::{DistArray, Matmul};
use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

/// Multiplies a matrix by a vector. Ranks take tiles and accumulate their products.
fn times(m: &DistArray<'_, f64, Ix2>, x: &Array1<f64>) -> Result<Array1<f64>, Box<dyn Error>> {
    let n = x.len();
    let y = DistArray::<f64, _>::zeros(m.group(), [n])?;
    let mut tiles = m.tiles([64, 256])?;
    while let Some(tile) = tiles.take()? {
        let part = x.slice(ndarray::s![tile.ranges[1].clone()]);
        y.accumulate(tile.ranges[0].clone(), 1.0, &m.get(&tile)?.dot(&part))?;
    }
    tiles.free()?;
    y.sync()?;
    let all = y.get(0..n)?;
    y.free()?;
    Ok(all)
}

fn run(rt: &Runtime, n: usize, tile: usize) -> Result<(), Box<dyn Error>> {
    let world = rt.world();
    let mut a = DistArray::<f64, Ix2>::zeros(&world, [n, n])?;
    let mut b = a.like::<f64>("b")?;
    a.fill_with(|(i, j)| ((i * 3 + j * 5) % 17) as f64 / 16.0 - 0.5)?;
    b.fill_with(|(i, j)| ((i * 7 + j * 2) % 13) as f64 / 12.0 - 0.5)?;
    let x = Array1::from_shape_fn(n, |i| (i % 7) as f64 - 3.0);
    let expected = times(&a, &times(&b, &x)?)?;
    let mut c = a.like::<f64>("c")?;
    let algorithms =
        [(Matmul::Summa, "own blocks"), (Matmul::Tiles([tile, tile]), "tiles by counters")];
    for (algorithm, way) in algorithms {
        c.fill(f64::NAN)?;
        let begun = Instant::now();
        c.matmul(1.0, &a, &b, 0.0, algorithm)?;
        let seconds = begun.elapsed().as_secs_f64();
        let error = (times(&c, &x)? - &expected).iter().fold(0.0f64, |e, d| {
            // A NaN is an error too.
            if d.abs() <= e { e } else { d.abs() }
        });
        if rt.rank() == 0 {
            let rate = 2.0 * (n as f64).powi(3) / seconds / 1e9;
            println!("matmul: {n} by {n}, {way}: {seconds:.4} s, {rate:.2} GFLOP/s");
        }
        if error.is_nan() || error > 1e-9 * (n * n) as f64 {
            return Err(format!("wrong by {error:e}").into());
        }
        world.barrier()?;
    }
    for array in [a, b, c] {
        array.free()?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let number =
        |i: usize, or: usize| std::env::args().nth(i).and_then(|a| a.parse().ok()).unwrap_or(or);
    portolan::run(|rt| run(rt, number(1, 512), number(2, 128)))
}
