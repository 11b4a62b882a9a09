//! Bulk handles: memory that others may read or write, bound to an address or not.
//!
//! The serialised form is that of the interface of 2013. A handle that is bound
//! (`HG_Bulk_bind`) has before it: a magic number (4), the number of the context (1),
//! zero (1), the length of the address (2), the address as text; so the process that gets it knows
//! where to transfer from.

use super::address;
use super::codes::calls;
use super::objects::{CLASSES, CONTEXTS, HeldClass as Class};
use super::types::BulkAttr;
use crate::capi::mercury::bulk::give;
use crate::capi::mercury::face::put_bytes;
use crate::capi::mercury::face::{bytes, place};
use crate::capi::mercury::table::{Number, Table, Token};
use crate::rpc::bulk::Bulk;
use crate::rpc::failure::{Failure, Result, Status, refuse};
use crate::rpc::na::{Access, Run};
use parking_lot::Mutex;
use std::os::raw::{c_ulong, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Whose memory a handle is for.
#[derive(Debug, Clone)]
pub(super) struct Bound {
    pub addr: Token,
    text: String,
    context: u8,
}

// SAFETY: the handle is a number.
unsafe impl Send for Bound {}

/// What a handle stands for.
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
/// `HG_MEM_TYPE_HOST`, `HG_MEM_TYPE_UNKNOWN`.
const HOST: [i32; 2] = [0, 4];

impl Held {
    /// The address that the handle is bound to.
    pub(super) fn bound(&self) -> Option<Bound> {
        self.bound.lock().clone()
    }

    /// # Errors
    /// `INVALID_ARG` past its end.
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
/// The arrays must have `count` elements; the memory must be as the flags say while the
/// handle lives.
unsafe fn create(
    class: Token,
    count: u32,
    (ptrs, sizes): (*mut *mut c_void, *const u64),
    flags: u8,
    handle: *mut Token,
) -> Result<()> {
    CLASSES.get(class)?;
    let (access, count) = (Access::from_flags(flags.into())?, count as usize);
    // SAFETY: passed on from the caller; sizes have 8 bytes on either side.
    let (to, sizes) = unsafe {
        (place(handle, "bulk handle")?, bytes(sizes.cast::<usize>(), count, "sizes of segments")?)
    };
    let bulk = if ptrs.is_null() {
        Bulk::allocate(sizes, access)?
    } else {
        // SAFETY: as above.
        let ptrs = unsafe { bytes(ptrs.cast_const(), count, "addresses of segments") }?;
        let runs = ptrs.iter().zip(sizes).map(|(&p, &len)| Run { address: p as usize, len });
        // SAFETY: as above.
        unsafe { Bulk::expose(runs.collect(), access) }?
    };
    *to = keep(class, bulk, None);
    Ok(())
}

/// The handle that bytes describe.
pub(super) fn parse(class: Token, bytes: &[u8]) -> Result<Token> {
    let held = CLASSES.get(class)?;
    if bytes.get(..4) != Some(&MAGIC.to_le_bytes()[..]) {
        return Ok(keep(class, Bulk::from_bytes(bytes)?, None));
    }
    let broken = || Failure::new(Status::PROTOCOL_ERROR, "a bound bulk handle makes no sense");
    let head = bytes.get(..HEAD).ok_or_else(broken)?;
    let (context, len) = (head[4], usize::from(u16::from_le_bytes([head[6], head[7]])));
    let text = bytes.get(HEAD..HEAD + len).ok_or_else(broken)?;
    let text = std::str::from_utf8(text).map_err(|_| broken())?.to_string();
    let bulk = Bulk::from_bytes(&bytes[HEAD + len..])?;
    let addr = address::keep(class, held.class.lookup(&text)?);
    Ok(keep(class, bulk, Some(Bound { addr, text, context })))
}

/// The serialised form of a handle.
pub(super) fn serialized(handle: Token) -> Result<Vec<u8>> {
    Ok(BULKS.get(handle)?.serialized())
}

/// One holder less; null is none.
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
    /// A bulk handle over segments; without addresses memory is allocated, zeroed, and freed
    /// with the handle.
    HG_Bulk_create(
        class: Token,
        count: u32,
        ptrs: *mut *mut c_void,
        sizes: *const u64,
        flags: u8,
        handle: *mut Token,
    ) {
        // SAFETY: passed on from the caller.
        unsafe { create(class, count, (ptrs, sizes), flags, handle) }
    }

    /// The same, of memory of the host.
    HG_Bulk_create_attr(
        class: Token,
        count: u32,
        ptrs: *mut *mut c_void,
        sizes: *const u64,
        flags: u8,
        attrs: *const BulkAttr,
        handle: *mut Token,
    ) {
        // SAFETY: passed on from the caller.
        if let Some(attrs) = unsafe { attrs.as_ref() }
            && !HOST.contains(&attrs.mem_type)
        {
            refuse!(OPNOTSUPPORTED, "memory of type {} is not the host's", attrs.mem_type);
        }
        // SAFETY: as above.
        unsafe { create(class, count, (ptrs, sizes), flags, handle) }
    }

    /// One holder less; the last one frees the handle. Null is none.
    HG_Bulk_free(handle: Token) { release(handle) }

    /// One holder more.
    HG_Bulk_ref_incr(handle: Token) {
        BULKS.get(handle)?.holders.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// The handle carries this process's address, and the context's number.
    HG_Bulk_bind(handle: Token, context: Token) { bind(handle, context) }

    /// The address that a handle carries; null for none. It goes with the handle.
    HG_Bulk_get_addr(handle: Token) -> Token, ptr::null_mut(), {
        Ok(BULKS.get(handle)?.bound().map_or(ptr::null_mut(), |bound| bound.addr))
    }

    /// The number of the context that a handle carries; 0 for none.
    HG_Bulk_get_context_id(handle: Token) -> u8, 0, {
        Ok(BULKS.get(handle)?.bound().map_or(0, |bound| bound.context))
    }

    /// The segments that a range consists of, where they are this process's.
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
        // The owner may use its own memory as it likes, whatever others may do.
        let runs = held.bulk.access(offset, size)?;
        // SAFETY: passed on from the caller; sizes are of 8 bytes on either side.
        unsafe { give(&runs, most, (ptrs, sizes.cast()), actual) };
        Ok(())
    }

    /// Bytes of all segments; 0 for no handle.
    HG_Bulk_get_size(handle: Token) -> u64, 0, { Ok(BULKS.get(handle)?.bulk.len() as u64) }

    /// The number of segments; 0 for no handle.
    HG_Bulk_get_segment_count(handle: Token) -> u32, 0, {
        Ok(BULKS.get(handle)?.bulk.segments() as u32)
    }

    /// What others may do; 0 for no handle.
    HG_Bulk_get_flags(handle: Token) -> u8, 0, {
        Ok(BULKS.get(handle)?.bulk.permission().flags())
    }

    /// Bytes of the serialised form; 0 for no handle.
    HG_Bulk_get_serialize_size(handle: Token, _flags: c_ulong) -> u64, 0, {
        Ok(serialized(handle)?.len() as u64)
    }

    /// Serialises a handle.
    HG_Bulk_serialize(buf: *mut c_void, buf_size: u64, _flags: c_ulong, handle: Token) {
        let serialized = serialized(handle)?;
        // SAFETY: passed on from the caller.
        unsafe { put_bytes(buf, buf_size, &serialized) }
    }

    /// The handle that bytes describe.
    HG_Bulk_deserialize(class: Token, handle: *mut Token, buf: *const c_void, buf_size: u64) {
        // SAFETY: passed on from the caller.
        let (to, from) = unsafe {
            let from = bytes(buf.cast::<u8>(), buf_size as usize, "bytes of a handle")?;
            (place(handle, "bulk handle")?, from)
        };
        *to = parse(class, from)?;
        Ok(())
    }
}
