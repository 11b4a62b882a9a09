//! Allocation, freeing, local access and local copies.

use super::group_table;
use super::types::{ArmciGroup, ArmciSize};
use crate::boundary::{abort, code, export, guard, or_abort, reported};
use portolan_base::error::{ErrorKind, Result, fail};
use portolan_engine::collective::group::Group;
use portolan_engine::memory::segment::Purpose;
use portolan_engine::path::kernel;
use portolan_engine::runtime::{Engine, current};
use std::os::raw::{c_char, c_int, c_void};
use std::sync::Arc;

fn bytes(size: ArmciSize) -> Result<usize> {
    match usize::try_from(size) {
        Ok(bytes) => Ok(bytes),
        Err(_) => fail!(Argument, "a size of {size} bytes is negative"),
    }
}

/// # Safety
/// `base_ptrs` must be null or have room for one pointer per rank of the group.
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
    let segment = engine.allocate_for(Purpose::Addresses, group, asked())?;
    for (rank, part) in segment.parts().enumerate() {
        // SAFETY: the caller guarantees room for one pointer per rank, and `base_ptrs` is not null.
        unsafe { *base_ptrs.add(rank) = part.address() as *mut c_void };
    }
    engine.release_if_empty(segment)
}

/// `ARMCI_Free`, which names no group: frees over the group of the segment that begins at `ptr` on
/// this rank, and over the world group if `ptr` is null or no segment begins there. In the latter
/// case `release_at` reports the faulty rank.
///
/// A rank without bytes of a group's segment passes null, so it would wait for the world group
/// while the others wait for it. The ranks with bytes see that it has none, and end the job.
fn free(call: &'static str, engine: &Engine, ptr: *mut c_void) -> Result<()> {
    let segment = engine.memory.segment_at(ptr as usize).filter(|_| !ptr.is_null());
    let Some(segment) = segment else {
        return engine.release_at(engine.world(), own(ptr));
    };
    let group = segment.group();
    let empty = || (0..group.size()).find(|&rank| segment.len_at(rank) == 0);
    if !Arc::ptr_eq(group, engine.world())
        && let Some(rank) = empty()
    {
        let text = format!(
            "{call}: {ptr:p} is the segment of a group of {} ranks, of which rank {} has no bytes \
             and cannot name it; call ARMCI_Free_group on all ranks of the group",
            group.size(),
            group.members()[rank]
        );
        abort(&text, ErrorKind::Argument.code());
    }
    engine.release_at(group, own(ptr))
}

fn own(ptr: *mut c_void) -> Option<usize> {
    (!ptr.is_null()).then_some(ptr as usize)
}

export! {
    ARMCI_Malloc / PARMCI_Malloc(base_ptrs: *mut *mut c_void, size: ArmciSize) -> c_int =
        // SAFETY: the caller guarantees that `base_ptrs` has room for one pointer per rank.
        code(|engine| unsafe { allocate(engine, engine.world(), base_ptrs, size) });

    ARMCI_Free / PARMCI_Free(ptr: *mut c_void) -> c_int =
        code(|engine| free("ARMCI_Free", engine, ptr));

    /// `ptr_arr` must have room for one pointer per rank of the group, and `group` must be valid.
    ARMCI_Malloc_group(
        ptr_arr: *mut *mut c_void, bytes: ArmciSize, group: *mut ArmciGroup,
    ) -> c_int =
        // SAFETY: by contract, `ptr_arr` has room for the group's ranks, and `group` is valid.
        code(|engine| unsafe {
            allocate(engine, &group_table::find(engine, group)?, ptr_arr, bytes)
        });

    ARMCI_Free_group(ptr: *mut c_void, group: *mut ArmciGroup) -> c_int = code(|engine| {
        // SAFETY: the caller guarantees that `group` is valid.
        let group = unsafe { group_table::find(engine, group) }?;
        engine.release_at(&group, own(ptr))
    });
}

/// Accepts any device name, but has only ordinary memory, so another name is logged.
///
/// # Safety
/// `device` must be null or a terminated string.
unsafe fn device(device: *const c_char) -> Result<()> {
    // SAFETY: the caller guarantees that `device` is null or a terminated string.
    let name = unsafe { crate::boundary::text(device) };
    if !matches!(name.as_str(), "" | "dram" | "DRAM" | "default") {
        log::info!("memory on device {name:?} was requested; ordinary host memory is used instead");
    }
    Ok(())
}

export! {
    ARMCI_Malloc_memdev / PARMCI_Malloc_memdev(
        ptr_arr: *mut *mut c_void, bytes: ArmciSize, device_name: *const c_char,
    ) -> c_int =
        // SAFETY: by contract, `ptr_arr` has room, and `device_name` is null or terminated.
        code(|engine| unsafe {
            device(device_name)?;
            allocate(engine, engine.world(), ptr_arr, bytes)
        });

    ARMCI_Malloc_group_memdev / PARMCI_Malloc_group_memdev(
        ptr_arr: *mut *mut c_void, bytes: ArmciSize, group: *mut ArmciGroup,
        device_name: *const c_char,
    ) -> c_int =
        // SAFETY: the caller guarantees that `ptr_arr` has room for the group's ranks, that `group`
        // is valid, and that `device_name` is null or a terminated string.
        code(|engine| unsafe {
            device(device_name)?;
            allocate(engine, &group_table::find(engine, group)?, ptr_arr, bytes)
        });

    ARMCI_Free_memdev / PARMCI_Free_memdev(ptr: *mut c_void) -> c_int =
        code(|engine| free("ARMCI_Free_memdev", engine, ptr));

    ARMCI_Malloc_local / PARMCI_Malloc_local(size: ArmciSize) -> *mut c_void {
        let failed = |error: &portolan_base::error::Error| {
            reported(error);
            std::ptr::null_mut()
        };
        guard("ARMCI_Malloc_local", failed, || {
            Ok(current()?.memory.local.allocate(bytes(size)?)?.cast())
        })
    }

    ARMCI_Free_local / PARMCI_Free_local(ptr: *mut c_void) -> c_int =
        code(|engine| engine.memory.local.free(ptr.cast()));
}

/// Synchronises local loads and stores with transfers. Fails if `ptr` lies in no segment here.
fn access(engine: &Engine, ptr: *mut c_void) -> Result<()> {
    // A length of zero would also fit at the end of the preceding segment.
    let hit = engine.memory.registry.find(engine.rank(), ptr as usize, 1)?;
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    match hit.arena().window() {
        Some(window) => window.sync(),
        None => Ok(()),
    }
}

export! {
    ARMCI_Access_begin / PARMCI_Access_begin(ptr: *mut c_void) =
        or_abort(|engine| access(engine, ptr));

    ARMCI_Access_end / PARMCI_Access_end(ptr: *mut c_void) = or_abort(|engine| access(engine, ptr));

    /// `src` and `dst` must be valid for `size` bytes.
    ARMCI_Copy(src: *mut c_void, dst: *mut c_void, size: c_int) = or_abort(|_| {
        let bytes = super::types::length(size)?;
        if bytes > 0 {
            if src.is_null() || dst.is_null() {
                fail!(Argument, "null address for a copy of {bytes} bytes");
            }
            // SAFETY: the caller guarantees that `src` and `dst` are valid for `size` bytes.
            unsafe { kernel::copy_block(src.cast(), dst.cast(), bytes) };
        }
        Ok(())
    });
}
