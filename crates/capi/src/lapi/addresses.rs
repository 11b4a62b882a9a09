//! Address exchange, and the table of header handlers.

use super::context::{Context, TABLE, call, enter, local_call, may_wait};
use super::messages;
use super::outcome::{Outcome, refuse};
use super::types::Handle;
use crate::boundary::export;
use portolan_engine::collective::{self, Kind};
use std::os::raw::{c_int, c_ulong, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

export! {
    /// Stores an address as a number, for Fortran. Needs no `LAPI_Init`.
    LAPI_Address / PLAPI_Address(my_addr: *mut c_void, ret_addr: *mut c_ulong) -> c_int = call(|| {
        if my_addr.is_null() {
            refuse!(messages::ORG_ADDR_NULL, "the address is null");
        }
        if ret_addr.is_null() {
            refuse!(messages::TGT_ADDR_NULL, "the pointer to the number is null");
        }
        // SAFETY: `ret_addr` is not null, and the caller guarantees that it is writable.
        unsafe { ret_addr.write(my_addr as c_ulong) };
        Ok(())
    });
}

/// # Safety
/// `add_tab` must be null or have space for an address of each task.
unsafe fn exchange(hndl: Handle, my_addr: u64, add_tab: *mut u64) -> Outcome {
    let (context, engine) = enter(hndl)?;
    may_wait()?;
    // A rank without a table takes part too, because the other ranks wait for it.
    let all: Vec<u64> =
        collective::scope(Kind::Addresses, 0, || engine.world().allgather(engine, &my_addr))?;
    let mut exchanged = context.exchanged.write();
    exchanged.extend(all.iter().copied().enumerate().filter(|&(_, a)| a != 0));
    drop(exchanged);
    context.routes.write().clear();
    context.exchanges.fetch_add(1, Ordering::Release);
    if add_tab.is_null() {
        refuse!(messages::ADDR_TBL_NULL, "the table for the addresses is null");
    }
    // SAFETY: the caller guarantees space for an address of each task.
    unsafe { add_tab.copy_from_nonoverlapping(all.as_ptr(), all.len()) };
    Ok(())
}

export! {
    /// Collective. Addresses of header handlers and counters are valid only at their owner: use
    /// `add_tab[t]` for task `t`.
    LAPI_Address_init / PLAPI_Address_init(
        hndl: Handle, my_addr: *mut c_void, add_tab: *mut *mut c_void,
    ) -> c_int = call(|| {
        // SAFETY: by contract, `add_tab` is null or has an element for each task, of 64 bits.
        unsafe { exchange(hndl, my_addr as u64, add_tab.cast()) }
    });

    LAPI_Address_init64 / PLAPI_Address_init64(
        hndl: Handle, my_addr: u64, add_tab: *mut u64,
    ) -> c_int = call(|| {
        // SAFETY: the caller guarantees that `add_tab` is null or has an element for each task.
        unsafe { exchange(hndl, my_addr, add_tab) }
    });
}

fn entry(context: &Context, index: c_int) -> Outcome<&AtomicUsize> {
    match usize::try_from(index).ok().filter(|&i| i > 0).and_then(|i| context.table.get(i)) {
        Some(entry) => Ok(entry),
        None => {
            refuse!(messages::ADDR_HNDL_RANGE, "index {index}, but 1 to {} are possible", TABLE - 1)
        }
    }
}

export! {
    /// Null clears the index. Messages that wait for the index are handled now or, in polling mode,
    /// in the next call that makes progress.
    LAPI_Addr_set / PLAPI_Addr_set(
        hndl: Handle, addr: *mut c_void, addr_hndl: c_int,
    ) -> c_int = local_call(|| {
        let (context, engine) = enter(hndl)?;
        let entry = entry(context, addr_hndl)?;
        // Unlocking handles the messages that wait for the index, in their order.
        engine.lock_handlers()?;
        entry.store(addr as usize, Ordering::Release);
        Ok(engine.unlock_handlers()?)
    });

    LAPI_Addr_get / PLAPI_Addr_get(
        hndl: Handle, addr: *mut *mut c_void, addr_hndl: c_int,
    ) -> c_int = local_call(|| {
        let (context, _) = enter(hndl)?;
        let entry = entry(context, addr_hndl)?;
        if addr.is_null() {
            refuse!(messages::RET_PTR_NULL, "the pointer to the address is null");
        }
        // SAFETY: `addr` is not null, and the caller guarantees that it is writable.
        unsafe { addr.write(entry.load(Ordering::Acquire) as *mut c_void) };
        Ok(())
    });
}
