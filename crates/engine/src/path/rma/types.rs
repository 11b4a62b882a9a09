//! The derived datatypes of strided transfers, which are cached, and of lists of blocks.

use crate::mpi::{DerivedType, WindowShape};
use parking_lot::Mutex;
use portolan_base::error::Result;
use portolan_base::layout::{Shape, Side};
use std::collections::HashMap;
use std::sync::Arc;

const CACHED: usize = 256;

#[derive(Debug, PartialEq, Eq, Hash)]
struct TypeKey {
    block: usize,
    dims: Vec<(usize, isize)>,
}

#[derive(Debug, Default)]
pub(super) struct TypeCache {
    types: Mutex<HashMap<TypeKey, Arc<DerivedType>>>,
}

impl TypeCache {
    pub fn clear(&self) {
        self.types.lock().clear();
    }

    /// Returns how the bytes of a shape lie on a side.
    pub fn get(&self, shape: &Shape, side: Side) -> Result<WindowShape> {
        if shape.is_contiguous_on(side) {
            return Ok(WindowShape::Row(shape.bytes()));
        }
        let dims = shape.dims().iter().map(|d| (d.n, d.stride(side))).collect();
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

/// Returns how blocks of `bytes` bytes lie at addresses, relative to the first.
pub(super) fn blocks(bytes: usize, mut at: impl Iterator<Item = usize>) -> Result<WindowShape> {
    let Some(first) = at.next() else { return Ok(WindowShape::Row(0)) };
    let others = at.map(|at| at.wrapping_sub(first) as isize);
    let displacements: Vec<isize> = std::iter::once(0).chain(others).collect();
    Ok(WindowShape::Derived(Arc::new(DerivedType::blocks(bytes, &displacements)?)))
}
