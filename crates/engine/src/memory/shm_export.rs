//! Memory that a process exports to the other ranks of its node.
//!
//! Memory that the library allocates for registration by the program, or for other ranks to pull,
//! lies in a shared file of its own ([`crate::shm`]) if it is long enough and space is available. A
//! rank that receives the key ([`ShmKey`]) maps the file and copies by itself, with a single copy
//! and no system call. Mappings are cached within limits; creating one removes those unused for
//! some seconds. Freed memory stays allocated until no rank maps it.
//!
//! Invariant: device and inode identify a file, so an outdated [`ShmKey`] never leads to another
//! one. If the file is not found, the caller copies in another way.

use crate::shm::{Descriptor, SharedFile};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// In bytes.
const SHORTEST: usize = 64 << 10;
/// Maximum number of exported files of this process. Each takes a file descriptor.
const MOST_LENT: usize = 64;
/// Limits on the mapped files of other processes: number, and total size in bytes.
const MOST_MAPPED: usize = 32;
const MOST_BYTES: usize = 512 << 20;
/// Minimum age of an unused mapping that is removed.
const KEPT_FOR: Duration = Duration::from_secs(5);

static LENT: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug)]
pub(crate) struct ShmExport {
    file: SharedFile,
    shm_key: ShmKey,
}

/// Identifies exported memory to another process of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShmKey {
    pub device: u64,
    pub inode: u64,
    pub pid: u32,
    pub fd: u32,
    /// Address in the owner's process.
    pub base: u64,
    /// In bytes.
    pub len: u64,
}

impl ShmExport {
    /// Exports `len` bytes in a new file in `dir`. Returns `None` if `len` is too short or more
    /// than a quarter of the free space, for too many exports, or if the file cannot be created.
    pub fn new(dir: &str, len: usize) -> Option<ShmExport> {
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

    pub fn count() -> usize {
        LENT.load(Ordering::Relaxed)
    }

    pub fn address(&self) -> *mut u8 {
        self.file.base()
    }

    pub fn shm_key(&self) -> ShmKey {
        self.shm_key
    }
}

impl Drop for ShmExport {
    fn drop(&mut self) {
        LENT.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Mapped {
    shm_key: ShmKey,
    file: Arc<SharedFile>,
    used: Instant,
}

static MAPPED: Mutex<Vec<Mapped>> = Mutex::new(Vec::new());

/// Maps exported memory of another process, or returns its cached mapping, or `None` on failure.
pub fn borrow(shm_key: &ShmKey) -> Option<Arc<SharedFile>> {
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
    // An access behind the end of a file raises SIGBUS.
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
        // SAFETY: both mappings have at least 100,000 bytes.
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
