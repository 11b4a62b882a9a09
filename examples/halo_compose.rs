//! A 3-D halo exchange, composed once and performed a thousand times.
//!
//! The ranks form a periodic grid. Each rank has a block of numbers with a halo one cell wide.
//! Blocks describe the faces, edges and corners for the 26 neighbours. They are merged into one
//! composition, which is then mapped. A step consists of three calls: agree that the halos may be
//! written, write the neighbours' halos, and wait for the own halo.
//!
//! Usage: halo_compose [cells along a side, 32] [steps, 1000]

use portolan::compose::{Composer, Composition};
use portolan::transfer::Block;
use portolan::{Runtime, Segment};
use std::collections::BTreeSet;
use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A rank's position in the grid of ranks, and the shape of its block.
struct Domain {
    n: usize,
    dims: [usize; 3],
    at: [usize; 3],
}

impl Domain {
    fn new(n: usize, rank: usize, ranks: usize) -> Domain {
        // Split z first, because planes of constant z are contiguous.
        let mut dims = [1, 1, ranks];
        for z in (1..=ranks).rev().filter(|z| ranks.is_multiple_of(*z)) {
            for y in (1..=ranks / z).rev().filter(|y| (ranks / z).is_multiple_of(*y)) {
                let grid = [ranks / z / y, y, z];
                if grid.iter().sum::<usize>() < dims.iter().sum() {
                    dims = grid;
                }
            }
        }
        Domain { n, dims, at: [rank % dims[0], rank / dims[0] % dims[1], rank / dims[0] / dims[1]] }
    }

    fn side(&self) -> usize {
        self.n + 2
    }

    fn cell(&self, [x, y, z]: [usize; 3]) -> usize {
        (z * self.side() + y) * self.side() + x
    }

    fn neighbour(&self, direction: [isize; 3]) -> usize {
        let along = |i: usize| {
            let size = self.dims[i] as isize;
            (self.at[i] as isize + direction[i]).rem_euclid(size) as usize
        };
        (along(2) * self.dims[1] + along(1)) * self.dims[0] + along(0)
    }

    /// Returns the expected value of a cell in a step. The indices of `cell` include the halo.
    fn value(&self, cell: [usize; 3], step: usize) -> f64 {
        let along = |i: usize| {
            let size = self.n * self.dims[i];
            (self.at[i] * self.n + cell[i] + size - 1) % size
        };
        let (x, y, z) = (along(0), along(1), along(2));
        ((z * self.n * self.dims[1] + y) * self.n * self.dims[0] + x) as f64 + step as f64 / 8.0
    }

    fn directions() -> impl Iterator<Item = [isize; 3]> {
        (0..27).map(|d| [d % 3 - 1, d / 3 % 3 - 1, d / 9 - 1]).filter(|d| *d != [0, 0, 0])
    }

    /// Adds the cells to send in a direction.
    fn add<'rt>(
        &self,
        composition: &mut Composition<'rt>,
        field: &Segment<'rt, f64>,
        direction: [isize; 3],
    ) -> portolan::Result<()> {
        let count = direction.map(|d| if d == 0 { self.n } else { 1 });
        let from = direction.map(|d| if d > 0 { self.n } else { 1 });
        let to = direction.map(|d| match d {
            1 => 0,
            -1 => self.n + 1,
            _ => 1,
        });
        // The last axis of a block varies fastest.
        let part = |at: [usize; 3]| {
            Block::of(&[self.side(); 3], &[2, 1, 0].map(|axis| at[axis]..at[axis] + count[axis]))
        };
        composition.add_block(field, &part(from)?, field, self.neighbour(direction), &part(to)?)
    }

    /// Calls `cell` with the index of each cell, including the halo if `halo` is true.
    fn cells(&self, halo: bool, mut cell: impl FnMut([usize; 3])) {
        let range = if halo { 0..self.side() } else { 1..self.n + 1 };
        for z in range.clone() {
            for y in range.clone() {
                for x in range.clone() {
                    cell([x, y, z]);
                }
            }
        }
    }
}

fn exchange(rt: &Runtime, n: usize, steps: usize) -> Result<(), Box<dyn Error>> {
    let block = Domain::new(n, rt.rank(), rt.size());
    let field = rt.world().allocate::<f64>(block.side().pow(3))?;
    let composer = Composer::new(rt)?;

    let begun = Instant::now();
    let mut all: Option<Composition> = None;
    for direction in Domain::directions() {
        let mut one = composer.simple(block.neighbour(direction))?;
        block.add(&mut one, &field, direction)?;
        all = Some(match all {
            Some(all) => all.merge(&one)?,
            None => one,
        });
    }
    let halo = all.ok_or("no direction")?.map()?;
    let composing = begun.elapsed();
    // The neighbour relation is symmetric, and each neighbour performs once per step.
    let sources: BTreeSet<usize> = Domain::directions().map(|d| block.neighbour(d)).collect();

    let mut moving = Duration::ZERO;
    for step in 0..steps {
        let looked_at = step.is_multiple_of(100) || step + 1 == steps;
        if looked_at {
            block.cells(false, |c| field.local().write(block.cell(c), block.value(c, step)));
        }
        let begun = Instant::now();
        composer.sync()?;
        composer.perform(&halo)?;
        composer.wait_for(sources.len() as u32)?;
        moving += begun.elapsed();
        if looked_at {
            let mut wrong = 0;
            block.cells(true, |c| {
                wrong += usize::from(field.local().read(block.cell(c)) != block.value(c, step));
            });
            if wrong > 0 {
                return Err(format!("{wrong} cells are wrong in step {step}").into());
            }
        }
    }
    if rt.rank() == 0 {
        println!(
            "grid {:?}, blocks of {n}^3: composed in {composing:.1?}, {steps} steps, {:.1?} each",
            block.dims,
            moving / steps.max(1) as u32
        );
    }
    composer.free()?;
    field.free()?;
    Ok(())
}

fn main() -> ExitCode {
    let number = |i: usize, default: usize| {
        std::env::args().nth(i).and_then(|a| a.parse().ok()).unwrap_or(default)
    };
    portolan::run(|rt| exchange(rt, number(1, 32), number(2, 1000)))
}
