//! The C faces: check arguments, call the engine, map errors. No logic here.
//!
//! [`boundary`] holds what every face needs: the panic boundary, the last error
//! of a thread, the abort; [`crate::sharing`] lets several interfaces of one program use one
//! engine. [`armci`] is the ARMCI interface, [`compose`] compose/perform, [`lapi`] LAPI's
//! active messages, [`mercury`] function shipping, [`x10`] X10Lib; [`extension`] and [`observe`] hold the calls of
//! our own (`include/portolan.h`).

pub(crate) mod armci;
pub(crate) mod boundary;
pub(crate) mod compose;
pub(crate) mod extension;
pub(crate) mod lapi;
pub(crate) mod mercury;
pub(crate) mod observe;
pub(crate) mod x10;
