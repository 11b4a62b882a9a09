//! The compose/perform interface: `cp.h`.
//!
//! | module | calls |
//! |---|---|
//! | [`table`] | numbers of compositions |
//! | [`lifecycle`] | init, finalize, memory, ranks |
//! | [`compositions`] | create, add, merge, map, load, store, destroy |
//! | [`perform`] | sync, perform, wait |
//!
//! **Errors.** Calls return a negative code, have changed nothing then unless they
//! say so, and keep the reason for `cp_errmsg`. Nothing is written to standard error.
//!
//! `cp_init` starts the runtime, but a program that has started it by another
//! interface needs no call of it: the state of this one is made when it is first
//! used, and goes when the runtime ends.

pub(crate) mod compositions;
pub(crate) mod lifecycle;
pub(crate) mod perform;
pub(crate) mod table;

use super::boundary::guard;
use crate::error::{Result, fail};
use crate::runtime::{self, Engine};
use std::os::raw::c_int;

/// A call that returns 0, or a number, or a code below 0.
#[inline]
fn call(name: &'static str, body: impl FnOnce(&'static Engine) -> Result<c_int>) -> c_int {
    guard(name, |error| -error.kind().code(), || body(runtime::current()?))
}

/// A rank that arrives as an int.
fn rank(proc: c_int) -> Result<usize> {
    match usize::try_from(proc) {
        Ok(rank) => Ok(rank),
        Err(_) => fail!(Rank, "rank {proc} is negative"),
    }
}
