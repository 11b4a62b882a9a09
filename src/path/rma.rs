//! MPI's one-sided calls on a slab's window.
//!
//! The window is locked for its whole life, so an operation is one MPI call and
//! a flush completes it. Strided transfers use derived datatypes on both sides,
//! kept in a cache; long ones are cut into pieces that MPI's counts can hold.
//!
//! **Order.** MPI orders neither puts nor gets; a list of unfinished operations
//! and the addresses that they touch ([`crate::peer::RmaPending`]) decides when an
//! operation must wait for the ones before it. Accumulates of one kind are
//! ordered by MPI.

use super::Transport;
use super::kernel::{self, Scale};
use super::two_sided::{Action, TwoSided};
use crate::error::Result;
use crate::layout::{Shape, Side};
use crate::memory::slab::Slab;
use crate::mpi::{self, Datatype, DerivedType, Op, Transfer};
use crate::path::ops::Rmw;
use crate::peer::{CompletionCounter, PENDING_RMA, RmaKind};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Longest piece of one MPI call, in bytes.
const LONGEST: usize = 1 << 30;
/// Datatypes kept.
const CACHED: usize = 256;

#[derive(Debug, PartialEq, Eq, Hash)]
struct TypeKey {
    base: Datatype,
    block: usize,
    dims: Vec<(usize, isize)>,
}

/// Derived datatypes by shape.
#[derive(Debug, Default)]
pub(crate) struct TypeCache {
    types: Mutex<HashMap<TypeKey, Arc<DerivedType>>>,
}

impl TypeCache {
    /// Frees the datatypes, while MPI still runs.
    pub(crate) fn clear(&self) {
        self.types.lock().clear();
    }

    fn get(&self, base: Datatype, shape: &Shape, side: Side) -> Result<Arc<DerivedType>> {
        let dims: Vec<(usize, isize)> = shape
            .dims()
            .iter()
            .map(|d| (d.n, if side == Side::Local { d.local } else { d.remote }))
            .collect();
        let key = TypeKey { base, block: shape.block(), dims };
        if let Some(found) = self.types.lock().get(&key) {
            return Ok(found.clone());
        }
        let (counts, strides): (Vec<usize>, Vec<isize>) = key.dims.iter().copied().unzip();
        let made =
            Arc::new(DerivedType::strided(base, key.block / base.size(), &counts, &strides)?);
        let mut types = self.types.lock();
        if types.len() >= CACHED {
            types.clear();
        }
        types.insert(key, made.clone());
        Ok(made)
    }
}

/// A piece of memory in a target's slice.
#[derive(Debug, Clone)]
pub(crate) struct RmaTarget {
    /// The slab.
    pub slab: Arc<Slab>,
    /// World rank of the owner.
    pub world: usize,
    /// Its rank in the slab's group.
    pub rank: usize,
    /// Offset in its slice.
    pub offset: usize,
}

/// The type that MPI is given. The scale is applied before, and complex numbers
/// are then added part by part: so their parts travel as what they are, which
/// Open MPI 4.1 gets right where it loses accumulates of complex types.
fn datatype(scale: Scale) -> Datatype {
    match scale {
        Scale::Int(_) => Datatype::Int,
        Scale::Long(_) => Datatype::Long,
        Scale::Float(_) | Scale::FloatComplex(_) => Datatype::Float,
        Scale::Double(_) | Scale::DoubleComplex(_) => Datatype::Double,
    }
}

fn window(target: &RmaTarget) -> &mpi::Window {
    target.slab.window().expect("the path was chosen because there is a window")
}

fn sides<'a>(
    base: Datatype,
    shape: &Shape,
    local: &'a Option<Arc<DerivedType>>,
    remote: &'a Option<Arc<DerivedType>>,
) -> (mpi::Shape<'a>, mpi::Shape<'a>) {
    let row = mpi::Shape::Row(shape.bytes() / base.size(), base);
    let pick = |t: &'a Option<Arc<DerivedType>>| match t {
        Some(t) => mpi::Shape::Derived(t),
        None => row,
    };
    (pick(local), pick(remote))
}

/// Whether the operation returns only when it is complete on this side, or
/// leaves that to a counter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Completion<'a> {
    /// A put's source may be reused, a get's bytes are here, on return.
    Local,
    /// As above when the counter is done.
    Counted(&'a Arc<CompletionCounter>),
}

/// Whether the requests of operations along `shape` complete when the operation
/// has. MPICH 4.0 completes those with a derived datatype too early
/// (tests/mpi-bugs/rget_derived.c), so that a
/// get's bytes are not there and a put's source is still read; a flush is right.
fn requests_tell(shape: &Shape) -> bool {
    let plain = shape.is_contiguous_on(Side::Local) && shape.is_contiguous_on(Side::Remote);
    plain || mpi::Flavour::built() != mpi::Flavour::Mpich
}

/// Issues one operation of `kind` along `shape`.
///
/// # Safety
/// `local` must be valid for the shape's local extent until the operation has
/// completed locally; the remote extent must lie in the slice.
#[expect(clippy::too_many_arguments, reason = "one operation, described whole")]
unsafe fn issue(
    transport: &Transport,
    target: &RmaTarget,
    local: *mut u8,
    shape: &Shape,
    kind: RmaKind,
    base: Datatype,
    completion: Completion<'_>,
    buffer: &mut Option<Vec<u8>>,
) -> Result<()> {
    let peer = transport.peer(target.world);
    let completion = match completion {
        Completion::Counted(_) if !requests_tell(shape) => Completion::Local,
        other => other,
    };
    let counted = matches!(completion, Completion::Counted(_));
    let mut requests = Vec::new();
    {
        let mut pending = peer.rma.lock();
        let (lo, hi) = shape.extent(Side::Remote);
        let slice = target.slab.base(target.rank);
        let start = slice.wrapping_add(target.offset);
        let (from, to) = (start.wrapping_add_signed(lo), start.wrapping_add_signed(hi));
        if pending.conflicts(kind, from, to) {
            pending.flush()?;
        }
        pending.note(&target.slab, target.rank, kind, from, to);
        transport.peers().mark_pending(target.world, PENDING_RMA);
        shape.split(LONGEST, base.size(), &mut |l, r, piece| {
            let of = |side| -> Result<Option<Arc<DerivedType>>> {
                if piece.is_contiguous_on(side) {
                    return Ok(None);
                }
                transport.types.get(base, piece, side).map(Some)
            };
            let (lt, rt) = (of(Side::Local)?, of(Side::Remote)?);
            let (origin_shape, target_shape) = sides(base, piece, &lt, &rt);
            let t = Transfer {
                origin: local.wrapping_offset(l),
                origin_shape,
                target: target.rank,
                offset: target.offset.wrapping_add_signed(r),
                target_shape,
            };
            // SAFETY: passed on from the caller.
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
            // A flush of a get is also a flush of what came before it.
            peer.rma.lock().flush()
        }
        Completion::Local => window(target).flush_local(target.rank),
        Completion::Counted(counter) => {
            let two_sided: &TwoSided = transport.two_sided()?;
            // The buffer of a scaled accumulate stays until its last piece is done,
            // whichever that is.
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

/// Puts along a shape.
///
/// # Safety
/// See the module: `local` valid until complete, remote extent in the slice.
pub(crate) unsafe fn put(
    transport: &Transport,
    target: &RmaTarget,
    local: *const u8,
    shape: &Shape,
    completion: Completion<'_>,
) -> Result<()> {
    // SAFETY: passed on; a put only reads its origin.
    unsafe {
        issue(
            transport,
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

/// Gets along a shape.
///
/// # Safety
/// See the module: `local` valid until complete, remote extent in the slice.
pub(crate) unsafe fn get(
    transport: &Transport,
    target: &RmaTarget,
    local: *mut u8,
    shape: &Shape,
    completion: Completion<'_>,
) -> Result<()> {
    // SAFETY: passed on.
    unsafe {
        issue(transport, target, local, shape, RmaKind::Get, Datatype::Byte, completion, &mut None)
    }
}

/// Accumulates along a shape.
///
/// # Safety
/// See the module: `local` valid until complete, remote extent in the slice.
pub(crate) unsafe fn accumulate(
    transport: &Transport,
    target: &RmaTarget,
    local: *const u8,
    shape: &Shape,
    scale: Scale,
    completion: Completion<'_>,
) -> Result<()> {
    let base = datatype(scale);
    if scale.is_one() {
        // SAFETY: passed on; an accumulate only reads its origin.
        return unsafe {
            issue(
                transport,
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
    // MPI adds but does not scale: scale into a packed copy first.
    let packed = shape.packed_local();
    let bytes = shape.bytes();
    let mut buffer: Vec<u8> = vec![0; bytes];
    // SAFETY: the buffer has the shape's bytes; the caller vouches for `local`.
    unsafe {
        let to = buffer.as_mut_ptr();
        kernel::copy(local, to, &shape.packed_remote(), true);
        kernel::scaled(to, to, bytes, scale);
        let from = buffer.as_mut_ptr();
        let mut kept = Some(buffer);
        issue(transport, target, from, &packed, RmaKind::Accumulate, base, completion, &mut kept)
    }
}

/// Combines a number and returns what was there. Complete on return.
pub(crate) fn rmw(transport: &Transport, target: &RmaTarget, op: Rmw) -> Result<i64> {
    let peer = transport.peer(target.world);
    let mut pending = peer.rma.lock();
    let at = target.slab.base(target.rank) + target.offset;
    if pending.conflicts(RmaKind::Put, at, at + op.size()) {
        pending.flush()?;
    }
    drop(pending);
    let fetch = |value: *const u8, result: *mut u8, t: Datatype, o: Op| {
        // SAFETY: both pointers are to locals of the element's type, which
        // outlive the call, because it flushes.
        unsafe { window(target).fetch_and_op(value, result, t, target.rank, target.offset, o) }
    };
    let (mut int, mut long) = (0i32, 0i64);
    match op {
        Rmw::AddInt(v) => {
            fetch((&raw const v).cast(), (&raw mut int).cast(), Datatype::Int, Op::Sum)?;
            Ok(i64::from(int))
        }
        Rmw::SwapInt(v) => {
            fetch((&raw const v).cast(), (&raw mut int).cast(), Datatype::Int, Op::Replace)?;
            Ok(i64::from(int))
        }
        Rmw::AddLong(v) => {
            fetch((&raw const v).cast(), (&raw mut long).cast(), Datatype::Long, Op::Sum)?;
            Ok(long)
        }
        Rmw::SwapLong(v) => {
            fetch((&raw const v).cast(), (&raw mut long).cast(), Datatype::Long, Op::Replace)?;
            Ok(long)
        }
    }
}
