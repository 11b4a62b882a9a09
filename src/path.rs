//! The paths of transfers in the public interface.

use portolan_engine::path::Path;

/// The path on which puts and gets reach the memory of a rank; see
/// [`Runtime::path_to`](super::Runtime::path_to).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransferPath {
    /// Load and store in shared memory.
    Direct,
    /// One-sided calls of MPI.
    Rma,
    /// Messages to the owner, which its progress engine serves.
    Message,
    /// A transport that is not part of the library.
    Installed,
}

impl TransferPath {
    pub(crate) fn of(path: Path) -> TransferPath {
        match path {
            Path::Direct => TransferPath::Direct,
            Path::Rma => TransferPath::Rma,
            Path::Message => TransferPath::Message,
            Path::Installed => TransferPath::Installed,
        }
    }

    /// Returns the name as spelled in `PORTOLAN_PATH`: `direct`, `rma` or `message`;
    /// `installed` for a transport that is not part of the library.
    pub fn name(self) -> &'static str {
        match self {
            TransferPath::Direct => Path::Direct.name(),
            TransferPath::Rma => Path::Rma.name(),
            TransferPath::Message => Path::Message.name(),
            TransferPath::Installed => Path::Installed.name(),
        }
    }
}
