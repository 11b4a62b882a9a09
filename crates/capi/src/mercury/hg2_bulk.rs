//! The bulk calls of Mercury 2: the calls of 2013 under other names, reference counts, and
//! transfers with a callback, which can be cancelled.

use super::bulk::{self, BULKS};
use super::callbacks::{BulkInfo, CB_BULK, Caller, HgCallback, HgInfoOf};
use super::face::{code, value};
use super::operations::Operations;
use super::table::{ADDRESSES, HG_CLASSES, HG_CONTEXTS, Token};
use portolan_rpc::na::Part;
use std::os::raw::{c_int, c_ulong, c_void};
use std::sync::atomic::Ordering;

/// Creates a bulk handle over segments. If `buf_ptrs` is null, allocates zeroed memory that is
/// freed with the handle.
///
/// # Safety
/// The requirements of `HG_Bulk_handle_create` apply.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Bulk_create(
    hg_class: Token,
    count: u32,
    buf_ptrs: *mut *mut c_void,
    buf_sizes: *const u64,
    flags: u8,
    handle: *mut Token,
) -> c_int {
    code("HG_Bulk_create", || {
        HG_CLASSES.get(hg_class)?;
        // SAFETY: the caller guarantees what `create` requires. `u64` and `usize` both have 8
        // bytes, so the cast of `buf_sizes` is sound.
        unsafe {
            bulk::create(count as usize, buf_ptrs, buf_sizes.cast(), u64::from(flags), handle)
        }
    })
}

/// Drops one reference. The last one frees the handle. Null is ignored.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Bulk_free(handle: Token) -> c_int {
    code("HG_Bulk_free", || bulk::release(handle))
}

/// Adds one reference.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Bulk_ref_incr(handle: Token) -> c_int {
    code("HG_Bulk_ref_incr", || {
        BULKS.get(handle)?.references.fetch_add(1, Ordering::AcqRel);
        Ok(())
    })
}

/// Reports the segments of a range of a local handle, as `HG_Bulk_handle_access` does.
///
/// # Safety
/// The requirements of `HG_Bulk_handle_access` apply.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Bulk_access(
    handle: Token,
    offset: u64,
    size: u64,
    _flags: u8,
    max_count: u32,
    buf_ptrs: *mut *mut c_void,
    buf_sizes: *mut u64,
    actual_count: *mut u32,
) -> c_int {
    let range = (offset as usize, size as usize);
    // SAFETY: the caller guarantees what `access` requires. `u64` and `usize` both have 8 bytes, so
    // the cast of `buf_sizes` is sound.
    unsafe {
        bulk::access(
            "HG_Bulk_access",
            handle,
            range,
            max_count,
            (buf_ptrs, buf_sizes.cast()),
            actual_count,
        )
    }
}

/// Returns the total size of the segments in bytes, or 0 if the handle is invalid.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Bulk_get_size(handle: Token) -> u64 {
    value("HG_Bulk_get_size", |_| 0, || Ok(BULKS.get(handle)?.bulk.len() as u64))
}

/// Returns the number of segments, or 0 if the handle is invalid.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Bulk_get_segment_count(handle: Token) -> u32 {
    value("HG_Bulk_get_segment_count", |_| 0, || Ok(BULKS.get(handle)?.bulk.segments() as u32))
}

/// Returns the size of the serialised handle in bytes, or 0 if the handle is invalid.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Bulk_get_serialize_size(handle: Token, _flags: c_ulong) -> u64 {
    value("HG_Bulk_get_serialize_size", |_| 0, || Ok(BULKS.get(handle)?.bulk.encoded_len() as u64))
}

/// Serialises a handle to `buf`. Returns `HG_OVERFLOW` if the handle does not fit.
///
/// # Safety
/// `buf` must be null or valid for writes of `buf_size` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Bulk_serialize(
    buf: *mut c_void,
    buf_size: u64,
    _flags: c_ulong,
    handle: Token,
) -> c_int {
    // SAFETY: the caller guarantees that `buf` is null or valid for writes of `buf_size` bytes.
    code("HG_Bulk_serialize", || unsafe { bulk::serialize(buf, buf_size, handle) })
}

/// Creates a handle from its serialised form.
///
/// # Safety
/// `buf` must be null or valid for reads of `buf_size` bytes. `handle` must be null or valid for
/// writes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Bulk_deserialize(
    hg_class: Token,
    handle: *mut Token,
    buf: *const c_void,
    buf_size: u64,
) -> c_int {
    code("HG_Bulk_deserialize", || {
        HG_CLASSES.get(hg_class)?;
        // SAFETY: the caller guarantees what `deserialize` requires of `buf` and `handle`.
        unsafe { bulk::deserialize(handle, buf, buf_size as usize) }
    })
}

/// Begins a transfer. The callback runs in `HG_Trigger` when the transfer has ended.
///
/// # Safety
/// `op_id` must be null, `HG_OP_ID_IGNORE` or valid for writes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Bulk_transfer_cb(
    context: Token,
    callback: HgCallback,
    arg: *mut c_void,
    op: c_int,
    origin_addr: Token,
    origin_handle: Token,
    origin_offset: u64,
    local_handle: Token,
    local_offset: u64,
    size: u64,
    op_id: *mut Token,
) -> c_int {
    code("HG_Bulk_transfer_cb", || {
        let (_, context) = HG_CONTEXTS.get(context)?;
        let address = ADDRESSES.get(origin_addr)?;
        let (origin, local) = (BULKS.get(origin_handle)?, BULKS.get(local_handle)?);
        let info = HgInfoOf { bulk: BulkInfo { origin_handle, local_handle, op, size } };
        let caller = Caller { callback, arg, kind: CB_BULK, info };
        let ours = Part { mem: local.bulk.mem(), offset: local_offset as usize };
        let theirs = Part { mem: origin.bulk.mem(), offset: origin_offset as usize };
        let towards = (bulk::direction(op)?, &address);
        let (size, tell) = (size as usize, move |status| caller.tell(status));
        // SAFETY: the caller guarantees that `op_id` is null, `HG_OP_ID_IGNORE` or valid for
        // writes.
        unsafe { OPERATIONS.begin(&context.shared, towards, (ours, theirs), size, tell, op_id) }
    })
}

static OPERATIONS: Operations = Operations::new(0x33);

/// Cancels a transfer. Its callback receives `HG_CANCELED`. A transfer that has ended is not
/// affected.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Bulk_cancel(op_id: Token) -> c_int {
    code("HG_Bulk_cancel", || OPERATIONS.cancel(op_id))
}
