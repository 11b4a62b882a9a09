//! The paths to the memory of a target, and the choice between them.
//!
//! * [`shm_atomics`]: load and store through the shared mapping of the node.
//! * [`rma`]: MPI's one-sided calls on the window of the arena.
//! * [`two_sided`]: a request to the target, which its progress engine executes.
//!
//! The last two are transports ([`Transport`]), for memory that this process does not map. A
//! further transport is a folder here, a variant of [`Path`] and a row in the table of [`Paths`].
//!
//! A region that is mapped here is accessed directly. Otherwise the operation goes through the
//! window, if the arena has one, and else by message. `PORTOLAN_PATH` decides which arenas are
//! mapped and have windows ([`crate::memory::arena::Policy`]). For atomic operations the atomicity
//! domain of the arena decides, so that all ranks use one mechanism: direct or message in the
//! native domain, the window in the MPI domain. Accumulates of unaligned elements, and of elements
//! below 32 bits, go direct or by message in both.
//!
//! **Order** (invariant 1). Direct operations are complete on return. Messages to one target are
//! handled in order. A window operation that overlaps an unfinished one of another kind flushes
//! first. An operation that takes another path than unfinished operations to the same target
//! completes those first ([`crate::core::peer`]).

mod batch;
pub mod cma;
pub mod kernel;
pub(crate) mod lock_stripe;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "the fault is of x86"))]
mod long_copy;
pub mod mutex_service;
pub mod ops;
pub mod rma;
pub mod shm_atomics;
pub mod transport;
pub mod two_sided;

pub use crate::memory::capabilities::{Capabilities, Path};
pub use batch::Batch;
pub use transport::{Completion, Flush, Paths, Prepared, RemotePlace, Transport, install};

use crate::memory::arena::{Arena, Domain};
use ops::TransferKind;

/// For contiguous bytes, or rows that all have the same alignment.
#[inline]
pub(crate) fn for_kind(kind: &TransferKind, arena: &Arena, region: *mut u8, remote: usize) -> Path {
    match kind {
        TransferKind::Put | TransferKind::Get => for_transfer(arena, region),
        TransferKind::Accumulate(scale) => {
            for_accumulate(arena, region, scale.is_added_by_mpi(remote))
        }
    }
}

/// `region` is the mapping, or null.
#[inline]
pub fn for_transfer(arena: &Arena, region: *mut u8) -> Path {
    if region.is_null() { arena.transfer_path() } else { Path::Direct }
}

#[inline]
pub fn for_atomics(arena: &Arena, region: *mut u8) -> Path {
    for_accumulate(arena, region, true)
}

/// MPI never gets unaligned elements, on which its instructions may fault or not be atomic, and
/// other elements that it does not add ([`kernel::Scale::is_added_by_mpi`]).
#[inline]
fn for_accumulate(arena: &Arena, region: *mut u8, by_mpi: bool) -> Path {
    match arena.domain() {
        Domain::Mpi if by_mpi => Path::Rma,
        _ if !region.is_null() => Path::Direct,
        _ => arena.atomic_path(),
    }
}
