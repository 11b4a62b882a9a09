//! The X10Lib interface: `x10/x10lib.h`.
//!
//! The C names are exported here; the C++ names of the header call them. X10Lib
//! has no memory of its own: a reference names any address of any place, which
//! [`crate::anywhere`] reaches. Asyncs are active messages ([`crate::am`]).
//!
//! | module | calls |
//! |---|---|
//! | [`lifecycle`] | init, finalize, last error |
//! | [`refs`] | global references; checks of arguments |
//! | [`switches`] | counters of transfers under way |
//! | [`copy`], [`vector`], [`strided`], [`values`] | transfers |
//! | [`fence`], [`lock`] | order, exclusion of asyncs |
//! | [`register`] | the table of functions, exchange of addresses |
//! | [`function`] | how a function's address travels |
//! | [`spawn`], [`aggregate`] | asyncs, one by one and in batches |
//! | [`environment`] | settings, queries, statistics |
//!
//! **Errors.** A call returns `X10_OK` or `X10_ERR_LAPI`, and has changed nothing
//! then; the reason goes to standard error and to `x10_last_error`.

pub mod aggregate;
pub mod copy;
pub mod environment;
pub mod fence;
pub mod function;
pub mod lifecycle;
pub mod lock;
pub mod refs;
pub mod register;
pub mod spawn;
pub mod strided;
pub mod switches;
pub mod values;
pub mod vector;

use super::boundary::{guard, reported};
use crate::error::{Error, Result};
use crate::runtime::Engine;
use std::os::raw::c_int;

/// Success.
pub const OK: c_int = 0;
/// Any error.
pub const ERR_LAPI: c_int = 1;

/// A call that returns a code.
#[inline]
fn code(call: &'static str, body: impl FnOnce(&'static Engine) -> Result<()>) -> c_int {
    guard(call, failed, || {
        body(lifecycle::engine()?)?;
        Ok(OK)
    })
}

/// The code of an error, after it was written to standard error.
#[cold]
fn failed(error: &Error) -> c_int {
    reported(error);
    ERR_LAPI
}
