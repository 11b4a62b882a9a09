//! The result of a call: a failure is a LAPI code with a reason, or an error of the engine.

use portolan_engine::error::Error;
use std::os::raw::c_int;

/// The reason why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A return code, and a text that gives the reason.
    Code(c_int, String),
    /// An error of the engine.
    Engine(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Engine(error)
    }
}

/// The result of the body of a call.
pub(crate) type Outcome<T = ()> = std::result::Result<T, Failure>;

/// Returns early with a code and a formatted reason.
macro_rules! refuse {
    ($code:expr, $($arg:tt)+) => {
        return Err($crate::lapi::outcome::Failure::Code($code, format!($($arg)+)))
    };
}
pub(crate) use refuse;
