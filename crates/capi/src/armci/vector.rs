//! Generalised I/O vector transfers.

use super::handles;
use super::types::{self, ArmciGiov, ArmciHandle};
use crate::boundary::{array, code, export};
use portolan_base::error::Result;
use portolan_base::layout::Vector;
use portolan_engine::transfer::TransferKind;
use smallvec::SmallVec;
use std::os::raw::{c_int, c_void};

type Vectors<'a> = SmallVec<[Vector<'a>; 4]>;

/// The remote side is the source of a get and the destination otherwise.
///
/// # Safety
/// The descriptors and the arrays that they point to must be valid.
unsafe fn vectors<'a>(iov: *const ArmciGiov, len: c_int, get: bool) -> Result<Vectors<'a>> {
    let n = types::length(len)?;
    // SAFETY: by contract, the descriptors and their arrays are valid. The pointers are used only
    // as numbers, and have the layout of `usize`.
    unsafe {
        array(iov, n, "the array of vector descriptors")?
            .iter()
            .map(|v| {
                let (block, n) = (types::length(v.bytes)?, types::length(v.ptr_array_len)?);
                let src = array(v.src_ptr_array.cast::<usize>(), n, "the source address array")?;
                let dst =
                    array(v.dst_ptr_array.cast::<usize>(), n, "the destination address array")?;
                let (local, remote) = if get { (dst, src) } else { (src, dst) };
                Ok(Vector { block, local, remote })
            })
            .collect()
    }
}

export! {
    ARMCI_PutV / PARMCI_PutV(
        iov: *mut ArmciGiov, iov_len: c_int, proc: c_int,
    ) -> c_int = code(|engine| {
        // SAFETY: the caller guarantees that the descriptors and the local blocks are valid.
        unsafe { engine.vector(TransferKind::Put, types::rank(proc)?, &vectors(iov, iov_len, false)?) }
    });

    ARMCI_GetV / PARMCI_GetV(
        iov: *mut ArmciGiov, iov_len: c_int, proc: c_int,
    ) -> c_int = code(|engine| {
        // SAFETY: the caller guarantees that the descriptors and the local blocks are valid.
        unsafe { engine.vector(TransferKind::Get, types::rank(proc)?, &vectors(iov, iov_len, true)?) }
    });

    ARMCI_AccV / PARMCI_AccV(
        datatype: c_int, scale: *mut c_void, iov: *mut ArmciGiov, iov_len: c_int, proc: c_int,
    ) -> c_int = code(|engine| {
        // SAFETY: by contract, the scale, the descriptors and the local blocks are valid.
        unsafe {
            let kind = TransferKind::Accumulate(types::scale(datatype, scale)?);
            engine.vector(kind, types::rank(proc)?, &vectors(iov, iov_len, false)?)
        }
    });

    ARMCI_NbPutV / PARMCI_NbPutV(
        iov: *mut ArmciGiov, iov_len: c_int, proc: c_int, handle: *mut ArmciHandle,
    ) -> c_int = code(|engine| {
        // SAFETY: by contract, the descriptors, the local blocks and the handle are valid.
        unsafe {
            let list = vectors(iov, iov_len, false)?;
            handles::vectors(engine, handle, TransferKind::Put, types::rank(proc)?, &list)
        }
    });

    ARMCI_NbGetV / PARMCI_NbGetV(
        iov: *mut ArmciGiov, iov_len: c_int, proc: c_int, handle: *mut ArmciHandle,
    ) -> c_int = code(|engine| {
        // SAFETY: by contract, the descriptors, the local blocks and the handle are valid.
        unsafe {
            let list = vectors(iov, iov_len, true)?;
            handles::vectors(engine, handle, TransferKind::Get, types::rank(proc)?, &list)
        }
    });

    ARMCI_NbAccV / PARMCI_NbAccV(
        datatype: c_int, scale: *mut c_void, iov: *mut ArmciGiov, iov_len: c_int, proc: c_int,
        handle: *mut ArmciHandle,
    ) -> c_int = code(|engine| {
        // SAFETY: by contract, the scale, the descriptors, the blocks and the handle are valid.
        unsafe {
            let kind = TransferKind::Accumulate(types::scale(datatype, scale)?);
            let list = vectors(iov, iov_len, false)?;
            handles::vectors(engine, handle, kind, types::rank(proc)?, &list)
        }
    });
}
