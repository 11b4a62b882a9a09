//! Generalised I/O vector transfers.

use super::types::{self, ArmciGiov, ArmciHandle};
use super::{handles, twin};
use crate::capi::boundary::{array, code};
use crate::error::Result;
use crate::layout::Vector;
use crate::transfer::TransferKind;
use smallvec::SmallVec;
use std::os::raw::{c_int, c_void};

type Vectors<'a> = SmallVec<[Vector<'a>; 4]>;

/// Reads the descriptors; a get's source is remote, that of other transfers is local.
///
/// # Safety
/// The descriptors and their arrays must be valid.
unsafe fn vectors<'a>(iov: *const ArmciGiov, len: c_int, get: bool) -> Result<Vectors<'a>> {
    let n = types::length(len)?;
    // SAFETY: the caller vouches for the arrays; a pointer and a usize have the
    // same layout, and the addresses are only looked at as numbers here.
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

twin! {
    /// Puts the blocks of all descriptors.
    ARMCI_PutV / PARMCI_PutV(iov: *mut ArmciGiov, iov_len: c_int, proc: c_int) -> c_int {
        code("ARMCI_PutV", |engine| {
            // SAFETY: the caller vouches for the descriptors and the blocks.
            unsafe { engine.vector(TransferKind::Put, types::rank(proc)?, &vectors(iov, iov_len, false)?) }
        })
    }
}

twin! {
    /// Gets the blocks of all descriptors.
    ARMCI_GetV / PARMCI_GetV(iov: *mut ArmciGiov, iov_len: c_int, proc: c_int) -> c_int {
        code("ARMCI_GetV", |engine| {
            // SAFETY: the caller vouches for the descriptors and the blocks.
            unsafe { engine.vector(TransferKind::Get, types::rank(proc)?, &vectors(iov, iov_len, true)?) }
        })
    }
}

twin! {
    /// Accumulates the blocks of all descriptors.
    ARMCI_AccV / PARMCI_AccV(
        datatype: c_int, scale: *mut c_void, iov: *mut ArmciGiov, iov_len: c_int, proc: c_int,
    ) -> c_int {
        code("ARMCI_AccV", |engine| {
            // SAFETY: the caller vouches for the scale, descriptors and blocks.
            unsafe {
                let kind = TransferKind::Accumulate(types::scale(datatype, scale)?);
                engine.vector(kind, types::rank(proc)?, &vectors(iov, iov_len, false)?)
            }
        })
    }
}

twin! {
    /// As `ARMCI_PutV`, completed by the handle.
    ARMCI_NbPutV / PARMCI_NbPutV(
        iov: *mut ArmciGiov, iov_len: c_int, proc: c_int, handle: *mut ArmciHandle,
    ) -> c_int {
        code("ARMCI_NbPutV", |engine| {
            // SAFETY: the caller vouches for descriptors, blocks and handle.
            unsafe {
                let list = vectors(iov, iov_len, false)?;
                handles::vectors(engine, handle, TransferKind::Put, types::rank(proc)?, &list)
            }
        })
    }
}

twin! {
    /// As `ARMCI_GetV`, completed by the handle.
    ARMCI_NbGetV / PARMCI_NbGetV(
        iov: *mut ArmciGiov, iov_len: c_int, proc: c_int, handle: *mut ArmciHandle,
    ) -> c_int {
        code("ARMCI_NbGetV", |engine| {
            // SAFETY: the caller vouches for descriptors, blocks and handle.
            unsafe {
                let list = vectors(iov, iov_len, true)?;
                handles::vectors(engine, handle, TransferKind::Get, types::rank(proc)?, &list)
            }
        })
    }
}

twin! {
    /// As `ARMCI_AccV`, completed by the handle.
    ARMCI_NbAccV / PARMCI_NbAccV(
        datatype: c_int, scale: *mut c_void, iov: *mut ArmciGiov, iov_len: c_int, proc: c_int,
        handle: *mut ArmciHandle,
    ) -> c_int {
        code("ARMCI_NbAccV", |engine| {
            // SAFETY: the caller vouches for scale, descriptors, blocks, handle.
            unsafe {
                let kind = TransferKind::Accumulate(types::scale(datatype, scale)?);
                let list = vectors(iov, iov_len, false)?;
                handles::vectors(engine, handle, kind, types::rank(proc)?, &list)
            }
        })
    }
}
