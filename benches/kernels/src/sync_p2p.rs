//! PRK sync_p2p: a grid whose elements depend on their neighbours above, left and above left. The
//! ranks own columns and form a pipeline: each waits for the last element of a row of the rank
//! before. Portolan's version puts this element with a flag. A second kernel, `sync-hops`, has two
//! rows and two columns per rank, so it measures only the hand-overs.

use crate::job::{Sample, share};
use crate::{Job, Kernel, Outcome, Result, Side, Version, version, window::Window};
use std::ops::Range;

/// The kernel.
pub const KERNEL: Kernel = Kernel {
    name: "sync-p2p",
    size_is: "rows and columns of the grid",
    size: 1000,
    small: 50,
    unit: "GFlop/s",
    versions: &versions::<false>(),
};

/// Its hand-overs alone.
pub const HOPS: Kernel = Kernel {
    name: "sync-hops",
    size_is: "hundreds of rounds",
    size: 50,
    small: 2,
    unit: "million hops/s",
    versions: &versions::<true>(),
};

const fn versions<const HOPS: bool>() -> [Version; 3] {
    [
        version(Side::Portolan, "notify", notify::<HOPS>),
        version(Side::TwoSided, "messages", messages::<HOPS>),
        version(Side::Window, "put", windows::<HOPS>),
    ]
}

const ITERATIONS: usize = 4;

/// A rank's columns, and on their left one column of the rank before.
struct Grid {
    rows: usize,
    columns: Range<usize>,
    all_columns: usize,
    width: usize,
    iterations: usize,
    hops: bool,
    elements: Vec<f64>,
}

impl Grid {
    fn new<const HOPS: bool>(job: &Job<'_>, size: usize) -> Grid {
        let (rows, all_columns, iterations) =
            if HOPS { (2, 2 * job.n(), 100 * size) } else { (size, size, ITERATIONS) };
        let columns = share(all_columns, job.n(), job.me());
        let width = columns.len() + 1;
        let mut elements = vec![0.0; rows * width];
        for (k, column) in columns.clone().enumerate() {
            elements[k + 1] = column as f64;
        }
        if columns.start == 0 {
            (0..rows).for_each(|row| elements[row * width + 1] = row as f64);
        } else {
            elements[0] = (columns.start - 1) as f64;
        }
        Grid { rows, columns, all_columns, width, iterations, hops: HOPS, elements }
    }

    /// Computes a row, whose left neighbour is in place.
    fn row(&mut self, row: usize) {
        let (above, here) = self.elements[(row - 1) * self.width..].split_at_mut(self.width);
        let here = &mut here[..self.width];
        // The first column of the grid is given.
        let first = if self.columns.start == 0 { 2 } else { 1 };
        let mut left = here[first - 1];
        for (here, above) in here[first..].iter_mut().zip(above[first - 1..].windows(2)) {
            left = above[1] + left - above[0];
            *here = left;
        }
    }

    fn set_left(&mut self, row: usize, value: f64) {
        self.elements[row * self.width] = value;
    }

    fn last(&self, row: usize) -> f64 {
        self.elements[row * self.width + self.width - 1]
    }

    /// Stores the negative of the grid's last element as its first.
    fn set_corner(&mut self, last: f64) {
        self.elements[1] = -last;
    }

    fn finish(self, job: &Job<'_>, samples: Vec<Sample>) -> Result<Outcome> {
        let iterations = (self.iterations * job.repeats) as f64;
        let expected = iterations * (self.rows + self.all_columns - 2) as f64;
        let right =
            job.me() + 1 < job.n() || (self.last(self.rows - 1) - expected).abs() < 1e-8 * expected;
        // A single rank has rounds but not hops.
        let work = if self.hops {
            (self.iterations * job.n()) as f64 / 1e6
        } else {
            (2 * (self.rows - 1) * (self.all_columns - 1) * self.iterations) as f64 / 1e9
        };
        Ok(Outcome { samples, work, verified: job.all_true(right)? })
    }
}

/// Runs the pipeline. `receive(row, round)` waits for the element of the rank before, and
/// `send(row, round, value)` passes one on. Row 0 stands for the corner.
fn pipeline(
    job: &Job<'_>,
    grid: &mut Grid,
    round: &mut i32,
    receive: &impl Fn(usize, i32) -> Result<f64>,
    send: &impl Fn(usize, i32, f64) -> Result<()>,
) -> Result<()> {
    let (first, last) = (job.me() == 0, job.me() + 1 == job.n());
    for _ in 0..grid.iterations {
        *round += 1;
        for row in 1..grid.rows {
            if !first {
                let value = receive(row, *round)?;
                grid.set_left(row, value);
            }
            grid.row(row);
            if !last {
                send(row, *round, grid.last(row))?;
            }
        }
        if last {
            let corner = grid.last(grid.rows - 1);
            if first {
                grid.set_corner(corner);
            } else {
                send(0, *round, corner)?;
            }
        } else if first {
            let corner = receive(0, *round)?;
            grid.set_corner(corner);
        }
    }
    Ok(())
}

/// Words of a row's place: the value in two words, its flag, and padding to an aligned size.
const CELL: usize = 4;
const FLAG: usize = 2;

fn notify<const HOPS: bool>(job: &Job<'_>, size: usize) -> Result<Outcome> {
    let mut grid = Grid::new::<HOPS>(job, size);
    let group = job.rt()?.world();
    let next = (job.me() + 1) % job.n();
    // A rank passes on row r again only after the corner of this round, hence after the next rank
    // has read it. So each row needs one place and one flag. Both lie in one cache line, as in the
    // programs of the peers. A segment has one type, so the value is stored as two words of 32
    // bits.
    let cells = group.allocate::<i32>(CELL * grid.rows)?;
    let mut round = 0;
    let samples = job.repeat(|| {
        let receive = |row, round| {
            cells.wait_notify(CELL * row + FLAG, round)?;
            let words = [cells.local().read(CELL * row), cells.local().read(CELL * row + 1)];
            Ok(bytemuck::cast(words))
        };
        let send = |row, round, value: f64| {
            let words: [i32; 2] = bytemuck::cast(value);
            Ok(cells.put_notify(next, CELL * row, &words, &cells, CELL * row + FLAG, round)?)
        };
        pipeline(job, &mut grid, &mut round, &receive, &send)
    })?;
    cells.free()?;
    grid.finish(job, samples)
}

fn messages<const HOPS: bool>(job: &Job<'_>, size: usize) -> Result<Outcome> {
    let mut grid = Grid::new::<HOPS>(job, size);
    let (next, before) = ((job.me() + 1) % job.n(), (job.me() + job.n() - 1) % job.n());
    let mut round = 0;
    let samples = job.repeat(|| {
        let receive = |_, _| {
            let mut value = [0.0];
            job.world.receive(before, 0, &mut value);
            Ok(value[0])
        };
        let send = |_, _, value: f64| {
            job.world.send(next, 0, &[value]);
            Ok(())
        };
        pipeline(job, &mut grid, &mut round, &receive, &send)
    })?;
    grid.finish(job, samples)
}

fn windows<const HOPS: bool>(job: &Job<'_>, size: usize) -> Result<Outcome> {
    let mut grid = Grid::new::<HOPS>(job, size);
    let next = (job.me() + 1) % job.n();
    let window = Window::<f64>::new(job.world, 2 * grid.rows)?;
    let mut round = 0;
    let samples = job.repeat(|| {
        let receive = |row: usize, round| {
            while window.read(2 * row + 1) != f64::from(round) {
                job.world.probe();
                window.sync();
            }
            window.sync();
            Ok(window.read(2 * row))
        };
        let send = |row: usize, round, value: f64| {
            // SAFETY: both values live until the flush behind each put.
            unsafe {
                window.put(next, 2 * row, &[value]);
                window.flush(next);
                window.put(next, 2 * row + 1, &[f64::from(round)]);
                window.flush(next);
            }
            Ok(())
        };
        pipeline(job, &mut grid, &mut round, &receive, &send)
    })?;
    window.free();
    grid.finish(job, samples)
}
