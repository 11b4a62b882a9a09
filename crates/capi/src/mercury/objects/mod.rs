//! The objects behind the C handles, for both interfaces.

pub(super) mod address;
pub(super) mod attached;
pub(super) mod bulk;
pub(super) mod class;
pub(super) mod context;
pub(super) mod handle;
pub(super) mod memory;
pub(super) mod more_data;
pub(super) mod references;
