//! Bulk handles. Unlike those of 2013, they can be bound to an address.

use super::types::BulkAttr;
use crate::mercury::interface::calls;
use crate::mercury::objects::bulk::{self, BULKS, HeldBulk};
use crate::mercury::objects::class::CLASSES;
use crate::mercury::table::Token;
use portolan_rpc::failure::{Result, refuse};
use std::os::raw::{c_ulong, c_void};
use std::ptr;

/// The accepted memory types: `HG_MEM_TYPE_HOST` and `HG_MEM_TYPE_UNKNOWN`.
pub(super) const HOST: [i32; 2] = [0, 4];

/// `HG_BULK_EAGER`: the serialised form of memory that others only read contains its bytes.
const EAGER: c_ulong = 4;

/// Returns a range in bytes as `usize`. Fails with `INVALID_ARG` if it exceeds the memory.
pub(super) fn check(held: &HeldBulk, offset: u64, size: u64) -> Result<(usize, usize)> {
    let len = held.bulk.len() as u64;
    if offset.checked_add(size).is_none_or(|end| end > len) {
        refuse!(INVALID_ARG, "{size} bytes at {offset} are past the end of {len} bytes");
    }
    Ok((offset as usize, size as usize))
}

/// # Safety
/// The requirements of [`bulk::create`] apply.
unsafe fn create(
    class: Token,
    count: u32,
    (ptrs, sizes): (*mut *mut c_void, *const u64),
    flags: u8,
    handle: *mut Token,
) -> Result<()> {
    CLASSES.get(class)?;
    // SAFETY: by contract, the arguments suit `bulk::create`. A `u64` and a `usize` have 8 bytes.
    unsafe { bulk::create(class, count as usize, (ptrs, sizes.cast()), flags.into(), handle) }
}

calls! { V2_4:
    HG_Bulk_create(
        class: Token,
        count: u32,
        ptrs: *mut *mut c_void,
        sizes: *const u64,
        flags: u8,
        handle: *mut Token,
    ) {
        // SAFETY: by the call's contract, the arrays have `count` elements, `handle` is null or
        // valid, and the segments allow the access in `flags`.
        unsafe { create(class, count, (ptrs, sizes), flags, handle) }
    }

    /// Like `HG_Bulk_create`, with attributes. Only host memory is supported.
    HG_Bulk_create_attr(
        class: Token,
        count: u32,
        ptrs: *mut *mut c_void,
        sizes: *const u64,
        flags: u8,
        attrs: *const BulkAttr,
        handle: *mut Token,
    ) {
        // SAFETY: by the call's contract, `attrs` is null or valid for reads.
        if let Some(attrs) = unsafe { attrs.as_ref() }
            && !HOST.contains(&attrs.mem_type)
        {
            refuse!(
                OPNOTSUPPORTED,
                "memory of type {} is not supported; only host memory is",
                attrs.mem_type
            );
        }
        // SAFETY: by the call's contract, the arrays have `count` elements, `handle` is null or
        // valid, and the segments allow the access in `flags`.
        unsafe { create(class, count, (ptrs, sizes), flags, handle) }
    }

    HG_Bulk_free(handle: Token) { bulk::release(handle) }

    HG_Bulk_ref_incr(handle: Token) {
        BULKS.get(handle)?.hold();
        Ok(())
    }

    /// The serialised form then carries both the address and the number of the context.
    HG_Bulk_bind(handle: Token, context: Token) { bulk::bind(handle, context) }

    /// Returns the address that a handle is bound to, which is freed with the handle, or null.
    HG_Bulk_get_addr(handle: Token) -> Token, ptr::null_mut(), {
        Ok(BULKS.get(handle)?.bound().map_or(ptr::null_mut(), |bound| bound.addr))
    }

    HG_Bulk_get_context_id(handle: Token) -> u8, 0, {
        Ok(BULKS.get(handle)?.bound().map_or(0, |bound| bound.context))
    }

    /// A range that exceeds the memory ends with it. If `size` or `most` is 0, nothing is written.
    HG_Bulk_access(
        handle: Token,
        offset: u64,
        size: u64,
        _flags: u8,
        most: u32,
        ptrs: *mut *mut c_void,
        sizes: *mut u64,
        actual: *mut u32,
    ) {
        let held = BULKS.get(handle)?;
        if size == 0 || most == 0 {
            return held.bulk.access(0, 0).map(drop);
        }
        let rest = (held.bulk.len() as u64).saturating_sub(offset).max(1);
        let range = check(&held, offset, size.min(rest))?;
        // SAFETY: by the call's contract, the arrays are null or have `most` elements, and `actual`
        // is null or valid. A `u64` and a `usize` both have 8 bytes.
        unsafe { bulk::access(handle, range, most, (ptrs, sizes.cast()), actual) }
    }

    HG_Bulk_get_size(handle: Token) -> u64, 0, { Ok(BULKS.get(handle)?.bulk.len() as u64) }

    HG_Bulk_get_segment_count(handle: Token) -> u32, 0, {
        Ok(BULKS.get(handle)?.bulk.segments() as u32)
    }

    HG_Bulk_get_flags(handle: Token) -> u8, 0, {
        Ok(BULKS.get(handle)?.bulk.permission().flags())
    }

    HG_Bulk_get_serialize_size(handle: Token, flags: c_ulong) -> u64, 0, {
        Ok(BULKS.get(handle)?.serialized_len(flags & EAGER != 0) as u64)
    }

    HG_Bulk_serialize(buf: *mut c_void, buf_size: u64, flags: c_ulong, handle: Token) {
        // SAFETY: by the call's contract, `buf` is null or valid for writes of `buf_size` bytes.
        unsafe { bulk::serialize(buf, buf_size, flags & EAGER != 0, handle) }
    }

    HG_Bulk_deserialize(class: Token, handle: *mut Token, buf: *const c_void, buf_size: u64) {
        CLASSES.get(class)?; // without a class, this would be a handle of 2013
        // SAFETY: by contract, `handle` is null or valid, `buf` null or has `buf_size` bytes.
        unsafe { bulk::deserialize(class, handle, (buf, buf_size as usize)) }
    }
}
