//! Access permissions of memory handles.

use crate::failure::{Result, refuse};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    ReadOnly,
    WriteOnly,
    ReadWrite,
}

impl Access {
    /// Converts the flags of the C interfaces. Returns `INVALID_ARG` for other values.
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

    pub fn readable(self) -> bool {
        self != Access::WriteOnly
    }

    pub fn writable(self) -> bool {
        self != Access::ReadOnly
    }
}
