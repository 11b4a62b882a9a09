//! The handle calls of Mercury 2, for calls at the origin and at the target. The calls for inputs
//! are in [`hg1_server`](super::hg1_server).

use super::callbacks::{CB_FORWARD, CB_RESPOND, Caller, HgCallback, HgInfo, HgInfoOf};
use super::entry::place;
use super::handles::{End, Flight, HANDLES, HandleEntry, hold_end};
use super::interface::{Interface::V1, calls};
use super::objects::address;
use super::objects::attached::{Attached, FreeCallback};
use super::objects::class::unknown;
use super::objects::context::CONTEXTS;
use super::params;
use super::table::Token;
use portolan_rpc::failure::{Result, Status, refuse};
use portolan_rpc::hg::origin::Origin;
use std::os::raw::{c_int, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn origin(handle: Token) -> Result<Arc<Origin>> {
    origin_of(&*HANDLES.get(handle)?).cloned()
}

fn origin_of(held: &HandleEntry) -> Result<&Arc<Origin>> {
    match &held.end {
        End::Origin(origin) => Ok(origin),
        End::Target(_) => {
            refuse!(
                INVALID_ARG,
                "the handle is for a call that this process serves, not for one that it made"
            )
        }
    }
}

calls! { V1:
    /// If the address is null or the number is 0, [`HG_Reset`] sets it later.
    HG_Create(context: Token, addr: Token, id: u32, handle: *mut Token) {
        let found = CONTEXTS[V1].get(context)?;
        let address = if addr.is_null() { None } else { Some(address::get(V1, addr)?) };
        // SAFETY: by the call's contract, `handle` is null or valid for writes.
        let to = unsafe { place(handle, "handle") }?;
        let function = match id {
            0 => None,
            id => Some(found.class.short_numbered(id)?),
        };
        let origin = Origin::blank(&found.context.shared, address, function);
        *to = hold_end(End::Origin(origin));
        Ok(())
    }

    /// The callback of a call in progress still receives the handle, which is freed afterwards. A
    /// call that was not answered fails at its origin.
    HG_Destroy(handle: Token) {
        if !handle.is_null() {
            HANDLES.remove_if(handle, |held| held.let_go())?.inspect(|held| held.free_address());
        }
        Ok(())
    }

    /// A null address or the number 0 keeps the present one.
    HG_Reset(handle: Token, addr: Token, id: u32) {
        let held = HANDLES.get(handle)?;
        let origin = origin(handle)?;
        let address = if addr.is_null() { origin.address() } else { Some(address::get(V1, addr)?) };
        let function = match id {
            0 => origin.function(),
            id => origin.context().class.functions.get(id).ok_or_else(|| unknown(id.into()))?,
        };
        origin.reset(address, function)?;
        held.free_address();
        Ok(())
    }

    HG_Ref_incr(handle: Token) {
        HANDLES.get(handle)?.references.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    HG_Ref_get(handle: Token) -> c_int, 0, {
        Ok(HANDLES.get(handle)?.references.load(Ordering::Acquire))
    }

    /// The result is valid until the handle is reset or freed.
    HG_Get_info(handle: Token) -> *const HgInfo, ptr::null(), {
        let held = HANDLES.get(handle)?;
        let id = match &held.end {
            End::Target(target) => target.function().id,
            End::Origin(origin) => origin.function().id,
        };
        let addr = held.address();
        let mut info = held.info.lock();
        let info = info.get_or_insert_with(|| {
            let (hg_class, context) = held.class_and_context();
            Box::new(HgInfo { hg_class, context, addr, context_id: 0, id })
        });
        Ok(&raw const **info)
    }

    /// Data that was attached before is freed.
    HG_Set_data(handle: Token, data: *mut c_void, free_callback: FreeCallback) {
        // If the handle is invalid, the data stays the caller's and is not freed.
        let held = HANDLES.get(handle)?;
        Attached::replace(&held.data, Attached::new(data, free_callback));
        Ok(())
    }

    HG_Get_data(handle: Token) -> *mut c_void, ptr::null_mut(), {
        let data = HANDLES.get(handle)?.data.lock().data();
        Ok(data)
    }

    HG_Get_output(handle: Token, out_struct: *mut c_void) {
        let origin = origin(handle)?;
        let procs = params::procs(&origin.function());
        let body = origin.output()?;
        let method = origin.context().class.method;
        // SAFETY: by contract, `out_struct` is null or the struct that the output proc expects.
        unsafe { params::decode(procs.output, &body, method, out_struct) }
    }

    HG_Free_output(handle: Token, out_struct: *mut c_void) {
        let procs = params::procs(&origin(handle)?.function());
        if out_struct.is_null() && procs.output.is_some() {
            refuse!(INVALID_ARG, "the struct of the output is null");
        }
        // SAFETY: by the call's contract, `out_struct` is null or was decoded by the output proc.
        unsafe { params::free(procs.output, out_struct) };
        Ok(())
    }

    HG_Forward_handle(
        handle: Token,
        callback: HgCallback,
        arg: *mut c_void,
        in_struct: *mut c_void,
    ) {
        let held = HANDLES.get(handle)?;
        let origin = origin_of(&held)?;
        let procs = params::procs(&origin.function());
        let caller = Caller { callback, arg, kind: CB_FORWARD, info: HgInfoOf { handle } };
        let flight = Flight::of(handle, &held);
        let then = Box::new(move |origin: &Arc<Origin>| {
            caller.notify(origin.status());
            drop(flight);
        });
        // SAFETY: by contract, `in_struct` is null or what the proc expects. The closure runs
        // before `forward` returns.
        origin.forward(unsafe { params::encoder(procs.input, in_struct) }, Some(then))
    }

    /// The callback runs when the answer has been sent or, if it is long, pulled by the origin.
    HG_Respond(handle: Token, callback: HgCallback, arg: *mut c_void, out_struct: *mut c_void) {
        let held = HANDLES.get(handle)?;
        let target = held.target()?;
        let procs = params::procs(target.function());
        let caller = Caller { callback, arg, kind: CB_RESPOND, info: HgInfoOf { handle } };
        let flight = Flight::of(handle, &held);
        let then: Option<Box<dyn FnOnce() + Send>> = callback.map(|_| {
            let then = move || {
                caller.notify(Status::SUCCESS);
                drop(flight);
            };
            Box::new(then) as _
        });
        // SAFETY: by contract, `out_struct` is null or what the proc expects. The closure runs
        // before `answer` returns.
        target.answer(unsafe { params::encoder(procs.output, out_struct) }, then)
    }

    /// Cancels a call. Its callback receives `HG_CANCELED`. The server may still run the call.
    HG_Cancel(handle: Token) {
        origin(handle)?.cancel();
        Ok(())
    }
}
