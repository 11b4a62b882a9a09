//! What a call of function shipping can fail with: a status that travels and a text.
//!
//! A [`Status`] is a number that both sides of a call understand: those of this
//! library have names, a handler may answer with any other. The names are those of
//! today's Mercury, and so are the meanings.

use crate::error::{Error, ErrorKind};
use crate::rpc::proc;
use std::fmt;
use std::ops::Deref;

/// How a call ended; zero is success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub i32);

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        impl Status {
            $($(#[$doc])* pub const $name: Status = Status($code);)*

            /// The name, as C programs write it without its prefix.
            pub fn name(self) -> &'static str {
                match self.0 {
                    $($code => stringify!($name),)*
                    _ => "OTHER",
                }
            }

            /// What it means.
            pub fn meaning(self) -> &'static str {
                match self.0 {
                    $($code => $text,)*
                    _ => "a status of the program's own",
                }
            }
        }
    };
}

statuses! {
    /// For no reason named below.
    FAIL = -1, "failed";
    /// Success.
    SUCCESS = 0, "success";
    /// No such function, or nobody runs it there.
    NO_MATCH = 1, "the function is not registered";
    /// Bytes that make no sense.
    PROTOCOL_ERROR = 2, "the bytes make no sense";
    /// Checksums differ.
    CHECKSUM_ERROR = 3, "checksums differ";
    /// The time-out is over.
    TIMEOUT = 4, "the time-out is over";
    /// No memory.
    NOMEM = 5, "no memory";
    /// An argument makes no sense.
    INVALID_ARG = 6, "an argument makes no sense";
    /// Past the end of a buffer.
    OVERFLOW = 7, "past the end of a buffer";
    /// A message that is too long.
    MSGSIZE = 8, "the message is too long";
    /// The network layer has failed.
    NA_ERROR = 9, "the network layer has failed";
    /// Not permitted.
    PERMISSION = 10, "not permitted";
    /// Interrupted.
    INTERRUPT = 11, "interrupted";
    /// To be tried again.
    AGAIN = 12, "to be tried again";
    /// Memory may not be used like that.
    ACCESS = 13, "memory may not be used like that";
    /// No such memory.
    FAULT = 14, "no such memory";
    /// In use.
    BUSY = 15, "in use";
    /// Exists already.
    EXIST = 16, "exists already";
    /// No such network.
    NODEV = 17, "no such network";
    /// No such protocol.
    PROTONOSUPPORT = 18, "no such protocol";
    /// No such operation.
    OPNOTSUPPORTED = 19, "no such operation";
    /// The address is in use.
    ADDRINUSE = 20, "the address is in use";
    /// No such address.
    ADDRNOTAVAIL = 21, "no such address";
    /// The peer cannot be reached.
    HOSTUNREACH = 22, "the peer cannot be reached";
    /// Cancelled.
    CANCELED = 23, "cancelled";
    /// Input or output has failed.
    IO_ERROR = 24, "input or output has failed";
}

impl Status {
    /// The status as a result.
    pub fn result(self, text: impl FnOnce() -> String) -> Result<()> {
        if self == Status::SUCCESS { Ok(()) } else { Err(Failure::new(self, text())) }
    }

    fn kind(self) -> ErrorKind {
        match self {
            Status::NOMEM => ErrorKind::Memory,
            Status::FAULT => ErrorKind::Address,
            Status::ADDRNOTAVAIL => ErrorKind::Rank,
            Status::BUSY | Status::EXIST | Status::OPNOTSUPPORTED => ErrorKind::State,
            Status::INVALID_ARG
            | Status::OVERFLOW
            | Status::MSGSIZE
            | Status::PERMISSION
            | Status::ACCESS
            | Status::PROTOCOL_ERROR
            | Status::CHECKSUM_ERROR
            | Status::NO_MATCH
            | Status::PROTONOSUPPORT => ErrorKind::Argument,
            Status::NODEV | Status::HOSTUNREACH | Status::NA_ERROR => ErrorKind::Mpi,
            _ => ErrorKind::Internal,
        }
    }
}

/// A failed call; one pointer, as [`Error`] is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(Box<Cause>);

/// Why a call has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// How it ended.
    pub status: Status,
    /// What is wrong, with which values, and what to do about it.
    pub text: String,
    kind: ErrorKind,
}

/// The result of the calls of function shipping.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure with a text.
    #[cold]
    pub fn new(status: Status, text: impl Into<String>) -> Failure {
        Failure(Box::new(Cause { status, text: text.into(), kind: status.kind() }))
    }

    /// What kind of error it is: `State` after the end of the runtime.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
}

impl Deref for Failure {
    type Target = Cause;

    fn deref(&self) -> &Cause {
        &self.0
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.text, self.status.name(), self.status.0)
    }
}

impl std::error::Error for Failure {}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let status = match error.kind() {
            ErrorKind::Argument | ErrorKind::Handle | ErrorKind::Type => Status::INVALID_ARG,
            ErrorKind::Rank => Status::ADDRNOTAVAIL,
            ErrorKind::Address => Status::FAULT,
            ErrorKind::Memory => Status::NOMEM,
            ErrorKind::State | ErrorKind::Internal | ErrorKind::Mismatch => Status::FAIL,
            ErrorKind::Mpi => Status::NA_ERROR,
        };
        let text = error.detail().to_string();
        Failure(Box::new(Cause { status, text, kind: error.kind() }))
    }
}

impl From<proc::Fault> for Failure {
    fn from(fault: proc::Fault) -> Failure {
        let status = match fault {
            proc::Fault::Overflow { .. } => Status::OVERFLOW,
            proc::Fault::Protocol(_) => Status::PROTOCOL_ERROR,
            proc::Fault::Checksum { .. } | proc::Fault::Length { .. } => Status::CHECKSUM_ERROR,
            proc::Fault::Memory(_) => Status::NOMEM,
            proc::Fault::Argument(_) => Status::INVALID_ARG,
            proc::Fault::Bulk { status, .. } => Status(status),
        };
        Failure::new(status, fault.to_string())
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        Error::new(failure.kind(), failure.to_string())
    }
}

/// Returns early with a [`Failure`].
macro_rules! refuse {
    ($status:ident, $($arg:tt)+) => {
        return Err($crate::rpc::failure::Failure::new(
            $crate::rpc::failure::Status::$status,
            format!($($arg)+),
        ))
    };
}
pub(crate) use refuse;
