//! One-sided MPI operations on the window of an arena.
//!
//! The window stays locked, so an operation is one MPI call, and a flush completes it. Strided
//! transfers use cached derived datatypes. Long transfers are split to fit MPI's counts.
//!
//! Only puts and gets go through windows. Atomic operations have one mechanism ([`crate::atomics`]).
//!
//! **Order.** MPI orders neither puts nor gets. The list of unfinished operations ([`pending`])
//! decides when an operation waits for earlier ones.

mod pending;
mod prepared;
mod types;
mod vector;

use crate::core::Core;
use crate::error::{Result, fail};
use crate::layout::pairs::Pairs;
use crate::layout::{Shape, Side, Vector};
use crate::memory::arena::Arena;
use crate::memory::sparse::Sparse;
use crate::mpi::{Flavour, Window, WindowTransfer};
use crate::path::ops::{Transfer, TransferKind};
use crate::path::two_sided::Action;
use crate::path::{Completion, Flush, Path, Paths, Prepared, RemotePlace, Transport};
use crate::trace::{Awaited, Cause};
use parking_lot::{Mutex, MutexGuard};
use pending::Pending;
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

fn is_get(kind: TransferKind) -> Result<bool> {
    match kind {
        TransferKind::Put => Ok(false),
        TransferKind::Get => Ok(true),
        TransferKind::Accumulate(_) => fail!(Internal, "windows take no accumulates"),
    }
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
    fn complete_locally(&self, place: &RemotePlace, is_get: bool) -> Result<()> {
        match is_get {
            true => self.pending[place.world].lock().flush(),
            false => window(&place.arena).flush_local(place.rank),
        }
    }
}

impl Transport for Rma {
    fn path(&self) -> Path {
        Path::Rma
    }

    unsafe fn start(
        &self,
        paths: &Paths,
        transfer: &Transfer<'_>,
        place: &RemotePlace,
        completion: &Completion<'_>,
    ) -> Result<()> {
        let &Transfer { kind, local, shape, .. } = transfer;
        let flushes = completion.is_awaited() || !requests_report(shape);
        let is_get = is_get(kind)?;
        let mut requests = Vec::new();
        {
            let (lo, hi) = shape.extent(Side::Remote);
            let start = place.address;
            let bytes = start.wrapping_add_signed(lo)..start.wrapping_add_signed(hi);
            let region = (&place.arena, place.rank);
            let _pending = self.begin(paths, place.world, region, is_get, bytes)?;
            shape.split(MAX_PART, 1, &mut |l, r, chunk| {
                let transfer = WindowTransfer {
                    is_get,
                    origin: local.wrapping_offset(l) as usize,
                    origin_shape: self.types.get(chunk, Side::Local)?,
                    target: place.rank,
                    offset: place.offset.wrapping_add_signed(r),
                    target_shape: self.types.get(chunk, Side::Remote)?,
                };
                // SAFETY: the part lies in both extents, which the caller guarantees.
                let started = unsafe { window(&place.arena).start(&transfer, !flushes) };
                requests.extend(started?);
                Ok(())
            })?;
        }
        if flushes {
            return self.complete_locally(place, is_get);
        }
        let counter = completion.counter();
        for request in requests {
            counter.begin();
            let action = Action::Rma(counter.clone());
            paths.two_sided()?.started(request, action)?;
        }
        Ok(())
    }

    fn takes_vectors(&self) -> bool {
        true
    }

    unsafe fn vector(
        &self,
        paths: &Paths,
        kind: TransferKind,
        place: &RemotePlace,
        vector: Vector<'_>,
    ) -> Result<bool> {
        // SAFETY: the caller upholds the same requirements.
        unsafe { self.transfer_vector(paths, is_get(kind)?, place, vector) }
    }

    fn begin_flush(&self, paths: &Paths, target: usize, _: Flush) -> Result<Option<u64>> {
        let mut pending = self.pending[target].lock();
        let begun = paths.observer().begin();
        pending.flush()?;
        paths.observer().waited(begun, Awaited::of(Cause::Fence, target), None);
        paths.peers().mark_complete(target, Path::Rma.pending_bit());
        Ok(None)
    }

    fn end_flush(&self, _: &Paths, _: usize, _: u64) -> Result<()> {
        Ok(())
    }

    fn prepare(&self, arena: Arc<Arena>, rank: usize, pairs: Pairs) -> Result<Box<dyn Prepared>> {
        Ok(Box::new(prepared::Puts::new(&self.types, arena, rank, pairs)?))
    }
}

/// Returns whether requests along `shape` complete no earlier than the operation. MPICH 4.0
/// completes requests with a derived datatype too early (tests/mpi-bugs/rget_derived.c): the bytes
/// of a get have not arrived, and the source of a put is still read. A flush is correct.
fn requests_report(shape: &Shape) -> bool {
    let plain = shape.is_contiguous_on(Side::Local) && shape.is_contiguous_on(Side::Remote);
    plain || Flavour::built() != Flavour::Mpich
}
