//! The C interfaces. They check arguments, call the engine and map errors.
//!
//! | module | contents |
//! |---|---|
//! | [`boundary`] | code shared by all C interfaces: panic boundary, last error, abort |
//! | [`armci`] | ARMCI |
//! | [`compose`] | compose/perform |
//! | [`lapi`] | LAPI active messages |
//! | [`mercury`] | Mercury: function shipping |
//! | [`x10`] | X10Lib |
//! | [`loaded`] | the loaded programs and libraries, which X10Lib and LAPI look functions up in |
//! | [`extension`], [`observe`] | Portolan's own calls (`include/portolan.h`) |
//!
//! [`portolan_engine::sharing`] lets several interfaces of a program use one engine.

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
