//! One error type for every layer.
//!
//! The layer that finds a fault states what is wrong and with which numbers;
//! the face that was called adds its own name ([`Error::in_call`]); only the
//! face decides whether to log, return a code or abort. Outputs of a call are
//! written only on success.

use crate::message::RankPrefix;
use std::fmt;

/// What went wrong, in the classes that the C interfaces return as codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum ErrorKind {
    /// An argument is malformed: a negative count, a null pointer with bytes.
    Argument = 1,
    /// A rank outside the group.
    Rank = 2,
    /// An address outside every segment, or an extent that leaves its segment.
    Address = 3,
    /// Memory that cannot be had.
    Memory = 4,
    /// The runtime is not initialised, is finalised, or the object was freed.
    State = 5,
    /// A handle that was freed, damaged, or used for mixed kinds of operation.
    Handle = 6,
    /// An unknown datatype or operation, or an unaligned location.
    Type = 7,
    /// The MPI library reported a failure.
    Mpi = 8,
    /// A fault of this library.
    Internal = 9,
    /// Ranks of a group made different collective calls. The group cannot be used any more.
    Mismatch = 10,
}

impl ErrorKind {
    /// The class that a code stands for; `Internal` for any other number.
    pub fn from_code(code: i32) -> ErrorKind {
        use ErrorKind::*;
        [Argument, Rank, Address, Memory, State, Handle, Type, Mpi, Mismatch]
            .into_iter()
            .find(|k| k.code() == code)
            .unwrap_or(Internal)
    }

    /// The code that the C interfaces return (`PORTOLAN_ERR_*`).
    pub fn code(self) -> i32 {
        self as i32
    }
}

/// A failed call: what class, in which call, on which rank, and the details.
///
/// It is one pointer, so that a result without a value fits a register: calls that
/// succeed pay for nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(Box<Fault>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Fault {
    kind: ErrorKind,
    call: Option<&'static str>,
    rank: Option<usize>,
    /// The error was written to the log.
    logged: bool,
    detail: String,
}

static_assertions::const_assert_eq!(size_of::<Result<()>>(), size_of::<usize>());

/// The result of every fallible call of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of class `kind`; `detail` says what, with which values, and
    /// what to do about it.
    #[cold]
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Self {
        let (rank, detail) = (crate::process::world_rank(), detail.into());
        Error(Box::new(Fault { kind, call: None, rank, logged: false, detail }))
    }

    /// The error of a call in a forked child of a rank.
    #[cold]
    pub(crate) fn in_fork() -> Self {
        Error::new(
            ErrorKind::State,
            format!(
                "process {} was forked from the process of this rank, which alone may use the library and MPI; \
                 make the call there, or start another program by exec",
                std::process::id()
            ),
        )
    }

    /// Names the public call in which the error surfaced (the outermost wins).
    #[cold]
    pub fn in_call(mut self, call: &'static str) -> Self {
        self.0.call = Some(call);
        self
    }

    /// Replaces the detail.
    #[cold]
    pub(crate) fn reworded(mut self, detail: String) -> Self {
        self.0.detail = detail;
        self
    }

    /// Writes the error to the log, unless it was written before.
    #[cold]
    pub(crate) fn log_once(&mut self) {
        if !std::mem::replace(&mut self.0.logged, true) {
            log::error!("{self}");
        }
    }

    /// The class of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What is wrong, without the call and the rank.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }
}

/// `rank 3: ARMCI_Put: what is wrong`; with `{:#}` without the rank, for a message that names it already.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { call, rank, detail, .. } = &*self.0;
        if !f.alternate() {
            write!(f, "{}", RankPrefix(*rank))?;
        }
        if let Some(call) = call {
            write!(f, "{call}: ")?;
        }
        f.write_str(detail)
    }
}

impl std::error::Error for Error {}

/// Refuses a call in a forked child.
///
/// # Errors
/// `State` in a forked child.
#[inline]
pub(crate) fn unless_forked() -> Result<()> {
    if crate::process::is_forked() { Err(Error::in_fork()) } else { Ok(()) }
}

/// Returns early with an [`Error`] of a class and a formatted detail.
macro_rules! fail {
    ($kind:ident, $($arg:tt)+) => {
        return Err($crate::error::Error::new($crate::error::ErrorKind::$kind, format!($($arg)+)))
    };
}
pub(crate) use fail;

/// Makes room in a list for `more` entries, whose number a caller or a file says.
///
/// # Errors
/// `Memory`; the list is unchanged then.
pub(crate) fn reserve<T>(list: &mut Vec<T>, more: usize, what: &str) -> Result<()> {
    match list.try_reserve(more) {
        Ok(()) => Ok(()),
        Err(_) => fail!(
            Memory,
            "there is no memory for {more} {what} of {} bytes each; ask for fewer at once",
            size_of::<T>()
        ),
    }
}
