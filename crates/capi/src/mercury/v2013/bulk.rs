//! `mercury_bulk.h`: bulk handles and transfers.

use crate::mercury::entry::{maybe, place, report, timeout};
use crate::mercury::interface::{Interface::V2013, calls};
use crate::mercury::objects::address;
use crate::mercury::objects::bulk::{
    BULKS, access, create, deserialize, direction, release, serialize,
};
use crate::mercury::table::{NA_CLASSES, Number, Table, Token};
use parking_lot::RwLock;
use portolan_base::wait::Deadline;
use portolan_rpc::failure::{Result, Status, refuse};
use portolan_rpc::na::{self, Callback, OpId, Part};
use std::os::raw::{c_int, c_uint, c_ulong, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

static REQUESTS: Table<Arc<BulkRequest>> = Table::new("bulk request", 0x24);

struct Global {
    na: Number,
    context: na::Context,
    class: na::Class,
}

static GLOBAL: RwLock<Option<Arc<Global>>> = RwLock::new(None);

struct BulkRequest {
    context: na::Context,
    class: na::Class,
    op: std::sync::OnceLock<OpId>,
    done: AtomicBool,
    status: AtomicI32,
}

impl BulkRequest {
    fn wait(&self, time: Duration) -> Result<bool> {
        self.class.until(&mut Deadline::after(time), || {
            self.context.step();
            if self.context.queued() > 0 {
                self.context.trigger(Duration::ZERO, usize::MAX)?;
            }
            Ok(self.done.load(Ordering::Acquire))
        })
    }
}

fn global() -> Result<Arc<Global>> {
    match &*GLOBAL.read() {
        Some(global) => Ok(global.clone()),
        None => {
            refuse!(FAIL, "the bulk part is not initialised; call HG_Bulk_init or HG_Init first")
        }
    }
}

pub(super) fn is_initialized() -> bool {
    GLOBAL.read().is_some()
}

fn init(na_class: Token) -> Result<()> {
    let class = NA_CLASSES.get(na_class)?;
    let mut global = GLOBAL.write();
    if global.is_some() {
        refuse!(BUSY, "the bulk part is initialised already; call HG_Bulk_finalize first");
    }
    *global = Some(Arc::new(Global { na: Number::of(na_class), context: class.context()?, class }));
    Ok(())
}

/// Initialises the bulk interface. Returns false if it is initialised already.
pub(super) fn init_unless(na_class: Token) -> Result<bool> {
    if is_initialized() {
        return Ok(false);
    }
    init(na_class).map(|()| true)
}

pub(super) fn finalize() -> Result<()> {
    let global = global()?;
    *GLOBAL.write() = None;
    // Cancel and wait for all transfers, even if one fails.
    let mut done = Ok(());
    for request in REQUESTS.drain() {
        if let Some(&op) = request.op.get() {
            done = done.and(request.context.cancel(op));
        }
        // The program may reuse the buffers after this function returns.
        done = done.and(request.wait(Duration::from_secs(5)).map(drop));
    }
    global.context.clear();
    done
}

calls! { V2013:
    HG_Bulk_init(na_class: Token) { init(na_class) }

    HG_Bulk_finalize() { finalize() }

    HG_Bulk_initialized(flag: *mut u8, na_class: *mut Token) {
        let now = GLOBAL.read().clone();
        // SAFETY: the caller guarantees that the pointers are null or valid for writes.
        unsafe {
            *place(flag, "flag")? = u8::from(now.is_some());
            if let Some(to) = maybe(na_class) {
                *to = now.map_or(ptr::null_mut(), |global| global.na.token());
            }
        }
        Ok(())
    }

    HG_Bulk_handle_create(
        count: usize,
        buf_ptrs: *mut *mut c_void,
        buf_sizes: *const usize,
        flags: c_ulong,
        handle: *mut Token,
    ) {
        global()?;
        // SAFETY: the caller guarantees what `create` requires.
        unsafe { create(ptr::null_mut(), count, (buf_ptrs, buf_sizes), flags, handle) }
    }

    HG_Bulk_handle_free | HG_Bulk_free(handle: Token) { release(handle) }

    /// The flags are ignored, because they restrict only other processes. Returns `HG_ACCESS` if
    /// the memory belongs to another process.
    HG_Bulk_handle_access(
        handle: Token,
        offset: usize,
        size: usize,
        _flags: c_ulong,
        max_count: c_uint,
        buf_ptrs: *mut *mut c_void,
        buf_sizes: *mut usize,
        actual_count: *mut c_uint,
    ) {
        let (range, to) = ((offset, size), (buf_ptrs, buf_sizes));
        // SAFETY: the caller guarantees that the arrays are null or have `max_count` elements, and
        // that `actual_count` is null or valid for writes.
        unsafe { access(handle, range, max_count, to, actual_count) }
    }

    HG_Bulk_access(
        handle: Token,
        offset: usize,
        size: usize,
        _flags: u8,
        max_count: c_uint,
        buf_ptrs: *mut *mut c_void,
        buf_sizes: *mut usize,
        actual_count: *mut c_uint,
    ) {
        let (range, to) = ((offset, size), (buf_ptrs, buf_sizes));
        // SAFETY: the caller guarantees that the arrays are null or have `max_count` elements, and
        // that `actual_count` is null or valid for writes.
        unsafe { access(handle, range, max_count, to, actual_count) }
    }

    HG_Bulk_handle_get_size | HG_Bulk_get_size(handle: Token) -> usize, 0, {
        Ok(BULKS.get(handle)?.bulk.len())
    }

    HG_Bulk_get_segment_count(handle: Token) -> u32, 0, {
        Ok(BULKS.get(handle)?.bulk.segments() as u32)
    }

    HG_Bulk_handle_get_segment_count(handle: Token) -> usize, 0, {
        Ok(BULKS.get(handle)?.bulk.segments())
    }

    HG_Bulk_handle_get_serialize_size(handle: Token) -> usize, 0, {
        Ok(BULKS.get(handle)?.serialized_len(false))
    }

    HG_Bulk_handle_serialize(buf: *mut c_void, buf_size: usize, handle: Token) {
        // SAFETY: the caller guarantees that `buf` is null or valid for writes of `buf_size` bytes.
        unsafe { serialize(buf, buf_size as u64, false, handle) }
    }

    HG_Bulk_handle_deserialize(handle: *mut Token, buf: *const c_void, buf_size: usize) {
        // SAFETY: the caller guarantees what `deserialize` requires of `buf` and `handle`.
        V2013.decoded(unsafe { deserialize(ptr::null_mut(), handle, (buf, buf_size)) })
    }

    HG_Bulk_transfer(
        op: c_int,
        origin_addr: Token,
        origin_handle: Token,
        origin_offset: usize,
        local_handle: Token,
        local_offset: usize,
        size: usize,
        request: *mut Token,
    ) {
        let global = global()?;
        // SAFETY: the caller guarantees that `request` is null or valid for writes.
        let to = unsafe { place(request, "bulk request") }?;
        let address = address::get(origin_addr)?;
        let (origin, local) = (BULKS.get(origin_handle)?, BULKS.get(local_handle)?);
        let asked = Arc::new(BulkRequest {
            context: global.context.clone(),
            class: global.class.clone(),
            op: std::sync::OnceLock::new(),
            done: AtomicBool::new(false),
            status: AtomicI32::new(0),
        });
        let notified = asked.clone();
        let callback: Callback = Box::new(move |event| {
            notified.status.store(event.status.0, Ordering::Relaxed);
            notified.done.store(true, Ordering::Release);
        });
        let op = global.context.transfer(
            direction(op)?,
            &address,
            Part { mem: local.bulk.mem(), offset: local_offset },
            Part { mem: origin.bulk.mem(), offset: origin_offset },
            size,
            callback,
        )?;
        let _ = asked.op.set(op);
        *to = REQUESTS.insert(asked);
        Ok(())
    }

    /// Without a status, returns `HG_TIMEOUT` if the transfer has not ended.
    HG_Bulk_wait(request: Token, milliseconds: c_uint, status: *mut u8) {
        // SAFETY: by contract, `status` is null, `HG_STATUS_IGNORE` or valid for writes.
        let status = unsafe { maybe(status) };
        global()?;
        let found = REQUESTS.get(request)?;
        // If the wait fails, the transfer goes on, and the request stays.
        let ended = found.wait(timeout(milliseconds))?;
        let outcome = || {
            REQUESTS.remove(request)?;
            let status = Status(found.status.load(Ordering::Relaxed));
            status.result(|| format!("the bulk transfer has failed: {}", status.meaning()))
        };
        report(ended, outcome, status, milliseconds)
    }
}
