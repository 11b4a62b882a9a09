//! The choice of paths to memory, made once and identically on all ranks.
//!
//! Ranks of a node map each other's memory. Between nodes, messages are the default: the progress
//! thread serves them while the target computes. MPI's windows are used only on request. In all
//! measurements so far, they needed the target's help, or some transfers took several times longer
//! than by messages. Nothing is measured at start, so a busy machine does not change the choice.

use crate::collective;
use crate::memory::arena::Policy;
use crate::mpi::{Comm, Flavour, Window};
use crate::path::Paths;
use crate::topology::Topology;
use portolan_base::config::{AmChoice, Config, PathChoice, SplitChoice};
use portolan_base::error::{Result, fail};
use portolan_base::wait::Boot;
use std::fs;

pub(super) struct Decision {
    pub policy: Policy,
    pub messages: bool,
    pub reason: &'static str,
}

/// Returns the length of chunks that `PORTOLAN_CHUNK_BYTES=auto` means. Over TCP, Open MPI sends up to
/// 64 KiB without waiting for the receiver. MPICH waits from 19 KiB on, so it needs fewer and longer
/// chunks; docs/tuning.md has the rates.
pub(super) fn chunk_bytes() -> usize {
    if Flavour::built() == Flavour::OpenMpi { 60 << 10 } else { 120 << 10 }
}

/// Returns the meaning of `PORTOLAN_SPLIT=auto`. Over TCP, MPI moves long messages at 0.5 to 0.7 of
/// the rate of chunks. An adapter for RDMA moves long messages without the processor.
pub(super) fn split(topology: &Topology) -> SplitChoice {
    let classes = ["/sys/class/infiniband", "/sys/class/cxi"];
    let has_rdma = || classes.iter().any(|c| fs::read_dir(c).is_ok_and(|mut c| c.next().is_some()));
    if topology.real_nodes() > 1 && !has_rdma() { SplitChoice::On } else { SplitChoice::Off }
}

/// Collective over `world`. Fails with `Argument` for invalid settings, and with `Mpi` if windows are
/// requested and do not work.
pub(super) fn decide(config: &Config, topology: &Topology, world: &Comm) -> Result<Decision> {
    let one_node = topology.nodes() == 1;
    let (direct, rma) = match config.path {
        PathChoice::Direct if !one_node => fail!(
            Argument,
            "PORTOLAN_PATH=direct, but the ranks are on {} nodes that share no memory",
            topology.nodes()
        ),
        PathChoice::Direct | PathChoice::Auto => (true, false),
        PathChoice::DirectRma => (true, true),
        PathChoice::Rma => (false, true),
        PathChoice::Message => (false, false),
    };
    // A single rank reaches all memory directly. Open MPI cannot create a window of one rank.
    let wanted = world.size() > 1 && rma;
    let in_part = Flavour::built() == Flavour::OpenMpi && world.size() != job_size()?;
    let windows = wanted && !in_part;
    let reason = if windows {
        try_windows(world)?;
        "chosen by PORTOLAN_PATH"
    } else if wanted {
        let why = "Open MPI's windows cannot be created by several parts of a job at the same time";
        if topology.me() == 0 {
            log::warn!("messages are used instead of windows: {why}");
        }
        why
    } else if config.path == PathChoice::Message {
        "PORTOLAN_PATH=message"
    } else if one_node {
        "all ranks share one node"
    } else {
        "the default; PORTOLAN_PATH=direct+rma selects MPI's windows"
    };
    Ok(Decision {
        policy: Policy {
            direct,
            windows,
            group_windows: Flavour::built() != Flavour::OpenMpi,
            arena_bytes: config.arena_bytes,
            keep_bytes: config.keep_bytes,
            installed: Paths::is_any_installed(),
            shm_dir: config.shm_dir.clone(),
        },
        messages: !one_node || !direct || config.am == AmChoice::Mpi,
        reason,
    })
}

fn job_size() -> Result<usize> {
    // SAFETY: `MPI_COMM_WORLD` is live while MPI runs.
    unsafe { Comm::size_of(Comm::world_handle()) }
}

/// Creates, flushes and frees a window, so that an MPI whose windows do not work fails here.
/// Collective: fails on all ranks if it fails on one.
fn try_windows(world: &Comm) -> Result<()> {
    let mut word = Box::new(0u64);
    // SAFETY: the window is freed before its word, or the word is forgotten.
    let window = unsafe { Window::create(world, (&raw mut *word).cast(), size_of::<u64>()) };
    let created = window.as_ref().map(|_| ()).map_err(Clone::clone);
    let tried = match collective::agree(world, &Boot, created) {
        Ok(()) => window.and_then(|window| {
            let flushed = window.flush(world.rank());
            flushed.and(window.free())
        }),
        Err(error) => {
            // A window that exists only on some ranks cannot be freed collectively.
            if window.is_ok() {
                std::mem::forget(word);
            }
            Err(error)
        }
    };
    match collective::agree(world, &Boot, tried) {
        Ok(()) => Ok(()),
        Err(error) => fail!(
            Mpi,
            "{}: MPI's windows do not work between these ranks, but PORTOLAN_PATH requires them; set \
             it to auto or message",
            error.detail()
        ),
    }
}
