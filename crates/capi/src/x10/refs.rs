//! Global references, and the argument checks that all calls share.

use crate::boundary::export;
use portolan_base::error::{Result, fail};
pub(crate) use portolan_engine::any_memory::Direction;
use portolan_engine::runtime::Engine;
use std::os::raw::{c_int, c_ulong, c_void};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct GasRef {
    pub place: i32,
    pub addr: c_ulong,
}

const _: () = assert!(size_of::<GasRef>() == 16);

impl GasRef {
    #[inline]
    pub(crate) fn address(self) -> usize {
        self.addr as usize
    }
}

/// Converts a place to a rank. Fails with `Rank` if there is no such place.
#[inline]
pub(crate) fn rank(engine: &Engine, place: i32) -> Result<usize> {
    match usize::try_from(place) {
        Ok(rank) if rank < engine.size() => Ok(rank),
        _ => fail!(
            Rank,
            "place {place} is outside the {} places, 0 to {}",
            engine.size(),
            engine.size() - 1
        ),
    }
}

/// Converts a number that C passes as an int. Fails with `Argument` if it is negative.
#[inline]
pub(crate) fn count(n: c_int, what: &str) -> Result<usize> {
    match usize::try_from(n) {
        Ok(n) => Ok(n),
        Err(_) => fail!(Argument, "{what} is {n}, but cannot be negative"),
    }
}

/// Converts a local address. Fails with `Argument` if it is null and `bytes` is not 0.
#[inline]
pub(crate) fn local(address: *const c_void, bytes: usize) -> Result<usize> {
    if address.is_null() && bytes > 0 {
        fail!(Argument, "null local address for a transfer of {bytes} bytes");
    }
    Ok(address as usize)
}

export! {
    x10_make_gas_ref(place: i32, addr: *mut c_void) -> GasRef {
        GasRef { place, addr: addr as c_ulong }
    }

    x10_gas2place(r: GasRef) -> i32 { r.place }

    x10_gas2addr(r: GasRef) -> *mut c_void { r.addr as *mut c_void }
}
