//! Safe wrappers over the MPI calls that the engine uses.
//!
//! In the engine, only this module names `mpi::ffi`. It adds what rsmpi's safe interface lacks
//! (windows, derived datatypes, matched probe, nonblocking collectives on raw bytes, adoption of a
//! running MPI) and checks every return code. `launcher` detects that the launcher of another MPI
//! started the ranks, and `life` records whether the program or the library initialised MPI.
//!
//! Handles are integers in one MPI and pointers in the other. The types of this module are `Send`
//! and `Sync` because MPI is thread-safe at the level at which the engine shares them: below
//! `MPI_THREAD_MULTIPLE` the engine starts no thread that calls MPI (see
//! `crate::runtime::progress_thread`).

mod call;
mod collective;
mod comm;
mod datatype;
pub(crate) mod exit_guard;
mod flavour;
pub mod init;
pub mod launcher;
pub mod life;
mod members;
pub mod p2p;
mod request;
mod window;

pub use call::{is_in_place, wtime};
pub use comm::Comm;
pub use comm::CommHandle;
pub use datatype::{Datatype, DerivedType, RawDatatype, ReduceFn, ReduceOp};
pub use flavour::Flavour;
pub(crate) use members::Members;
pub use request::Request;
pub use request::Requests;
pub use window::{Window, WindowShape, WindowTransfer};
