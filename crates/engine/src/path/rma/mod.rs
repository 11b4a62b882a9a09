//! One-sided MPI operations on the window of an arena.
//!
//! The window stays locked, so an operation is one MPI call, and a flush completes it. Strided
//! transfers use cached derived datatypes. Long transfers are split to fit MPI's counts.
//!
//! Only puts and gets go through windows. Atomic operations have one mechanism ([`crate::atomics`]).
//!
//! **Order.** MPI orders neither puts nor gets. The list of unfinished operations
//! ([`crate::core::peer::RmaPending`]) decides when an operation waits for earlier ones.

mod operations;
mod prepared;
mod vector;

use crate::core::Core;
use crate::core::peer::RmaPending;
use crate::error::{Result, fail};
use crate::layout::{Shape, Side};
use crate::memory::arena::Arena;
use crate::memory::runs::Direction;
use crate::mpi::{DerivedType, Request, Window, WindowShape, WindowTransfer};
use crate::path::Path;
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

fn direction_of(kind: TransferKind) -> Result<Direction> {
    match kind {
        TransferKind::Put => Ok(Direction::Put),
        TransferKind::Get => Ok(Direction::Get),
        TransferKind::Accumulate(_) => fail!(Internal, "windows take no accumulates"),
    }
}

/// Completes the operations that one on the bytes `from..to` of `target` must not overtake, and adds
/// it to the list of unfinished ones, whose lock is returned. `rank` is the rank in the group of the
/// arena.
fn begin<'a>(
    core: &'a Core,
    target: usize,
    (arena, rank): (&Arc<Arena>, usize),
    direction: Direction,
    (from, to): (usize, usize),
) -> Result<MutexGuard<'a, RmaPending>> {
    let mut pending = core.peer(target).rma.lock();
    if pending.conflicts(direction, from, to) {
        pending.flush()?;
    }
    pending.note(arena, rank, direction, from, to);
    core.peers().mark_pending(target, Path::Rma.pending_bit());
    Ok(pending)
}

/// Starts one MPI call. With `request`, returns a request that can be tested.
///
/// # Safety
/// See [`Window::put`] and [`Window::get`].
unsafe fn call(
    window: &Window,
    direction: Direction,
    transfer: &WindowTransfer<'_>,
    request: bool,
) -> Result<Option<Request>> {
    // SAFETY: the caller guarantees the memory on both sides.
    unsafe {
        match direction {
            Direction::Put => window.put(transfer, request),
            Direction::Get => window.get(transfer, request),
        }
    }
}

const CACHED: usize = 256;

#[derive(Debug, PartialEq, Eq, Hash)]
struct TypeKey {
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

    /// Returns how the bytes of a shape lie on a side.
    fn get(&self, shape: &Shape, side: Side) -> Result<WindowShape> {
        if shape.is_contiguous_on(side) {
            return Ok(WindowShape::Row(shape.bytes()));
        }
        let dims: Vec<(usize, isize)> =
            shape.dims().iter().map(|d| (d.n, d.stride(side))).collect();
        let key = TypeKey { block: shape.block(), dims };
        if let Some(found) = self.types.lock().get(&key) {
            return Ok(WindowShape::Derived(found.clone()));
        }
        let (counts, strides): (Vec<usize>, Vec<isize>) = key.dims.iter().copied().unzip();
        let made = Arc::new(DerivedType::strided(key.block, &counts, &strides)?);
        let mut types = self.types.lock();
        if types.len() >= CACHED {
            types.clear();
        }
        types.insert(key, made.clone());
        Ok(WindowShape::Derived(made))
    }
}
