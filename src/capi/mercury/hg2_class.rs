//! The calls of today's Mercury, where their names do not clash with those of 2013:
//! class and context objects, functions, addresses. Handles that are made once and
//! forwarded many times are in [`hg2_handle`](super::hg2_handle), bulk data is in
//! [`hg2_bulk`](super::hg2_bulk). Where a name would clash the call has another:
//!
//! | today | here |
//! |---|---|
//! | `HG_Init(info, listen)` | `HG_Init_opt(info, listen, NULL)` |
//! | `HG_Finalize(class)` | `HG_Class_finalize` |
//! | `HG_Register(class, id, ...)`, `HG_Registered` | `HG_Register_name`, `HG_Registered_name` |
//! | `HG_Forward(handle, ...)` | `HG_Forward_handle` |
//! | `HG_Bulk_transfer(context, ...)` | `HG_Bulk_transfer_cb` |

use super::callbacks::{Attached, CB_LOOKUP, Caller, FreeCallback, HgCallback, HgInfoOf};
use super::face::{code, maybe, place, put_text, text, timeout, value};
use super::functions::{RpcCallback, register, unknown};
use super::handles;
use super::params::{self, ProcCallback};
use super::table::{ADDRESSES, CLASSES, HG_CLASSES, HG_CONTEXTS, Number, Token};
use crate::rpc::failure::{Status, refuse};
use crate::rpc::hg::Class;
use crate::rpc::hg::context::Work;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::os::raw::{c_char, c_int, c_uint, c_void};
use std::ptr;

static DATA: Mutex<Option<HashMap<(usize, u32), Attached>>> = Mutex::new(None);

/// `struct hg_init_info`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct HgInitInfo {
    na_class: Token,
    checksum: *const c_char,
}

// -------------------------------------------------------------- classes, contexts

/// Makes a class over a network of its own, or over that of `hg_init_info`; null where
/// that fails.
///
/// # Safety
/// The strings must be null or terminated, `hg_init_info` null or valid.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Init_opt(
    na_info_string: *const c_char,
    na_listen: u8,
    hg_init_info: *const HgInitInfo,
) -> Token {
    value(
        "HG_Init_opt",
        |_| ptr::null_mut(),
        || {
            // SAFETY: passed on from the caller.
            let options = unsafe { hg_init_info.as_ref() };
            let method = match options.filter(|o| !o.checksum.is_null()) {
                Some(options) => {
                    // SAFETY: as above.
                    params::method_named(&unsafe { text(options.checksum, "checksum") }?)?
                }
                None => params::checksum_method()?,
            };
            let class = match options.filter(|o| !o.na_class.is_null()) {
                Some(options) => Class::over(&CLASSES.get(options.na_class)?, method)?,
                None => {
                    // SAFETY: as above.
                    let info = unsafe { text(na_info_string, "information string") }?;
                    Class::init_with(&info, na_listen != 0, method)?
                }
            };
            Ok(HG_CLASSES.insert(class))
        },
    )
}

/// Ends a class of `HG_Init_opt`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Class_finalize(hg_class: Token) -> c_int {
    code("HG_Class_finalize", || {
        let class = HG_CLASSES.get(hg_class)?;
        if HG_CONTEXTS.find(|(of, _)| *of == Number::of(hg_class)).is_some() {
            refuse!(BUSY, "the class has contexts; destroy them first");
        }
        class.finalize()?;
        let all = std::mem::take(&mut *DATA.lock()).unwrap_or_default();
        let (gone, kept) =
            all.into_iter().partition::<HashMap<_, _>, _>(|((of, _), _)| *of == hg_class as usize);
        DATA.lock().get_or_insert_default().extend(kept);
        drop(gone);
        HG_CLASSES.remove(hg_class).map(drop)
    })
}

/// Makes a context; null where that fails.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Context_create(hg_class: Token) -> Token {
    value(
        "HG_Context_create",
        |_| ptr::null_mut(),
        || {
            let context = HG_CLASSES.get(hg_class)?.context()?;
            Ok(HG_CONTEXTS.insert((Number::of(hg_class), context)))
        },
    )
}

/// Destroys a context: its calls and transfers are cancelled, and their callbacks run in
/// here; then its handles are freed. `HG_BUSY` in a callback of the context.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Context_destroy(context: Token) -> c_int {
    code("HG_Context_destroy", || {
        let (_, found) = HG_CONTEXTS.get(context)?;
        found.destroy()?;
        handles::drop_those_of(&found);
        HG_CONTEXTS.remove(context).map(drop)
    })
}

/// The class of a context.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Context_get_class(context: Token) -> Token {
    value("HG_Context_get_class", |_| ptr::null_mut(), || Ok(HG_CONTEXTS.get(context)?.0.token()))
}

/// Makes progress until there is something for trigger, or the time is over.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Progress(context: Token, milliseconds: c_uint) -> c_int {
    code("HG_Progress", || {
        if !HG_CONTEXTS.get(context)?.1.progress(timeout(milliseconds))? {
            refuse!(TIMEOUT, "nothing has come in {milliseconds} ms");
        }
        Ok(())
    })
}

/// Runs at most `max_count` calls and callbacks.
///
/// # Safety
/// `actual_count` must be null or valid for writes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Trigger(
    context: Token,
    milliseconds: c_uint,
    max_count: c_uint,
    actual_count: *mut c_uint,
) -> c_int {
    code("HG_Trigger", || {
        let (_, context) = HG_CONTEXTS.get(context)?;
        if milliseconds > 0 && max_count > 0 {
            context.progress(timeout(milliseconds))?;
        }
        let ran = context.trigger(max_count as usize);
        // SAFETY: passed on from the caller.
        if let Some(actual) = unsafe { maybe(actual_count) } {
            *actual = ran as c_uint;
        }
        if ran == 0 && max_count > 0 {
            refuse!(TIMEOUT, "nothing waits for trigger");
        }
        Ok(())
    })
}

// -------------------------------------------------------------------- functions

/// Registers a function; 0 where that fails.
///
/// # Safety
/// `func_name` must be null or a terminated string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Register_name(
    hg_class: Token,
    func_name: *const c_char,
    in_proc_cb: ProcCallback,
    out_proc_cb: ProcCallback,
    rpc_cb: RpcCallback,
) -> u32 {
    value(
        "HG_Register_name",
        |_| 0,
        || {
            let class = HG_CLASSES.get(hg_class)?;
            // SAFETY: passed on from the caller.
            unsafe { register(&class, func_name, in_proc_cb, out_proc_cb, rpc_cb) }
        },
    )
}

/// Whether a name is registered, and its number.
///
/// # Safety
/// `func_name` must be null or a terminated string, the places null or valid.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Registered_name(
    hg_class: Token,
    func_name: *const c_char,
    id: *mut u32,
    flag: *mut u8,
) -> c_int {
    code("HG_Registered_name", || {
        let class = HG_CLASSES.get(hg_class)?;
        // SAFETY: passed on from the caller.
        unsafe {
            let found = class.shared.functions.named(&text(func_name, "function's name")?);
            *place(flag, "flag")? = u8::from(found.is_some());
            if let (Some(id), Some(function)) = (maybe(id), found) {
                *id = function.id;
            }
        }
        Ok(())
    })
}

/// Forgets a function.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Deregister(hg_class: Token, id: u32) -> c_int {
    code("HG_Deregister", || {
        HG_CLASSES.get(hg_class)?.shared.functions.remove(id)?;
        let attached = DATA.lock().as_mut().and_then(|all| all.remove(&(hg_class as usize, id)));
        drop(attached);
        Ok(())
    })
}

/// Calls of a function have no answer.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Registered_disable_response(
    hg_class: Token,
    id: u32,
    disable: u8,
) -> c_int {
    code("HG_Registered_disable_response", || {
        let class = HG_CLASSES.get(hg_class)?;
        class.shared.functions.get(id).ok_or_else(|| unknown(id))?.set_quiet(disable != 0);
        Ok(())
    })
}

/// Attaches something to a function.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Register_data(
    hg_class: Token,
    id: u32,
    data: *mut c_void,
    free_callback: FreeCallback,
) -> c_int {
    code("HG_Register_data", || {
        let class = HG_CLASSES.get(hg_class)?;
        class.shared.functions.get(id).ok_or_else(|| unknown(id))?;
        let key = (hg_class as usize, id);
        let attached = Attached { data: data as usize, free: free_callback };
        let before = DATA.lock().get_or_insert_default().insert(key, attached);
        drop(before);
        Ok(())
    })
}

/// What was attached; null for nothing.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Registered_data(hg_class: Token, id: u32) -> *mut c_void {
    let data = DATA.lock();
    let found = data.as_ref().and_then(|all| all.get(&(hg_class as usize, id)));
    found.map_or(0, |attached| attached.data) as *mut c_void
}

// -------------------------------------------------------------------- addresses

/// Looks an address up.
///
/// # Safety
/// `name` must be null or a terminated string, `addr` null or valid.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Addr_lookup2(
    hg_class: Token,
    name: *const c_char,
    addr: *mut Token,
) -> c_int {
    code("HG_Addr_lookup2", || {
        let class = HG_CLASSES.get(hg_class)?;
        // SAFETY: passed on from the caller.
        let (name, addr) = unsafe { (text(name, "name")?, place(addr, "address")?) };
        *addr = ADDRESSES.insert(class.lookup(&name)?);
        Ok(())
    })
}

/// Looks an address up; the callback gets it, in trigger.
///
/// # Safety
/// `name` must be null or a terminated string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Addr_lookup1(
    context: Token,
    callback: HgCallback,
    arg: *mut c_void,
    name: *const c_char,
    _op_id: *mut Token,
) -> c_int {
    code("HG_Addr_lookup1", || {
        let (class, context) = HG_CONTEXTS.get(context)?;
        let class = HG_CLASSES.get(class.token())?;
        // SAFETY: passed on from the caller.
        let address = class.lookup(&unsafe { text(name, "name") }?)?;
        let handle = callback.map_or(ptr::null_mut(), |_| ADDRESSES.insert(address));
        let caller = Caller { callback, arg, kind: CB_LOOKUP, info: HgInfoOf { handle } };
        let told = Box::new(move || caller.tell(Status::SUCCESS));
        context.shared.push(Work::Run(told));
        Ok(())
    })
}

/// Frees an address; null is nothing to free.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Addr_free(hg_class: Token, addr: Token) -> c_int {
    code("HG_Addr_free", || {
        HG_CLASSES.get(hg_class)?;
        if addr.is_null() {
            return Ok(());
        }
        ADDRESSES.remove(addr).map(drop)
    })
}

/// The calling process's address.
///
/// # Safety
/// `addr` must be null or valid for writes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Addr_self(hg_class: Token, addr: *mut Token) -> c_int {
    code("HG_Addr_self", || {
        let class = HG_CLASSES.get(hg_class)?;
        // SAFETY: passed on from the caller.
        *unsafe { place(addr, "address") }? = ADDRESSES.insert(class.own_address());
        Ok(())
    })
}

/// A second handle of an address.
///
/// # Safety
/// `new_addr` must be null or valid for writes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Addr_dup(
    hg_class: Token,
    addr: Token,
    new_addr: *mut Token,
) -> c_int {
    code("HG_Addr_dup", || {
        HG_CLASSES.get(hg_class)?;
        let address = ADDRESSES.get(addr)?;
        // SAFETY: passed on from the caller.
        *unsafe { place(new_addr, "address") }? = ADDRESSES.insert(address);
        Ok(())
    })
}

/// Whether two addresses are the same process.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Addr_cmp(hg_class: Token, addr1: Token, addr2: Token) -> u8 {
    value(
        "HG_Addr_cmp",
        |_| 0,
        || {
            HG_CLASSES.get(hg_class)?;
            Ok(u8::from(ADDRESSES.get(addr1)? == ADDRESSES.get(addr2)?))
        },
    )
}

/// An address as text; without a buffer, its length with the terminating zero.
///
/// # Safety
/// `buf` must be null or valid for writes of `*buf_size` bytes, `buf_size` be valid.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Addr_to_string(
    hg_class: Token,
    buf: *mut c_char,
    buf_size: *mut u64,
    addr: Token,
) -> c_int {
    code("HG_Addr_to_string", || {
        let class = HG_CLASSES.get(hg_class)?;
        let address = class.network().text_of(&ADDRESSES.get(addr)?);
        // SAFETY: passed on from the caller.
        unsafe {
            let size = place(buf_size, "buffer's size")?;
            if !buf.is_null() {
                put_text(buf, *size as usize, &address)?;
            }
            *size = address.len() as u64 + 1;
        }
        Ok(())
    })
}
