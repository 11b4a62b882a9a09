//! `na.h`: messages, memory handles, put and get.

use super::face::{bytes, code, place, put_bytes, value};
use super::na::{NOWHERE, NaCallback, Place, both, calling, give_op};
use super::table::{ADDRESSES, CLASSES, Table, Token};
use crate::rpc::failure::{Result, refuse};
use crate::rpc::na::{Access, Direction, Mem, Part, Run};
use std::os::raw::{c_int, c_ulong, c_void};
use std::sync::Arc;

static MEMORY: Table<Arc<Mem>> = Table::new("memory handle", 0x14);

/// Tells NA's memory handles from others.
const KIND: u8 = 0;

/// `struct na_segment`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct NaSegment {
    address: u64,
    size: u64,
}

fn buffer(at: *mut c_void, size: u64) -> Result<Place> {
    if at.is_null() && size > 0 {
        refuse!(INVALID_ARG, "a buffer of {size} bytes is at the null address");
    }
    Ok(Place { at: at.cast(), len: size as usize })
}

/// Sends an unexpected message.
///
/// # Safety
/// `buf` must be valid for reads of `buf_size` bytes, `op_id` null, ignored or valid.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn NA_Msg_send_unexpected(
    na_class: Token,
    context: Token,
    callback: NaCallback,
    arg: *mut c_void,
    buf: *const c_void,
    buf_size: u64,
    dest: Token,
    tag: u32,
    op_id: *mut Token,
) -> c_int {
    code("NA_Msg_send_unexpected", || {
        let (_, context) = both(na_class, context)?;
        let dest = ADDRESSES.get(dest)?;
        // SAFETY: passed on from the caller.
        let body = unsafe { bytes(buf.cast::<u8>(), buf_size as usize, "bytes of a message") }?;
        let op = context.send_unexpected(&dest, tag, body, calling(callback, arg, NOWHERE))?;
        // SAFETY: as above.
        unsafe { give_op(op_id, op) };
        Ok(())
    })
}

/// Receives an unexpected message.
///
/// # Safety
/// `buf` must be valid for writes of `buf_size` bytes until the callback has run,
/// `op_id` null, ignored or valid.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn NA_Msg_recv_unexpected(
    na_class: Token,
    context: Token,
    callback: NaCallback,
    arg: *mut c_void,
    buf: *mut c_void,
    buf_size: u64,
    op_id: *mut Token,
) -> c_int {
    code("NA_Msg_recv_unexpected", || {
        let (_, context) = both(na_class, context)?;
        let op = context.recv_unexpected(calling(callback, arg, buffer(buf, buf_size)?))?;
        // SAFETY: passed on from the caller.
        unsafe { give_op(op_id, op) };
        Ok(())
    })
}

/// Sends an expected message.
///
/// # Safety
/// As for `NA_Msg_send_unexpected`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn NA_Msg_send_expected(
    na_class: Token,
    context: Token,
    callback: NaCallback,
    arg: *mut c_void,
    buf: *const c_void,
    buf_size: u64,
    dest: Token,
    tag: u32,
    op_id: *mut Token,
) -> c_int {
    code("NA_Msg_send_expected", || {
        let (_, context) = both(na_class, context)?;
        let dest = ADDRESSES.get(dest)?;
        // SAFETY: passed on from the caller.
        let body = unsafe { bytes(buf.cast::<u8>(), buf_size as usize, "bytes of a message") }?;
        let op = context.send_expected(&dest, tag, body, calling(callback, arg, NOWHERE))?;
        // SAFETY: as above.
        unsafe { give_op(op_id, op) };
        Ok(())
    })
}

/// Receives an expected message.
///
/// # Safety
/// As for `NA_Msg_recv_unexpected`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn NA_Msg_recv_expected(
    na_class: Token,
    context: Token,
    callback: NaCallback,
    arg: *mut c_void,
    buf: *mut c_void,
    buf_size: u64,
    source: Token,
    tag: u32,
    op_id: *mut Token,
) -> c_int {
    code("NA_Msg_recv_expected", || {
        let (_, context) = both(na_class, context)?;
        let source = ADDRESSES.get(source)?;
        let callback = calling(callback, arg, buffer(buf, buf_size)?);
        let op = context.recv_expected(&source, tag, callback)?;
        // SAFETY: passed on from the caller.
        unsafe { give_op(op_id, op) };
        Ok(())
    })
}

/// # Safety
/// The runs must be as the flags say while the handle lives; `mem_handle` null or valid.
unsafe fn create(runs: Vec<Run>, flags: c_ulong, mem_handle: *mut Token) -> Result<()> {
    let access = Access::from_flags(flags)?;
    // SAFETY: passed on from the caller.
    unsafe {
        let to = place(mem_handle, "memory handle")?;
        *to = MEMORY.insert(Mem::expose(runs, access)?);
    }
    Ok(())
}

/// A memory handle over one region.
///
/// # Safety
/// The bytes must be valid while the handle lives, for what the flags allow.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn NA_Mem_handle_create(
    na_class: Token,
    buf: *mut c_void,
    buf_size: u64,
    flags: c_ulong,
    mem_handle: *mut Token,
) -> c_int {
    code("NA_Mem_handle_create", || {
        CLASSES.get(na_class)?;
        let run = Run { address: buf as usize, len: buf_size as usize };
        // SAFETY: passed on from the caller.
        unsafe { create(vec![run], flags, mem_handle) }
    })
}

/// A memory handle over several segments.
///
/// # Safety
/// As for `NA_Mem_handle_create`, for each segment.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn NA_Mem_handle_create_segments(
    na_class: Token,
    segments: *mut NaSegment,
    segment_count: u64,
    flags: c_ulong,
    mem_handle: *mut Token,
) -> c_int {
    code("NA_Mem_handle_create_segments", || {
        CLASSES.get(na_class)?;
        // SAFETY: passed on from the caller.
        let segments = unsafe { bytes(segments, segment_count as usize, "segments") }?;
        let run = |s: &NaSegment| Run { address: s.address as usize, len: s.size as usize };
        // SAFETY: as above.
        unsafe { create(segments.iter().map(run).collect(), flags, mem_handle) }
    })
}

/// Frees a memory handle; a transfer under way keeps it until its end.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn NA_Mem_handle_free(na_class: Token, mem_handle: Token) -> c_int {
    code("NA_Mem_handle_free", || {
        CLASSES.get(na_class)?;
        // A transfer of this process's own may have the handle still, and goes on.
        MEMORY.remove(mem_handle).map(|mem| mem.deregister())
    })
}

/// Lets others use the memory.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn NA_Mem_register(na_class: Token, mem_handle: Token) -> c_int {
    code("NA_Mem_register", || {
        CLASSES.get(na_class)?;
        MEMORY.get(mem_handle)?.register();
        Ok(())
    })
}

/// Ends that others use the memory.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn NA_Mem_deregister(na_class: Token, mem_handle: Token) -> c_int {
    code("NA_Mem_deregister", || {
        CLASSES.get(na_class)?;
        MEMORY.get(mem_handle)?.deregister();
        Ok(())
    })
}

/// Bytes of a handle's serialised form; 0 for none.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn NA_Mem_handle_get_serialize_size(
    na_class: Token,
    mem_handle: Token,
) -> u64 {
    value(
        "NA_Mem_handle_get_serialize_size",
        |_| 0,
        || {
            CLASSES.get(na_class)?;
            Ok(MEMORY.get(mem_handle)?.encoded_len() as u64)
        },
    )
}

/// Serialises a handle.
///
/// # Safety
/// `buf` must be null or valid for writes of `buf_size` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn NA_Mem_handle_serialize(
    na_class: Token,
    buf: *mut c_void,
    buf_size: u64,
    mem_handle: Token,
) -> c_int {
    code("NA_Mem_handle_serialize", || {
        CLASSES.get(na_class)?;
        // SAFETY: passed on from the caller.
        unsafe { put_bytes(buf, buf_size, &MEMORY.get(mem_handle)?.to_bytes(KIND)) }
    })
}

/// The handle that bytes describe.
///
/// # Safety
/// `buf` must be valid for reads of `buf_size` bytes, `mem_handle` null or valid.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn NA_Mem_handle_deserialize(
    na_class: Token,
    mem_handle: *mut Token,
    buf: *const c_void,
    buf_size: u64,
) -> c_int {
    code("NA_Mem_handle_deserialize", || {
        CLASSES.get(na_class)?;
        // SAFETY: passed on from the caller.
        let (to, from) = unsafe {
            (
                place(mem_handle, "memory handle")?,
                bytes(buf.cast::<u8>(), buf_size as usize, "bytes of a handle")?,
            )
        };
        *to = MEMORY.insert(Mem::from_bytes(from, KIND)?);
        Ok(())
    })
}

struct Ends {
    local: Token,
    local_offset: u64,
    remote: Token,
    remote_offset: u64,
    peer: Token,
}

/// # Safety
/// `op_id` must be null, ignored or valid for writes.
unsafe fn transfer(
    (class, context): (Token, Token),
    (callback, arg): (NaCallback, *mut c_void),
    direction: Direction,
    ends: Ends,
    size: u64,
    op_id: *mut Token,
) -> Result<()> {
    let (_, context) = both(class, context)?;
    let (local, remote) = (MEMORY.get(ends.local)?, MEMORY.get(ends.remote)?);
    let peer = ADDRESSES.get(ends.peer)?;
    let op = context.transfer(
        direction,
        &peer,
        Part { mem: &local, offset: ends.local_offset as usize },
        Part { mem: &remote, offset: ends.remote_offset as usize },
        size as usize,
        calling(callback, arg, NOWHERE),
    )?;
    // SAFETY: passed on from the caller.
    unsafe { give_op(op_id, op) };
    Ok(())
}

/// Puts bytes of a local handle into a remote one.
///
/// # Safety
/// `op_id` must be null, ignored or valid for writes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn NA_Put(
    na_class: Token,
    context: Token,
    callback: NaCallback,
    arg: *mut c_void,
    local: Token,
    local_offset: u64,
    remote: Token,
    remote_offset: u64,
    data_size: u64,
    remote_addr: Token,
    op_id: *mut Token,
) -> c_int {
    code("NA_Put", || {
        let ends = Ends { local, local_offset, remote, remote_offset, peer: remote_addr };
        let (who, whom) = ((na_class, context), (callback, arg));
        // SAFETY: passed on from the caller.
        unsafe { transfer(who, whom, Direction::Put, ends, data_size, op_id) }
    })
}

/// Gets bytes of a remote handle into a local one.
///
/// # Safety
/// `op_id` must be null, ignored or valid for writes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn NA_Get(
    na_class: Token,
    context: Token,
    callback: NaCallback,
    arg: *mut c_void,
    local: Token,
    local_offset: u64,
    remote: Token,
    remote_offset: u64,
    data_size: u64,
    remote_addr: Token,
    op_id: *mut Token,
) -> c_int {
    code("NA_Get", || {
        let ends = Ends { local, local_offset, remote, remote_offset, peer: remote_addr };
        let (who, whom) = ((na_class, context), (callback, arg));
        // SAFETY: passed on from the caller.
        unsafe { transfer(who, whom, Direction::Get, ends, data_size, op_id) }
    })
}
