//! Launches on several hosts, which `scripts/dev cluster` creates.
//!
//! With `--hosts 2,1` the driver replaces its usual matrix by [`CONFIGS`] and the launches of a
//! single check, with two ranks on one host and one on another.
//! `--hosts 2,1:default:path=rma:alone` runs only what is named. Each host has its own process ids,
//! so the id that a rank reports does not identify it here, but its environment does. The driver
//! then runs on the cluster's head, which sees the processes of all hosts.

use crate::cases::Config;
use crate::launch::{Alone, End};
use portolan_driver::system;
use std::fs;
use std::path::PathBuf;

pub const INTERFACE: &str = "PORTOLAN_TEST_INTERFACE";

const BASE: Config = Config {
    label: "default",
    env: &[(INTERFACE, "eth0")],
    ranks: &[],
    release: &[],
    quick: &[],
    served: true,
    threads: true,
};

/// A program that initialises MPI with `MPI_THREAD_SINGLE` and keeps that level.
const SINGLE: Config = Config { served: false, threads: false, ..BASE };

pub const CONFIGS: &[Config] = &[
    BASE,
    Config { label: "path=message", env: &[("PORTOLAN_PATH", "message")], ..BASE },
    Config { label: "path=rma", env: &[("PORTOLAN_PATH", "rma")], ..BASE },
    Config { label: "am=mpi", env: &[("PORTOLAN_AM", "mpi")], ..BASE },
    Config {
        label: "path=message small pieces",
        env: &[
            ("PORTOLAN_PATH", "message"),
            ("PORTOLAN_CHUNK_BYTES", "4K"),
            ("PORTOLAN_FLIGHT_BYTES", "64K"),
            ("PORTOLAN_SLAB_BYTES", "64K"),
        ],
        ..BASE
    },
    Config { label: "thread=0", env: &[("PORTOLAN_PROGRESS_THREAD", "0")], served: false, ..BASE },
    Config {
        label: "host=single",
        env: &[("PORTOLAN_INTERPOSE", "waits"), ("PORTOLAN_TEST_HOST", "single")],
        ..SINGLE
    },
    Config {
        label: "path=message host=single",
        env: &[
            ("PORTOLAN_PATH", "message"),
            ("PORTOLAN_INTERPOSE", "waits"),
            ("PORTOLAN_TEST_HOST", "single"),
        ],
        ..SINGLE
    },
    Config {
        label: "path=rma host=single",
        env: &[
            ("PORTOLAN_PATH", "rma"),
            ("PORTOLAN_INTERPOSE", "waits"),
            ("PORTOLAN_TEST_HOST", "single"),
        ],
        ..SINGLE
    },
];

/// Selects the launches of a single check.
pub const ALONE: &str = "alone";

/// The number of ranks on each host, and the configurations that run there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    counts: Vec<usize>,
    only: Vec<String>,
}

impl Layout {
    pub fn parse(text: &str) -> Option<Layout> {
        let mut words = text.split(':');
        let counts: Option<Vec<usize>> =
            words.next()?.split(',').map(|word| word.parse().ok()).collect();
        let counts = counts.filter(|c| c.iter().sum::<usize>() > 0)?;
        let only: Vec<String> = words.map(String::from).collect();
        let known = |word: &String| word == ALONE || CONFIGS.iter().any(|c| c.label == word);
        only.iter().all(known).then_some(Layout { counts, only })
    }

    pub fn wants(&self, what: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|word| word == what)
    }

    pub fn ranks(&self) -> usize {
        self.counts.iter().sum()
    }

    pub fn text(&self) -> String {
        self.counts.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
    }

    /// Returns the launcher for this layout, which takes `-n N PROGRAM`.
    pub fn launcher(&self) -> Vec<String> {
        system::launcher_on(&self.text())
    }

    /// Returns whether a launch of a single check runs on these hosts. Launches that concern the
    /// launcher, or directories of this host, make no sense there.
    pub fn takes(&self, alone: &Alone) -> bool {
        self.wants(ALONE)
            && alone.ranks == self.ranks()
            && alone.wrap.is_none()
            && !alone.other_mpi
            && !alone.one_node
            && !matches!(alone.end, End::Hangs(_))
            && !alone.name.starts_with("large_")
            && !alone.env.iter().any(|(name, _)| *name == "PORTOLAN_NODE_SIZE")
    }
}

/// Returns this host's directory of shared memory, and those on all hosts of the cluster that runs
/// this program.
pub fn shm_dirs() -> Vec<PathBuf> {
    let mut dirs = vec![PathBuf::from("/dev/shm")];
    let Some(cluster) = std::env::var_os("CLUSTER_DIR").map(PathBuf::from) else { return dirs };
    for k in 1.. {
        let Ok(first) = fs::read_to_string(cluster.join(format!("host{k}"))) else { break };
        let pid = first.split_whitespace().next().unwrap_or("0");
        dirs.push(format!("/proc/{pid}/root/dev/shm").into());
    }
    dirs
}
