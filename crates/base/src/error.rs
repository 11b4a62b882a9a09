//! The error type of all layers. The layer that finds a fault states the problem and the values
//! involved. The called interface adds the name of its call ([`Error::in_call`]), and decides
//! whether to log, return a code or abort. Outputs of a call are written only on success.

use crate::process::message::RankPrefix;
use std::fmt;

/// The C interfaces return it as a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument is malformed, such as a negative count, or a null pointer with a nonzero length.
    Argument = 1,
    /// A rank is outside the group.
    Rank = 2,
    /// An address is outside every segment, or an extent leaves its segment.
    Address = 3,
    Memory = 4,
    /// The runtime is not initialised or is finalised, or the object was freed.
    State = 5,
    /// A handle was freed, is damaged, or was used for mixed kinds of operation.
    Handle = 6,
    /// A datatype or operation is unknown, or a location is unaligned.
    Type = 7,
    Mpi = 8,
    Internal = 9,
    /// Ranks of a group made different collective calls. The group cannot be used any more.
    Mismatch = 10,
}

impl ErrorKind {
    /// Returns `Internal` for an unknown code.
    pub fn from_code(code: i32) -> ErrorKind {
        use ErrorKind::*;
        [Argument, Rank, Address, Memory, State, Handle, Type, Mpi, Mismatch]
            .into_iter()
            .find(|k| k.code() == code)
            .unwrap_or(Internal)
    }

    /// Returns the value in C (`PORTOLAN_ERR_*`).
    pub fn code(self) -> i32 {
        self as i32
    }
}

/// A failed call: the class of the error, the call, the rank, and the details. One pointer, so that
/// a result without a value fits in a register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(Box<ErrorParts>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct ErrorParts {
    kind: ErrorKind,
    call: Option<&'static str>,
    rank: Option<usize>,
    logged: bool,
    detail: String,
}

static_assertions::const_assert_eq!(size_of::<Result<()>>(), size_of::<usize>());

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// `detail` states the problem, the values involved, and what to do about it.
    #[cold]
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Self {
        let (rank, detail) = (crate::process::world_rank(), detail.into());
        Error(Box::new(ErrorParts { kind, call: None, rank, logged: false, detail }))
    }

    #[cold]
    pub fn in_fork() -> Self {
        Error::new(
            ErrorKind::State,
            format!(
                "process {} was forked from the process of this rank, and only that process may use the \
                 library and MPI; make the call there, or start another program by exec",
                std::process::id()
            ),
        )
    }

    /// The outermost public call sets its name last.
    #[cold]
    pub fn in_call(mut self, call: &'static str) -> Self {
        self.0.call = Some(call);
        self
    }

    #[cold]
    #[doc(hidden)]
    pub fn reworded(mut self, detail: String) -> Self {
        self.0.detail = detail;
        self
    }

    #[cold]
    pub fn log_once(&mut self) {
        if !std::mem::replace(&mut self.0.logged, true) {
            log::error!("{self}");
        }
    }

    /// Ends the job with the error. It occurred in a message that its origin relies on.
    #[cold]
    #[doc(hidden)]
    pub fn end_job(&self) -> ! {
        self.clone().log_once();
        crate::process::end_job(self.kind().code())
    }

    /// Ends the job with the error, which no caller gets. `what` failed.
    #[cold]
    #[doc(hidden)]
    pub fn end_job_in(self, what: impl fmt::Display) -> ! {
        let detail = format!("{what}: {}", self.detail());
        self.reworded(detail).end_job()
    }

    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    pub fn detail(&self) -> &str {
        &self.0.detail
    }
}

/// `rank 3: ARMCI_Put: what is wrong`. `{:#}` omits the rank.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ErrorParts { call, rank, detail, .. } = &*self.0;
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

/// Fails with `State` in a forked child, which must not make calls.
#[inline]
pub fn unless_forked() -> Result<()> {
    if crate::process::is_forked() { Err(Error::in_fork()) } else { Ok(()) }
}

/// Returns early with an [`Error`] of a class and a formatted detail.
#[doc(hidden)]
#[macro_export]
macro_rules! __fail {
    ($kind:ident, $($arg:tt)+) => {
        return Err($crate::error::Error::new($crate::error::ErrorKind::$kind, format!($($arg)+)))
    };
}
pub use __fail as fail;

/// Reserves space for `more` entries, a number that comes from a caller or a file. Fails with
/// `Memory`, and leaves the list unchanged, if the allocation fails.
pub fn reserve<T>(list: &mut Vec<T>, more: usize, what: &str) -> Result<()> {
    match list.try_reserve(more) {
        Ok(()) => Ok(()),
        Err(_) => fail!(
            Memory,
            "no memory for {more} {what} of {} bytes each; request fewer at once",
            size_of::<T>()
        ),
    }
}
