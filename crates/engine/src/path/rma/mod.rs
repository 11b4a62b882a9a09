//! One-sided MPI operations on the window of an arena.
//!
//! The window stays locked, so an operation is one MPI call, and a flush completes it. Strided
//! transfers use cached derived datatypes. Long transfers are split to fit MPI's counts.
//!
//! Only puts and gets go through windows. Atomic operations have one mechanism ([`crate::atomics`]).
//!
//! **Order.** MPI orders neither puts nor gets. The list of unfinished operations ([`pending`])
//! decides when an operation waits for earlier ones.

mod operations;
mod pending;
mod prepared;
mod types;
mod vector;

use crate::core::Core;
use crate::memory::arena::{Arena, Path};
use crate::memory::sparse::Sparse;
use crate::mpi::Window;
use parking_lot::{Mutex, MutexGuard};
use pending::Pending;
use portolan_base::error::Result;
use std::ops::Range;
use std::sync::Arc;
use types::TypeCache;

/// Longest part of one MPI call, in bytes.
const MAX_PART: usize = 1 << 30;

#[derive(Debug)]
pub struct Rma {
    types: TypeCache,
    pending: Sparse<Mutex<Pending>>,
}

fn window(arena: &Arena) -> &Window {
    arena.window().expect("the path was chosen because there is a window")
}

impl Rma {
    pub fn new(ranks: usize) -> Rma {
        Rma { types: TypeCache::default(), pending: Sparse::new(ranks) }
    }

    pub fn forget_types(&self) {
        self.types.clear();
    }

    /// Completes the operations that one on these addresses of `target` must not overtake, and adds
    /// it to the list of unfinished ones, whose lock is returned. `rank` is the rank in the group of
    /// the arena.
    fn begin(
        &self,
        core: &Core,
        target: usize,
        (arena, rank): (&Arc<Arena>, usize),
        is_get: bool,
        bytes: Range<usize>,
    ) -> Result<MutexGuard<'_, Pending>> {
        let mut pending = self.pending[target].lock();
        if pending.conflicts(is_get, &bytes) {
            pending.flush()?;
        }
        pending.note(arena, rank, is_get, bytes);
        let _ = core.peer(target);
        core.peers().mark_pending(target, Path::Rma.pending_bit());
        Ok(pending)
    }

    /// Completes a transfer locally. For a get, this also completes all earlier operations to the
    /// target.
    fn complete_locally(
        &self,
        target: usize,
        (arena, rank): (&Arena, usize),
        is_get: bool,
    ) -> Result<()> {
        match is_get {
            true => self.pending[target].lock().flush(),
            false => window(arena).flush_local(rank),
        }
    }
}
