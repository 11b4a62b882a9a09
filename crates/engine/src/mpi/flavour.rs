//! The MPI that the crate was compiled for.
//!
//! A library for the standard binary interface of MPI runs on every MPI that offers it. It asks the
//! MPI at run time which one it is.

use super::init::library_version;
use std::os::raw::c_int;
use std::sync::OnceLock;

unsafe extern "C" {
    fn portolan_shim_flavour() -> c_int;
}

/// The number of the standard binary interface.
const STANDARD_ABI: c_int = 3;

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
    /// Returns the MPI that the crate was compiled for. With the standard binary interface, this is
    /// the MPI that the process runs on.
    pub fn built() -> Flavour {
        static RUNNING: OnceLock<Flavour> = OnceLock::new();
        // SAFETY: the shim returns a constant.
        match unsafe { portolan_shim_flavour() } {
            1 => Flavour::Mpich,
            2 => Flavour::OpenMpi,
            STANDARD_ABI => *RUNNING.get_or_init(|| Flavour::of(&library_version())),
            _ => Flavour::Other,
        }
    }

    /// Returns whether the crate was compiled for the standard binary interface.
    pub fn is_standard_abi() -> bool {
        // SAFETY: the shim returns a constant.
        unsafe { portolan_shim_flavour() == STANDARD_ABI }
    }

    /// Returns the name of what the crate was compiled for.
    pub fn name_of_built() -> &'static str {
        if Flavour::is_standard_abi() { "the standard MPI ABI" } else { Flavour::built().name() }
    }

    /// Returns the MPI with this version text.
    pub(super) fn of(version: &str) -> Flavour {
        let is = |name| version.contains(name);
        if is("Open MPI") {
            Flavour::OpenMpi
        } else if is("MPICH") || is("MVAPICH") || is("Intel") {
            Flavour::Mpich
        } else {
            Flavour::Other
        }
    }

    /// Returns the name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Flavour::Mpich => "MPICH",
            Flavour::OpenMpi => "Open MPI",
            Flavour::Other => "another MPI",
        }
    }
}
