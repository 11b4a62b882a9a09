//! Contiguous put, get and accumulate, blocking and not; put with a flag.

use super::types::{self, ArmciHandle};
use super::{handles, twin};
use crate::capi::boundary::code;
use crate::layout::Shape;
use crate::transfer::TransferKind;
use std::os::raw::{c_int, c_void};

twin! {
    /// Puts `size` bytes; on return the source may be reused.
    ARMCI_Put / PARMCI_Put(src: *mut c_void, dst: *mut c_void, size: c_int, target: c_int) -> c_int {
        code("ARMCI_Put", |engine| {
            let (target, bytes) = (types::rank(target)?, types::length(size)?);
            // SAFETY: the caller vouches for the local bytes.
            unsafe { engine.put(target, dst as usize, src.cast(), bytes) }
        })
    }
}

twin! {
    /// Gets `size` bytes; on return they are here.
    ARMCI_Get / PARMCI_Get(src: *mut c_void, dst: *mut c_void, size: c_int, target: c_int) -> c_int {
        code("ARMCI_Get", |engine| {
            let (target, bytes) = (types::rank(target)?, types::length(size)?);
            // SAFETY: the caller vouches for the local bytes.
            unsafe { engine.get(target, src as usize, dst.cast(), bytes) }
        })
    }
}

twin! {
    /// Adds `scale` times the local elements to the target's.
    ARMCI_Acc / PARMCI_Acc(
        datatype: c_int, scale: *mut c_void, src: *mut c_void, dst: *mut c_void, bytes: c_int,
        proc: c_int,
    ) -> c_int {
        code("ARMCI_Acc", |engine| {
            let (target, bytes) = (types::rank(proc)?, types::length(bytes)?);
            // SAFETY: the caller vouches for the scale and the local bytes.
            unsafe {
                let scale = types::scale(datatype, scale)?;
                engine.accumulate(target, dst as usize, src.cast(), bytes, scale)
            }
        })
    }
}

twin! {
    /// Puts `size` bytes and then sets the target's `*flag` to `value`.
    ARMCI_Put_flag / PARMCI_Put_flag(
        src: *mut c_void, dst: *mut c_void, size: c_int, flag: *mut c_int, value: c_int, proc: c_int,
    ) -> c_int {
        code("ARMCI_Put_flag", |engine| {
            let (target, bytes) = (types::rank(proc)?, types::length(size)?);
            let shape = Shape::contiguous(bytes);
            // SAFETY: the caller vouches for the local bytes.
            unsafe {
                engine.put_flag(target, dst as usize, src.cast(), &shape, flag as usize, value)
            }
        })
    }
}

twin! {
    /// As `ARMCI_Put`; the source may be reused when the handle is done.
    ARMCI_NbPut / PARMCI_NbPut(
        src: *mut c_void, dst: *mut c_void, bytes: c_int, proc: c_int, hdl: *mut ArmciHandle,
    ) -> c_int {
        code("ARMCI_NbPut", |engine| {
            let (target, bytes) = (types::rank(proc)?, types::length(bytes)?);
            // SAFETY: the caller vouches for the local bytes and the handle.
            unsafe { handles::contiguous(engine, hdl, TransferKind::Put, target, dst as usize, src.cast(), bytes) }
        })
    }
}

twin! {
    /// As `ARMCI_Get`; the bytes are here when the handle is done.
    ARMCI_NbGet / PARMCI_NbGet(
        src: *mut c_void, dst: *mut c_void, bytes: c_int, proc: c_int, hdl: *mut ArmciHandle,
    ) -> c_int {
        code("ARMCI_NbGet", |engine| {
            let (target, bytes) = (types::rank(proc)?, types::length(bytes)?);
            // SAFETY: the caller vouches for the local bytes and the handle.
            unsafe { handles::contiguous(engine, hdl, TransferKind::Get, target, src as usize, dst.cast(), bytes) }
        })
    }
}

twin! {
    /// As `ARMCI_Acc`; the source may be reused when the handle is done.
    ARMCI_NbAcc / PARMCI_NbAcc(
        datatype: c_int, scale: *mut c_void, src: *mut c_void, dst: *mut c_void, bytes: c_int,
        proc: c_int, hdl: *mut ArmciHandle,
    ) -> c_int {
        code("ARMCI_NbAcc", |engine| {
            let (target, bytes) = (types::rank(proc)?, types::length(bytes)?);
            // SAFETY: the caller vouches for the scale, the bytes and the handle.
            unsafe {
                let kind = TransferKind::Accumulate(types::scale(datatype, scale)?);
                handles::contiguous(engine, hdl, kind, target, dst as usize, src.cast(), bytes)
            }
        })
    }
}
