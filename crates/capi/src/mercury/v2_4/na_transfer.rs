//! `na.h` of 2.4: operations, messages, memory handles, put and get.

use super::codes::to_code;
use super::na::{class, context_of, na, na_status};
use crate::boundary::{array, collect};
use crate::mercury::entry::{maybe, put_bytes};
use crate::mercury::interface::calls;
use crate::mercury::objects::address::{get, keep};
use crate::mercury::objects::memory::{KIND, MEMORY, NaSegment, create, from_bytes};
use crate::mercury::table::{Number, Table, Token};
use portolan_engine::memory::large_buffer;
use portolan_rpc::failure::{Failure, Result, Status, refuse};
use portolan_rpc::na::{Callback, Context, Direction, Event, OpId, Part, Run, What};
use std::os::raw::{c_int, c_uint, c_ulong, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// `struct na_cb_info_multi_recv_unexpected`, the largest member of the union of `na_cb_info`. The
/// other members are prefixes of it.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Received {
    actual_buf_size: u64,
    source: Token,
    tag: u32,
    actual_buf: *mut c_void,
    last: bool,
}

#[derive(Debug)]
#[repr(C)]
pub(crate) struct NaCallbackInfo {
    received: Received,
    arg: *mut c_void,
    kind: c_uint,
    ret: c_int,
}

pub(crate) type NaCallback = Option<unsafe extern "C-unwind" fn(*const NaCallbackInfo)>;

#[derive(Debug, Default)]
struct Operation {
    /// The network's operation that was begun last, or 0.
    number: AtomicU64,
    /// The callback of that operation has not begun to run.
    is_posted: AtomicBool,
}

impl Operation {
    /// Another thread may have run the callback, which has posted the operation again. The numbers
    /// of a class only grow.
    fn began(&self, OpId(number): OpId) {
        self.number.fetch_max(number, Ordering::AcqRel);
    }
}

/// A posted operation. When this is dropped, the program may post it again.
struct Posted(Arc<Operation>);

impl Posted {
    fn new(op: Token) -> Result<Posted> {
        let operation = OPS.get(op)?;
        if operation.is_posted.swap(true, Ordering::AcqRel) {
            refuse!(BUSY, "the operation is posted; wait for its callback");
        }
        Ok(Posted(operation))
    }
}

impl Drop for Posted {
    fn drop(&mut self) {
        self.0.is_posted.store(false, Ordering::Release);
    }
}

struct Caller {
    posted: Option<Posted>,
    class: Number,
    callback: NaCallback,
    arg: *mut c_void,
    at: *mut u8,
    len: usize,
}

// SAFETY: the program does not use `arg` and the buffer until the callback has run.
unsafe impl Send for Caller {}

impl Caller {
    fn notify(self, event: Event) {
        let (kind, body, from) = match &event.what {
            What::SendUnexpected | What::Lookup(_) => (0, None, None),
            What::RecvUnexpected { body, source, tag } => (1, Some(body), Some((*source, *tag))),
            What::SendExpected => (3, None, None),
            What::RecvExpected { body } => (4, Some(body), None),
            What::Put => (5, None, None),
            What::Get => (6, None, None),
        };
        let mut status = event.status;
        let size = body.map_or(0, Vec::len);
        if status == Status::SUCCESS && size > self.len {
            status = Status::MSGSIZE;
        }
        if let Some(body) = body
            && status == Status::SUCCESS
            && size > 0
        {
            // SAFETY: the message fits, and the program keeps its buffer until the callback ran.
            unsafe { ptr::copy_nonoverlapping(body.as_ptr(), self.at, size) };
        }
        drop(self.posted); // the callback may post the operation again
        let Some(callback) = self.callback else { return };
        let source = match from {
            Some((source, _)) if event.status == Status::SUCCESS => {
                keep(self.class.token(), source)
            }
            _ => ptr::null_mut(),
        };
        let received = Received {
            actual_buf_size: size as u64,
            source,
            tag: from.map_or(0, |(_, tag)| tag),
            actual_buf: ptr::null_mut(),
            last: false,
        };
        let ret = to_code(na_status(status));
        let info = NaCallbackInfo { received, arg: self.arg, kind, ret };
        // SAFETY: the program supplied the callback with `arg`, and `info` outlives the call.
        unsafe { callback(&info) };
    }
}

static OPS: Table<Arc<Operation>> = Table::new("operation", 0x55);

/// Begins an operation, and stores its number in the program's operation, if any. Fails with `BUSY`
/// if that is posted, with `INVALID_ARG` for an invalid buffer, and with the error of `start`.
fn begin(
    class: Token,
    (callback, arg): (NaCallback, *mut c_void),
    (at, len): (*mut c_void, u64),
    op: Token,
    start: impl FnOnce(Callback) -> Result<OpId>,
) -> Result<()> {
    if at.is_null() && len > 0 {
        refuse!(INVALID_ARG, "null address for a buffer of {len} bytes");
    }
    let posted = if op.is_null() { None } else { Some(Posted::new(op)?) };
    let op = posted.as_ref().map(|posted| posted.0.clone());
    let (class, at, len) = (Number::of(class), at.cast(), len as usize);
    let caller = Caller { posted, class, callback, arg, at, len };
    let begun = na(start(Box::new(move |event| caller.notify(event))))?;
    if let Some(op) = op {
        op.began(begun);
    }
    Ok(())
}

/// For operations that receive no message.
const NOWHERE: (*mut c_void, u64) = (ptr::null_mut(), 0);

calls! { V2_4:
    /// Makes a handle for cancelling the operation that uses it. Returns null on failure.
    NA_Op_create(token: Token, _flags: c_ulong) -> Token, ptr::null_mut(), {
        class(token)?;
        Ok(OPS.insert(Arc::default()))
    }

    NA_Op_destroy(token: Token, op: Token) -> (), (), {
        class(token)?;
        if op.is_null() { Ok(()) } else { OPS.remove(op).map(drop) }
    }

    /// Cancels the operation that was begun last with `op`, unless it has ended.
    NA_Cancel(class: Token, token: Token, op: Token) {
        let context = context_of(class, token)?;
        match OPS.get(op)?.number.load(Ordering::Acquire) {
            0 => Ok(()),
            number => na(context.cancel(OpId(number))),
        }
    }

    NA_Msg_buf_alloc(
        token: Token,
        buf_size: u64,
        _flags: c_ulong,
        plugin_data: *mut *mut c_void,
    ) -> *mut c_void, ptr::null_mut(), {
        class(token)?;
        // SAFETY: by the call's contract, `plugin_data` is null or valid for a write.
        if let Some(data) = unsafe { maybe(plugin_data) } {
            *data = ptr::null_mut();
        }
        let size = isize::try_from(buf_size).ok();
        Ok(size.map_or(ptr::null_mut(), |size| large_buffer::alloc(size as usize).cast()))
    }

    NA_Msg_buf_free(token: Token, buf: *mut c_void, _plugin_data: *mut c_void) -> (), (), {
        class(token)?;
        // SAFETY: by the call's contract, `buf` is null or such a buffer, and is not used any more.
        unsafe { large_buffer::free(buf.cast()) };
        Ok(())
    }

    /// Does nothing: messages carry no header in the program's buffer.
    NA_Msg_init_unexpected(token: Token, _buf: *mut c_void, _size: u64) { class(token).map(drop) }

    NA_Msg_init_expected(token: Token, _buf: *mut c_void, _size: u64) { class(token).map(drop) }

    NA_Msg_send_unexpected | NA_Msg_send_expected
    [send: Context::send_unexpected, Context::send_expected](
        class: Token,
        context: Token,
        callback: NaCallback,
        arg: *mut c_void,
        buf: *const c_void,
        buf_size: u64,
        _plugin_data: *mut c_void,
        dest: Token,
        _dest_id: u8,
        tag: u32,
        op: Token,
    ) {
        let (context, dest) = (context_of(class, context)?, get(dest)?);
        // SAFETY: by the call's contract, `buf` is null or valid for reads of `buf_size` bytes.
        let body = unsafe { array(buf.cast::<u8>(), buf_size as usize, "the message") }?;
        begin(class, (callback, arg), NOWHERE, op, |then| send(&context, &dest, tag, body, then))
    }

    NA_Msg_recv_unexpected(
        class: Token,
        context: Token,
        callback: NaCallback,
        arg: *mut c_void,
        buf: *mut c_void,
        buf_size: u64,
        _plugin_data: *mut c_void,
        op: Token,
    ) {
        let context = context_of(class, context)?;
        begin(class, (callback, arg), (buf, buf_size), op, |then| context.recv_unexpected(then))
    }

    /// Fails: a receive gets one message.
    NA_Msg_multi_recv_unexpected(
        class: Token,
        context: Token,
        _callback: NaCallback,
        _arg: *mut c_void,
        _buf: *mut c_void,
        _buf_size: u64,
        _plugin_data: *mut c_void,
        _op: Token,
    ) {
        context_of(class, context)?;
        let text = "there is no receive of several messages; \
                    NA_Has_opt_feature(NA_OPT_MULTI_RECV) is false";
        Err::<(), _>(Failure::new(Status::OPNOTSUPPORTED, text))
    }

    NA_Msg_recv_expected(
        class: Token,
        context: Token,
        callback: NaCallback,
        arg: *mut c_void,
        buf: *mut c_void,
        buf_size: u64,
        _plugin_data: *mut c_void,
        source: Token,
        _source_id: u8,
        tag: u32,
        op: Token,
    ) {
        let (context, source) = (context_of(class, context)?, get(source)?);
        begin(class, (callback, arg), (buf, buf_size), op, |then| {
            context.recv_expected(&source, tag, then)
        })
    }

    NA_Mem_handle_create(
        token: Token,
        buf: *mut c_void,
        buf_size: u64,
        flags: c_ulong,
        mem_handle: *mut Token,
    ) {
        class(token)?;
        let run = Run { address: buf as usize, len: buf_size as usize };
        // SAFETY: by contract, the memory allows these accesses, and `mem_handle` is null or valid.
        unsafe { create(vec![run], flags, mem_handle) }
    }

    NA_Mem_handle_create_segments(
        token: Token,
        segments: *mut NaSegment,
        count: u64,
        flags: c_ulong,
        mem_handle: *mut Token,
    ) {
        class(token)?;
        // SAFETY: by the call's contract, `segments` is null or has `count` elements, the memory
        // allows the accesses of the flags, and `mem_handle` is null or valid for a write.
        unsafe {
            let segments = array(segments, count as usize, "the array of segments")?;
            create(collect(segments.iter().map(NaSegment::run), "segments")?, flags, mem_handle)
        }
    }

    NA_Mem_handle_free(token: Token, mem_handle: Token) -> (), (), {
        class(token)?;
        if mem_handle.is_null() {
            return Ok(());
        }
        MEMORY.remove(mem_handle).map(|mem| mem.deregister())
    }

    /// The number is not limited.
    NA_Mem_handle_get_max_segments(token: Token) -> u64, 0, { class(token).map(|_| u64::MAX) }

    /// Lets other processes access the memory. Fails for memory of a device.
    NA_Mem_register(token: Token, mem_handle: Token, mem_type: c_int, _device: u64) {
        class(token)?;
        let mem = MEMORY.get(mem_handle)?;
        if !super::bulk_handle::HOST.contains(&mem_type) {
            refuse!(OPNOTSUPPORTED, "memory of type {mem_type} is not supported; only host memory is");
        }
        mem.register();
        Ok(())
    }

    NA_Mem_deregister(token: Token, mem_handle: Token) {
        class(token)?;
        MEMORY.get(mem_handle)?.deregister();
        Ok(())
    }

    NA_Mem_handle_get_serialize_size(token: Token, mem_handle: Token) -> u64, 0, {
        class(token)?;
        Ok(MEMORY.get(mem_handle)?.encoded_len() as u64)
    }

    NA_Mem_handle_serialize(token: Token, buf: *mut c_void, buf_size: u64, mem_handle: Token) {
        class(token)?;
        let serialized = MEMORY.get(mem_handle)?.to_bytes(KIND);
        // SAFETY: by the call's contract, `buf` is null or valid for writes of `buf_size` bytes.
        unsafe { put_bytes(buf, buf_size, &serialized) }
    }

    NA_Mem_handle_deserialize(
        token: Token,
        mem_handle: *mut Token,
        buf: *const c_void,
        buf_size: u64,
    ) {
        class(token)?;
        // SAFETY: by the call's contract, `mem_handle` is null or valid for a write, and `buf` is
        // null or valid for reads of `buf_size` bytes.
        unsafe { from_bytes(mem_handle, buf, buf_size) }
    }

    NA_Put | NA_Get [direction: Direction::Put, Direction::Get](
        class: Token,
        context: Token,
        callback: NaCallback,
        arg: *mut c_void,
        local: Token,
        local_offset: u64,
        remote: Token,
        remote_offset: u64,
        data_size: u64,
        peer: Token,
        _remote_id: u8,
        op: Token,
    ) {
        let context = context_of(class, context)?;
        let (local, remote) = (MEMORY.get(local)?, MEMORY.get(remote)?);
        let peer = get(peer)?;
        begin(class, (callback, arg), NOWHERE, op, |then| {
            let local = Part { mem: &local, offset: local_offset as usize };
            let remote = Part { mem: &remote, offset: remote_offset as usize };
            context.transfer(direction, &peer, local, remote, data_size as usize, then)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_has_the_number_that_was_begun_last() {
        let operation = Operation::default();
        // The thread that has posted the operation first comes last.
        for number in [2, 1] {
            operation.began(OpId(number));
        }
        assert_eq!(operation.number.into_inner(), 2);
    }
}
