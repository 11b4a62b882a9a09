//! The remote calls: their names, inputs and outputs.

use portolan::rpc::bulk::Bulk;
use portolan::rpc::{Class, Failure, Rpc};
use serde::{Deserialize, Serialize};

/// A value, or the errno value of the I/O rank's system.
pub type Outcome<T> = Result<T, i32>;

#[derive(Debug, Serialize, Deserialize)]
pub struct Open {
    /// Path relative to the I/O rank's directory.
    pub path: String,
    /// Whether to create or truncate the file for writing. Otherwise it is opened for reading.
    pub create: bool,
}

/// Reads a file into memory, or writes memory to a file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Move {
    /// Number of the open file.
    pub file: u64,
    /// Offset in the file in bytes.
    pub offset: u64,
    /// The client's memory. The call transfers all of it, in the order of its segments.
    pub data: Bulk,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Status {
    pub size: u64,
    pub mode: u32,
}

/// The functions. Both sides register them under the same names.
#[derive(Debug, Clone)]
pub struct Calls {
    /// Opens a file and returns its number.
    pub open: Rpc<Open, Outcome<u64>>,
    /// Returns the number of bytes written, which is all of them unless the call fails.
    pub write: Rpc<Move, Outcome<u64>>,
    /// Returns the number of bytes read, which is smaller if the file ends.
    pub read: Rpc<Move, Outcome<u64>>,
    /// Returns the properties of the file at a path.
    pub stat: Rpc<String, Outcome<Status>>,
    /// Closes an open file.
    pub close: Rpc<u64, Outcome<()>>,
    /// Announces that the client makes no further calls.
    pub leave: Rpc<(), ()>,
    /// Ends a server that was started by hand.
    pub end: Rpc<(), ()>,
}

pub mod name {
    pub const OPEN: &str = "io.open";
    pub const WRITE: &str = "io.write";
    pub const READ: &str = "io.read";
    pub const STAT: &str = "io.stat";
    pub const CLOSE: &str = "io.close";
    pub const LEAVE: &str = "io.leave";
    pub const END: &str = "io.end";
}

impl Calls {
    /// Returns the functions of a rank that only calls them.
    pub fn of_client(class: &Class) -> Result<Calls, Failure> {
        Ok(Calls {
            open: class.client(name::OPEN)?,
            write: class.client(name::WRITE)?,
            read: class.client(name::READ)?,
            stat: class.client(name::STAT)?,
            close: class.client(name::CLOSE)?,
            leave: class.client(name::LEAVE)?,
            end: class.client(name::END)?,
        })
    }
}
