//! The bulk calls of Mercury 2: the calls of 2013 under other names, reference counts, and
//! transfers with a callback, which can be cancelled.

use super::callbacks::{BulkInfo, CB_BULK, Caller, HgCallback, HgInfoOf};
use super::interface::{Interface::V1, calls};
use super::objects::address;
use super::objects::bulk::{self, BULKS};
use super::objects::class::CLASSES;
use super::objects::context::CONTEXTS;
use super::operations::Operations;
use super::table::Token;
use portolan_rpc::na::Part;
use std::os::raw::{c_int, c_ulong, c_void};

static OPERATIONS: Operations = Operations::new(0x33);

calls! { V1:
    HG_Bulk_create(
        hg_class: Token,
        count: u32,
        buf_ptrs: *mut *mut c_void,
        buf_sizes: *const u64,
        flags: u8,
        handle: *mut Token,
    ) {
        CLASSES[V1].get(hg_class)?;
        let segments = (buf_ptrs, buf_sizes.cast());
        // SAFETY: by contract, the arrays have `count` elements, `handle` is null or valid, and the
        // segments allow the access in `flags`. A `u64` and a `usize` both have 8 bytes.
        unsafe { bulk::create(V1, hg_class, count as usize, segments, flags.into(), handle) }
    }

    HG_Bulk_free(handle: Token) { bulk::release(V1, handle) }

    HG_Bulk_ref_incr(handle: Token) {
        BULKS[V1].get(handle)?.hold();
        Ok(())
    }

    HG_Bulk_access(
        handle: Token,
        offset: u64,
        size: u64,
        _flags: u8,
        max_count: u32,
        buf_ptrs: *mut *mut c_void,
        buf_sizes: *mut u64,
        actual_count: *mut u32,
    ) {
        let (range, to) = ((offset as usize, size as usize), (buf_ptrs, buf_sizes.cast()));
        // SAFETY: by the call's contract, the arrays are null or have `max_count` elements, and
        // `actual_count` is null or valid. A `u64` and a `usize` both have 8 bytes.
        unsafe { bulk::access(V1, handle, range, max_count, to, actual_count) }
    }

    HG_Bulk_get_size(handle: Token) -> u64, 0, { Ok(BULKS[V1].get(handle)?.bulk.len() as u64) }

    HG_Bulk_get_segment_count(handle: Token) -> u32, 0, {
        Ok(BULKS[V1].get(handle)?.bulk.segments() as u32)
    }

    HG_Bulk_get_serialize_size(handle: Token, _flags: c_ulong) -> u64, 0, {
        Ok(BULKS[V1].get(handle)?.serialized_len(false) as u64)
    }

    HG_Bulk_serialize(buf: *mut c_void, buf_size: u64, _flags: c_ulong, handle: Token) {
        // SAFETY: by the call's contract, `buf` is null or valid for writes of `buf_size` bytes.
        unsafe { bulk::serialize(V1, buf, buf_size, false, handle) }
    }

    HG_Bulk_deserialize(
        hg_class: Token,
        handle: *mut Token,
        buf: *const c_void,
        buf_size: u64,
    ) {
        CLASSES[V1].get(hg_class)?;
        // SAFETY: by contract, `handle` is null or valid, `buf` null or has `buf_size` bytes.
        unsafe { bulk::deserialize(V1, hg_class, handle, (buf, buf_size as usize)) }
    }

    HG_Bulk_transfer_cb(
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
    ) {
        let held = CONTEXTS[V1].get(context)?;
        let address = address::get(V1, origin_addr)?;
        let (origin, local) = (BULKS[V1].get(origin_handle)?, BULKS[V1].get(local_handle)?);
        let info = HgInfoOf { bulk: BulkInfo { origin_handle, local_handle, op, size } };
        let caller = Caller { callback, arg, kind: CB_BULK, info };
        let ours = Part { mem: local.bulk.mem(), offset: local_offset as usize };
        let theirs = Part { mem: origin.bulk.mem(), offset: origin_offset as usize };
        let towards = (bulk::direction(op)?, &address);
        let (size, notify) = (size as usize, move |status| caller.notify(status));
        // SAFETY: by the call's contract, `op_id` is null, `HG_OP_ID_IGNORE` or valid for a write.
        unsafe {
            OPERATIONS.begin(&held.context.shared, towards, (ours, theirs), size, notify, op_id)
        }
    }

    HG_Bulk_cancel(op_id: Token) { OPERATIONS.cancel(op_id) }
}
