//! The calls of Mercury 2 whose names do not clash with the calls of 2013: classes and contexts,
//! functions, addresses. Handles, which are created once and forwarded many times, are in
//! [`hg2_handle`](super::hg2_handle). Bulk data is in [`hg2_bulk`](super::hg2_bulk). A call whose
//! name would clash has another name:
//!
//! | Mercury 2 | here |
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
use parking_lot::Mutex;
use portolan_rpc::failure::{Status, refuse};
use portolan_rpc::hg::Class;
use portolan_rpc::hg::context::Work;
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

/// Creates a class over a new network, or over the network class in `hg_init_info`. Returns null on
/// failure.
///
/// # Safety
/// The strings must be null or terminated. `hg_init_info` must be null or valid for reads.
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
            // SAFETY: the caller guarantees that `hg_init_info` is null or valid for reads.
            let options = unsafe { hg_init_info.as_ref() };
            let method = match options.filter(|o| !o.checksum.is_null()) {
                Some(options) => {
                    // SAFETY: the caller guarantees that the checksum's name is a terminated
                    // string.
                    params::method_named(&unsafe { text(options.checksum, "checksum") }?)?
                }
                None => params::checksum_method()?,
            };
            let class = match options.filter(|o| !o.na_class.is_null()) {
                Some(options) => Class::over(&CLASSES.get(options.na_class)?, method)?,
                None => {
                    // SAFETY: the caller guarantees that `na_info_string` is null or a terminated
                    // string.
                    let info = unsafe { text(na_info_string, "information string") }?;
                    Class::init_with(&info, na_listen != 0, method)?
                }
            };
            Ok(HG_CLASSES.insert(class))
        },
    )
}

/// Finalises a class of `HG_Init_opt`, and frees the data attached to its functions. Returns
/// `HG_BUSY` if the class still has contexts.
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

/// Creates a context. Returns null on failure.
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

/// Destroys a context. Its calls and transfers are cancelled, and their callbacks run before this
/// function returns. Then its handles are freed. Returns `HG_BUSY` in a callback of the context.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Context_destroy(context: Token) -> c_int {
    code("HG_Context_destroy", || {
        let (_, found) = HG_CONTEXTS.get(context)?;
        found.destroy()?;
        handles::drop_those_of(&found);
        HG_CONTEXTS.remove(context).map(drop)
    })
}

/// Returns the class of a context, or null if the context is invalid.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Context_get_class(context: Token) -> Token {
    value("HG_Context_get_class", |_| ptr::null_mut(), || Ok(HG_CONTEXTS.get(context)?.0.token()))
}

/// Makes progress until `HG_Trigger` has something to run or the timeout expires. Returns
/// `HG_TIMEOUT` if it expires.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Progress(context: Token, milliseconds: c_uint) -> c_int {
    code("HG_Progress", || {
        if !HG_CONTEXTS.get(context)?.1.progress(timeout(milliseconds))? {
            refuse!(TIMEOUT, "no event within {milliseconds} ms");
        }
        Ok(())
    })
}

/// Runs at most `max_count` calls and callbacks. First makes progress for up to `milliseconds`
/// until there is one to run. Returns `HG_TIMEOUT` if none has run.
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
        // SAFETY: the caller guarantees that `actual_count` is null or valid for writes.
        if let Some(actual) = unsafe { maybe(actual_count) } {
            *actual = ran as c_uint;
        }
        if ran == 0 && max_count > 0 {
            refuse!(TIMEOUT, "no callback is ready to be triggered");
        }
        Ok(())
    })
}

// -------------------------------------------------------------------- functions

/// Registers a function and returns its number, or 0 on failure.
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
            // SAFETY: the caller guarantees that `func_name` is null or a terminated string.
            unsafe { register(&class, func_name, in_proc_cb, out_proc_cb, rpc_cb) }
        },
    )
}

/// Reports whether a name is registered, and its number.
///
/// # Safety
/// `func_name` must be null or a terminated string. The other pointers must be null or valid for
/// writes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Registered_name(
    hg_class: Token,
    func_name: *const c_char,
    id: *mut u32,
    flag: *mut u8,
) -> c_int {
    code("HG_Registered_name", || {
        let class = HG_CLASSES.get(hg_class)?;
        // SAFETY: the caller guarantees that `func_name` is null or a terminated string, and that
        // the other pointers are null or valid for writes.
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

/// Deregisters a function and frees the data attached to it.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Deregister(hg_class: Token, id: u32) -> c_int {
    code("HG_Deregister", || {
        HG_CLASSES.get(hg_class)?.shared.functions.remove(id)?;
        let attached = DATA.lock().as_mut().and_then(|all| all.remove(&(hg_class as usize, id)));
        drop(attached);
        Ok(())
    })
}

/// Sets whether calls of a function are one-way. A one-way call ends when its request has been
/// sent.
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

/// Attaches data to a function. Data that was attached before is freed.
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

/// Returns the data attached to a function, or null if there is none.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Registered_data(hg_class: Token, id: u32) -> *mut c_void {
    let data = DATA.lock();
    let found = data.as_ref().and_then(|all| all.get(&(hg_class as usize, id)));
    found.map_or(0, |attached| attached.data) as *mut c_void
}

// -------------------------------------------------------------------- addresses

/// Looks up an address.
///
/// # Safety
/// `name` must be null or a terminated string. `addr` must be null or valid for writes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Addr_lookup2(
    hg_class: Token,
    name: *const c_char,
    addr: *mut Token,
) -> c_int {
    code("HG_Addr_lookup2", || {
        let class = HG_CLASSES.get(hg_class)?;
        // SAFETY: the caller guarantees that `name` is null or a terminated string, and that `addr`
        // is null or valid for writes.
        let (name, addr) = unsafe { (text(name, "name")?, place(addr, "address")?) };
        *addr = ADDRESSES.insert(class.lookup(&name)?);
        Ok(())
    })
}

/// Looks up an address and passes it to the callback, which runs in `HG_Trigger`.
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
        // SAFETY: the caller guarantees that `name` is null or a terminated string.
        let address = class.lookup(&unsafe { text(name, "name") }?)?;
        let handle = callback.map_or(ptr::null_mut(), |_| ADDRESSES.insert(address));
        let caller = Caller { callback, arg, kind: CB_LOOKUP, info: HgInfoOf { handle } };
        let told = Box::new(move || caller.tell(Status::SUCCESS));
        context.shared.push(Work::Run(told));
        Ok(())
    })
}

/// Frees an address. Null is ignored.
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

/// Returns the address of the calling process.
///
/// # Safety
/// `addr` must be null or valid for writes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Addr_self(hg_class: Token, addr: *mut Token) -> c_int {
    code("HG_Addr_self", || {
        let class = HG_CLASSES.get(hg_class)?;
        // SAFETY: the caller guarantees that `addr` is null or valid for writes.
        *unsafe { place(addr, "address") }? = ADDRESSES.insert(class.own_address());
        Ok(())
    })
}

/// Creates a second handle of an address.
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
        // SAFETY: the caller guarantees that `new_addr` is null or valid for writes.
        *unsafe { place(new_addr, "address") }? = ADDRESSES.insert(address);
        Ok(())
    })
}

/// Returns whether two addresses belong to the same process.
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

/// Converts an address to text. `*buf_size` receives the length in bytes with the terminating zero.
/// If `buf` is null, only the length is returned.
///
/// # Safety
/// `buf` must be null or valid for writes of `*buf_size` bytes. `buf_size` must be null or valid
/// for reads and writes.
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
        // SAFETY: the caller guarantees that `buf_size` is null or valid, and that `buf` is null or
        // has `*buf_size` bytes.
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
