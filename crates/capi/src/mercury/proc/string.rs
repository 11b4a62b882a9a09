//! Strings as parameters, and string objects.
//!
//! The C library's `malloc` allocates decoded strings, so that `free` can release them. Invariant:
//! after decoding or freeing, the slot holds a string or null.

use super::codes::HgReturn;
use super::{checked, procs};
use crate::boundary::export;
use portolan_rpc::proc::{Fault, Op, Proc};
use std::ffi::CStr;
use std::os::raw::{c_char, c_void};
use std::ptr;

fn duplicate(text: &[u8]) -> Result<*mut c_char, Fault> {
    // SAFETY: the size is not 0, and cannot overflow: a slice has at most `isize::MAX` bytes.
    let copy = unsafe { libc::malloc(text.len() + 1) }.cast::<u8>();
    if copy.is_null() {
        return Err(Fault::Memory(text.len() + 1));
    }
    // SAFETY: `copy` has `text.len() + 1` bytes, which hold the text and the zero.
    unsafe {
        ptr::copy_nonoverlapping(text.as_ptr(), copy, text.len());
        *copy.add(text.len()) = 0;
    }
    Ok(copy.cast())
}

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
    // SAFETY: `text` is not null, so the caller guarantees that it is a terminated string.
    proc.put_text(Some(unsafe { CStr::from_ptr(text) }.to_bytes()))
}

/// # Safety
/// `slot` must be null or the address of a `char *`. To encode, the slot must hold a terminated
/// string or null. To free, it must hold the result of decoding.
unsafe fn over(proc: &mut Proc<'static>, slot: *mut *mut c_char) -> Result<(), Fault> {
    if slot.is_null() {
        return Err(proc.fail(Fault::argument("the string's address is null")));
    }
    // SAFETY: `slot` is not null, so by contract it holds what the operation requires.
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

procs! {
    /// `data` must be null or the address of an `hg_string_t`. To encode, it must hold a terminated
    /// string or null. To free, it must hold the result of decoding.
    hg_proc_hg_string_t(data: *mut c_void), |proc| {
        // SAFETY: by contract, `data` is null or a suitable slot.
        unsafe { over(proc, data.cast()) }
    };
    hg_proc_hg_const_string_t(data: *mut c_void), |proc| {
        // SAFETY: by contract, `data` is null or a suitable slot.
        unsafe { over(proc, data.cast()) }
    };
}

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

    /// Frees the string if the object owns it, and empties the object.
    ///
    /// # Safety
    /// An owned string must come from `malloc` and must not be used elsewhere.
    unsafe fn clear(&mut self) {
        if self.is_owned != 0 {
            // SAFETY: by contract, an owned string comes from `malloc` and is not used elsewhere.
            unsafe { libc::free(self.data.cast()) };
        }
        *self = HgStringObject::EMPTY;
    }
}

procs! {
    /// Only the string is encoded. A decoded object owns its string. `data` must be null or the
    /// address of a string object. To encode or free, the object must be initialised.
    hg_proc_hg_string_object_t(data: *mut c_void), |proc| {
        let object = data.cast::<HgStringObject>();
        if object.is_null() {
            return Err(proc.fail(Fault::argument("the string object is null")));
        }
        // SAFETY: `object` is not null, so by contract it is initialised if it is read. Decoding
        // writes the object without reading it.
        unsafe {
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
        }
    };
}

/// Fails if the object is null.
fn object(
    call: &'static str,
    string: *mut HgStringObject,
    body: impl FnOnce() -> Result<(), Fault>,
) -> HgReturn {
    checked(call, || match string.is_null() {
        true => Err(Fault::argument("the string object is null")),
        false => body(),
    })
}

export! {
    hg_string_object_init(string: *mut HgStringObject) -> HgReturn = object(string, || {
        // SAFETY: `string` is not null, so the caller guarantees that it is valid for a write.
        unsafe { string.write(HgStringObject::EMPTY) };
        Ok(())
    });

    /// `string` must be null or valid for a write. `s` must be null or a terminated string. If
    /// `is_owned` is not 0, `s` must come from `malloc`.
    hg_string_object_init_char(
        string: *mut HgStringObject, s: *mut c_char, is_owned: u8,
    ) -> HgReturn = object(string, || {
        let is_owned = u8::from(is_owned != 0);
        // SAFETY: `string` is not null, so the caller guarantees that it is valid for a write.
        unsafe { string.write(HgStringObject { data: s, is_const: 0, is_owned }) };
        Ok(())
    });

    hg_string_object_init_const_char(
        string: *mut HgStringObject, s: *const c_char, is_owned: u8,
    ) -> HgReturn = object(string, || {
        let is_owned = u8::from(is_owned != 0);
        // SAFETY: `string` is not null, so the caller guarantees that it is valid for a write.
        unsafe { string.write(HgStringObject { data: s.cast_mut(), is_const: 1, is_owned }) };
        Ok(())
    });

    hg_string_object_free(string: *mut HgStringObject) -> HgReturn = object(string, || {
        // SAFETY: `string` is not null, so the caller guarantees that it is initialised.
        unsafe { (*string).clear() };
        Ok(())
    });

    /// The string of `string` must be null or terminated, `new_string` null or valid for a write.
    hg_string_object_dup(
        string: HgStringObject, new_string: *mut HgStringObject,
    ) -> HgReturn = object(new_string, || {
        let data = match string.data.is_null() {
            true => ptr::null_mut(),
            // SAFETY: the string is not null, so by contract it is terminated.
            false => duplicate(unsafe { CStr::from_ptr(string.data) }.to_bytes())?,
        };
        // SAFETY: `new_string` is not null, so by contract it is valid for a write.
        unsafe { new_string.write(HgStringObject { data, is_const: 0, is_owned: 1 }) };
        Ok(())
    });

    hg_string_object_swap / mercury2_hg_string_object_swap(
        string: *mut HgStringObject, s: *mut c_char,
    ) -> *mut c_char {
        // SAFETY: the caller guarantees that `string` is null or an initialised object.
        unsafe { string.as_mut() }.map_or(ptr::null_mut(), |object| {
            std::mem::replace(object, HgStringObject { data: s, is_const: 0, is_owned: 0 }).data
        })
    }
}
