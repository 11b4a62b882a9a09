//! Strided transfers, and local packing of strided memory.

use super::handles;
use super::types::{self, ArmciHandle};
use crate::boundary::{code, export, or_abort_alone};
use portolan_base::error::{Result, fail};
use portolan_base::layout::Shape;
use portolan_engine::path::kernel;
use portolan_engine::runtime::Engine;
use portolan_engine::transfer::{Transfer, TransferKind};
use std::os::raw::{c_char, c_int, c_void};

/// The arguments of a strided call. The strides are in bytes.
struct Strided {
    local: *mut c_void,
    local_strides: *const c_int,
    remote: *mut c_void,
    remote_strides: *const c_int,
    count: *const c_int,
    levels: c_int,
    proc: c_int,
}

impl Strided {
    /// # Safety
    /// The arrays and the local memory must be valid.
    #[inline(always)]
    unsafe fn blocking(self, engine: &Engine, kind: TransferKind) -> Result<()> {
        let Strided { local, local_strides, remote, remote_strides, count, levels, proc } = self;
        let (target, remote, local) = (types::rank(proc)?, remote as usize, local.cast::<u8>());
        // SAFETY: the caller guarantees the arrays and the local memory.
        unsafe {
            let Some(bytes) = types::one_block(count, levels) else {
                let shape = types::shape(local_strides, remote_strides, count, levels)?;
                return engine.blocking(&Transfer { kind, target, remote, local, shape: &shape });
            };
            match kind {
                TransferKind::Put => engine.put(target, remote, local, bytes),
                TransferKind::Get => engine.get(target, remote, local, bytes),
                TransferKind::Accumulate(scale) => {
                    engine.accumulate(target, remote, local, bytes, scale)
                }
            }
        }
    }

    /// # Safety
    /// The arrays must be valid, the handle null or valid, and the local memory until completion.
    #[inline(always)]
    unsafe fn start(
        self,
        engine: &Engine,
        hdl: *mut ArmciHandle,
        kind: TransferKind,
    ) -> Result<()> {
        let Strided { local, local_strides, remote, remote_strides, count, levels, proc } = self;
        let (target, remote, local) = (types::rank(proc)?, remote as usize, local.cast::<u8>());
        // SAFETY: the caller guarantees the arrays, the handle and the local memory.
        unsafe {
            match types::one_block(count, levels) {
                Some(bytes) => {
                    handles::contiguous(engine, hdl, &kind, target, remote, local, bytes)
                }
                None => {
                    let shape = types::shape(local_strides, remote_strides, count, levels)?;
                    let transfer = Transfer { kind, target, remote, local, shape: &shape };
                    handles::issue(engine, hdl, &transfer)
                }
            }
        }
    }
}

export! {
    ARMCI_PutS / PARMCI_PutS(
        src_ptr: *mut c_void, src_stride_ar: *mut c_int, dst_ptr: *mut c_void,
        dst_stride_ar: *mut c_int, count: *mut c_int, stride_levels: c_int, proc: c_int,
    ) -> c_int = code(|engine| {
        let strided = Strided {
            local: src_ptr, local_strides: src_stride_ar, remote: dst_ptr, remote_strides: dst_stride_ar,
            count, levels: stride_levels, proc,
        };
        // SAFETY: by contract, the arrays and the local memory are valid.
        unsafe { strided.blocking(engine, TransferKind::Put) }
    });

    ARMCI_GetS / PARMCI_GetS(
        src_ptr: *mut c_void, src_stride_ar: *mut c_int, dst_ptr: *mut c_void,
        dst_stride_ar: *mut c_int, count: *mut c_int, stride_levels: c_int, proc: c_int,
    ) -> c_int = code(|engine| {
        let strided = Strided {
            local: dst_ptr, local_strides: dst_stride_ar, remote: src_ptr, remote_strides: src_stride_ar,
            count, levels: stride_levels, proc,
        };
        // SAFETY: by contract, the arrays and the local memory are valid.
        unsafe { strided.blocking(engine, TransferKind::Get) }
    });

    ARMCI_AccS / PARMCI_AccS(
        datatype: c_int, scale: *mut c_void, src_ptr: *mut c_void, src_stride_ar: *mut c_int,
        dst_ptr: *mut c_void, dst_stride_ar: *mut c_int, count: *mut c_int, stride_levels: c_int,
        proc: c_int,
    ) -> c_int = code(|engine| {
        // SAFETY: by contract, the scale is valid for one element.
        let kind = TransferKind::Accumulate(unsafe { types::scale(datatype, scale) }?);
        let strided = Strided {
            local: src_ptr, local_strides: src_stride_ar, remote: dst_ptr, remote_strides: dst_stride_ar,
            count, levels: stride_levels, proc,
        };
        // SAFETY: by contract, the arrays and the local memory are valid.
        unsafe { strided.blocking(engine, kind) }
    });

    ARMCI_PutS_flag / PARMCI_PutS_flag(
        src_ptr: *mut c_void, src_stride_ar: *mut c_int, dst_ptr: *mut c_void,
        dst_stride_ar: *mut c_int, count: *mut c_int, stride_levels: c_int, flag: *mut c_int,
        value: c_int, proc: c_int,
    ) -> c_int = code(|engine| {
        // SAFETY: the caller guarantees that the arrays and the local memory are valid.
        unsafe {
            let shape = types::shape(src_stride_ar, dst_stride_ar, count, stride_levels)?;
            let (target, remote) = (types::rank(proc)?, dst_ptr as usize);
            engine.put_flag(target, remote, src_ptr.cast(), &shape, flag as usize, value)
        }
    });

    ARMCI_NbPutS / PARMCI_NbPutS(
        src_ptr: *mut c_void, src_stride_ar: *mut c_int, dst_ptr: *mut c_void,
        dst_stride_ar: *mut c_int, count: *mut c_int, stride_levels: c_int, proc: c_int,
        hdl: *mut ArmciHandle,
    ) -> c_int = code(|engine| {
        let strided = Strided {
            local: src_ptr, local_strides: src_stride_ar, remote: dst_ptr, remote_strides: dst_stride_ar,
            count, levels: stride_levels, proc,
        };
        // SAFETY: by contract, arrays and handle are valid, the memory until completion.
        unsafe { strided.start(engine, hdl, TransferKind::Put) }
    });

    ARMCI_NbGetS / PARMCI_NbGetS(
        src_ptr: *mut c_void, src_stride_ar: *mut c_int, dst_ptr: *mut c_void,
        dst_stride_ar: *mut c_int, count: *mut c_int, stride_levels: c_int, proc: c_int,
        hdl: *mut ArmciHandle,
    ) -> c_int = code(|engine| {
        let strided = Strided {
            local: dst_ptr, local_strides: dst_stride_ar, remote: src_ptr, remote_strides: src_stride_ar,
            count, levels: stride_levels, proc,
        };
        // SAFETY: by contract, arrays and handle are valid, the memory until completion.
        unsafe { strided.start(engine, hdl, TransferKind::Get) }
    });

    ARMCI_NbAccS / PARMCI_NbAccS(
        datatype: c_int, scale: *mut c_void, src_ptr: *mut c_void, src_stride_ar: *mut c_int,
        dst_ptr: *mut c_void, dst_stride_ar: *mut c_int, count: *mut c_int, stride_levels: c_int,
        proc: c_int, hdl: *mut ArmciHandle,
    ) -> c_int = code(|engine| {
        // SAFETY: by contract, the scale is valid for one element.
        let kind = TransferKind::Accumulate(unsafe { types::scale(datatype, scale) }?);
        let strided = Strided {
            local: src_ptr, local_strides: src_stride_ar, remote: dst_ptr, remote_strides: dst_stride_ar,
            count, levels: stride_levels, proc,
        };
        // SAFETY: by contract, arrays and handle are valid, the memory until completion.
        unsafe { strided.start(engine, hdl, kind) }
    });
}

/// Returns a shape with strided memory on one side and packed bytes on the other, both local.
///
/// # Safety
/// `stride_arr` must have `levels` elements, and `count` must have `levels + 1`.
unsafe fn packing(
    ptr: *mut c_void,
    buf: *mut c_char,
    stride_arr: *const c_int,
    count: *const c_int,
    levels: c_int,
) -> Result<Shape> {
    // SAFETY: the caller guarantees the lengths of the arrays.
    let shape = unsafe { types::shape(stride_arr, stride_arr, count, levels) }?.packed_remote();
    if shape.bytes() > 0 && (ptr.is_null() || buf.is_null()) {
        fail!(Argument, "null address for a transfer of {} bytes", shape.bytes());
    }
    Ok(shape)
}

export! {
    /// The pointers must be valid for the shape that the arrays describe.
    armci_write_strided(
        ptr: *mut c_void, stride_levels: c_int, stride_arr: *mut c_int, count: *mut c_int,
        buf: *mut c_char,
    ) =
        // SAFETY: the caller guarantees the lengths of the arrays, and that `ptr` and `buf` are
        // valid for the shape.
        or_abort_alone(|| unsafe {
            let shape = packing(ptr, buf, stride_arr, count, stride_levels)?;
            kernel::copy(ptr.cast(), buf.cast(), &shape, true);
            Ok(())
        });

    armci_read_strided(
        ptr: *mut c_void, stride_levels: c_int, stride_arr: *mut c_int, count: *mut c_int,
        buf: *mut c_char,
    ) =
        // SAFETY: the caller guarantees the lengths of the arrays, and that `ptr` and `buf` are
        // valid for the shape.
        or_abort_alone(|| unsafe {
            let shape = packing(ptr, buf, stride_arr, count, stride_levels)?;
            kernel::copy(buf.cast(), ptr.cast(), &shape, false);
            Ok(())
        });
}
