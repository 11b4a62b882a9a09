//! The table of functions by index, and the exchange of addresses.

use super::{code, function, lock};
use crate::error::{Result, fail};
use crate::runtime::Engine;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::os::raw::{c_int, c_void};

/// The largest index.
pub const TABLE_SIZE: usize = 1024;

/// Functions by index, and the least index of each.
struct Table {
    functions: Vec<usize>,
    index_of: HashMap<usize, u32>,
}

static TABLE: RwLock<Option<Table>> = RwLock::new(None);

impl Table {
    fn new() -> Table {
        Table { functions: vec![0; TABLE_SIZE + 1], index_of: HashMap::new() }
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

/// Begins a life with these functions at the indexes from 1.
pub(super) fn fill(handlers: &[usize]) -> Result<()> {
    if handlers.len() > TABLE_SIZE {
        fail!(
            Argument,
            "{} functions are to be registered, but the table has {TABLE_SIZE} places",
            handlers.len()
        );
    }
    let mut table = Table::new();
    for (i, &f) in handlers.iter().enumerate() {
        table.set(i + 1, f);
    }
    *TABLE.write() = Some(table);
    function::forget();
    Ok(())
}

/// Forgets all functions.
pub(super) fn clear() {
    *TABLE.write() = None;
    function::forget();
}

/// The index at which a function is registered here; 0 where it is not.
pub(super) fn index_of(function: usize) -> u32 {
    let table = TABLE.read();
    table.as_ref().and_then(|t| t.index_of.get(&function).copied()).unwrap_or(0)
}

/// The function at an index; 0 where there is none.
pub(super) fn at(index: u32) -> usize {
    let table = TABLE.read();
    table.as_ref().and_then(|t| t.functions.get(index as usize).copied()).unwrap_or(0)
}

/// Registers a function at an index of this place's table; null clears it.
#[unsafe(no_mangle)]
pub extern "C" fn x10_register(addr: *mut c_void, addr_hndl: c_int) -> c_int {
    code("x10_register", |_| {
        let index = match usize::try_from(addr_hndl) {
            Ok(index) if (1..=TABLE_SIZE).contains(&index) => index,
            _ => fail!(Argument, "index {addr_hndl}, but indexes are 1 to {TABLE_SIZE}"),
        };
        if let Some(table) = TABLE.write().as_mut() {
            table.set(index, addr as usize);
        }
        // Names say by which index a function goes.
        function::forget();
        Ok(())
    })
}

fn exchange(engine: &Engine, mine: usize, table: *mut *mut c_void) -> Result<()> {
    lock::may_meet()?;
    // All places take part, also where the table is bad.
    let all = engine.world().allgather(engine, &(mine as u64))?;
    if table.is_null() {
        fail!(Argument, "the address table is null");
    }
    for (i, &address) in all.iter().enumerate() {
        // SAFETY: the caller vouches for a table of as many elements as places.
        unsafe { *table.add(i) = address as usize as *mut c_void };
    }
    Ok(())
}

/// Every place's address, in the order of places. Collective.
///
/// # Safety
/// `addr_tab` must be null or valid for as many elements as there are places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn x10_addr_init(my_addr: *mut c_void, addr_tab: *mut *mut c_void) -> c_int {
    code("x10_addr_init", |engine| exchange(engine, my_addr as usize, addr_tab))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_index_counts() {
        let mut table = Table::new();
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
