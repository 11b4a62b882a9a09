//! bale topological sort: finds permutations that make a permuted upper triangular matrix upper
//! triangular again.
//!
//! A row with one remaining element gives its column the next position from the end, and the
//! column's elements are removed from all rows. Ranks own the rows and columns with their number
//! modulo the ranks. *Aggregated* works in levels. A sum over the ranks numbers the columns of a
//! level, and batches carry columns and removals. *Direct* has no levels: a rank takes positions
//! from a counter, removes elements by atomic operations, and goes on with the rows that it
//! completes.

use crate::histogram::{BATCH, DIRECT};
use crate::job::Sample;
use crate::memory::{Words, segment, window};
use crate::{Job, Kernel, Outcome, Result, Side, rng::Rng, version};
use portolan::messages::{Delivery, Handlers, Item};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The kernel.
pub const KERNEL: Kernel = Kernel {
    name: "toposort",
    size_is: "rows of a rank, with up to ten elements each",
    size: 1 << 16,
    small: 400,
    unit: "million/s",
    versions: &[
        version(Side::Portolan, "aggregated", aggregated),
        version(Side::Portolan, "direct", |job, size| direct(job, size, |len| segment(job, len))),
        version(Side::TwoSided, "alltoallv", messages),
        version(Side::Window, "direct", |job, size| direct(job, size, |len| window(job, len))),
    ],
};

/// Elements of a row, as far as it is long enough.
const ROW: usize = 10;
const NONE: u32 = u32::MAX;

struct Matrix {
    size: usize,
    /// The columns of each own row.
    rows: Vec<Vec<u32>>,
    /// The rows of each own column.
    columns: Vec<Vec<u32>>,
    elements: usize,
}

impl Matrix {
    fn new(job: &Job<'_>, own: usize) -> Matrix {
        let (n, me, size) = (job.n(), job.me(), own * job.n());
        let mut rng = Rng::new(0x7090, 0);
        let (to_row, to_column) = (rng.permutation(size), rng.permutation(size));
        let mut matrix =
            Matrix { size, rows: vec![vec![]; own], columns: vec![vec![]; own], elements: 0 };
        let mut row = Vec::new();
        for (i, r) in to_row.iter().map(|r| *r as usize).enumerate() {
            row.clear();
            row.push(i);
            row.extend((1..ROW).filter(|_| i + 1 < size).map(|_| i + 1 + rng.below(size - i - 1)));
            row.sort_unstable();
            row.dedup();
            matrix.elements += row.len();
            for c in row.iter().map(|j| to_column[*j] as usize) {
                if r % n == me {
                    matrix.rows[r / n].push(c as u32);
                }
                if c % n == me {
                    matrix.columns[c / n].push(r as u32);
                }
            }
        }
        matrix
    }

    fn state(&self) -> Sort {
        let mut sort = Sort {
            left: self.rows.iter().map(|row| row.len() as u32).collect(),
            sums: self.rows.iter().map(|row| row.iter().fold(0, |sum, c| sum ^ c)).collect(),
            row_places: vec![NONE; self.rows.len()],
            column_places: vec![NONE; self.rows.len()],
            ready: Vec::new(),
        };
        let ready = (0..sort.left.len()).filter(|row| sort.left[*row] == 1);
        sort.ready = ready.map(|row| row as u32).collect();
        sort
    }

    /// Checks that the places are permutations that make the matrix upper triangular.
    fn verify(&self, job: &Job<'_>, sort: &Sort, samples: Vec<Sample>) -> Result<Outcome> {
        let everywhere = |own: &[u32]| -> Result<Vec<u32>> {
            let own: Vec<u64> = own.iter().map(|place| u64::from(*place)).collect();
            let all = job.gather(&own)?;
            let (n, each) = (job.n(), own.len());
            Ok((0..self.size).map(|i| all[i % n * each + i / n] as u32).collect())
        };
        let (rows, columns) = (everywhere(&sort.row_places)?, everywhere(&sort.column_places)?);
        let is_permutation = |places: &[u32]| {
            let mut sorted = places.to_vec();
            sorted.sort_unstable();
            sorted.iter().enumerate().all(|(i, place)| i == *place as usize)
        };
        let mut right = is_permutation(&rows) && is_permutation(&columns);
        for (i, row) in self.rows.iter().enumerate() {
            let place = rows[i * job.n() + job.me()];
            right &= row.iter().all(|c| columns[*c as usize] >= place);
        }
        let work = self.elements as f64 / 1e6;
        Ok(Outcome { samples, work, verified: job.all_true(right)? })
    }
}

#[derive(Default)]
struct Sort {
    /// Remaining elements of each row.
    left: Vec<u32>,
    /// The remaining columns of each row, by exclusive or.
    sums: Vec<u32>,
    row_places: Vec<u32>,
    column_places: Vec<u32>,
    /// Rows with one remaining element.
    ready: Vec<u32>,
}

impl Sort {
    #[inline]
    fn remove(&mut self, row: u32, column: u32) {
        let row_index = row as usize;
        self.left[row_index] -= 1;
        self.sums[row_index] ^= column;
        if self.left[row_index] == 1 {
            self.ready.push(row);
        }
    }

    /// Places the rows of a level before `from`. Returns each with its column and its place.
    fn place(&mut self, rows: &[u32], from: usize) -> Vec<[u32; 3]> {
        let place = |(i, row): (usize, &u32)| {
            let place = (from - 1 - i) as u32;
            self.row_places[*row as usize] = place;
            [*row, self.sums[*row as usize], place]
        };
        rows.iter().enumerate().map(place).collect()
    }
}

struct State {
    matrix: Matrix,
    sort: Mutex<Sort>,
    me: u32,
}

impl State {
    fn sort(&self) -> MutexGuard<'_, Sort> {
        self.sort.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A column, at its owner, its row, and its place.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Pivot {
    column: u32,
    row: u32,
    place: u32,
}

impl Item for Pivot {
    fn apply(batch: &[Pivot], delivery: &Delivery<'_>) {
        let state = delivery.state::<State>();
        let removals = delivery.batches::<Removal>().expect("a registered type");
        let n = delivery.size() as u32;
        {
            let places = &mut state.sort().column_places;
            batch.iter().for_each(|pivot| places[pivot.column as usize] = pivot.place);
        }
        let removals_of = |Pivot { column, row, .. }: &Pivot| {
            let (row, number) = (*row, column * n + state.me);
            let others = state.matrix.columns[*column as usize].iter().filter(move |r| **r != row);
            others.map(move |r| ((r % n) as usize, Removal { row: r / n, column: number }))
        };
        removals.push_all(batch.iter().flat_map(removals_of)).expect("removals");
    }
}

/// A row, at its owner, and the column to remove from it.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Removal {
    row: u32,
    column: u32,
}

impl Item for Removal {
    fn apply(batch: &[Removal], delivery: &Delivery<'_>) {
        let mut sort = delivery.state::<State>().sort();
        batch.iter().for_each(|Removal { row, column }| sort.remove(*row, *column));
    }
}

/// Returns the end of the places of this rank's level, and the end for all ranks. `levels` holds
/// the sizes of the ranks' levels.
fn ends(levels: &[u64], me: usize, end: usize) -> (usize, usize) {
    let before: u64 = levels[..me].iter().sum();
    let all: u64 = levels.iter().sum();
    (end - before as usize, end - all as usize)
}

fn aggregated(job: &Job<'_>, own: usize) -> Result<Outcome> {
    let matrix = Matrix::new(job, own);
    let (n, me) = (job.n() as u32, job.me() as u32);
    let state = Arc::new(State { matrix, sort: Mutex::default(), me });
    let world = job.rt()?.world();
    let handlers = Handlers::new().state(state.clone());
    let messages =
        handlers.item_with::<Pivot>(BATCH).item_with::<Removal>(BATCH).register(job.rt()?)?;
    let pivots = messages.batches::<Pivot>()?;
    let samples = job.repeat(|| {
        *state.sort() = state.matrix.state();
        let mut end = state.matrix.size;
        loop {
            // Rows that become ready from now on are of the next level: other ranks may have begun
            // with this one.
            let ready = std::mem::take(&mut state.sort().ready);
            let (from, next) = ends(&world.all_gather(ready.len() as u64)?, job.me(), end);
            if next == end {
                return Ok(());
            }
            end = next;
            let level = state.sort().place(&ready, from);
            pivots.push_all(level.into_iter().map(|[row, column, place]| {
                let pivot = Pivot { column: column / n, row: row * n + me, place };
                ((column % n) as usize, pivot)
            }))?;
            messages.quiesce()?;
        }
    })?;
    messages.free()?;
    let outcome = state.matrix.verify(job, &state.sort(), samples)?;
    Ok(outcome)
}

fn messages(job: &Job<'_>, own: usize) -> Result<Outcome> {
    let matrix = Matrix::new(job, own);
    let (n, me) = (job.n() as u32, job.me() as u32);
    let mut sort = Sort::default();
    let samples = job.repeat(|| {
        sort = matrix.state();
        let mut end = matrix.size;
        loop {
            let ready = std::mem::take(&mut sort.ready);
            let levels = job.world.all_gather(&[ready.len() as u64]);
            let (from, next) = ends(&levels, job.me(), end);
            if next == end {
                return Ok(());
            }
            end = next;
            let mut pivots = vec![Vec::new(); job.n()];
            for [row, column, place] in sort.place(&ready, from) {
                pivots[(column % n) as usize].push([column / n, row * n + me, place]);
            }
            let mut removals = vec![Vec::new(); job.n()];
            for [column, row, place] in job.world.exchange(&pivots).0 {
                sort.column_places[column as usize] = place;
                for other in matrix.columns[column as usize].iter().filter(|r| **r != row) {
                    removals[(other % n) as usize].push([other / n, column * n + me]);
                }
            }
            for [row, column] in job.world.exchange(&removals).0 {
                sort.remove(row, column);
            }
        }
    })?;
    matrix.verify(job, &sort, samples)
}

/// The remaining elements of a row in the bits above `COUNT`, the sum of their columns below.
const COUNT: u32 = 40;

fn direct<M: Words>(
    job: &Job<'_>,
    own: usize,
    make: impl Fn(usize) -> Result<M>,
) -> Result<Outcome> {
    let own = (own / DIRECT).max(8);
    let matrix = Matrix::new(job, own);
    let (n, me) = (job.n(), job.me());
    let most = job.gather(&[matrix.columns.iter().map(Vec::len).sum::<usize>() as u64])?;
    let most = most.into_iter().max().unwrap_or(0) as usize;
    // Per row: its word and its place. Per column: where its rows begin and end, and its place.
    let (rows, row_places, column_places) = (make(own)?, make(own)?, make(own)?);
    let (starts, lists, counter) = (make(own + 1)?, make(most)?, make(1)?);
    let mut at = 0;
    for (column, list) in matrix.columns.iter().enumerate() {
        starts.write(column, at as u64);
        for row in list {
            lists.write(at, u64::from(*row));
            at += 1;
        }
    }
    starts.write(own, at as u64);
    let samples = job.repeat(|| {
        for (i, row) in matrix.rows.iter().enumerate() {
            let sum: u64 = row.iter().map(|c| u64::from(*c)).sum();
            rows.write(i, ((row.len() as u64) << COUNT) + sum);
        }
        counter.write(0, 0);
        job.barrier()?;
        let mut ready: Vec<(usize, u64)> = Vec::new();
        for (i, row) in matrix.rows.iter().enumerate().filter(|(_, row)| row.len() == 1) {
            ready.push((i * n + me, u64::from(row[0])));
        }
        // A row becomes ready at the rank that removes its last but one element, which goes on
        // with it. So no rank has to look for work, and the barrier is the end.
        let mut list = Vec::new();
        while let Some((row, column)) = ready.pop() {
            let place = matrix.size as u64 - 1 - counter.fetch_add(0, 0, 1)?;
            row_places.put(row % n, row / n, &[place])?;
            let (owner, index) = (column as usize % n, column as usize / n);
            column_places.put(owner, index, &[place])?;
            let mut range = [0; 2];
            starts.get(owner, index, &mut range)?;
            list.resize((range[1] - range[0]) as usize, 0);
            lists.get(owner, range[0] as usize, &mut list)?;
            for other in list.iter().map(|other| *other as usize).filter(|r| *r != row) {
                let removed = (1u64 << COUNT) + column;
                let old = rows.fetch_add(other % n, other / n, removed.wrapping_neg())?;
                let left = old.wrapping_sub(removed);
                if left >> COUNT == 1 {
                    ready.push((other, left & ((1 << COUNT) - 1)));
                }
            }
        }
        row_places.fence()?;
        job.barrier()
    })?;
    let mut sort = matrix.state();
    for i in 0..own {
        sort.row_places[i] = row_places.read(i) as u32;
        sort.column_places[i] = column_places.read(i) as u32;
    }
    [rows, row_places, column_places, starts, lists, counter].into_iter().try_for_each(M::free)?;
    matrix.verify(job, &sort, samples)
}
