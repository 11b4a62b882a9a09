//! Addresses. The reference count of a handle changes under the lock of the table. An address of
//! 2.4 belongs to a class and ends with it; a duplicate is the same handle with one more reference.
//! An address of 2013 belongs to no class, and a duplicate is a handle of its own.

use crate::mercury::table::{Number, Table, Token};
use portolan_rpc::failure::Result;
use portolan_rpc::na::Address;
use std::ptr;

#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldAddress {
    /// Null if the address belongs to no class.
    pub class: Number,
    pub address: Address,
    holders: u32,
}

pub(crate) static ADDRESSES: Table<HeldAddress> = Table::new("address", 0x13);

pub(crate) fn keep(class: Token, address: Address) -> Token {
    ADDRESSES.insert(HeldAddress { class: Number::of(class), address, holders: 1 })
}

/// Keeps an address that belongs to no class.
pub(crate) fn keep_alone(address: Address) -> Token {
    keep(ptr::null_mut(), address)
}

#[inline]
pub(crate) fn get(addr: Token) -> Result<Address> {
    ADDRESSES.with(addr, |held| held.address)
}

pub(crate) fn share(addr: Token) -> Result<()> {
    ADDRESSES.with(addr, |held| held.holders += 1)
}

/// Drops a reference; the last one removes the handle. Null is accepted.
pub(crate) fn release(addr: Token) -> Result<()> {
    if addr.is_null() {
        return Ok(());
    }
    let last = |held: &mut HeldAddress| {
        held.holders -= 1;
        Ok(held.holders == 0)
    };
    ADDRESSES.remove_if(addr, last).map(drop)
}

pub(crate) fn drop_those_of(class: Token) {
    let (of, mut gone) = (Number::of(class), Vec::new());
    ADDRESSES.each(|addr, held| {
        if held.class == of {
            gone.push(addr);
        }
    });
    for addr in gone {
        let _ = ADDRESSES.remove(addr);
    }
}
