//! Functions by name or by 64-bit number.
//!
//! The number of a name consists of the name's two hashes, so it is the same in every process and
//! interface that registers the name.

use super::codes::{calls, to_status};
use super::handle;
use super::objects::CLASSES;
use super::types::{Attached, FreeCallback, ProcCallback, RpcCallback};
use crate::mercury::face::{maybe, place, text};
use crate::mercury::table::{Number, Token};
use portolan_rpc::failure::{Result, Status};
use portolan_rpc::hg::target::Target;
use portolan_rpc::hg::target::{Function, Rpc};
use std::any::Any;
use std::os::raw::{c_char, c_void};
use std::ptr;
use std::sync::Arc;

/// The procs that this interface attaches to a function.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Procs {
    pub input: ProcCallback,
    pub output: ProcCallback,
}

/// Returns the procs of a function. Procs registered through the 2013 interface are ignored,
/// because they return other codes.
pub(super) fn procs(function: &Function) -> Procs {
    let attached = function.extra.as_ref().and_then(|extra| extra.downcast_ref::<Procs>());
    attached.copied().unwrap_or_default()
}

/// Wraps a program's callback for incoming calls. As in 2.4, the code that it returns is not a
/// response: the origin receives it as the reason of the failure if the handle is freed without a
/// response.
fn serving(class: Token, callback: RpcCallback) -> Option<Rpc> {
    let (callback, class) = (callback?, Number::of(class));
    Some(Arc::new(move |target: Arc<Target>| {
        let handle = match handle::of_target(class.token(), target.clone()) {
            Ok(handle) => handle,
            Err(failure) => return failure.status,
        };
        // SAFETY: `callback` is the function that the program registered for calls, and `handle` is
        // live.
        let status = to_status(unsafe { callback(handle) });
        if status != Status::SUCCESS {
            target.set_failure(status);
        }
        Status::SUCCESS
    }))
}

fn extra(input: ProcCallback, output: ProcCallback) -> Option<Arc<dyn Any + Send + Sync>> {
    Some(Arc::new(Procs { input, output }))
}

fn register(
    class: Token,
    id: u64,
    procs: (ProcCallback, ProcCallback),
    callback: RpcCallback,
) -> Result<()> {
    let held = CLASSES.get(class)?;
    let functions = &held.class.shared.functions;
    let (rpc, extra) = (serving(class, callback), extra(procs.0, procs.1));
    match functions.numbered(id).filter(|known| known.name != format!("{id:#x}")) {
        // The number belongs to a registered name, so the function with that name is replaced.
        Some(named) => functions.add(&named.name, rpc, extra)?,
        None => functions.add_chosen(id, rpc, extra)?,
    };
    Ok(())
}

fn deregister(class: Token, id: u64) -> Result<()> {
    let held = CLASSES.get(class)?;
    held.class.shared.functions.remove_numbered(id)?;
    let attached = held.rpc_data.lock().remove(&id);
    drop(attached);
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

fn register_data(class: Token, id: u64, data: *mut c_void, free: FreeCallback) -> Result<()> {
    let held = CLASSES.get(class)?;
    held.function(id)?;
    let before = held.rpc_data.lock().insert(id, Attached::new(data, free));
    drop(before);
    Ok(())
}

fn disable_response(class: Token, id: u64, disable: u8) -> Result<()> {
    CLASSES.get(class)?.function(id)?.set_quiet(disable != 0);
    Ok(())
}

/// # Safety
/// `disabled` must be null or valid for a write.
unsafe fn disabled_response(class: Token, id: u64, disabled: *mut u8) -> Result<()> {
    let function = CLASSES.get(class)?.function(id)?;
    // SAFETY: by this function's contract, `disabled` is null or valid for a write.
    *unsafe { place(disabled, "flag") }? = u8::from(function.is_quiet());
    Ok(())
}

calls! {
    /// Registers a function by name. Returns its number, or 0 on failure.
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
        let functions = &held.class.shared.functions;
        Ok(functions.add(&name, serving(class, callback), extra(input, output))?.number())
    }

    /// Writes whether a name is registered and, if it is, its number.
    HG_Registered_name(class: Token, name: *const c_char, id: *mut u64, flag: *mut u8) {
        let held = CLASSES.get(class)?;
        // SAFETY: by the call's contract, `name` is null or NUL-terminated, and `id` and `flag` are
        // null or valid for a write.
        unsafe {
            let found = held.class.shared.functions.named(&text(name, "function's name")?);
            *place(flag, "flag")? = u8::from(found.is_some());
            if let (Some(id), Some(function)) = (maybe(id), found) {
                *id = function.number();
            }
        }
        Ok(())
    }

    /// Registers a function by number.
    HG_Register(
        class: Token,
        id: u64,
        input: ProcCallback,
        output: ProcCallback,
        callback: RpcCallback,
    ) {
        register(class, id, (input, output), callback)
    }

    /// Registers a function by number.
    HG_Core_register(class: Token, id: u64, callback: RpcCallback) {
        register(class, id, (None, None), callback)
    }

    /// Removes a function and frees the data attached to it.
    HG_Deregister(class: Token, id: u64) { deregister(class, id) }

    /// Removes a function and frees the data attached to it.
    HG_Core_deregister(class: Token, id: u64) { deregister(class, id) }

    /// Writes whether a number is registered.
    HG_Registered(class: Token, id: u64, flag: *mut u8) {
        // SAFETY: by the call's contract, `flag` is null or valid for a write.
        unsafe { registered(class, id, flag) }.map(drop)
    }

    /// Writes whether a number is registered.
    HG_Core_registered(class: Token, id: u64, flag: *mut u8) {
        // SAFETY: by the call's contract, `flag` is null or valid for a write.
        unsafe { registered(class, id, flag) }.map(drop)
    }

    /// Writes whether a number is registered and, if it is, its procs.
    HG_Registered_proc_cb(
        class: Token,
        id: u64,
        flag: *mut u8,
        input: *mut ProcCallback,
        output: *mut ProcCallback,
    ) {
        // SAFETY: by the call's contract, `flag`, `input` and `output` are null or valid for a
        // write.
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

    /// Attaches data to a function. `free` is called with the data when it is replaced, the
    /// function is removed or the class ends.
    HG_Register_data(class: Token, id: u64, data: *mut c_void, free: FreeCallback) {
        register_data(class, id, data, free)
    }

    /// Attaches data to a function. `free` is called with the data when it is replaced, the
    /// function is removed or the class ends.
    HG_Core_register_data(class: Token, id: u64, data: *mut c_void, free: FreeCallback) {
        register_data(class, id, data, free)
    }

    /// Returns the data attached to a function, or null.
    HG_Registered_data(class: Token, id: u64) -> *mut c_void, ptr::null_mut(), {
        Ok(CLASSES.get(class)?.data_of(id))
    }

    /// Returns the data attached to a function, or null.
    HG_Core_registered_data(class: Token, id: u64) -> *mut c_void, ptr::null_mut(), {
        Ok(CLASSES.get(class)?.data_of(id))
    }

    /// Disables or enables responses to calls of a function.
    HG_Registered_disable_response(class: Token, id: u64, disable: u8) {
        disable_response(class, id, disable)
    }

    /// Disables or enables responses to calls of a function.
    HG_Core_registered_disable_response(class: Token, id: u64, disable: u8) {
        disable_response(class, id, disable)
    }

    /// Writes whether responses to calls of a function are disabled.
    HG_Registered_disabled_response(class: Token, id: u64, disabled: *mut u8) {
        // SAFETY: by the call's contract, `disabled` is null or valid for a write.
        unsafe { disabled_response(class, id, disabled) }
    }

    /// Writes whether responses to calls of a function are disabled.
    HG_Core_registered_disabled_response(class: Token, id: u64, disabled: *mut u8) {
        // SAFETY: by the call's contract, `disabled` is null or valid for a write.
        unsafe { disabled_response(class, id, disabled) }
    }
}
