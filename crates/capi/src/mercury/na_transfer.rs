//! `na.h`: messages, memory handles, put and get.

use super::entry::{place, put_bytes};
use super::interface::{Interface, Interface::V1, calls};
use super::na::{NOWHERE, NaCallback, OpIdPlace, both, calling, give_op};
use super::objects::address;
use super::table::{NA_CLASSES, Tables, Token};
use crate::boundary::{array, collect};
use portolan_rpc::failure::{Result, refuse};
use portolan_rpc::na::{Direction, Mem, Part, Permission, Run};
use std::os::raw::{c_ulong, c_void};
use std::sync::Arc;

/// Memory handles of `na.h` of 2013 and of 2.4.
pub(super) static MEMORY: Tables<Arc<Mem>> = Tables::new("memory handle", 0x14);

/// Distinguishes NA's memory handles from serialised bulk handles.
pub(super) const KIND: u8 = 0;

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct NaSegment {
    address: u64,
    size: u64,
}

impl NaSegment {
    pub(super) fn run(&self) -> Run {
        Run { address: self.address as usize, len: self.size as usize }
    }
}

fn buffer(at: *mut c_void, size: u64) -> Result<OpIdPlace> {
    if at.is_null() && size > 0 {
        refuse!(INVALID_ARG, "null address for a buffer of {size} bytes");
    }
    Ok(OpIdPlace { at: at.cast(), len: size as usize })
}

calls! { V1:
    NA_Msg_send_unexpected(
        na_class: Token,
        context: Token,
        callback: NaCallback,
        arg: *mut c_void,
        buf: *const c_void,
        buf_size: u64,
        dest: Token,
        tag: u32,
        op_id: *mut Token,
    ) {
        let (_, context) = both(na_class, context)?;
        let dest = address::get(V1, dest)?;
        // SAFETY: the caller guarantees that `buf` is null or valid for reads of `buf_size` bytes.
        let body = unsafe { array(buf.cast::<u8>(), buf_size as usize, "the message") }?;
        let op = context.send_unexpected(&dest, tag, body, calling(callback, arg, NOWHERE))?;
        // SAFETY: by contract, `op_id` is null, `NA_OP_ID_IGNORE` or valid for writes.
        unsafe { give_op(op_id, op) };
        Ok(())
    }

    NA_Msg_recv_unexpected(
        na_class: Token,
        context: Token,
        callback: NaCallback,
        arg: *mut c_void,
        buf: *mut c_void,
        buf_size: u64,
        op_id: *mut Token,
    ) {
        let (_, context) = both(na_class, context)?;
        let op = context.recv_unexpected(calling(callback, arg, buffer(buf, buf_size)?))?;
        // SAFETY: by contract, `op_id` is null, `NA_OP_ID_IGNORE` or valid for writes.
        unsafe { give_op(op_id, op) };
        Ok(())
    }

    NA_Msg_send_expected(
        na_class: Token,
        context: Token,
        callback: NaCallback,
        arg: *mut c_void,
        buf: *const c_void,
        buf_size: u64,
        dest: Token,
        tag: u32,
        op_id: *mut Token,
    ) {
        let (_, context) = both(na_class, context)?;
        let dest = address::get(V1, dest)?;
        // SAFETY: the caller guarantees that `buf` is null or valid for reads of `buf_size` bytes.
        let body = unsafe { array(buf.cast::<u8>(), buf_size as usize, "the message") }?;
        let op = context.send_expected(&dest, tag, body, calling(callback, arg, NOWHERE))?;
        // SAFETY: by contract, `op_id` is null, `NA_OP_ID_IGNORE` or valid for writes.
        unsafe { give_op(op_id, op) };
        Ok(())
    }

    NA_Msg_recv_expected(
        na_class: Token,
        context: Token,
        callback: NaCallback,
        arg: *mut c_void,
        buf: *mut c_void,
        buf_size: u64,
        source: Token,
        tag: u32,
        op_id: *mut Token,
    ) {
        let (_, context) = both(na_class, context)?;
        let source = address::get(V1, source)?;
        let callback = calling(callback, arg, buffer(buf, buf_size)?);
        let op = context.recv_expected(&source, tag, callback)?;
        // SAFETY: by contract, `op_id` is null, `NA_OP_ID_IGNORE` or valid for writes.
        unsafe { give_op(op_id, op) };
        Ok(())
    }
}

/// # Safety
/// The runs must be valid for the accesses that the flags permit while the handle lives.
/// `mem_handle` must be null or valid for writes.
pub(super) unsafe fn create(
    interface: Interface,
    runs: Vec<Run>,
    flags: c_ulong,
    mem_handle: *mut Token,
) -> Result<()> {
    let access = Permission::from_flags(flags)?;
    // SAFETY: by contract, `mem_handle` is null or valid, and the runs are valid for these accesses
    // while the handle lives.
    unsafe {
        let to = place(mem_handle, "memory handle")?;
        *to = MEMORY[interface].insert(Mem::expose(runs, access)?);
    }
    Ok(())
}

/// # Safety
/// `mem_handle` must be null or valid for writes, `buf` null or readable for `buf_size` bytes.
pub(super) unsafe fn from_bytes(
    interface: Interface,
    mem_handle: *mut Token,
    buf: *const c_void,
    buf_size: u64,
) -> Result<()> {
    // SAFETY: the caller guarantees that the pointers are null or valid.
    let (to, from) = unsafe {
        (
            place(mem_handle, "memory handle")?,
            array(buf.cast::<u8>(), buf_size as usize, "the serialised handle")?,
        )
    };
    *to = MEMORY[interface].insert(interface.decoded(Mem::from_bytes(from, KIND))?);
    Ok(())
}

calls! { V1:
    NA_Mem_handle_create(
        na_class: Token,
        buf: *mut c_void,
        buf_size: u64,
        flags: c_ulong,
        mem_handle: *mut Token,
    ) {
        NA_CLASSES.get(na_class)?;
        let run = Run { address: buf as usize, len: buf_size as usize };
        // SAFETY: the caller guarantees what `create` requires.
        unsafe { create(V1, vec![run], flags, mem_handle) }
    }

    NA_Mem_handle_create_segments(
        na_class: Token,
        segments: *mut NaSegment,
        segment_count: u64,
        flags: c_ulong,
        mem_handle: *mut Token,
    ) {
        NA_CLASSES.get(na_class)?;
        // SAFETY: the caller guarantees that `segments` is null or has `segment_count` elements.
        let segments = unsafe { array(segments, segment_count as usize, "the array of segments") }?;
        // SAFETY: the caller guarantees what `create` requires.
        unsafe { create(V1, collect(segments.iter().map(NaSegment::run), "segments")?, flags, mem_handle) }
    }

    NA_Mem_handle_free(na_class: Token, mem_handle: Token) {
        NA_CLASSES.get(na_class)?;
        MEMORY[V1].remove(mem_handle).map(|mem| mem.deregister())
    }

    NA_Mem_register(na_class: Token, mem_handle: Token) {
        NA_CLASSES.get(na_class)?;
        MEMORY[V1].get(mem_handle)?.register();
        Ok(())
    }

    NA_Mem_deregister(na_class: Token, mem_handle: Token) {
        NA_CLASSES.get(na_class)?;
        MEMORY[V1].get(mem_handle)?.deregister();
        Ok(())
    }

    NA_Mem_handle_get_serialize_size(na_class: Token, mem_handle: Token) -> u64, 0, {
        NA_CLASSES.get(na_class)?;
        Ok(MEMORY[V1].get(mem_handle)?.encoded_len() as u64)
    }

    NA_Mem_handle_serialize(na_class: Token, buf: *mut c_void, buf_size: u64, mem_handle: Token) {
        NA_CLASSES.get(na_class)?;
        // SAFETY: the caller guarantees that `buf` is null or valid for writes of `buf_size` bytes.
        unsafe { put_bytes(buf, buf_size, &MEMORY[V1].get(mem_handle)?.to_bytes(KIND)) }
    }

    NA_Mem_handle_deserialize(
        na_class: Token,
        mem_handle: *mut Token,
        buf: *const c_void,
        buf_size: u64,
    ) {
        NA_CLASSES.get(na_class)?;
        // SAFETY: by contract, `mem_handle` is null or valid, `buf` null or has `buf_size` bytes.
        unsafe { from_bytes(V1, mem_handle, buf, buf_size) }
    }
}

struct Ends {
    local: Token,
    local_offset: u64,
    remote: Token,
    remote_offset: u64,
    peer: Token,
}

/// # Safety
/// `op_id` must be null, `NA_OP_ID_IGNORE` or valid for writes.
unsafe fn transfer(
    (class, context): (Token, Token),
    (callback, arg): (NaCallback, *mut c_void),
    direction: Direction,
    ends: Ends,
    size: u64,
    op_id: *mut Token,
) -> Result<()> {
    let (_, context) = both(class, context)?;
    let (local, remote) = (MEMORY[V1].get(ends.local)?, MEMORY[V1].get(ends.remote)?);
    let peer = address::get(V1, ends.peer)?;
    context.transfer_announced(
        (direction, &peer),
        Part { mem: &local, offset: ends.local_offset as usize },
        Part { mem: &remote, offset: ends.remote_offset as usize },
        size as usize,
        calling(callback, arg, NOWHERE),
        // SAFETY: by contract, `op_id` is null, `NA_OP_ID_IGNORE` or valid for writes.
        |op| unsafe { give_op(op_id, op) },
    )?;
    Ok(())
}

calls! { V1:
    NA_Put(
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
    ) {
        let ends = Ends { local, local_offset, remote, remote_offset, peer: remote_addr };
        let (who, whom) = ((na_class, context), (callback, arg));
        // SAFETY: by contract, `op_id` is null, `NA_OP_ID_IGNORE` or valid for writes.
        unsafe { transfer(who, whom, Direction::Put, ends, data_size, op_id) }
    }

    NA_Get(
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
    ) {
        let ends = Ends { local, local_offset, remote, remote_offset, peer: remote_addr };
        let (who, whom) = ((na_class, context), (callback, arg));
        // SAFETY: by contract, `op_id` is null, `NA_OP_ID_IGNORE` or valid for writes.
        unsafe { transfer(who, whom, Direction::Get, ends, data_size, op_id) }
    }
}
