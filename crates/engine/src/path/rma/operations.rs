//! The operations of the transport through windows.

use super::prepared::Puts;
use super::{Rma, TypeCache, delegate, vector};
use crate::core::peer::{CompletionCounter, RmaKind};
use crate::error::Result;
use crate::layout::pairs::Pairs;
use crate::layout::{Shape, Side, Vector};
use crate::memory::arena::Arena;
use crate::mpi::{self, Datatype, DerivedType, Flavour, Op, WindowTransfer};
use crate::path::kernel::{self, Scale};
use crate::path::ops::{Combine, Rmw, TransferKind};
use crate::path::two_sided::{Action, TwoSided};
use crate::path::{Capabilities, Flush, Path, Paths, Prepared, RemotePlace, Transport};
use crate::trace::{Awaited, Cause};
use std::sync::Arc;

/// Longest part of one MPI call, in bytes.
const MAX_PART: usize = 1 << 30;
impl Transport for Rma {
    fn path(&self) -> Path {
        Path::Rma
    }

    fn capabilities(&self) -> Capabilities {
        // With Open MPI, some need another rank ([`delegate`]).
        let both = Capabilities::TRANSFER | Capabilities::VECTOR;
        match mpi::Flavour::built() {
            mpi::Flavour::OpenMpi => both,
            _ => both | Capabilities::COMPARE_AND_SWAP,
        }
    }

    unsafe fn start(
        &self,
        paths: &Paths,
        kind: TransferKind,
        place: &RemotePlace,
        local: *mut u8,
        shape: &Shape,
        counter: Option<&Arc<CompletionCounter>>,
    ) -> Result<Option<Arc<CompletionCounter>>> {
        let completion = match counter {
            Some(counter) => Completion::Counted(counter),
            None => Completion::Local,
        };
        let types = &self.types;
        // SAFETY: the caller guarantees the remote extent, and `local` until local completion.
        unsafe {
            match kind {
                TransferKind::Put => put(types, paths, place, local, shape, completion),
                TransferKind::Get => get(types, paths, place, local, shape, completion),
                TransferKind::Accumulate(scale) => {
                    accumulate(types, paths, place, local, shape, scale, completion)
                }
            }
        }?;
        Ok(None)
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
        Ok(Box::new(Puts::new(arena, rank, pairs)?))
    }
}

/// Complex numbers are passed as real ones, because Open MPI 4.1 loses accumulates of complex
/// types. The scale is applied before.
pub(super) fn datatype(scale: Scale) -> Datatype {
    match scale {
        Scale::Bool(_) | Scale::Byte(_) | Scale::Short(_) => {
            unreachable!("`Scale::is_added_by_mpi` is false")
        }
        Scale::Int(_) => Datatype::Int,
        Scale::Long(_) => Datatype::Long,
        Scale::Float(_) | Scale::FloatComplex(_) => Datatype::Float,
        Scale::Double(_) | Scale::DoubleComplex(_) => Datatype::Double,
    }
}

pub(super) fn window(target: &RemotePlace) -> &mpi::Window {
    target.arena.window().expect("the path was chosen because there is a window")
}

fn sides<'a>(
    base: Datatype,
    shape: &Shape,
    local: &'a Option<Arc<DerivedType>>,
    remote: &'a Option<Arc<DerivedType>>,
) -> (mpi::WindowShape<'a>, mpi::WindowShape<'a>) {
    let row = mpi::WindowShape::Row(shape.bytes() / base.size(), base);
    let pick = |t: &'a Option<Arc<DerivedType>>| match t {
        Some(t) => mpi::WindowShape::Derived(t),
        None => row,
    };
    (pick(local), pick(remote))
}

#[derive(Debug, Clone, Copy)]
enum Completion<'a> {
    /// On return, the source of a put is reusable and the bytes of a get have arrived.
    Local,
    /// Complete locally when the counter is done.
    Counted(&'a Arc<CompletionCounter>),
}

/// Returns whether requests along `shape` complete no earlier than the operation. MPICH 4.0
/// completes requests with a derived datatype too early (tests/mpi-bugs/rget_derived.c): the bytes
/// of a get have not arrived, and the source of a put is still read. A flush is correct.
fn requests_report(shape: &Shape) -> bool {
    let plain = shape.is_contiguous_on(Side::Local) && shape.is_contiguous_on(Side::Remote);
    plain || mpi::Flavour::built() != mpi::Flavour::Mpich
}

/// # Safety
/// `local` must be valid for the local extent until the operation is complete locally. The remote
/// extent must lie in the target's region.
#[expect(clippy::too_many_arguments, reason = "one operation, described whole")]
unsafe fn issue(
    types: &TypeCache,
    paths: &Paths,
    target: &RemotePlace,
    local: *mut u8,
    shape: &Shape,
    kind: RmaKind,
    base: Datatype,
    completion: Completion<'_>,
    buffer: &mut Option<Vec<u8>>,
) -> Result<()> {
    let peer = paths.peer(target.world);
    let completion = match completion {
        Completion::Counted(_) if !requests_report(shape) => Completion::Local,
        other => other,
    };
    let counted = matches!(completion, Completion::Counted(_));
    let mut requests = Vec::new();
    {
        let mut pending = peer.rma.lock();
        let (lo, hi) = shape.extent(Side::Remote);
        let start = target.address;
        let (from, to) = (start.wrapping_add_signed(lo), start.wrapping_add_signed(hi));
        if pending.conflicts(kind, from, to) {
            pending.flush()?;
        }
        pending.note(&target.arena, target.rank, kind, from, to);
        paths.peers().mark_pending(target.world, Path::Rma.pending_bit());
        shape.split(MAX_PART, base.size(), &mut |l, r, chunk| {
            let of = |side| -> Result<Option<Arc<DerivedType>>> {
                if chunk.is_contiguous_on(side) {
                    return Ok(None);
                }
                types.get(base, chunk, side).map(Some)
            };
            let (lt, rt) = (of(Side::Local)?, of(Side::Remote)?);
            let (origin_shape, target_shape) = sides(base, chunk, &lt, &rt);
            let t = WindowTransfer {
                origin: local.wrapping_offset(l),
                origin_shape,
                target: target.rank,
                offset: target.offset.wrapping_add_signed(r),
                target_shape,
            };
            // SAFETY: the part lies in both extents, which the caller guarantees.
            let request = unsafe {
                match kind {
                    RmaKind::Put => window(target).put(&t, counted)?,
                    RmaKind::Get => window(target).get(&t, counted)?,
                    RmaKind::Accumulate => window(target).accumulate(&t, counted)?,
                }
            };
            requests.extend(request);
            Ok(())
        })?;
    }
    match completion {
        Completion::Local if kind == RmaKind::Get => {
            // This flush also completes all earlier operations to the target.
            peer.rma.lock().flush()
        }
        Completion::Local => window(target).flush_local(target.rank),
        Completion::Counted(counter) => {
            let two_sided: &TwoSided = paths.two_sided()?;
            // All requests keep the buffer of a scaled accumulate: any may complete last.
            let keep = buffer.take().map(Arc::new);
            for request in requests {
                counter.begin();
                let action = Action::Rma { counter: counter.clone(), _buffer: keep.clone() };
                two_sided.started(request, action)?;
            }
            Ok(())
        }
    }
}

/// # Safety
/// See [`issue`]: the local extent is read.
unsafe fn put(
    types: &TypeCache,
    paths: &Paths,
    target: &RemotePlace,
    local: *const u8,
    shape: &Shape,
    completion: Completion<'_>,
) -> Result<()> {
    // SAFETY: the caller guarantees both extents; a put only reads its origin.
    unsafe {
        issue(
            types,
            paths,
            target,
            local.cast_mut(),
            shape,
            RmaKind::Put,
            Datatype::Byte,
            completion,
            &mut None,
        )
    }
}

/// # Safety
/// See [`issue`]: the local extent is written, and must not be read until completion.
unsafe fn get(
    types: &TypeCache,
    paths: &Paths,
    target: &RemotePlace,
    local: *mut u8,
    shape: &Shape,
    completion: Completion<'_>,
) -> Result<()> {
    // SAFETY: the caller guarantees both extents.
    unsafe {
        issue(
            types,
            paths,
            target,
            local,
            shape,
            RmaKind::Get,
            Datatype::Byte,
            completion,
            &mut None,
        )
    }
}

/// # Safety
/// See [`issue`]: the local extent is read.
unsafe fn accumulate(
    types: &TypeCache,
    paths: &Paths,
    target: &RemotePlace,
    local: *const u8,
    shape: &Shape,
    scale: Scale,
    completion: Completion<'_>,
) -> Result<()> {
    let base = datatype(scale);
    if scale.is_one() {
        // SAFETY: the caller guarantees both extents; an accumulate only reads its origin.
        return unsafe {
            issue(
                types,
                paths,
                target,
                local.cast_mut(),
                shape,
                RmaKind::Accumulate,
                base,
                completion,
                &mut None,
            )
        };
    }
    // MPI does not scale, so the scaled elements go into a packed copy first.
    let packed = shape.packed_local();
    let bytes = shape.bytes();
    let mut buffer: Vec<u8> = vec![0; bytes];
    // SAFETY: the buffer has the bytes of the shape and is kept until completion. The caller
    // guarantees both extents.
    unsafe {
        let to = buffer.as_mut_ptr();
        kernel::pack(local, to, shape);
        kernel::scaled(to, to, bytes, scale);
        let from = buffer.as_mut_ptr();
        let mut kept = Some(buffer);
        issue(types, paths, target, from, &packed, RmaKind::Accumulate, base, completion, &mut kept)
    }
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
    let place = (target.rank, target.offset);
    // SAFETY: the pointers refer to locals of the element's type, which outlive the calls, because
    // these flush. The caller guarantees the number.
    unsafe {
        match swap {
            true => window(target).compare_and_swap(value, compared, result, datatype, place)?,
            false => window(target).fetch_and_op(value, result, datatype, place, mpi_op)?,
        }
    }
    Ok(if operand.is_wide() { long } else { int.into() })
}
