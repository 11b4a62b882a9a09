//! Procs and the types of parameters: those of 2013, with 2.4's codes and forms.

use super::bulk_handle;
use super::codes::{calls, to_code};
use crate::capi::mercury::proc::{self as face, HgProc};
use crate::capi::mercury::proc_string::{self as strings, HgStringObject};
use crate::capi::mercury::proc_types as numbers;
use crate::capi::mercury::table::Token;
use crate::capi::mercury::types::HgReturn;
use crate::rpc::failure::{Failure, Status, refuse};
use crate::rpc::proc::{Fault, Op, Proc};
use std::os::raw::{c_char, c_int, c_void};
use std::ptr;

/// `hg_proc_hash_t` of 2.4 in numbers of 2013: crc16, crc32, crc64, none.
const HASHES: [c_int; 4] = [0, 3, 1, 2];

fn hash(hash: c_int) -> c_int {
    usize::try_from(hash).ok().and_then(|at| HASHES.get(at)).copied().unwrap_or(-1)
}

/// Exports what is the same but for its code.
macro_rules! same {
    ($($(#[$doc:meta])* $name:ident = $of:path: ($($arg:ident: $ty:ty),*);)*) => {
        $($(#[$doc])*
        ///
        /// # Safety
        /// Pointers must be null, or valid for what the header says of them.
        #[unsafe(export_name = concat!("mercury2_", stringify!($name)))]
        pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) -> HgReturn {
            // SAFETY: passed on from the caller.
            to_code(Status(unsafe { $of($($arg),*) }))
        })*
    };
}

same! {
    /// Frees a proc.
    hg_proc_free = face::hg_proc_free: (proc: HgProc);
    /// Starts again with another buffer.
    hg_proc_reset = face::hg_proc_reset: (proc: HgProc, buf: *mut c_void, size: u64, op: c_int);
    /// Asks for a buffer of at least so many bytes.
    hg_proc_set_size = face::hg_proc_set_size: (proc: HgProc, size: u64);
    /// Says whether the caller or the proc frees the extra buffer.
    hg_proc_set_extra_buf_is_mine = face::hg_proc_set_extra_buf_is_mine: (proc: HgProc, mine: u8);
    /// Ends the pass.
    hg_proc_flush = face::hg_proc_flush: (proc: HgProc);
    /// Gives back what `hg_proc_save_ptr` has reserved.
    hg_proc_restore_ptr = face::hg_proc_restore_ptr: (proc: HgProc, data: *mut c_void, size: u64);
    /// Copies the checksum.
    hg_proc_checksum_get = face::hg_proc_checksum_get: (proc: HgProc, hash: *mut c_void, size: u64);
    /// Compares another checksum with the proc's.
    hg_proc_checksum_verify = face::hg_proc_checksum_verify: (proc: HgProc, hash: *const c_void, size: u64);
    /// Goes over one number.
    hg_proc_int8_t = numbers::hg_proc_int8_t: (proc: HgProc, data: *mut c_void);
    /// Goes over one number.
    hg_proc_uint8_t = numbers::hg_proc_uint8_t: (proc: HgProc, data: *mut c_void);
    /// Goes over one number.
    hg_proc_int16_t = numbers::hg_proc_int16_t: (proc: HgProc, data: *mut c_void);
    /// Goes over one number.
    hg_proc_uint16_t = numbers::hg_proc_uint16_t: (proc: HgProc, data: *mut c_void);
    /// Goes over one number.
    hg_proc_int32_t = numbers::hg_proc_int32_t: (proc: HgProc, data: *mut c_void);
    /// Goes over one number.
    hg_proc_uint32_t = numbers::hg_proc_uint32_t: (proc: HgProc, data: *mut c_void);
    /// Goes over one number.
    hg_proc_int64_t = numbers::hg_proc_int64_t: (proc: HgProc, data: *mut c_void);
    /// Goes over one number.
    hg_proc_uint64_t = numbers::hg_proc_uint64_t: (proc: HgProc, data: *mut c_void);
    /// Goes over bytes as they are.
    hg_proc_bytes = numbers::hg_proc_bytes: (proc: HgProc, data: *mut c_void, size: u64);
    /// Goes over a string.
    hg_proc_hg_string_t = strings::hg_proc_hg_string_t: (proc: HgProc, data: *mut c_void);
    /// Goes over a string.
    hg_proc_hg_const_string_t = strings::hg_proc_hg_const_string_t: (proc: HgProc, data: *mut c_void);
    /// Goes over a string object.
    hg_proc_hg_string_object_t = strings::hg_proc_hg_string_object_t: (proc: HgProc, data: *mut c_void);
    /// Makes an object without a string.
    hg_string_object_init = strings::hg_string_object_init: (string: *mut HgStringObject);
    /// Makes an object of a string.
    hg_string_object_init_char = strings::hg_string_object_init_char:
        (string: *mut HgStringObject, s: *mut c_char, is_owned: u8);
    /// Makes an object of a string.
    hg_string_object_init_const_char = strings::hg_string_object_init_const_char:
        (string: *mut HgStringObject, s: *const c_char, is_owned: u8);
    /// Frees the string, if it is owned.
    hg_string_object_free = strings::hg_string_object_free: (string: *mut HgStringObject);
    /// Makes an object that owns a copy.
    hg_string_object_dup = strings::hg_string_object_dup:
        (string: HgStringObject, new_string: *mut HgStringObject);
}

/// Exports what is wholly the same.
macro_rules! alias {
    ($($(#[$doc:meta])* $name:ident = $of:path: ($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => {
        $($(#[$doc])*
        ///
        /// # Safety
        /// Pointers must be null, or valid for what the header says of them.
        #[unsafe(export_name = concat!("mercury2_", stringify!($name)))]
        pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            // SAFETY: passed on from the caller.
            unsafe { $of($($arg),*) }
        })*
    };
}

alias! {
    /// The class that it was made for.
    hg_proc_get_class = face::hg_proc_get_class: (proc: HgProc) -> *mut c_void;
    /// Attaches a call.
    hg_proc_set_handle = face::hg_proc_set_handle: (proc: HgProc, handle: *mut c_void) -> ();
    /// The call that it belongs to.
    hg_proc_get_handle = face::hg_proc_get_handle: (proc: HgProc) -> *mut c_void;
    /// What the proc does.
    hg_proc_get_op = face::hg_proc_get_op: (proc: HgProc) -> c_int;
    /// Sets the flags.
    hg_proc_set_flags = face::hg_proc_set_flags: (proc: HgProc, flags: u8) -> ();
    /// Its flags.
    hg_proc_get_flags = face::hg_proc_get_flags: (proc: HgProc) -> u8;
    /// Bytes of its current buffer.
    hg_proc_get_size = face::hg_proc_get_size: (proc: HgProc) -> u64;
    /// Of them, those used.
    hg_proc_get_size_used = face::hg_proc_get_size_used: (proc: HgProc) -> u64;
    /// Of them, those left.
    hg_proc_get_size_left = face::hg_proc_get_size_left: (proc: HgProc) -> u64;
    /// Reserves bytes of the buffer, or goes past them; null for an error.
    hg_proc_save_ptr = face::hg_proc_save_ptr: (proc: HgProc, size: u64) -> *mut c_void;
    /// The extra buffer, or null.
    hg_proc_get_extra_buf = face::hg_proc_get_extra_buf: (proc: HgProc) -> *mut c_void;
    /// Its size, or 0.
    hg_proc_get_extra_size = face::hg_proc_get_extra_size: (proc: HgProc) -> u64;
    /// Takes further data into the checksum.
    hg_proc_checksum_update = face::hg_proc_checksum_update: (proc: HgProc, data: *mut c_void, size: u64) -> ();
    /// Puts another string into the object; what was in it.
    hg_string_object_swap = strings::hg_string_object_swap: (string: *mut HgStringObject, s: *mut c_char) -> *mut c_char;
}

/// Goes over a bulk handle: its size and its serialised form, or the size 0 for null.
fn go_over(proc: &mut Proc<'static>, slot: &mut Token) -> Result<(), Fault> {
    let failed =
        |failure: Failure| Fault::Bulk { status: failure.status.0, text: failure.text.clone() };
    match proc.op() {
        Op::Encode if slot.is_null() => proc.put_size(0),
        Op::Encode => {
            let bytes = bulk_handle::serialized(*slot).map_err(|f| proc.fail(failed(f)))?;
            proc.put_size(bytes.len())?;
            proc.put(&bytes)
        }
        Op::Decode => {
            *slot = ptr::null_mut();
            let size = proc.take_size()?;
            if size > 0 {
                let bytes = proc.take(size)?;
                let class = proc.attached.class;
                *slot = bulk_handle::parse(class, bytes).map_err(|f| proc.fail(failed(f)))?;
            }
            Ok(())
        }
        Op::Free => bulk_handle::release(std::mem::replace(slot, ptr::null_mut())).map_err(failed),
    }
}

calls! {
    /// Makes a proc, which gets its buffer by `hg_proc_reset`.
    hg_proc_create(class: *mut c_void, method: c_int, to: *mut HgProc) {
        // SAFETY: passed on from the caller.
        let made = unsafe { face::hg_proc_create_set(class, ptr::null_mut(), 0, 0, hash(method), to) };
        Status(made).result(|| "the proc cannot be made".to_string())
    }

    /// Makes a proc over a buffer.
    hg_proc_create_set(
        class: *mut c_void,
        buf: *mut c_void,
        size: u64,
        op: c_int,
        method: c_int,
        to: *mut HgProc,
    ) {
        // SAFETY: passed on from the caller.
        let made = unsafe { face::hg_proc_create_set(class, buf, size, op, hash(method), to) };
        Status(made).result(|| "the proc cannot be made".to_string())
    }

    /// Goes over a bulk handle.
    hg_proc_hg_bulk_t(proc: HgProc, data: *mut c_void) {
        // SAFETY: passed on from the caller.
        let (proc, slot) = unsafe { (proc.as_mut(), data.cast::<Token>().as_mut()) };
        let (Some(proc), Some(slot)) = (proc, slot) else {
            refuse!(INVALID_ARG, "the proc or the bulk handle's address is null");
        };
        Ok(go_over(proc, slot)?)
    }
}
