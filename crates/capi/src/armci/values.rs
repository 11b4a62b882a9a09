//! Puts and gets of single values.

use super::handles;
use super::types::{self, ArmciHandle};
use crate::boundary::{code, export, or_abort};
use std::os::raw::{c_double, c_float, c_int, c_long, c_void};

macro_rules! value {
    ($ty:ty, $put:ident / $pput:ident, $nb:ident / $pnb:ident, $get:ident / $pget:ident) => {
        export! {
            $put / $pput(src: $ty, dst: *mut c_void, proc: c_int) -> c_int = code(|engine| {
                let bytes = src.to_ne_bytes();
                // SAFETY: `bytes` is a local array that outlives the blocking put.
                unsafe { engine.put(types::rank(proc)?, dst as usize, bytes.as_ptr(), bytes.len()) }
            });

            $nb / $pnb(
                src: $ty, dst: *mut c_void, proc: c_int, hdl: *mut ArmciHandle,
            ) -> c_int = code(|engine| {
                // SAFETY: by contract, `hdl` is valid or null; the bytes are copied or done with.
                unsafe {
                    handles::value(engine, hdl, types::rank(proc)?, dst as usize, &src.to_ne_bytes())
                }
            });

            $get / $pget(src: *mut c_void, proc: c_int) -> $ty = or_abort(|engine| {
                let mut bytes = [0u8; std::mem::size_of::<$ty>()];
                let target = types::rank(proc)?;
                // SAFETY: `bytes` is a local array that outlives the blocking get.
                unsafe { engine.get(target, src as usize, bytes.as_mut_ptr(), bytes.len()) }?;
                Ok(<$ty>::from_ne_bytes(bytes))
            });
        }
    };
}

value!(
    c_int,
    ARMCI_PutValueInt / PARMCI_PutValueInt,
    ARMCI_NbPutValueInt / PARMCI_NbPutValueInt,
    ARMCI_GetValueInt / PARMCI_GetValueInt
);
value!(
    c_long,
    ARMCI_PutValueLong / PARMCI_PutValueLong,
    ARMCI_NbPutValueLong / PARMCI_NbPutValueLong,
    ARMCI_GetValueLong / PARMCI_GetValueLong
);
value!(
    c_float,
    ARMCI_PutValueFloat / PARMCI_PutValueFloat,
    ARMCI_NbPutValueFloat / PARMCI_NbPutValueFloat,
    ARMCI_GetValueFloat / PARMCI_GetValueFloat
);
value!(
    c_double,
    ARMCI_PutValueDouble / PARMCI_PutValueDouble,
    ARMCI_NbPutValueDouble / PARMCI_NbPutValueDouble,
    ARMCI_GetValueDouble / PARMCI_GetValueDouble
);
