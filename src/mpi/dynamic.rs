//! Connections between jobs that were launched apart: ports, accept and connect.
//!
//! A connection is an intercommunicator with one process at either side. Not every MPI
//! can make one (MPICH over UCX has no ports); the error says so.

use super::{Comm, check};
use crate::error::{Error, ErrorKind, Result};
use mpi::ffi;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::raw::c_char;

/// More than MPI_MAX_PORT_NAME of both MPIs (1024 and 256).
const PORT_NAME: usize = 4096;

/// A port on which connections are accepted; closed by [`Port::close`].
#[derive(Debug)]
pub struct Port {
    name: CString,
}

/// MPI's errors are returned, not fatal, while this runs.
fn with_errors_returned<R>(body: impl FnOnce() -> Result<R>) -> Result<R> {
    // SAFETY: both communicators live while MPI runs; the handlers that were there are
    // put back.
    unsafe {
        let comms = [ffi::RSMPI_COMM_WORLD, ffi::RSMPI_COMM_SELF];
        let mut before = Vec::new();
        for comm in comms {
            let mut handler = MaybeUninit::uninit();
            check(
                ffi::MPI_Comm_get_errhandler(comm, handler.as_mut_ptr()),
                "MPI_Comm_get_errhandler",
            )?;
            before.push((comm, handler.assume_init()));
            check(
                ffi::MPI_Comm_set_errhandler(comm, ffi::RSMPI_ERRORS_RETURN),
                "MPI_Comm_set_errhandler",
            )?;
        }
        let result = body();
        for (comm, mut handler) in before {
            check(ffi::MPI_Comm_set_errhandler(comm, handler), "MPI_Comm_set_errhandler")?;
            ffi::MPI_Errhandler_free(&mut handler);
        }
        result
    }
}

fn unsupported(error: Error, call: &str) -> Error {
    Error::new(
        ErrorKind::Mpi,
        format!(
            "this MPI cannot connect jobs: {call} says '{}'. Open MPI can, where both \
             launchers are given the same ompi-server",
            error.detail().lines().last().unwrap_or("").trim()
        ),
    )
}

impl Port {
    /// Opens a port.
    ///
    /// # Errors
    /// `Mpi` where this MPI has none.
    pub fn open() -> Result<Port> {
        with_errors_returned(|| {
            let mut name = vec![0u8; PORT_NAME];
            // SAFETY: the buffer is longer than any port's name.
            let opened = check(
                unsafe { ffi::MPI_Open_port(ffi::RSMPI_INFO_NULL, name.as_mut_ptr().cast()) },
                "MPI_Open_port",
            );
            opened.map_err(|e| unsupported(e, "MPI_Open_port"))?;
            let name = CStr::from_bytes_until_nul(&name).map(CStr::to_owned).unwrap_or_default();
            Ok(Port { name })
        })
    }

    /// What the other side connects to.
    pub fn name(&self) -> String {
        self.name.to_string_lossy().into_owned()
    }

    /// Waits for a connection.
    pub fn accept(&self) -> Result<Comm> {
        let mut raw = MaybeUninit::uninit();
        with_errors_returned(|| {
            check(
                // SAFETY: the port is open, the communicator lives.
                unsafe {
                    ffi::MPI_Comm_accept(
                        self.name.as_ptr(),
                        ffi::RSMPI_INFO_NULL,
                        0,
                        ffi::RSMPI_COMM_SELF,
                        raw.as_mut_ptr(),
                    )
                },
                "MPI_Comm_accept",
            )
        })?;
        // SAFETY: MPI has filled it in.
        adopt(unsafe { raw.assume_init() })
    }

    /// Closes the port.
    pub fn close(self) -> Result<()> {
        // SAFETY: the port is open and used no more.
        check(unsafe { ffi::MPI_Close_port(self.name.as_ptr()) }, "MPI_Close_port")
    }
}

/// Connects to a port of another job; waits until it is accepted.
pub fn connect(port: &str) -> Result<Comm> {
    let port = CString::new(port)
        .map_err(|_| Error::new(ErrorKind::Argument, "a port's name has no zero in it"))?;
    let mut raw = MaybeUninit::uninit();
    with_errors_returned(|| {
        let connected = check(
            // SAFETY: the name is terminated, the communicator lives.
            unsafe {
                ffi::MPI_Comm_connect(
                    port.as_ptr() as *const c_char,
                    ffi::RSMPI_INFO_NULL,
                    0,
                    ffi::RSMPI_COMM_SELF,
                    raw.as_mut_ptr(),
                )
            },
            "MPI_Comm_connect",
        );
        connected.map_err(|e| unsupported(e, "MPI_Comm_connect"))
    })?;
    // SAFETY: MPI has filled it in.
    adopt(unsafe { raw.assume_init() })
}

/// Both sides take a duplicate, which is ours, and let the first one go.
fn adopt(mut raw: ffi::MPI_Comm) -> Result<Comm> {
    // SAFETY: the intercommunicator is live.
    let comm = unsafe { Comm::dup_of(raw) }?;
    // SAFETY: nothing uses it.
    check(unsafe { ffi::MPI_Comm_free(&mut raw) }, "MPI_Comm_free")?;
    Ok(comm)
}

/// Ends a connection; nothing may be under way on it.
pub fn disconnect(comm: Comm) -> Result<()> {
    let mut raw = comm.raw;
    // SAFETY: the communicator is live and used no more.
    check(unsafe { ffi::MPI_Comm_disconnect(&mut raw) }, "MPI_Comm_disconnect")
}
