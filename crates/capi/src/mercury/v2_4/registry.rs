//! Functions by name or by 64-bit number. The number of a name consists of its two hashes, so all
//! processes and interfaces agree on it.

use super::codes::to_status;
use super::more_data;
use crate::mercury::entry::{maybe, place, text};
use crate::mercury::interface::calls;
use crate::mercury::objects::attached::{Attached, FreeCallback};
use crate::mercury::objects::class::{CLASSES, find_named, put_number};
use crate::mercury::objects::context::of_shared;
use crate::mercury::objects::handle::{self, HANDLES};
use crate::mercury::objects::references::References;
use crate::mercury::params::{ProcCallback, Procs, RpcCallback, procs};
use crate::mercury::table::{Number, Token};
use portolan_rpc::failure::{Result, Status};
use portolan_rpc::hg::target::{Function, Rpc, Target};
use scopeguard::defer;
use std::os::raw::{c_char, c_void};
use std::ptr;
use std::sync::Arc;

/// Wraps a program's callback. As in 2.4, its code is not a response, but the reason of the failure
/// if the handle is freed without one.
fn serving(class: Token, callback: RpcCallback) -> Option<Rpc> {
    let (callback, class) = (callback?, Number::of(class));
    Some(Arc::new(move |target: Arc<Target>| {
        let has_more = target.has_more_input();
        let references = References::of_target(target.is_quiet(), target.is_own());
        let made = of_shared(target.context())
            .and_then(|owner| handle::of_target(class.token(), owner, target, references));
        let handle = match made {
            Ok(handle) => handle,
            Err(failure) => return failure.status(),
        };
        let run = move |handle: Token| {
            defer! { handle::callback_returned(handle) }
            // SAFETY: the program registered `callback` for calls, and `handle` is live.
            let status = to_status(unsafe { callback(handle) });
            if status != Status::SUCCESS
                && let Ok(held) = HANDLES.get(handle)
                && let Ok(target) = held.target()
            {
                target.set_failure(status);
            }
        };
        if !has_more {
            run(handle);
        } else if let Err(failure) = more_data::acquire_input(handle, run) {
            return failure.status();
        }
        Status::SUCCESS
    }))
}

fn register(class: Token, id: u64, procs: Procs, callback: RpcCallback) -> Result<()> {
    let held = CLASSES.get(class)?;
    let functions = &held.class.shared.functions;
    let (rpc, procs) = (serving(class, callback), Some(Arc::new(procs) as _));
    match functions.numbered(id).filter(|known| known.name != format!("{id:#x}")) {
        // The number belongs to a registered name, so the function with that name is replaced.
        Some(named) => functions.add(&named.name, rpc, procs)?,
        None => functions.add_chosen(id, rpc, procs)?,
    };
    Ok(())
}

/// # Safety
/// `flag` must be null or valid for a write.
unsafe fn registered(class: Token, id: u64, flag: *mut u8) -> Result<Option<Arc<Function>>> {
    let found = CLASSES.get(class)?.class.shared.functions.numbered(id);
    // SAFETY: by this function's contract, `flag` is null or valid for a write.
    *unsafe { place(flag, "flag") }? = u8::from(found.is_some());
    Ok(found)
}

calls! { V2_4:
    HG_Register_name(
        class: Token,
        name: *const c_char,
        input: ProcCallback,
        output: ProcCallback,
        callback: RpcCallback,
    ) -> u64, 0, {
        let held = CLASSES.get(class)?;
        // SAFETY: by the call's contract, `name` is null or NUL-terminated.
        let name = unsafe { text(name, "function's name") }?;
        let procs = Arc::new(Procs { input, output });
        let functions = &held.class.shared.functions;
        Ok(functions.add(&name, serving(class, callback), Some(procs))?.number())
    }

    HG_Registered_name(class: Token, name: *const c_char, id: *mut u64, flag: *mut u8) {
        // SAFETY: by contract, `name` is null or terminated, and `id` and `flag` are null or valid.
        unsafe {
            let held = CLASSES.get(class)?;
            let found = find_named(&held.class, &text(name, "function's name")?, flag)?;
            put_number(id, found, Function::number);
        }
        Ok(())
    }

    HG_Register(
        class: Token,
        id: u64,
        input: ProcCallback,
        output: ProcCallback,
        callback: RpcCallback,
    ) {
        register(class, id, Procs { input, output }, callback)
    }

    HG_Core_register(class: Token, id: u64, callback: RpcCallback) {
        register(class, id, Procs::default(), callback)
    }

    HG_Deregister | HG_Core_deregister(class: Token, id: u64) {
        CLASSES.get(class)?.deregister(id)
    }

    HG_Registered | HG_Core_registered(class: Token, id: u64, flag: *mut u8) {
        // SAFETY: by the call's contract, `flag` is null or valid for a write.
        unsafe { registered(class, id, flag) }.map(drop)
    }

    HG_Registered_proc_cb(
        class: Token,
        id: u64,
        flag: *mut u8,
        input: *mut ProcCallback,
        output: *mut ProcCallback,
    ) {
        // SAFETY: by contract, `flag`, `input` and `output` are null or valid for a write.
        unsafe {
            if let Some(function) = registered(class, id, flag)? {
                let procs = procs(&function);
                if let Some(input) = maybe(input) {
                    *input = procs.input;
                }
                if let Some(output) = maybe(output) {
                    *output = procs.output;
                }
            }
        }
        Ok(())
    }

    /// Data attached before is not freed.
    HG_Register_data | HG_Core_register_data(
        class: Token,
        id: u64,
        data: *mut c_void,
        free: FreeCallback,
    ) {
        let held = CLASSES.get(class)?;
        held.set_function_data(&*held.function(id)?, Attached::new(data, free)).forget();
        Ok(())
    }

    HG_Registered_data | HG_Core_registered_data(
        class: Token,
        id: u64,
    ) -> *mut c_void, ptr::null_mut(), { Ok(CLASSES.get(class)?.function_data(id)) }

    HG_Registered_disable_response | HG_Core_registered_disable_response(
        class: Token,
        id: u64,
        disable: u8,
    ) {
        CLASSES.get(class)?.function(id)?.set_quiet(disable != 0);
        Ok(())
    }

    HG_Registered_disabled_response | HG_Core_registered_disabled_response(
        class: Token,
        id: u64,
        disabled: *mut u8,
    ) {
        let function = CLASSES.get(class)?.function(id)?;
        // SAFETY: by the call's contract, `disabled` is null or valid for a write.
        *unsafe { place(disabled, "flag") }? = u8::from(function.is_quiet());
        Ok(())
    }
}
