//! Addresses. The reference count of a handle changes under the lock of the table. An address of
//! 2.4 belongs to a class and ends with it; a duplicate is the same handle with one more reference.
//! An address of 2013 belongs to no class, and a duplicate is a handle of its own.

use super::class::CLASSES;
use crate::mercury::entry::{place, text};
use crate::mercury::interface::Interface;
use crate::mercury::table::{Number, Tables, Token};
use portolan_rpc::failure::Result;
use portolan_rpc::na::Address;
use std::os::raw::c_char;
use std::ptr;

#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldAddress {
    /// Null in the interface of 2013.
    pub class: Number,
    pub address: Address,
    holders: u32,
}

pub(crate) static ADDRESSES: Tables<HeldAddress> = Tables::new("address", 0x13);

pub(crate) fn keep(interface: Interface, class: Token, address: Address) -> Token {
    let class = match interface {
        Interface::V1 => Number::of(ptr::null_mut()),
        Interface::V2 => Number::of(class),
    };
    ADDRESSES[interface].insert(HeldAddress { class, address, holders: 1 })
}

pub(crate) fn keep_v1(address: Address) -> Token {
    keep(Interface::V1, ptr::null_mut(), address)
}

#[inline]
pub(crate) fn get(interface: Interface, addr: Token) -> Result<Address> {
    ADDRESSES[interface].with(addr, |held| held.address)
}

pub(crate) fn share(interface: Interface, addr: Token) -> Result<()> {
    ADDRESSES[interface].with(addr, |held| held.holders += 1)
}

/// Drops a reference; the last one removes the handle. Null is accepted.
pub(crate) fn release(interface: Interface, addr: Token) -> Result<()> {
    if addr.is_null() {
        return Ok(());
    }
    let last = |held: &mut HeldAddress| {
        held.holders -= 1;
        Ok(held.holders == 0)
    };
    ADDRESSES[interface].remove_if(addr, last).map(drop)
}

pub(crate) fn drop_those_of(interface: Interface, class: Token) {
    let (of, mut gone) = (Number::of(class), Vec::new());
    ADDRESSES[interface].each(|addr, held| {
        if held.class == of {
            gone.push(addr);
        }
    });
    for addr in gone {
        let _ = ADDRESSES[interface].remove(addr);
    }
}

/// # Safety
/// `name` must be null or a NUL-terminated string; `addr` must be null or valid for a write.
pub(crate) unsafe fn lookup(
    interface: Interface,
    class: Token,
    name: *const c_char,
    addr: *mut Token,
) -> Result<()> {
    let held = CLASSES.get(class)?;
    // SAFETY: by contract, `name` is null or NUL-terminated, and `addr` is null or valid.
    let (name, addr) = unsafe { (text(name, "name")?, place(addr, "address")?) };
    *addr = keep(interface, class, held.class.lookup(&name)?);
    Ok(())
}

/// # Safety
/// `addr` must be null or valid for a write.
pub(crate) unsafe fn own(interface: Interface, class: Token, addr: *mut Token) -> Result<()> {
    let held = CLASSES.get(class)?;
    // SAFETY: by this function's contract, `addr` is null or valid for a write.
    *unsafe { place(addr, "address") }? = keep(interface, class, held.class.own_address());
    Ok(())
}
