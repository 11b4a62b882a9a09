//! The lowest layer of Portolan, which needs no MPI: waits and their durations, traces and
//! statistics of calls, settings, errors, shapes of transfers, memory that processes share, locks,
//! and the state of the process. This is an internal crate of the crate `portolan`: its public
//! items serve the other crates of the workspace, and change with them. `ARCHITECTURE.md` describes
//! the layers.

pub mod config;
pub mod digest;
pub mod error;
pub mod futex;
pub mod handles;
pub mod layout;
pub mod mutation;
pub mod process;
pub mod shm;
pub mod sync;
pub mod thread;
pub mod trace;
pub mod wait;
