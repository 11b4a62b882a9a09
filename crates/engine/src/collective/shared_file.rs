//! A shared file that one rank creates and other ranks map.

use crate::error::{Result, fail};
use crate::mpi::Comm;
use crate::shm::{Descriptor, SharedFile};
use crate::wait::Progress;

/// How the ranks of a node obtain a shared file. Every method is collective.
pub(super) trait Meeting {
    /// Whether the caller creates the file.
    fn leads(&self) -> bool;
    /// Returns the descriptor from the rank that creates the caller's file.
    fn offer(&self, own: Descriptor) -> Result<Descriptor>;
    /// Succeeds if `mine` is a success on all ranks, else fails on all ranks.
    fn agree(&self, mine: Result<()>) -> Result<()>;
}

/// Creates a file of `len` bytes on one rank, and maps it on the others: first without a name,
/// then, if that fails, named. Each rank runs `prepare` on it before the ranks agree. Fails on all
/// ranks if any rank fails, with `Memory` if the file cannot be allocated.
pub(super) fn file(
    meeting: &impl Meeting,
    dir: &str,
    len: usize,
    prepare: impl Fn(&SharedFile) -> Result<()>,
) -> Result<SharedFile> {
    for named in [false, true] {
        let made = match meeting.leads() {
            true => SharedFile::create(dir, len, named).map(Some),
            false => Ok(None),
        };
        let descriptor = match &made {
            Ok(Some(file)) => file.descriptor(),
            _ => Ok(Descriptor::none()),
        };
        let offered = descriptor.as_ref().copied().unwrap_or_else(|_| Descriptor::none());
        let offered = meeting.offer(offered)?;
        let opened = match made {
            Ok(Some(file)) => descriptor.map(|_| file),
            Ok(None) => SharedFile::open(&offered, len),
            Err(error) => Err(error),
        };
        let prepared = opened.as_ref().map_err(Clone::clone).and_then(&prepare);
        let verdict = match prepared {
            // The leader's error explains the missing file better.
            Err(_) if !meeting.leads() && offered.path().is_none() => Ok(()),
            other => other,
        };
        match meeting.agree(verdict) {
            Ok(()) => {
                return opened.map(|mut file| {
                    file.unlink();
                    file
                });
            }
            Err(error) if named => return Err(error),
            Err(error) => log::debug!("cannot create unnamed shared memory: {error:#}"),
        }
    }
    fail!(Internal, "neither kind of shared file was tried")
}

struct OverComm<'a> {
    comm: &'a Comm,
    progress: &'a dyn Progress,
    leader: usize,
}

impl Meeting for OverComm<'_> {
    fn leads(&self) -> bool {
        self.leader == self.comm.rank()
    }
    fn offer(&self, own: Descriptor) -> Result<Descriptor> {
        Ok(super::allgather(self.comm, self.progress, &own)?[self.leader])
    }
    fn agree(&self, mine: Result<()>) -> Result<()> {
        super::agree(self.comm, self.progress, mine)
    }
}

/// Creates a file of `len` bytes on rank `leader`, which the ranks that pass the same `leader` map.
/// Collective over `comm`. Fails as [`file`].
pub fn share(
    comm: &Comm,
    progress: &dyn Progress,
    dir: &str,
    leader: usize,
    len: usize,
) -> Result<SharedFile> {
    file(&OverComm { comm, progress, leader }, dir, len, |_| Ok(()))
}
