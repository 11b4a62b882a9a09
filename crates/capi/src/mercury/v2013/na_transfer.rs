//! `na.h`: messages, memory handles, put and get.

use super::na::{NOWHERE, NaCallback, OpIdPlace, both, calling, give_op};
use crate::boundary::{array, collect};
use crate::mercury::entry::put_bytes;
use crate::mercury::interface::{Interface::V2013, calls};
use crate::mercury::objects::address;
use crate::mercury::objects::memory::{KIND, MEMORY, NaSegment, create, from_bytes};
use crate::mercury::table::{NA_CLASSES, Token};
use portolan_rpc::failure::{Result, refuse};
use portolan_rpc::na::{Context, Direction, Part, Run};
use std::os::raw::{c_ulong, c_void};

fn buffer(at: *mut c_void, size: u64) -> Result<OpIdPlace> {
    if at.is_null() && size > 0 {
        refuse!(INVALID_ARG, "null address for a buffer of {size} bytes");
    }
    Ok(OpIdPlace { at: at.cast(), len: size as usize })
}

calls! { V2013:
    NA_Msg_send_unexpected | NA_Msg_send_expected
    [send: Context::send_unexpected, Context::send_expected](
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
        let dest = address::get(dest)?;
        // SAFETY: the caller guarantees that `buf` is null or valid for reads of `buf_size` bytes.
        let body = unsafe { array(buf.cast::<u8>(), buf_size as usize, "the message") }?;
        let op = send(&context, &dest, tag, body, calling(callback, arg, NOWHERE))?;
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
        let source = address::get(source)?;
        let callback = calling(callback, arg, buffer(buf, buf_size)?);
        let op = context.recv_expected(&source, tag, callback)?;
        // SAFETY: by contract, `op_id` is null, `NA_OP_ID_IGNORE` or valid for writes.
        unsafe { give_op(op_id, op) };
        Ok(())
    }

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
        unsafe { create(vec![run], flags, mem_handle) }
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
        unsafe { create(collect(segments.iter().map(NaSegment::run), "segments")?, flags, mem_handle) }
    }

    NA_Mem_handle_free(na_class: Token, mem_handle: Token) {
        NA_CLASSES.get(na_class)?;
        MEMORY.remove(mem_handle).map(|mem| mem.deregister())
    }

    NA_Mem_register(na_class: Token, mem_handle: Token) {
        NA_CLASSES.get(na_class)?;
        MEMORY.get(mem_handle)?.register();
        Ok(())
    }

    NA_Mem_deregister(na_class: Token, mem_handle: Token) {
        NA_CLASSES.get(na_class)?;
        MEMORY.get(mem_handle)?.deregister();
        Ok(())
    }

    NA_Mem_handle_get_serialize_size(na_class: Token, mem_handle: Token) -> u64, 0, {
        NA_CLASSES.get(na_class)?;
        Ok(MEMORY.get(mem_handle)?.encoded_len() as u64)
    }

    NA_Mem_handle_serialize(na_class: Token, buf: *mut c_void, buf_size: u64, mem_handle: Token) {
        NA_CLASSES.get(na_class)?;
        // SAFETY: the caller guarantees that `buf` is null or valid for writes of `buf_size` bytes.
        unsafe { put_bytes(buf, buf_size, &MEMORY.get(mem_handle)?.to_bytes(KIND)) }
    }

    NA_Mem_handle_deserialize(
        na_class: Token,
        mem_handle: *mut Token,
        buf: *const c_void,
        buf_size: u64,
    ) {
        NA_CLASSES.get(na_class)?;
        // SAFETY: by contract, `mem_handle` is null or valid, `buf` null or has `buf_size` bytes.
        V2013.decoded(unsafe { from_bytes(mem_handle, buf, buf_size) })
    }

    NA_Put | NA_Get [direction: Direction::Put, Direction::Get](
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
        let (_, context) = both(na_class, context)?;
        let (local, remote) = (MEMORY.get(local)?, MEMORY.get(remote)?);
        let peer = address::get(remote_addr)?;
        context.transfer_announced(
            (direction, &peer),
            Part { mem: &local, offset: local_offset as usize },
            Part { mem: &remote, offset: remote_offset as usize },
            data_size as usize,
            calling(callback, arg, NOWHERE),
            // SAFETY: by contract, `op_id` is null, `NA_OP_ID_IGNORE` or valid for writes.
            |op| unsafe { give_op(op_id, op) },
        )?;
        Ok(())
    }
}
