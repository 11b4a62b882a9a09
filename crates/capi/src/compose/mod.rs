//! The compose/perform interface: `cp.h`.
//!
//! **Errors.** A call that fails returns a negative code, and has changed nothing unless its
//! documentation says otherwise. `cp_errmsg` returns the reason; nothing goes to standard error.
//!
//! The state is created at its first use and dropped when the runtime ends, so a program that has
//! started the runtime through another interface need not call `cp_init`.

pub(crate) mod compositions;
pub(crate) mod lifecycle;
pub(crate) mod perform;
pub(crate) mod table;

use super::boundary::guard;
use portolan_base::error::{Result, fail};
use portolan_engine::runtime::{self, Engine};
use std::os::raw::c_int;

/// Runs a call that returns 0 or a number on success and a negative code on failure.
#[inline]
fn call(name: &'static str, body: impl FnOnce(&'static Engine) -> Result<c_int>) -> c_int {
    guard(name, |error| -error.kind().code(), || body(runtime::current()?))
}

fn rank(proc: c_int) -> Result<usize> {
    match usize::try_from(proc) {
        Ok(rank) => Ok(rank),
        Err(_) => fail!(Rank, "rank {proc} is negative"),
    }
}
