//! Errors of encoding and decoding.

use portolan_base::error::{Error, ErrorKind};
use std::fmt;

/// A failed encoding or decoding.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The bytes end before the parameters do.
    Overflow {
        /// Number of bytes needed.
        needed: u64,
        /// Number of bytes left.
        left: usize,
    },
    /// The bytes are invalid, or the value has no encoding.
    Protocol(String),
    /// The checksum of the consumed bytes (`found`) differs from the received one (`sent`).
    Checksum {
        /// Name of the checksum method.
        method: &'static str,
        sent: u64,
        found: u64,
    },
    /// The trailer records another number of bytes (`sent`) than were consumed (`found`).
    Length {
        /// Number of bytes according to the trailer.
        sent: u64,
        found: usize,
    },
    /// A buffer of this many bytes cannot be allocated.
    Memory(usize),
    /// The call is invalid for this proc.
    Argument(String),
    /// A bulk handle among the parameters was refused.
    Bulk {
        /// The status of the refusal.
        status: i32,
        text: String,
    },
}

impl Fault {
    #[doc(hidden)]
    pub fn protocol(text: impl Into<String>) -> Fault {
        Fault::Protocol(text.into())
    }

    #[doc(hidden)]
    pub fn argument(text: impl Into<String>) -> Fault {
        Fault::Argument(text.into())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Overflow { needed, left } => write!(
                f,
                "{needed} bytes are needed but {left} are left: sender and receiver describe \
                 the parameters differently, or the message is cut short"
            ),
            Fault::Protocol(text) | Fault::Argument(text) | Fault::Bulk { text, .. } => {
                f.write_str(text)
            }
            Fault::Checksum { method, sent, found } => write!(
                f,
                "the {method} sent is {sent:#x}, but the {method} of the decoded bytes is \
                 {found:#x}: the message is damaged"
            ),
            Fault::Length { sent, found } => write!(
                f,
                "{found} bytes were decoded, but the trailer after them says {sent}: some \
                 encoded parameters were not decoded, or the message is damaged"
            ),
            Fault::Memory(bytes) => write!(f, "no memory for a buffer of {bytes} bytes"),
        }
    }
}

impl std::error::Error for Fault {}

impl serde::ser::Error for Fault {
    fn custom<T: fmt::Display>(text: T) -> Fault {
        Fault::Protocol(text.to_string())
    }
}

impl serde::de::Error for Fault {
    fn custom<T: fmt::Display>(text: T) -> Fault {
        Fault::Protocol(text.to_string())
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        let kind = match fault {
            Fault::Memory(_) => ErrorKind::Memory,
            _ => ErrorKind::Argument,
        };
        Error::new(kind, fault.to_string())
    }
}
