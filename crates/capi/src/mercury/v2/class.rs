//! Classes: creation, end and attached data.

use super::codes::calls;
use super::objects::{CLASSES, CONTEXTS, Counts, HeldClass};
use super::types::{Attached, Counters, CreateCallback, FreeCallback, HgInitInfo, OnCreate};
use crate::mercury::face::{place, text};
use crate::mercury::params;
use crate::mercury::table::CLASSES as NA_CLASSES;
use crate::mercury::table::{Number, Token};
use parking_lot::Mutex;
use portolan_rpc::checksum::Method;
use portolan_rpc::failure::{Result, refuse};
use portolan_rpc::hg::Class;
use portolan_rpc::na::address::Scheme;
use std::os::raw::{c_char, c_uint, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const V2_4: c_uint = 2 << 16 | 4;
/// The checksum level `HG_CHECKSUM_RPC_PAYLOAD`.
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
    let mut method = params::checksum_method()?;
    let (mut network, mut no_overflow) = (ptr::null_mut(), false);
    if !options.is_null() {
        // SAFETY: `options` is not null, and every version of the struct has these fields.
        let (na_class, level) = unsafe { ((*options).na_class, (*options).checksum_level) };
        network = na_class;
        if level == PAYLOAD && method == Method::None {
            method = Method::default();
        }
        // SAFETY: `options` is not null, and the struct has this field from version 2.4 on.
        no_overflow = version >= V2_4 && unsafe { (*options).no_overflow };
    }
    let class = if network.is_null() {
        // SAFETY: by this function's contract, `info` is null or NUL-terminated.
        Class::init_with(&unsafe { text(info, "information string") }?, listen != 0, method)?
    } else {
        Class::over(&NA_CLASSES.get(network)?, method)?
    };
    Ok(CLASSES.insert(Arc::new(HeldClass {
        class,
        in_offset: AtomicUsize::new(0),
        out_offset: AtomicUsize::new(0),
        no_overflow,
        counts: Counts::default(),
        on_create: Mutex::default(),
        rpc_data: Mutex::default(),
        data: Mutex::default(),
    })))
}

/// Finalises a class. Null is accepted.
pub(super) fn finalize(token: Token) -> Result<()> {
    if token.is_null() {
        return Ok(());
    }
    let held = CLASSES.get(token)?;
    if CONTEXTS.find(|context| context.class_token == Number::of(token)).is_some() {
        refuse!(BUSY, "the class has contexts; destroy them first");
    }
    held.class.finalize()?;
    super::address::drop_those_of(token);
    CLASSES.remove(token)?;
    let rpc_data = std::mem::take(&mut *held.rpc_data.lock());
    drop(rpc_data);
    drop(std::mem::take(&mut *held.data.lock()));
    Ok(())
}

pub(super) fn name_of(scheme: Scheme) -> (&'static std::ffi::CStr, &'static std::ffi::CStr) {
    match scheme {
        Scheme::Own => (c"self", c"self"),
        Scheme::Mpi => (c"mpi", c"static"),
        Scheme::Dynamic => (c"mpi", c"dynamic"),
    }
}

pub(super) fn set_data(token: Token, data: *mut c_void, free: FreeCallback) -> Result<()> {
    let held = CLASSES.get(token)?;
    let before = std::mem::replace(&mut *held.data.lock(), Attached::new(data, free));
    drop(before);
    Ok(())
}

/// # Safety
/// `to` must be null or valid for a write.
unsafe fn counters(token: Token, to: *mut Counters) -> Result<()> {
    let held = CLASSES.get(token)?;
    // SAFETY: by this function's contract, `to` is null or valid for a write.
    *unsafe { place(to, "counters") }? = held.counts.read();
    Ok(())
}

/// Sets an offset in bytes. Fails if it exceeds `room`, the capacity of a message.
fn set_offset(room: usize, to: &AtomicUsize, offset: u64) -> Result<()> {
    match usize::try_from(offset).ok().filter(|&offset| offset <= room) {
        Some(offset) => to.store(offset, Ordering::Release),
        None => refuse!(
            INVALID_ARG,
            "an offset of {offset} exceeds the message capacity of {room} bytes"
        ),
    }
    Ok(())
}

macro_rules! both {
    ($($hg:ident, $core:ident: $doc:literal, ($($arg:ident: $ty:ty),*) -> $ret:ty, $none:expr, $body:expr;)*) => {
        calls! {
            $(#[doc = $doc]
            $hg($($arg: $ty),*) -> $ret, $none, { $body }

            #[doc = $doc]
            $core($($arg: $ty),*) -> $ret, $none, { $body })*
        }
    };
}

both! {
    HG_Init, HG_Core_init: "Creates a class. Returns null on failure.",
        (info: *const c_char, listen: u8) -> Token, ptr::null_mut(),
        // SAFETY: by the call's contract, `info` is null or NUL-terminated; `options` is null.
        unsafe { init(info, listen, 0, ptr::null()) };
    HG_Init_opt, HG_Core_init_opt: "Creates a class with the options of 2.2. Returns null on failure.",
        (info: *const c_char, listen: u8, options: *const HgInitInfo) -> Token, ptr::null_mut(),
        // SAFETY: by the call's contract, `info` is null or NUL-terminated, and `options` is null
        // or valid.
        unsafe { init(info, listen, 0, options) };
    HG_Init_opt2, HG_Core_init_opt2: "Creates a class with the options of a version. Returns null on failure.",
        (info: *const c_char, listen: u8, version: c_uint, options: *const HgInitInfo) -> Token,
        ptr::null_mut(),
        // SAFETY: by the call's contract, `info` is null or NUL-terminated, and `options` is null
        // or valid for `version`.
        unsafe { init(info, listen, version, options) };
    HG_Class_get_name, HG_Core_class_get_name: "Returns the name of the network, or null if the class is null.",
        (class: Token) -> *const c_char, ptr::null(),
        Ok(name_of(CLASSES.get(class)?.class.network().scheme()).0.as_ptr());
    HG_Class_get_protocol, HG_Core_class_get_protocol: "Returns the protocol of the network, or null if the class is null.",
        (class: Token) -> *const c_char, ptr::null(),
        Ok(name_of(CLASSES.get(class)?.class.network().scheme()).1.as_ptr());
    HG_Class_is_listening, HG_Core_class_is_listening: "Returns whether the class accepts calls from other processes.",
        (class: Token) -> bool, false, Ok(CLASSES.get(class)?.class.network().listens());
    HG_Class_get_input_eager_size, HG_Core_class_get_input_eager_size:
        "Returns the size of the longest input that is sent eagerly with its request, or 0 if the class is null.",
        (class: Token) -> u64, 0, Ok(CLASSES.get(class)?.input_room() as u64);
    HG_Class_get_output_eager_size, HG_Core_class_get_output_eager_size:
        "Returns the size of the longest output that is sent eagerly with its response, or 0 if the class is null.",
        (class: Token) -> u64, 0, Ok(CLASSES.get(class)?.output_room() as u64);
    HG_Class_get_data, HG_Core_class_get_data: "Returns the attached data, or null if none is attached.",
        (class: Token) -> *mut c_void, ptr::null_mut(), {
            let data = CLASSES.get(class)?.data.lock().data();
            Ok(data)
        };
    HG_Cleanup, HG_Core_cleanup: "Does nothing: there are no files to clean up.", () -> (), (), Ok(());
}

calls! {
    /// Finalises a class. Fails if the class still has contexts.
    HG_Finalize(class: Token) { finalize(class) }

    /// Finalises a class. Fails if the class still has contexts.
    HG_Core_finalize(class: Token) { finalize(class) }

    /// Attaches data to a class. `free` is called with the data when it is replaced or the class
    /// ends.
    HG_Class_set_data(class: Token, data: *mut c_void, free: FreeCallback) {
        set_data(class, data, free)
    }

    /// Attaches data to a class. `free` is called with the data when it is replaced or the class
    /// ends.
    HG_Core_class_set_data(class: Token, data: *mut c_void, free: FreeCallback) {
        set_data(class, data, free)
    }

    /// Sets the number of bytes before each encoded input that belong to the program.
    HG_Class_set_input_offset(class: Token, offset: u64) {
        let held = CLASSES.get(class)?;
        set_offset(held.input_room(), &held.in_offset, offset)
    }

    /// Sets the number of bytes before each encoded output that belong to the program.
    HG_Class_set_output_offset(class: Token, offset: u64) {
        let held = CLASSES.get(class)?;
        set_offset(held.output_room(), &held.out_offset, offset)
    }

    /// Sets the callback that runs for every new handle of the class.
    HG_Class_set_handle_create_callback(class: Token, callback: CreateCallback, arg: *mut c_void) {
        *CLASSES.get(class)?.on_create.lock() = OnCreate::new(callback, arg);
        Ok(())
    }

    /// Writes the counters of a class.
    HG_Class_get_counters(class: Token, counters_p: *mut Counters) {
        // SAFETY: by the call's contract, `counters_p` is null or valid for a write.
        unsafe { counters(class, counters_p) }
    }

    /// Writes the counters of a class.
    HG_Core_class_get_counters(class: Token, counters_p: *mut Counters) {
        // SAFETY: by the call's contract, `counters_p` is null or valid for a write.
        unsafe { counters(class, counters_p) }
    }

    /// Returns null: the 2.4 interface gives no access to the network's class.
    HG_Core_class_get_na(class: Token) -> Token, ptr::null_mut(), {
        CLASSES.get(class).map(|_| ptr::null_mut())
    }
}
