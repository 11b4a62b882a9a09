//! Memory that ranks reach: from files in shared memory up to segments.
//!
//! | module | owns |
//! |---|---|
//! | `cut` | what ranks tell each other when they allocate |
//! | `allocation` | how segments are allocated by all ranks together |
//! | [`membarrier`] | barriers that one side pays for both |
//! | [`biased_lock`] | a lock that is almost free for its owner |
//! | [`buffer_pool`] | a pool of buffers |
//! | [`door`] | a door that threads pass all the time, and that one thread shuts |
//! | [`exposed`] | memory that others may use for a while, and what uses it now |
//! | [`free_list`] | which parts of one rank's slice of a slab are free |
//! | [`slab`] | one slab: a slice on every rank of a group, its mappings, its window |
//! | `own_slice` | this rank's slice: what is free, and what has memory |
//! | `holdings` | the slabs of a group |
//! | `part` | a segment and its parts |
//! | `per_rank` | a value for each rank, kept once where all are equal |
//! | [`piece_index`] | the pieces of segments in one slice, found by offset |
//! | [`brlock`] | a value whose readers take no lock |
//! | [`registry`] | (rank, address) to slab, offset and path |
//! | `extents` | the slices of the ranks that were looked up |
//! | [`segment`] | the live segments, and their freeing |
//! | [`shared_bytes`] | copies from and to memory that others use at the same time |
//! | [`shm_export`] | memory in a file of its own, for others of the node to map |
//! | [`large_buffer`] | a pool of long buffers |
//! | [`local`] | memory that only its rank uses |
//! | [`sparse`] | a table by rank of which few entries are used |
//! | [`stack`] | how much of its stack a thread has left |
//!
//! **Slabs and segments.** Windows and mappings are dear and few, segments are
//! cheap and many. A *slab* belongs to a group and gives each of its ranks a
//! *slice*. A *segment* is one *piece* of each rank's slice, possibly in
//! different slabs on different ranks. Each rank cuts its own pieces; one
//! allgather of (slab, offset, length) makes the segment known.
//!
//! **What grows with the ranks.** A rank keeps an address of each rank for each slab, and a
//! pointer of each rank in the registry; where all have cut a segment alike, which they do while
//! they ask for the same, nothing of a segment.
//!
//! **Growth.** A slab's slice has at least `PORTOLAN_SLAB_BYTES` and at least an
//! eighth of what the group already holds, so the number of slabs grows with
//! the logarithm of the memory, not with the number of segments. Address space
//! is taken when a slab is made, memory when a piece is cut.
//!
//! **Giving back.** A slab in which no segment lives any more is kept for the
//! next one, up to [`slab::KEEP_EMPTY_BYTES`] a group; beyond that it is
//! unmapped. Slabs are made and unmade by all ranks of the group together.
//!
//! **Rounding.** Every piece starts at a multiple of [`slab::ALIGN`] bytes and
//! takes a whole number of them; the length that was asked for is kept for the
//! bounds check.

mod allocation;
#[expect(unreachable_pub, reason = "the models include it, whose tests are other crates")]
pub(crate) mod biased_lock;
#[expect(unreachable_pub, reason = "the models include it, whose tests are other crates")]
pub(crate) mod brlock;
pub(crate) mod buffer_pool;
mod cut;
pub(crate) mod door;
pub(crate) mod exposed;
mod extents;
pub(crate) mod free_list;
mod holdings;
pub(crate) mod large_buffer;
pub(crate) mod local;
pub(crate) mod membarrier;
mod own_slice;
mod part;
pub(crate) mod per_rank;
pub(crate) mod piece_index;
mod reader_slot;
pub(crate) mod registry;
pub(crate) mod segment;
pub(crate) mod shared_bytes;
pub(crate) mod shm_export;
pub(crate) mod slab;
pub(crate) mod sparse;
pub(crate) mod stack;
