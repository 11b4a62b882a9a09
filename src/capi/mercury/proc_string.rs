//! Strings as parameters, and string objects.
//!
//! A decoded string comes from the C library's `malloc`, so that `free` frees it.
//! Invariant: a slot that decoding or freeing has gone over holds a string or null.

use super::proc::{HgProc, checked, with};
use super::types::HgReturn;
use crate::rpc::proc::{Fault, Op, Proc};
use std::ffi::CStr;
use std::os::raw::{c_char, c_void};
use std::ptr;

/// A copy of `text` with a zero behind it, from `malloc`.
fn duplicate(text: &[u8]) -> Result<*mut c_char, Fault> {
    // SAFETY: the size is not 0 and no overflow: a slice is shorter than that.
    let copy = unsafe { libc::malloc(text.len() + 1) }.cast::<u8>();
    if copy.is_null() {
        return Err(Fault::Memory(text.len() + 1));
    }
    // SAFETY: `copy` has room for the text and the zero.
    unsafe {
        ptr::copy_nonoverlapping(text.as_ptr(), copy, text.len());
        *copy.add(text.len()) = 0;
    }
    Ok(copy.cast())
}

/// Decodes a string or null.
fn decode(proc: &mut Proc<'static>) -> Result<*mut c_char, Fault> {
    match proc.take_text()? {
        None => Ok(ptr::null_mut()),
        Some(text) => duplicate(text).map_err(|fault| proc.fail(fault)),
    }
}

/// # Safety
/// `text` must be null or a terminated string.
unsafe fn encode(proc: &mut Proc<'static>, text: *const c_char) -> Result<(), Fault> {
    if text.is_null() {
        return proc.put_text(None);
    }
    // SAFETY: the caller's promise.
    proc.put_text(Some(unsafe { CStr::from_ptr(text) }.to_bytes()))
}

/// # Safety
/// `slot` must be null or the address of a `char *`, as the proc wants it: with a
/// string or null to encode, what decoding has put there to free.
unsafe fn over(proc: &mut Proc<'static>, slot: *mut *mut c_char) -> Result<(), Fault> {
    if slot.is_null() {
        return Err(proc.fail(Fault::argument("the string's address is null")));
    }
    // SAFETY: the caller's promise.
    unsafe {
        match proc.op() {
            Op::Encode => encode(proc, *slot),
            Op::Decode => {
                *slot = ptr::null_mut();
                *slot = decode(proc)?;
                Ok(())
            }
            Op::Free => {
                libc::free((*slot).cast());
                *slot = ptr::null_mut();
                Ok(())
            }
        }
    }
}

/// Goes over a `char *`.
///
/// # Safety
/// `proc` must be null or a live proc, `data` the address of a `hg_string_t` fit for
/// what the proc does.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_proc_hg_string_t(proc: HgProc, data: *mut c_void) -> HgReturn {
    // SAFETY: the caller's promise.
    unsafe { with("hg_proc_hg_string_t", proc, |proc| over(proc, data.cast())) }
}

/// Goes over a `const char *`.
///
/// # Safety
/// As `hg_proc_hg_string_t`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_proc_hg_const_string_t(
    proc: HgProc,
    data: *mut c_void,
) -> HgReturn {
    // SAFETY: the caller's promise.
    unsafe { with("hg_proc_hg_const_string_t", proc, |proc| over(proc, data.cast())) }
}

/// `hg_string_object_t`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct HgStringObject {
    data: *mut c_char,
    is_const: u8,
    is_owned: u8,
}

impl HgStringObject {
    const EMPTY: HgStringObject =
        HgStringObject { data: ptr::null_mut(), is_const: 0, is_owned: 0 };

    /// # Safety
    /// An owned string must come from `malloc` and be used by nobody else.
    unsafe fn clear(&mut self) {
        if self.is_owned != 0 {
            // SAFETY: the caller's promise.
            unsafe { libc::free(self.data.cast()) };
        }
        *self = HgStringObject::EMPTY;
    }
}

/// Goes over a string object; only the string travels, and a decoded one is owned.
///
/// # Safety
/// `proc` must be null or a live proc, `data` the address of an object fit for what
/// the proc does.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_proc_hg_string_object_t(
    proc: HgProc,
    data: *mut c_void,
) -> HgReturn {
    // SAFETY: the caller's promise; decoding writes the object without reading it.
    unsafe {
        with("hg_proc_hg_string_object_t", proc, |proc| {
            let object = data.cast::<HgStringObject>();
            if object.is_null() {
                return Err(proc.fail(Fault::argument("the string object is null")));
            }
            match proc.op() {
                Op::Encode => encode(proc, (*object).data),
                Op::Decode => {
                    object.write(HgStringObject::EMPTY);
                    let data = decode(proc)?;
                    object.write(HgStringObject { data, is_const: 0, is_owned: 1 });
                    Ok(())
                }
                Op::Free => {
                    (*object).clear();
                    Ok(())
                }
            }
        })
    }
}

/// Runs a body on an object.
///
/// # Safety
/// `string` must be null or the address of an object that nobody else uses now.
unsafe fn object(
    call: &'static str,
    string: *mut HgStringObject,
    body: impl FnOnce(*mut HgStringObject) -> Result<(), Fault>,
) -> HgReturn {
    checked(call, || match string.is_null() {
        true => Err(Fault::argument("the string object is null")),
        false => body(string),
    })
}

/// An object without a string.
///
/// # Safety
/// `string` must be null or valid for a write.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_string_object_init(string: *mut HgStringObject) -> HgReturn {
    // SAFETY: the caller's promise.
    unsafe {
        object("hg_string_object_init", string, |string| {
            string.write(HgStringObject::EMPTY);
            Ok(())
        })
    }
}

/// An object of a string, which is not copied.
///
/// # Safety
/// `string` must be null or valid for a write, `s` null or a terminated string, which
/// comes from `malloc` where it is owned.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_string_object_init_char(
    string: *mut HgStringObject,
    s: *mut c_char,
    is_owned: u8,
) -> HgReturn {
    // SAFETY: the caller's promise.
    unsafe {
        object("hg_string_object_init_char", string, |string| {
            string.write(HgStringObject { data: s, is_const: 0, is_owned });
            Ok(())
        })
    }
}

/// An object of a constant string, which is not copied.
///
/// # Safety
/// As `hg_string_object_init_char`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_string_object_init_const_char(
    string: *mut HgStringObject,
    s: *const c_char,
    is_owned: u8,
) -> HgReturn {
    // SAFETY: the caller's promise.
    unsafe {
        object("hg_string_object_init_const_char", string, |string| {
            string.write(HgStringObject { data: s.cast_mut(), is_const: 1, is_owned });
            Ok(())
        })
    }
}

/// Frees the string where it is owned.
///
/// # Safety
/// `string` must be null or the address of an initialised object.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_string_object_free(string: *mut HgStringObject) -> HgReturn {
    // SAFETY: the caller's promise.
    unsafe {
        object("hg_string_object_free", string, |string| {
            (*string).clear();
            Ok(())
        })
    }
}

/// An object that owns a copy of the string.
///
/// # Safety
/// The string must be null or terminated, `new_string` null or valid for a write.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_string_object_dup(
    string: HgStringObject,
    new_string: *mut HgStringObject,
) -> HgReturn {
    // SAFETY: the caller's promise.
    unsafe {
        object("hg_string_object_dup", new_string, |new| {
            let data = match string.data.is_null() {
                true => ptr::null_mut(),
                false => duplicate(CStr::from_ptr(string.data).to_bytes())?,
            };
            new.write(HgStringObject { data, is_const: 0, is_owned: 1 });
            Ok(())
        })
    }
}

/// Puts `s` into the object, which does not own it, and returns what was there.
///
/// # Safety
/// `string` must be null or the address of an initialised object.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_string_object_swap(
    string: *mut HgStringObject,
    s: *mut c_char,
) -> *mut c_char {
    // SAFETY: the caller's promise.
    match unsafe { string.as_mut() } {
        None => ptr::null_mut(),
        Some(object) => {
            std::mem::replace(object, HgStringObject { data: s, is_const: 0, is_owned: 0 }).data
        }
    }
}
