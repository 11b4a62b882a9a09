//! Breadth-first search of a graph whose vertices are distributed over the ranks.
//!
//! Edges, visits and checks travel as items. In each round every rank sends a visit to each
//! neighbour of the vertices that it found in the previous round. The owner of the neighbour keeps
//! the first visitor as its parent. The next round begins when no item is in flight. At the end the
//! program validates the tree as Graph500 does: each parent is a neighbour and one level nearer to
//! the root, the levels of neighbours differ by at most one, and no neighbour of a vertex in the
//! tree is outside the tree.
//!
//! Usage: breadth_first [GRAPH] [--root VERTEX]
//!
//! GRAPH is a file in Matrix Market format, `--rmat SCALE`, or `--grid WIDTH HEIGHT`. The default
//! is the graph of a karate club. Vertices count from 1.

use parking_lot::Mutex;
use portolan::Runtime;
use portolan::messages::{Batches, Delivery, Handlers, Item, Messages};
use portolan::reduce::{Min, Sum};
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn Error>>;

const KARATE: &str = include_str!("data/karate.mtx");
const NONE: u32 = u32::MAX;
/// Edges of an R-MAT graph per vertex.
const EDGE_FACTOR: u64 = 16;

/// One direction of an edge, sent to the owner of the first vertex.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Edge {
    from: u32,
    to: u32,
}

/// A visit of a vertex from one of its neighbours.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Visit {
    vertex: u32,
    from: u32,
}

/// The level of a vertex, sent to a neighbour for the validation.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Claim {
    vertex: u32,
    from: u32,
    level: u32,
}

/// The state that handlers change. Handlers run one at a time; the lock protects against the
/// program itself. The program must not hold the lock while it sends, because sending may run
/// handlers.
#[derive(Default)]
struct Part(Mutex<State>);

#[derive(Default)]
struct State {
    edges: Vec<Edge>,
    parent: Vec<u32>,
    level: Vec<u32>,
    /// The vertices found in this round. `round` is its number.
    found: Vec<u32>,
    round: u32,
    /// Whether the parent of a vertex has confirmed its level.
    proven: Vec<bool>,
    faults: i64,
}

impl Item for Edge {
    fn apply(batch: &[Edge], delivery: &Delivery<'_>) {
        delivery.state::<Part>().0.lock().edges.extend_from_slice(batch);
    }
}

impl Item for Visit {
    fn apply(batch: &[Visit], delivery: &Delivery<'_>) {
        let mut state = delivery.state::<Part>().0.lock();
        for visit in batch {
            let place = visit.vertex as usize / delivery.size();
            if state.parent[place] == NONE {
                state.parent[place] = visit.from;
                state.level[place] = state.round;
                state.found.push(visit.vertex);
            }
        }
    }
}

impl Item for Claim {
    fn apply(batch: &[Claim], delivery: &Delivery<'_>) {
        let mut state = delivery.state::<Part>().0.lock();
        for claim in batch {
            let place = claim.vertex as usize / delivery.size();
            let (mine, theirs) = (state.level[place], claim.level);
            let together = (mine == NONE) == (theirs == NONE);
            let mut good = together && (mine == NONE || mine.abs_diff(theirs) <= 1);
            if state.parent[place] == claim.from && claim.vertex != claim.from {
                good &= theirs != NONE && mine == theirs.wrapping_add(1);
                state.proven[place] = true;
            }
            state.faults += i64::from(!good);
        }
    }
}

enum Graph {
    Text(String),
    Rmat(u32),
    Grid(u64, u64),
}

fn number<T: std::str::FromStr>(text: Option<&str>) -> Outcome<T> {
    let text = text.ok_or("a number is missing")?;
    text.parse().map_err(|_| format!("'{text}' is no number").into())
}

fn arguments() -> Outcome<(Graph, Option<u32>)> {
    let (mut graph, mut root) = (Graph::Text(KARATE.into()), None);
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "--rmat" => graph = Graph::Rmat(number(words.next())?),
            "--grid" => graph = Graph::Grid(number(words.next())?, number(words.next())?),
            "--root" => root = Some(number(words.next())?),
            file => {
                let text = std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
                graph = Graph::Text(text);
            }
        }
    }
    Ok((graph, root))
}

/// A pseudo-random number generator (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Returns an edge of an R-MAT graph. Each bit of the vertices selects a quarter of the matrix.
fn rmat_edge(scale: u32, index: u64) -> (u64, u64) {
    let mut random = Random(index.wrapping_mul(0x2545_f491_4f6c_dd1d));
    (0..scale).fold((0, 0), |(row, column), _| {
        let (down, right) = match random.next() % 100 {
            0..57 => (0, 0),
            57..76 => (0, 1),
            76..95 => (1, 0),
            _ => (1, 1),
        };
        (2 * row + down, 2 * column + right)
    })
}

impl Graph {
    fn vertices(&self) -> Outcome<u64> {
        let count = match self {
            Graph::Text(text) => matrix_size(text)?.0,
            Graph::Rmat(scale) => 1u64.checked_shl(*scale).unwrap_or(0),
            Graph::Grid(width, height) => width.checked_mul(*height).unwrap_or(0),
        };
        match count {
            1..0xffff_ffff => Ok(count),
            _ => Err("a graph has at least one vertex and less than 2^32 - 1".into()),
        }
    }

    /// Calls `edge` with this rank's share of the edges.
    fn each_edge(
        &self,
        rank: usize,
        ranks: usize,
        edge: &mut dyn FnMut(u64, u64) -> portolan::Result<()>,
    ) -> Outcome<()> {
        let (rank, ranks) = (rank as u64, ranks as u64);
        match self {
            Graph::Text(text) => {
                let (size, lines) = matrix_size(text)?;
                for (n, line) in entries(text).skip(1).enumerate() {
                    if n as u64 % ranks != rank {
                        continue;
                    }
                    let mut words = line.split_whitespace();
                    let (a, b): (u64, u64) = (number(words.next())?, number(words.next())?);
                    if !(1..=size).contains(&a) || !(1..=size).contains(&b) {
                        return Err(format!("'{line}' is outside of {size} rows").into());
                    }
                    edge(a - 1, b - 1)?;
                }
                let found = entries(text).count() as u64 - 1;
                if found != lines {
                    return Err(format!("{found} entries where {lines} are promised").into());
                }
            }
            Graph::Rmat(scale) => {
                let all = EDGE_FACTOR << scale;
                for index in all * rank / ranks..all * (rank + 1) / ranks {
                    let (a, b) = rmat_edge(*scale, index);
                    edge(a, b)?;
                }
            }
            Graph::Grid(width, height) => {
                for y in (rank..*height).step_by(ranks as usize) {
                    for x in 0..*width {
                        let here = y * width + x;
                        if x + 1 < *width {
                            edge(here, here + 1)?;
                        }
                        if y + 1 < *height {
                            edge(here, here + width)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns the lines of a Matrix Market file that contain numbers.
fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('%'))
}

/// Returns the numbers of rows and entries of a Matrix Market file.
fn matrix_size(text: &str) -> Outcome<(u64, u64)> {
    let head = text.lines().next().unwrap_or_default().to_ascii_lowercase();
    if !head.starts_with("%%matrixmarket matrix coordinate") {
        return Err(format!("'{head}' does not begin a Matrix Market file of coordinates").into());
    }
    let mut words = entries(text).next().unwrap_or_default().split_whitespace();
    let (rows, columns): (u64, u64) = (number(words.next())?, number(words.next())?);
    if rows != columns {
        return Err(format!("a matrix of {rows} rows and {columns} columns is no graph").into());
    }
    Ok((rows, number(words.next())?))
}

/// The neighbours of vertex `n` of this rank are `neighbours[starts[n]..starts[n + 1]]`.
struct Adjacency {
    starts: Vec<usize>,
    neighbours: Vec<u32>,
}

impl Adjacency {
    fn new(edges: &[Edge], vertices: usize, ranks: usize) -> Adjacency {
        let mut starts = vec![0; vertices + 1];
        for edge in edges {
            starts[edge.from as usize / ranks + 1] += 1;
        }
        for i in 0..vertices {
            starts[i + 1] += starts[i];
        }
        let (mut at, mut neighbours) = (starts.clone(), vec![0; edges.len()]);
        for edge in edges {
            let at = &mut at[edge.from as usize / ranks];
            neighbours[*at] = edge.to;
            *at += 1;
        }
        Adjacency { starts, neighbours }
    }

    fn of(&self, place: usize) -> &[u32] {
        &self.neighbours[self.starts[place]..self.starts[place + 1]]
    }
}

/// Sends each edge to the owners of its vertices. Self-loops are omitted.
fn build(messages: &Messages<'_>, part: &Part, graph: &Graph, own: usize) -> Outcome<Adjacency> {
    let (rank, ranks) = (messages.rank(), messages.size());
    let edges: Batches<'_, Edge> = messages.batches()?;
    graph.each_edge(rank, ranks, &mut |a, b| {
        if a == b {
            return Ok(());
        }
        edges.push(a as usize % ranks, Edge { from: a as u32, to: b as u32 })?;
        edges.push(b as usize % ranks, Edge { from: b as u32, to: a as u32 })
    })?;
    messages.quiesce()?;
    let edges = std::mem::take(&mut part.0.lock().edges);
    Ok(Adjacency::new(&edges, own, ranks))
}

/// Searches from `root` and returns the number of rounds.
fn search(
    rt: &Runtime,
    messages: &Messages<'_>,
    part: &Part,
    adjacency: &Adjacency,
    root: u32,
) -> portolan::Result<u32> {
    let ranks = rt.size();
    let visits: Batches<'_, Visit> = messages.batches()?;
    if root as usize % ranks == rt.rank() {
        visits.push(rt.rank(), Visit { vertex: root, from: root })?;
    }
    for round in 1.. {
        messages.quiesce()?;
        let found = {
            let mut state = part.0.lock();
            state.round = round;
            std::mem::take(&mut state.found)
        };
        // The reduction keeps all ranks from sending for the next round until every rank has taken
        // the vertices that it found in this one.
        let count = rt.world().all_reduce_value(found.len() as i64, Sum)?;
        if count == 0 {
            return Ok(round - 1);
        }
        for from in found {
            for &vertex in adjacency.of(from as usize / ranks) {
                visits.push(vertex as usize % ranks, Visit { vertex, from })?;
            }
        }
    }
    Ok(0)
}

/// Sends the level of every vertex to its neighbours and returns the number of faults on this rank.
fn validate(
    messages: &Messages<'_>,
    part: &Part,
    adjacency: &Adjacency,
    root: u32,
) -> portolan::Result<i64> {
    let (rank, ranks) = (messages.rank(), messages.size());
    let claims: Batches<'_, Claim> = messages.batches()?;
    let levels = part.0.lock().level.clone();
    for (place, &level) in levels.iter().enumerate() {
        let from = (place * ranks + rank) as u32;
        for &vertex in adjacency.of(place) {
            claims.push(vertex as usize % ranks, Claim { vertex, from, level })?;
        }
    }
    messages.quiesce()?;
    let state = part.0.lock();
    let mut faults = state.faults;
    for (place, &level) in levels.iter().enumerate() {
        let vertex = (place * ranks + rank) as u32;
        let parent = state.parent[place];
        let good = match (vertex == root, parent == NONE) {
            (true, _) => parent == root && level == 0,
            (false, true) => level == NONE,
            (false, false) => state.proven[place] && level > 0,
        };
        faults += i64::from(!good);
    }
    Ok(faults)
}

fn main() -> ExitCode {
    portolan::run(|rt| -> Outcome<()> {
        let (graph, root) = arguments()?;
        let vertices = graph.vertices()?;
        let (rank, ranks, world) = (rt.rank(), rt.size(), rt.world());
        // Vertices are distributed cyclically.
        let own = (vertices as usize + ranks - 1 - rank) / ranks;
        let part = Arc::new(Part(Mutex::new(State {
            parent: vec![NONE; own],
            level: vec![NONE; own],
            proven: vec![false; own],
            ..State::default()
        })));
        let messages = Handlers::new()
            .state(part.clone())
            .item::<Edge>()
            .item::<Visit>()
            .item::<Claim>()
            .register(rt)?;
        let adjacency = build(&messages, &part, &graph, own)?;

        // The default root is the lowest vertex that has an edge.
        let first = (0..own).find(|&place| !adjacency.of(place).is_empty());
        let first = first.map_or(i64::MAX, |place| (place * ranks + rank) as i64);
        let first = world.all_reduce_value(first, Min)?;
        let root = match root {
            Some(root) if (1..=vertices).contains(&u64::from(root)) => root - 1,
            Some(root) => return Err(format!("{vertices} vertices, none is {root}").into()),
            None => u32::try_from(first).unwrap_or(0),
        };

        world.barrier()?;
        let begun = Instant::now();
        let rounds = search(rt, &messages, &part, &adjacency, root)?;
        let seconds = begun.elapsed().as_secs_f64();
        let faults = validate(&messages, &part, &adjacency, root)?;

        let state = part.0.lock();
        let reached = (0..own).filter(|&place| state.parent[place] != NONE);
        let crossed: usize = reached.clone().map(|place| adjacency.of(place).len()).sum();
        let mut sums =
            [reached.count() as i64, crossed as i64, adjacency.neighbours.len() as i64, faults];
        drop(state);
        world.all_reduce(&mut sums, Sum)?;
        let [reached, crossed, edges, faults] = sums;
        messages.free()?;
        if rank == 0 {
            println!(
                "breadth_first: {vertices} vertices, {} edges on {ranks} ranks; from vertex {} \
                 {reached} vertices in {rounds} levels, {:.1} million edges a second, {faults} \
                 faults",
                edges / 2,
                root + 1,
                crossed as f64 / 2.0 / seconds / 1e6
            );
        }
        if faults == 0 { Ok(()) } else { Err(format!("{faults} faults in the tree").into()) }
    })
}
