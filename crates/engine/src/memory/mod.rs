//! Remotely accessible memory, from shared files up to segments.
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
//! **Release.** The memory of a freed segment stays reserved and mapped for later segments, because
//! the faults of fresh pages cost more than most work on them. Each rank keeps up to
//! `PORTOLAN_KEEP_BYTES` for a group, and the group keeps empty arenas of the same total length.
//! All ranks of the group create and remove arenas together. If an allocation finds no memory, the
//! ranks of the group release what they keep and try once more. Kept memory belongs to no segment:
//! the registry refuses its addresses, and a segment that asks for zeros clears it.
//!
//! **Rounding.** Blocks take multiples of [`arena::ALIGN`]. Bounds checks use the requested length.

mod allocation;
pub mod arena;
pub mod block_index;
pub mod free_list;
mod group_arenas;
pub mod large_buffer;
pub mod local;
mod own_region;
mod part;
mod partition;
pub(crate) mod per_rank;
pub mod pool;
mod region_lookup;
pub mod registered;
pub mod registry;
pub mod runs;
pub mod segment;
pub mod shared_bytes;
pub mod shm_export;
pub mod sparse;
