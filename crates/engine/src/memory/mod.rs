//! Remotely accessible memory, from shared files up to segments.
//!
//! | module | contents |
//! |---|---|
//! | `partition` | messages that the ranks exchange to allocate segments |
//! | `allocation` | collective allocation of segments |
//! | [`membarrier`] | asymmetric memory barriers |
//! | [`biased_lock`] | a lock that is almost free for its owner |
//! | [`buffer_pool`] | a pool of buffers |
//! | [`door`] | a door that many threads pass and that one thread shuts |
//! | [`registered`] | memory registrations, and the copies that use them |
//! | [`free_list`] | free ranges of one rank's region of an arena |
//! | [`arena`] | one arena: a region on every rank of a group, its mappings, its window |
//! | `own_region` | this rank's region: free ranges and committed memory |
//! | `holdings` | the arenas of a group |
//! | `part` | a segment and its parts |
//! | `per_rank` | a value for each rank, stored once if all are equal |
//! | [`block_index`] | the blocks of segments in one region, by offset |
//! | [`brlock`] | a value whose readers take no lock |
//! | `reader_slot` | a slot for each thread, which `brlock` and `door` use |
//! | [`reach`] | the paths to memory, and the capabilities of transports |
//! | [`registry`] | lookup from (rank, address) to arena, offset and local address |
//! | `extents` | the regions of the ranks that have been looked up |
//! | [`segment`] | the live segments, and how they are freed |
//! | [`shared_bytes`] | copies from and to memory that is accessed concurrently |
//! | [`shm_export`] | memory in a file of its own, which other ranks of the node map |
//! | [`large_buffer`] | a pool of large buffers |
//! | [`local`] | memory that only its own rank uses |
//! | [`sparse`] | a sparse table indexed by rank |
//! | [`stack`] | remaining stack space of a thread |
//!
//! **Arenas and segments.** Windows and mappings are expensive and few, segments cheap and many. An
//! *arena* ([`arena::Arena`]) belongs to a group and gives each of its ranks a *region*
//! ([`arena::Region`]). A *segment* has one *block* ([`block_index::Block`]) in each rank's region,
//! possibly in different arenas. Each rank allocates its own blocks, and one allgather of (arena,
//! offset, length) publishes the segment.
//!
//! **Memory per rank.** An arena takes one address per rank of the group, the registry one pointer
//! per rank. A segment takes no memory per rank if its layout is the same on all ranks.
//!
//! **Growth.** A region has at least `PORTOLAN_SLAB_BYTES` bytes and at least an eighth of the
//! total length of the rank's regions in the group, so the number of arenas grows with the
//! logarithm of the memory. An arena takes memory only when a block is allocated.
//!
//! **Release.** A group keeps empty arenas for later segments, up to [`arena::KEEP_EMPTY_BYTES`].
//! All ranks of the group create and remove arenas together.
//!
//! **Rounding.** A block takes a multiple of [`arena::ALIGN`] bytes. The bounds check uses the
//! requested length.

mod allocation;
pub mod arena;
pub mod biased_lock;
pub mod block_index;
pub mod brlock;
pub(crate) mod buffer_pool;
pub mod door;
mod extents;
pub mod free_list;
mod holdings;
pub mod large_buffer;
pub mod local;
pub mod membarrier;
mod own_region;
mod part;
mod partition;
pub(crate) mod per_rank;
pub mod reach;
mod reader_slot;
pub mod registered;
pub mod registry;
pub mod segment;
pub mod shared_bytes;
pub mod shm_export;
pub mod sparse;
pub mod stack;
