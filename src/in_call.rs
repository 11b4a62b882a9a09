//! Names the public call in errors and reports.

use portolan_base::error::Result;
use portolan_base::thread::PublicCall;

pub(crate) trait InCall {
    fn in_call(self, call: &'static str) -> Self;
}

impl<T> InCall for Result<T> {
    #[inline]
    fn in_call(self, call: &'static str) -> Self {
        self.map_err(|e| e.in_call(call))
    }
}

/// Runs the body of a public call that may wait for other ranks. Errors name the call, and a
/// watchdog report names the call and the program's source line.
#[track_caller]
#[inline]
pub(crate) fn public<T>(call: &'static str, body: impl FnOnce() -> Result<T>) -> Result<T> {
    let _inside = PublicCall::enter(call);
    body().in_call(call)
}
