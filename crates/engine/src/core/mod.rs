//! The state that all layers of an engine share: the ranks, their memory, the outstanding
//! operations to each rank, and waiting. Each layer contains the next lower layer by value and
//! reaches it through `Deref`: [`crate::runtime::Engine`], [`crate::am::Am`], [`crate::ops::Ops`],
//! [`crate::path::Paths`], [`Core`]. Waits in any layer make progress for all: [`Core`] forwards
//! polls and naps to the layer of [`Core::set_progress`].

pub mod answers;
pub mod handler;
mod observation;
pub mod peer;
mod poll_backoff;
mod threads;
pub mod upper_layer;
mod waits;

use crate::collective::group::Group;
use crate::memory::segment::Memory;
use crate::mpi::init::ThreadLevel;
use crate::topology::Topology;
use parking_lot::Mutex;
use peer::{Peer, Peers};
use portolan_base::config::Config;
use portolan_base::error::{Result, fail};
use portolan_base::thread::this_thread;
use portolan_base::trace::{Observer, Settings};
use portolan_base::wait::Progress;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};
use upper_layer::UpperLayer;
pub use waits::count;

/// Implements [`Progress`] for a layer by its `Deref` target.
macro_rules! progress_by_deref {
    ($layer:ty) => {
        impl portolan_base::wait::Progress for $layer {
            #[inline]
            fn delegate(&self) -> Option<&dyn portolan_base::wait::Progress> {
                Some(&**self)
            }
        }
    };
}
pub(crate) use progress_by_deref;

#[derive(Debug)]
pub struct Core {
    pub config: Config,
    pub topology: Arc<Topology>,
    pub memory: Memory,
    world: Arc<Group>,
    peers: Peers,
    groups: Mutex<Vec<Arc<Group>>>,
    level: ThreadLevel,
    /// The thread that started the engine.
    home: usize,
    /// Some ranks are served by messages.
    messages: bool,
    /// There are messages but no thread that serves them.
    threadless: AtomicBool,
    watched: AtomicBool,
    /// The engine is ending. Its threads have ended or are about to end.
    alone: AtomicBool,
    closed: AtomicBool,
    waiters: AtomicU32,
    polls: AtomicU32,
    /// Approximate number of handled requests of other ranks, and its value at the last wait.
    served: AtomicU32,
    served_before: AtomicU32,
    /// Ranks per core if the node has more ranks than cores and polls call MPI, else 1.
    per_core: u32,
    crowded: bool,
    /// Calls are counted or traced. Stored beside fields that calls read anyway.
    observed: AtomicBool,
    observer: Box<Observer>,
    progress: UpperLayer<dyn Progress + Send + Sync>,
}

#[derive(Debug)]
pub struct Parts {
    pub config: Config,
    pub topology: Arc<Topology>,
    pub memory: Memory,
    pub world: Arc<Group>,
    pub level: ThreadLevel,
    pub messages: bool,
    pub crowded: bool,
}

impl Core {
    pub fn new(parts: Parts) -> Core {
        let Parts { config, topology, memory, world, level, messages, crowded } = parts;
        let ranks = topology.size();
        let observer = Box::new(Observer::new(Settings {
            stats: config.stats,
            traces: !config.trace.is_empty(),
            limit: config.trace_bytes as u64,
            counter: config.trace_counter,
            shift: config.trace_shift,
        }));
        Core {
            memory,
            peers: Peers::new(ranks),
            groups: Mutex::new(vec![world.clone()]),
            world,
            level,
            home: this_thread(),
            messages,
            threadless: AtomicBool::new(messages && ranks > 1),
            watched: AtomicBool::new(false),
            alone: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            waiters: AtomicU32::new(0),
            polls: AtomicU32::new(0),
            served: AtomicU32::new(0),
            served_before: AtomicU32::new(0),
            per_core: if crowded && messages { ranks_per_core(&topology) } else { 1 },
            crowded,
            observed: AtomicBool::new(observer.is_on()),
            observer,
            progress: UpperLayer::default(),
            topology,
            config,
        }
    }

    /// # Safety
    /// See [`UpperLayer::set`].
    pub unsafe fn set_progress(&self, progress: &(dyn Progress + Send + Sync + 'static)) {
        // SAFETY: the caller guarantees the requirements of `UpperLayer::set`.
        unsafe { self.progress.set(progress) };
    }

    #[inline]
    pub fn rank(&self) -> usize {
        self.topology.me()
    }

    #[inline]
    pub fn size(&self) -> usize {
        self.peers.len()
    }

    pub fn world(&self) -> &Arc<Group> {
        &self.world
    }

    /// In the order of their creation.
    pub fn groups(&self) -> &Mutex<Vec<Arc<Group>>> {
        &self.groups
    }

    pub fn thread_level(&self) -> ThreadLevel {
        self.level
    }

    pub fn has_messages(&self) -> bool {
        self.messages
    }

    pub fn is_crowded(&self) -> bool {
        self.crowded
    }

    #[inline]
    pub fn peer(&self, rank: usize) -> &Peer {
        self.peers.at(rank)
    }

    #[inline]
    pub fn peers(&self) -> &Peers {
        &self.peers
    }

    #[inline]
    pub fn check_rank(&self, rank: usize) -> Result<()> {
        if rank >= self.peers.len() {
            fail!(Rank, "rank {rank} is outside the {} ranks of the job", self.peers.len());
        }
        Ok(())
    }

    /// Returns whether `rank` maps the segments of `owner`.
    pub fn reaches_directly(&self, owner: usize, rank: usize) -> bool {
        owner == rank || self.memory.policy().direct && self.topology.same_node(owner, rank)
    }
}

/// Returns the number of ranks of this host per core that this rank may use, rounded up.
fn ranks_per_core(topology: &Topology) -> u32 {
    let near = (0..topology.size()).filter(|&rank| topology.same_host(rank, topology.me()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    near.count().div_ceil(cores) as u32
}
