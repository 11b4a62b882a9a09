//! Classes: creation, end and attached data.

use super::types::{Counters, HgInitInfo, NaInitInfo};
use crate::mercury::entry::place;
use crate::mercury::interface::calls;
use crate::mercury::objects::attached::{Attached, CreateCallback, FreeCallback, OnCreate};
use crate::mercury::objects::class::{self, CLASSES};
use crate::mercury::objects::context::finalize_class;
use crate::mercury::params::{self, Which};
use crate::mercury::table::Token;
use portolan_rpc::checksum::Method;
use portolan_rpc::failure::{Result, refuse};
use portolan_rpc::na::Options;
use portolan_rpc::na::address::Scheme;
use std::ffi::CStr;
use std::os::raw::{c_char, c_uint, c_void};
use std::ptr;
use std::sync::atomic::Ordering;

/// Version 2.4, as `HG_VERSION` encodes it.
const VERSION: c_uint = 2 << 16 | 4;
/// `HG_CHECKSUM_RPC_PAYLOAD`.
const PAYLOAD: i32 = 2;

/// # Safety
/// `info` must be null or a NUL-terminated string. `options` must be null or valid for reads of the
/// fields that `version` has.
unsafe fn init(
    info: *const c_char,
    listen: u8,
    version: c_uint,
    options: *const HgInitInfo,
) -> Result<Token> {
    if version > VERSION {
        let (major, minor) = (version >> 16, version & 0xffff);
        refuse!(INVALID_ARG, "the program asks for Mercury {major}.{minor}; this is version 2.4");
    }
    let mut method = params::checksum_method()?;
    let (mut network, mut no_overflow, mut bulk_eager) = (ptr::null_mut(), false, true);
    let mut chosen = Options::default();
    if !options.is_null() {
        // SAFETY: `options` is not null, and every version of the struct has these fields.
        let (na_class, level) = unsafe { ((*options).na_class, (*options).checksum_level) };
        // SAFETY: `options` is not null, and every version of the struct has these fields. The key
        // is null or NUL-terminated, and stays so during the call.
        unsafe {
            chosen.auth_key = NaInitInfo::key(&raw const (*options).na_init_info);
            chosen.auto_sm = (*options).auto_sm != 0;
            bulk_eager = (*options).no_bulk_eager == 0;
        }
        network = na_class;
        if level == PAYLOAD && method == Method::None {
            method = Method::default();
        }
        // SAFETY: `options` is not null, and the struct has this field from version 2.4 on.
        no_overflow = version >= VERSION && unsafe { (*options).no_overflow };
    }
    // SAFETY: by this function's contract, `info` is null or NUL-terminated.
    unsafe {
        class::create((info, listen != 0, chosen), network, method, (no_overflow, bulk_eager))
    }
}

pub(super) fn name_of(scheme: Scheme) -> (&'static CStr, &'static CStr) {
    match scheme {
        Scheme::Own => (c"self", c"self"),
        Scheme::Mpi => (c"mpi", c"static"),
        Scheme::Sm => (c"na", c"sm"),
        Scheme::Tcp => (c"ofi", c"tcp"),
        _ => (c"", c""),
    }
}

fn name_and_protocol(class: Token) -> Result<(&'static CStr, &'static CStr)> {
    Ok(name_of(CLASSES.get(class)?.class.network().scheme()))
}

calls! { V2_4:
    HG_Init | HG_Core_init(info: *const c_char, listen: u8) -> Token, ptr::null_mut(), {
        // SAFETY: by the call's contract, `info` is null or NUL-terminated; `options` is null.
        unsafe { init(info, listen, 0, ptr::null()) }
    }

    HG_Init_opt | HG_Core_init_opt(
        info: *const c_char,
        listen: u8,
        options: *const HgInitInfo,
    ) -> Token, ptr::null_mut(), {
        // SAFETY: by contract, `info` is null or NUL-terminated, and `options` is null or valid.
        unsafe { init(info, listen, 0, options) }
    }

    HG_Init_opt2 | HG_Core_init_opt2(
        info: *const c_char,
        listen: u8,
        version: c_uint,
        options: *const HgInitInfo,
    ) -> Token, ptr::null_mut(), {
        // SAFETY: by contract, `info` is null or terminated, `options` null or valid for `version`.
        unsafe { init(info, listen, version, options) }
    }

    HG_Finalize | HG_Core_finalize(class: Token) {
        if class.is_null() { Ok(()) } else { finalize_class(class) }
    }

    HG_Cleanup | HG_Core_cleanup() -> (), (), { Ok(()) }

    HG_Class_get_name | HG_Core_class_get_name(class: Token) -> *const c_char, ptr::null(), {
        Ok(name_and_protocol(class)?.0.as_ptr())
    }

    HG_Class_get_protocol | HG_Core_class_get_protocol(
        class: Token,
    ) -> *const c_char, ptr::null(), { Ok(name_and_protocol(class)?.1.as_ptr()) }

    HG_Class_is_listening | HG_Core_class_is_listening(class: Token) -> bool, false, {
        Ok(CLASSES.get(class)?.class.network().listens())
    }

    HG_Class_get_input_eager_size | HG_Core_class_get_input_eager_size(class: Token) -> u64, 0, {
        Ok(CLASSES.get(class)?.room(Which::Input) as u64)
    }

    HG_Class_get_output_eager_size | HG_Core_class_get_output_eager_size(class: Token) -> u64, 0, {
        Ok(CLASSES.get(class)?.room(Which::Output) as u64)
    }

    /// Attaches data that `free` gets when the class ends. Data attached before is not freed.
    HG_Class_set_data | HG_Core_class_set_data(
        class: Token,
        data: *mut c_void,
        free: FreeCallback,
    ) {
        let held = CLASSES.get(class)?;
        Attached::overwrite(&held.data, Attached::new(data, free));
        Ok(())
    }

    HG_Class_get_data | HG_Core_class_get_data(class: Token) -> *mut c_void, ptr::null_mut(), {
        let data = CLASSES.get(class)?.data.lock().data();
        Ok(data)
    }

    /// Sets the number of the program's own bytes before each encoded input or output. Fails if it
    /// exceeds the capacity of a message.
    HG_Class_set_input_offset | HG_Class_set_output_offset [which: Which::Input, Which::Output](
        class: Token,
        offset: u64,
    ) {
        let held = CLASSES.get(class)?;
        let room = held.room(which);
        match usize::try_from(offset).ok().filter(|&offset| offset <= room) {
            Some(offset) => held.offset(which).store(offset, Ordering::Release),
            None => refuse!(
                INVALID_ARG,
                "an offset of {offset} exceeds the message capacity of {room} bytes"
            ),
        }
        Ok(())
    }

    HG_Class_set_handle_create_callback(class: Token, callback: CreateCallback, arg: *mut c_void) {
        *CLASSES.get(class)?.on_create.lock() = OnCreate::new(callback, arg);
        Ok(())
    }

    HG_Class_get_counters | HG_Core_class_get_counters(class: Token, counters: *mut Counters) {
        let held = CLASSES.get(class)?;
        // SAFETY: by the call's contract, `counters` is null or valid for a write.
        *unsafe { place(counters, "counters") }? = Counters::from(&held.counts);
        Ok(())
    }

    HG_Core_class_get_na(class: Token) -> Token, ptr::null_mut(), {
        CLASSES.get(class).map(|_| class)
    }
}
