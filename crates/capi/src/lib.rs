//! The C interfaces. They check arguments, call the engine and map errors.
//!
//! [`boundary`] is their common part, and [`portolan_engine::runtime::sharing`] lets several of them
//! use one engine. [`extension`] and [`observe`] are Portolan's own calls (`include/portolan.h`).
//!
//! **Contract.** The pointers that an exported function takes are valid as its header describes,
//! and handles are live. `SAFETY` comments call this the contract.

use portolan_interpose as _;

pub(crate) mod armci;
pub(crate) mod boundary;
pub(crate) mod compose;
pub(crate) mod extension;
pub(crate) mod lapi;
pub(crate) mod loaded;
pub(crate) mod mercury;
pub(crate) mod observe;
pub(crate) mod x10;
