//! The MPI that the crate was compiled for. A library for MPI's standard binary interface runs on
//! every MPI that offers it, and asks it which one it is.

use super::init::library_version;
use std::os::raw::c_int;
use std::sync::OnceLock;

unsafe extern "C" {
    fn portolan_shim_flavour() -> c_int;
}

const STANDARD_ABI: c_int = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// MPICH and libraries with its binary interface.
    Mpich,
    OpenMpi,
    Other,
}

impl Flavour {
    /// With the standard binary interface, the MPI that the crate runs on.
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

    pub fn is_standard_abi() -> bool {
        // SAFETY: the shim returns a constant.
        unsafe { portolan_shim_flavour() == STANDARD_ABI }
    }

    pub fn name_of_built() -> &'static str {
        if Flavour::is_standard_abi() { "the standard MPI ABI" } else { Flavour::built().name() }
    }

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

    pub fn name(self) -> &'static str {
        match self {
            Flavour::Mpich => "MPICH",
            Flavour::OpenMpi => "Open MPI",
            Flavour::Other => "another MPI",
        }
    }
}
