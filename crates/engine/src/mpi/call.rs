//! Helpers for the wrappers of MPI calls: constants that only C can name, return codes, counts.

use mpi::ffi;
use portolan_base::error::{Error, ErrorKind, Result};
use std::os::raw::{c_int, c_void};

unsafe extern "C" {
    pub(super) fn portolan_shim_type(which: c_int) -> ffi::MPI_Datatype;
    pub(super) fn portolan_shim_in_place() -> *mut c_void;
    pub(super) fn portolan_shim_mode_nocheck() -> c_int;
    pub(super) fn portolan_shim_comm_null() -> ffi::MPI_Comm;
    pub(super) fn portolan_shim_request_null() -> ffi::MPI_Request;
    pub(super) fn portolan_shim_win_null() -> ffi::MPI_Win;
    pub(super) fn portolan_shim_at_finalize(
        hook: Option<unsafe extern "C" fn(ffi::MPI_Comm, c_int, *mut c_void, *mut c_void) -> c_int>,
        key: *mut c_int,
    ) -> c_int;
    pub(super) fn portolan_shim_forget_finalize(key: *mut c_int) -> c_int;
}

/// Calls a function of MPI. An error names it.
macro_rules! call {
    ($call:ident($($argument:expr),* $(,)?)) => {
        $crate::mpi::call::check(mpi::ffi::$call($($argument),*), stringify!($call))
    };
}
pub(super) use call;

/// Starts a call whose last arguments are a communicator and a request. Returns the request.
macro_rules! start {
    ($comm:expr, $call:ident($($argument:expr),* $(,)?)) => {{
        let mut request = $crate::mpi::Request::null();
        let comm = $comm.live()?;
        $crate::mpi::call::call!($call($($argument,)* comm, &mut request.raw))?;
        Ok(request)
    }};
}
pub(super) use start;

pub(super) fn check(code: c_int, call: &str) -> Result<()> {
    if code == ffi::MPI_SUCCESS as c_int {
        return Ok(());
    }
    Err(failure(code, call))
}

#[cold]
fn failure(code: c_int, call: &str) -> Error {
    let mut text = [0u8; 1024];
    let mut len: c_int = 0;
    // SAFETY: the buffer exceeds the `MPI_MAX_ERROR_STRING` of both MPIs.
    let rc = unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &mut len) };
    let text = if rc == ffi::MPI_SUCCESS as c_int {
        String::from_utf8_lossy(&text[..usize::try_from(len).unwrap_or(0)]).into_owned()
    } else {
        format!("error code {code}")
    };
    Error::new(ErrorKind::Mpi, format!("{call} failed: {text}"))
}

/// Whether the program passes `MPI_IN_PLACE` for a buffer.
pub fn is_in_place(buffer: *const c_void) -> bool {
    // SAFETY: the shim returns a constant.
    std::ptr::eq(buffer, unsafe { portolan_shim_in_place() })
}

/// In seconds since an arbitrary moment.
pub fn wtime() -> f64 {
    // SAFETY: the callers run between initialisation and finalisation of MPI.
    unsafe { ffi::MPI_Wtime() }
}

/// Fails with `Argument` above `i32::MAX`: callers split longer transfers.
pub fn count(n: usize) -> Result<c_int> {
    c_int::try_from(n).map_err(|_| {
        Error::new(
            ErrorKind::Argument,
            format!("{n} exceeds the limit of 2^31-1 elements in one MPI call"),
        )
    })
}
