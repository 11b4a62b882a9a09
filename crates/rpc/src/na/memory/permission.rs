//! Permissions of memory handles.

use crate::failure::{Result, refuse};
use portolan_engine::any_memory::Direction;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    ReadOnly,
    WriteOnly,
    ReadWrite,
}

impl Permission {
    /// Converts the flags of the C interfaces. Returns `INVALID_ARG` for other values.
    pub fn from_flags(flags: u64) -> Result<Permission> {
        match flags {
            1 => Ok(Permission::ReadOnly),
            2 => Ok(Permission::WriteOnly),
            3 => Ok(Permission::ReadWrite),
            _ => refuse!(
                INVALID_ARG,
                "{flags:#x} is not a permission; expected read-only, write-only or read-write"
            ),
        }
    }

    /// Returns the flags of the C interfaces.
    pub fn flags(self) -> u8 {
        match self {
            Permission::ReadOnly => 1,
            Permission::WriteOnly => 2,
            Permission::ReadWrite => 3,
        }
    }

    pub fn readable(self) -> bool {
        self != Permission::WriteOnly
    }

    pub fn writable(self) -> bool {
        self != Permission::ReadOnly
    }

    /// Whether another process may put bytes to the memory, or get them.
    pub fn allows(self, direction: Direction) -> bool {
        match direction {
            Direction::Put => self.writable(),
            Direction::Get => self.readable(),
        }
    }
}
