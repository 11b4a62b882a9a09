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
//! mapped and have windows ([`crate::memory::arena::Policy`]). Atomic operations are direct or go by
//! message, never through a window, so that all ranks use one mechanism (invariant 2).
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

pub use crate::memory::arena::Path;
pub use batch::Batch;
pub use transport::{Completion, Flush, Paths, Prepared, RemotePlace, Transport, install};

use crate::memory::arena::Arena;
use ops::TransferKind;

#[inline]
pub(crate) fn for_kind(kind: &TransferKind, arena: &Arena, region: *mut u8) -> Path {
    match kind {
        TransferKind::Put | TransferKind::Get => for_transfer(arena, region),
        TransferKind::Accumulate(_) => for_atomics(arena, region),
    }
}

/// `region` is the mapping, or null.
#[inline]
pub fn for_transfer(arena: &Arena, region: *mut u8) -> Path {
    if region.is_null() { arena.transfer_path() } else { Path::Direct }
}

#[inline]
pub fn for_atomics(arena: &Arena, region: *mut u8) -> Path {
    if region.is_null() { arena.atomic_path() } else { Path::Direct }
}
