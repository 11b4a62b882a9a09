//! Processor use of the ranks, and whether they have enough cores.
//!
//! A thread is delayed while it is ready to run but waits for a core. The calls and waits of
//! delayed ranks take longer for an outside reason, which the other findings exclude.

use crate::read::Trace;
use portolan_trace_format::event::Usage;
use std::collections::{BTreeMap, BTreeSet};

/// Processor use of one rank while it recorded the trace. Times are nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessorUse {
    pub user: u64,
    pub system: u64,
    pub involuntary: u64,
    pub voluntary: u64,
    pub threads: u64,
    /// Processor time of the main thread. The delays are known if the kernel counts them.
    pub main_cpu: u64,
    pub main_delay: Option<u64>,
    pub other_delay: u64,
}

impl ProcessorUse {
    fn between(first: &Usage, last: &Usage) -> ProcessorUse {
        let (before, after) = (first.delays.unwrap_or_default(), last.delays.unwrap_or_default());
        ProcessorUse {
            user: last.user.saturating_sub(first.user),
            system: last.system.saturating_sub(first.system),
            involuntary: last.involuntary.saturating_sub(first.involuntary),
            voluntary: last.voluntary.saturating_sub(first.voluntary),
            threads: last.threads,
            main_cpu: after.main_cpu.saturating_sub(before.main_cpu),
            main_delay: last.delays.map(|_| after.main.saturating_sub(before.main)),
            // Threads that have ended no longer count.
            other_delay: after.others.saturating_sub(before.others),
        }
    }

    pub fn cpu(&self) -> u64 {
        self.user + self.system
    }

    pub fn delay(&self) -> u64 {
        self.main_delay.unwrap_or(0) + self.other_delay
    }

    /// Returns the delayed part of the main thread's ready time, from 0 to 1.
    fn main_part(&self) -> f64 {
        let delay = self.main_delay.unwrap_or(0);
        delay as f64 / (delay + self.main_cpu).max(1) as f64
    }

    fn part(&self) -> f64 {
        self.delay() as f64 / (self.delay() + self.cpu()).max(1) as f64
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crowd {
    pub ranks: usize,
    pub threads: usize,
    pub cores: usize,
    pub host: String,
}

#[derive(Debug, Default)]
pub struct Cores {
    /// By rank; `None` if the trace does not contain it.
    pub used: Vec<Option<ProcessorUse>>,
    /// The ranks with the fewest cores per thread, if their cores are known.
    pub crowd: Option<Crowd>,
}

impl Cores {
    pub fn of(trace: &Trace) -> Cores {
        let mut used = vec![None; trace.ranks];
        for file in &trace.files {
            let records = file.usage.filter(|[first, last]| last.0 > first.0);
            if let (Some(to), Some([first, last])) = (used.get_mut(file.rank as usize), records) {
                *to = Some(ProcessorUse::between(&first.1, &last.1));
            }
        }
        Cores { used, crowd: crowd(trace) }
    }

    pub fn most_delayed(&self) -> Option<(u64, u32)> {
        let delays = self.used.iter().enumerate().filter_map(|(rank, used)| {
            used.and_then(|used| used.main_delay).map(|delay| (delay, rank as u32))
        });
        delays.max_by_key(|(delay, rank)| (*delay, std::cmp::Reverse(*rank)))
    }

    pub fn sum(&self, of: impl Fn(&ProcessorUse) -> u64) -> u64 {
        self.used.iter().flatten().map(of).sum()
    }

    /// Returns the fraction of the ready time of a rank's main thread that it was delayed.
    pub fn main_part(&self, rank: usize) -> f64 {
        self.used.get(rank).copied().flatten().map_or(0.0, |used| used.main_part())
    }

    /// Returns the fraction of the ready time of a rank's threads that they were delayed.
    pub fn part(&self, rank: usize) -> f64 {
        self.used.get(rank).copied().flatten().map_or(0.0, |used| used.part())
    }

    pub fn mean_part(&self) -> f64 {
        let delay = self.sum(ProcessorUse::delay);
        delay as f64 / (delay + self.sum(ProcessorUse::cpu)).max(1) as f64
    }
}

/// The cores of a machine that a rank may run on.
type Set = BTreeSet<u32>;

/// Parses a list such as `0-3,8`.
fn set_of(list: &str) -> Option<Set> {
    let mut set = Set::new();
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse().ok()?, last.parse::<u32>().ok()?);
        set.extend(first..=last.min(1 << 16));
    }
    Some(set)
}

struct Same {
    set: Set,
    ranks: usize,
    threads: usize,
    usable: usize,
    host: usize,
}

fn crowd(trace: &Trace) -> Option<Crowd> {
    let mut machines: BTreeMap<(u64, u64), BTreeMap<&str, Same>> = BTreeMap::new();
    for file in &trace.files {
        let (meta, host) = (&file.meta, file.host);
        let Some(set) = set_of(&meta.cores) else { continue };
        // Without a boot ID, the host identifies the machine.
        let machine = (meta.machine, if meta.machine == 0 { meta.host_number } else { 0 });
        let lists = machines.entry(machine).or_default();
        let same = lists.entry(&meta.cores).or_insert_with(|| Same {
            set,
            ranks: 0,
            threads: 0,
            usable: usize::MAX,
            host,
        });
        same.ranks += 1;
        same.threads += meta.progress_thread as usize;
        same.usable = same.usable.min(meta.usable_cores.max(1) as usize);
    }
    let of_list = |lists: &BTreeMap<&str, Same>, one: &Same| {
        let near = || lists.values().filter(|other| !other.set.is_disjoint(&one.set));
        let all: Set = near().flat_map(|other| &other.set).copied().collect();
        // A container may use fewer cores at a time than its processes may run on.
        let limit = if one.usable < one.set.len() { one.usable } else { usize::MAX };
        Crowd {
            ranks: near().map(|other| other.ranks).sum(),
            threads: near().map(|other| other.threads).sum(),
            cores: all.len().min(limit).max(1),
            host: trace.hosts.get(one.host).cloned().unwrap_or_default(),
        }
    };
    let all = machines.values().flat_map(|lists| lists.values().map(|one| of_list(lists, one)));
    all.max_by(|a, b| {
        let load = |crowd: &Crowd| (crowd.ranks + crowd.threads) as f64 / crowd.cores as f64;
        load(a).total_cmp(&load(b))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use portolan_trace_format::event::Delays;

    #[test]
    fn lists_of_cores_are_sets() {
        let sizes = ["0", "0-3,8", "1-2,70"].map(|list| set_of(list).map(|set| set.len()));
        assert_eq!(sizes, [Some(1), Some(5), Some(3)]);
        assert_eq!((set_of(""), set_of("a-b")), (None, None));
    }

    #[test]
    fn delays_are_those_during_the_trace() {
        let usage = |cpu, main, others| Usage {
            user: cpu,
            delays: Some(Delays { main_cpu: cpu / 2, main, others }),
            ..Usage::default()
        };
        let used = ProcessorUse::between(&usage(100, 10, 50), &usage(300, 310, 20));
        assert_eq!((used.cpu(), used.main_delay, used.delay()), (200, Some(300), 300));
        assert_eq!((used.main_part(), used.part()), (0.75, 0.6));
    }
}
