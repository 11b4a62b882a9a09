//! What others may do with memory.

use crate::rpc::failure::{Result, refuse};

/// What others may do with memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read it.
    ReadOnly,
    /// Write it.
    WriteOnly,
    /// Both.
    ReadWrite,
}

impl Access {
    /// Of the flags of C.
    ///
    /// # Errors
    /// `INVALID_ARG` for others.
    pub fn from_flags(flags: u64) -> Result<Access> {
        match flags {
            1 => Ok(Access::ReadOnly),
            2 => Ok(Access::WriteOnly),
            3 => Ok(Access::ReadWrite),
            _ => refuse!(
                INVALID_ARG,
                "{flags:#x} is no permission; expected read-only, write-only or read-write"
            ),
        }
    }

    /// As C has it.
    pub fn flags(self) -> u8 {
        match self {
            Access::ReadOnly => 1,
            Access::WriteOnly => 2,
            Access::ReadWrite => 3,
        }
    }

    /// Whether it may be read.
    pub fn readable(self) -> bool {
        self != Access::WriteOnly
    }

    /// Whether it may be written.
    pub fn writable(self) -> bool {
        self != Access::ReadOnly
    }
}
