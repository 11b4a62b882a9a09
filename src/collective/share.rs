//! A shared file that some ranks of a communicator make and others map.

use super::{agree, allgather};
use crate::error::{Result, fail};
use crate::mpi::Comm;
use crate::shm::{Descriptor, SharedFile};
use crate::wait::Progress;

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
    for named in [false, true] {
        let made = if leader == comm.rank() {
            SharedFile::create(dir, len, named).map(Some)
        } else {
            Ok(None)
        };
        let descriptor = match &made {
            Ok(Some(file)) => file.descriptor(),
            _ => Ok(Descriptor::none()),
        };
        let offered = descriptor.as_ref().copied().unwrap_or_else(|_| Descriptor::none());
        let offers = allgather(comm, progress, &offered)?;
        let opened = match made {
            Ok(Some(file)) => descriptor.map(|_| file),
            Ok(None) => SharedFile::open(&offers[leader], len),
            Err(error) => Err(error),
        };
        let verdict = match &opened {
            // The leader knows better why there is no file.
            Err(_) if leader != comm.rank() && offers[leader].path().is_none() => Ok(()),
            other => other.as_ref().map(|_| ()).map_err(Clone::clone),
        };
        match agree(comm, progress, verdict) {
            Ok(()) => {
                return opened.map(|mut file| {
                    file.unlink();
                    file
                });
            }
            Err(error) if named => return Err(error),
            Err(error) => log::debug!("shared memory without a name: {error}"),
        }
    }
    fail!(Internal, "neither kind of shared file was tried")
}
