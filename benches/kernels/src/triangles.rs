//! bale triangle counting, on the lower half L of the adjacency matrix of a product of star graphs,
//! whose number of triangles is known. Ranks own the rows with their number modulo the ranks.
//!
//! A triangle is a pair of elements (j, k) of a row with k < j, if row j has element k.
//! *Aggregated* sends each pair in batches to the owner of row j. *Direct* gets row j.

use crate::histogram::BATCH;
use crate::job::Sample;
use crate::memory::{Memory, segment, window};
use crate::{Job, Kernel, Outcome, Result, Side, pushes::Pushes, version};
use portolan::messages::{Delivery, Handlers, Item};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The kernel.
pub const KERNEL: Kernel = Kernel {
    name: "triangles",
    size_is: "leaves of the smallest of three stars",
    size: 19,
    small: 4,
    unit: "million pairs/s",
    versions: &[
        version(Side::Portolan, "aggregated", aggregated),
        version(Side::Portolan, "direct", |job, size| direct(job, size, |len| segment(job, len))),
        version(Side::TwoSided, "aggregated", messages),
        version(Side::Window, "direct", |job, size| direct(job, size, |len| window(job, len))),
    ],
};

struct Graph {
    starts: Vec<usize>,
    columns: Vec<u32>,
    /// Pairs in the rows of all ranks.
    pairs: u64,
    triangles: u64,
}

impl Graph {
    /// Makes the product of three stars, whose hubs have loops. Two vertices are neighbours if one
    /// of them is the hub in each star.
    fn new(job: &Job<'_>, size: usize) -> Result<Graph> {
        let leaves = [size, size + 3, size + 7];
        let [a, b, c] = leaves.map(|leaves| leaves + 1);
        let mut graph = Graph { starts: vec![0], columns: Vec::new(), pairs: 0, triangles: 0 };
        for vertex in (job.me()..a * b * c).step_by(job.n()) {
            let digits = [vertex / (b * c), vertex / c % b, vertex % c];
            let near = |digit: usize, all: usize| if digit == 0 { 0..all } else { 0..1 };
            for i in near(digits[0], a) {
                for j in near(digits[1], b) {
                    let row = near(digits[2], c).map(|k| (i * b + j) * c + k);
                    graph.columns.extend(row.filter(|u| *u < vertex).map(|u| u as u32));
                }
            }
            graph.starts.push(graph.columns.len());
        }
        let own: u64 =
            graph.rows().map(|(_, row)| (row.len() * row.len().saturating_sub(1) / 2) as u64).sum();
        graph.pairs = job.count(own)?;
        // Closed walks of length 3, less those through the loop of the vertex that is the hub in
        // all stars. A triangle has six of them.
        let product = |f: fn(u64) -> u64| leaves.iter().map(|m| f(*m as u64)).product::<u64>();
        let degree = product(|m| m + 1) - 1;
        graph.triangles = (product(|m| 3 * m + 1) - 1 - 3 * degree) / 6;
        Ok(graph)
    }

    fn rows(&self) -> impl Iterator<Item = (usize, &[u32])> {
        (0..self.starts.len() - 1).map(|row| (row, self.row(row)))
    }

    fn row(&self, row: usize) -> &[u32] {
        &self.columns[self.starts[row]..self.starts[row + 1]]
    }

    fn has(&self, row: u32, column: u32) -> bool {
        self.row(row as usize).binary_search(&column).is_ok()
    }

    fn outcome(&self, job: &Job<'_>, samples: Vec<Sample>, found: u64) -> Result<Outcome> {
        let verified = job.count(found)? == self.triangles * job.repeats as u64;
        Ok(Outcome { samples, work: self.pairs as f64 / 1e6, verified })
    }

    fn pairs(&self, mut each: impl FnMut(u32, u32) -> Result<()>) -> Result<()> {
        for (_, row) in self.rows() {
            for (i, j) in row.iter().enumerate() {
                row[..i].iter().try_for_each(|k| each(*j, *k))?;
            }
        }
        Ok(())
    }
}

struct State {
    graph: Graph,
    found: AtomicU64,
}

/// A row, at its owner, and a column that it may have.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
struct Pair([u32; 2]);

impl Item for Pair {
    fn apply(batch: &[Pair], delivery: &Delivery<'_>) {
        let State { graph, found } = delivery.state::<State>();
        let new = batch.iter().filter(|Pair([row, column])| graph.has(*row, *column)).count();
        found.fetch_add(new as u64, Relaxed);
    }
}

fn aggregated(job: &Job<'_>, size: usize) -> Result<Outcome> {
    let state = Arc::new(State { graph: Graph::new(job, size)?, found: AtomicU64::new(0) });
    let handlers = Handlers::new().state(state.clone()).item_with::<Pair>(BATCH);
    let messages = handlers.register(job.rt()?)?;
    let (pairs, n) = (messages.batches::<Pair>()?, job.n() as u32);
    let samples = job.repeat(|| {
        state.graph.pairs(|j, k| Ok(pairs.push((j % n) as usize, Pair([j / n, k]))?))?;
        Ok(messages.quiesce()?)
    })?;
    messages.free()?;
    state.graph.outcome(job, samples, state.found.load(Relaxed))
}

fn messages(job: &Job<'_>, size: usize) -> Result<Outcome> {
    let graph = Graph::new(job, size)?;
    let (n, mut found) = (job.n() as u32, 0);
    let samples = job.repeat(|| {
        let mut pairs = Pushes::new(job.world, BATCH / 8, |batch: &[[u32; 2]]| {
            found += batch.iter().filter(|[row, column]| graph.has(*row, *column)).count() as u64;
        });
        graph.pairs(|j, k| {
            pairs.push((j % n) as usize, [j / n, k]);
            Ok(())
        })?;
        pairs.finish();
        Ok(())
    })?;
    graph.outcome(job, samples, found)
}

fn common(a: &[u32], b: &[u32]) -> u64 {
    let (mut i, mut j, mut count) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        count += u64::from(a[i] == b[j]);
        (i, j) = (i + usize::from(a[i] <= b[j]), j + usize::from(b[j] <= a[i]));
    }
    count
}

fn direct<M: Memory<u32>>(
    job: &Job<'_>,
    size: usize,
    make: impl Fn(usize) -> Result<M>,
) -> Result<Outcome> {
    let graph = Graph::new(job, size)?;
    let n = job.n();
    let most = job.gather(&[graph.columns.len() as u64, graph.starts.len() as u64])?;
    let most = |k: usize| most.iter().skip(k).step_by(2).max().map_or(0, |m| *m as usize);
    let (columns, starts) = (make(most(0))?, make(most(1))?);
    for (at, start) in graph.starts.iter().enumerate() {
        starts.write(at, *start as u32);
    }
    columns.put(job.me(), 0, &graph.columns)?;
    columns.fence()?;
    let (mut found, mut list) = (0, Vec::new());
    let samples = job.repeat(|| {
        for (_, row) in graph.rows() {
            // A pair needs a smaller element, so the first one is skipped.
            for (i, j) in row.iter().enumerate().skip(1) {
                let (owner, at) = (*j as usize % n, *j as usize / n);
                let mut range = [0; 2];
                starts.get(owner, at, &mut range)?;
                list.resize((range[1] - range[0]) as usize, 0);
                columns.get(owner, range[0] as usize, &mut list)?;
                found += common(&row[..i], &list);
            }
        }
        job.barrier()
    })?;
    columns.free()?;
    starts.free()?;
    graph.outcome(job, samples, found)
}
