//! The calls of Mercury 2 for classes, contexts, functions and addresses whose names do not clash
//! with the calls of 2013. [`hg2_handle`](super::hg2_handle) has handles,
//! [`hg2_bulk`](super::hg2_bulk) bulk data. A call whose name would clash has another name:
//!
//! | Mercury 2 | here |
//! |---|---|
//! | `HG_Init(info, listen)` | `HG_Init_opt(info, listen, NULL)` |
//! | `HG_Finalize(class)` | `HG_Class_finalize` |
//! | `HG_Register(class, id, ...)`, `HG_Registered` | `HG_Register_name`, `HG_Registered_name` |
//! | `HG_Forward(handle, ...)` | `HG_Forward_handle` |
//! | `HG_Bulk_transfer(context, ...)` | `HG_Bulk_transfer_cb` |

use super::callbacks::{CB_LOOKUP, Caller, HgCallback, HgInfoOf};
use super::entry::{place, put_text, text};
use super::functions::{RpcCallback, register};
use super::handles;
use super::interface::{Interface::V1, calls};
use super::objects::address::{self, keep_v1};
use super::objects::attached::{Attached, FreeCallback};
use super::objects::class::{self, CLASSES, find_named, put_number};
use super::objects::context::{self, CONTEXTS};
use super::params::{self, ProcCallback};
use super::table::Token;
use portolan_rpc::failure::Status;
use portolan_rpc::hg::context::Work;
use portolan_rpc::na::Options;
use std::os::raw::{c_char, c_uint, c_void};
use std::ptr;

#[derive(Debug)]
#[repr(C)]
pub(crate) struct HgInitInfo {
    na_class: Token,
    checksum: *const c_char,
}

// -------------------------------------------------------------- classes, contexts

calls! { V1:
    HG_Init_opt(
        na_info_string: *const c_char,
        na_listen: u8,
        hg_init_info: *const HgInitInfo,
    ) -> Token, ptr::null_mut(), {
        // SAFETY: by the call's contract, `hg_init_info` is null or valid for reads.
        let options = unsafe { hg_init_info.as_ref() };
        let method = match options.filter(|o| !o.checksum.is_null()) {
            Some(options) => {
                // SAFETY: by the call's contract, the checksum's name is NUL-terminated.
                params::method_named(&unsafe { text(options.checksum, "checksum") }?)?
            }
            None => params::checksum_method()?,
        };
        let network = options.map_or(ptr::null_mut(), |options| options.na_class);
        // SAFETY: by the call's contract, `na_info_string` is null or NUL-terminated.
        unsafe { class::create(V1, (na_info_string, na_listen != 0, Options::default()), network, method, (false, false)) }
    }

    HG_Class_finalize(hg_class: Token) { class::finalize(V1, hg_class) }

    HG_Context_create(hg_class: Token) -> Token, ptr::null_mut(), {
        context::create(V1, hg_class, 0, |_| true)
    }

    /// Returns `HG_BUSY` in a callback of the context.
    HG_Context_destroy(context: Token) {
        let found = CONTEXTS[V1].get(context)?;
        found.context.destroy()?;
        handles::drop_those_of(&found.context);
        CONTEXTS[V1].remove(context).map(drop)
    }

    HG_Context_get_class(context: Token) -> Token, ptr::null_mut(), {
        Ok(CONTEXTS[V1].get(context)?.class_token.token())
    }

    HG_Progress(context: Token, milliseconds: c_uint) {
        context::progress(V1, context, milliseconds)
    }

    /// Makes progress first if there is nothing to run and the timeout is not 0. Returns
    /// `HG_TIMEOUT` if nothing has run.
    HG_Trigger(
        context: Token,
        milliseconds: c_uint,
        max_count: c_uint,
        actual_count: *mut c_uint,
    ) {
        // SAFETY: by the call's contract, `actual_count` is null or valid for a write.
        unsafe { context::trigger(V1, context, Some(milliseconds), max_count, actual_count) }
    }
}

// -------------------------------------------------------------------- functions

calls! { V1:
    HG_Register_name(
        hg_class: Token,
        func_name: *const c_char,
        in_proc_cb: ProcCallback,
        out_proc_cb: ProcCallback,
        rpc_cb: RpcCallback,
    ) -> u32, 0, {
        let class = &CLASSES[V1].get(hg_class)?.class;
        // SAFETY: by the call's contract, `func_name` is null or NUL-terminated.
        unsafe { register(class, func_name, in_proc_cb, out_proc_cb, rpc_cb) }
    }

    HG_Registered_name(hg_class: Token, func_name: *const c_char, id: *mut u32, flag: *mut u8) {
        // SAFETY: by contract, `func_name` is null or NUL-terminated, the others null or valid.
        unsafe {
            let class = CLASSES[V1].get(hg_class)?;
            let found = find_named(&class.class, &text(func_name, "function's name")?, flag)?;
            put_number(id, found, |function| function.id);
        }
        Ok(())
    }

    HG_Deregister(hg_class: Token, id: u32) {
        let class = CLASSES[V1].get(hg_class)?;
        class.deregister(class.short_numbered(id)?.number())
    }

    HG_Registered_disable_response(hg_class: Token, id: u32, disable: u8) {
        CLASSES[V1].get(hg_class)?.short_numbered(id)?.set_quiet(disable != 0);
        Ok(())
    }

    /// Data that was attached before is freed.
    HG_Register_data(hg_class: Token, id: u32, data: *mut c_void, free_callback: FreeCallback) {
        let class = CLASSES[V1].get(hg_class)?;
        let function = class.short_numbered(id)?;
        drop(class.set_function_data(&function, Attached::new(data, free_callback)));
        Ok(())
    }

    HG_Registered_data(hg_class: Token, id: u32) -> *mut c_void, ptr::null_mut(), {
        // The data of an unknown class or function is null. This is not an error.
        let data = CLASSES[V1].get(hg_class).and_then(|class| {
            Ok(class.function_data(class.short_numbered(id)?.number()))
        });
        Ok(data.unwrap_or(ptr::null_mut()))
    }
}

// -------------------------------------------------------------------- addresses

calls! { V1:
    HG_Addr_lookup2(hg_class: Token, name: *const c_char, addr: *mut Token) {
        // SAFETY: by contract, `name` is null or NUL-terminated, and `addr` is null or valid.
        unsafe { address::lookup(V1, hg_class, name, addr) }
    }

    HG_Addr_lookup1(
        context: Token,
        callback: HgCallback,
        arg: *mut c_void,
        name: *const c_char,
        _op_id: *mut Token,
    ) {
        let held = CONTEXTS[V1].get(context)?;
        // SAFETY: by the call's contract, `name` is null or NUL-terminated.
        let address = held.class.class.lookup(&unsafe { text(name, "name") }?)?;
        let handle = callback.map_or(ptr::null_mut(), |_| keep_v1(address));
        let caller = Caller { callback, arg, kind: CB_LOOKUP, info: HgInfoOf { handle } };
        let notified = Box::new(move || caller.notify(Status::SUCCESS));
        held.context.shared.push(Work::Run(notified));
        Ok(())
    }

    HG_Addr_free(hg_class: Token, addr: Token) {
        CLASSES[V1].get(hg_class)?;
        address::release(V1, addr)
    }

    HG_Addr_self(hg_class: Token, addr: *mut Token) {
        // SAFETY: by the call's contract, `addr` is null or valid for a write.
        unsafe { address::own(V1, hg_class, addr) }
    }

    HG_Addr_dup(hg_class: Token, addr: Token, new_addr: *mut Token) {
        CLASSES[V1].get(hg_class)?;
        let address = address::get(V1, addr)?;
        // SAFETY: by the call's contract, `new_addr` is null or valid for a write.
        *unsafe { place(new_addr, "address") }? = keep_v1(address);
        Ok(())
    }

    HG_Addr_cmp(hg_class: Token, addr1: Token, addr2: Token) -> u8, 0, {
        CLASSES[V1].get(hg_class)?;
        Ok(u8::from(address::get(V1, addr1)? == address::get(V1, addr2)?))
    }

    HG_Addr_to_string(hg_class: Token, buf: *mut c_char, buf_size: *mut u64, addr: Token) {
        let held = CLASSES[V1].get(hg_class)?;
        let address = held.class.network().text_of(&address::get(V1, addr)?);
        // SAFETY: by contract, `buf_size` is null or valid, `buf` null or has `*buf_size` bytes.
        unsafe {
            let size = place(buf_size, "buffer's size")?;
            if !buf.is_null() {
                put_text(buf, *size as usize, &address)?;
            }
            *size = address.len() as u64 + 1;
        }
        Ok(())
    }
}
