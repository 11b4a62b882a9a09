//! The program's callbacks for `HG_CORE_MORE_DATA` of 2.4.

use crate::mercury::table::Token;
use std::os::raw::c_int;

/// The library's function, which the program calls when the data is acquired.
pub(crate) type Done = Option<unsafe extern "C" fn(Token, c_int)>;
/// Acquires the rest of the data of a handle.
pub(crate) type Acquire = Option<unsafe extern "C-unwind" fn(Token, c_int, Done) -> c_int>;
pub(crate) type Release = Option<unsafe extern "C-unwind" fn(Token)>;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Callbacks {
    pub acquire: Acquire,
    pub release: Release,
}
