//! A shared file that one rank makes and others map.

use crate::error::{Result, fail};
use crate::mpi::Comm;
use crate::shm::{Descriptor, SharedFile};
use crate::wait::Progress;

/// How ranks come to have a file in common. All of them call each function as often.
pub(super) trait Meeting {
    /// Whether the caller makes the file.
    fn leads(&self) -> bool;
    /// Gives the descriptor of the rank that makes the caller's file.
    fn offer(&self, own: Descriptor) -> Result<Descriptor>;
    /// Whether all went well everywhere.
    fn agree(&self, mine: Result<()>) -> Result<()>;
}

/// A file of `len` bytes that one rank makes and others map; `prepare` is what each does with it
/// before all agree that it is there. First without a name, and where that fails with one.
///
/// # Errors
/// `Memory` on all ranks where it cannot be had on one.
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
            // The leader knows better why there is no file.
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
            Err(error) => log::debug!("shared memory without a name: {error:#}"),
        }
    }
    fail!(Internal, "neither kind of shared file was tried")
}

/// Over a communicator, by MPI's collectives.
struct OverComm<'a, P: Progress + ?Sized> {
    comm: &'a Comm,
    progress: &'a P,
    leader: usize,
}

impl<P: Progress + ?Sized> Meeting for OverComm<'_, P> {
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

/// A file of `len` bytes that rank `leader` makes and the ranks that name it as
/// their leader map. Collective over `comm`; different ranks may have different
/// leaders and lengths.
///
/// # Errors
/// `Memory` on all ranks where it cannot be had on one.
pub(crate) fn share<P: Progress + ?Sized>(
    comm: &Comm,
    progress: &P,
    dir: &str,
    leader: usize,
    len: usize,
) -> Result<SharedFile> {
    file(&OverComm { comm, progress, leader }, dir, len, |_| Ok(()))
}
