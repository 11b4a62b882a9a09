//! bale sparse transpose: the transpose of a random sparse matrix whose rows are dealt out to the
//! ranks in turn. The first phase counts the elements of each column, the second moves them.
//!
//! *Aggregated* sends columns and then elements in batches. *Direct* increments counts and cursors
//! by atomic operations and puts each element to its place.

use crate::histogram::{BATCH, DIRECT};
use crate::job::Sample;
use crate::memory::{Words, segment, window};
use crate::{Job, Kernel, Outcome, Result, Side, pushes::Pushes, rng::Rng, version};
use portolan::messages::{Delivery, Handlers, Item};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The kernel.
pub const KERNEL: Kernel = Kernel {
    name: "sparse-transpose",
    size_is: "rows of a rank, with ten elements each",
    size: 1 << 16,
    small: 500,
    unit: "million/s",
    versions: &[
        version(Side::Portolan, "aggregated", aggregated),
        version(Side::Portolan, "direct", |job, size| direct(job, size, |len| segment(job, len))),
        version(Side::TwoSided, "aggregated", messages),
        version(Side::Window, "direct", |job, size| direct(job, size, |len| window(job, len))),
    ],
};

const ROW: usize = 10;

/// Calls `each` with the row and column of each element of a rank.
fn elements(job: &Job<'_>, rank: usize, rows: usize, mut each: impl FnMut(usize, usize)) {
    let mut rng = Rng::new(0x7a, rank);
    for row in 0..rows {
        (0..ROW).for_each(|_| each(row * job.n() + rank, rng.below(rows * job.n())));
    }
}

fn own_elements(job: &Job<'_>, rows: usize) -> Vec<[u32; 2]> {
    let mut own = Vec::with_capacity(rows * ROW);
    elements(job, job.me(), rows, |row, column| own.push([row as u32, column as u32]));
    own
}

/// This rank's rows of the transpose.
#[derive(Debug, Default)]
struct Transposed {
    /// In the first phase, the number of elements of each row; then the index of the next one.
    next: Vec<u32>,
    starts: Vec<u32>,
    columns: Vec<u32>,
}

impl Transposed {
    fn clear(&mut self, rows: usize) {
        self.next.clear();
        self.next.resize(rows, 0);
    }

    fn counted(&mut self) {
        self.starts.clear();
        let mut sum = 0;
        for next in &mut self.next {
            self.starts.push(sum);
            sum += std::mem::replace(next, sum);
        }
        self.starts.push(sum);
        self.columns.resize(sum as usize, 0);
    }

    #[inline]
    fn insert(&mut self, row: u32, column: u32) {
        let next = &mut self.next[row as usize];
        self.columns[*next as usize] = column;
        *next += 1;
    }

    fn finish(&mut self, job: &Job<'_>, rows: usize, samples: Vec<Sample>) -> Result<Outcome> {
        let mut expected = vec![Vec::new(); rows];
        for rank in 0..job.n() {
            elements(job, rank, rows, |row, column| {
                if column % job.n() == job.me() {
                    expected[column / job.n()].push(row as u32);
                }
            });
        }
        let right = expected.iter_mut().enumerate().all(|(row, expected)| {
            let range = self.starts[row] as usize..self.starts[row + 1] as usize;
            let got = &mut self.columns[range];
            got.sort_unstable();
            expected.sort_unstable();
            got == &expected[..]
        });
        let work = (rows * ROW * job.n()) as f64 / 1e6;
        Ok(Outcome { samples, work, verified: job.all_true(right)? })
    }
}

type State = Mutex<Transposed>;

fn locked(state: &State) -> MutexGuard<'_, Transposed> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A row of the transpose, at its owner.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
struct Count(u32);

impl Item for Count {
    fn apply(batch: &[Count], delivery: &Delivery<'_>) {
        let next = &mut locked(delivery.state::<State>()).next[..];
        batch.iter().for_each(|Count(row)| next[*row as usize] += 1);
    }
}

/// A row of the transpose, and a column of an element.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
struct Element([u32; 2]);

impl Item for Element {
    fn apply(batch: &[Element], delivery: &Delivery<'_>) {
        let transposed = &mut *locked(delivery.state::<State>());
        batch.iter().for_each(|Element([row, column])| transposed.insert(*row, *column));
    }
}

fn aggregated(job: &Job<'_>, rows: usize) -> Result<Outcome> {
    let (own, n) = (own_elements(job, rows), job.n() as u32);
    let state = Arc::new(State::default());
    let handlers = Handlers::new().state(state.clone());
    let messages =
        handlers.item_with::<Count>(BATCH).item_with::<Element>(BATCH).register(job.rt()?)?;
    let (counts, moves) = (messages.batches::<Count>()?, messages.batches::<Element>()?);
    let world = job.rt()?.world();
    let samples = job.repeat(|| {
        locked(&state).clear(rows);
        world.barrier()?;
        let count = |[_, column]: &[u32; 2]| ((column % n) as usize, Count(column / n));
        counts.push_all(own.iter().map(count))?;
        messages.quiesce()?;
        locked(&state).counted();
        world.barrier()?;
        let element =
            |[row, column]: &[u32; 2]| ((column % n) as usize, Element([column / n, *row]));
        moves.push_all(own.iter().map(element))?;
        Ok(messages.quiesce()?)
    })?;
    messages.free()?;
    locked(&state).finish(job, rows, samples)
}

fn messages(job: &Job<'_>, rows: usize) -> Result<Outcome> {
    let (own, n) = (own_elements(job, rows), job.n() as u32);
    let mut transposed = Transposed::default();
    let samples = job.repeat(|| {
        transposed.clear(rows);
        let mut counts = Pushes::new(job.world, BATCH / 4, |batch: &[u32]| {
            batch.iter().for_each(|row| transposed.next[*row as usize] += 1);
        });
        for [_, column] in &own {
            counts.push((column % n) as usize, column / n);
        }
        counts.finish();
        transposed.counted();
        let mut moves = Pushes::new(job.world, BATCH / 8, |batch: &[[u32; 2]]| {
            batch.iter().for_each(|[row, column]| transposed.insert(*row, *column));
        });
        for [row, column] in &own {
            moves.push((column % n) as usize, [column / n, *row]);
        }
        moves.finish();
        Ok(())
    })?;
    transposed.finish(job, rows, samples)
}

fn direct<M: Words>(
    job: &Job<'_>,
    rows: usize,
    make: impl Fn(usize) -> Result<M>,
) -> Result<Outcome> {
    let rows = rows / DIRECT;
    let (own, n) = (own_elements(job, rows), job.n());
    // The number of elements of a rank is known only after the first phase, so leave room.
    let most = 3 * rows * ROW + 1000;
    let (cursors, columns) = (make(rows)?, make(most)?);
    let mut transposed = Transposed::default();
    let place = |[_, column]: &[u32; 2]| (*column as usize % n, *column as usize / n);
    let samples = job.repeat(|| {
        (0..rows).for_each(|row| cursors.write(row, 0));
        job.barrier()?;
        cursors.add_all(own.iter().map(place).map(|(rank, row)| (rank, row, 1)))?;
        cursors.fence()?;
        job.barrier()?;
        transposed.clear(rows);
        (0..rows).for_each(|row| transposed.next[row] = cursors.read(row) as u32);
        transposed.counted();
        (0..rows).for_each(|row| cursors.write(row, u64::from(transposed.starts[row])));
        job.barrier()?;
        for element in &own {
            let (rank, row) = place(element);
            let at = cursors.fetch_add(rank, row, 1)?;
            columns.put(rank, at as usize, &[u64::from(element[0])])?;
        }
        columns.fence()?;
        job.barrier()
    })?;
    for at in 0..transposed.columns.len() {
        transposed.columns[at] = columns.read(at) as u32;
    }
    cursors.free()?;
    columns.free()?;
    transposed.finish(job, rows, samples)
}
