//! The table of functions by index.

use parking_lot::RwLock;
use portolan_base::error::{Result, fail};
use std::collections::HashMap;

pub(crate) const TABLE_SIZE: usize = 1024;

/// Functions by index, and the lowest index of each function.
struct FunctionTable {
    functions: Vec<usize>,
    index_of: HashMap<usize, u32>,
}

static TABLE: RwLock<Option<FunctionTable>> = RwLock::new(None);

impl FunctionTable {
    fn new() -> FunctionTable {
        FunctionTable { functions: vec![0; TABLE_SIZE + 1], index_of: HashMap::new() }
    }

    fn set(&mut self, index: usize, function: usize) {
        let old = std::mem::replace(&mut self.functions[index], function);
        for f in [old, function] {
            let least = self.functions.iter().position(|&g| g == f).filter(|_| f != 0);
            match least {
                Some(i) => self.index_of.insert(f, i as u32),
                None => self.index_of.remove(&f),
            };
        }
    }
}

/// Replaces the table by one with these functions, from index 1.
pub(super) fn fill(handlers: &[usize]) -> Result<()> {
    if handlers.len() > TABLE_SIZE {
        fail!(
            Argument,
            "{} functions are to be registered, but the table has {TABLE_SIZE} places",
            handlers.len()
        );
    }
    let mut table = FunctionTable::new();
    for (i, &f) in handlers.iter().enumerate() {
        table.set(i + 1, f);
    }
    *TABLE.write() = Some(table);
    Ok(())
}

pub(super) fn clear() {
    *TABLE.write() = None;
}

/// Returns the lowest index at which a function is registered here, or 0.
pub(super) fn index_of(function: usize) -> u32 {
    let table = TABLE.read();
    table.as_ref().and_then(|t| t.index_of.get(&function).copied()).unwrap_or(0)
}

pub(super) fn at(index: u32) -> usize {
    let table = TABLE.read();
    table.as_ref().and_then(|t| t.functions.get(index as usize).copied()).unwrap_or(0)
}

/// Sets the function at an index, or clears it if `function` is 0. The index must be in the table.
pub(super) fn set(index: usize, function: usize) {
    if let Some(table) = TABLE.write().as_mut() {
        table.set(index, function);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_index_counts() {
        let mut table = FunctionTable::new();
        table.set(5, 100);
        table.set(3, 100);
        assert_eq!(table.index_of.get(&100), Some(&3));
        table.set(3, 200);
        assert_eq!(table.index_of.get(&100), Some(&5));
        assert_eq!(table.index_of.get(&200), Some(&3));
        table.set(5, 0);
        assert_eq!(table.index_of.get(&100), None);
        assert_eq!(table.index_of.get(&0), None);
    }
}
