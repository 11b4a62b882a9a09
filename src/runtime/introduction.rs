//! What each rank tells all others when the engine starts, in one exchange.
//!
//! Where it is: ranks whose machines have the same name, whose kernels are in the same run, and
//! who find the same directory for shared memory, are on one node. That is what
//! `MPI_Comm_split_type` finds out by several exchanges, in which ranks that share
//! cores wait for each other inside MPI. A rank whose kernel does not name its run counts as a
//! node of its own.
//!
//! And on which cores it runs, by which the others see whether ranks outnumber cores
//! ([`super::oversubscription`]), and whether it may wait in the engine's way inside of MPI's own
//! calls ([`super::host`]). And its settings that must agree ([`crate::config::agreed`]).

use super::oversubscription::{Cores, own_cores};
use crate::config::Config;
use crate::config::agreed::{self, Agreed};
use crate::topology::host_name;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;

/// What a rank tells.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct Introduction {
    /// Of the kernel's present run; zero where it does not say.
    pub boot: u64,
    /// Of the node.
    host: u64,
    /// The cores that it may run on, and how many at once.
    pub cores: Cores,
    pub available: u32,
    /// The key of the world, should it be rank 0.
    pub key: u32,
    /// Not zero: it may wait in the engine's way inside of MPI's calls.
    pub may_wait: u64,
    /// Its settings that must be those of all ranks.
    pub settings: Agreed,
}

fn digest(of: impl Hash) -> u64 {
    // The same function on all ranks.
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// What the kernel calls its present run.
fn boot_id() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    (!text.trim().is_empty()).then_some(text)
}

impl Introduction {
    /// The caller's own.
    pub(super) fn own(config: &Config, may_wait: bool) -> Introduction {
        let boot = boot_id().map_or(0, digest);
        let dir = std::fs::metadata(&config.shm_dir).map(|meta| (meta.dev(), meta.ino())).ok();
        Introduction {
            boot,
            host: digest((boot, host_name::<256>(), dir)),
            cores: own_cores(),
            available: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
            key: crate::group::next_key(),
            may_wait: u64::from(may_wait),
            settings: agreed::settings(config),
        }
    }
}

/// The lowest rank on the node of each rank.
pub(super) fn labels(all: &[Introduction]) -> Vec<usize> {
    let mut first = HashMap::new();
    let label = |(rank, one): (usize, &Introduction)| match one.boot {
        0 => rank,
        _ => *first.entry(one.host).or_insert(rank),
    };
    all.iter().enumerate().map(label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_one_machine_share_a_node() {
        let here = Introduction::own(&Config::default(), true);
        assert_ne!(here.boot, 0);
        let elsewhere = Introduction { host: here.host ^ 1, ..here };
        let unknown = Introduction { boot: 0, ..here };
        assert_eq!(labels(&[here, elsewhere, here, elsewhere]), [0, 1, 0, 1]);
        assert_eq!(labels(&[unknown, unknown, here, here]), [0, 1, 2, 2]);
    }

    #[test]
    fn another_directory_for_shared_memory_is_another_node() {
        let of = |dir: &str| {
            let config = Config { shm_dir: dir.into(), ..Config::default() };
            Introduction::own(&config, true).host
        };
        assert_eq!(of("/dev/shm"), of("/dev/shm"));
        assert_ne!(of("/dev/shm"), of("/proc"));
    }
}
