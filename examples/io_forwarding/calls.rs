//! The calls that travel: their names, inputs and outputs.

use portolan::rpc::Failure;
use portolan::rpc::bulk::Bulk;
use portolan::rpc::hg::{Class, Rpc};
use serde::{Deserialize, Serialize};

/// What a file call gives: something, or the errno value of the I/O rank's system.
pub type Outcome<T> = Result<T, i32>;

/// Opens a file below the I/O rank's directory.
#[derive(Debug, Serialize, Deserialize)]
pub struct Open {
    /// Where, relative to the directory.
    pub path: String,
    /// For writing: it is made, or cut to nothing. Else for reading.
    pub create: bool,
}

/// Reads a file into memory, or writes memory to a file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Move {
    /// The open file.
    pub file: u64,
    /// Where in the file.
    pub offset: u64,
    /// The client's memory, all of it, in the order of its segments.
    pub data: Bulk,
}

/// What is known of a file.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Status {
    /// Bytes.
    pub size: u64,
    /// Type and permissions.
    pub mode: u32,
}

/// The functions, by the names that both sides know.
#[derive(Debug, Clone)]
pub struct Calls {
    /// The number of the open file.
    pub open: Rpc<Open, Outcome<u64>>,
    /// The bytes that were written: all, or the call fails.
    pub write: Rpc<Move, Outcome<u64>>,
    /// The bytes that were read: fewer where the file ends.
    pub read: Rpc<Move, Outcome<u64>>,
    /// Of a path.
    pub stat: Rpc<String, Outcome<Status>>,
    /// Of an open file.
    pub close: Rpc<u64, Outcome<()>>,
    /// The client has no further calls.
    pub leave: Rpc<(), ()>,
}

/// Their names.
pub mod name {
    pub const OPEN: &str = "io.open";
    pub const WRITE: &str = "io.write";
    pub const READ: &str = "io.read";
    pub const STAT: &str = "io.stat";
    pub const CLOSE: &str = "io.close";
    pub const LEAVE: &str = "io.leave";
}

impl Calls {
    /// For one who only calls them.
    pub fn of_client(class: &Class) -> Result<Calls, Failure> {
        Ok(Calls {
            open: class.client(name::OPEN)?,
            write: class.client(name::WRITE)?,
            read: class.client(name::READ)?,
            stat: class.client(name::STAT)?,
            close: class.client(name::CLOSE)?,
            leave: class.client(name::LEAVE)?,
        })
    }
}
