//! A slab: a slice of memory on every rank of a group.
//!
//! The ranks of a node share one file; the slab maps the whole of it, so that a
//! slice of a rank on the same node is an address here. Where ranks of the
//! group are reached through MPI's windows, the slab has one window over all
//! slices, in a permanent lock.
//!
//! The first [`HEADER`] bytes of a slice hold the locks that make operations on
//! the slice atomic (see [`crate::atomics`]); the rest is cut into pieces.

use super::own_slice::{GRAIN, OwnSlice};
use super::per_rank::PerRank;
use crate::error::Result;
use crate::group::Group;
use crate::mpi::Window;
use crate::shm;
use crate::topology::Topology;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

/// Every piece starts at a multiple of this and takes a whole number of it.
/// (MPICH 4.0 confuses windows whose size is not a multiple of 16 bytes; a cache
/// line also keeps neighbours' atomics apart.)
pub(crate) const ALIGN: usize = 64;
/// Bytes of locks at the start of a slice.
pub(crate) const HEADER: usize = 4096;
/// A group keeps empty slabs up to this many bytes of committed memory a rank.
pub const KEEP_EMPTY_BYTES: usize = 64 << 20;

/// What makes accumulate and read-modify-write atomic in a slab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// The locks in the slice's header, taken by ranks of the owner's node or by
    /// the owner on behalf of others.
    Native,
    /// MPI's accumulate operations on the window, for every rank.
    Mpi,
}

/// How slabs of this job are made; the same on all ranks.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Whether ranks of one node reach each other by load and store.
    pub direct: bool,
    /// Whether ranks beyond that are reached through windows.
    pub windows: bool,
    /// Whether groups other than the world may have windows. (Open MPI 4.1
    /// aborts when disjoint groups make windows at the same time.)
    pub group_windows: bool,
    /// The atomicity domain where a slab has a window.
    pub mpi_atomics: bool,
    /// Smallest capacity of a slice.
    pub slab_bytes: usize,
    /// Directory of the shared files.
    pub shm_dir: String,
}

/// One rank's part of a slab.
#[derive(Debug, Clone, Copy)]
pub struct Slice {
    /// Its address in the owner's address space.
    pub base: usize,
    /// Its length.
    pub len: usize,
    /// Its address here, null where the rank shares no memory with us.
    pub local: *mut u8,
}

/// A slice on every rank of a group.
///
/// What grows with the ranks is their addresses, 8 bytes each, and their lengths where these
/// differ.
#[derive(Debug)]
pub struct Slab {
    number: u32,
    me: usize,
    /// Once they are known.
    bases: OnceLock<PerRank<usize>>,
    lens: PerRank<usize>,
    /// The slices that are mapped here, by rank of the group, ascending.
    mapped: Box<[(usize, *mut u8)]>,
    has_window: bool,
    window: OnceLock<Window>,
    domain: Domain,
    pub(super) own: OwnSlice,
    /// Segments with a piece in this slab, on any rank.
    pub(super) live: AtomicUsize,
}

// SAFETY: the raw pointers name the mapping that `own` keeps.
unsafe impl Send for Slab {}
// SAFETY: as above; access to the memory behind them is the engine's business.
unsafe impl Sync for Slab {}

/// What the slice of a rank has at least, where it is to hold `need` bytes beside its header and
/// the rank holds `held` bytes in the group already.
pub(super) fn capacity(policy: &Policy, need: usize, held: usize) -> usize {
    let wanted = (need + HEADER).max(policy.slab_bytes).max(held / 8);
    wanted.next_multiple_of(shm::page().max(GRAIN))
}

/// Which ranks of a group share this rank's node.
#[derive(Debug)]
pub(super) struct Neighbours {
    /// By rank of the group, ascending.
    ranks: Box<[usize]>,
    me: usize,
}

impl Neighbours {
    pub(super) fn new(group: &Group, topology: &Topology) -> Neighbours {
        let mine = topology.my_node();
        let members = group.members().iter().enumerate();
        let near = members.filter(|&(_, &world)| topology.node_of(world) == mine);
        Neighbours { ranks: near.map(|(rank, _)| rank).collect(), me: group.rank() }
    }

    /// The rank that makes the node's file.
    pub(super) fn leader(&self) -> usize {
        self.ranks[0]
    }

    /// Where the slices of these lengths lie in the node's file: this rank's offset, and the
    /// length of all.
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

    /// The slices that are mapped here, given the mapping of the node's file.
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
        // A rank's own memory is always reached directly: its owner sees it without any call.
        all.filter(|&(rank, _)| direct || rank == self.me).collect()
    }
}

impl Slab {
    /// The slab of slices of these lengths, the group's `number`th, of which this rank has its own:
    /// it can serve others who name it, while [`Slab::complete`] is still to come.
    pub(super) fn new(
        group: &Group,
        topology: &Topology,
        policy: &Policy,
        (number, neighbours): (u32, &Neighbours),
        lens: PerRank<usize>,
        own: OwnSlice,
    ) -> Arc<Slab> {
        let windows = policy.windows
            && (policy.group_windows || group.size() == topology.size())
            && (policy.mpi_atomics || !policy.direct || !group.on_one_node());
        Arc::new(Slab {
            number,
            me: group.rank(),
            mapped: neighbours.mapped(own.file().base(), &lens, policy.direct),
            bases: OnceLock::new(),
            lens,
            has_window: windows,
            window: OnceLock::new(),
            domain: if windows && policy.mpi_atomics { Domain::Mpi } else { Domain::Native },
            own,
            live: AtomicUsize::new(0),
        })
    }

    /// Makes the addresses of all slices known, and the window. Collective over the group.
    ///
    /// # Errors
    /// `Mpi` where the window cannot be had.
    pub(super) fn complete(&self, group: &Group, bases: PerRank<usize>) -> Result<()> {
        if self.has_window {
            let (base, len) = (self.own.base(), self.own.len());
            // SAFETY: the mapping lives as long as the slab, which frees the
            // window before it goes.
            let window = unsafe { Window::create(&*group.comm()?, base, len) }?;
            let _ = self.window.set(window);
        }
        let _ = self.bases.set(bases);
        Ok(())
    }

    /// The slab's number in its group.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Where the slice of a rank of the group begins in the rank's address space; 0 while that is
    /// not known.
    #[inline]
    pub fn base(&self, rank: usize) -> usize {
        self.bases.get().map_or(0, |bases| bases.at(rank))
    }

    /// The slice of a rank of the group; `None` while its address is not known, as that of the
    /// calling rank always is.
    pub fn slice(&self, rank: usize) -> Option<Slice> {
        let base = if rank == self.me { self.own.base() as usize } else { self.base(rank) };
        if base == 0 {
            return None;
        }
        let local = match self.mapped.binary_search_by_key(&rank, |&(rank, _)| rank) {
            Ok(at) => self.mapped[at].1,
            Err(_) => std::ptr::null_mut(),
        };
        Some(Slice { base, len: self.lens.at(rank), local })
    }

    /// This rank's slice, as memory.
    pub fn my_base(&self) -> *mut u8 {
        self.own.base()
    }

    /// Length of the longest slice.
    pub(super) fn widest(&self) -> usize {
        self.lens.values().iter().copied().max().unwrap_or(0)
    }

    /// The window, where the slab has one.
    pub fn window(&self) -> Option<&Window> {
        self.window.get()
    }

    /// The atomicity domain.
    pub fn domain(&self) -> Domain {
        self.domain
    }

    /// The memory that this node's slices share, which begins with the first of them, and where
    /// this rank's lies in it.
    pub(crate) fn node_file(&self) -> (*mut u8, usize) {
        self.own.in_file()
    }

    /// Frees the window. Collective, once; the mapping goes with the last
    /// reference to the slab.
    pub(super) fn close(&self) -> Result<()> {
        match self.window.get() {
            Some(window) => window.free(),
            None => Ok(()),
        }
    }
}
