//! Detection of ranks that outnumber the cores they run on.
//!
//! A launcher may bind each rank to its own cores, bind several ranks to the same cores, or bind
//! none. The decisive figures are therefore which other ranks of the machine may run on this rank's
//! cores, and on how many cores all of them may run. Containers on one machine look like separate
//! hosts, so the kernel's boot ID identifies the machine. A limit of a container to fewer cores is
//! applied to all ranks of the machine together.

use super::startup_record::StartupRecord;
use crate::topology::Topology;
use std::collections::HashSet;

pub(super) type Cores = [u64; 16];

pub(super) fn own_cores() -> Cores {
    let mut cores: Cores = [0; 16];
    // SAFETY: the buffer has the given number of bytes, and any bits form a valid set. With more
    // than 1024 cores the call fails and leaves the set empty.
    unsafe { libc::sched_getaffinity(0, size_of_val(&cores), cores.as_mut_ptr().cast()) };
    cores
}

/// Writes a list in the form of the kernel, such as `0-3,8`.
pub(super) fn core_list(cores: &Cores) -> String {
    let has = |core: &usize| cores[core / 64] & 1 << (core % 64) != 0;
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for core in (0..64 * cores.len()).filter(has) {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == core => *last = core,
            _ => runs.push((core, core)),
        }
    }
    let text = |&(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    runs.iter().map(text).collect::<Vec<_>>().join(",")
}

fn count(cores: &Cores) -> usize {
    cores.iter().map(|word| word.count_ones() as usize).sum()
}

fn overlap(a: &Cores, b: &Cores) -> bool {
    a.iter().zip(b).any(|(a, b)| a & b != 0)
}

/// Whether the first rank shares its cores. It may use `available` cores at a time.
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

pub(super) fn is_crowded(rank: usize, all: &[StartupRecord], topology: &Topology) -> bool {
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

pub(super) fn is_any_crowded(all: &[StartupRecord], topology: &Topology) -> bool {
    // Ranks of one machine with the same cores give the same result.
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
        // Each rank has its own core, even a distant one. Then two ranks share a core.
        assert!(!shares(&[set(&[0]), set(&[1]), set(&[70])], 1));
        assert!(shares(&[set(&[70]), set(&[1]), set(&[70])], 1));
        // Two ranks have a pair of cores. The third runs elsewhere, and then may run here, too.
        assert!(!shares(&[two, two, set(&[2])], 2));
        assert!(shares(&[two, two, set(&[1])], 2));
        // A container is limited to half of the machine.
        let four = set(&[0, 1, 2, 3]);
        assert!(!shares(&[four, four], 2));
        assert!(shares(&[four, four, four], 2));
        // The cores are unknown.
        assert!(shares(&[set(&[]), set(&[])], 1) && !shares(&[set(&[]), set(&[])], 2));
    }

    #[test]
    fn cores_are_listed_in_ranges() {
        assert_eq!(core_list(&set(&[0, 1, 2, 5, 64, 1023])), "0-2,5,64,1023");
        assert_eq!(core_list(&set(&[])), "");
    }

    #[test]
    fn a_process_runs_somewhere() {
        assert!(count(&own_cores()) > 0);
    }
}
