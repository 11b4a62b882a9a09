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

use crate::error::Result;
use crate::layout::{Shape, Side};
use crate::mpi::{Datatype, DerivedType};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct Rma {
    types: TypeCache,
}

impl Rma {
    pub fn forget_types(&self) {
        self.types.clear();
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
