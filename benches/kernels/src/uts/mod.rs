//! Unbalanced tree search with work stealing: counts the nodes of a tree whose shape is known only
//! from its traversal. The trees are the benchmark's geometric samples with fixed shape. T1 has
//! size 10 and 4,130,071 nodes.

mod messages;
mod sha1;
mod share;
mod steal;
mod tree;

use crate::job::Sample;
use crate::memory::{segment, window};
use crate::{Job, Kernel, Outcome, Result, Side, version};
use std::time::Duration;

/// The kernel.
pub const KERNEL: Kernel = Kernel {
    name: "uts",
    size_is: "depth of the tree",
    size: 9,
    small: 6,
    unit: "million nodes/s",
    versions: &[
        version(Side::Portolan, "steal", |job, size| {
            steal::steal(job, size, |len| segment(job, len))
        }),
        version(Side::Portolan, "share", share::share),
        version(Side::TwoSided, "messages", messages::messages),
        version(Side::Window, "steal", |job, size| steal::steal(job, size, |len| window(job, len))),
    ],
};

/// Nodes that move together.
const CHUNK: usize = 20;
/// Time without success after which a thief pauses between its attempts.
const PATIENCE: Duration = Duration::from_micros(500);
const PAUSE: Duration = Duration::from_micros(20);

/// Compares the nodes that this rank has counted in all repetitions with a count by one rank.
fn outcome(job: &Job<'_>, depth: usize, samples: Vec<Sample>, own: u64) -> Result<Outcome> {
    let all = if job.me() == 0 { tree::count(depth as u32) } else { 0 };
    let all = job.count(all)?;
    let verified = job.count(own)? == all * job.repeats as u64;
    Ok(Outcome { samples, work: all as f64 / 1e6, verified })
}
