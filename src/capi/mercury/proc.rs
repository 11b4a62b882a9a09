//! `hg_proc_*`: procs and their buffers.
//!
//! An `hg_proc_t` is the address of a [`Proc`]. One that a program makes comes from
//! `hg_proc_create` or `hg_proc_create_set`; those that it sees in its functions
//! belong to the call that is under way.

use super::types::{self, HG_FAIL, HG_INVALID, HG_SUCCESS, HgReturn};
use crate::capi::boundary::{self, guard};
use crate::memory::large_buffer;
use crate::rpc::checksum::Method;
use crate::rpc::proc::{Fault, Proc};
use std::cell::Cell;
use std::os::raw::{c_char, c_int, c_void};
use std::ptr;

/// `hg_proc_t`.
pub(crate) type HgProc = *mut Proc<'static>;

/// Runs a body that has faults; the caller sees their code.
#[inline]
pub(super) fn checked(call: &'static str, body: impl FnOnce() -> Result<(), Fault>) -> HgReturn {
    let code = Cell::new(HG_FAIL);
    guard(
        call,
        |_| code.get(),
        || match body() {
            Ok(()) => Ok(HG_SUCCESS),
            Err(fault) => {
                code.set(types::code(&fault));
                Err(fault.into())
            }
        },
    )
}

/// Runs a body on a proc.
///
/// # Safety
/// `proc` must be null or a live proc that nobody else uses now.
#[inline]
pub(super) unsafe fn with(
    call: &'static str,
    proc: HgProc,
    body: impl FnOnce(&mut Proc<'static>) -> Result<(), Fault>,
) -> HgReturn {
    checked(call, || {
        // SAFETY: the caller's promise.
        let proc = unsafe { proc.as_mut() };
        body(proc.ok_or_else(|| Fault::argument("the proc is null"))?)
    })
}

/// Reads from a proc; `none` for a null one.
///
/// # Safety
/// As [`with`].
unsafe fn look<R>(proc: HgProc, none: R, body: impl FnOnce(&mut Proc<'static>) -> R) -> R {
    // SAFETY: the caller's promise.
    unsafe { proc.as_mut() }.map_or(none, body)
}

fn bytes(size: u64) -> Result<usize, Fault> {
    usize::try_from(size).map_err(|_| Fault::Memory(usize::MAX))
}

/// # Safety
/// The buffer must be valid for `size` bytes as long as the proc lives.
unsafe fn make(
    buf: *mut c_void,
    size: u64,
    op: c_int,
    hash: c_int,
    trailer: bool,
) -> Result<Proc<'static>, Fault> {
    let (op, method, size) = (types::op_from_c(op)?, types::hash_from_c(hash)?, bytes(size)?);
    check_buffer(buf, size)?;
    // SAFETY: the caller's promise.
    Ok(unsafe { Proc::over(buf.cast(), size, op, method, trailer) })
}

fn check_buffer(buf: *mut c_void, size: usize) -> Result<(), Fault> {
    if buf.is_null() && size > 0 {
        return Err(Fault::argument(format!("the buffer of {size} bytes is null")));
    }
    Ok(())
}

/// A buffer on a page of its own, or null.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn hg_proc_buf_alloc(size: u64) -> *mut c_void {
    isize::try_from(size).map_or(ptr::null_mut(), |size| large_buffer::alloc(size as usize).cast())
}

/// Frees a buffer of `hg_proc_buf_alloc`.
///
/// # Safety
/// `mem_ptr` must be null or such a buffer, in use no more.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_proc_buf_free(mem_ptr: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { large_buffer::free(mem_ptr.cast()) };
}

/// Makes a proc whose bytes end with a trailer.
///
/// # Safety
/// The buffer must be valid for `buf_size` bytes as long as the proc lives, and
/// `proc` for a write.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_proc_create(
    buf: *mut c_void,
    buf_size: u64,
    op: c_int,
    hash: c_int,
    proc: *mut HgProc,
) -> HgReturn {
    checked("hg_proc_create", || {
        if proc.is_null() {
            return Err(Fault::argument("there is no place for the proc"));
        }
        // SAFETY: the caller's promise.
        unsafe { *proc = Box::into_raw(Box::new(make(buf, buf_size, op, hash, true)?)) };
        Ok(())
    })
}

/// Makes a proc without a trailer, for a class.
///
/// # Safety
/// As `hg_proc_create`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_proc_create_set(
    hg_class: *mut c_void,
    buf: *mut c_void,
    buf_size: u64,
    op: c_int,
    hash: c_int,
    proc: *mut HgProc,
) -> HgReturn {
    checked("hg_proc_create_set", || {
        if proc.is_null() {
            return Err(Fault::argument("there is no place for the proc"));
        }
        // SAFETY: the caller's promise.
        unsafe {
            let mut made = make(buf, buf_size, op, hash, false)?;
            made.attached.class = hg_class;
            *proc = Box::into_raw(Box::new(made));
        }
        Ok(())
    })
}

/// Starts again with another buffer.
///
/// # Safety
/// As `hg_proc_create`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_proc_reset(
    proc: HgProc,
    buf: *mut c_void,
    buf_size: u64,
    op: c_int,
) -> HgReturn {
    // SAFETY: the caller's promise.
    unsafe {
        with("hg_proc_reset", proc, |proc| {
            let (op, size) = (types::op_from_c(op)?, bytes(buf_size)?);
            check_buffer(buf, size)?;
            proc.reset(buf.cast(), size, op);
            Ok(())
        })
    }
}

/// Frees a proc.
///
/// # Safety
/// It must come from `hg_proc_create` or `hg_proc_create_set` and be used no more.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_proc_free(proc: HgProc) -> HgReturn {
    checked("hg_proc_free", || {
        if proc.is_null() {
            return Err(Fault::argument("the proc is null"));
        }
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(proc) });
        Ok(())
    })
}

/// The hash of a name.
///
/// # Safety
/// `name` must be null or a terminated string, `hash` null or valid for a write.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_proc_hash_from_name(
    name: *const c_char,
    hash: *mut c_int,
) -> HgReturn {
    checked("hg_proc_hash_from_name", || {
        // SAFETY: the caller's promise.
        let name = unsafe { boundary::text(name) };
        let method = Method::from_name(&name)
            .ok_or_else(|| Fault::argument(format!("there is no checksum named '{name}'")))?;
        if hash.is_null() {
            return Err(Fault::argument("there is no place for the hash"));
        }
        // SAFETY: the caller's promise.
        unsafe { *hash = types::hash_to_c(method) };
        Ok(())
    })
}

macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident -> $ty:ty, $none:expr, $body:expr;)*) => {
        $($(#[$doc])*
        ///
        /// # Safety
        /// `proc` must be null or a live proc.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(proc: HgProc) -> $ty {
            // SAFETY: the caller's promise.
            unsafe { look(proc, $none, $body) }
        })*
    };
}

getters! {
    /// What the proc does.
    hg_proc_get_op -> c_int, HG_INVALID, |p| types::op_to_c(p.op());
    /// The class that it was made for.
    hg_proc_get_class -> *mut c_void, ptr::null_mut(), |p| p.attached.class;
    /// The call that it belongs to.
    hg_proc_get_handle -> *mut c_void, ptr::null_mut(), |p| p.attached.handle;
    /// Its flags.
    hg_proc_get_flags -> u8, 0, |p| p.attached.flags;
    /// Bytes of its current buffer.
    hg_proc_get_size -> u64, 0, |p| p.size() as u64;
    /// Of them, those used.
    hg_proc_get_size_used -> u64, 0, |p| p.used() as u64;
    /// Of them, those left.
    hg_proc_get_size_left -> u64, 0, |p| p.left() as u64;
    /// The extra buffer, or null. It may have moved, as by encoding.
    hg_proc_get_extra_buf -> *mut c_void, ptr::null_mut(),
        |p| p.extra().map_or(ptr::null_mut(), <*mut u8>::cast);
    /// Its size, or 0.
    hg_proc_get_extra_size -> u64, 0, |p| if p.overflow() { p.size() as u64 } else { 0 };
    /// Where it stands in its buffer.
    hg_proc_get_buf_ptr -> *mut c_void, ptr::null_mut(), |p| p.position().cast();
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*), |$p:ident| $body:expr;)*) => {
        $($(#[$doc])*
        ///
        /// # Safety
        /// `proc` must be null or a live proc; pointers must be valid for what the
        /// header says of them.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(proc: HgProc $(, $arg: $ty)*) -> HgReturn {
            let body = |$p: &mut Proc<'static>| $body;
            // SAFETY: the caller's promise.
            unsafe { with(stringify!($name), proc, body) }
        })*
    };
}

setters! {
    /// Asks for a buffer of at least so many bytes.
    hg_proc_set_size(buf_size: u64), |p| p.set_size(bytes(buf_size)?);
    /// Says whether the caller or the proc frees the extra buffer.
    hg_proc_set_extra_buf_is_mine(mine: u8), |p| p.set_extra_is_mine(mine != 0);
    /// Ends the pass.
    hg_proc_flush(), |p| p.flush();
    /// Goes on elsewhere in the buffer.
    hg_proc_set_buf_ptr(buf_ptr: *mut c_void), |p| p.set_position(buf_ptr.cast());
    /// Gives back what `hg_proc_save_ptr` has reserved.
    hg_proc_restore_ptr(data: *mut c_void, data_size: u64),
        |p| p.check_in_place(data.cast(), bytes(data_size)?);
    /// Copies the checksum.
    hg_proc_checksum_get(hash: *mut c_void, hash_size: u64), |p| {
        let sum = p.checksum();
        let (value, size) = (sum.bytes(), sum.method().size());
        if hash_size < size as u64 || hash.is_null() && size > 0 {
            return Err(Fault::argument(format!("the checksum has {size} bytes")));
        }
        // SAFETY: the caller's promise: `hash` has `hash_size` bytes.
        unsafe { ptr::copy_nonoverlapping(value.as_ptr(), hash.cast(), size) };
        Ok(())
    };
    /// Compares another checksum with the proc's.
    hg_proc_checksum_verify(hash: *const c_void, hash_size: u64), |p| {
        if hash.is_null() {
            return Err(Fault::argument("the checksum is null"));
        }
        // SAFETY: the caller's promise.
        p.verify(unsafe { std::slice::from_raw_parts(hash.cast(), bytes(hash_size)?) })
    };
}

/// Attaches a call.
///
/// # Safety
/// `proc` must be null or a live proc.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_proc_set_handle(proc: HgProc, handle: *mut c_void) {
    // SAFETY: the caller's promise.
    if let Some(proc) = unsafe { proc.as_mut() } {
        proc.attached.handle = handle;
    }
}

/// Sets the flags.
///
/// # Safety
/// `proc` must be null or a live proc.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_proc_set_flags(proc: HgProc, flags: u8) {
    // SAFETY: the caller's promise.
    if let Some(proc) = unsafe { proc.as_mut() } {
        proc.attached.flags = flags;
    }
}

/// Reserves bytes of the buffer, or goes past them; null for an error.
///
/// # Safety
/// `proc` must be null or a live proc.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_proc_save_ptr(proc: HgProc, data_size: u64) -> *mut c_void {
    let mut place = ptr::null_mut();
    // SAFETY: the caller's promise.
    unsafe {
        with("hg_proc_save_ptr", proc, |proc| {
            place = proc.in_place(bytes(data_size)?)?;
            Ok(())
        });
    }
    place.cast()
}

/// Takes further data into the checksum.
///
/// # Safety
/// `proc` must be null or a live proc; `data` must be valid for `data_size` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_proc_checksum_update(
    proc: HgProc,
    data: *mut c_void,
    data_size: u64,
) {
    // SAFETY: the caller's promise.
    unsafe {
        with("hg_proc_checksum_update", proc, |proc| {
            let size = bytes(data_size)?;
            if size > 0 {
                check_buffer(data, size)?;
                proc.update_checksum(std::slice::from_raw_parts(data.cast(), size));
            }
            Ok(())
        });
    }
}

/// From now on the proc frees.
///
/// # Safety
/// `proc` must be null or a live proc.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_proc_undo_begin(proc: HgProc) {
    // SAFETY: the caller's promise.
    if let Some(proc) = unsafe { proc.as_mut() } {
        proc.begin_undo();
    }
}

/// Ends `hg_proc_undo_begin`.
///
/// # Safety
/// `proc` must be null or a live proc.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_proc_undo_end(proc: HgProc) {
    // SAFETY: the caller's promise.
    if let Some(proc) = unsafe { proc.as_mut() } {
        proc.end_undo();
    }
}
