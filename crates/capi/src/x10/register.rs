//! Registration of functions by index, and the exchange of addresses.

use super::function_table::{self, TABLE_SIZE};
use super::{code, function, lock};
use crate::boundary::export;
use portolan_base::error::{Result, fail};
use portolan_engine::runtime::Engine;
use std::os::raw::{c_int, c_void};

/// Fills the table from index 1 and drops all cached names.
pub(super) fn fill(handlers: &[usize]) -> Result<()> {
    function_table::fill(handlers)?;
    function::forget();
    Ok(())
}

pub(super) fn clear() {
    function_table::clear();
    function::forget();
}

export! {
    x10_register(addr: *mut c_void, addr_hndl: c_int) -> c_int = code(|_| {
        let index = match usize::try_from(addr_hndl) {
            Ok(index) if (1..=TABLE_SIZE).contains(&index) => index,
            _ => fail!(Argument, "index {addr_hndl}, but indexes are 1 to {TABLE_SIZE}"),
        };
        function_table::set(index, addr as usize);
        // Cached names contain the index of their function.
        function::forget();
        Ok(())
    });
}

fn exchange(engine: &Engine, mine: usize, table: *mut *mut c_void) -> Result<()> {
    lock::may_meet()?;
    // The exchange is collective, so this place takes part even if its table is null.
    let all = engine.world().allgather(engine, &(mine as u64))?;
    if table.is_null() {
        fail!(Argument, "the address table is null");
    }
    for (i, &address) in all.iter().enumerate() {
        // SAFETY: the caller guarantees one element per place at `table`, and it is not null.
        unsafe { *table.add(i) = address as usize as *mut c_void };
    }
    Ok(())
}

export! {
    /// `addr_tab` must be null or valid for one element per place.
    x10_addr_init(my_addr: *mut c_void, addr_tab: *mut *mut c_void) -> c_int =
        code(|engine| exchange(engine, my_addr as usize, addr_tab));
}
