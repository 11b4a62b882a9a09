//! The operations of the transport through windows.

use super::prepared::Puts;
use super::{MAX_PART, Rma, begin, call, direction_of, vector, window};
use crate::error::Result;
use crate::layout::pairs::Pairs;
use crate::layout::{Shape, Side, Vector};
use crate::memory::arena::Arena;
use crate::memory::runs::Direction;
use crate::mpi::{Flavour, WindowTransfer};
use crate::path::ops::{Transfer, TransferKind};
use crate::path::two_sided::Action;
use crate::path::{Capabilities, Completion, Flush, Path, Paths, Prepared, RemotePlace, Transport};
use crate::trace::{Awaited, Cause};
use std::sync::Arc;

impl Transport for Rma {
    fn path(&self) -> Path {
        Path::Rma
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::TRANSFER | Capabilities::VECTOR
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
        let direction = direction_of(kind)?;
        let mut requests = Vec::new();
        {
            let (lo, hi) = shape.extent(Side::Remote);
            let start = place.address;
            let range = (start.wrapping_add_signed(lo), start.wrapping_add_signed(hi));
            let _pending = begin(paths, place.world, (&place.arena, place.rank), direction, range)?;
            shape.split(MAX_PART, 1, &mut |l, r, chunk| {
                let transfer = WindowTransfer {
                    origin: local.wrapping_offset(l),
                    origin_shape: &self.types.get(chunk, Side::Local)?,
                    target: place.rank,
                    offset: place.offset.wrapping_add_signed(r),
                    target_shape: &self.types.get(chunk, Side::Remote)?,
                };
                // SAFETY: the part lies in both extents, which the caller guarantees.
                let started = unsafe { call(window(&place.arena), direction, &transfer, !flushes) };
                requests.extend(started?);
                Ok(())
            })?;
        }
        if flushes {
            return match direction {
                // This flush also completes all earlier operations to the target.
                Direction::Get => paths.peer(place.world).rma.lock().flush(),
                _ => window(&place.arena).flush_local(place.rank),
            };
        }
        let counter = completion.counter();
        for request in requests {
            counter.begin();
            let action = Action::Rma(counter.clone());
            paths.two_sided()?.started(request, action)?;
        }
        Ok(())
    }

    unsafe fn vector(
        &self,
        paths: &Paths,
        kind: TransferKind,
        place: &RemotePlace,
        vector: Vector<'_>,
    ) -> Result<bool> {
        // SAFETY: the caller upholds the same requirements.
        unsafe { vector::transfer(paths, kind, place, vector) }
    }

    fn begin_flush(&self, paths: &Paths, target: usize, _: Flush) -> Result<Option<u64>> {
        let mut pending = paths.peer(target).rma.lock();
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
        Ok(Box::new(Puts::new(&self.types, arena, rank, pairs)?))
    }
}

/// Returns whether requests along `shape` complete no earlier than the operation. MPICH 4.0
/// completes requests with a derived datatype too early (tests/mpi-bugs/rget_derived.c): the bytes
/// of a get have not arrived, and the source of a put is still read. A flush is correct.
fn requests_report(shape: &Shape) -> bool {
    let plain = shape.is_contiguous_on(Side::Local) && shape.is_contiguous_on(Side::Remote);
    plain || Flavour::built() != Flavour::Mpich
}
