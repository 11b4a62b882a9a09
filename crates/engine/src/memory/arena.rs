//! An arena: a region of memory on every rank of a group. The ranks of a node share one file. The
//! arena maps it whole, so regions of the same node have an address here. If MPI windows reach
//! other ranks, the arena has one permanently locked window over all regions. The first [`HEADER`]
//! bytes of a region contain the locks and marks of [`crate::atomics`]. The rest is allocated in
//! blocks.

use super::own_region::{GRAIN, OwnRegion};
use super::per_rank::PerRank;
use crate::collective::group::Group;
use crate::mpi::Window;
use crate::topology::Topology;
use portolan_base::error::Result;
use portolan_base::shm;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

/// Alignment of blocks, and the unit of their lengths, in bytes. MPICH 4.0 mishandles windows whose
/// size is not a multiple of 16, and a cache line separates the atomics of neighbours.
pub const ALIGN: usize = 64;
/// Length in bytes of the locks and marks at the start of a region.
pub(crate) const HEADER: usize = 8192;
/// Distance of the first blocks of consecutive arenas, modulo [`STAGGERED`].
const STAGGER: usize = 7 * ALIGN;
/// Bytes after which processors see equal addresses.
const STAGGERED: usize = 4096;

/// How memory is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    Direct,
    Rma,
    Message,
    /// An external transport ([`crate::path::install`]).
    Installed,
}

impl Path {
    pub const REMOTE: [Path; 3] = [Path::Rma, Path::Message, Path::Installed];

    /// Returns the name as spelled in `PORTOLAN_PATH`.
    pub fn name(self) -> &'static str {
        match self {
            Path::Direct => "direct",
            Path::Rma => "rma",
            Path::Message => "message",
            Path::Installed => "installed",
        }
    }

    /// Returns the bit of the path in [`crate::core::peer::Peers::pending`].
    #[inline]
    pub const fn pending_bit(self) -> u8 {
        match self {
            Path::Direct => 0,
            Path::Rma => 1,
            Path::Message => 2,
            Path::Installed => 4,
        }
    }
}

/// Settings for the arenas of this job, equal on all ranks.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Whether ranks of one node access each other's memory by load and store.
    pub direct: bool,
    /// Whether windows reach the ranks that are not accessed directly.
    pub windows: bool,
    /// Other groups than the world may have windows. (Open MPI 4.1 aborts if several create some.)
    pub group_windows: bool,
    /// An installed transport reaches the ranks that are not accessed directly.
    pub installed: bool,
    /// Minimum length of a region in bytes.
    pub arena_bytes: usize,
    /// Limit on the memory of freed segments that a group keeps for later ones, in bytes per rank.
    pub keep_bytes: usize,
    pub shm_dir: String,
}

impl Policy {
    /// Returns the path of transfers to memory that is not mapped.
    pub fn remote_path(&self, windows: bool) -> Path {
        match windows {
            _ if self.installed => Path::Installed,
            true => Path::Rma,
            false => Path::Message,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Region {
    /// Address in the owner's address space.
    pub base: usize,
    pub len: usize,
    /// Address in this process, or null if the region is not mapped here.
    pub local: *mut u8,
}

#[derive(Debug)]
pub struct Arena {
    number: u32,
    me: usize,
    bases: OnceLock<PerRank<usize>>,
    lens: PerRank<usize>,
    /// Regions that are mapped here, sorted by rank of the group.
    mapped: Box<[(usize, *mut u8)]>,
    window: OnceLock<Window>,
    transfer_path: Path,
    pub(super) own: OwnRegion,
    /// Number of segments with a block here, on any rank.
    pub(super) live: AtomicUsize,
}

// SAFETY: `own` keeps the mapping behind the pointers alive, and any thread may use it.
unsafe impl Send for Arena {}
// SAFETY: fields are constant or synchronized; the engine synchronizes the memory's accesses.
unsafe impl Sync for Arena {}

/// Returns the offset of the first block in a rank's region of a new arena, beside `others` arenas.
///
/// Large segments have arenas of their own. If two of them had addresses with the same last twelve
/// bits, a load from one would wait for a store to the same place of the other, because processors
/// compare only these bits at first.
pub(super) fn start(others: usize) -> usize {
    HEADER + others * STAGGER % STAGGERED
}

/// Returns the length of a rank's region in a new arena, with `need` bytes besides its header. The
/// rank already holds `held` bytes in the group.
pub(super) fn capacity(policy: &Policy, need: usize, held: usize) -> usize {
    let wanted = (need + HEADER + STAGGERED).max(policy.arena_bytes).max(held / 8);
    wanted.next_multiple_of(shm::page().max(GRAIN))
}

#[derive(Debug)]
pub struct Neighbours {
    ranks: Box<[usize]>,
    me: usize,
}

impl Neighbours {
    pub fn new(group: &Group, topology: &Topology) -> Neighbours {
        let mine = topology.my_node();
        let members = group.members().iter().enumerate();
        let near = members.filter(|&(_, &world)| topology.node_of(world) == mine);
        Neighbours { ranks: near.map(|(rank, _)| rank).collect(), me: group.rank() }
    }

    pub(super) fn leader(&self) -> usize {
        self.ranks[0]
    }

    pub(super) fn layout(&self, lens: &PerRank<usize>) -> (usize, usize) {
        let (mut own, mut total) = (0, 0);
        for &rank in &self.ranks {
            if rank == self.me {
                own = total;
            }
            total += lens.at(rank);
        }
        (own, total)
    }

    fn mapped(
        &self,
        file: *mut u8,
        lens: &PerRank<usize>,
        direct: bool,
    ) -> Box<[(usize, *mut u8)]> {
        let mut offset = 0;
        let place = |&rank: &usize| {
            let at = file.wrapping_add(offset);
            offset += lens.at(rank);
            (rank, at)
        };
        let all = self.ranks.iter().map(place);
        all.filter(|&(rank, _)| direct || rank == self.me).collect()
    }
}

impl Arena {
    /// Until [`Arena::complete`], only others can address this rank's region, and it no other.
    pub fn new(
        group: &Group,
        topology: &Topology,
        policy: &Policy,
        (number, neighbours): (u32, &Neighbours),
        lens: PerRank<usize>,
        own: OwnRegion,
    ) -> Arc<Arena> {
        let windows = policy.windows
            && (policy.group_windows || group.size() == topology.size())
            && (!policy.direct || !group.on_one_node());
        Arc::new(Arena {
            number,
            me: group.rank(),
            transfer_path: policy.remote_path(windows),
            mapped: neighbours.mapped(own.file().base(), &lens, policy.direct),
            bases: OnceLock::new(),
            lens,
            window: OnceLock::new(),
            own,
            live: AtomicUsize::new(0),
        })
    }

    /// Sets the addresses of all regions and creates the window, if any. Collective.
    pub(super) fn complete(&self, group: &Group, bases: PerRank<usize>) -> Result<()> {
        if self.transfer_path == Path::Rma {
            let (base, len) = (self.own.base(), self.own.len());
            // SAFETY: the mapping lives until the arena is dropped, after the window is freed.
            let window = unsafe { Window::create(&*group.comm()?, base, len) }?;
            let _ = self.window.set(window);
        }
        let _ = self.bases.set(bases);
        Ok(())
    }

    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the address of a region in its owner's address space, or 0 if not known yet.
    #[inline]
    pub fn base(&self, rank: usize) -> usize {
        self.bases.get().map_or(0, |bases| bases.at(rank))
    }

    /// Returns the region of a rank of the group, or `None` if its address is not known yet.
    pub fn region(&self, rank: usize) -> Option<Region> {
        let base = if rank == self.me { self.own.base() as usize } else { self.base(rank) };
        if base == 0 {
            return None;
        }
        let local = match self.mapped.binary_search_by_key(&rank, |&(rank, _)| rank) {
            Ok(at) => self.mapped[at].1,
            Err(_) => std::ptr::null_mut(),
        };
        Some(Region { base, len: self.lens.at(rank), local })
    }

    pub fn my_base(&self) -> *mut u8 {
        self.own.base()
    }

    pub(super) fn widest(&self) -> usize {
        self.lens.values().iter().copied().max().unwrap_or(0)
    }

    #[inline]
    pub fn window(&self) -> Option<&Window> {
        self.window.get()
    }

    #[inline]
    pub fn transfer_path(&self) -> Path {
        self.transfer_path
    }

    /// Returns the path of atomic operations to regions that are not mapped here.
    #[inline]
    pub fn atomic_path(&self) -> Path {
        match self.transfer_path {
            Path::Installed => Path::Installed,
            _ => Path::Message,
        }
    }

    /// Returns the address of the node's file, and the offset of this rank's region in it.
    pub(crate) fn node_file(&self) -> (*mut u8, usize) {
        self.own.in_file()
    }

    /// Frees the window. Collective, and called once. The last reference to the arena unmaps it.
    pub(super) fn close(&self) -> Result<()> {
        match self.window.get() {
            Some(window) => window.free(),
            None => Ok(()),
        }
    }
}
