//! Contexts: progress, trigger and events.

use super::codes::calls;
use super::handle::HANDLES;
use super::objects::{CLASSES, CONTEXTS, HeldContext};
use super::types::{Attached, CreateCallback, FreeCallback, OnCreate};
use crate::mercury::face::{maybe, timeout};
use crate::mercury::table::{Number, Token};
use parking_lot::Mutex;
use portolan_rpc::failure::{Result, refuse};
use std::os::raw::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::Arc;

/// Creates a context. If `posted` is set and the class listens, the context accepts calls at once;
/// otherwise it accepts none until it is posted.
fn create(class: Token, id: u8, posted: bool) -> Result<Token> {
    let held = CLASSES.get(class)?;
    let context = held.class.context_numbered(id)?;
    context.shared.set_accepts(posted && held.class.network().listens());
    let (class_token, on_create, data) = (Number::of(class), Mutex::default(), Mutex::default());
    Ok(CONTEXTS.insert(Arc::new(HeldContext {
        class: held,
        class_token,
        context,
        on_create,
        data,
    })))
}

/// Destroys a context. Fails if the context still has handles or bulk transfers under way.
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
    drop(std::mem::take(&mut *held.data.lock()));
    Ok(())
}

fn progress(token: Token, milliseconds: c_uint) -> Result<()> {
    if !CONTEXTS.get(token)?.context.progress(timeout(milliseconds))? {
        refuse!(TIMEOUT, "no event within {milliseconds} ms");
    }
    Ok(())
}

/// # Safety
/// `actual` must be null or valid for a write.
unsafe fn trigger(
    token: Token,
    milliseconds: Option<c_uint>,
    most: c_uint,
    actual: *mut c_uint,
) -> Result<()> {
    // SAFETY: by this function's contract, `actual` is null or valid for a write.
    let actual = unsafe { maybe(actual) };
    let held = CONTEXTS.get(token)?;
    if let Some(milliseconds @ 1..) = milliseconds
        && most > 0
    {
        held.context.progress(timeout(milliseconds))?;
    }
    let ran = held.context.trigger(most as usize);
    if let Some(actual) = actual {
        *actual = ran as c_uint;
    }
    if ran == 0 && most > 0 && milliseconds.is_some() {
        refuse!(TIMEOUT, "no callback is ready to be triggered");
    }
    Ok(())
}

/// # Safety
/// `count` must be null or valid for a write.
unsafe fn event_progress(token: Token, count: *mut c_uint) -> Result<()> {
    // SAFETY: by this function's contract, `count` is null or valid for a write.
    let count = unsafe { maybe(count) };
    let held = CONTEXTS.get(token)?;
    held.class.class.shared.check_open()?;
    held.context.shared.step()?;
    if let Some(count) = count {
        *count = held.context.shared.len() as c_uint;
    }
    Ok(())
}

fn set_data(token: Token, data: *mut c_void, free: FreeCallback) -> Result<()> {
    let held = CONTEXTS.get(token)?;
    let before = std::mem::replace(&mut *held.data.lock(), Attached::new(data, free));
    drop(before);
    Ok(())
}

fn accept(token: Token, accepts: bool) -> Result<()> {
    CONTEXTS.get(token)?.context.shared.set_accepts(accepts);
    Ok(())
}

calls! {
    /// Creates a context that accepts calls if the class listens. Returns null on failure.
    HG_Context_create(class: Token) -> Token, ptr::null_mut(), { create(class, 0, true) }

    /// Creates a context with the number `id`, which accepts calls if the class listens. Returns
    /// null on failure.
    HG_Context_create_id(class: Token, id: u8) -> Token, ptr::null_mut(), { create(class, id, true) }

    /// Creates a context that accepts no calls before `HG_Core_context_post`. Returns null on
    /// failure.
    HG_Core_context_create(class: Token) -> Token, ptr::null_mut(), { create(class, 0, false) }

    /// Creates a context with the number `id`, which accepts no calls before
    /// `HG_Core_context_post`. Returns null on failure.
    HG_Core_context_create_id(class: Token, id: u8) -> Token, ptr::null_mut(), {
        create(class, id, false)
    }

    /// Destroys a context. Fails if the context still has handles.
    HG_Context_destroy(context: Token) { destroy(context) }

    /// Destroys a context. Fails if the context still has handles.
    HG_Core_context_destroy(context: Token) { destroy(context) }

    /// Stops accepting calls of other processes in a context.
    HG_Context_unpost(context: Token) { accept(context, false) }

    /// Stops accepting calls of other processes in a context.
    HG_Core_context_unpost(context: Token) { accept(context, false) }

    /// Starts accepting calls of other processes in a context. Fails if the class does not listen.
    HG_Core_context_post(context: Token) {
        if !CONTEXTS.get(context)?.class.class.network().listens() {
            refuse!(OPNOTSUPPORTED, "the class does not listen, so no calls come");
        }
        accept(context, true)
    }

    /// Returns the class of a context.
    HG_Context_get_class(context: Token) -> Token, ptr::null_mut(), {
        Ok(CONTEXTS.get(context)?.class_token.token())
    }

    /// Returns the class of a context.
    HG_Core_context_get_class(context: Token) -> Token, ptr::null_mut(), {
        Ok(CONTEXTS.get(context)?.class_token.token())
    }

    /// Returns the number of a context.
    HG_Context_get_id(context: Token) -> u8, 0, { Ok(CONTEXTS.get(context)?.context.shared.id) }

    /// Returns the number of a context.
    HG_Core_context_get_id(context: Token) -> u8, 0, {
        Ok(CONTEXTS.get(context)?.context.shared.id)
    }

    /// Attaches data to a context. `free` is called with the data when it is replaced or the
    /// context is destroyed.
    HG_Context_set_data(context: Token, data: *mut c_void, free: FreeCallback) {
        set_data(context, data, free)
    }

    /// Attaches data to a context. `free` is called with the data when it is replaced or the
    /// context is destroyed.
    HG_Core_context_set_data(context: Token, data: *mut c_void, free: FreeCallback) {
        set_data(context, data, free)
    }

    /// Returns the attached data, or null.
    HG_Context_get_data(context: Token) -> *mut c_void, ptr::null_mut(), {
        let data = CONTEXTS.get(context)?.data.lock().data();
        Ok(data)
    }

    /// Returns the attached data, or null.
    HG_Core_context_get_data(context: Token) -> *mut c_void, ptr::null_mut(), {
        let data = CONTEXTS.get(context)?.data.lock().data();
        Ok(data)
    }

    /// Returns null: the 2.4 interface gives no access to the network's context.
    HG_Core_context_get_na(context: Token) -> Token, ptr::null_mut(), {
        CONTEXTS.get(context).map(|_| ptr::null_mut())
    }

    /// Returns the number of calls and callbacks that are queued for trigger.
    HG_Core_context_get_completion_count(context: Token) -> c_uint, 0, {
        Ok(CONTEXTS.get(context)?.context.shared.len() as c_uint)
    }

    /// Sets the callback that runs for every new handle of the context.
    HG_Core_context_set_handle_create_callback(
        context: Token,
        callback: CreateCallback,
        arg: *mut c_void,
    ) {
        *CONTEXTS.get(context)?.on_create.lock() = OnCreate::new(callback, arg);
        Ok(())
    }

    /// Makes progress until a call or callback is queued for trigger. Returns `HG_TIMEOUT` if none
    /// is queued within `milliseconds`.
    HG_Progress(context: Token, milliseconds: c_uint) { progress(context, milliseconds) }

    /// Makes progress until a call or callback is queued for trigger. Returns `HG_TIMEOUT` if none
    /// is queued within `milliseconds`.
    HG_Core_progress(context: Token, milliseconds: c_uint) { progress(context, milliseconds) }

    /// Runs at most `most` queued calls and callbacks, and writes their number to `actual`. If none
    /// is queued, makes progress for up to `milliseconds`. Returns `HG_TIMEOUT` if none has run.
    HG_Trigger(context: Token, milliseconds: c_uint, most: c_uint, actual: *mut c_uint) {
        // SAFETY: by the call's contract, `actual` is null or valid for a write.
        unsafe { trigger(context, Some(milliseconds), most, actual) }
    }

    /// Runs at most `most` queued calls and callbacks, and writes their number to `actual`. If none
    /// is queued, makes progress for up to `milliseconds`. Returns `HG_TIMEOUT` if none has run.
    HG_Core_trigger(context: Token, milliseconds: c_uint, most: c_uint, actual: *mut c_uint) {
        // SAFETY: by the call's contract, `actual` is null or valid for a write.
        unsafe { trigger(context, Some(milliseconds), most, actual) }
    }

    /// Returns -1: contexts have no file descriptor to wait on.
    HG_Event_get_wait_fd(context: Token) -> c_int, -1, { CONTEXTS.get(context).map(|_| -1) }

    /// Returns -1: contexts have no file descriptor to wait on.
    HG_Core_event_get_wait_fd(context: Token) -> c_int, -1, { CONTEXTS.get(context).map(|_| -1) }

    /// Returns whether the program should make progress now. This is always true, because contexts
    /// have no file descriptor to wait on.
    HG_Event_ready(context: Token) -> bool, false, { CONTEXTS.get(context).map(|_| true) }

    /// Returns whether the program should make progress now. This is always true, because contexts
    /// have no file descriptor to wait on.
    HG_Core_event_ready(context: Token) -> bool, false, { CONTEXTS.get(context).map(|_| true) }

    /// Makes progress without waiting, and writes the number of queued calls and callbacks to
    /// `count`.
    HG_Event_progress(context: Token, count: *mut c_uint) {
        // SAFETY: by the call's contract, `count` is null or valid for a write.
        unsafe { event_progress(context, count) }
    }

    /// Makes progress without waiting, and writes the number of queued calls and callbacks to
    /// `count`.
    HG_Core_event_progress(context: Token, count: *mut c_uint) {
        // SAFETY: by the call's contract, `count` is null or valid for a write.
        unsafe { event_progress(context, count) }
    }

    /// Runs at most `most` queued calls and callbacks, and writes their number to `actual`. Does
    /// not make progress, and succeeds even if none is queued.
    HG_Event_trigger(context: Token, most: c_uint, actual: *mut c_uint) {
        // SAFETY: by the call's contract, `actual` is null or valid for a write.
        unsafe { trigger(context, None, most, actual) }
    }

    /// Runs at most `most` queued calls and callbacks, and writes their number to `actual`. Does
    /// not make progress, and succeeds even if none is queued.
    HG_Core_event_trigger(context: Token, most: c_uint, actual: *mut c_uint) {
        // SAFETY: by the call's contract, `actual` is null or valid for a write.
        unsafe { trigger(context, None, most, actual) }
    }
}
