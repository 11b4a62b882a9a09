//! Estimates the cost of jobs of a thousand to a million ranks, for docs/scaling.md.
//!
//! The steps, and the messages and bytes of each, come from the engine in the simulation. The cost
//! of a step was measured on two cores and between two hosts with TCP (docs/scale-measured.md,
//! `scripts/bench.py hosts`). The model assumes that every node sends and receives like one of
//! these hosts, independently of the others.

use crate::heap;

const NODE: usize = 64;
/// Half a round trip between hosts, in seconds.
const HALF_ROUND_TRIP: f64 = 8.4e-6;
/// Bandwidth into a host, in bytes per second.
const RATE: f64 = 2.0e9;
/// CPU time of the owner for a request and its answer, in seconds.
const SERVED: f64 = 12e-6;
/// Time of one step of a shared-memory collective area with 16 ranks on two cores, in seconds.
const SHARED_AREA: f64 = 30e-6;
/// Bytes that a rank contributes at the start and for a segment, and bytes that one step of a
/// shared-memory collective area moves.
const INTRODUCTION: usize = 248;
const LAYOUT: usize = 64;
const SHARED_AREA_BYTES: usize = 8 << 10;
/// Bytes that a rank holds for each rank that it has communicated with.
const USED: usize = 1_088;

const JOBS: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];

fn nodes(n: usize) -> usize {
    n.div_ceil(NODE)
}

fn rounds(parties: usize) -> f64 {
    f64::from(parties.next_power_of_two().trailing_zeros())
}

/// Each rank exchanges with all others, and all data for the ranks of a node arrives over one link.
fn start(n: usize) -> f64 {
    3.0 * rounds(n) * HALF_ROUND_TRIP + (INTRODUCTION * n * NODE) as f64 / RATE
}

/// Returns the time of an allocation. One rank of each node exchanges with the other nodes and
/// distributes the result on its node in steps of the shared-memory collective area.
fn allocate(n: usize) -> f64 {
    let bytes = LAYOUT * n;
    let steps = 1 + bytes.div_ceil(SHARED_AREA_BYTES);
    rounds(nodes(n)) * HALF_ROUND_TRIP + bytes as f64 / RATE + steps as f64 * SHARED_AREA
}

fn barrier(n: usize) -> f64 {
    SHARED_AREA + rounds(nodes(n)) * HALF_ROUND_TRIP
}

/// All ranks use one counter. Requests of a node travel as one while they queue.
fn counter(n: usize) -> f64 {
    2.0 * HALF_ROUND_TRIP + nodes(n) as f64 * SERVED
}

fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.0} us", s * 1e6),
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s => format!("{s:.1} s"),
    }
}

fn memory(bytes: usize) -> String {
    match bytes as f64 / f64::from(1 << 20) {
        mib if mib < 10.0 => format!("{mib:.1} MiB"),
        mib if mib < 1024.0 => format!("{mib:.0} MiB"),
        mib => format!("{:.1} GiB", mib / 1024.0),
    }
}

pub fn page() -> String {
    let mut page = format!(
        "\n## A thousand to a million ranks\n\n\
         These figures are estimates for nodes of {NODE} ranks. The numbers of steps and bytes come from the\n\
         simulation. The costs were measured on two cores and between two hosts over TCP: {:.1} us for half a\n\
         round trip, {:.0} GB/s into a host, {:.0} us of the owner's processor for a request and its answer, {:.0} us\n\
         for a step of a shared-memory collective area (16 ranks on two cores). [Growth,\n\
         measured](scale-measured.md) has measurements of up to 256 ranks.\n\n\
         ![What was measured](scale-measured.svg)\n\n| |",
        HALF_ROUND_TRIP * 1e6,
        RATE / 1e9,
        SERVED * 1e6,
        SHARED_AREA * 1e6,
    );
    JOBS.iter().for_each(|n| page += &format!(" {n} ranks |"));
    page += "\n|---|---|---|---|---|\n";
    let mut row = |what: &str, cell: &dyn Fn(usize) -> String| {
        let cells: Vec<String> = JOBS.iter().map(|&n| cell(n)).collect();
        page += &format!("| {what} | {} |\n", cells.join(" | "));
    };
    row("start, beyond MPI_Init: two duplicates of a communicator, one exchange", &|n| {
        time(start(n))
    });
    row("data of that exchange at the ranks of a node", &|n| memory(INTRODUCTION * n * NODE));
    row("allocate a segment, or 1,000 in one call", &|n| time(allocate(n)));
    row("barrier", &|n| time(barrier(n)));
    row("a counter on one rank, once by all", &|n| time(counter(n)));
    row("memory of a rank, 1,000 segments in 20 arenas", &|n| memory(heap::paper(n, 20, 1_000)));
    row("the same for all ranks of a node", &|n| memory(heap::paper(n, 20, 1_000) * NODE));
    row("memory of a rank that has used all others", &|n| memory(USED * n));
    page += "\n\
        **The first limits.** With ten thousand ranks there is none. With a hundred thousand, it is a\n\
        counter that all ranks use: its owner is busy for as long as a short task takes. With a million, it\n\
        is memory: the ranks of a node each keep the same addresses, and each receive the same data at the\n\
        start, which takes seconds to arrive. The next limit is the allocation of a segment, because the\n\
        ranks of a node exchange its addresses in steps of 8 KiB.\n\
        \n\
        **Possible remedies.** None of these is implemented, because they could not be measured on two\n\
        cores:\n\
        \n\
        * One rank of each node introduces all ranks of the node, with 8 bytes of each rank instead of 248,\n\
        \x20 and the tables of addresses are kept once per node, in shared memory. Both divide the cost by the\n\
        \x20 number of ranks of a node.\n\
        * If all ranks request the same length of a segment, a reduction of 64 bytes replaces the exchange\n\
        \x20 of their layouts.\n\
        * A program uses one counter per node, which takes many numbers at a time from the global counter.\n";
    page
}
