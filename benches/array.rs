//! Distributed arrays. Measures the same operations as benches/c/ga_array.c with Global Arrays.
//!
//! `scripts/bench.py array` runs both alternately and compares them. Prints one line per case:
//! name, tab, nanoseconds per call. With the argument `rows`, it measures only the transfers that
//! `scripts/bench.py python` compares.

use ndarray::{ArrayViewMut2, ArrayViewMut3, Ix2, Ix3, s};
use portolan::Runtime;
use portolan::array::{Boundary, DistArray, Distribution, Matmul, Options};
use std::time::Instant;

/// Repeats one rank's calls until they have taken long enough. Returns the nanoseconds of one call.
fn measured(mut call: impl FnMut() -> portolan::Result<()>) -> portolan::Result<f64> {
    call()?;
    let mut calls = 1;
    loop {
        let begun = Instant::now();
        for _ in 0..calls {
            call()?;
        }
        let seconds = begun.elapsed().as_secs_f64();
        if seconds > 0.02 {
            return Ok(seconds * 1e9 / f64::from(calls));
        }
        calls *= 2;
    }
}

/// Measures collective calls. All ranks make the same number.
fn together(
    rt: &Runtime,
    calls: u32,
    mut call: impl FnMut() -> portolan::Result<()>,
) -> portolan::Result<f64> {
    call()?;
    rt.world().barrier()?;
    let begun = Instant::now();
    for _ in 0..calls {
        call()?;
    }
    Ok(begun.elapsed().as_secs_f64() * 1e9 / f64::from(calls))
}

fn say(rt: &Runtime, name: &str, nanoseconds: f64) {
    if rt.rank() == 0 {
        println!("{name}\t{nanoseconds:.1}");
    }
}

fn patches(rt: &Runtime) -> portolan::Result<()> {
    let rows = || Options::named("a").distribution(Distribution::Rows);
    // All cases share the buffer, as in ga_array.c: its alignment to the array's pages matters.
    let mut memory = vec![1.0; 1 << 20];
    let a = DistArray::<f64, Ix2>::with(&rt.world(), [2048, 2048], rows())?;
    if rt.rank() == 0 {
        for n in [1, 8, 32, 128, 1024] {
            let mut buffer = ArrayViewMut2::from_shape((n, n), &mut memory[..n * n]).expect("fits");
            let patch = || [2048 - n..2048, 512..512 + n];
            say(rt, &format!("put 2d {n}"), measured(|| a.put(patch(), &buffer))?);
            let time = measured(|| a.get_into(patch(), buffer.view_mut()))?;
            say(rt, &format!("get 2d {n}"), time);
            say(rt, &format!("acc 2d {n}"), measured(|| a.accumulate(patch(), 1.5, &buffer))?);
        }
        let indices: Vec<[usize; 2]> =
            (0..10_000usize).map(|i| [i * 7919 % 2048, i * 104_729 % 2048]).collect();
        let values = vec![1.0; indices.len()];
        say(rt, "gather 10000", measured(|| a.gather(&indices).map(drop))?);
        say(rt, "scatter 10000", measured(|| a.scatter(&indices, &values))?);
        say(rt, "scatter_add 10000", measured(|| a.scatter_add(&indices, 1.5, &values))?);
    }
    a.free()?;
    let b = DistArray::<f64, Ix3>::with(&rt.world(), [208, 208, 208], rows())?;
    if rt.rank() == 0 {
        for n in [1, 4, 10, 25, 100] {
            let cube = (n, n, n);
            let mut buffer =
                ArrayViewMut3::from_shape(cube, &mut memory[..n * n * n]).expect("fits");
            let patch = || [208 - n..208, 50..50 + n, 60..60 + n];
            say(rt, &format!("put 3d {n}"), measured(|| b.put(patch(), &buffer))?);
            let time = measured(|| b.get_into(patch(), buffer.view_mut()))?;
            say(rt, &format!("get 3d {n}"), time);
            say(rt, &format!("acc 3d {n}"), measured(|| b.accumulate(patch(), 1.5, &buffer))?);
        }
    }
    b.free()
}

/// Measures the transfers of python/benches/transfers.py: rank 0 moves rows of rank 1.
fn rows(rt: &Runtime) -> portolan::Result<()> {
    for bytes in [8, 8 << 10, 1 << 20, 8 << 20] {
        let (n, last) = (bytes / 8, rt.size() - 1);
        let options = Options::named("rows").distribution(Distribution::Rows);
        let a = DistArray::<f64, Ix2>::with(&rt.world(), [rt.size(), n], options)?;
        if rt.rank() == 0 {
            let mut buffer = ndarray::Array2::from_elem((1, n), 1.0);
            let patch = || [last..last + 1, 0..n];
            let (get, put) = if n == 1 {
                let get = measured(|| a.get_value([last, 0]).map(|x| _ = std::hint::black_box(x)))?;
                (get, measured(|| a.put_value([last, 0], 1.0))?)
            } else {
                let get = measured(|| a.get_into(patch(), buffer.view_mut()))?;
                (get, measured(|| a.put(patch(), &buffer))?)
            };
            say(rt, &format!("get {bytes}"), get);
            say(rt, &format!("put {bytes}"), put);
        }
        a.sync()?;
        a.free()?;
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    portolan::run(|rt| -> portolan::Result<()> {
        if std::env::args().any(|argument| argument == "rows") {
            return rows(rt);
        }
        let world = rt.world();
        patches(rt)?;
        let create = together(rt, 200, || {
            // Uninitialised, as NGA_Create leaves arrays.
            DistArray::<f64, Ix2>::with(&world, [256, 512], Options::named("c").unfilled())?.free()
        })?;
        say(rt, "create 1M", create);

        let options = Options::named("tile").ghosts([1, 1, 1]).boundaries([Boundary::Periodic; 3]);
        let mut tile = DistArray::<f64, Ix3>::with(&world, [64 * rt.size(), 64, 64], options)?;
        let mut mine = tile.access()?;
        say(rt, "ghosts 64", together(rt, 2000, || mine.update_ghosts())?);
        mine.release()?;
        tile.free()?;

        let n = 1024;
        let mut a = DistArray::<f64, Ix2>::zeros(&world, [n, n])?;
        a.fill_with(|(i, j)| (i * 3 + j) as f64 / 1000.0)?;
        let mut c = a.like::<f64>("c")?;
        let product = together(rt, 2, || c.matmul(1.0, &a, &a, 0.0, Matmul::Auto))?;
        say(rt, "product 1024", product);
        let dynamic = together(rt, 2, || c.matmul(1.0, &a, &a, 0.0, Matmul::Tiles([256, 256])))?;
        say(rt, "product 1024 dynamic", dynamic);
        let spot = c.get([5..6, 0..n])?;
        let expected = a.get([5..6, 0..n])?.dot(&a.get([0..n, 7..8])?)[[0, 0]];
        assert!((spot.slice(s![0, 7]).sum() - expected).abs() <= 1e-9 * expected.abs());
        a.free()?;
        c.free()
    })
}
