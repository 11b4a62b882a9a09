//! Bulk handles: memory that other processes may read or write, optionally bound to an address.
//!
//! An unbound handle has the serialised form of the 2013 interface. The form of a bound handle
//! (`HG_Bulk_bind`) adds a prefix that gives the receiver the address to transfer from: magic
//! number (4 bytes), number of the context (1 byte), zero (1 byte), length of the address (2
//! bytes), address as text.

use super::address;
use super::codes::calls;
use super::objects::{CLASSES, CONTEXTS, HeldClass as Class};
use super::types::BulkAttr;
use crate::mercury::bulk::give;
use crate::mercury::face::put_bytes;
use crate::mercury::face::{bytes, place};
use crate::mercury::table::{Number, Table, Token};
use parking_lot::Mutex;
use portolan_rpc::bulk::Bulk;
use portolan_rpc::failure::{Failure, Result, Status, refuse};
use portolan_rpc::na::{Access, Run};
use std::os::raw::{c_ulong, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The process and context that a handle is bound to.
#[derive(Debug, Clone)]
pub(super) struct Bound {
    pub addr: Token,
    text: String,
    context: u8,
}

// SAFETY: `addr` is a number, and it is never dereferenced.
unsafe impl Send for Bound {}

/// The state of a bulk handle.
#[derive(Debug)]
pub(super) struct Held {
    pub bulk: Bulk,
    class: Number,
    bound: Mutex<Option<Bound>>,
    holders: AtomicUsize,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(bound) = self.bound.get_mut().take() {
            let _ = address::release(bound.addr);
        }
    }
}

pub(super) static BULKS: Table<Arc<Held>> = Table::new("bulk handle", 0x45);

const MAGIC: u32 = 0x444e_4942;
const HEAD: usize = 8;
/// The accepted memory types: `HG_MEM_TYPE_HOST` and `HG_MEM_TYPE_UNKNOWN`.
const HOST: [i32; 2] = [0, 4];

impl Held {
    /// Returns the address and context that the handle is bound to.
    pub(super) fn bound(&self) -> Option<Bound> {
        self.bound.lock().clone()
    }

    /// Checks a range of the handle's memory, in bytes, and returns it as `usize`.
    ///
    /// # Errors
    /// `INVALID_ARG` if the range exceeds the memory.
    pub(super) fn check(&self, offset: u64, size: u64) -> Result<(usize, usize)> {
        let len = self.bulk.len() as u64;
        if offset.checked_add(size).is_none_or(|end| end > len) {
            refuse!(INVALID_ARG, "{size} bytes at {offset} are past the end of {len} bytes");
        }
        Ok((offset as usize, size as usize))
    }

    fn serialized(&self) -> Vec<u8> {
        let bulk = self.bulk.to_bytes();
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
    BULKS.insert(Arc::new(Held { bulk, class, bound, holders: AtomicUsize::new(1) }))
}

/// # Safety
/// `sizes`, and `ptrs` if it is not null, must have `count` elements; `handle` must be null or
/// valid for a write. The segments must allow the access in `flags` while the handle exists.
unsafe fn create(
    class: Token,
    count: u32,
    (ptrs, sizes): (*mut *mut c_void, *const u64),
    flags: u8,
    handle: *mut Token,
) -> Result<()> {
    CLASSES.get(class)?;
    let (access, count) = (Access::from_flags(flags.into())?, count as usize);
    // SAFETY: by this function's contract, `handle` is null or valid and `sizes` has `count`
    // elements. A `u64` and a `usize` both have 8 bytes.
    let (to, sizes) = unsafe {
        (place(handle, "bulk handle")?, bytes(sizes.cast::<usize>(), count, "sizes of segments")?)
    };
    let bulk = if ptrs.is_null() {
        Bulk::allocate(sizes, access)?
    } else {
        // SAFETY: `ptrs` is not null, so it has `count` elements by this function's contract.
        let ptrs = unsafe { bytes(ptrs.cast_const(), count, "addresses of segments") }?;
        let runs = ptrs.iter().zip(sizes).map(|(&p, &len)| Run { address: p as usize, len });
        // SAFETY: by this function's contract, the segments allow the access in `flags` while the
        // handle exists.
        unsafe { Bulk::expose(runs.collect(), access) }?
    };
    *to = keep(class, bulk, None);
    Ok(())
}

/// Creates a handle from its serialised form.
pub(super) fn parse(class: Token, bytes: &[u8]) -> Result<Token> {
    let held = CLASSES.get(class)?;
    if bytes.get(..4) != Some(&MAGIC.to_le_bytes()[..]) {
        return Ok(keep(class, Bulk::from_bytes(bytes)?, None));
    }
    let broken =
        || Failure::new(Status::PROTOCOL_ERROR, "the bytes of a bound bulk handle are invalid");
    let head = bytes.get(..HEAD).ok_or_else(broken)?;
    let (context, len) = (head[4], usize::from(u16::from_le_bytes([head[6], head[7]])));
    let text = bytes.get(HEAD..HEAD + len).ok_or_else(broken)?;
    let text = std::str::from_utf8(text).map_err(|_| broken())?.to_string();
    let bulk = Bulk::from_bytes(&bytes[HEAD + len..])?;
    let addr = address::keep(class, held.class.lookup(&text)?);
    Ok(keep(class, bulk, Some(Bound { addr, text, context })))
}

/// Returns the serialised form of a handle.
pub(super) fn serialized(handle: Token) -> Result<Vec<u8>> {
    Ok(BULKS.get(handle)?.serialized())
}

/// Drops a reference; the last one frees the handle. Null is accepted.
pub(super) fn release(handle: Token) -> Result<()> {
    if handle.is_null() {
        return Ok(());
    }
    let last = |held: &Arc<Held>| Ok(held.holders.fetch_sub(1, Ordering::AcqRel) <= 1);
    BULKS.remove_if(handle, last).map(drop)
}

fn bind(handle: Token, context: Token) -> Result<()> {
    let (held, context) = (BULKS.get(handle)?, CONTEXTS.get(context)?);
    if !held.bulk.is_local() {
        refuse!(INVALID_ARG, "the handle is for memory of another process; its owner binds it");
    }
    if held.class != context.class_token {
        refuse!(INVALID_ARG, "the handle and the context are of different classes");
    }
    let class: &Class = &context.class;
    let address = class.class.own_address();
    let text = address::text_of(class, &address);
    let addr = address::keep(held.class.token(), address);
    let bound = Bound { addr, text, context: context.context.shared.id };
    if let Some(before) = held.bound.lock().replace(bound) {
        address::release(before.addr)?;
    }
    Ok(())
}

calls! {
    /// Creates a bulk handle for `count` segments. If `ptrs` is null, zeroed memory is allocated
    /// for them and freed with the handle.
    HG_Bulk_create(
        class: Token,
        count: u32,
        ptrs: *mut *mut c_void,
        sizes: *const u64,
        flags: u8,
        handle: *mut Token,
    ) {
        // SAFETY: by the call's contract, the arrays have `count` elements, `handle` is null or
        // valid, and the segments allow the access in `flags`.
        unsafe { create(class, count, (ptrs, sizes), flags, handle) }
    }

    /// Creates a bulk handle as `HG_Bulk_create` does. Only host memory is supported.
    HG_Bulk_create_attr(
        class: Token,
        count: u32,
        ptrs: *mut *mut c_void,
        sizes: *const u64,
        flags: u8,
        attrs: *const BulkAttr,
        handle: *mut Token,
    ) {
        // SAFETY: by the call's contract, `attrs` is null or valid for reads.
        if let Some(attrs) = unsafe { attrs.as_ref() }
            && !HOST.contains(&attrs.mem_type)
        {
            refuse!(OPNOTSUPPORTED, "memory of type {} is not supported; only host memory is", attrs.mem_type);
        }
        // SAFETY: by the call's contract, the arrays have `count` elements, `handle` is null or
        // valid, and the segments allow the access in `flags`.
        unsafe { create(class, count, (ptrs, sizes), flags, handle) }
    }

    /// Drops a reference; the last one frees the handle. Null is accepted.
    HG_Bulk_free(handle: Token) { release(handle) }

    /// Adds a reference to the handle.
    HG_Bulk_ref_incr(handle: Token) {
        BULKS.get(handle)?.holders.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Binds a local handle to the address of this process and the number of the context. The
    /// serialised form then carries both.
    HG_Bulk_bind(handle: Token, context: Token) { bind(handle, context) }

    /// Returns the address that a handle is bound to, or null. The address is freed with the
    /// handle.
    HG_Bulk_get_addr(handle: Token) -> Token, ptr::null_mut(), {
        Ok(BULKS.get(handle)?.bound().map_or(ptr::null_mut(), |bound| bound.addr))
    }

    /// Returns the number of the context that a handle is bound to, or 0.
    HG_Bulk_get_context_id(handle: Token) -> u8, 0, {
        Ok(BULKS.get(handle)?.bound().map_or(0, |bound| bound.context))
    }

    /// Writes the addresses and lengths of the local segments that a range covers, at most `most`
    /// of them. Fails if the memory belongs to another process.
    HG_Bulk_access(
        handle: Token,
        offset: u64,
        size: u64,
        _flags: u8,
        most: u32,
        ptrs: *mut *mut c_void,
        sizes: *mut u64,
        actual: *mut u32,
    ) {
        let held = BULKS.get(handle)?;
        let (offset, size) = held.check(offset, size)?;
        // The permissions of the handle restrict other processes only, not the owner.
        let runs = held.bulk.access(offset, size)?;
        // SAFETY: by the call's contract, the arrays are null or have `most` elements, and `actual`
        // is null or valid. A `u64` and a `usize` both have 8 bytes.
        unsafe { give(&runs, most, (ptrs, sizes.cast()), actual) };
        Ok(())
    }

    /// Returns the total length of the segments in bytes, or 0 if the handle is invalid.
    HG_Bulk_get_size(handle: Token) -> u64, 0, { Ok(BULKS.get(handle)?.bulk.len() as u64) }

    /// Returns the number of segments, or 0 if the handle is invalid.
    HG_Bulk_get_segment_count(handle: Token) -> u32, 0, {
        Ok(BULKS.get(handle)?.bulk.segments() as u32)
    }

    /// Returns the access that other processes have, as flags, or 0 if the handle is invalid.
    HG_Bulk_get_flags(handle: Token) -> u8, 0, {
        Ok(BULKS.get(handle)?.bulk.permission().flags())
    }

    /// Returns the length of the serialised form in bytes, or 0 if the handle is invalid.
    HG_Bulk_get_serialize_size(handle: Token, _flags: c_ulong) -> u64, 0, {
        Ok(serialized(handle)?.len() as u64)
    }

    /// Writes the serialised form of a handle.
    HG_Bulk_serialize(buf: *mut c_void, buf_size: u64, _flags: c_ulong, handle: Token) {
        let serialized = serialized(handle)?;
        // SAFETY: by the call's contract, `buf` is null or valid for writes of `buf_size` bytes.
        unsafe { put_bytes(buf, buf_size, &serialized) }
    }

    /// Creates a handle from its serialised form.
    HG_Bulk_deserialize(class: Token, handle: *mut Token, buf: *const c_void, buf_size: u64) {
        // SAFETY: by the call's contract, `handle` is null or valid, and `buf` is null or valid for
        // reads of `buf_size` bytes.
        let (to, from) = unsafe {
            let from = bytes(buf.cast::<u8>(), buf_size as usize, "bytes of a handle")?;
            (place(handle, "bulk handle")?, from)
        };
        *to = parse(class, from)?;
        Ok(())
    }
}
