//! Contexts: progress, trigger and events.

use crate::mercury::entry::maybe;
use crate::mercury::interface::calls;
use crate::mercury::objects::attached::{Attached, CreateCallback, FreeCallback, OnCreate};
use crate::mercury::objects::context::{self, CONTEXTS};
use crate::mercury::objects::handle::HANDLES;
use crate::mercury::table::{Number, Token};
use portolan_rpc::failure::{Result, refuse};
use std::os::raw::{c_int, c_uint, c_void};
use std::ptr;

/// Creates a context. It accepts calls when posted, or at once if `posted` and the class listens.
fn create(class: Token, id: u8, posted: bool) -> Result<Token> {
    context::create(class, id, |class| posted && class.class.network().listens())
}

/// Fails if the context still has handles or bulk transfers under way.
fn destroy(token: Token) -> Result<()> {
    if token.is_null() {
        return Ok(());
    }
    let held = CONTEXTS.get(token)?;
    let (mut handles, mut calls) = (0, 0);
    HANDLES.each(|_, handle| {
        if handle.context == Number::of(token) {
            handles += 1;
            calls += usize::from(handle.is_under_way());
        }
    });
    if handles > 0 {
        refuse!(
            BUSY,
            "the context has {handles} handles, {calls} of them with calls under way; destroy \
             them first"
        );
    }
    let shared = &held.context.shared;
    if shared.na.is_moving() {
        refuse!(BUSY, "bulk transfers of the context are under way; wait for them or cancel them");
    }
    held.context.clone().destroy()?; // on failure, nothing has changed
    shared.set_accepts(false);
    CONTEXTS.remove(token)?;
    Attached::replace(&held.data, Attached::default());
    Ok(())
}

fn accept(token: Token, accepts: bool) -> Result<()> {
    CONTEXTS.get(token)?.context.shared.set_accepts(accepts);
    Ok(())
}

calls! { V2_4:
    HG_Context_create | HG_Core_context_create [posted: true, false](
        class: Token,
    ) -> Token, ptr::null_mut(), { create(class, 0, posted) }

    HG_Context_create_id | HG_Core_context_create_id [posted: true, false](
        class: Token,
        id: u8,
    ) -> Token, ptr::null_mut(), { create(class, id, posted) }

    HG_Context_destroy | HG_Core_context_destroy(context: Token) { destroy(context) }

    HG_Context_unpost | HG_Core_context_unpost(context: Token) { accept(context, false) }

    HG_Core_context_post(context: Token) {
        if !CONTEXTS.get(context)?.class.class.network().listens() {
            refuse!(OPNOTSUPPORTED, "the class does not listen, so no calls come");
        }
        accept(context, true)
    }

    HG_Context_get_class | HG_Core_context_get_class(context: Token) -> Token, ptr::null_mut(), {
        Ok(CONTEXTS.get(context)?.class_token.token())
    }

    HG_Context_get_id | HG_Core_context_get_id(context: Token) -> u8, 0, {
        Ok(CONTEXTS.get(context)?.context.shared.id)
    }

    /// Attaches data that `free` gets when the context is destroyed. Earlier data is not freed.
    HG_Context_set_data | HG_Core_context_set_data(
        context: Token,
        data: *mut c_void,
        free: FreeCallback,
    ) {
        let held = CONTEXTS.get(context)?;
        Attached::overwrite(&held.data, Attached::new(data, free));
        Ok(())
    }

    HG_Context_get_data | HG_Core_context_get_data(
        context: Token,
    ) -> *mut c_void, ptr::null_mut(), {
        let data = CONTEXTS.get(context)?.data.lock().data();
        Ok(data)
    }

    HG_Core_context_get_na(context: Token) -> Token, ptr::null_mut(), {
        CONTEXTS.get(context).map(|_| context)
    }

    /// Returns the number of calls and callbacks that are queued for trigger.
    HG_Core_context_get_completion_count(context: Token) -> c_uint, 0, {
        Ok(CONTEXTS.get(context)?.context.shared.len() as c_uint)
    }

    HG_Core_context_set_handle_create_callback(
        context: Token,
        callback: CreateCallback,
        arg: *mut c_void,
    ) {
        *CONTEXTS.get(context)?.on_create.lock() = OnCreate::new(callback, arg);
        Ok(())
    }

    HG_Progress | HG_Core_progress(context: Token, milliseconds: c_uint) {
        context::progress(context, milliseconds)
    }

    /// Makes progress first if none is queued and the timeout is not 0. Returns `HG_TIMEOUT` if
    /// none has run.
    HG_Trigger | HG_Core_trigger(
        context: Token,
        milliseconds: c_uint,
        most: c_uint,
        actual: *mut c_uint,
    ) {
        // SAFETY: by the call's contract, `actual` is null or valid for a write.
        unsafe { context::trigger(context, Some(milliseconds), most, actual) }
    }

    /// Returns a file descriptor that is readable when the context has work, or -1 if its network
    /// must be polled. The program calls `HG_Event_ready` before it waits for the descriptor.
    HG_Event_get_wait_fd | HG_Core_event_get_wait_fd(context: Token) -> c_int, -1, {
        Ok(CONTEXTS.get(context)?.context.shared.na.wait_descriptor()?.unwrap_or(-1))
    }

    /// Returns whether the program should make progress now instead of waiting for the file
    /// descriptor. Always true without a descriptor.
    HG_Event_ready | HG_Core_event_ready(context: Token) -> bool, false, {
        let shared = CONTEXTS.get(context)?.context.shared.clone();
        Ok(!shared.na.arm(|| !shared.is_empty()))
    }

    HG_Event_progress | HG_Core_event_progress(context: Token, count: *mut c_uint) {
        // SAFETY: by the call's contract, `count` is null or valid for a write.
        let count = unsafe { maybe(count) };
        let held = CONTEXTS.get(context)?;
        let shared = &held.context.shared;
        shared.class.check_open()?;
        shared.class.na.poll()?;
        shared.step()?;
        if let Some(count) = count {
            *count = shared.len() as c_uint;
        }
        Ok(())
    }

    /// Makes no progress, and succeeds even if none is queued.
    HG_Event_trigger | HG_Core_event_trigger(context: Token, most: c_uint, actual: *mut c_uint) {
        // SAFETY: by the call's contract, `actual` is null or valid for a write.
        unsafe { context::trigger(context, None, most, actual) }
    }
}
