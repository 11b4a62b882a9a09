//! Bulk handles: memory that other processes may read or write, optionally bound to an address.
//!
//! Both interfaces serialise an unbound handle alike. A bound handle (`HG_Bulk_bind` of 2.4) has a
//! prefix with the address to transfer from: magic number (4 bytes), number of the context (1),
//! zero (1), length of the address (2), address as text. Without a class, that form is refused.

use super::address;
use super::class::CLASSES;
use super::context::CONTEXTS;
use crate::boundary::{array, collect};
use crate::mercury::entry::{maybe, place, put_bytes};
use crate::mercury::table::{Number, Table, Token};
use parking_lot::Mutex;
use portolan_rpc::bulk::Bulk;
use portolan_rpc::failure::{Failure, Result, Status, refuse};
use portolan_rpc::na::{Direction, Permission, Run};
use std::os::raw::{c_int, c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The first bytes of a bound handle in serialised form. An unbound handle starts with other bytes.
const MAGIC: u32 = 0x444e_4942;
/// Length of the prefix of a bound handle without the address, in bytes.
const HEAD: usize = 8;

/// The process and context that a handle of 2.4 is bound to.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    pub addr: Token,
    pub context: u8,
    text: String,
}

// SAFETY: `addr` is a number, and it is never dereferenced.
unsafe impl Send for Bound {}

#[derive(Debug)]
pub(crate) struct HeldBulk {
    pub bulk: Bulk,
    /// Null in the interface of 2013.
    class: Number,
    bound: Mutex<Option<Bound>>,
    holders: AtomicUsize,
}

pub(crate) static BULKS: Table<Arc<HeldBulk>> = Table::new("bulk handle", 0x23);

impl Drop for HeldBulk {
    fn drop(&mut self) {
        if let Some(bound) = self.bound.get_mut().take() {
            // An error means that the program has freed the address too often.
            let _ = address::release(bound.addr);
        }
    }
}

impl HeldBulk {
    pub(crate) fn hold(&self) {
        self.holders.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn bound(&self) -> Option<Bound> {
        self.bound.lock().clone()
    }

    /// Returns the length of the serialised form, `with_data` if other processes only read it.
    pub(crate) fn serialized_len(&self, with_data: bool) -> usize {
        let prefix = self.bound.lock().as_ref().map_or(0, |bound| HEAD + bound.text.len());
        let has_data = with_data && self.bulk.mem().may_have_data();
        prefix + self.bulk.encoded_len() + if has_data { self.bulk.len() } else { 0 }
    }

    pub(crate) fn serialized(&self, with_data: bool) -> Vec<u8> {
        let data = if with_data { self.bulk.to_bytes_with_data() } else { None };
        let bulk = data.unwrap_or_else(|| self.bulk.to_bytes());
        let Some(bound) = self.bound() else { return bulk };
        let text = bound.text.as_bytes();
        let mut all = Vec::with_capacity(HEAD + text.len() + bulk.len());
        all.extend_from_slice(&MAGIC.to_le_bytes());
        all.extend_from_slice(&[bound.context, 0]);
        all.extend_from_slice(&(text.len() as u16).to_le_bytes());
        all.extend_from_slice(text);
        all.extend_from_slice(&bulk);
        all
    }
}

fn keep(class: Token, bulk: Bulk, bound: Option<Bound>) -> Token {
    let (class, bound) = (Number::of(class), Mutex::new(bound));
    let holders = AtomicUsize::new(1);
    BULKS.insert(Arc::new(HeldBulk { bulk, class, bound, holders }))
}

/// Creates a handle for `count` segments. If `ptrs` is null, allocates zeroed memory that is freed
/// with the handle.
///
/// # Safety
/// `sizes`, and `ptrs` if it is not null, must have `count` elements; `handle` must be null or
/// valid for a write. The segments must allow the access in `flags` while the handle exists.
pub(crate) unsafe fn create(
    class: Token,
    count: usize,
    (ptrs, sizes): (*mut *mut c_void, *const usize),
    flags: u64,
    handle: *mut Token,
) -> Result<()> {
    let access = Permission::from_flags(flags)?;
    // SAFETY: by contract, `handle` is null or valid, and `sizes` has `count` elements.
    let (to, sizes) =
        unsafe { (place(handle, "bulk handle")?, array(sizes, count, "the array of sizes")?) };
    let bulk = if ptrs.is_null() {
        Bulk::allocate(sizes, access)?
    } else {
        // SAFETY: `ptrs` is not null, so it has `count` elements by this function's contract.
        let ptrs = unsafe { array(ptrs.cast_const(), count, "the array of addresses") }?;
        let runs = ptrs.iter().zip(sizes).map(|(&p, &len)| Run { address: p as usize, len });
        let runs = collect(runs, "segments")?;
        // SAFETY: by contract, the segments allow the access in `flags` while the handle exists.
        unsafe { Bulk::expose(runs, access) }?
    };
    *to = keep(class, bulk, None);
    Ok(())
}

/// Drops a reference; the last one frees the handle. Null is accepted. A transfer of this process
/// that uses the handle continues, but other processes have no access any more.
pub(crate) fn release(handle: Token) -> Result<()> {
    if handle.is_null() {
        return Ok(());
    }
    let last = |held: &mut Arc<HeldBulk>| Ok(held.holders.fetch_sub(1, Ordering::AcqRel) <= 1);
    if let Some(held) = BULKS.remove_if(handle, last)? {
        held.bulk.withdraw();
    }
    Ok(())
}

/// Writes the addresses and lengths of at most `most` local segments that a range covers, and their
/// number. The permissions of the handle restrict other processes only. Fails with `ACCESS` if the
/// memory belongs to another process, and with `OVERFLOW` if the range exceeds it.
///
/// # Safety
/// Each array must be null or have `most` elements. `actual` must be null or valid for a write.
pub(crate) unsafe fn access(
    handle: Token,
    (offset, size): (usize, usize),
    most: c_uint,
    (ptrs, sizes): (*mut *mut c_void, *mut usize),
    actual: *mut c_uint,
) -> Result<()> {
    let runs = BULKS.get(handle)?.bulk.access(offset, size)?;
    let given = runs.len().min(most as usize);
    for (n, run) in runs.iter().take(given).enumerate() {
        // SAFETY: an array that is not null has `most` elements, and `n` is less.
        unsafe {
            if !ptrs.is_null() {
                *ptrs.add(n) = run.address as *mut c_void;
            }
            if !sizes.is_null() {
                *sizes.add(n) = run.len;
            }
        }
    }
    // SAFETY: by this function's contract, `actual` is null or valid for a write.
    if let Some(actual) = unsafe { maybe(actual) } {
        *actual = given as c_uint;
    }
    Ok(())
}

pub(crate) fn direction(op: c_int) -> Result<Direction> {
    match op {
        0 => Ok(Direction::Put),
        1 => Ok(Direction::Get),
        _ => refuse!(INVALID_ARG, "{op} is neither HG_BULK_PUSH nor HG_BULK_PULL"),
    }
}

/// # Safety
/// `buf` must be null or valid for writes of `size` bytes.
pub(crate) unsafe fn serialize(
    buf: *mut c_void,
    size: u64,
    with_data: bool,
    handle: Token,
) -> Result<()> {
    let serialized = BULKS.get(handle)?.serialized(with_data);
    // SAFETY: by this function's contract, `buf` is null or valid for writes of `size` bytes.
    unsafe { put_bytes(buf, size, &serialized) }
}

/// # Safety
/// `buf` must be null or valid for reads of `size` bytes, `handle` null or valid for a write.
pub(crate) unsafe fn deserialize(
    class: Token,
    handle: *mut Token,
    (buf, size): (*const c_void, usize),
) -> Result<()> {
    // SAFETY: by contract, `handle` is null or valid, and `buf` is null or has `size` bytes.
    let (to, from) = unsafe {
        (place(handle, "bulk handle")?, array(buf.cast::<u8>(), size, "the serialised handle")?)
    };
    *to = parse(class, from)?;
    Ok(())
}

pub(crate) fn parse(class: Token, bytes: &[u8]) -> Result<Token> {
    let held = if class.is_null() { None } else { Some(CLASSES.get(class)?) };
    let Some(held) = held.filter(|_| bytes.starts_with(&MAGIC.to_le_bytes())) else {
        let bulk = Bulk::from_bytes(bytes)?;
        return Ok(keep(class, bulk, None));
    };
    let cut = || Failure::new(Status::OVERFLOW, "bytes of a bound bulk handle are missing");
    let head = bytes.get(..HEAD).ok_or_else(cut)?;
    let (context, len) = (head[4], usize::from(u16::from_le_bytes([head[6], head[7]])));
    let (text, bulk) = bytes[HEAD..].split_at_checked(len).ok_or_else(cut)?;
    let Ok(text) = str::from_utf8(text).map(str::to_string) else {
        refuse!(PROTOCOL_ERROR, "the address of a bound bulk handle is not UTF-8");
    };
    let bulk = Bulk::from_bytes(bulk)?;
    let addr = address::keep(class, held.class.lookup(&text)?);
    Ok(keep(class, bulk, Some(Bound { addr, text, context })))
}

/// Binds a local handle of 2.4 to the address of this process and the number of the context.
pub(crate) fn bind(handle: Token, context: Token) -> Result<()> {
    let (held, context) = (BULKS.get(handle)?, CONTEXTS.get(context)?);
    if !held.bulk.is_local() {
        refuse!(INVALID_ARG, "the handle is for memory of another process; its owner binds it");
    }
    if held.class != context.class_token {
        refuse!(INVALID_ARG, "the handle and the context are of different classes");
    }
    let class = &context.class.class;
    let address = class.own_address();
    let text = class.network().text_of(&address);
    let addr = address::keep(held.class.token(), address);
    let bound = Bound { addr, text, context: context.context.shared.id };
    if let Some(before) = held.bound.lock().replace(bound) {
        address::release(before.addr)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr;

    #[test]
    fn the_last_reference_withdraws_the_memory_even_in_a_transfer() {
        let bulk = Bulk::allocate(&[8], Permission::ReadWrite).unwrap();
        let handle = keep(ptr::null_mut(), bulk, None);
        // A transfer in progress holds the object like this.
        let held = BULKS.get(handle).unwrap();
        held.hold();
        release(handle).unwrap();
        assert!(held.bulk.mem().is_registered());
        release(handle).unwrap();
        assert!(!held.bulk.mem().is_registered());
        assert_eq!(release(handle).unwrap_err().status(), Status::INVALID_ARG);
    }
}
