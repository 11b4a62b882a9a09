//! Functions of programs: registered by name, run by a callback of C.

use super::face::text;
use super::handles;
use super::params::{self, ProcCallback, Procs};
use super::table::Token;
use crate::rpc::failure::{Failure, Result, Status};
use crate::rpc::hg::Class;
use crate::rpc::hg::target::Rpc;
use crate::rpc::hg::target::Target;
use std::os::raw::{c_char, c_int};
use std::sync::Arc;

/// `hg_rpc_cb_t`.
pub(crate) type RpcCallback = Option<unsafe extern "C" fn(Token) -> c_int>;

/// A function that runs a program's callback.
pub(super) fn serving(callback: RpcCallback) -> Option<Rpc> {
    let callback = callback?;
    Some(Arc::new(move |target: Arc<Target>| {
        let handle = handles::hold(target);
        // SAFETY: the program's function, with a handle of ours.
        let code = unsafe { callback(handle) };
        if code != 0 {
            // It may have freed the handle itself.
            handles::let_go(handle);
        }
        params::status(code)
    }))
}

/// # Safety
/// `name` must be null or a terminated string.
pub(super) unsafe fn register(
    class: &Class,
    name: *const c_char,
    input: ProcCallback,
    output: ProcCallback,
    callback: RpcCallback,
) -> Result<u32> {
    // SAFETY: passed on from the caller.
    let name = unsafe { text(name, "function's name") }?;
    let procs = Arc::new(Procs { input, output });
    Ok(class.shared.functions.add(&name, serving(callback), Some(procs))?.id)
}

/// A failure without a call.
pub(super) fn unknown(id: u32) -> Failure {
    Failure::new(Status::NO_MATCH, format!("no function has the number {id:#x}"))
}
