//! Functions, by name or by a number of 64 bits.
//!
//! The number of a name consists of its two hashes, so it is the same wherever the name
//! is registered, by whichever interface.

use super::codes::{calls, to_status};
use super::handle;
use super::objects::CLASSES;
use super::types::{Attached, FreeCallback, ProcCallback, RpcCallback};
use crate::capi::mercury::face::{maybe, place, text};
use crate::capi::mercury::table::{Number, Token};
use crate::rpc::failure::{Result, Status};
use crate::rpc::hg::target::Target;
use crate::rpc::hg::target::{Function, Rpc};
use std::any::Any;
use std::os::raw::{c_char, c_void};
use std::ptr;
use std::sync::Arc;

/// What this face attaches to a function.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Procs {
    pub input: ProcCallback,
    pub output: ProcCallback,
}

/// The procs of a function; those of 2013 are other functions, by other codes, so they
/// do not count.
pub(super) fn procs(function: &Function) -> Procs {
    let attached = function.extra.as_ref().and_then(|extra| extra.downcast_ref::<Procs>());
    attached.copied().unwrap_or_default()
}

/// A function that runs a program's callback. What that returns is no answer, as in 2.4;
/// it is the reason that the origin gets when the handle goes without one.
fn serving(class: Token, callback: RpcCallback) -> Option<Rpc> {
    let (callback, class) = (callback?, Number::of(class));
    Some(Arc::new(move |target: Arc<Target>| {
        let handle = match handle::of_target(class.token(), target.clone()) {
            Ok(handle) => handle,
            Err(failure) => return failure.status,
        };
        // SAFETY: the program's function, with a handle of ours.
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
        // It is the number of a name that was registered before.
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
/// `flag` must be null or valid.
unsafe fn registered(class: Token, id: u64, flag: *mut u8) -> Result<Option<Arc<Function>>> {
    let found = CLASSES.get(class)?.class.shared.functions.numbered(id);
    // SAFETY: passed on from the caller.
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
/// `disabled` must be null or valid.
unsafe fn disabled_response(class: Token, id: u64, disabled: *mut u8) -> Result<()> {
    let function = CLASSES.get(class)?.function(id)?;
    // SAFETY: passed on from the caller.
    *unsafe { place(disabled, "flag") }? = u8::from(function.is_quiet());
    Ok(())
}

calls! {
    /// Registers a function by a name; its number, 0 where that fails.
    HG_Register_name(
        class: Token,
        name: *const c_char,
        input: ProcCallback,
        output: ProcCallback,
        callback: RpcCallback,
    ) -> u64, 0, {
        let held = CLASSES.get(class)?;
        // SAFETY: passed on from the caller.
        let name = unsafe { text(name, "function's name") }?;
        let functions = &held.class.shared.functions;
        Ok(functions.add(&name, serving(class, callback), extra(input, output))?.number())
    }

    /// Whether a name is registered, and its number.
    HG_Registered_name(class: Token, name: *const c_char, id: *mut u64, flag: *mut u8) {
        let held = CLASSES.get(class)?;
        // SAFETY: passed on from the caller.
        unsafe {
            let found = held.class.shared.functions.named(&text(name, "function's name")?);
            *place(flag, "flag")? = u8::from(found.is_some());
            if let (Some(id), Some(function)) = (maybe(id), found) {
                *id = function.number();
            }
        }
        Ok(())
    }

    /// Registers a function by a number.
    HG_Register(
        class: Token,
        id: u64,
        input: ProcCallback,
        output: ProcCallback,
        callback: RpcCallback,
    ) {
        register(class, id, (input, output), callback)
    }

    /// Registers a function by a number.
    HG_Core_register(class: Token, id: u64, callback: RpcCallback) {
        register(class, id, (None, None), callback)
    }

    /// Forgets a function.
    HG_Deregister(class: Token, id: u64) { deregister(class, id) }

    /// Forgets a function.
    HG_Core_deregister(class: Token, id: u64) { deregister(class, id) }

    /// Whether a number is registered.
    HG_Registered(class: Token, id: u64, flag: *mut u8) {
        // SAFETY: passed on from the caller.
        unsafe { registered(class, id, flag) }.map(drop)
    }

    /// Whether a number is registered.
    HG_Core_registered(class: Token, id: u64, flag: *mut u8) {
        // SAFETY: passed on from the caller.
        unsafe { registered(class, id, flag) }.map(drop)
    }

    /// Whether a number is registered, and with which procs.
    HG_Registered_proc_cb(
        class: Token,
        id: u64,
        flag: *mut u8,
        input: *mut ProcCallback,
        output: *mut ProcCallback,
    ) {
        // SAFETY: passed on from the caller.
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

    /// Attaches something to a function, freed with it or with the class.
    HG_Register_data(class: Token, id: u64, data: *mut c_void, free: FreeCallback) {
        register_data(class, id, data, free)
    }

    /// Attaches something to a function, freed with it or with the class.
    HG_Core_register_data(class: Token, id: u64, data: *mut c_void, free: FreeCallback) {
        register_data(class, id, data, free)
    }

    /// What was attached; null for nothing.
    HG_Registered_data(class: Token, id: u64) -> *mut c_void, ptr::null_mut(), {
        Ok(CLASSES.get(class)?.data_of(id))
    }

    /// What was attached; null for nothing.
    HG_Core_registered_data(class: Token, id: u64) -> *mut c_void, ptr::null_mut(), {
        Ok(CLASSES.get(class)?.data_of(id))
    }

    /// Calls of a function have no answer.
    HG_Registered_disable_response(class: Token, id: u64, disable: u8) {
        disable_response(class, id, disable)
    }

    /// Calls of a function have no answer.
    HG_Core_registered_disable_response(class: Token, id: u64, disable: u8) {
        disable_response(class, id, disable)
    }

    /// Whether they have none.
    HG_Registered_disabled_response(class: Token, id: u64, disabled: *mut u8) {
        // SAFETY: passed on from the caller.
        unsafe { disabled_response(class, id, disabled) }
    }

    /// Whether they have none.
    HG_Core_registered_disabled_response(class: Token, id: u64, disabled: *mut u8) {
        // SAFETY: passed on from the caller.
        unsafe { disabled_response(class, id, disabled) }
    }
}
