//! How a call fails: with a code of LAPI's and a reason, or because of the engine.

use crate::error::Error;
use std::os::raw::c_int;

/// Why a call fails.
#[derive(Debug)]
pub(crate) enum Failure {
    /// With this code, for the reason that the text gives.
    Code(c_int, String),
    /// Because of the engine.
    Engine(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Engine(error)
    }
}

/// What the bodies of calls return.
pub(crate) type Outcome<T = ()> = std::result::Result<T, Failure>;

/// Returns early with a code and a formatted reason.
macro_rules! refuse {
    ($code:expr, $($arg:tt)+) => {
        return Err($crate::capi::lapi::outcome::Failure::Code($code, format!($($arg)+)))
    };
}
pub(crate) use refuse;
