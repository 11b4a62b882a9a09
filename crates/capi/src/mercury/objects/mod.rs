//! The objects behind the C handles, for both interfaces.
//!
//! | module | contents |
//! |---|---|
//! | [`class`] | classes, and the data attached to functions |
//! | [`context`] | contexts, progress and trigger |
//! | [`address`] | addresses and their reference counts |
//! | [`bulk`] | bulk handles, their serialised forms and reference counts |
//! | [`attached`] | pointers and callbacks that programs attach to objects |
//! | [`more_data`] | the callbacks for data that programs transfer themselves |

pub(super) mod address;
pub(super) mod attached;
pub(super) mod bulk;
pub(super) mod class;
pub(super) mod context;
pub(super) mod more_data;
