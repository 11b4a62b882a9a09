//! How the job reaches memory: decided once, the same on all ranks.
//!
//! Ranks of a node map each other's memory. Between nodes there are windows and
//! messages. Windows are better where the network serves them by itself. Where MPI makes
//! them of messages, the target has to take part, in MPI's own way, and the engine's own
//! messages are several times faster (its progress thread serves them while the target
//! computes). Which it is, a few puts at start tell: whether they complete while their
//! target sleeps.

use crate::collective;
use crate::config::{AmChoice, AtomicsChoice, Config, PathChoice};
use crate::error::{Result, fail};
use crate::memory::slab::Policy;
use crate::mpi::{Comm, Datatype, Flavour, Shape, Transfer, Window};
use crate::topology::Topology;
use crate::wait::Boot;
use std::time::{Duration, Instant};

/// How long a target sleeps while puts to it are tried.
const ASLEEP: Duration = Duration::from_millis(5);

/// How the job reaches memory: decided once, the same on all ranks.
pub(super) struct Decision {
    /// For the memory.
    pub policy: Policy,
    /// Whether messages are needed.
    pub messages: bool,
    /// Why memory of other nodes is reached as it is.
    pub reason: String,
}

/// Decides; collective over `world`.
///
/// # Errors
/// `Argument` for settings that cannot be; `Mpi` where windows are asked for and do not
/// work.
pub(super) fn decide(config: &Config, topology: &Topology, world: &Comm) -> Result<Decision> {
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
    // One rank reaches all memory directly. (Open MPI makes no window of one rank.)
    let wanted = world.size() > 1 && (remote.is_some() || mpi_atomics);
    let forced = remote == Some(true) || config.atomics == AtomicsChoice::Mpi;
    let (mut windows, mut reason) = (false, String::from("all ranks share one node"));
    if config.path == PathChoice::Message {
        reason = "PORTOLAN_PATH=message".into();
    }
    let part = world.size() != job_size()?;
    if wanted && part && Flavour::built() == Flavour::OpenMpi {
        reason = "Open MPI's windows cannot be made by several parts of a job at a time".into();
        if topology.me() == 0 {
            log::warn!("messages are used instead of windows: {reason}");
        }
    } else if wanted {
        let far = (!forced).then(|| topology.masters()[1]);
        match probe_windows(world, far) {
            Ok(_) if forced => {
                windows = true;
                reason = "chosen by PORTOLAN_PATH or PORTOLAN_ATOMICS".into();
            }
            Ok(alone) => {
                windows = alone;
                reason = if alone {
                    "MPI's windows need no help of their target between these nodes".into()
                } else {
                    "MPI's windows wait for their target between these nodes".into()
                };
            }
            Err(error) if forced => {
                fail!(
                    Mpi,
                    "{}: MPI's windows do not work between these nodes, and PORTOLAN_PATH=rma or \
                     PORTOLAN_ATOMICS=mpi asks for them; PORTOLAN_PATH=auto or message does without",
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
    Ok(Decision {
        policy: Policy {
            direct,
            windows,
            group_windows: Flavour::built() != Flavour::OpenMpi,
            mpi_atomics: mpi_atomics && windows,
            slab_bytes: config.slab_bytes,
            shm_dir: config.shm_dir.clone(),
        },
        messages: !one_node || !direct || mpi_atomics || config.am == AmChoice::Mpi,
        reason,
    })
}

fn job_size() -> Result<usize> {
    // SAFETY: MPI_COMM_WORLD is live while MPI runs.
    unsafe { Comm::size_of(Comm::world_handle()) }
}

/// Tries a window of the whole world: creation, a flush; and whether a put of rank 0
/// to rank `far` completes while that does not call MPI.
fn probe_windows(world: &Comm, far: Option<usize>) -> Result<bool> {
    let mut memory = vec![0u64; 64];
    let base = memory.as_mut_ptr().cast::<u8>();
    // SAFETY: `memory` outlives the window, which is freed below.
    let window = unsafe { Window::create(world, base, 512) };
    let verdict = window.as_ref().map(|_| ()).map_err(Clone::clone);
    if let Err(error) = collective::agree(world, &Boot, verdict) {
        // A window that exists on some ranks only cannot be freed collectively;
        // it goes with the process.
        std::mem::forget(memory);
        return Err(error);
    }
    let window = window?;
    let mut used = window.flush(world.rank());
    let mut alone = false;
    if let Some(far) = far {
        match completes_alone(world, &window, base, far) {
            Ok(found) => alone = found,
            Err(error) => used = used.and(Err(error)),
        }
    }
    let freed = window.free();
    collective::agree(world, &Boot, used.and(freed))?;
    Ok(alone)
}

/// Whether most of three puts of rank 0 to rank `far` complete while that sleeps. All
/// ranks get the answer.
fn completes_alone(world: &Comm, window: &Window, base: *mut u8, far: usize) -> Result<bool> {
    let mut at_once = 0u64;
    let mut failed = Ok(());
    for _ in 0..3 {
        collective::barrier(world, &Boot)?;
        if world.rank() == far {
            std::thread::sleep(ASLEEP);
        } else if world.rank() == 0 {
            let begun = Instant::now();
            let shape = Shape::Row(8, Datatype::Byte);
            let put = Transfer {
                origin: base.wrapping_add(256),
                origin_shape: shape,
                target: far,
                offset: 0,
                target_shape: shape,
            };
            // SAFETY: the eight bytes lie in the memory of the window here, and in the
            // window there; nobody else uses either.
            let done = unsafe { window.put(&put, false) }.and_then(|_| window.flush(far));
            at_once += u64::from(begun.elapsed() < ASLEEP / 5);
            failed = failed.and(done);
        }
    }
    let all = collective::allgather(world, &Boot, &at_once)?;
    failed.map(|()| all[0] >= 2)
}
