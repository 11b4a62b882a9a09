//! The ARMCI interface: `armci.h`, `message.h` and `armcix.h`.
//!
//! The ABI matches Debian's libarmci-mpi-dev 0.3.1 and 0.4. Every call `ARMCI_X` that has a
//! profiling twin `PARMCI_X` is exported under both names. A program may interpose its own
//! `ARMCI_X`, because no code here calls an `ARMCI_` name that has a twin.
//!
//! **Errors.** A call that returns `int` returns 0 on success. If it fails, it changes nothing,
//! writes the reason to standard error and returns a code (`PORTOLAN_ERR_*`). Other calls write the
//! reason to standard error and abort the job.

pub(crate) mod contiguous;
pub(crate) mod domains;
mod group_table;
pub(crate) mod groups;
pub(crate) mod handles;
pub(crate) mod lifecycle;
pub(crate) mod memory;
pub(crate) mod messages;
pub(crate) mod notify;
pub(crate) mod reductions;
mod scopes;
pub(crate) mod strided;
pub(crate) mod strides;
pub(crate) mod sync;
pub(crate) mod types;
pub(crate) mod values;
pub(crate) mod vector;
