//! Addresses: counted, so that duplicating one gives the same handle, as in 2.4.
//!
//! An address knows its class. The address of a handle's other side is held by the
//! handle; a program that keeps it longer duplicates it.

use super::codes::calls;
use super::objects::{CLASSES, CONTEXTS, HeldClass as Class};
use super::types::{CB_LOOKUP, Callback, Caller, CoreCallback, HgCallback, InfoOf};
use crate::capi::mercury::face::put_bytes;
use crate::capi::mercury::face::{bytes, place, text};
use crate::capi::mercury::table::{Number, Table, Token};
use crate::rpc::failure::{Failure, Result, Status, refuse};
use crate::rpc::hg::context::Work;
use crate::rpc::na::Address;
use std::os::raw::{c_char, c_ulong, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An address and how many hold it.
#[derive(Debug)]
pub(super) struct Held {
    pub class: Number,
    pub address: Address,
    holders: AtomicUsize,
}

static ADDRESSES: Table<Arc<Held>> = Table::new("address", 0x43);

/// A handle for an address, with one holder.
pub(super) fn keep(class: Token, address: Address) -> Token {
    let (class, holders) = (Number::of(class), AtomicUsize::new(1));
    ADDRESSES.insert(Arc::new(Held { class, address, holders }))
}

/// The address of a handle.
pub(super) fn get(addr: Token) -> Result<Arc<Held>> {
    ADDRESSES.get(addr)
}

/// One holder more.
pub(super) fn share(addr: Token) -> Result<Address> {
    let held = ADDRESSES.get(addr)?;
    held.holders.fetch_add(1, Ordering::AcqRel);
    Ok(held.address)
}

/// One holder less; null is none.
pub(super) fn release(addr: Token) -> Result<()> {
    if addr.is_null() {
        return Ok(());
    }
    let last = |held: &Arc<Held>| Ok(held.holders.fetch_sub(1, Ordering::AcqRel) <= 1);
    ADDRESSES.remove_if(addr, last).map(drop)
}

/// Forgets those of a class that ends.
pub(super) fn drop_those_of(class: Token) {
    let of = Number::of(class);
    while let Some(addr) = ADDRESSES.find(|held| held.class == of) {
        let _ = ADDRESSES.remove(addr);
    }
}

/// An address as text.
pub(super) fn text_of(class: &Class, address: &Address) -> String {
    class.class.network().text_of(address)
}

fn class_of(held: &Held) -> Result<Arc<Class>> {
    CLASSES.get(held.class.token())
}

/// # Safety
/// `name` must be null or a terminated string.
unsafe fn lookup1(
    context: Token,
    callback: Callback,
    arg: *mut c_void,
    name: *const c_char,
) -> Result<()> {
    let held = CONTEXTS.get(context)?;
    // SAFETY: passed on from the caller.
    let address = held.class.class.lookup(&unsafe { text(name, "name") }?)?;
    let handle = match callback.is_none() {
        true => ptr::null_mut(),
        false => keep(held.class_token.token(), address),
    };
    let caller = Caller { callback, arg, kind: CB_LOOKUP, info: InfoOf { handle } };
    held.context.shared.push(Work::Run(Box::new(move || caller.tell(Status::SUCCESS))));
    Ok(())
}

/// # Safety
/// `name` must be null or a terminated string, `addr` null or valid.
unsafe fn lookup2(class: Token, name: *const c_char, addr: *mut Token) -> Result<()> {
    let held = CLASSES.get(class)?;
    // SAFETY: passed on from the caller.
    let (name, addr) = unsafe { (text(name, "name")?, place(addr, "address")?) };
    *addr = keep(class, held.class.lookup(&name)?);
    Ok(())
}

/// # Safety
/// `addr` must be null or valid.
unsafe fn own(class: Token, addr: *mut Token) -> Result<()> {
    let held = CLASSES.get(class)?;
    // SAFETY: passed on from the caller.
    *unsafe { place(addr, "address") }? = keep(class, held.class.own_address());
    Ok(())
}

/// # Safety
/// `to` must be null or valid.
unsafe fn dup(addr: Token, to: *mut Token) -> Result<()> {
    // SAFETY: passed on from the caller.
    let to = unsafe { place(to, "address") }?;
    share(addr)?;
    *to = addr;
    Ok(())
}

fn same(one: Token, other: Token) -> Result<u8> {
    if one.is_null() || other.is_null() {
        return Ok(u8::from(one == other));
    }
    let (one, other) = (get(one)?, get(other)?);
    Ok(u8::from(one.class == other.class && one.address == other.address))
}

/// # Safety
/// `buf` must be null or valid for writes of `*buf_size` bytes, `buf_size` be null or valid.
unsafe fn to_string(buf: *mut c_char, buf_size: *mut u64, addr: Token) -> Result<()> {
    let held = get(addr)?;
    let text = text_of(&*class_of(&held)?, &held.address);
    // SAFETY: passed on from the caller.
    let size = unsafe { place(buf_size, "buffer's size") }?;
    let has = std::mem::replace(size, text.len() as u64 + 1);
    if buf.is_null() {
        return Ok(());
    }
    if has < *size {
        refuse!(MSGSIZE, "'{text}' needs {size} bytes, the buffer has {has}");
    }
    // SAFETY: the buffer has room for the text and its zero.
    unsafe {
        ptr::copy_nonoverlapping(text.as_ptr(), buf.cast(), text.len());
        *buf.add(text.len()) = 0;
    }
    Ok(())
}

/// An address as bytes: its text with a zero.
fn serialized(addr: Token) -> Result<Vec<u8>> {
    let held = get(addr)?;
    let mut bytes = text_of(&*class_of(&held)?, &held.address).into_bytes();
    bytes.push(0);
    Ok(bytes)
}

/// The text of an address of bytes that came from somewhere.
pub(super) fn parse(bytes: &[u8]) -> Result<&str> {
    let text = bytes.strip_suffix(&[0]).and_then(|text| std::str::from_utf8(text).ok());
    text.ok_or_else(|| {
        let text = format!("{} bytes are no serialised address", bytes.len());
        Failure::new(Status::PROTOCOL_ERROR, text)
    })
}

calls! {
    /// Looks an address up; the callback gets it, in trigger.
    HG_Addr_lookup1(
        context: Token,
        callback: HgCallback,
        arg: *mut c_void,
        name: *const c_char,
        _op: *mut Token,
    ) {
        // SAFETY: passed on from the caller.
        unsafe { lookup1(context, Callback::Hg(callback), arg, name) }
    }

    /// Looks an address up; the callback gets it, in trigger.
    HG_Core_addr_lookup1(
        context: Token,
        callback: CoreCallback,
        arg: *mut c_void,
        name: *const c_char,
        _op: *mut Token,
    ) {
        // SAFETY: passed on from the caller.
        unsafe { lookup1(context, Callback::Core(callback), arg, name) }
    }

    /// Looks an address up.
    HG_Addr_lookup2(class: Token, name: *const c_char, addr: *mut Token) {
        // SAFETY: passed on from the caller.
        unsafe { lookup2(class, name, addr) }
    }

    /// Looks an address up.
    HG_Core_addr_lookup2(class: Token, name: *const c_char, addr: *mut Token) {
        // SAFETY: passed on from the caller.
        unsafe { lookup2(class, name, addr) }
    }

    /// One holder less; null is none.
    HG_Addr_free(class: Token, addr: Token) {
        CLASSES.get(class)?;
        release(addr)
    }

    /// One holder less; null is none.
    HG_Core_addr_free(addr: Token) { release(addr) }

    /// A hint that the peer has gone: nothing is kept for it here.
    HG_Addr_set_remove(class: Token, addr: Token) {
        CLASSES.get(class)?;
        get(addr).map(drop)
    }

    /// A hint that the peer has gone: nothing is kept for it here.
    HG_Core_addr_set_remove(addr: Token) { get(addr).map(drop) }

    /// The calling process's address.
    HG_Addr_self(class: Token, addr: *mut Token) {
        // SAFETY: passed on from the caller.
        unsafe { own(class, addr) }
    }

    /// The calling process's address.
    HG_Core_addr_self(class: Token, addr: *mut Token) {
        // SAFETY: passed on from the caller.
        unsafe { own(class, addr) }
    }

    /// One holder more.
    HG_Addr_dup(class: Token, addr: Token, to: *mut Token) {
        CLASSES.get(class)?;
        // SAFETY: passed on from the caller.
        unsafe { dup(addr, to) }
    }

    /// One holder more.
    HG_Core_addr_dup(addr: Token, to: *mut Token) {
        // SAFETY: passed on from the caller.
        unsafe { dup(addr, to) }
    }

    /// Whether two addresses are the same process.
    HG_Addr_cmp(class: Token, one: Token, other: Token) -> u8, 0, {
        CLASSES.get(class)?;
        same(one, other)
    }

    /// Whether two addresses are the same process.
    HG_Core_addr_cmp(one: Token, other: Token) -> u8, 0, { same(one, other) }

    /// Whether an address is the calling process's own.
    HG_Core_addr_is_self(addr: Token) -> bool, false, { Ok(get(addr)?.address.is_self()) }

    /// An address as text; without a buffer, its length with the terminating zero.
    HG_Addr_to_string(class: Token, buf: *mut c_char, buf_size: *mut u64, addr: Token) {
        CLASSES.get(class)?;
        // SAFETY: passed on from the caller.
        unsafe { to_string(buf, buf_size, addr) }
    }

    /// An address as text; without a buffer, its length with the terminating zero.
    HG_Core_addr_to_string(buf: *mut c_char, buf_size: *mut u64, addr: Token) {
        // SAFETY: passed on from the caller.
        unsafe { to_string(buf, buf_size, addr) }
    }

    /// The network address beneath: there is none by the interface of 2.4.
    HG_Core_addr_get_na(addr: Token) -> Token, ptr::null_mut(), {
        get(addr).map(|_| ptr::null_mut())
    }

    /// Bytes of the serialised form; 0 for no address.
    HG_Core_addr_get_serialize_size(addr: Token, _flags: c_ulong) -> u64, 0, {
        Ok(serialized(addr)?.len() as u64)
    }

    /// Serialises an address.
    HG_Core_addr_serialize(buf: *mut c_void, buf_size: u64, _flags: c_ulong, addr: Token) {
        let serialized = serialized(addr)?;
        // SAFETY: passed on from the caller.
        unsafe { put_bytes(buf, buf_size, &serialized) }
    }

    /// The address that bytes describe.
    HG_Core_addr_deserialize(class: Token, addr: *mut Token, buf: *const c_void, buf_size: u64) {
        let held = CLASSES.get(class)?;
        // SAFETY: passed on from the caller.
        let (addr, from) = unsafe {
            let from = bytes(buf.cast::<u8>(), buf_size as usize, "bytes of an address")?;
            (place(addr, "address")?, from)
        };
        *addr = keep(class, held.class.lookup(parse(from)?)?);
        Ok(())
    }
}
