//! Memory that two processes share without a name. Its length is sealed, which the receiver checks:
//! a peer that shortened it would crash the other process.

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Mapped shared memory. The first access to a page allocates it.
#[derive(Debug)]
pub(super) struct Mapping {
    base: *mut u8,
    len: usize,
}

// SAFETY: the mapping belongs to the process, and `Mapping` only returns its address.
unsafe impl Send for Mapping {}
// SAFETY: the methods make no access to the bytes. The users of the address make them.
unsafe impl Sync for Mapping {}

const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

impl Mapping {
    /// Creates zeroed memory of `len` bytes. Returns it with the descriptor to pass to the peer.
    pub fn create(len: usize) -> io::Result<(Mapping, OwnedFd)> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("portolan", flags)?;
        ftruncate(&file, len as u64)?;
        fcntl_add_seals(&file, SEALS | SealFlags::SEAL)?;
        Ok((Mapping::map(&file, len)?, file))
    }

    /// Maps a peer's memory. Fails if it has another length, or one that can change.
    pub fn open(file: &OwnedFd, len: usize) -> io::Result<Mapping> {
        let sealed = fcntl_get_seals(file)?.contains(SEALS);
        if !sealed || fstat(file)?.st_size != len as i64 {
            return Err(io::Error::other("the peer's shared memory is invalid"));
        }
        Mapping::map(file, len)
    }

    fn map(file: impl AsFd, len: usize) -> io::Result<Mapping> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the address, so no other mapping is replaced.
        let base =
            unsafe { mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED, file, 0)? };
        Ok(Mapping { base: base.cast(), len })
    }

    /// Returns the address of the memory, which is aligned to a page.
    pub fn base(&self) -> *mut u8 {
        self.base
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping has this address and length, and its owner is being dropped.
        let _ = unsafe { munmap(self.base.cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sealed_memory_of_the_right_length_is_mapped() {
        let (ours, file) = Mapping::create(8192).unwrap();
        let theirs = Mapping::open(&file, 8192).unwrap();
        assert!(ours.base() != theirs.base());
        assert!(Mapping::open(&file, 4096).is_err());
        assert!(ftruncate(&file, 0).is_err());
        let open = rustix::fs::memfd_create("open", MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&open, 8192).unwrap();
        assert!(Mapping::open(&open, 8192).is_err());
    }
}
