//! The result of a call: a failure is a LAPI code with a reason, or an error of the engine.

use portolan_base::error::Error;
use std::os::raw::c_int;

#[derive(Debug)]
pub(crate) enum Failure {
    Code(c_int, String),
    Engine(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Engine(error)
    }
}

pub(crate) type Outcome<T = ()> = std::result::Result<T, Failure>;

macro_rules! refuse {
    ($code:expr, $($arg:tt)+) => {
        return Err($crate::lapi::outcome::Failure::Code($code, format!($($arg)+)))
    };
}
pub(crate) use refuse;
