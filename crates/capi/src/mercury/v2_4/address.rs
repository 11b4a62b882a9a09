//! Addresses. A duplicate is the same handle with one more reference, as in 2.4. A call's handle
//! holds the address of the peer; a program that needs it for longer duplicates it.

use super::types::{CB_LOOKUP, Callback, Caller, CoreCallback, HgCallback, InfoOf};
use crate::boundary::array;
use crate::mercury::entry::{place, put_bytes, text};
use crate::mercury::interface::calls;
use crate::mercury::objects::address::{ADDRESSES, HeldAddress, get, keep};
use crate::mercury::objects::address::{release, share};
use crate::mercury::objects::class::CLASSES;
use crate::mercury::objects::context::CONTEXTS;
use crate::mercury::table::Token;
use portolan_rpc::failure::{Result, Status, refuse};
use portolan_rpc::hg::context::Work;
use std::ffi::CStr;
use std::os::raw::{c_char, c_ulong, c_void};
use std::ptr;

/// # Safety
/// `name` must be null or a NUL-terminated string.
unsafe fn lookup1(
    context: Token,
    callback: Callback,
    arg: *mut c_void,
    name: *const c_char,
) -> Result<()> {
    let held = CONTEXTS.get(context)?;
    // SAFETY: by this function's contract, `name` is null or NUL-terminated.
    let address = held.class.class.lookup(&unsafe { text(name, "name") }?)?;
    let handle = match callback.is_none() {
        true => ptr::null_mut(),
        false => keep(held.class_token.token(), address),
    };
    let caller = Caller { callback, arg, kind: CB_LOOKUP, info: InfoOf { handle } };
    held.context.shared.push(Work::Run(Box::new(move || caller.notify(Status::SUCCESS))));
    Ok(())
}

/// # Safety
/// `to` must be null or valid for a write.
unsafe fn dup(addr: Token, to: *mut Token) -> Result<()> {
    // SAFETY: by this function's contract, `to` is null or valid for a write.
    let to = unsafe { place(to, "address") }?;
    share(addr)?;
    *to = addr;
    Ok(())
}

fn same(one: Token, other: Token) -> Result<u8> {
    if one.is_null() || other.is_null() {
        return Ok(u8::from(one == other));
    }
    let (one, other) = (ADDRESSES.get(one)?, ADDRESSES.get(other)?);
    Ok(u8::from(one.class == other.class && one.address == other.address))
}

fn text_of(addr: Token) -> Result<String> {
    let HeldAddress { class, address, .. } = ADDRESSES.get(addr)?;
    Ok(CLASSES.get(class.token())?.class.network().text_of(&address))
}

/// # Safety
/// The requirements of [`write_text`] apply.
unsafe fn to_string(buf: *mut c_char, buf_size: *mut u64, addr: Token) -> Result<()> {
    // SAFETY: by contract, the buffer and its size meet the requirements of `write_text`.
    unsafe { write_text(&text_of(addr)?, buf, buf_size) }
}

/// Writes a text and its length with the zero. With a null buffer, writes only the length.
///
/// # Safety
/// `buf_size` must be null or valid for reads and writes, `buf` null or have `*buf_size` bytes.
pub(super) unsafe fn write_text(text: &str, buf: *mut c_char, buf_size: *mut u64) -> Result<()> {
    // SAFETY: by this function's contract, `buf_size` is null or valid.
    let size = unsafe { place(buf_size, "buffer's size") }?;
    let has = std::mem::replace(size, text.len() as u64 + 1);
    if buf.is_null() {
        return Ok(());
    }
    if has < *size {
        refuse!(OVERFLOW, "'{text}' needs {size} bytes, the buffer has {has}");
    }
    // SAFETY: the check above leaves room in `buf` for the text and the terminating zero.
    unsafe {
        ptr::copy_nonoverlapping(text.as_ptr(), buf.cast(), text.len());
        *buf.add(text.len()) = 0;
    }
    Ok(())
}

/// Returns the text in the serialised form of an address, up to its zero. Fails with `OVERFLOW` if
/// the zero is missing, `PROTOCOL_ERROR` if the text is not UTF-8.
pub(super) fn parse(bytes: &[u8]) -> Result<&str> {
    let Ok(text) = CStr::from_bytes_until_nul(bytes) else {
        refuse!(OVERFLOW, "{} bytes are too few for the serialised address", bytes.len());
    };
    let Ok(text) = text.to_str() else {
        refuse!(PROTOCOL_ERROR, "{} bytes are not a serialised address", bytes.len());
    };
    Ok(text)
}

calls! { V2_4:
    HG_Addr_lookup1(
        context: Token,
        callback: HgCallback,
        arg: *mut c_void,
        name: *const c_char,
        _op: *mut Token,
    ) {
        // SAFETY: by the call's contract, `name` is null or NUL-terminated.
        unsafe { lookup1(context, Callback::Hg(callback), arg, name) }
    }

    HG_Core_addr_lookup1(
        context: Token,
        callback: CoreCallback,
        arg: *mut c_void,
        name: *const c_char,
        _op: *mut Token,
    ) {
        // SAFETY: by the call's contract, `name` is null or NUL-terminated.
        unsafe { lookup1(context, Callback::Core(callback), arg, name) }
    }

    HG_Addr_lookup2 | HG_Core_addr_lookup2(class: Token, name: *const c_char, addr: *mut Token) {
        let held = CLASSES.get(class)?;
        // SAFETY: by contract, `name` is null or NUL-terminated and `addr` is null or valid.
        let (name, addr) = unsafe { (text(name, "name")?, place(addr, "address")?) };
        *addr = keep(class, held.class.lookup(&name)?);
        Ok(())
    }

    HG_Addr_free(class: Token, addr: Token) {
        CLASSES.get(class)?;
        release(addr)
    }

    HG_Core_addr_free(addr: Token) { release(addr) }

    /// Does nothing with the hint that the peer is gone: the library keeps no state for peers.
    HG_Addr_set_remove(class: Token, addr: Token) {
        CLASSES.get(class)?;
        get(addr).map(drop)
    }

    HG_Core_addr_set_remove(addr: Token) { get(addr).map(drop) }

    HG_Addr_self | HG_Core_addr_self(class: Token, addr: *mut Token) {
        let held = CLASSES.get(class)?;
        // SAFETY: by the call's contract, `addr` is null or valid for a write.
        *unsafe { place(addr, "address") }? = keep(class, held.class.own_address());
        Ok(())
    }

    HG_Addr_dup(class: Token, addr: Token, to: *mut Token) {
        CLASSES.get(class)?;
        // SAFETY: by the call's contract, `to` is null or valid for a write.
        unsafe { dup(addr, to) }
    }

    HG_Core_addr_dup(addr: Token, to: *mut Token) {
        // SAFETY: by the call's contract, `to` is null or valid for a write.
        unsafe { dup(addr, to) }
    }

    HG_Addr_cmp(class: Token, one: Token, other: Token) -> u8, 0, {
        CLASSES.get(class)?;
        same(one, other)
    }

    HG_Core_addr_cmp(one: Token, other: Token) -> u8, 0, { same(one, other) }

    HG_Core_addr_is_self(addr: Token) -> bool, false, { Ok(get(addr)?.is_self()) }

    HG_Addr_to_string(class: Token, buf: *mut c_char, buf_size: *mut u64, addr: Token) {
        CLASSES.get(class)?;
        // SAFETY: by contract, `buf_size` is null or valid, `buf` null or has `*buf_size` bytes.
        unsafe { to_string(buf, buf_size, addr) }
    }

    HG_Core_addr_to_string(buf: *mut c_char, buf_size: *mut u64, addr: Token) {
        // SAFETY: by contract, `buf_size` is null or valid, `buf` null or has `*buf_size` bytes.
        unsafe { to_string(buf, buf_size, addr) }
    }

    HG_Core_addr_get_na(addr: Token) -> Token, ptr::null_mut(), { get(addr).map(|_| addr) }

    HG_Core_addr_get_serialize_size(addr: Token, _flags: c_ulong) -> u64, 0, {
        Ok(text_of(addr)?.len() as u64 + 1)
    }

    /// The serialised form of an address is its text with a terminating zero.
    HG_Core_addr_serialize(buf: *mut c_void, buf_size: u64, _flags: c_ulong, addr: Token) {
        let serialized = text_of(addr)? + "\0";
        // SAFETY: by the call's contract, `buf` is null or valid for writes of `buf_size` bytes.
        unsafe { put_bytes(buf, buf_size, serialized.as_bytes()) }
    }

    HG_Core_addr_deserialize(
        class: Token,
        addr: *mut Token,
        buf: *const c_void,
        buf_size: u64,
        _flags: u64,
    ) {
        let held = CLASSES.get(class)?;
        // SAFETY: by contract, `addr` is null or valid, and `buf` is null or has `buf_size` bytes.
        let (addr, from) = unsafe {
            let from = array(buf.cast::<u8>(), buf_size as usize, "the serialised address")?;
            (place(addr, "address")?, from)
        };
        *addr = keep(class, held.class.lookup(parse(from)?)?);
        Ok(())
    }
}
