//! The data that each rank sends to all others when the engine starts, in one exchange. Ranks are
//! on one node if their machines have the same name, their kernels have the same boot ID, and they
//! find the same directory for shared memory. `MPI_Comm_split_type` would need several exchanges,
//! in which ranks that share cores would wait for each other inside MPI. A rank whose kernel does
//! not provide a boot ID counts as a separate node.

use super::oversubscription::{Cores, own_cores};
use crate::topology::host_name;
use portolan_base::config::Config;
use portolan_base::config::agreed::{self, Agreed};
use portolan_base::digest;
use portolan_base::wait::watchdog::hosts::{self, ADDRESSES, Address};
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;

#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct StartupRecord {
    /// Hash of the kernel's boot ID, or zero if it is unknown.
    pub boot: u64,
    /// Hash that is the same for all ranks of a node.
    host: u64,
    /// The cores that the rank may run on, and the number that it may use at the same time.
    pub cores: Cores,
    pub available: u32,
    /// The key of the world group, used if this is rank 0.
    pub key: u32,
    /// The key of the digests that ranks compare, used if this is rank 0.
    pub secret: u64,
    /// Nonzero if the engine may carry out this rank's waits inside MPI.
    pub may_wait: u32,
    /// Nonzero if another job holds the directory of traces, and this is rank 0.
    pub traces_in_use: u32,
    /// Where other hosts reach this one.
    pub addresses: [Address; ADDRESSES],
    pub settings: Agreed,
}

fn boot_id() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    (!text.trim().is_empty()).then_some(text)
}

pub(super) fn boot_number() -> u64 {
    boot_id().map_or(0, |id| digest::keyed(0, id))
}

impl StartupRecord {
    pub(super) fn own(config: &Config, may_wait: bool, traces_in_use: bool) -> StartupRecord {
        let boot = boot_number();
        let dir = std::fs::metadata(&config.shm_dir).map(|meta| (meta.dev(), meta.ino())).ok();
        StartupRecord {
            boot,
            host: digest::keyed(0, (boot, host_name::<256>(), dir)),
            cores: own_cores(),
            available: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
            key: crate::collective::group::next_key(),
            secret: digest::key(),
            may_wait: u32::from(may_wait),
            traces_in_use: u32::from(traces_in_use),
            addresses: hosts::own(),
            settings: agreed::settings(config),
        }
    }
}

/// Returns, for each rank, the lowest rank on its node.
pub(super) fn labels(all: &[StartupRecord]) -> Vec<usize> {
    let mut first = HashMap::new();
    let label = |(rank, one): (usize, &StartupRecord)| match one.boot {
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
        let here = StartupRecord::own(&Config::default(), true, false);
        assert_ne!(here.boot, 0);
        let elsewhere = StartupRecord { host: here.host ^ 1, ..here };
        let unknown = StartupRecord { boot: 0, ..here };
        assert_eq!(labels(&[here, elsewhere, here, elsewhere]), [0, 1, 0, 1]);
        assert_eq!(labels(&[unknown, unknown, here, here]), [0, 1, 2, 2]);
    }

    #[test]
    fn another_directory_for_shared_memory_is_another_node() {
        let of = |dir: &str| {
            let config = Config { shm_dir: dir.into(), ..Config::default() };
            StartupRecord::own(&config, true, false).host
        };
        assert_eq!(of("/dev/shm"), of("/dev/shm"));
        assert_ne!(of("/dev/shm"), of("/proc"));
    }
}
