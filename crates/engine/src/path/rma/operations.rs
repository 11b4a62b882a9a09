//! The operations of the transport through windows.

use super::{MAX_PART, Rma, prepared, window};
use crate::memory::arena::Arena;
use crate::mpi::{Flavour, WindowTransfer};
use crate::path::ops::{Transfer, TransferKind};
use crate::path::two_sided::Action;
use crate::path::{Completion, Flush, Path, Paths, Prepared, RemotePlace, Transport};
use portolan_base::error::{Result, fail};
use portolan_base::layout::pairs::Pairs;
use portolan_base::layout::{Shape, Side, Vector};
use portolan_base::trace::{Awaited, Cause};
use std::sync::Arc;

fn is_get(kind: TransferKind) -> Result<bool> {
    match kind {
        TransferKind::Put => Ok(false),
        TransferKind::Get => Ok(true),
        TransferKind::Accumulate(_) => fail!(Internal, "windows take no accumulates"),
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
            return self.complete_locally(place.world, (&place.arena, place.rank), is_get);
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
