//! The X10Lib interface: `x10/x10lib.h`.
//!
//! The C++ functions of the header call the C functions that are exported here. X10Lib has no
//! memory of its own: a reference names any address of any place ([`portolan_engine::any_memory`]).
//! Asyncs are active messages ([`portolan_engine::am`]).
//!
//! **Errors.** A call returns `X10_OK` or `X10_ERR_LAPI`. A call with invalid arguments changes
//! nothing, except that bytes may have moved if a remote address is not mapped. The reason goes to
//! standard error and to `x10_last_error`.

pub(crate) mod aggregate;
pub(crate) mod copy;
pub(crate) mod environment;
pub(crate) mod fence;
pub(crate) mod function;
pub(crate) mod function_table;
mod handler_ids;
pub(crate) mod lifecycle;
pub(crate) mod lock;
pub(crate) mod refs;
pub(crate) mod register;
pub(crate) mod spawn;
pub(crate) mod strided;
pub(crate) mod switches;
pub(crate) mod values;
pub(crate) mod vector;

use super::boundary::{guard, reported};
use portolan_base::error::{Error, Result, fail};
use portolan_engine::runtime::{self, Engine};
use std::os::raw::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) const OK: c_int = 0;
/// `X10_ERR_LAPI`: the call failed, for any reason.
pub(crate) const ERR_LAPI: c_int = 1;

static RUNNING: AtomicBool = AtomicBool::new(false);

/// Returns the engine. Fails with `State` unless X10Lib is initialised.
#[inline]
fn engine() -> Result<&'static Engine> {
    if !RUNNING.load(Ordering::Acquire) {
        return not_running();
    }
    runtime::current()
}

#[cold]
fn not_running() -> Result<&'static Engine> {
    fail!(State, "X10Lib is not initialised, or was finalised already; call x10_init first")
}

#[inline]
fn code(call: &'static str, body: impl FnOnce(&'static Engine) -> Result<()>) -> c_int {
    guard(call, failed, || {
        body(engine()?)?;
        Ok(OK)
    })
}

#[cold]
fn failed(error: &Error) -> c_int {
    reported(error);
    ERR_LAPI
}
