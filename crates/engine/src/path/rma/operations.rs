//! The operations of the transport through windows.

use super::prepared::Puts;
use super::{MAX_PART, Rma, begin, call, delegate, kind_and_base, vector, window};
use crate::core::peer::RmaKind;
use crate::error::Result;
use crate::layout::pairs::Pairs;
use crate::layout::{Shape, Side, Vector};
use crate::memory::arena::Arena;
use crate::mpi::{Datatype, Flavour, Op, WindowTransfer};
use crate::path::kernel;
use crate::path::ops::{Combine, Rmw, Transfer, TransferKind};
use crate::path::two_sided::Action;
use crate::path::{Capabilities, Completion, Flush, Path, Paths, Prepared, RemotePlace, Transport};
use crate::trace::{Awaited, Cause};
use std::sync::Arc;

impl Transport for Rma {
    fn path(&self) -> Path {
        Path::Rma
    }

    fn capabilities(&self) -> Capabilities {
        // With Open MPI, some need another rank ([`delegate`]).
        let both = Capabilities::TRANSFER | Capabilities::VECTOR;
        match Flavour::built() {
            Flavour::OpenMpi => both,
            _ => both | Capabilities::COMPARE_AND_SWAP,
        }
    }

    unsafe fn start(
        &self,
        paths: &Paths,
        transfer: &Transfer<'_>,
        place: &RemotePlace,
        completion: &Completion<'_>,
    ) -> Result<()> {
        let packed;
        let &Transfer { kind, mut local, mut shape, .. } = transfer;
        let mut copy = Vec::new();
        if let TransferKind::Accumulate(scale) = kind
            && !scale.is_one()
        {
            // MPI does not scale, so the scaled elements go into a packed copy first.
            copy.resize(shape.bytes(), 0u8);
            let to = copy.as_mut_ptr();
            // SAFETY: the copy has the bytes of the shape. The caller guarantees the local extent.
            unsafe {
                kernel::pack(local, to, shape);
                kernel::scaled(to, to, shape.bytes(), scale);
            }
            packed = shape.packed_local();
            (local, shape) = (to, &packed);
        }
        let flushes = completion.is_awaited() || !requests_report(shape);
        let (kind, base) = kind_and_base(kind);
        let mut requests = Vec::new();
        {
            let (lo, hi) = shape.extent(Side::Remote);
            let start = place.address;
            let range = (start.wrapping_add_signed(lo), start.wrapping_add_signed(hi));
            let _pending = begin(paths, place.world, (&place.arena, place.rank), kind, range)?;
            shape.split(MAX_PART, base.size(), &mut |l, r, chunk| {
                let transfer = WindowTransfer {
                    origin: local.wrapping_offset(l),
                    origin_shape: &self.types.get(base, chunk, Side::Local)?,
                    target: place.rank,
                    offset: place.offset.wrapping_add_signed(r),
                    target_shape: &self.types.get(base, chunk, Side::Remote)?,
                };
                // SAFETY: the part lies in both extents, which the caller guarantees, and a copy
                // stays until the requests are complete, or the operation below.
                let started = unsafe { call(window(&place.arena), kind, &transfer, !flushes) };
                requests.extend(started?);
                Ok(())
            })?;
        }
        if flushes {
            return match kind {
                // This flush also completes all earlier operations to the target.
                RmaKind::Get => paths.peer(place.world).rma.lock().flush(),
                _ => window(&place.arena).flush_local(place.rank),
            };
        }
        // All requests keep the copy of a scaled accumulate: any may complete last.
        let keep = Arc::new(copy);
        let counter = completion.counter();
        for request in requests {
            counter.begin();
            let action = Action::Rma { counter: counter.clone(), _buffer: keep.clone() };
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

    fn rmw(&self, paths: &Paths, place: &RemotePlace, op: Rmw) -> Result<i64> {
        rmw(paths, place, op)
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

fn rmw(paths: &Paths, target: &RemotePlace, op: Rmw) -> Result<i64> {
    let peer = paths.peer(target.world);
    let mut pending = peer.rma.lock();
    let at = target.address;
    if pending.conflicts(RmaKind::Put, at, at + op.size()) {
        pending.flush()?;
    }
    drop(pending);
    if is_computed_here(paths, target, op) {
        return replace(paths, target, op);
    }
    if op.combine() == Combine::CompareSwap && delegate::is_needed(paths, target) {
        return delegate::ask(paths, target, op);
    }
    // SAFETY: by the contract of the trait, a number of this size lies at the place.
    unsafe { apply(target, op) }
}

/// Returns whether the MPI computes a wrong result. MPICH 4.0 compares unsigned numbers as signed
/// (tests/mpi-bugs/unsigned_max.c). Open MPI 5 combines a number of 64 bits at another rank with
/// itself instead of the operand (tests/mpi-bugs/bitwise.c).
fn is_computed_here(paths: &Paths, target: &RemotePlace, op: Rmw) -> bool {
    match op.combine() {
        Combine::Min | Combine::Max => !op.operand().is_signed(),
        Combine::And | Combine::Or | Combine::Xor => {
            Flavour::built() == Flavour::OpenMpi
                && op.operand().is_wide()
                && target.world != paths.rank()
        }
        _ => false,
    }
}

/// Reads the number, computes the result here, and replaces the number if it is still the same.
#[cold]
fn replace(paths: &Paths, target: &RemotePlace, op: Rmw) -> Result<i64> {
    let mut old = rmw(paths, target, op.turned(Combine::Load, 0, 0))?;
    loop {
        let new = op.apply(old);
        if new == old {
            return Ok(old);
        }
        let found = rmw(paths, target, op.turned(Combine::CompareSwap, old, new))?;
        if found == old {
            return Ok(old);
        }
        old = found;
    }
}

/// # Safety
/// The number must lie in the target's region.
pub(super) unsafe fn apply(target: &RemotePlace, op: Rmw) -> Result<i64> {
    let operand = op.operand();
    let datatype = if operand.is_wide() { Datatype::Long } else { Datatype::Int };
    let mpi_op = match op.combine() {
        Combine::Load => Op::NoOp,
        Combine::Swap | Combine::CompareSwap => Op::Replace,
        Combine::Add => Op::Sum,
        Combine::And => Op::And,
        Combine::Or => Op::Or,
        Combine::Xor => Op::Xor,
        Combine::Min => Op::Min,
        Combine::Max => Op::Max,
    };
    let swap = op.combine() == Combine::CompareSwap;
    let (wide, expected) = (operand.value(), op.expected());
    let (narrow, narrow_expected) = (wide as i32, expected as i32);
    let (mut long, mut int) = (0i64, 0i32);
    let [value, compared] = match operand.is_wide() {
        true => [&raw const wide, &raw const expected].map(|p| p.cast::<u8>()),
        false => [&raw const narrow, &raw const narrow_expected].map(|p| p.cast::<u8>()),
    };
    let result = if operand.is_wide() { (&raw mut long).cast() } else { (&raw mut int).cast() };
    let (window, place) = (window(&target.arena), (target.rank, target.offset));
    // SAFETY: the pointers refer to locals of the element's type, which outlive the calls, because
    // these flush. The caller guarantees the number.
    unsafe {
        match swap {
            true => window.compare_and_swap(value, compared, result, datatype, place)?,
            false => window.fetch_and_op(value, result, datatype, place, mpi_op)?,
        }
    }
    Ok(if operand.is_wide() { long } else { int.into() })
}
