//! Handles: creation, reference counts, reset and attached data.

use crate::mercury::entry::place;
use crate::mercury::interface::calls;
use crate::mercury::objects::address;
use crate::mercury::objects::attached::{Attached, FreeCallback};
use crate::mercury::objects::context::CONTEXTS;
use crate::mercury::objects::handle::{HANDLES, HgInfo, keep, release};
use crate::mercury::objects::references::References;
use crate::mercury::table::Token;
use portolan_rpc::failure::Result;
use std::os::raw::c_void;
use std::ptr;

/// # Safety
/// `handle` must be null or valid for a write.
unsafe fn create(context: Token, addr: Token, id: u64, handle: *mut Token) -> Result<()> {
    let held = CONTEXTS.get(context)?;
    // SAFETY: by this function's contract, `handle` is null or valid for a write.
    let to = unsafe { place(handle, "handle") }?;
    if id != 0 {
        held.class.function(id)?;
    }
    if !addr.is_null() {
        address::share(addr)?;
    }
    let (class, shared) = (held.class.clone(), held.context.shared.clone());
    let tokens = (held.class_token.token(), context);
    let on_create = *held.on_create.lock();
    let programs = (on_create, References::of_program());
    *to = keep(class, tokens, shared, None, programs, (addr, id, 0))?;
    Ok(())
}

calls! { V2_4:
    /// A null address or an `id` of 0 can be set later by a reset.
    HG_Create | HG_Core_create(context: Token, addr: Token, id: u64, handle: *mut Token) {
        // SAFETY: by the call's contract, `handle` is null or valid for a write.
        unsafe { create(context, addr, id, handle) }
    }

    /// If a call is never answered, the program may also drop the reference of the response.
    HG_Destroy | HG_Core_destroy(handle: Token) { release(handle) }

    /// A null address or an `id` of 0 keeps the current one. Fails if a call is under way.
    HG_Reset | HG_Core_reset(handle: Token, addr: Token, id: u64) {
        let held = HANDLES.get(handle)?;
        held.reset(addr, id)?;
        held.release_data(handle);
        Ok(())
    }

    HG_Ref_incr | HG_Core_ref_incr(handle: Token) {
        HANDLES.get(handle)?.references.hold();
        Ok(())
    }

    /// Counts as 2.4 does. Returns -1 if the handle is invalid.
    HG_Ref_get | HG_Core_ref_get(handle: Token) -> i32, -1, {
        Ok(HANDLES.get(handle)?.references.count())
    }

    /// Returns null if the handle is invalid. The pointer is valid until the handle is freed.
    HG_Get_info | HG_Core_get_info(handle: Token) -> *const HgInfo, ptr::null(), {
        let held = HANDLES.get(handle)?;
        held.address();
        let info: *const HgInfo = &*held.info.lock();
        Ok(info)
    }

    /// Attaches data that `free` gets when the handle is freed. Data attached before is not freed.
    HG_Set_data | HG_Core_set_data(handle: Token, data: *mut c_void, free: FreeCallback) {
        Attached::overwrite(&HANDLES.get(handle)?.data, Attached::new(data, free));
        Ok(())
    }

    HG_Get_data | HG_Core_get_data(handle: Token) -> *mut c_void, ptr::null_mut(), {
        let data = HANDLES.get(handle)?.data.lock().data();
        Ok(data)
    }

    HG_Core_get_rpc_data(handle: Token) -> *const c_void, ptr::null(), {
        let held = HANDLES.get(handle)?;
        let id = held.info.lock().id;
        Ok(held.class.function_data(id).cast_const())
    }

    /// Sets the number of the target's context that runs the calls.
    HG_Set_target_id | HG_Core_set_target_id(handle: Token, id: u8) {
        HANDLES.get(handle)?.info.lock().context_id = id;
        Ok(())
    }
}
