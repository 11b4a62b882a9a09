//! The choice of paths to memory, made once and identically on all ranks. Ranks of a node map each
//! other's memory. Between nodes, windows are better if the network serves them itself. If MPI
//! implements them by messages, the target must take part through MPI, and the engine's own
//! messages are several times faster, because its progress thread serves them while the target
//! computes. [`super::trial`] measures this, and [`super::choice`] evaluates the result.

use super::choice::{self, Trial};
use super::trial::{self, Ground};
use crate::collective;
use crate::config::{AmChoice, AtomicsChoice, Config, PathChoice};
use crate::error::{Result, fail};
use crate::memory::arena::Policy;
use crate::mpi::{Comm, Flavour};
use crate::path::Paths;
use crate::topology::Topology;
use crate::wait::Boot;
use std::time::Instant;

pub(super) struct Decision {
    pub policy: Policy,
    pub messages: bool,
    pub reason: String,
    /// The figures behind `reason` for each kind of pair.
    pub measured: Vec<(&'static str, String)>,
}

/// Collective over `world`. `in_vain` means that all ranks are on one machine and outnumber its
/// cores: while such ranks create a window, they occupy the cores that the others need, and its
/// cost could not be measured. Fails with `Argument` for invalid settings, and with `Mpi` if
/// windows are requested and do not work.
pub(super) fn decide(
    config: &Config,
    topology: &Topology,
    world: &Comm,
    in_vain: bool,
) -> Result<Decision> {
    let one_node = topology.nodes() == 1;
    let (direct, remote) = match config.path {
        PathChoice::Direct if !one_node => fail!(
            Argument,
            "PORTOLAN_PATH=direct, but the ranks are on {} nodes that share no memory",
            topology.nodes()
        ),
        PathChoice::Direct => (true, None),
        PathChoice::Auto if one_node => (true, None),
        PathChoice::Auto => (true, Some(false)),
        PathChoice::Rma => (false, Some(true)),
        PathChoice::DirectRma => (true, Some(true)),
        PathChoice::Message => (false, None),
    };
    let mpi_atomics = match config.atomics {
        AtomicsChoice::Native => false,
        AtomicsChoice::Auto => config.path == PathChoice::Rma,
        AtomicsChoice::Mpi if config.path == PathChoice::Message => {
            fail!(
                Argument,
                "PORTOLAN_ATOMICS=mpi needs MPI windows, which PORTOLAN_PATH=message excludes"
            )
        }
        AtomicsChoice::Mpi => true,
    };
    // A single rank reaches all memory directly. Open MPI cannot create a window of one rank.
    let wanted = world.size() > 1 && (remote.is_some() || mpi_atomics);
    let forced = remote == Some(true) || config.atomics == AtomicsChoice::Mpi;
    let (mut windows, mut reason) = (false, String::from("all ranks share one node"));
    let mut measured = Vec::new();
    if config.path == PathChoice::Message {
        reason = "PORTOLAN_PATH=message".into();
    }
    let part = world.size() != job_size()?;
    if wanted && part && Flavour::built() == Flavour::OpenMpi {
        reason = "Open MPI's windows cannot be created by several parts of a job at the same time"
            .into();
        if topology.me() == 0 {
            log::warn!("messages are used instead of windows: {reason}");
        }
    } else if wanted && in_vain && !forced {
        reason = "windows were not tried: ranks outnumber the cores of the machine".into();
    } else if wanted {
        let begun = Instant::now();
        let found = try_windows(world, topology, !forced);
        log::debug!("windows were tried in {:?}", begun.elapsed());
        match found {
            Ok(_) if forced => {
                windows = true;
                reason = "chosen by PORTOLAN_PATH or PORTOLAN_ATOMICS".into();
            }
            Ok(trials) => {
                (windows, reason) = choice::choose(&trials);
                measured = trials.iter().map(|t| (t.place(), t.describe())).collect();
            }
            Err(error) if forced => {
                fail!(
                    Mpi,
                    "{}: MPI's windows do not work between these nodes, but PORTOLAN_PATH=rma or \
                     PORTOLAN_ATOMICS=mpi requires them; set PORTOLAN_PATH to auto or message",
                    error.detail()
                )
            }
            Err(error) => {
                reason = format!("MPI's windows do not work here ({})", error.detail());
                if topology.me() == 0 {
                    log::warn!("between nodes, messages are used: {reason}");
                }
            }
        }
    }
    if topology.me() == 0 && config.path == PathChoice::Auto && !one_node {
        for (place, text) in &measured {
            log::info!("between {place}, {text}");
        }
        let path = if windows { "windows" } else { "messages" };
        log::info!("between nodes, {path} are used: {reason}");
    }
    Ok(Decision {
        policy: Policy {
            direct,
            windows,
            group_windows: Flavour::built() != Flavour::OpenMpi,
            mpi_atomics: mpi_atomics && windows,
            arena_bytes: config.arena_bytes,
            keep_bytes: config.keep_bytes,
            installed: Paths::installed_capabilities(),
            shm_dir: config.shm_dir.clone(),
        },
        messages: !one_node || !direct || mpi_atomics || config.am == AmChoice::Mpi,
        reason,
        measured,
    })
}

fn job_size() -> Result<usize> {
    // SAFETY: `MPI_COMM_WORLD` is live while MPI runs.
    unsafe { Comm::size_of(Comm::world_handle()) }
}

/// With `measure`, also measures the cost for each kind of neighbourhood.
fn try_windows(world: &Comm, topology: &Topology, measure: bool) -> Result<Vec<Trial>> {
    let ground = Ground::create(world)?;
    let mut used = ground.flush(world.rank());
    let mut trials = Vec::new();
    for (between, pair) in if measure { trial::pairs(topology) } else { Vec::new() } {
        match ground.measure(world, between, pair) {
            Ok(trial) => trials.push(trial),
            Err(error) => used = used.and(Err(error)),
        }
    }
    let freed = ground.free();
    collective::agree(world, &Boot, used.and(freed))?;
    Ok(trials)
}
