//! Contiguous put, get and accumulate, blocking and non-blocking, and put with a flag.

use super::handles;
use super::types::{self, ArmciHandle};
use crate::boundary::{code, export};
use portolan_base::layout::Shape;
use portolan_engine::transfer::TransferKind;
use std::os::raw::{c_int, c_void};

export! {
    ARMCI_Put / PARMCI_Put(
        src: *mut c_void, dst: *mut c_void, size: c_int, target: c_int,
    ) -> c_int = code(|engine| {
        let (target, bytes) = (types::rank(target)?, types::length(size)?);
        // SAFETY: the caller guarantees that `src` is valid for `size` bytes.
        unsafe { engine.put(target, dst as usize, src.cast(), bytes) }
    });

    ARMCI_Get / PARMCI_Get(
        src: *mut c_void, dst: *mut c_void, size: c_int, target: c_int,
    ) -> c_int = code(|engine| {
        let (target, bytes) = (types::rank(target)?, types::length(size)?);
        // SAFETY: the caller guarantees that `dst` is valid for `size` bytes.
        unsafe { engine.get(target, src as usize, dst.cast(), bytes) }
    });

    ARMCI_Acc / PARMCI_Acc(
        datatype: c_int, scale: *mut c_void, src: *mut c_void, dst: *mut c_void, bytes: c_int,
        proc: c_int,
    ) -> c_int = code(|engine| {
        let (target, bytes) = (types::rank(proc)?, types::length(bytes)?);
        // SAFETY: the caller guarantees that `scale` and the `bytes` bytes at `src` are valid.
        unsafe {
            let scale = types::scale(datatype, scale)?;
            engine.accumulate(target, dst as usize, src.cast(), bytes, scale)
        }
    });

    ARMCI_Put_flag / PARMCI_Put_flag(
        src: *mut c_void, dst: *mut c_void, size: c_int, flag: *mut c_int, value: c_int,
        proc: c_int,
    ) -> c_int = code(|engine| {
        let (target, bytes) = (types::rank(proc)?, types::length(size)?);
        let shape = Shape::contiguous(bytes);
        // SAFETY: the caller guarantees that `src` is valid for `size` bytes.
        unsafe {
            engine.put_flag(target, dst as usize, src.cast(), &shape, flag as usize, value)
        }
    });

    ARMCI_NbPut / PARMCI_NbPut(
        src: *mut c_void, dst: *mut c_void, bytes: c_int, proc: c_int, hdl: *mut ArmciHandle,
    ) -> c_int = code(|engine| {
        let (target, bytes) = (types::rank(proc)?, types::length(bytes)?);
        // SAFETY: by contract, `src` is valid until completion, and `hdl` is null or valid.
        unsafe { handles::contiguous(engine, hdl, &TransferKind::Put, target, dst as usize, src.cast(), bytes) }
    });

    ARMCI_NbGet / PARMCI_NbGet(
        src: *mut c_void, dst: *mut c_void, bytes: c_int, proc: c_int, hdl: *mut ArmciHandle,
    ) -> c_int = code(|engine| {
        let (target, bytes) = (types::rank(proc)?, types::length(bytes)?);
        // SAFETY: by contract, `dst` is valid until completion, and `hdl` is null or valid.
        unsafe { handles::contiguous(engine, hdl, &TransferKind::Get, target, src as usize, dst.cast(), bytes) }
    });

    ARMCI_NbAcc / PARMCI_NbAcc(
        datatype: c_int, scale: *mut c_void, src: *mut c_void, dst: *mut c_void, bytes: c_int,
        proc: c_int, hdl: *mut ArmciHandle,
    ) -> c_int = code(|engine| {
        let (target, bytes) = (types::rank(proc)?, types::length(bytes)?);
        // SAFETY: by contract, `scale` is valid, `src` until completion, `hdl` null or valid.
        unsafe {
            let kind = TransferKind::Accumulate(types::scale(datatype, scale)?);
            handles::contiguous(engine, hdl, &kind, target, dst as usize, src.cast(), bytes)
        }
    });
}
