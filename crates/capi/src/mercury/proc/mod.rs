//! `hg_proc_*`: procs and their buffers. Exports the calls of 2013; `v2_4::proc` exports the same
//! calls with the codes of 2.4.
//!
//! An `hg_proc_t` is the address of a [`Proc`]. The program creates it with `hg_proc_create` or
//! `hg_proc_create_set`, or the library passes it to a proc function for the current call.

pub(crate) mod bulk;
pub(crate) mod codes;
pub(crate) mod numbers;
pub(crate) mod string;

use crate::boundary::{self, array, export, guard};
use codes::{HG_FAIL, HG_INVALID, HG_SUCCESS, HgReturn};
use portolan_engine::memory::large_buffer;
use portolan_rpc::checksum::Method;
use portolan_rpc::proc::{Fault, Proc};
use std::cell::Cell;
use std::os::raw::{c_char, c_int, c_void};
use std::ptr;

pub(crate) type HgProc = *mut Proc<'static>;

/// If `body` fails, the C caller receives the code of the fault.
#[inline]
pub(super) fn checked(call: &'static str, body: impl FnOnce() -> Result<(), Fault>) -> HgReturn {
    let code = Cell::new(HG_FAIL);
    guard(
        call,
        |_| code.get(),
        || match body() {
            Ok(()) => Ok(HG_SUCCESS),
            Err(fault) => {
                code.set(codes::code(&fault));
                Err(fault.into())
            }
        },
    )
}

/// Runs `body` on a proc. Fails if the proc is null.
///
/// # Safety
/// `proc` must be null or a live proc that no other thread uses during the call.
#[inline]
pub(super) unsafe fn with(
    call: &'static str,
    proc: HgProc,
    body: impl FnOnce(&mut Proc<'static>) -> Result<(), Fault>,
) -> HgReturn {
    checked(call, || {
        // SAFETY: the caller guarantees that `proc` is null, or live and not in use elsewhere.
        let proc = unsafe { proc.as_mut() };
        body(proc.ok_or_else(|| Fault::argument("the proc is null"))?)
    })
}

fn bytes(size: u64) -> Result<usize, Fault> {
    usize::try_from(size).map_err(|_| Fault::Memory(usize::MAX))
}

/// # Safety
/// The buffer must be valid for `size` bytes while the proc lives.
unsafe fn make(
    buf: *mut c_void,
    size: u64,
    op: c_int,
    hash: c_int,
    trailer: bool,
) -> Result<Proc<'static>, Fault> {
    let (op, method) = (codes::op_from_c(op)?, codes::hash_from_c(hash)?);
    // SAFETY: the caller guarantees that the buffer is valid for `size` bytes while the proc lives.
    unsafe {
        let size = buffer(buf, size)?.len();
        Ok(Proc::over(buf.cast(), size, op, method, trailer))
    }
}

/// # Safety
/// `buf` must be null or valid for reads of `size` bytes for `'a`.
unsafe fn buffer<'a>(buf: *const c_void, size: u64) -> Result<&'a [u8], Fault> {
    // SAFETY: the caller guarantees the bytes.
    let given = unsafe { array(buf.cast(), bytes(size)?, "the buffer") };
    given.map_err(|error| Fault::argument(error.detail()))
}

export! {
    hg_proc_buf_alloc(size: u64) -> *mut c_void {
        let size = isize::try_from(size);
        size.map_or(ptr::null_mut(), |size| large_buffer::alloc(size as usize).cast())
    }

    /// `mem_ptr` must be null, or come from `hg_proc_buf_alloc` and not be used afterwards.
    hg_proc_buf_free(mem_ptr: *mut c_void) {
        // SAFETY: the caller guarantees that `mem_ptr` is null or such a buffer.
        unsafe { large_buffer::free(mem_ptr.cast()) };
    }

    /// The buffer must be valid for `buf_size` bytes while the proc lives. `proc` must be null or
    /// valid for a write.
    hg_proc_create(
        buf: *mut c_void, buf_size: u64, op: c_int, hash: c_int, proc: *mut HgProc,
    ) -> HgReturn = checked(|| {
        if proc.is_null() {
            return Err(Fault::argument("the pointer to the proc is null"));
        }
        // SAFETY: `proc` is valid for a write, and by contract the buffer is valid.
        unsafe { *proc = Box::into_raw(Box::new(make(buf, buf_size, op, hash, true)?)) };
        Ok(())
    });

    hg_proc_create_set(
        hg_class: *mut c_void, buf: *mut c_void, buf_size: u64, op: c_int, hash: c_int,
        proc: *mut HgProc,
    ) -> HgReturn = checked(|| {
        if proc.is_null() {
            return Err(Fault::argument("the pointer to the proc is null"));
        }
        // SAFETY: `proc` is valid for a write, and by contract the buffer is valid.
        unsafe {
            let mut made = make(buf, buf_size, op, hash, false)?;
            made.attached.class = hg_class;
            *proc = Box::into_raw(Box::new(made));
        }
        Ok(())
    });

    /// `proc` must be null or a live proc of `hg_proc_create*`, and is not used again.
    hg_proc_free(proc: HgProc) -> HgReturn = checked(|| {
        if proc.is_null() {
            return Err(Fault::argument("the proc is null"));
        }
        // SAFETY: `proc` is not null, so one of these functions has boxed it. It is not used again.
        drop(unsafe { Box::from_raw(proc) });
        Ok(())
    });

    /// `name` must be null or a terminated string. `hash` must be null or valid for a write.
    hg_proc_hash_from_name(name: *const c_char, hash: *mut c_int) -> HgReturn = checked(|| {
        // SAFETY: the caller guarantees that `name` is null or a terminated string.
        let name = unsafe { boundary::text(name) };
        let method = Method::from_name(&name)
            .ok_or_else(|| Fault::argument(format!("unknown checksum '{name}'")))?;
        if hash.is_null() {
            return Err(Fault::argument("the pointer to the hash is null"));
        }
        // SAFETY: `hash` is not null, so the caller guarantees that it is valid for a write.
        unsafe { *hash = codes::hash_to_c(method) };
        Ok(())
    });
}

/// Exports calls that cannot fail, with the value for a null proc.
macro_rules! infallible {
    ($(
        $(#[$doc:meta])* $name:ident $(/ $twin:ident)? ($($arg:ident: $ty:ty),*) -> $ret:ty,
        $none:expr, |$p:ident| $body:expr;
    )*) => {
        export! {
            $($(#[$doc])* $name $(/ $twin)? (proc: HgProc $(, $arg: $ty)*) -> $ret {
                // SAFETY: the caller guarantees that `proc` is null, or live and not in use.
                unsafe { proc.as_mut() }.map_or($none, |$p| $body)
            })*
        }
    };
}

infallible! {
    hg_proc_get_op / mercury2_hg_proc_get_op() -> c_int, HG_INVALID, |p| codes::op_to_c(p.op());
    hg_proc_get_class / mercury2_hg_proc_get_class() -> *mut c_void, ptr::null_mut(),
        |p| p.attached.class;
    hg_proc_get_handle / mercury2_hg_proc_get_handle() -> *mut c_void, ptr::null_mut(),
        |p| p.attached.handle;
    hg_proc_set_handle / mercury2_hg_proc_set_handle(handle: *mut c_void) -> (), (),
        |p| p.attached.handle = handle;
    hg_proc_get_flags / mercury2_hg_proc_get_flags() -> u8, 0, |p| p.attached.flags;
    hg_proc_set_flags / mercury2_hg_proc_set_flags(flags: u8) -> (), (),
        |p| p.attached.flags = flags;
    hg_proc_get_size / mercury2_hg_proc_get_size() -> u64, 0, |p| p.size() as u64;
    hg_proc_get_size_used / mercury2_hg_proc_get_size_used() -> u64, 0, |p| p.used() as u64;
    hg_proc_get_size_left / mercury2_hg_proc_get_size_left() -> u64, 0, |p| p.left() as u64;
    /// Returns the extra buffer or null. This call may move the buffer, as any encoding may.
    hg_proc_get_extra_buf / mercury2_hg_proc_get_extra_buf() -> *mut c_void, ptr::null_mut(),
        |p| p.extra().map_or(ptr::null_mut(), <*mut u8>::cast);
    hg_proc_get_extra_size / mercury2_hg_proc_get_extra_size() -> u64, 0,
        |p| if p.overflow() { p.size() as u64 } else { 0 };
    hg_proc_get_buf_ptr() -> *mut c_void, ptr::null_mut(), |p| p.position().cast();
    hg_proc_undo_begin() -> (), (), |p| p.begin_undo();
    hg_proc_undo_end() -> (), (), |p| p.end_undo();
}

/// Exports calls of a live proc, which return the code of their fault.
macro_rules! procs {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*), |$p:ident| $body:expr;)*) => {
        $crate::boundary::export! {
            $($(#[$doc])* $name(proc: $crate::mercury::proc::HgProc $(, $arg: $ty)*) -> HgReturn {
                let body = |$p: &mut Proc<'static>| $body;
                // SAFETY: the caller guarantees that `proc` is null or live.
                unsafe { $crate::mercury::proc::with(stringify!($name), proc, body) }
            })*
        }
    };
}
use procs;

procs! {
    /// The buffer must be valid while the proc lives.
    hg_proc_reset(buf: *mut c_void, buf_size: u64, op: c_int), |p| {
        // SAFETY: the caller guarantees that the buffer is valid.
        let (op, size) = (codes::op_from_c(op)?, unsafe { buffer(buf, buf_size) }?.len());
        // SAFETY: the caller guarantees that the buffer is valid while the proc lives.
        unsafe { p.reset(buf.cast(), size, op) };
        Ok(())
    };
    hg_proc_set_size(buf_size: u64), |p| p.set_size(bytes(buf_size)?);
    hg_proc_set_extra_buf_is_mine(mine: u8), |p| p.set_extra_is_mine(mine != 0);
    hg_proc_flush(), |p| p.flush();
    hg_proc_set_buf_ptr(buf_ptr: *mut c_void), |p| p.set_position(buf_ptr.cast());
    /// Fails if the bytes are no longer in the buffer, for example because encoding has moved it.
    hg_proc_restore_ptr(data: *mut c_void, data_size: u64),
        |p| p.check_in_place(data.cast(), bytes(data_size)?);
    hg_proc_checksum_get(hash: *mut c_void, hash_size: u64), |p| {
        let sum = p.checksum();
        let (value, size) = (sum.bytes(), sum.method().size());
        if hash_size < size as u64 || hash.is_null() && size > 0 {
            return Err(Fault::argument(format!("the checksum has {size} bytes")));
        }
        // SAFETY: the caller guarantees `hash_size` bytes at `hash`, which are at least `size`.
        unsafe { ptr::copy_nonoverlapping(value.as_ptr(), hash.cast(), size) };
        Ok(())
    };
    hg_proc_checksum_verify(hash: *const c_void, hash_size: u64), |p| {
        // SAFETY: the caller guarantees that `hash` is null or has `hash_size` bytes.
        p.verify(unsafe { buffer(hash, hash_size) }?)
    };
}

export! {
    hg_proc_save_ptr / mercury2_hg_proc_save_ptr(proc: HgProc, data_size: u64) -> *mut c_void {
        let mut place = ptr::null_mut();
        // SAFETY: the caller guarantees that `proc` is null or live.
        unsafe {
            with("hg_proc_save_ptr", proc, |proc| {
                place = proc.in_place(bytes(data_size)?)?;
                Ok(())
            });
        }
        place.cast()
    }

    /// `proc` must be null or a live proc, `data` null or valid for reads of `data_size` bytes.
    hg_proc_checksum_update / mercury2_hg_proc_checksum_update(
        proc: HgProc, data: *mut c_void, data_size: u64,
    ) {
        // SAFETY: by contract, `proc` is null or live, and `data` is null or has `data_size` bytes.
        unsafe {
            with("hg_proc_checksum_update", proc, |proc| {
                proc.update_checksum(buffer(data, data_size)?);
                Ok(())
            });
        }
    }
}
