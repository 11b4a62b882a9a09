//! Selects the cases of the regression suite that run on several hosts.
//!
//! All combinations of layout, path and thread level for each program would be about nine thousand
//! launches, which take hours. The selection is smaller, but each program still meets every layout,
//! every path on every number of hosts, every thread level on every number of hosts, and every path
//! at every thread level. The remaining choices rotate from program to program, so that every
//! combination occurs with some program.

use super::args::{Level, Selection};
use std::collections::BTreeSet;

/// The number of ranks on each host.
const LAYOUTS: [&str; 9] = ["1", "2", "3", "4", "1,1", "2,1", "1,3", "1,1,1", "2,1,1"];
const PATHS: [&str; 4] = ["direct", "rma", "message", "auto"];
const LEVELS: [&str; 2] = ["multiple", "single"];

/// Programs of each kind that moves data, for the quick selection.
const QUICK: [&str; 17] = [
    "c/values",
    "c/handles",
    "c/part",
    "c/domains",
    "c/x10_async",
    "c/x10_handlers",
    "c/x10_lifecycle",
    "c/lapi_example",
    "c/lapi_status",
    "c/lapi_util",
    "fortran/armci_fortran",
    "fortran/lapi_fortran",
    "ga/ga_acc",
    "ga/ga_dgemm",
    "ga/ga_copy",
    "ga/ga_groups",
    "ga/ga_fortran",
];

/// This program alone requests windows if an MPI lacks them between hosts.
const ASKS_FOR_WINDOWS: &str = "c/values";

const ON_HOSTS: [&str; 5] = ["1,1", "2,1", "1,1,1", "2,2", "2,1,1"];
const CONFIGS: [&str; 9] = [
    "default",
    "path=message",
    "path=rma",
    "am=mpi",
    "path=message small pieces",
    "thread=0",
    "host=single",
    "path=message host=single",
    "path=rma host=single",
];

#[derive(Debug, Clone)]
pub struct Program {
    pub name: String,
    /// Whether it requests a thread level itself, or depends on the progress thread.
    pub own_level: bool,
}

pub type Chosen = (String, usize, String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Combination {
    layout: &'static str,
    path: &'static str,
    level: &'static str,
}

fn hosts_of(layout: &str) -> usize {
    layout.split(',').count()
}

fn ranks_of(layout: &str) -> usize {
    layout.split(',').filter_map(|n| n.parse::<usize>().ok()).sum()
}

impl Combination {
    fn all(hosts: &[usize]) -> Vec<Combination> {
        let mut all = Vec::new();
        for layout in LAYOUTS.into_iter().filter(|l| hosts.contains(&hosts_of(l))) {
            // The direct path does not exist between hosts.
            for path in PATHS.into_iter().filter(|p| *p != "direct" || hosts_of(layout) == 1) {
                all.extend(LEVELS.map(|level| Combination { layout, path, level }));
            }
        }
        all
    }

    fn features(self) -> BTreeSet<(&'static str, usize, &'static str, &'static str)> {
        let hosts = hosts_of(self.layout);
        [
            ("layout", 0, self.layout, ""),
            ("path", hosts, self.path, ""),
            ("level", hosts, self.level, ""),
            ("both", 0, self.path, self.level),
        ]
        .into()
    }

    fn works_without_windows(self, program: &str) -> bool {
        self.path != "rma" || hosts_of(self.layout) == 1 || program == ASKS_FOR_WINDOWS
    }

    fn case(self, program: &Program) -> Chosen {
        let mut settings = Vec::new();
        if hosts_of(self.layout) > 1 {
            settings.push(format!("hosts={}", self.layout));
        }
        if self.path != "auto" {
            settings.push(format!("path={}", self.path));
        }
        if self.level != "multiple" && !program.own_level {
            settings.push("level=single".into());
        }
        (program.name.clone(), ranks_of(self.layout), settings.join(" "))
    }
}

pub fn programs(all: &[Program], selection: &Selection) -> Vec<Chosen> {
    let chosen = match selection.level {
        Level::Quick => quick(all, selection),
        Level::Full => cover(all, selection),
    };
    let mut cases: Vec<Chosen> = Vec::new();
    for (program, combination) in chosen {
        let case = combination.case(&program);
        if !cases.contains(&case) {
            cases.push(case);
        }
    }
    cases
}

/// Selects the combinations for each program. Prefers the combination that adds most features, and
/// then the one that has been used least.
fn cover(all: &[Program], selection: &Selection) -> Vec<(Program, Combination)> {
    let combined = Combination::all(&selection.hosts);
    let mut used = vec![0; combined.len()];
    let mut chosen = Vec::new();
    for program in all {
        let every: Vec<usize> = (0..combined.len())
            .filter(|&k| selection.windows || combined[k].works_without_windows(&program.name))
            .collect();
        let mut open: BTreeSet<_> = every.iter().flat_map(|&k| combined[k].features()).collect();
        while !open.is_empty() {
            let gain = |k: usize| combined[k].features().intersection(&open).count();
            let mut best = every[0];
            for &k in &every[1..] {
                if (gain(k), -used[k]) > (gain(best), -used[best]) {
                    best = k;
                }
            }
            open.retain(|feature| !combined[best].features().contains(feature));
            used[best] += 1;
            chosen.push((program.clone(), combined[best]));
        }
    }
    chosen
}

/// Selects each program once and rotates through the combinations on several hosts.
fn quick(all: &[Program], selection: &Selection) -> Vec<(Program, Combination)> {
    let combined = Combination::all(&selection.hosts);
    let mut several: Vec<Combination> =
        combined.iter().copied().filter(|c| hosts_of(c.layout) > 1).collect();
    if several.is_empty() {
        several = combined;
    }
    if !selection.windows {
        let first = several.iter().copied().find(|c| c.path == "rma");
        several.retain(|c| c.works_without_windows(""));
        several.extend(first);
    }
    let at = |list: &[&str], word: &str| list.iter().position(|w| *w == word).unwrap_or(0);
    several.sort_by_key(|c| (at(&LEVELS, c.level), at(&PATHS, c.path) * 5 % 4, c.layout));
    let coprime = |step: &usize| greatest_common_divisor(*step, several.len()) == 1;
    let stride = [7, 5, 3, 1].into_iter().find(coprime).unwrap_or(1);
    let known = QUICK.iter().filter_map(|name| all.iter().find(|p| p.name == *name));
    known
        .enumerate()
        .map(|(k, program)| {
            let mut best = several[k * stride % several.len()];
            if program.name == ASKS_FOR_WINDOWS {
                best = several.iter().copied().find(|c| c.path == "rma").unwrap_or(best);
            } else if !selection.windows && best.path == "rma" {
                best = several[(k * stride + 1) % several.len()];
            }
            (program.clone(), best)
        })
        .collect()
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// Returns the layouts for the suite `ranks`, in the format of `--hosts`.
pub fn ranks(selection: &Selection) -> Vec<String> {
    let has = |n: usize| selection.hosts.contains(&n);
    if selection.level == Level::Quick {
        let some = [(2, "2,1:default"), (3, "1,1,1:path=message host=single")];
        return some.iter().filter(|(n, _)| has(*n)).map(|(_, l)| l.to_string()).collect();
    }
    let layouts: Vec<&str> = ON_HOSTS.into_iter().filter(|l| has(hosts_of(l))).collect();
    let configs = CONFIGS.iter().filter(|c| selection.windows || !c.contains("path=rma"));
    let mut chosen: Vec<Vec<&str>> = vec![Vec::new(); layouts.len()];
    if layouts.is_empty() {
        return Vec::new();
    }
    for (k, config) in configs.enumerate() {
        // Every configuration runs on two layouts, and the default on all of them.
        let times = if *config == "default" { layouts.len() } else { layouts.len().min(2) };
        for step in 0..times {
            let of_layout = &mut chosen[(k + step * 2) % layouts.len()];
            if !of_layout.contains(config) {
                of_layout.push(config);
            }
        }
    }
    let line = |(layout, some): (&&str, &Vec<&str>)| {
        let alone: &[&str] = if matches!(*layout, "1,1" | "2,1") { &["alone"] } else { &[] };
        [&[*layout], some.as_slice(), alone].concat().join(":")
    };
    layouts.iter().zip(&chosen).map(line).collect()
}
