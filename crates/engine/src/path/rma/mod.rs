//! One-sided MPI operations on the window of an arena.
//!
//! The window stays locked, so an operation is one MPI call, and a flush completes it. Strided
//! transfers use cached derived datatypes. Long transfers are split to fit MPI's counts.
//!
//! **Order.** MPI orders accumulates of one kind, but neither puts nor gets. The list of unfinished
//! operations ([`crate::core::peer::RmaPending`]) decides when an operation waits for earlier ones.

pub(crate) mod delegate;
mod operations;
mod prepared;
mod vector;

use crate::core::Core;
use crate::core::peer::{RmaKind, RmaPending};
use crate::error::Result;
use crate::layout::{Shape, Side};
use crate::memory::arena::Arena;
use crate::mpi::{Datatype, DerivedType, Request, Window, WindowShape, WindowTransfer};
use crate::path::Path;
use crate::path::kernel::Scale;
use crate::path::ops::TransferKind;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;

/// Longest part of one MPI call, in bytes.
const MAX_PART: usize = 1 << 30;

#[derive(Debug, Default)]
pub struct Rma {
    types: TypeCache,
}

impl Rma {
    pub fn forget_types(&self) {
        self.types.clear();
    }
}

fn window(arena: &Arena) -> &Window {
    arena.window().expect("the path was chosen because there is a window")
}

/// Returns the kind of a transfer, and the type of its elements.
fn kind_and_base(kind: TransferKind) -> (RmaKind, Datatype) {
    match kind {
        TransferKind::Put => (RmaKind::Put, Datatype::Byte),
        TransferKind::Get => (RmaKind::Get, Datatype::Byte),
        TransferKind::Accumulate(scale) => (RmaKind::Accumulate, datatype(scale)),
    }
}

/// Complex numbers are passed as real ones, because Open MPI 4.1 loses accumulates of complex
/// types. The scale is applied before.
fn datatype(scale: Scale) -> Datatype {
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

/// Completes the operations that one on the bytes `from..to` of `target` must not overtake, and adds
/// it to the list of unfinished ones, whose lock is returned. `rank` is the rank in the group of the
/// arena.
fn begin<'a>(
    core: &'a Core,
    target: usize,
    (arena, rank): (&Arc<Arena>, usize),
    kind: RmaKind,
    (from, to): (usize, usize),
) -> Result<MutexGuard<'a, RmaPending>> {
    let mut pending = core.peer(target).rma.lock();
    if pending.conflicts(kind, from, to) {
        pending.flush()?;
    }
    pending.note(arena, rank, kind, from, to);
    core.peers().mark_pending(target, Path::Rma.pending_bit());
    Ok(pending)
}

/// Starts one MPI call. With `request`, returns a request that can be tested.
///
/// # Safety
/// See [`Window::put`] and [`Window::get`].
unsafe fn call(
    window: &Window,
    kind: RmaKind,
    transfer: &WindowTransfer<'_>,
    request: bool,
) -> Result<Option<Request>> {
    // SAFETY: the caller guarantees the memory on both sides.
    unsafe {
        match kind {
            RmaKind::Put => window.put(transfer, request),
            RmaKind::Get => window.get(transfer, request),
            RmaKind::Accumulate => window.accumulate(transfer, request),
        }
    }
}

const CACHED: usize = 256;

#[derive(Debug, PartialEq, Eq, Hash)]
struct TypeKey {
    base: Datatype,
    block: usize,
    dims: Vec<(usize, isize)>,
}

#[derive(Debug, Default)]
struct TypeCache {
    types: Mutex<HashMap<TypeKey, Arc<DerivedType>>>,
}

impl TypeCache {
    fn clear(&self) {
        self.types.lock().clear();
    }

    /// Returns how the elements of a shape lie on a side.
    fn get(&self, base: Datatype, shape: &Shape, side: Side) -> Result<WindowShape> {
        if shape.is_contiguous_on(side) {
            return Ok(WindowShape::Row(shape.bytes() / base.size(), base));
        }
        let dims: Vec<(usize, isize)> = shape
            .dims()
            .iter()
            .map(|d| (d.n, if side == Side::Local { d.local } else { d.remote }))
            .collect();
        let key = TypeKey { base, block: shape.block(), dims };
        if let Some(found) = self.types.lock().get(&key) {
            return Ok(WindowShape::Derived(found.clone()));
        }
        let (counts, strides): (Vec<usize>, Vec<isize>) = key.dims.iter().copied().unzip();
        let made =
            Arc::new(DerivedType::strided(base, key.block / base.size(), &counts, &strides)?);
        let mut types = self.types.lock();
        if types.len() >= CACHED {
            types.clear();
        }
        types.insert(key, made.clone());
        Ok(WindowShape::Derived(made))
    }
}
