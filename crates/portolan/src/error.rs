//! The error type of all calls.

#[doc(inline)]
pub use portolan_engine::error::{Error, ErrorKind, Result};
