//! Sync, perform and wait.

use super::call;
use super::table::{self, with};
use crate::boundary::export;
use portolan_base::error::{Result, fail};
use std::os::raw::c_int;

fn number(n: c_int) -> Result<u32> {
    match u32::try_from(n) {
        Ok(n) => Ok(n),
        Err(_) => fail!(Argument, "{n} performances cannot be waited for"),
    }
}

export! {
    cp_sync() -> c_int = call(|engine| {
        table::composer(engine)?.sync(engine)?;
        Ok(0)
    });

    /// The local addresses must be valid for reads. If the target is on another node, the local
    /// bytes must not change before the next wait or sync. The bytes at the remote addresses are
    /// overwritten.
    cp_perform(compnum: c_int) -> c_int = call(|engine| {
        let (plan, composer) = with(engine, |interface| {
            Ok((interface.table.get(compnum)?.plan()?.clone(), interface.composer.clone()))
        })?;
        // SAFETY: by this function's contract, the plan's local addresses are valid and unchanged.
        unsafe { composer.perform(engine, &plan) }?;
        Ok(0)
    });

    cp_waitfor(n: c_int) -> c_int = call(|engine| {
        let n = number(n)?;
        table::composer(engine)?.wait_for(engine, n)?;
        Ok(0)
    });

    cp_arrived() -> c_int = call(|engine| {
        let n = table::composer(engine)?.arrived()?;
        Ok(c_int::try_from(n).unwrap_or(c_int::MAX))
    });
}
