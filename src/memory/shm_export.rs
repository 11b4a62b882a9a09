//! Memory that a process lends to the others of its node.
//!
//! Memory that the library allocates for a program to expose, or for other ranks to pull, is
//! put into a shared file of its own ([`crate::shm`]), where it is long enough and there is
//! room; such files are used again ([`super::large_buffer`]). The handle that travels names the file
//! ([`ShmKey`]); a rank that gets the handle maps the file and copies by itself, with one copy
//! and no system call. Mappings are kept for the next time, within limits: a mapping that was
//! not used for some seconds goes when another one is made. Memory that its owner has freed
//! stays allocated as long as a rank has it mapped.
//!
//! Invariant: a file is identified by device and inode, so a wrong or outdated [`ShmKey`] never
//! leads to another file; where the file is not found, the caller copies in another way.

use crate::shm::{Descriptor, SharedFile};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Shorter memory is not worth a file.
const SHORTEST: usize = 64 << 10;
/// Files lent at a time: each has a descriptor.
const MOST_LENT: usize = 64;
/// Others' files mapped at a time, and their bytes.
const MOST_MAPPED: usize = 32;
const MOST_BYTES: usize = 512 << 20;
/// How long an unused mapping is kept when further mappings are made.
const KEPT_FOR: Duration = Duration::from_secs(5);

static LENT: AtomicUsize = AtomicUsize::new(0);

/// Memory that is lent while it lives; zeroed.
#[derive(Debug)]
pub(crate) struct ShmExport {
    file: SharedFile,
    shm_key: ShmKey,
}

/// How another process of the node finds lent memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShmKey {
    /// The file.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// The owner's process.
    pub pid: u32,
    /// The file's descriptor in it.
    pub fd: u32,
    /// Where the owner has it.
    pub base: u64,
    /// Bytes.
    pub len: u64,
}

impl ShmExport {
    /// `len` bytes in a file in `dir`; `None` where they are too few to be worth it, or more
    /// than a quarter of what is free there.
    pub(crate) fn new(dir: &str, len: usize) -> Option<ShmExport> {
        if len < SHORTEST {
            return None;
        }
        let before = LENT.fetch_add(1, Ordering::Relaxed);
        let made = (before < MOST_LENT).then(|| ShmExport::make(dir, len)).flatten();
        if made.is_none() {
            LENT.fetch_sub(1, Ordering::Relaxed);
        }
        made
    }

    fn make(dir: &str, len: usize) -> Option<ShmExport> {
        let file = SharedFile::create(dir, len, false).ok()?;
        if file.room() / 4 < len {
            return None;
        }
        file.reserve(0, len).ok()?;
        let (device, inode, pid, fd) = file.place().ok()?;
        let shm_key = ShmKey { device, inode, pid, fd, base: file.base() as u64, len: len as u64 };
        Some(ShmExport { file, shm_key })
    }

    /// How many such files this process has.
    pub(crate) fn count() -> usize {
        LENT.load(Ordering::Relaxed)
    }

    /// Address of the first byte.
    pub(crate) fn address(&self) -> *mut u8 {
        self.file.base()
    }

    /// What other processes need to find it.
    pub(crate) fn shm_key(&self) -> ShmKey {
        self.shm_key
    }
}

impl Drop for ShmExport {
    fn drop(&mut self) {
        LENT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Another process's file that is mapped here.
struct Mapped {
    shm_key: ShmKey,
    file: Arc<SharedFile>,
    used: Instant,
}

static MAPPED: Mutex<Vec<Mapped>> = Mutex::new(Vec::new());

/// The lent memory, mapped into this process; `None` where it cannot be had.
pub(crate) fn borrow(shm_key: &ShmKey) -> Option<Arc<SharedFile>> {
    let mut mapped = MAPPED.lock();
    let now = Instant::now();
    if let Some(at) = mapped.iter().position(|m| m.shm_key == *shm_key) {
        mapped[at].used = now;
        return Some(mapped[at].file.clone());
    }
    let len = usize::try_from(shm_key.len).ok().filter(|&len| len <= MOST_BYTES)?;
    mapped.retain(|m| now - m.used < KEPT_FOR);
    while mapped.len() >= MOST_MAPPED
        || mapped.iter().map(|m| m.shm_key.len as usize).sum::<usize>() + len > MOST_BYTES
    {
        let oldest = (0..mapped.len()).min_by_key(|&n| mapped[n].used)?;
        mapped.swap_remove(oldest);
    }
    let descriptor = Descriptor::unnamed(shm_key.device, shm_key.inode, shm_key.pid, shm_key.fd);
    // A file that is shorter than the loan says would fault where it ends.
    let file = match SharedFile::open_whole(&descriptor, len) {
        Ok(file) => Arc::new(file),
        Err(error) => {
            log::debug!("lent memory cannot be mapped: {error:#}");
            return None;
        }
    };
    mapped.push(Mapped { shm_key: *shm_key, file: file.clone(), used: now });
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lent_memory_is_the_same_for_who_borrows_it() {
        let lent = ShmExport::new("/dev/shm", 100_000).expect("lent");
        let there = borrow(&lent.shm_key()).expect("borrowed");
        assert_ne!(there.base(), lent.address());
        // SAFETY: both are mapped, of that length.
        unsafe {
            lent.address().add(99_999).write(7);
            assert_eq!(there.base().add(99_999).read(), 7);
        }
        assert!(Arc::ptr_eq(&there, &borrow(&lent.shm_key()).expect("again")));
    }

    #[test]
    fn what_is_not_there_is_not_borrowed() {
        assert!(ShmExport::new("/dev/shm", 100).is_none(), "too short");
        assert!(ShmExport::new("/no/such/directory", 1 << 20).is_none());
        let shm_key = ShmExport::new("/dev/shm", 1 << 20).expect("lent").shm_key();
        assert!(borrow(&shm_key).is_none(), "it is gone");
        let lent = ShmExport::new("/dev/shm", 1 << 20).expect("lent");
        let shm_key = lent.shm_key();
        for wrong in [
            ShmKey { inode: shm_key.inode + 1, ..shm_key },
            ShmKey { len: shm_key.len + 1, ..shm_key },
            ShmKey { len: u64::MAX, ..shm_key },
            ShmKey { fd: 1 << 30, ..shm_key },
            ShmKey { pid: 0, ..shm_key },
        ] {
            assert!(borrow(&wrong).is_none(), "{wrong:?}");
        }
    }
}
