//! Functions of MPI that Portolan defines in a program's place, and that call MPI's own through the
//! profiling interface (`PMPI_`).
//!
//! - `MPI_Init`, `MPI_Init_thread` and `MPI_Finalize` in C and Fortran ([`init`]): the program gets
//!   the thread level that a progress thread needs, and the library and the program may end MPI in
//!   either order.
//! - `MPI_Barrier`, `MPI_Bcast`, `MPI_Reduce`, `MPI_Allreduce` and `MPI_Recv` ([`waits`]): a thread
//!   that waits in them serves other ranks meanwhile.
//! - These and other calls that block ([`records`]): statistics and traces record them.
//!
//! The C library contains this crate. A Rust program gets these definitions only if it asks for
//! them: by the feature `interpose` of the crate `portolan`, or by `use portolan_interpose as _;`.

pub mod init;
pub mod records;
pub mod waits;
