//! Function shipping: calls that run on another rank.

#[doc(inline)]
pub use portolan_rpc::{Cause, Failure, Result, Status, bulk, checksum, hg, na, proc};
