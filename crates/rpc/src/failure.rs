//! The errors of function shipping: a status that both ranks understand, and a text.
//!
//! A [`Status`] is a number. The statuses of this library have names, and a handler may answer with
//! any other number. The meanings are those of Mercury, and so are the names, except that Mercury
//! 2.4 calls `NO_MATCH` `HG_NOENTRY` and `FAIL` `HG_OTHER_ERROR`.

use crate::proc;
use portolan_base::error::{Error, ErrorKind};
use std::fmt;

/// The outcome of a call; zero is success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub i32);

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        impl Status {
            $($(#[$doc])* pub const $name: Status = Status($code);)*

            /// Returns the name, as C programs write it without its prefix.
            pub fn name(self) -> &'static str {
                match self.0 {
                    $($code => stringify!($name),)*
                    _ => "OTHER",
                }
            }

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
    /// A failure that no other status describes.
    FAIL = -1, "failed";
    /// Success.
    SUCCESS = 0, "success";
    /// The function is not registered, or the target has nothing that runs it.
    NO_MATCH = 1, "the function is not registered";
    /// The bytes are invalid.
    PROTOCOL_ERROR = 2, "the bytes are invalid";
    /// The checksums differ.
    CHECKSUM_ERROR = 3, "checksums differ";
    /// The time-out has expired.
    TIMEOUT = 4, "the time-out has expired";
    /// Memory is exhausted.
    NOMEM = 5, "no memory";
    /// An argument is invalid.
    INVALID_ARG = 6, "invalid argument";
    /// An access past the end of a buffer.
    OVERFLOW = 7, "past the end of a buffer";
    /// The message is too long.
    MSGSIZE = 8, "the message is too long";
    /// The network layer has failed.
    NA_ERROR = 9, "the network layer has failed";
    /// The operation is not permitted.
    PERMISSION = 10, "not permitted";
    /// The operation was interrupted.
    INTERRUPT = 11, "interrupted";
    /// The operation should be tried again.
    AGAIN = 12, "try again";
    /// The memory does not permit this access.
    ACCESS = 13, "the memory does not permit this access";
    /// The memory does not exist.
    FAULT = 14, "no such memory";
    /// The object is in use.
    BUSY = 15, "in use";
    /// The object exists already.
    EXIST = 16, "exists already";
    /// The network does not exist.
    NODEV = 17, "no such network";
    /// The protocol does not exist.
    PROTONOSUPPORT = 18, "no such protocol";
    /// The operation does not exist.
    OPNOTSUPPORTED = 19, "no such operation";
    /// The address is in use.
    ADDRINUSE = 20, "the address is in use";
    /// The address does not exist.
    ADDRNOTAVAIL = 21, "no such address";
    /// The peer cannot be reached.
    HOSTUNREACH = 22, "the peer cannot be reached";
    /// The operation was cancelled.
    CANCELED = 23, "cancelled";
    /// Input or output has failed.
    IO_ERROR = 24, "input or output has failed";
    /// The peer cannot be reached because of a firewall.
    HOSTFIREWALL = 25, "a firewall hides the peer";
}

impl Status {
    /// Converts the status to a result; `text` supplies the text of the failure.
    ///
    /// # Errors
    /// Returns a [`Failure`] with this status if it is not [`Status::SUCCESS`].
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
            Status::NODEV | Status::HOSTUNREACH | Status::HOSTFIREWALL | Status::NA_ERROR => {
                ErrorKind::Mpi
            }
            _ => ErrorKind::Internal,
        }
    }
}

/// A failed call. It converts into [`Error`] and, like `Error`, has the size of a pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(Box<Cause>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Cause {
    status: Status,
    text: String,
    kind: ErrorKind,
}

/// The result of the functions of function shipping.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    #[cold]
    pub fn new(status: Status, text: impl Into<String>) -> Failure {
        Failure(Box::new(Cause { status, text: text.into(), kind: status.kind() }))
    }

    pub fn status(&self) -> Status {
        self.0.status
    }

    /// Returns the description of the fault, with its values and a remedy.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Returns the kind of the error. It is `State` if the runtime has ended.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text(), self.status().name())
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
            ErrorKind::Mpi => Status::NA_ERROR,
            // `State`, `Internal` and `Mismatch`, and kinds of later versions.
            _ => Status::FAIL,
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
#[doc(hidden)]
#[macro_export]
macro_rules! __refuse {
    ($status:ident, $($arg:tt)+) => {
        return Err($crate::failure::Failure::new(
            $crate::failure::Status::$status,
            format!($($arg)+),
        ))
    };
}
pub use __refuse as refuse;
