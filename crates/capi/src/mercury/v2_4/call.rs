//! Forward, respond and cancel.
//!
//! A forwarded call, and a response with a callback, hold a reference until the callback has run.

use super::more_data;
use super::params::{Payload, encoder};
use super::types::{CB_FORWARD, CB_RESPOND, Callback, Caller, CoreCallback, HgCallback, InfoOf};
use crate::mercury::interface::calls;
use crate::mercury::objects::class::count;
use crate::mercury::objects::handle::{End, HANDLES, release};
use crate::mercury::params::Which;
use crate::mercury::table::{Number, Token};
use portolan_rpc::failure::{Result, Status, refuse};
use portolan_rpc::hg::class::OnAnswered;
use portolan_rpc::hg::origin::Origin;
use scopeguard::{ScopeGuard, defer, guard};
use std::os::raw::c_void;
use std::sync::Arc;

/// `HG_CORE_MORE_DATA`.
const MORE_DATA: u8 = 1;

fn let_go(handle: Token) {
    // This cannot fail: the reference that is dropped keeps the handle in the table.
    let _ = release(handle);
}

/// # Safety
/// A `Payload::Struct` must be null or the struct that the function's proc expects.
unsafe fn forward(
    handle: Token,
    callback: Callback,
    arg: *mut c_void,
    payload: Payload,
    more: bool,
) -> Result<()> {
    let held = HANDLES.get(handle)?;
    let origin = held.origin()?;
    // The first check takes no lock. Few programs acquire more data.
    if held.acquisition.is_acquired() && held.acquisition.is_under_way() {
        refuse!(BUSY, "the handle's call is under way; wait for its callback");
    }
    let function = origin.prepare(held.target_context(), more)?;
    held.release_data(handle);
    held.forget_answer();
    let caller = Caller { callback, arg, kind: CB_FORWARD, info: InfoOf { handle } };
    let (of, class) = (Number::of(handle), held.class.clone());
    let then = Box::new(move |origin: &Arc<Origin>| {
        let ending = origin.ending();
        if let Ok(held) = HANDLES.get(of.token()) {
            held.end_loans();
        }
        if ending.answered {
            count(&class.counts.resp_recv);
            if ending.bytes > class.room(Which::Output) {
                count(&class.counts.resp_extra);
            }
        }
        if ending.more_output
            && let Ok(held) = HANDLES.get(of.token())
        {
            let origin = origin.clone();
            more_data::acquire(of.token(), &held, more_data::OUTPUT, move |status| {
                origin.acquired();
                defer! { let_go(of.token()) }
                caller.notify(status);
            });
            return;
        }
        defer! { let_go(of.token()) }
        caller.notify(ending.status);
    });
    held.references.hold();
    // SAFETY: by this function's contract, a struct in `payload` is null or fits the proc.
    let encode = unsafe { encoder(Which::Input, (handle, &held), &function, payload) };
    let unsent = guard((), |()| {
        held.end_loans();
        let_go(handle);
    });
    origin.forward(encode, Some(then))?;
    ScopeGuard::into_inner(unsent);
    count(&held.class.counts.req_sent);
    Ok(())
}

/// # Safety
/// A `Payload::Struct` must be null or the struct that the function's proc expects.
unsafe fn respond(
    handle: Token,
    callback: Callback,
    arg: *mut c_void,
    payload: Payload,
    more: bool,
) -> Result<()> {
    let held = HANDLES.get(handle)?;
    let target = held.target()?;
    if target.is_quiet() {
        refuse!(OPNOTSUPPORTED, "the origin wants no response for this call");
    }
    let caller = Caller { callback, arg, kind: CB_RESPOND, info: InfoOf { handle } };
    let of = Number::of(handle);
    let held_response = (!callback.is_none()).then(|| held.references.hold_response());
    let then = held_response.map(|_| {
        Box::new(move || {
            defer! { let_go(of.token()) }
            caller.notify(Status::SUCCESS);
        }) as OnAnswered
    });
    // SAFETY: by this function's contract, a struct in `payload` is null or fits the proc.
    let encode = unsafe { encoder(Which::Output, (handle, &held), target.function(), payload) };
    let unsent = guard((), |()| {
        if let Some(before) = held_response {
            held.references.response_failed(before);
        }
    });
    target.answer_with(encode, then, more)?;
    ScopeGuard::into_inner(unsent);
    if held_response.is_none() {
        held.references.answered();
    }
    count(&held.class.counts.resp_sent);
    Ok(())
}

fn cancel(handle: Token) -> Result<()> {
    match HANDLES.get(handle)?.end() {
        End::Origin(origin) => origin.cancel(),
        End::Fresh => {}
        End::Target(_) => {
            refuse!(
                OPNOTSUPPORTED,
                "the call belongs to another process; only its origin can cancel it"
            )
        }
    }
    Ok(())
}

calls! { V2_4:
    HG_Forward(handle: Token, callback: HgCallback, arg: *mut c_void, data: *mut c_void) {
        // SAFETY: by contract, `data` is null or the struct that the function's proc expects.
        unsafe { forward(handle, Callback::Hg(callback), arg, Payload::Struct(data), false) }
    }

    /// The input is the first `size` bytes of the handle's input buffer.
    HG_Core_forward(
        handle: Token,
        callback: CoreCallback,
        arg: *mut c_void,
        flags: u8,
        size: u64,
    ) {
        // SAFETY: `Payload::Raw` contains no pointer, so the contract is met.
        unsafe {
            forward(
                handle,
                Callback::Core(callback),
                arg,
                Payload::Raw(size as usize),
                flags & MORE_DATA != 0,
            )
        }
    }

    /// The callback runs when the response is sent or, if it is long, when the origin has it.
    HG_Respond(handle: Token, callback: HgCallback, arg: *mut c_void, data: *mut c_void) {
        // SAFETY: by contract, `data` is null or the struct that the function's proc expects.
        unsafe { respond(handle, Callback::Hg(callback), arg, Payload::Struct(data), false) }
    }

    /// The output is the first `size` bytes of the handle's output buffer.
    HG_Core_respond(
        handle: Token,
        callback: CoreCallback,
        arg: *mut c_void,
        flags: u8,
        size: u64,
    ) {
        // SAFETY: `Payload::Raw` contains no pointer, so the contract is met.
        unsafe {
            respond(
                handle,
                Callback::Core(callback),
                arg,
                Payload::Raw(size as usize),
                flags & MORE_DATA != 0,
            )
        }
    }

    /// Has no effect if the call is not under way, and fails if this process is its target.
    HG_Cancel | HG_Core_cancel(handle: Token) { cancel(handle) }
}
