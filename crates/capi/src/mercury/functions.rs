//! Functions that programs register by name and implement as C callbacks.

use super::entry::text;
use super::handles;
use super::params::{ProcCallback, Procs};
use super::table::Token;
use portolan_rpc::failure::{Result, Status};
use portolan_rpc::hg::Class;
use portolan_rpc::hg::target::Rpc;
use portolan_rpc::hg::target::Target;
use std::os::raw::{c_char, c_int};
use std::sync::Arc;

pub(crate) type RpcCallback = Option<unsafe extern "C-unwind" fn(Token) -> c_int>;

pub(super) fn serving(callback: RpcCallback) -> Option<Rpc> {
    let callback = callback?;
    Some(Arc::new(move |target: Arc<Target>| {
        let handle = handles::hold(target);
        // SAFETY: the program registered the callback for this signature, and `handle` is live.
        let code = unsafe { callback(handle) };
        if code != 0 {
            // The callback may already have freed the handle. `let_go` ignores that.
            handles::let_go(handle);
        }
        Status(code)
    }))
}

/// Registers a function with its procs and returns its number. Fails with `INVALID_ARG` if the name
/// is null, empty or not UTF-8, and `EXIST` if another name has the same number.
///
/// # Safety
/// `name` must be null or a terminated string.
pub(super) unsafe fn register(
    class: &Class,
    name: *const c_char,
    input: ProcCallback,
    output: ProcCallback,
    callback: RpcCallback,
) -> Result<u32> {
    // SAFETY: the caller guarantees that `name` is null or a terminated string.
    let name = unsafe { text(name, "function's name") }?;
    let procs = Arc::new(Procs { input, output });
    Ok(class.shared.functions.add(&name, serving(callback), Some(procs))?.id)
}
