//! Bulk transfers. Their callbacks run in trigger.

use super::bulk_handle::check;
use super::operations::Operations;
use super::types::{BulkInfo, CB_BULK, Callback, Caller, HgCallback, InfoOf};
use crate::mercury::interface::calls;
use crate::mercury::objects::address;
use crate::mercury::objects::bulk::{BULKS, direction};
use crate::mercury::objects::class::count;
use crate::mercury::objects::context::CONTEXTS;
use crate::mercury::table::Token;
use portolan_rpc::failure::{Result, refuse};
use portolan_rpc::na::Part;
use std::os::raw::{c_int, c_void};

static OPERATIONS: Operations = Operations::new(0x46);

type Side = (Token, u64);

/// # Safety
/// `op_id` must be null, `HG_OP_ID_IGNORE` or valid for a write.
unsafe fn transfer(
    context: Token,
    (callback, arg): (HgCallback, *mut c_void),
    op: c_int,
    addr: Option<Token>,
    ((origin_handle, origin_offset), (local_handle, local_offset)): (Side, Side),
    size: u64,
    op_id: *mut Token,
) -> Result<()> {
    let held = CONTEXTS.get(context)?;
    let (origin, local) = (BULKS.get(origin_handle)?, BULKS.get(local_handle)?);
    let addr = match (addr, origin.bound()) {
        (Some(addr), _) => addr,
        (None, Some(bound)) => bound.addr,
        (None, None) => {
            refuse!(INVALID_ARG, "the origin's handle carries no address: it was not bound")
        }
    };
    let address = address::get(addr)?;
    let direction = direction(op)?;
    let theirs = origin.bulk.permission().allows(direction);
    if !theirs || !local.bulk.permission().allows(direction.turned()) {
        let which = if theirs { "local" } else { "origin's" };
        refuse!(PERMISSION, "the {which} handle does not permit this transfer");
    }
    let (origin_offset, len) = check(&origin, origin_offset, size)?;
    let (local_offset, _) = check(&local, local_offset, size)?;
    let info = InfoOf { bulk: BulkInfo { origin_handle, local_handle, op, size } };
    let caller = Caller { callback: Callback::Hg(callback), arg, kind: CB_BULK, info };
    let ours = Part { mem: local.bulk.mem(), offset: local_offset };
    let theirs = Part { mem: origin.bulk.mem(), offset: origin_offset };
    let (towards, notify) = ((direction, &address), move |status| caller.notify(status));
    // SAFETY: by this function's contract, `op_id` is null, ignored or valid for a write.
    unsafe {
        OPERATIONS.begin(&held.context.shared, towards, (ours, theirs), len, notify, op_id)?;
    }
    count(&held.class.counts.bulk);
    Ok(())
}

calls! { V2_4:
    HG_Bulk_transfer(
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
        let sides = ((origin_handle, origin_offset), (local_handle, local_offset));
        // SAFETY: by the call's contract, `op_id` is null, ignored or valid for a write.
        unsafe { transfer(context, (callback, arg), op, Some(origin_addr), sides, size, op_id) }
    }

    /// Transfers with the origin that `origin_handle` is bound to.
    HG_Bulk_bind_transfer(
        context: Token,
        callback: HgCallback,
        arg: *mut c_void,
        op: c_int,
        origin_handle: Token,
        origin_offset: u64,
        local_handle: Token,
        local_offset: u64,
        size: u64,
        op_id: *mut Token,
    ) {
        let sides = ((origin_handle, origin_offset), (local_handle, local_offset));
        // SAFETY: by the call's contract, `op_id` is null, ignored or valid for a write.
        unsafe { transfer(context, (callback, arg), op, None, sides, size, op_id) }
    }

    /// Ignores the number of the origin's context: all contexts of a process share its memory.
    HG_Bulk_transfer_id(
        context: Token,
        callback: HgCallback,
        arg: *mut c_void,
        op: c_int,
        origin_addr: Token,
        _origin_id: u8,
        origin_handle: Token,
        origin_offset: u64,
        local_handle: Token,
        local_offset: u64,
        size: u64,
        op_id: *mut Token,
    ) {
        let sides = ((origin_handle, origin_offset), (local_handle, local_offset));
        // SAFETY: by the call's contract, `op_id` is null, ignored or valid for a write.
        unsafe { transfer(context, (callback, arg), op, Some(origin_addr), sides, size, op_id) }
    }

    HG_Bulk_cancel(op_id: Token) { OPERATIONS.cancel(op_id) }
}
