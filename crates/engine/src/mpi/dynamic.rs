//! Connections between separately launched jobs: ports, accept and connect.
//!
//! A connection is an intercommunicator with one process on each side. Some MPIs cannot create one:
//! MPICH over UCX lacks ports, and Intel MPI crashes if it has not started a network. The error
//! then states this. Each accept and each connect runs over a communicator of this crate
//! ([`alone`]), one at a time on each, so that the program's communicators and their error handlers
//! stay unaffected.
//!
//! Accept and connect lack a usable timeout: Open MPI gives up after ten minutes. In these calls
//! Open MPI 4 waits for a name that the other side publishes. Publishing this name with a value
//! that is not a process makes the call fail ([`Port::call_off`]).

use super::Comm;
use super::call::check;
use super::init::library_version;
use crate::error::{Error, ErrorKind, Result};
use mpi::ffi;
use parking_lot::Mutex;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::sync::OnceLock;

/// Size of the buffer for a port name in bytes, more than `MPI_MAX_PORT_NAME` of both MPIs (1024
/// and 256).
const PORT_NAME: usize = 4096;

/// A port on which connections are accepted. [`Port::close`] closes it.
#[derive(Debug, Clone)]
pub struct Port {
    name: CString,
}

/// Runs `body` while MPI returns errors on the world and self communicators and does not abort. A
/// lock admits one thread at a time, because each thread restores the error handlers that it found.
fn with_errors_returned<R>(body: impl FnOnce() -> Result<R>) -> Result<R> {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock();
    // SAFETY: the two names are constants of the bindings.
    let (world, own) = unsafe { (ffi::RSMPI_COMM_WORLD, ffi::RSMPI_COMM_SELF) };
    let _before = (ErrorsReturned::on(world)?, ErrorsReturned::on(own)?);
    body()
}

/// A communicator whose errors MPI returns. Restores the previous error handler on drop.
struct ErrorsReturned {
    comm: ffi::MPI_Comm,
    before: ffi::MPI_Errhandler,
}

impl ErrorsReturned {
    /// `comm` must be one of MPI's own communicators.
    fn on(comm: ffi::MPI_Comm) -> Result<ErrorsReturned> {
        let mut before = MaybeUninit::uninit();
        check(
            // SAFETY: MPI's own communicators are live while MPI runs.
            unsafe { ffi::MPI_Comm_get_errhandler(comm, before.as_mut_ptr()) },
            "MPI_Comm_get_errhandler",
        )?;
        // SAFETY: the call succeeded, so MPI has filled `before`.
        let returned = ErrorsReturned { comm, before: unsafe { before.assume_init() } };
        check(
            // SAFETY: MPI's own communicators are live while MPI runs, and the handler is MPI's own.
            unsafe { ffi::MPI_Comm_set_errhandler(comm, ffi::RSMPI_ERRORS_RETURN) },
            "MPI_Comm_set_errhandler",
        )?;
        Ok(returned)
    }
}

impl Drop for ErrorsReturned {
    fn drop(&mut self) {
        // SAFETY: the communicator is live, and the previous handler is valid until it is released
        // here, once.
        unsafe {
            ffi::MPI_Comm_set_errhandler(self.comm, self.before);
            ffi::MPI_Errhandler_free(&mut self.before);
        }
    }
}

fn unsupported(error: Error, call: &str) -> Error {
    Error::new(
        ErrorKind::Mpi,
        format!(
            "this MPI cannot connect jobs: {call} reports '{}'. Open MPI can, if both launchers \
             use the same ompi-server",
            error.detail().lines().last().unwrap_or("").trim()
        ),
    )
}

/// Returns the error if `MPI_Open_port` must not be called. Intel MPI (at least 2021.19) crashes in
/// this call if all ranks are on one node, because it then starts a network only on request
/// (`tests/mpi-bugs/open_port.c`).
fn crashes(version: &str, setting: impl Fn(&str) -> Option<String>) -> Option<Error> {
    let on = |value: String| matches!(value.as_str(), "1" | "on" | "yes" | "enable");
    let on_one_node = setting("MPI_LOCALNRANKS") == setting("PMI_SIZE");
    let has_network = setting("I_MPI_SPAWN").is_some_and(on)
        || setting("I_MPI_FABRICS").is_some_and(|fabrics| fabrics.contains("ofi"));
    if !version.contains("Intel") || !on_one_node || has_network {
        return None;
    }
    Some(Error::new(
        ErrorKind::Mpi,
        "Intel MPI has no network in a job on one node, and MPI_Open_port would crash: set \
         I_MPI_SPAWN=1 for the launcher",
    ))
}

impl Port {
    /// Opens a port.
    ///
    /// # Errors
    /// Returns `Mpi` if this MPI does not support ports.
    pub fn open() -> Result<Port> {
        if let Some(error) = crashes(&library_version(), |name| std::env::var(name).ok()) {
            return Err(error);
        }
        with_errors_returned(|| {
            let mut name = vec![0u8; PORT_NAME];
            // SAFETY: the buffer is longer than any port name.
            let opened = check(
                unsafe { ffi::MPI_Open_port(ffi::RSMPI_INFO_NULL, name.as_mut_ptr().cast()) },
                "MPI_Open_port",
            );
            opened.map_err(|e| unsupported(e, "MPI_Open_port"))?;
            let name = CStr::from_bytes_until_nul(&name).map(CStr::to_owned).unwrap_or_default();
            Ok(Port { name })
        })
    }

    /// Returns the port with this name, which another process has opened.
    ///
    /// # Errors
    /// Returns `Argument` if `name` is empty, too long, or contains a null byte.
    pub fn named(name: &str) -> Result<Port> {
        match CString::new(name) {
            Ok(text) if !name.is_empty() && name.len() < PORT_NAME => Ok(Port { name: text }),
            _ => Err(Error::new(ErrorKind::Argument, "invalid port name")),
        }
    }

    /// Returns the name that the other side connects to.
    pub fn name(&self) -> String {
        self.name.to_string_lossy().into_owned()
    }

    /// Waits for a connection. Nothing else may use `over` meanwhile.
    ///
    /// # Errors
    /// Returns MPI's error, in particular if the call was cancelled by [`Port::call_off`].
    pub fn accept(&self, over: &Comm) -> Result<Comm> {
        let mut raw = MaybeUninit::uninit();
        check(
            // SAFETY: the port is open, and `live` returns a live communicator.
            unsafe {
                ffi::MPI_Comm_accept(
                    self.name.as_ptr(),
                    ffi::RSMPI_INFO_NULL,
                    0,
                    over.live()?,
                    raw.as_mut_ptr(),
                )
            },
            "MPI_Comm_accept",
        )?;
        // SAFETY: the call succeeded, so MPI has filled `raw`.
        adopt(unsafe { raw.assume_init() })
    }

    /// Connects to the port of another job, and waits until the connection is accepted. Nothing
    /// else may use `over` meanwhile.
    ///
    /// # Errors
    /// Returns MPI's error, in particular if the call was cancelled by [`Port::call_off`].
    pub fn connect(&self, over: &Comm) -> Result<Comm> {
        let mut raw = MaybeUninit::uninit();
        let connected = check(
            // SAFETY: the name is null-terminated, and `live` returns a live communicator.
            unsafe {
                ffi::MPI_Comm_connect(
                    self.name.as_ptr(),
                    ffi::RSMPI_INFO_NULL,
                    0,
                    over.live()?,
                    raw.as_mut_ptr(),
                )
            },
            "MPI_Comm_connect",
        );
        connected.map_err(|e| unsupported(e, "MPI_Comm_connect"))?;
        // SAFETY: the call succeeded, so MPI has filled `raw`.
        adopt(unsafe { raw.assume_init() })
    }

    /// Makes the [`Port::accept`] or [`Port::connect`] fail that waits at this port in this
    /// process. Returns false if this MPI does not support it. The call then ends only when MPI
    /// gives up.
    ///
    /// # Errors
    /// Returns MPI's error.
    pub fn call_off(&self, waiting: Waiting) -> Result<bool> {
        if !can_call_off() {
            return Ok(false);
        }
        let awaited = match waiting {
            Waiting::Accept => "connect",
            Waiting::Connect => "accept",
        };
        let mut key = self.name.as_bytes().to_vec();
        key.extend_from_slice(format!(":{awaited}\0").as_bytes());
        with_errors_returned(|| {
            check(
                // SAFETY: both strings are null-terminated.
                unsafe {
                    ffi::MPI_Publish_name(
                        key.as_ptr().cast(),
                        ffi::RSMPI_INFO_NULL,
                        c"nobody".as_ptr(),
                    )
                },
                "MPI_Publish_name",
            )
        })?;
        Ok(true)
    }

    /// Closes the port.
    ///
    /// # Errors
    /// Returns MPI's error.
    pub fn close(self) -> Result<()> {
        // SAFETY: the port is open, and its owner does not use it afterwards.
        check(unsafe { ffi::MPI_Close_port(self.name.as_ptr()) }, "MPI_Close_port")
    }
}

/// A call that waits at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// [`Port::accept`]
    Accept,
    /// [`Port::connect`]
    Connect,
}

/// Returns whether [`Port::call_off`] works. It relies on the names that Open MPI 4 publishes;
/// later versions read other values.
fn can_call_off() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| library_version().starts_with("Open MPI v4."))
}

/// Creates a communicator of this process alone, over which a connection is made.
///
/// # Errors
/// Returns MPI's error.
pub fn alone() -> Result<Comm> {
    // SAFETY: `MPI_COMM_SELF` is live while MPI runs.
    unsafe { Comm::dup_of(ffi::RSMPI_COMM_SELF) }
}

/// Ignores SIGPIPE from now on, unless the program handles it. Open MPI writes to the sockets of a
/// peer that has died, and the signal would end this process.
pub fn outlive_broken_pipes() {
    // SAFETY: both calls get valid structures, and `now` is filled before it is read. A handler of
    // the program is not replaced.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut now) == 0
            && now.sa_sigaction == libc::SIG_DFL
        {
            now.sa_sigaction = libc::SIG_IGN;
            libc::sigaction(libc::SIGPIPE, &now, std::ptr::null_mut());
        }
    }
}

/// Replaces the intercommunicator by a duplicate that this crate owns, and frees the original.
/// Collective over both sides.
fn adopt(mut raw: ffi::MPI_Comm) -> Result<Comm> {
    // SAFETY: `raw` is a live intercommunicator.
    let comm = unsafe { Comm::dup_inter(raw) }?;
    // SAFETY: only this function uses `raw`.
    check(unsafe { ffi::MPI_Comm_free(&mut raw) }, "MPI_Comm_free")?;
    Ok(comm)
}

#[cfg(test)]
mod tests {
    use super::crashes;

    #[test]
    fn intel_mpi_without_a_network_opens_no_port() {
        let intel = "Intel(R) MPI Library 2021.19 for Linux* OS";
        let job = [("MPI_LOCALNRANKS", "2"), ("PMI_SIZE", "2")];
        let refused = |version: &str, more: &[(&str, &str)]| {
            let find = |name: &str| {
                let all = more.iter().chain(&job);
                all.clone().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_string())
            };
            crashes(version, find).is_some()
        };
        assert!(refused(intel, &[]));
        assert!(refused(intel, &[("I_MPI_FABRICS", "shm")]));
        assert!(refused(intel, &[("I_MPI_SPAWN", "0")]));
        assert!(!refused(intel, &[("I_MPI_SPAWN", "1")]));
        assert!(!refused(intel, &[("I_MPI_FABRICS", "shm:ofi")]));
        assert!(!refused(intel, &[("PMI_SIZE", "4")]), "there are other nodes");
        assert!(!refused("MPICH Version: 4.0.2", &[]));
    }
}
