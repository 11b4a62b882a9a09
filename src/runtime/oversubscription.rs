//! Whether ranks outnumber the cores that they run on.
//!
//! A launcher may bind each rank to cores of its own, or several to the same, or none at
//! all; so what counts is which other ranks of the machine may run on this rank's cores,
//! and on how many cores they all may run. Containers of one machine may look like hosts,
//! but share its kernel, by whose name of its present run they are told from others. A
//! limit of the container to fewer cores than its processes may run on counts for all
//! ranks of the machine together.

use super::introduction::Introduction;
use crate::topology::Topology;
use std::collections::HashSet;

/// The cores that a process may run on, a bit each.
pub(super) type Cores = [u64; 16];

/// Those of the calling process.
pub(super) fn own_cores() -> Cores {
    let mut cores: Cores = [0; 16];
    // SAFETY: the set has that many bytes, and any bits are a set. Where the call fails,
    // on a machine with more cores, there are none in it.
    unsafe { libc::sched_getaffinity(0, size_of_val(&cores), cores.as_mut_ptr().cast()) };
    cores
}

fn count(cores: &Cores) -> usize {
    cores.iter().map(|word| word.count_ones() as usize).sum()
}

fn overlap(a: &Cores, b: &Cores) -> bool {
    a.iter().zip(b).any(|(a, b)| a & b != 0)
}

/// Whether the first of the ranks of a machine, which may run on these cores, has to share
/// them; `available` is how many it may use at once.
fn shares(ranks: &[Cores], available: usize) -> bool {
    let Some(mine) = ranks.first() else { return false };
    if count(mine) == 0 {
        return ranks.len() > available;
    }
    let near: Vec<&Cores> = ranks.iter().filter(|cores| overlap(cores, mine)).collect();
    let mut all: Cores = [0; 16];
    near.iter().for_each(|cores| all.iter_mut().zip(*cores).for_each(|(all, word)| *all |= word));
    near.len() > count(&all) || available < count(mine) && ranks.len() > available
}

/// Whether ranks outnumber the cores that `rank` runs on.
pub(super) fn is_crowded(rank: usize, all: &[Introduction], topology: &Topology) -> bool {
    let one = &all[rank];
    let here = |other: &usize| match one.boot {
        0 => topology.same_node(*other, rank),
        boot => all[*other].boot == boot,
    };
    let others = (0..all.len()).filter(|&other| other != rank).filter(here);
    let ranks: Vec<Cores> =
        std::iter::once(rank).chain(others).map(|rank| all[rank].cores).collect();
    shares(&ranks, one.available as usize)
}

/// Whether that is so for any rank.
pub(super) fn is_any_crowded(all: &[Introduction], topology: &Topology) -> bool {
    // Ranks of a machine that have the same cores are alike.
    let mut seen = HashSet::new();
    let mut new = |rank: &usize| seen.insert((all[*rank].boot, all[*rank].cores));
    (0..all.len())
        .filter(|rank| all[*rank].boot == 0 || new(rank))
        .any(|rank| is_crowded(rank, all, topology))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(cores: &[usize]) -> Cores {
        let mut set = [0; 16];
        cores.iter().for_each(|&core| set[core / 64] |= 1 << (core % 64));
        set
    }

    #[test]
    fn bound_ranks_have_their_cores_and_others_share() {
        let two = set(&[0, 1]);
        assert!(!shares(&[two], 2));
        assert!(!shares(&[two, two], 2));
        assert!(shares(&[two, two, two], 2));
        // Each on a core of its own, also far away; two on one.
        assert!(!shares(&[set(&[0]), set(&[1]), set(&[70])], 1));
        assert!(shares(&[set(&[70]), set(&[1]), set(&[70])], 1));
        // A pair of cores for two, the third elsewhere; then it may run here as well.
        assert!(!shares(&[two, two, set(&[2])], 2));
        assert!(shares(&[two, two, set(&[1])], 2));
        // Half a machine for a container.
        let four = set(&[0, 1, 2, 3]);
        assert!(!shares(&[four, four], 2));
        assert!(shares(&[four, four, four], 2));
        // Nothing is known.
        assert!(shares(&[set(&[]), set(&[])], 1) && !shares(&[set(&[]), set(&[])], 2));
    }

    #[test]
    fn a_process_runs_somewhere() {
        assert!(count(&own_cores()) > 0);
    }
}
