//! Errors and reports name the public call.

use crate::error::Result;
use crate::watchdog::PublicCall;
use std::panic::Location;

/// Names the public call in an error.
pub(super) trait InCall {
    fn in_call(self, call: &'static str) -> Self;
}

impl<T> InCall for Result<T> {
    #[inline]
    fn in_call(self, call: &'static str) -> Self {
        self.map_err(|e| e.in_call(call))
    }
}

/// Runs the body of a public call that may wait for other ranks: an error names the call, and a report
/// of the watchdog names the call and the line of the program that made it.
#[track_caller]
#[inline]
pub(crate) fn public<T>(call: &'static str, body: impl FnOnce() -> Result<T>) -> Result<T> {
    let _inside = PublicCall::enter(call, Location::caller());
    body().in_call(call)
}
