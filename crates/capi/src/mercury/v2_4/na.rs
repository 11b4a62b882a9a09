//! `na.h` of 2.4: classes, contexts, addresses, progress.
//!
//! A class, context or address of HG is also one of NA. NA's own classes and contexts are in the
//! tables of 2013, because `hg_init_info.na_class` accepts a class of either interface.

use super::class::name_of;
use super::codes::{is_of_na, na_name};
use super::queries::{free_protocols, protocols, set_level};
use super::types::{NaInitInfo, ProtocolInfo};
use crate::boundary::array;
use crate::mercury::entry::{maybe, place, put_bytes, text, timeout, write_version};
use crate::mercury::interface::{Happened, calls};
use crate::mercury::objects::address::{ADDRESSES, get, keep, release, share};
use crate::mercury::objects::class::CLASSES;
use crate::mercury::objects::context::CONTEXTS;
use crate::mercury::table::{NA_CLASSES, NA_CONTEXTS, Token};
use portolan_rpc::failure::{Failure, Result, Status, refuse};
use portolan_rpc::na::{Class, Context, MAX_TAG, Options};
use std::os::raw::{c_char, c_int, c_uint, c_ulong, c_void};
use std::ptr;
use std::time::Duration;

/// Converts a status to one that has a code in `na_return_t`.
pub(super) fn na_status(status: Status) -> Status {
    if is_of_na(status) { status } else { Status::IO_ERROR }
}

pub(super) fn na<T>(result: Result<T>) -> Result<T> {
    result.map_err(|failure| Failure::new(na_status(failure.status()), failure.text()))
}

pub(super) fn class(token: Token) -> Result<Class> {
    match CLASSES.get(token) {
        Ok(held) => Ok(held.class.network().clone()),
        Err(_) => NA_CLASSES.get(token),
    }
}

pub(super) fn context(token: Token) -> Result<Context> {
    match CONTEXTS.get(token) {
        Ok(held) => Ok(held.context.shared.na.clone()),
        Err(_) => NA_CONTEXTS.get(token),
    }
}

/// Fails with `INVALID_ARG` if a handle is invalid or the context belongs to another class.
pub(super) fn context_of(class_token: Token, token: Token) -> Result<Context> {
    let (class, context) = (class(class_token)?, context(token)?);
    if !class.owns(&context) {
        refuse!(INVALID_ARG, "the context belongs to another class");
    }
    Ok(context)
}

/// # Safety
/// `info` must be null or a NUL-terminated string. [`NaInitInfo::key`] defines the requirement for
/// `options`.
unsafe fn initialize(
    info: *const c_char,
    listen: bool,
    options: *const NaInitInfo,
) -> Result<Token> {
    // SAFETY: by this function's contract, `info` is null or NUL-terminated.
    let info = unsafe { text(info, "information string") }?;
    let mut chosen = Options::default();
    // SAFETY: the caller guarantees `options`.
    chosen.auth_key = unsafe { NaInitInfo::key(options) };
    Ok(NA_CLASSES.insert(Class::with(&info, listen, chosen)?))
}

fn poll(class: Token, token: Token, time: Duration) -> Result<c_uint> {
    let context = context_of(class, token)?;
    na(context.progress(time))?;
    Ok(context.queued() as c_uint)
}

fn text_of(class_token: Token, addr: Token) -> Result<String> {
    Ok(class(class_token)?.text_of(&get(addr)?))
}

calls! { V2_4:
    /// Version 6.0.0. Null pointers are skipped.
    NA_Version_get(major: *mut c_uint, minor: *mut c_uint, patch: *mut c_uint) -> (), (), {
        // SAFETY: by the call's contract, each pointer is null or valid for a write.
        unsafe { write_version([(major, 6), (minor, 0), (patch, 0)]) };
        Ok(())
    }

    /// Lists all networks or, if `info` is not null, those that it names, with their devices.
    NA_Get_protocol_info(info: *const c_char, list: *mut *mut ProtocolInfo) {
        // SAFETY: by contract, `info` is null or NUL-terminated and `list` is null or valid.
        unsafe { protocols(info, list) }
    }

    NA_Free_protocol_info(list: *mut ProtocolInfo) -> (), (), {
        // SAFETY: by the call's contract, `list` is null or a list from that call.
        unsafe { free_protocols(list) };
        Ok(())
    }

    NA_Initialize(info: *const c_char, listen: bool) -> Token, ptr::null_mut(), {
        // SAFETY: by the call's contract, `info` is null or NUL-terminated.
        unsafe { initialize(info, listen, ptr::null()) }
    }

    /// The options except the key are ignored. Returns null on failure.
    NA_Initialize_opt(
        info: *const c_char,
        listen: bool,
        options: *const NaInitInfo,
    ) -> Token, ptr::null_mut(), {
        // SAFETY: by the call's contract, the strings are null or NUL-terminated.
        unsafe { initialize(info, listen, options) }
    }

    /// The options except the key are ignored. Returns null on failure.
    NA_Initialize_opt2(
        info: *const c_char,
        listen: bool,
        _version: c_uint,
        options: *const NaInitInfo,
    ) -> Token, ptr::null_mut(), {
        // SAFETY: by the call's contract, the strings are null or NUL-terminated.
        unsafe { initialize(info, listen, options) }
    }

    NA_Finalize(class: Token) {
        if class.is_null() {
            return Ok(());
        }
        na(NA_CLASSES.get(class)?.finalize())?;
        crate::mercury::objects::address::drop_those_of(class);
        NA_CLASSES.remove(class).map(drop)
    }

    NA_Cleanup() -> (), (), { Ok(()) }

    NA_Has_opt_feature(token: Token, _flags: c_ulong) -> bool, false, {
        class(token).map(|_| false)
    }

    /// Sets the highest level that is logged. `PORTOLAN_LOG` still filters the log.
    NA_Set_log_level(level: *const c_char) -> (), (), {
        // SAFETY: by the call's contract, `level` is null or a NUL-terminated string.
        unsafe { set_level(level) }
    }

    /// Does nothing: the network keeps no counters of its own.
    NA_Diag_dump_counters() -> (), (), { Ok(()) }

    NA_Get_class_name(token: Token) -> *const c_char, ptr::null(), {
        Ok(name_of(class(token)?.scheme()).0.as_ptr())
    }

    NA_Get_class_protocol(token: Token) -> *const c_char, ptr::null(), {
        Ok(name_of(class(token)?.scheme()).1.as_ptr())
    }

    NA_Is_listening(token: Token) -> bool, false, { Ok(class(token)?.listens()) }

    NA_Error_to_string(code: c_int) -> *const c_char, ptr::null(), { Ok(na_name(code).as_ptr()) }

    NA_Context_create(token: Token) -> Token, ptr::null_mut(), {
        Ok(NA_CONTEXTS.insert(class(token)?.context()?))
    }

    /// The number is ignored. Returns null on failure.
    NA_Context_create_id(token: Token, _id: u8) -> Token, ptr::null_mut(), {
        Ok(NA_CONTEXTS.insert(class(token)?.context()?))
    }

    /// Queued callbacks do not run. Fails while transfers are in progress.
    NA_Context_destroy(class_token: Token, token: Token) {
        if token.is_null() {
            return Ok(());
        }
        let found = context_of(class_token, token)?;
        if found.is_moving() {
            refuse!(BUSY, "transfers of the context are under way; wait for them or cancel them");
        }
        drop(found);
        NA_CONTEXTS.remove(token).map(|context| context.clear())
    }

    NA_Context_get_completion_count(token: Token) -> c_uint, 0, {
        Ok(context(token)?.queued() as c_uint)
    }

    NA_Addr_lookup(class_token: Token, name: *const c_char, addr: *mut Token) {
        let class = class(class_token)?;
        // SAFETY: by contract, `name` is null or NUL-terminated and `addr` is null or valid.
        let (name, addr) = unsafe { (text(name, "name")?, place(addr, "address")?) };
        *addr = keep(class_token, na(class.lookup(&name))?);
        Ok(())
    }

    NA_Addr_free(class_token: Token, addr: Token) -> (), (), {
        class(class_token)?;
        release(addr)
    }

    /// Does nothing with the hint that the peer is gone: the library keeps no state for peers.
    NA_Addr_set_remove(class_token: Token, addr: Token) {
        class(class_token)?;
        get(addr).map(drop)
    }

    NA_Addr_self(class_token: Token, addr: *mut Token) {
        let class = class(class_token)?;
        // SAFETY: by the call's contract, `addr` is null or valid for a write.
        *unsafe { place(addr, "address") }? = keep(class_token, class.own_address());
        Ok(())
    }

    NA_Addr_dup(class_token: Token, addr: Token, to: *mut Token) {
        class(class_token)?;
        // SAFETY: by the call's contract, `to` is null or valid for a write.
        let to = unsafe { place(to, "address") }?;
        share(addr)?;
        *to = addr;
        Ok(())
    }

    NA_Addr_cmp(class_token: Token, one: Token, other: Token) -> bool, false, {
        class(class_token)?;
        if one.is_null() || other.is_null() {
            return Ok(one == other);
        }
        Ok(ADDRESSES.get(one)?.address == ADDRESSES.get(other)?.address)
    }

    NA_Addr_is_self(class_token: Token, addr: Token) -> bool, false, {
        class(class_token)?;
        Ok(get(addr)?.is_self())
    }

    NA_Addr_to_string(class_token: Token, buf: *mut c_char, buf_size: *mut u64, addr: Token) {
        let text = text_of(class_token, addr)?;
        // SAFETY: by contract, `buf_size` is null or valid, `buf` null or has `*buf_size` bytes.
        unsafe { super::address::write_text(&text, buf, buf_size) }
    }

    NA_Addr_get_serialize_size(class_token: Token, addr: Token) -> u64, 0, {
        Ok(text_of(class_token, addr)?.len() as u64 + 1)
    }

    /// The serialised form of an address is its text with a terminating zero.
    NA_Addr_serialize(class_token: Token, buf: *mut c_void, buf_size: u64, addr: Token) {
        let serialized = text_of(class_token, addr)? + "\0";
        // SAFETY: by the call's contract, `buf` is null or valid for writes of `buf_size` bytes.
        unsafe { put_bytes(buf, buf_size, serialized.as_bytes()) }
    }

    NA_Addr_deserialize(
        class_token: Token,
        addr: *mut Token,
        buf: *const c_void,
        buf_size: u64,
        _flags: u64,
    ) {
        let class = class(class_token)?;
        // SAFETY: by contract, `addr` is null or valid, and `buf` is null or has `buf_size` bytes.
        let (addr, from) = unsafe {
            let from = array(buf.cast::<u8>(), buf_size as usize, "the serialised address")?;
            (place(addr, "address")?, from)
        };
        *addr = keep(class_token, na(class.lookup(super::address::parse(from)?))?);
        Ok(())
    }

    NA_Msg_get_max_unexpected_size(token: Token) -> u64, 0, {
        Ok(class(token)?.max_unexpected() as u64)
    }

    NA_Msg_get_max_expected_size(token: Token) -> u64, 0, {
        Ok(class(token)?.max_expected() as u64)
    }

    /// Returns 0: messages carry no header in the program's buffer.
    NA_Msg_get_unexpected_header_size(token: Token) -> u64, 0, { class(token).map(|_| 0) }

    NA_Msg_get_expected_header_size(token: Token) -> u64, 0, { class(token).map(|_| 0) }

    NA_Msg_get_max_tag(token: Token) -> u32, 0, { class(token).map(|_| MAX_TAG) }

    /// Returns a file descriptor that is readable when the context has work, or -1 if its network
    /// must be polled. The program calls `NA_Poll_try_wait` before it waits for the descriptor.
    NA_Poll_get_fd(class: Token, token: Token) -> c_int, -1, {
        Ok(context_of(class, token)?.wait_descriptor()?.unwrap_or(-1))
    }

    /// Returns whether the program may wait for the file descriptor. If not, it makes progress.
    NA_Poll_try_wait(class: Token, token: Token) -> bool, false, {
        Ok(context_of(class, token)?.arm(|| false))
    }

    NA_Poll(class: Token, token: Token, count: *mut c_uint) {
        let queued = poll(class, token, Duration::ZERO)?;
        // SAFETY: by the call's contract, `count` is null or valid for a write.
        if let Some(count) = unsafe { maybe(count) } {
            *count = queued;
        }
        Ok(())
    }

    /// Returns `NA_TIMEOUT`, and writes nothing, if no callback is queued in time.
    NA_Poll_wait(class: Token, token: Token, milliseconds: c_uint, count: *mut c_uint) {
        let queued = poll(class, token, timeout(milliseconds))?;
        // SAFETY: by the call's contract, `count` is null or valid for a write.
        let count = unsafe { maybe(count) };
        if let Some(count) = count.filter(|_| queued > 0) {
            *count = queued;
        }
        Ok(Happened(queued > 0))
    }

    NA_Progress(class: Token, token: Token, milliseconds: c_uint) {
        if poll(class, token, timeout(milliseconds))? == 0 {
            refuse!(TIMEOUT, "no operation completed within {milliseconds} ms");
        }
        Ok(())
    }

    NA_Trigger(token: Token, most: c_uint, actual: *mut c_uint) {
        let ran = na(context(token)?.trigger(Duration::ZERO, most as usize))?;
        // SAFETY: by the call's contract, `actual` is null or valid for a write.
        if let Some(actual) = unsafe { maybe(actual) } {
            *actual = ran as c_uint;
        }
        Ok(())
    }
}
