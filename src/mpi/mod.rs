//! The floor: safe wrappers over the MPI calls that the engine uses.
//!
//! This is the only module that names `mpi::ffi`. It adds what rsmpi's safe
//! interface lacks (windows, derived datatypes, matched probe, non-blocking
//! collectives on raw bytes, adoption of a running MPI) and checks every
//! return code. It knows nothing of segments, ranks' memories or paths.
//!
//! * [`init`] starts, adopts and stops MPI and guards against the wrong one.
//! * [`Comm`] is an owned communicator with its collectives.
//! * [`p2p`] sends, receives and probes; [`Requests`] is a set of outstanding
//!   requests polled together.
//! * [`Window`] is an RMA window in a permanent shared lock.
//! * [`DerivedType`] describes strided and scattered memory.
//! * `blocking` holds the blocking calls of the program in which it serves other nodes.
//! * `launcher` finds out whether a launcher of another kind started the ranks.
//! * `pmpi` holds the `MPI_Init` that raises the thread level, and `MPI_Finalize`.
//! * `life` knows whether the program or the library has initialised MPI, and which of them has
//!   asked for its end.
//! * [`exit_guard`] ends the job when a process exits without finalising.
//!
//! Handles are integers in one MPI and pointers in the other. The newtypes here
//! are `Send` and `Sync` because MPI itself is thread-safe at the level at which
//! the engine shares them: below `MPI_THREAD_MULTIPLE` the engine starts no
//! thread of its own (see [`crate::progress`]).

pub(crate) mod blocking;
mod comm;
mod datatype;
pub(crate) mod dynamic;
pub(crate) mod exit_guard;
pub(crate) mod init;
mod launcher;
mod life;
pub(crate) mod p2p;
mod pmpi;
mod request;
mod window;

pub use comm::Comm;
pub(crate) use comm::CommHandle;
pub(crate) use datatype::{Datatype, DerivedType, Op, RawDatatype, ReduceFn, ReduceOp};
pub(crate) use request::Request;
pub use request::Requests;
pub(crate) use window::{Shape, Transfer, Window};

use crate::error::{Error, ErrorKind, Result};
use mpi::ffi;
use std::os::raw::{c_int, c_void};

unsafe extern "C" {
    fn portolan_shim_flavour() -> c_int;
    fn portolan_shim_type(which: c_int) -> ffi::MPI_Datatype;
    fn portolan_shim_op(which: c_int) -> ffi::MPI_Op;
    fn portolan_shim_in_place() -> *mut c_void;
    fn portolan_shim_mode_nocheck() -> c_int;
    fn portolan_shim_comm_null() -> ffi::MPI_Comm;
    fn portolan_shim_request_null() -> ffi::MPI_Request;
    fn portolan_shim_win_null() -> ffi::MPI_Win;
    fn portolan_shim_at_finalize(
        hook: Option<unsafe extern "C" fn(ffi::MPI_Comm, c_int, *mut c_void, *mut c_void) -> c_int>,
        key: *mut c_int,
    ) -> c_int;
    fn portolan_shim_forget_finalize(key: *mut c_int) -> c_int;
}

/// The MPI that the crate was compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// MPICH and libraries with its binary interface.
    Mpich,
    /// Open MPI.
    OpenMpi,
    /// Any other MPI-3 library.
    Other,
}

impl Flavour {
    /// The MPI that the crate was compiled for.
    pub fn built() -> Flavour {
        // SAFETY: the shim function only returns a constant.
        match unsafe { portolan_shim_flavour() } {
            1 => Flavour::Mpich,
            2 => Flavour::OpenMpi,
            _ => Flavour::Other,
        }
    }

    /// The name as people write it.
    pub fn name(self) -> &'static str {
        match self {
            Flavour::Mpich => "MPICH",
            Flavour::OpenMpi => "Open MPI",
            Flavour::Other => "another MPI",
        }
    }
}

/// Turns an MPI return code into a result; `call` is the MPI function's name.
pub(crate) fn check(code: c_int, call: &str) -> Result<()> {
    if code == ffi::MPI_SUCCESS as c_int {
        return Ok(());
    }
    Err(failure(code, call))
}

#[cold]
fn failure(code: c_int, call: &str) -> Error {
    let mut text = [0u8; 1024];
    let mut len: c_int = 0;
    // SAFETY: the buffer is longer than MPI_MAX_ERROR_STRING of both MPIs.
    let rc = unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &mut len) };
    let text = if rc == ffi::MPI_SUCCESS as c_int {
        String::from_utf8_lossy(&text[..usize::try_from(len).unwrap_or(0)]).into_owned()
    } else {
        format!("error code {code}")
    };
    Error::new(ErrorKind::Mpi, format!("{call} failed: {text}"))
}

/// Seconds since some moment in the past, as MPI counts them.
pub(crate) fn wtime() -> f64 {
    // SAFETY: MPI_Wtime has no preconditions once MPI is initialised, and the
    // callers run between initialisation and finalisation.
    unsafe { ffi::MPI_Wtime() }
}

/// A count as MPI takes it.
///
/// # Errors
/// `Argument` above `i32::MAX`: callers cut longer transfers.
pub(crate) fn count(n: usize) -> Result<c_int> {
    c_int::try_from(n).map_err(|_| {
        Error::new(
            ErrorKind::Argument,
            format!("{n} exceeds the 2^31-1 elements that one MPI call takes"),
        )
    })
}
