//! Procs and parameter types: the calls of the 2013 interface with the codes and signatures of 2.4.

use super::codes::to_code;
use crate::mercury::interface::{Interface::V2_4, calls};
use crate::mercury::proc::bulk;
use crate::mercury::proc::codes::HgReturn;
use crate::mercury::proc::numbers;
use crate::mercury::proc::string::{self as strings, HgStringObject};
use crate::mercury::proc::{self as entry, HgProc};
use crate::mercury::table::Token;
use portolan_rpc::failure::{Result, Status, refuse};
use std::os::raw::{c_char, c_int, c_void};
use std::ptr;

/// The number in the 2013 interface of each `hg_proc_hash_t` of 2.4: crc16, crc32, crc64, none.
const HASHES: [c_int; 4] = [0, 3, 1, 2];

fn hash(hash: c_int) -> c_int {
    usize::try_from(hash).ok().and_then(|at| HASHES.get(at)).copied().unwrap_or(-1)
}

/// Exports calls that differ from the 2013 interface only in the returned codes.
macro_rules! same {
    ($($(#[$doc:meta])* $name:ident = $of:path: ($($arg:ident: $ty:ty),*);)*) => {
        $($(#[$doc])*
        #[unsafe(export_name = concat!("mercury2_", stringify!($name)))]
        pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) -> HgReturn {
            // SAFETY: this call has the same contract as the 2013 call, which the caller upholds.
            to_code(Status(unsafe { $of($($arg),*) }))
        })*
    };
}

same! {
    hg_proc_reset = entry::hg_proc_reset: (proc: HgProc, buf: *mut c_void, size: u64, op: c_int);
    hg_proc_set_size = entry::hg_proc_set_size: (proc: HgProc, size: u64);
    hg_proc_flush = entry::hg_proc_flush: (proc: HgProc);
    hg_proc_restore_ptr = entry::hg_proc_restore_ptr: (proc: HgProc, data: *mut c_void, size: u64);
    hg_proc_checksum_get = entry::hg_proc_checksum_get: (proc: HgProc, hash: *mut c_void, size: u64);
    hg_proc_checksum_verify = entry::hg_proc_checksum_verify: (proc: HgProc, hash: *const c_void, size: u64);
    hg_proc_int8_t = numbers::hg_proc_int8_t: (proc: HgProc, data: *mut c_void);
    hg_proc_uint8_t = numbers::hg_proc_uint8_t: (proc: HgProc, data: *mut c_void);
    hg_proc_int16_t = numbers::hg_proc_int16_t: (proc: HgProc, data: *mut c_void);
    hg_proc_uint16_t = numbers::hg_proc_uint16_t: (proc: HgProc, data: *mut c_void);
    hg_proc_int32_t = numbers::hg_proc_int32_t: (proc: HgProc, data: *mut c_void);
    hg_proc_uint32_t = numbers::hg_proc_uint32_t: (proc: HgProc, data: *mut c_void);
    hg_proc_int64_t = numbers::hg_proc_int64_t: (proc: HgProc, data: *mut c_void);
    hg_proc_uint64_t = numbers::hg_proc_uint64_t: (proc: HgProc, data: *mut c_void);
    hg_proc_bytes = numbers::hg_proc_bytes: (proc: HgProc, data: *mut c_void, size: u64);
    hg_proc_hg_string_t = strings::hg_proc_hg_string_t: (proc: HgProc, data: *mut c_void);
    hg_proc_hg_const_string_t = strings::hg_proc_hg_const_string_t: (proc: HgProc, data: *mut c_void);
    hg_proc_hg_string_object_t = strings::hg_proc_hg_string_object_t: (proc: HgProc, data: *mut c_void);
    hg_string_object_init = strings::hg_string_object_init: (string: *mut HgStringObject);
    hg_string_object_init_char = strings::hg_string_object_init_char:
        (string: *mut HgStringObject, s: *mut c_char, is_owned: u8);
    hg_string_object_init_const_char = strings::hg_string_object_init_const_char:
        (string: *mut HgStringObject, s: *const c_char, is_owned: u8);
    hg_string_object_free = strings::hg_string_object_free: (string: *mut HgStringObject);
    hg_string_object_dup = strings::hg_string_object_dup:
        (string: HgStringObject, new_string: *mut HgStringObject);
}

/// `proc` must be null or a live proc that is not used afterwards.
#[unsafe(export_name = "mercury2_hg_proc_free")]
pub(crate) unsafe extern "C" fn hg_proc_free(proc: HgProc) -> HgReturn {
    if proc.is_null() {
        return to_code(Status::SUCCESS);
    }
    // SAFETY: this call has the same contract as the 2013 call, which the caller upholds.
    to_code(Status(unsafe { entry::hg_proc_free(proc) }))
}

/// The caller frees the extra buffer if `theirs` is not 0; the flag of 2013 means the opposite.
#[unsafe(export_name = "mercury2_hg_proc_set_extra_buf_is_mine")]
pub(crate) unsafe extern "C" fn hg_proc_set_extra_buf_is_mine(
    proc: HgProc,
    theirs: u8,
) -> HgReturn {
    let mine = u8::from(theirs == 0);
    // SAFETY: this call has the same contract as the 2013 call, which the caller upholds.
    to_code(Status(unsafe { entry::hg_proc_set_extra_buf_is_mine(proc, mine) }))
}

/// Refuses a null class. Other values are checked when a bulk handle is decoded, because Mercury
/// does not check them here and its own tests pass an arbitrary number.
fn check_class(class: *mut c_void) -> Result<()> {
    if class.is_null() {
        refuse!(INVALID_ARG, "the class is null");
    }
    Ok(())
}

calls! { V2_4:
    /// Creates a proc without a buffer; `hg_proc_reset` sets one.
    hg_proc_create(class: *mut c_void, method: c_int, to: *mut HgProc) {
        check_class(class)?;
        // SAFETY: by the call's contract, `to` is null or valid for a write.
        let made = unsafe { entry::hg_proc_create_set(class, ptr::null_mut(), 0, 0, hash(method), to) };
        Status(made).result(|| "the proc cannot be made".to_string())
    }

    hg_proc_create_set(
        class: *mut c_void,
        buf: *mut c_void,
        size: u64,
        op: c_int,
        method: c_int,
        to: *mut HgProc,
    ) {
        check_class(class)?;
        // SAFETY: by contract, `to` is null or valid, `buf` null or valid while the proc exists.
        let made = unsafe { entry::hg_proc_create_set(class, buf, size, op, hash(method), to) };
        Status(made).result(|| "the proc cannot be made".to_string())
    }

    hg_proc_hg_bulk_t(proc: HgProc, data: *mut c_void) {
        // SAFETY: by contract, `proc` is null or live, `data` null or the address of a bulk handle.
        let (proc, slot) = unsafe { (proc.as_mut(), data.cast::<Token>().as_mut()) };
        let (Some(proc), Some(slot)) = (proc, slot) else {
            refuse!(INVALID_ARG, "the proc or the bulk handle's address is null");
        };
        Ok(bulk::go_over(V2_4, proc, slot)?)
    }
}
