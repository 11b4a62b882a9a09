//! Uneven tasks, distributed by a counter.
//!
//! Each task is one row of the Mandelbrot set, and the cost of rows varies widely. Ranks take the
//! number of the next row from a counter on rank 0 by fetch-and-add, so faster ranks take more
//! rows. Each rank adds the iterations of its rows and a mark to arrays on rank 0. Rank 0 checks
//! that every row was computed once and that all iteration counts are right.
//!
//! Usage: work_queue [rows, 480] [maximum iterations of a point, 1000]

use portolan::reduce::Sum;
use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

const COLUMNS: usize = 640;

/// Returns the number of iterations until the points of a row escape, summed over the row.
fn row(row: usize, rows: usize, limit: u32) -> i64 {
    let y = 2.4 * (row as f64 + 0.5) / rows as f64 - 1.2;
    let mut total = 0;
    for column in 0..COLUMNS {
        let x = 3.2 * column as f64 / COLUMNS as f64 - 2.2;
        let (mut a, mut b) = (0.0f64, 0.0f64);
        let mut n = 0;
        while n < limit && a * a + b * b <= 4.0 {
            (a, b) = (a * a - b * b + x, 2.0 * a * b + y);
            n += 1;
        }
        total += i64::from(n);
    }
    total
}

fn argument(position: usize, default: usize) -> Result<usize, Box<dyn Error>> {
    match std::env::args().nth(position) {
        Some(text) => text.parse().map_err(|_| format!("'{text}' is no number").into()),
        None => Ok(default),
    }
}

fn main() -> ExitCode {
    portolan::run(|rt| -> Result<(), Box<dyn Error>> {
        let (rows, limit) = (argument(1, 480)?, argument(2, 1000)? as u32);
        let world = rt.world();
        let on_zero = |n: usize| if rt.rank() == 0 { n } else { 0 };
        let counter = world.allocate::<i64>(on_zero(1))?;
        let iterations = world.allocate::<i64>(on_zero(rows))?;
        let done = world.allocate::<i32>(on_zero(rows))?;

        let begun = Instant::now();
        let mut mine = 0i64;
        loop {
            let task = counter.fetch_add(0, 0, 1)? as usize;
            if task >= rows {
                break;
            }
            iterations.accumulate(0, task, 1, &[row(task, rows, limit)])?;
            done.accumulate(0, task, 1, &[1])?;
            mine += 1;
        }
        world.barrier()?;
        let seconds = begun.elapsed().as_secs_f64();

        let share = world.all_gather(mine)?;
        let mut wrong = 0i64;
        if rt.rank() == 0 {
            let found = iterations.local().to_vec();
            let expected: Vec<i64> = (0..rows).map(|r| row(r, rows, limit)).collect();
            wrong += found.iter().zip(&expected).filter(|(f, e)| f != e).count() as i64;
            wrong += done.local().to_vec().iter().filter(|&&n| n != 1).count() as i64;
            let total: i64 = found.iter().sum();
            println!(
                "work_queue: {rows} rows, {total} iterations, {:.0} tasks a second, {:.1} million \
                 iterations a second; tasks per rank {share:?}; {wrong} wrong",
                rows as f64 / seconds,
                total as f64 / seconds / 1e6
            );
        }
        wrong += i64::from(share.iter().sum::<i64>() != rows as i64);
        let wrong = world.all_reduce_value(wrong, Sum)?;
        done.free()?;
        iterations.free()?;
        counter.free()?;
        if wrong == 0 { Ok(()) } else { Err(format!("{wrong} results are wrong").into()) }
    })
}
