//! The MPI that the crate was compiled for.

use std::os::raw::c_int;

unsafe extern "C" {
    fn portolan_shim_flavour() -> c_int;
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
    /// Returns the MPI that the crate was compiled for.
    pub fn built() -> Flavour {
        // SAFETY: the shim returns a constant.
        match unsafe { portolan_shim_flavour() } {
            1 => Flavour::Mpich,
            2 => Flavour::OpenMpi,
            _ => Flavour::Other,
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
