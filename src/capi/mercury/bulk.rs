//! `mercury_bulk.h`: bulk handles and transfers.

use super::face::{bytes, code, maybe, place, put_bytes, report, timeout, value};
use super::table::{ADDRESSES, CLASSES, Number, Table, Token};
use crate::rpc::bulk::Bulk;
use crate::rpc::failure::{Failure, Result, Status, refuse};
use crate::rpc::na::blocking_wait::{Deadline, until};
use crate::rpc::na::{self, Access, Callback, Direction, OpId, Part, Run};
use parking_lot::RwLock;
use std::os::raw::{c_int, c_uint, c_ulong, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

/// A bulk handle and how many hold it.
#[derive(Debug)]
pub(super) struct Held {
    pub bulk: Bulk,
    pub references: AtomicI32,
}

pub(super) static BULKS: Table<Arc<Held>> = Table::new("bulk handle", 0x23);
static REQUESTS: Table<Arc<Request>> = Table::new("bulk request", 0x24);

struct Global {
    na: Number,
    context: na::Context,
    class: na::Class,
}

static GLOBAL: RwLock<Option<Arc<Global>>> = RwLock::new(None);

/// A transfer under way.
struct Request {
    context: na::Context,
    class: na::Class,
    op: std::sync::OnceLock<OpId>,
    done: AtomicBool,
    status: AtomicI32,
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
    let class = CLASSES.get(na_class)?;
    let mut global = GLOBAL.write();
    if global.is_some() {
        refuse!(BUSY, "the bulk part is initialised already; call HG_Bulk_finalize first");
    }
    *global = Some(Arc::new(Global { na: Number::of(na_class), context: class.context()?, class }));
    Ok(())
}

/// Initialises, unless that was done; true where it was not.
pub(super) fn init_unless(na_class: Token) -> Result<bool> {
    if is_initialized() {
        return Ok(false);
    }
    init(na_class).map(|()| true)
}

pub(super) fn finalize() -> Result<()> {
    let global = global()?;
    *GLOBAL.write() = None;
    for request in REQUESTS.drain() {
        if let Some(&op) = request.op.get() {
            request.context.cancel(op)?;
        }
        // The buffers are the program's again when this returns.
        request.wait(Duration::from_secs(5))?;
    }
    global.context.clear();
    Ok(())
}

/// Begins, over a network class that may be another than that of `HG_Init`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Bulk_init(na_class: Token) -> c_int {
    code("HG_Bulk_init", || init(na_class))
}

/// Ends; transfers under way are cancelled.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Bulk_finalize() -> c_int {
    code("HG_Bulk_finalize", finalize)
}

/// Whether the bulk part was initialised, and with which class.
///
/// # Safety
/// The places must be null or valid for writes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Bulk_initialized(flag: *mut u8, na_class: *mut Token) -> c_int {
    code("HG_Bulk_initialized", || {
        let now = GLOBAL.read().clone();
        // SAFETY: passed on from the caller.
        unsafe {
            *place(flag, "flag")? = u8::from(now.is_some());
            if let Some(to) = maybe(na_class) {
                *to = now.map_or(std::ptr::null_mut(), |global| global.na.token());
            }
        }
        Ok(())
    })
}

/// # Safety
/// The arrays must have `count` elements; the memory must be as the flags say while the
/// handle lives.
pub(super) unsafe fn create(
    count: usize,
    buf_ptrs: *mut *mut c_void,
    buf_sizes: *const usize,
    flags: u64,
    handle: *mut Token,
) -> Result<()> {
    let access = Access::from_flags(flags)?;
    // SAFETY: passed on from the caller.
    let (to, sizes) =
        unsafe { (place(handle, "bulk handle")?, bytes(buf_sizes, count, "sizes of segments")?) };
    let bulk = if buf_ptrs.is_null() {
        Bulk::allocate(sizes, access)?
    } else {
        // SAFETY: as above.
        let ptrs = unsafe { bytes(buf_ptrs.cast_const(), count, "addresses of segments") }?;
        let runs = ptrs.iter().zip(sizes).map(|(&p, &len)| Run { address: p as usize, len });
        // SAFETY: as above.
        unsafe { Bulk::expose(runs.collect(), access) }?
    };
    *to = keep(bulk);
    Ok(())
}

pub(super) fn keep(bulk: Bulk) -> Token {
    BULKS.insert(Arc::new(Held { bulk, references: AtomicI32::new(1) }))
}

/// A bulk handle over segments; without addresses, memory is allocated and freed with
/// the handle.
///
/// # Safety
/// The arrays must have `count` elements; the memory must be as the flags say while the
/// handle lives.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Bulk_handle_create(
    count: usize,
    buf_ptrs: *mut *mut c_void,
    buf_sizes: *const usize,
    flags: c_ulong,
    handle: *mut Token,
) -> c_int {
    code("HG_Bulk_handle_create", || {
        global()?;
        // SAFETY: passed on from the caller.
        unsafe { create(count, buf_ptrs, buf_sizes, flags, handle) }
    })
}

pub(super) fn release(handle: Token) -> Result<()> {
    if handle.is_null() {
        return Ok(());
    }
    let held = BULKS.get(handle)?;
    if held.references.fetch_sub(1, Ordering::AcqRel) > 1 {
        return Ok(());
    }
    // A transfer of this process's own may have the handle still, and goes on.
    BULKS.remove(handle).map(|held| held.bulk.withdraw())
}

/// Frees a bulk handle, null too; a transfer under way keeps it until its end.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Bulk_handle_free(handle: Token) -> c_int {
    code("HG_Bulk_handle_free", || release(handle))
}

/// Gives as many of these parts of segments as the arrays have room for.
///
/// # Safety
/// The arrays must have `max_count` elements, or be null.
pub(super) unsafe fn give(
    runs: &[Run],
    max_count: c_uint,
    (buf_ptrs, buf_sizes): (*mut *mut c_void, *mut usize),
    actual_count: *mut c_uint,
) {
    let given = runs.len().min(max_count as usize);
    for (n, run) in runs.iter().take(given).enumerate() {
        // SAFETY: the arrays have `max_count` elements, where they are not null.
        unsafe {
            if !buf_ptrs.is_null() {
                *buf_ptrs.add(n) = run.address as *mut c_void;
            }
            if !buf_sizes.is_null() {
                *buf_sizes.add(n) = run.len;
            }
        }
    }
    // SAFETY: passed on from the caller.
    if let Some(actual) = unsafe { maybe(actual_count) } {
        *actual = given as c_uint;
    }
}

/// # Safety
/// The arrays must have `max_count` elements, or be null.
pub(super) unsafe fn access(
    call: &'static str,
    handle: Token,
    (offset, size): (usize, usize),
    max_count: c_uint,
    (buf_ptrs, buf_sizes): (*mut *mut c_void, *mut usize),
    actual_count: *mut c_uint,
) -> c_int {
    code(call, || {
        let runs = BULKS.get(handle)?.bulk.access(offset, size)?;
        // SAFETY: passed on from the caller.
        unsafe { give(&runs, max_count, (buf_ptrs, buf_sizes), actual_count) };
        Ok(())
    })
}

/// The segments of a handle of this process, without a copy: at most `max_count` of
/// those that the range consists of. What is not wanted is null; the flags are not looked
/// at, because the memory is the process's own.
///
/// # Safety
/// The arrays must be null or have `max_count` elements, `actual_count` be null or valid.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Bulk_handle_access(
    handle: Token,
    offset: usize,
    size: usize,
    _flags: c_ulong,
    max_count: c_uint,
    buf_ptrs: *mut *mut c_void,
    buf_sizes: *mut usize,
    actual_count: *mut c_uint,
) -> c_int {
    let range = (offset, size);
    // SAFETY: passed on from the caller.
    unsafe {
        access(
            "HG_Bulk_handle_access",
            handle,
            range,
            max_count,
            (buf_ptrs, buf_sizes),
            actual_count,
        )
    }
}

/// Bytes of all segments; 0 for no handle.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Bulk_handle_get_size(handle: Token) -> usize {
    value("HG_Bulk_handle_get_size", |_| 0, || Ok(BULKS.get(handle)?.bulk.len()))
}

/// The number of segments; 0 for no handle.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Bulk_handle_get_segment_count(handle: Token) -> usize {
    value("HG_Bulk_handle_get_segment_count", |_| 0, || Ok(BULKS.get(handle)?.bulk.segments()))
}

/// Bytes of the serialised form; 0 for no handle.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Bulk_handle_get_serialize_size(handle: Token) -> usize {
    value("HG_Bulk_handle_get_serialize_size", |_| 0, || Ok(BULKS.get(handle)?.bulk.encoded_len()))
}

/// Serialises a handle.
///
/// # Safety
/// `buf` must be null or valid for writes of `buf_size` bytes.
pub(super) unsafe fn serialize(buf: *mut c_void, buf_size: u64, handle: Token) -> Result<()> {
    let serialized = BULKS.get(handle)?.bulk.to_bytes();
    // SAFETY: passed on from the caller.
    unsafe { put_bytes(buf, buf_size, &serialized) }
}

/// Serialises a handle.
///
/// # Safety
/// `buf` must be null or valid for writes of `buf_size` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Bulk_handle_serialize(
    buf: *mut c_void,
    buf_size: usize,
    handle: Token,
) -> c_int {
    // SAFETY: passed on from the caller.
    code("HG_Bulk_handle_serialize", || unsafe { serialize(buf, buf_size as u64, handle) })
}

/// The handle that bytes describe.
///
/// # Safety
/// `buf` must be valid for reads of `buf_size` bytes, `handle` null or valid.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Bulk_handle_deserialize(
    handle: *mut Token,
    buf: *const c_void,
    buf_size: usize,
) -> c_int {
    // SAFETY: passed on from the caller.
    code("HG_Bulk_handle_deserialize", || unsafe { deserialize(handle, buf, buf_size) })
}

/// # Safety
/// `buf` must be valid for reads of `buf_size` bytes, `handle` null or valid.
pub(super) unsafe fn deserialize(
    handle: *mut Token,
    buf: *const c_void,
    buf_size: usize,
) -> Result<()> {
    // SAFETY: passed on from the caller.
    let (to, from) = unsafe {
        (place(handle, "bulk handle")?, bytes(buf.cast::<u8>(), buf_size, "bytes of a handle")?)
    };
    *to = keep(Bulk::from_bytes(from)?);
    Ok(())
}

/// The direction of an `hg_bulk_op_t`.
pub(super) fn direction(op: c_int) -> Result<Direction> {
    match op {
        0 => Ok(Direction::Put),
        1 => Ok(Direction::Get),
        _ => refuse!(INVALID_ARG, "{op} is neither HG_BULK_PUSH nor HG_BULK_PULL"),
    }
}

/// Begins to move bytes between the memory of an origin and local memory. Between two
/// handles of this process they are copied.
///
/// # Safety
/// `request` must be null or valid for writes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Bulk_transfer(
    op: c_int,
    origin_addr: Token,
    origin_handle: Token,
    origin_offset: usize,
    local_handle: Token,
    local_offset: usize,
    size: usize,
    request: *mut Token,
) -> c_int {
    code("HG_Bulk_transfer", || {
        let global = global()?;
        // SAFETY: passed on from the caller.
        let to = unsafe { place(request, "bulk request") }?;
        let address = ADDRESSES.get(origin_addr)?;
        let (origin, local) = (BULKS.get(origin_handle)?, BULKS.get(local_handle)?);
        let asked = Arc::new(Request {
            context: global.context.clone(),
            class: global.class.clone(),
            op: std::sync::OnceLock::new(),
            done: AtomicBool::new(false),
            status: AtomicI32::new(0),
        });
        let told = asked.clone();
        let callback: Callback = Box::new(move |event| {
            told.status.store(event.status.0, Ordering::Relaxed);
            told.done.store(true, Ordering::Release);
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
    })
}

impl Request {
    fn wait(&self, time: Duration) -> Result<bool> {
        until(&self.class.shared, &mut Deadline::after(time), || {
            self.context.shared.step();
            if self.context.queued() > 0 {
                self.context.trigger(Duration::ZERO, usize::MAX)?;
            }
            Ok(self.done.load(Ordering::Acquire))
        })
    }
}

/// Waits for a transfer. When it has ended the request is gone.
///
/// # Safety
/// `status` must be null, ignored or valid for writes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Bulk_wait(
    request: Token,
    milliseconds: c_uint,
    status: *mut u8,
) -> c_int {
    code("HG_Bulk_wait", || {
        // SAFETY: passed on from the caller.
        let status = unsafe { maybe(status) };
        global()?;
        let found = REQUESTS.get(request)?;
        let waited = match found.wait(timeout(milliseconds)) {
            Ok(true) => {
                REQUESTS.remove(request)?;
                match Status(found.status.load(Ordering::Relaxed)) {
                    Status::SUCCESS => Ok(true),
                    failed => Err(Failure::new(
                        failed,
                        format!("the bulk transfer has failed: {}", failed.meaning()),
                    )),
                }
            }
            other => other,
        };
        report(waited, status, milliseconds)
    })
}
