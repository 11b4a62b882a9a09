//! Access permissions of memory handles.

use crate::failure::{Result, refuse};

/// The access that other processes have to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read only.
    ReadOnly,
    /// Write only.
    WriteOnly,
    /// Read and write.
    ReadWrite,
}

impl Access {
    /// Converts the flags of the C interfaces.
    ///
    /// # Errors
    /// Returns `INVALID_ARG` if the flags are not a permission.
    pub fn from_flags(flags: u64) -> Result<Access> {
        match flags {
            1 => Ok(Access::ReadOnly),
            2 => Ok(Access::WriteOnly),
            3 => Ok(Access::ReadWrite),
            _ => refuse!(
                INVALID_ARG,
                "{flags:#x} is not a permission; expected read-only, write-only or read-write"
            ),
        }
    }

    /// Returns the flags of the C interfaces.
    pub fn flags(self) -> u8 {
        match self {
            Access::ReadOnly => 1,
            Access::WriteOnly => 2,
            Access::ReadWrite => 3,
        }
    }

    /// Returns whether the memory may be read.
    pub fn readable(self) -> bool {
        self != Access::WriteOnly
    }

    /// Returns whether the memory may be written.
    pub fn writable(self) -> bool {
        self != Access::ReadOnly
    }
}
