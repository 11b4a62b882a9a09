//! A slab: a slice of memory on every rank of a group.
//!
//! The ranks of a node share one file; the slab maps the whole of it, so that a
//! slice of a rank on the same node is an address here. Where ranks of the
//! group are reached through MPI's windows, the slab has one window over all
//! slices, in a permanent lock.
//!
//! The first [`HEADER`] bytes of a slice hold the locks that make operations on
//! the slice atomic (see [`crate::atomics`]); the rest is cut into pieces.

use super::free_list::FreeList;
use crate::collective::{agree, allgather, share};
use crate::error::{Error, ErrorKind, Result};
use crate::group::Group;
use crate::mpi::Window;
use crate::shm::{self, SharedFile};
use crate::topology::Topology;
use crate::wait::Progress;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// Every piece starts at a multiple of this and takes a whole number of it.
/// (MPICH 4.0 confuses windows whose size is not a multiple of 16 bytes; a cache
/// line also keeps neighbours' atomics apart.)
pub(crate) const ALIGN: usize = 64;
/// Bytes of locks at the start of a slice.
pub(crate) const HEADER: usize = 4096;
/// A group keeps empty slabs up to this many bytes of committed memory a rank.
pub const KEEP_EMPTY_BYTES: usize = 64 << 20;
/// A free tail of a slice longer than this gives its memory back at once.
const TRIM_BYTES: usize = 32 << 20;

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

/// The owner's view of which parts of its slice are free.
#[derive(Debug)]
struct Cutting {
    free: FreeList,
    committed: usize,
}

/// A slice on every rank of a group.
#[derive(Debug)]
pub struct Slab {
    number: u32,
    slices: Vec<Slice>,
    me: usize,
    my_base: *mut u8,
    file_offset: usize,
    file: SharedFile,
    window: Option<Window>,
    domain: Domain,
    cutting: Mutex<Cutting>,
    /// Segments with a piece in this slab, on any rank.
    pub(super) live: AtomicUsize,
}

// SAFETY: the raw pointers name the mapping that `file` owns.
unsafe impl Send for Slab {}
// SAFETY: as above; access to the memory behind them is the engine's business.
unsafe impl Sync for Slab {}

/// Where a slice lies in its node's file.
struct FileLayout {
    leader: usize,
    offset: usize,
    total: usize,
}

fn place(group: &Group, topology: &Topology, capacities: &[usize]) -> FileLayout {
    let mine = topology.my_node();
    let (mut leader, mut offset, mut total) = (None, 0, 0);
    for (rank, &world) in group.members().iter().enumerate() {
        if topology.node_of(world) == mine {
            leader.get_or_insert(rank);
            if rank == group.rank() {
                offset = total;
            }
            total += capacities[rank];
        }
    }
    FileLayout { leader: leader.unwrap_or(group.rank()), offset, total }
}

impl Slab {
    /// Makes a slab, the group's `number`th, in which this rank can cut at least `need` bytes.
    /// Collective over the group.
    ///
    /// # Errors
    /// `Memory`, on all ranks, where any rank's address space or file cannot be
    /// had; `Mpi` where the window cannot.
    pub(super) fn create(
        group: &Group,
        topology: &Topology,
        policy: &Policy,
        progress: &impl Progress,
        number: u32,
        need: usize,
        held: usize,
    ) -> Result<Arc<Slab>> {
        let comm = group.comm()?;
        let wanted = (need + HEADER).max(policy.slab_bytes).max(held / 8);
        let capacity = wanted.next_multiple_of(shm::page().max(64 << 10));
        // Capacities first: every rank must know them all to place its slice.
        let capacities: Vec<usize> = allgather(&comm, progress, &(capacity as u64))?
            .into_iter()
            .map(|c| c as usize)
            .collect();
        let place = place(group, topology, &capacities);
        let file = share(&comm, progress, &policy.shm_dir, place.leader, place.total)?;
        let my_base = file.base().wrapping_add(place.offset);
        let header = file.reserve(place.offset, HEADER).map_err(|e| {
            Error::new(
                ErrorKind::Memory,
                format!("no room for the {HEADER}-byte header of a slab: {e}"),
            )
        });
        agree(&comm, progress, header)?;
        let bases = allgather(&comm, progress, &(my_base as u64))?;
        let mut in_file = 0;
        let slices: Vec<Slice> = (0..group.size())
            .map(|rank| {
                let mut local = std::ptr::null_mut();
                if topology.node_of(group.members()[rank]) == topology.my_node() {
                    // A rank's own memory is always reached directly: its owner
                    // sees it without any call.
                    if policy.direct || rank == group.rank() {
                        local = file.base().wrapping_add(in_file);
                    }
                    in_file += capacities[rank];
                }
                Slice { base: bases[rank] as usize, len: capacities[rank], local }
            })
            .collect();

        let wants_window = policy.windows
            && (policy.group_windows || group.size() == topology.size())
            && (policy.mpi_atomics || !policy.direct || !group.on_one_node());
        let window = if wants_window {
            // SAFETY: the mapping lives as long as the slab, which frees the
            // window before it goes.
            Some(unsafe { Window::create(&comm, my_base, capacity) }?)
        } else {
            None
        };
        let domain =
            if window.is_some() && policy.mpi_atomics { Domain::Mpi } else { Domain::Native };
        Ok(Arc::new(Slab {
            number,
            slices,
            me: group.rank(),
            my_base,
            file_offset: place.offset,
            window,
            domain,
            cutting: Mutex::new(Cutting {
                free: FreeList::new(HEADER, capacity),
                committed: HEADER,
            }),
            file,
            live: AtomicUsize::new(0),
        }))
    }

    /// The slab's number in its group.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// All slices, by rank of the group.
    pub fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// The window, where the slab has one.
    pub fn window(&self) -> Option<&Window> {
        self.window.as_ref()
    }

    /// The atomicity domain.
    pub fn domain(&self) -> Domain {
        self.domain
    }

    /// This rank's slice, as memory.
    pub fn my_base(&self) -> *mut u8 {
        self.my_base
    }

    /// The memory that this node's slices share, which begins with the first of them, and where
    /// this rank's lies in it.
    pub(crate) fn node_file(&self) -> (*mut u8, usize) {
        (self.file.base(), self.file_offset)
    }

    /// Length of this rank's slice.
    pub fn my_len(&self) -> usize {
        self.slices[self.me].len
    }

    /// Bytes of memory that this rank's slice holds.
    pub(super) fn committed(&self) -> usize {
        self.cutting.lock().committed
    }

    /// Cuts `len` bytes (a multiple of [`ALIGN`]) out of this rank's slice and
    /// makes sure that memory is behind them. `Ok(None)` where no free part is
    /// long enough, an error where there is no memory.
    pub(super) fn cut(&self, len: usize) -> Result<Option<usize>> {
        let mut cutting = self.cutting.lock();
        let Some(offset) = cutting.free.take(len) else {
            return Ok(None);
        };
        let end = offset + len;
        if end > cutting.committed {
            let from = cutting.committed;
            // Whole pages, and a few at a time, so that small segments do not
            // each pay a system call.
            let to = end.next_multiple_of(64 << 10).min(self.my_len());
            if let Err(e) = self.file.reserve(self.file_offset + from, to - from) {
                cutting.free.give(offset, len);
                self.file.release(self.file_offset + from, to - from);
                return Err(Error::new(
                    ErrorKind::Memory,
                    format!(
                        "{len} bytes asked, {} bytes free in shared memory: {e}",
                        self.file.room()
                    ),
                ));
            }
            cutting.committed = to;
        }
        Ok(Some(offset))
    }

    /// Gives a piece of this rank's slice back. Some memory is kept for the next
    /// piece.
    pub(super) fn give_back(&self, offset: usize, len: usize) {
        self.give_back_keeping(offset, len, TRIM_BYTES);
    }

    /// Undoes a cut that came to nothing, for want of memory elsewhere: all memory
    /// behind the last piece goes back, so that others can have it.
    pub(super) fn uncut(&self, offset: usize, len: usize) {
        self.give_back_keeping(offset, len, 0);
    }

    fn give_back_keeping(&self, offset: usize, len: usize, keep: usize) {
        let mut cutting = self.cutting.lock();
        cutting.free.give(offset, len);
        let tail = cutting.free.tail().next_multiple_of(64 << 10);
        if tail + keep < cutting.committed {
            self.file.release(self.file_offset + tail, cutting.committed - tail);
            cutting.committed = tail;
        }
    }

    /// Frees the window. Collective, once; the mapping goes with the last
    /// reference to the slab.
    pub(super) fn close(&self) -> Result<()> {
        match &self.window {
            Some(window) => window.free(),
            None => Ok(()),
        }
    }
}
