//! The X10Lib interface: `x10/x10lib.h`.
//!
//! The C names are exported here; the C++ names of the header call them. X10Lib
//! has no memory of its own: a reference names any address of any place, which
//! [`crate::any_memory`] reaches. Asyncs are active messages ([`crate::am`]).
//!
//! | module | calls |
//! |---|---|
//! | [`lifecycle`] | init, finalize, last error |
//! | [`refs`] | global references; checks of arguments |
//! | [`switches`] | counters of transfers under way |
//! | [`copy`], [`vector`], [`strided`], [`values`] | transfers |
//! | [`fence`], [`lock`] | order, exclusion of asyncs |
//! | [`function_table`], [`register`] | the table of functions by index; registering, exchange of addresses |
//! | [`function`] | how a function's address travels |
//! | [`spawn`], [`aggregate`] | asyncs, one by one and in batches |
//! | [`environment`] | settings, queries, statistics |
//!
//! **Errors.** A call returns `X10_OK` or `X10_ERR_LAPI`, and has changed nothing
//! then; the reason goes to standard error and to `x10_last_error`.

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
use crate::error::{Error, Result, fail};
use crate::runtime::{self, Engine};
use std::os::raw::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

/// Success.
pub(crate) const OK: c_int = 0;
/// Any error.
pub(crate) const ERR_LAPI: c_int = 1;

/// Between `x10_init` and `x10_finalize`.
static RUNNING: AtomicBool = AtomicBool::new(false);

/// The engine, for calls between init and finalize.
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

/// A call that returns a code.
#[inline]
fn code(call: &'static str, body: impl FnOnce(&'static Engine) -> Result<()>) -> c_int {
    guard(call, failed, || {
        body(engine()?)?;
        Ok(OK)
    })
}

/// The code of an error, after it was written to standard error.
#[cold]
fn failed(error: &Error) -> c_int {
    reported(error);
    ERR_LAPI
}
