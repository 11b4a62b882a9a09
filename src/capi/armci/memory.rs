//! Allocation, freeing, local access, local copy.

use super::types::{ArmciGroup, ArmciSize};
use super::{group_table, twin};
use crate::capi::boundary::{code, guard, or_abort, reported};
use crate::error::{Result, fail};
use crate::group::Group;
use crate::path::kernel;
use crate::runtime::{Engine, current};
use std::os::raw::{c_char, c_int, c_void};
use std::sync::Arc;

fn bytes(size: ArmciSize) -> Result<usize> {
    match usize::try_from(size) {
        Ok(bytes) => Ok(bytes),
        Err(_) => fail!(Argument, "a size of {size} bytes is negative"),
    }
}

/// # Safety
/// `base_ptrs` must have room for one pointer for each rank of the group.
unsafe fn allocate(
    engine: &Engine,
    group: &Arc<Group>,
    base_ptrs: *mut *mut c_void,
    size: ArmciSize,
) -> Result<()> {
    let asked = || {
        if base_ptrs.is_null() {
            fail!(Argument, "the array for the pointers is null");
        }
        bytes(size)
    };
    let segment = engine.allocate_checked(group, asked())?;
    for (rank, part) in segment.parts().enumerate() {
        // SAFETY: the caller vouches for the array.
        unsafe { *base_ptrs.add(rank) = part.address() as *mut c_void };
    }
    Ok(())
}

/// The group whose segment begins at `ptr` on this rank; `otherwise` where `ptr`
/// is null or begins none (the agreement then says which rank was wrong).
fn group_of(engine: &Engine, ptr: *mut c_void, otherwise: Arc<Group>) -> Arc<Group> {
    match engine.memory.segment_at(ptr as usize) {
        Some(segment) if !ptr.is_null() => segment.group().clone(),
        _ => otherwise,
    }
}

fn own(ptr: *mut c_void) -> Option<usize> {
    (!ptr.is_null()).then_some(ptr as usize)
}

twin! {
    /// Allocates `size` bytes on this rank and what the other ranks ask on theirs;
    /// `base_ptrs[p]` is rank `p`'s address, null where it has no bytes.
    /// Collective over all ranks.
    ARMCI_Malloc / PARMCI_Malloc(base_ptrs: *mut *mut c_void, size: ArmciSize) -> c_int {
        // SAFETY: the caller vouches for the array.
        code("ARMCI_Malloc", |engine| unsafe { allocate(engine, engine.world(), base_ptrs, size) })
    }
}

twin! {
    /// Frees the segment that begins at this rank's `ptr`, null where it has no
    /// bytes of it. Collective over the ranks that allocated it.
    ARMCI_Free / PARMCI_Free(ptr: *mut c_void) -> c_int {
        code("ARMCI_Free", |engine| {
            engine.release_at(&group_of(engine, ptr, engine.world().clone()), own(ptr))
        })
    }
}

/// Allocates over a group; `ptr_arr` is in the order of the group's ranks.
///
/// # Safety
/// `ptr_arr` must have room for the group's ranks, and `group` be valid.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ARMCI_Malloc_group(
    ptr_arr: *mut *mut c_void,
    bytes: ArmciSize,
    group: *mut ArmciGroup,
) -> c_int {
    // SAFETY: the caller vouches for the array and the group.
    code("ARMCI_Malloc_group", |engine| unsafe {
        allocate(engine, &group_table::find(engine, group)?, ptr_arr, bytes)
    })
}

/// Frees over a group.
///
/// # Safety
/// `group` must be valid.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ARMCI_Free_group(
    ptr: *mut c_void,
    group: *mut ArmciGroup,
) -> c_int {
    code("ARMCI_Free_group", |engine| {
        // SAFETY: the caller vouches for the group.
        let group = unsafe { group_table::find(engine, group) }?;
        engine.release_at(&group, own(ptr))
    })
}

/// The devices that memory can be asked on: ordinary memory only.
///
/// # Safety
/// `device` must be null or a terminated string.
unsafe fn device(device: *const c_char) -> Result<()> {
    // SAFETY: the caller vouches for the string.
    let name = unsafe { crate::capi::boundary::text(device) };
    if !matches!(name.as_str(), "" | "dram" | "DRAM" | "default") {
        log::info!("memory on device {name:?} was asked; this machine's ordinary memory is used");
    }
    Ok(())
}

twin! {
    /// As `ARMCI_Malloc`; the device is a hint.
    ARMCI_Malloc_memdev / PARMCI_Malloc_memdev(
        ptr_arr: *mut *mut c_void, bytes: ArmciSize, device_name: *const c_char,
    ) -> c_int {
        // SAFETY: the caller vouches for the array and the string.
        code("ARMCI_Malloc_memdev", |engine| unsafe {
            device(device_name)?;
            allocate(engine, engine.world(), ptr_arr, bytes)
        })
    }
}

twin! {
    /// As `ARMCI_Malloc_group`; the device is a hint.
    ARMCI_Malloc_group_memdev / PARMCI_Malloc_group_memdev(
        ptr_arr: *mut *mut c_void, bytes: ArmciSize, group: *mut ArmciGroup,
        device_name: *const c_char,
    ) -> c_int {
        // SAFETY: the caller vouches for the array, the group and the string.
        code("ARMCI_Malloc_group_memdev", |engine| unsafe {
            device(device_name)?;
            allocate(engine, &group_table::find(engine, group)?, ptr_arr, bytes)
        })
    }
}

twin! {
    /// As `ARMCI_Free`.
    ARMCI_Free_memdev / PARMCI_Free_memdev(ptr: *mut c_void) -> c_int {
        code("ARMCI_Free_memdev", |engine| {
            engine.release_at(&group_of(engine, ptr, engine.world().clone()), own(ptr))
        })
    }
}

twin! {
    /// Memory of this rank alone; null where there is none, or for zero bytes.
    ARMCI_Malloc_local / PARMCI_Malloc_local(size: ArmciSize) -> *mut c_void {
        let failed = |error: &crate::error::Error| {
            reported(error);
            std::ptr::null_mut()
        };
        guard("ARMCI_Malloc_local", failed, || {
            Ok(current()?.memory.local.allocate(bytes(size)?)?.cast())
        })
    }
}

twin! {
    /// Frees what `ARMCI_Malloc_local` gave.
    ARMCI_Free_local / PARMCI_Free_local(ptr: *mut c_void) -> c_int {
        code("ARMCI_Free_local", |engine| engine.memory.local.free(ptr.cast()))
    }
}

/// The segment that `ptr` lies in must be this rank's own.
fn access(engine: &Engine, ptr: *mut c_void) -> Result<()> {
    let hit = engine.memory.registry.find(engine.rank(), ptr as usize, 0)?;
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    match hit.slab().window() {
        Some(window) => window.sync(),
        None => Ok(()),
    }
}

twin! {
    /// Begins direct load and store access to one's own part of a segment: what
    /// others have completed is visible.
    ARMCI_Access_begin / PARMCI_Access_begin(ptr: *mut c_void) {
        or_abort("ARMCI_Access_begin", |engine| access(engine, ptr))
    }
}

twin! {
    /// Ends it: what was stored is visible to others.
    ARMCI_Access_end / PARMCI_Access_end(ptr: *mut c_void) {
        or_abort("ARMCI_Access_end", |engine| access(engine, ptr))
    }
}

/// Copies local memory; the two may overlap.
///
/// # Safety
/// Both must be valid for `size` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ARMCI_Copy(src: *mut c_void, dst: *mut c_void, size: c_int) {
    or_abort("ARMCI_Copy", |_| {
        let bytes = super::types::length(size)?;
        if bytes > 0 {
            if src.is_null() || dst.is_null() {
                fail!(Argument, "a null address with {bytes} bytes to copy");
            }
            // SAFETY: the caller vouches for both sides.
            unsafe { kernel::copy_block(src.cast(), dst.cast(), bytes) };
        }
        Ok(())
    });
}
