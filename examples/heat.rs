//! The heat equation on a square plate that is split into tiles, one per rank.
//!
//! In each step a rank puts the four edges of its tile into its neighbours' mailboxes and sets a
//! flag after each one. Then it waits only for its own four flags, so ranks stay in step with their
//! neighbours without a barrier. Columns are strided blocks. A neighbour may be one step ahead, so
//! there are two sets of mailboxes and flags.
//!
//! The program compares the result with that of a single rank that computes the whole plate.
//!
//! Usage: heat [cells along a side, 512] [steps, 300]

use portolan::reduce::Max;
use portolan::transfer::Block;
use portolan::{Runtime, Segment};
use std::error::Error;
use std::ops::Range;
use std::process::ExitCode;
use std::time::Instant;

const DIFFUSION: f64 = 0.2;

/// The sides of a tile, in the order of their mailboxes.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    North,
    South,
    West,
    East,
}

const SIDES: [Side; 4] = [Side::North, Side::South, Side::West, Side::East];

impl Side {
    fn opposite(self) -> Side {
        match self {
            Side::North => Side::South,
            Side::South => Side::North,
            Side::West => Side::East,
            Side::East => Side::West,
        }
    }
}

/// The grid of ranks over a plate of `n` by `n` cells.
struct Plate {
    n: usize,
    down: usize,
    across: usize,
}

impl Plate {
    fn new(n: usize, ranks: usize) -> Plate {
        let down = (1..=ranks).filter(|d| ranks.is_multiple_of(*d) && d * d <= ranks).max();
        let down = down.unwrap_or(1);
        Plate { n, down, across: ranks / down }
    }

    fn tile(&self, rank: usize) -> Tile {
        let cut = |parts: usize, i: usize| self.n * i / parts..self.n * (i + 1) / parts;
        Tile {
            rows: cut(self.down, rank / self.across),
            columns: cut(self.across, rank % self.across),
        }
    }

    fn neighbour(&self, rank: usize, side: Side) -> Option<usize> {
        let (i, j) = (rank / self.across, rank % self.across);
        match side {
            Side::North => (i > 0).then(|| rank - self.across),
            Side::South => (i + 1 < self.down).then_some(rank + self.across),
            Side::West => (j > 0).then(|| rank - 1),
            Side::East => (j + 1 < self.across).then_some(rank + 1),
        }
    }
}

/// A rank's part of the plate. Its array has a frame one cell wide.
#[derive(Clone)]
struct Tile {
    rows: Range<usize>,
    columns: Range<usize>,
}

impl Tile {
    fn h(&self) -> usize {
        self.rows.len()
    }

    fn w(&self) -> usize {
        self.columns.len()
    }

    fn stride(&self) -> usize {
        self.w() + 2
    }

    /// Returns the initial tile with its frame: hot at the northern edge of the plate, warm in a
    /// disc.
    fn initial(&self, n: usize) -> Vec<f64> {
        let mut cells = vec![0.0; (self.h() + 2) * self.stride()];
        for (i, row) in cells.chunks_mut(self.stride()).enumerate() {
            for (j, cell) in row.iter_mut().enumerate() {
                let (y, x) = (self.rows.start + i, self.columns.start + j);
                let (dy, dx) = (y as f64 - n as f64 * 0.6, x as f64 - n as f64 * 0.4);
                *cell = if y == 0 {
                    100.0
                } else if (1..=n).contains(&y)
                    && (1..=n).contains(&x)
                    && dy * dy + dx * dx < (n * n) as f64 / 25.0
                {
                    60.0
                } else {
                    0.0
                };
            }
        }
        cells
    }

    /// Returns the cells along a side that the neighbour needs.
    fn edge(&self, side: Side) -> portolan::Result<Block> {
        let (h, w) = (self.h(), self.w());
        let part = match side {
            Side::North => [1..2, 1..w + 1],
            Side::South => [h..h + 1, 1..w + 1],
            Side::West => [1..h + 1, 1..2],
            Side::East => [1..h + 1, w..w + 1],
        };
        Block::of(&[h + 2, w + 2], &part)
    }

    fn mail(&self, step: usize, side: Side) -> Range<usize> {
        let (h, w) = (self.h(), self.w());
        let (at, len) = match side {
            Side::North => (0, w),
            Side::South => (w, w),
            Side::West => (2 * w, h),
            Side::East => (2 * w + h, h),
        };
        let start = (step % 2) * (2 * w + 2 * h) + at;
        start..start + len
    }

    fn flag(step: usize, side: Side) -> usize {
        (step % 2) * 4 + side as usize
    }

    fn open(&self, mail: &Segment<'_, f64>, step: usize, side: Side, cells: &mut [f64]) {
        let (from, stride) = (self.mail(step, side), self.stride());
        match side {
            Side::North | Side::South => {
                let row = if side == Side::North { 0 } else { self.h() + 1 };
                let to = &mut cells[row * stride + 1..][..self.w()];
                mail.local().read_slice(from.start, to);
            }
            Side::West | Side::East => {
                let column = if side == Side::West { 0 } else { self.w() + 1 };
                for (i, at) in from.enumerate() {
                    cells[(i + 1) * stride + column] = mail.local().read(at);
                }
            }
        }
    }

    fn advance(&self, old: &[f64], new: &mut [f64]) {
        let stride = self.stride();
        for i in 1..=self.h() {
            let row = |i: usize| &old[i * stride..][..stride];
            let (above, here, below) = (row(i - 1), row(i), row(i + 1));
            let target = &mut new[i * stride..][..stride];
            for j in 1..=self.w() {
                let sum = above[j] + below[j] + here[j - 1] + here[j + 1];
                target[j] = here[j] + DIFFUSION * (sum - 4.0 * here[j]);
            }
        }
    }
}

/// Computes all steps on all ranks. Returns this rank's tile.
fn solve(rt: &Runtime, plate: &Plate, steps: usize) -> portolan::Result<Vec<f64>> {
    let world = rt.world();
    let me = rt.rank();
    let tile = plate.tile(me);
    let mail = world.allocate::<f64>(4 * (tile.h() + tile.w()))?;
    let flags = world.allocate::<i32>(8)?;
    let neighbours: Vec<(Side, usize)> =
        SIDES.into_iter().filter_map(|s| Some((s, plate.neighbour(me, s)?))).collect();

    let mut cells = tile.initial(plate.n);
    let mut next = cells.clone();
    // ANCHOR: step
    for step in 1..=steps {
        for &(side, neighbour) in &neighbours {
            let there = side.opposite();
            let to = plate.tile(neighbour).mail(step, there).into();
            let flag = Tile::flag(step, there);
            let edge = tile.edge(side)?;
            mail.put_block_notify(neighbour, &to, &cells, &edge, &flags, flag, step as i32)?;
        }
        for &(side, _) in &neighbours {
            flags.wait_notify(Tile::flag(step, side), step as i32)?;
            tile.open(&mail, step, side, &mut cells);
        }
        tile.advance(&cells, &mut next);
        std::mem::swap(&mut cells, &mut next);
    }
    // ANCHOR_END: step
    mail.free()?;
    flags.free()?;
    Ok(cells)
}

/// Brings all tiles to rank 0 and returns the largest difference from the serial solution.
fn largest_error(
    rt: &Runtime,
    plate: &Plate,
    steps: usize,
    cells: &[f64],
) -> portolan::Result<f64> {
    let world = rt.world();
    let tile = plate.tile(rt.rank());
    let result = world.allocate::<f64>(tile.h() * tile.w())?;
    let inside = Block::of(&[tile.h() + 2, tile.w() + 2], &[1..tile.h() + 1, 1..tile.w() + 1])?;
    result.put_block(rt.rank(), &(0..tile.h() * tile.w()).into(), cells, &inside)?;
    world.barrier()?;

    let mut worst = 0.0f64;
    if rt.rank() == 0 {
        let n = plate.n;
        let mut all = vec![0.0; n * n];
        for rank in 0..rt.size() {
            let Tile { rows, columns } = plate.tile(rank);
            let whole = 0..rows.len() * columns.len();
            let here = Block::of(&[n, n], &[rows, columns])?;
            result.get_block(rank, &whole.into(), &mut all, &here)?;
        }
        let serial = Tile { rows: 0..n, columns: 0..n };
        let mut expected = serial.initial(n);
        let mut next = expected.clone();
        for _ in 0..steps {
            serial.advance(&expected, &mut next);
            std::mem::swap(&mut expected, &mut next);
        }
        for (i, row) in all.chunks(n).enumerate() {
            for (j, cell) in row.iter().enumerate() {
                let error = (cell - expected[(i + 1) * (n + 2) + j + 1]).abs();
                // A NaN is an error too.
                worst = if error <= worst { worst } else { error };
            }
        }
    }
    result.free()?;
    world.all_reduce_value(worst, Max)
}

fn argument(position: usize, default: usize) -> Result<usize, Box<dyn Error>> {
    match std::env::args().nth(position) {
        Some(text) => text.parse().map_err(|_| format!("'{text}' is no number").into()),
        None => Ok(default),
    }
}

fn main() -> ExitCode {
    portolan::run(|rt| -> Result<(), Box<dyn Error>> {
        let (n, steps) = (argument(1, 512)?, argument(2, 300)?);
        let plate = Plate::new(n, rt.size());
        if plate.down.max(plate.across) > n {
            return Err(format!("{n} by {n} cells are too few for {} ranks", rt.size()).into());
        }
        rt.world().barrier()?;
        let begun = Instant::now();
        let cells = solve(rt, &plate, steps)?;
        let seconds = begun.elapsed().as_secs_f64();
        let error = largest_error(rt, &plate, steps, &cells)?;
        if rt.rank() == 0 {
            println!(
                "heat: {n} by {n} cells on {} by {} ranks, {steps} steps, {:.1} million cells a \
                 second, largest error {error:e}",
                plate.down,
                plate.across,
                (n * n * steps) as f64 / seconds / 1e6
            );
        }
        if error <= 1e-12 { Ok(()) } else { Err(format!("wrong by {error:e}").into()) }
    })
}
