//! Memory that a process lends to the others of its node.
//!
//! Memory that the library allocates for a program to expose, or for other ranks to pull, is
//! put into a shared file of its own ([`crate::shm`]), where it is long enough and there is
//! room; such files are used again ([`super::long`]). The handle that travels names the file
//! ([`Loan`]); a rank that gets the handle maps the file and copies by itself, with one copy
//! and no system call. Mappings are kept for the next time, within limits: a mapping that was
//! not used for some seconds goes when another one is made. Memory that its owner has freed
//! stays allocated as long as a rank has it mapped.
//!
//! Invariant: a file is identified by device and inode, so a wrong or outdated [`Loan`] never
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
pub struct Lent {
    file: SharedFile,
    loan: Loan,
}

/// How another process of the node finds lent memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loan {
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

impl Lent {
    /// `len` bytes in a file in `dir`; `None` where they are too few to be worth it, or more
    /// than a quarter of what is free there.
    pub fn new(dir: &str, len: usize) -> Option<Lent> {
        if len < SHORTEST {
            return None;
        }
        let before = LENT.fetch_add(1, Ordering::Relaxed);
        let made = (before < MOST_LENT).then(|| Lent::make(dir, len)).flatten();
        if made.is_none() {
            LENT.fetch_sub(1, Ordering::Relaxed);
        }
        made
    }

    fn make(dir: &str, len: usize) -> Option<Lent> {
        let file = SharedFile::create(dir, len, false).ok()?;
        if file.room() / 4 < len {
            return None;
        }
        file.reserve(0, len).ok()?;
        let (device, inode, pid, fd) = file.place().ok()?;
        let loan = Loan { device, inode, pid, fd, base: file.base() as u64, len: len as u64 };
        Some(Lent { file, loan })
    }

    /// How many such files this process has.
    pub fn count() -> usize {
        LENT.load(Ordering::Relaxed)
    }

    /// Address of the first byte.
    pub fn address(&self) -> *mut u8 {
        self.file.base()
    }

    /// What other processes need to find it.
    pub fn loan(&self) -> Loan {
        self.loan
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        LENT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Another process's file that is mapped here.
struct Mapped {
    loan: Loan,
    file: Arc<SharedFile>,
    used: Instant,
}

static MAPPED: Mutex<Vec<Mapped>> = Mutex::new(Vec::new());

/// The lent memory, mapped into this process; `None` where it cannot be had.
pub fn borrow(loan: &Loan) -> Option<Arc<SharedFile>> {
    let mut mapped = MAPPED.lock();
    let now = Instant::now();
    if let Some(at) = mapped.iter().position(|m| m.loan == *loan) {
        mapped[at].used = now;
        return Some(mapped[at].file.clone());
    }
    let len = usize::try_from(loan.len).ok().filter(|&len| len <= MOST_BYTES)?;
    mapped.retain(|m| now - m.used < KEPT_FOR);
    while mapped.len() >= MOST_MAPPED
        || mapped.iter().map(|m| m.loan.len as usize).sum::<usize>() + len > MOST_BYTES
    {
        let oldest = (0..mapped.len()).min_by_key(|&n| mapped[n].used)?;
        mapped.swap_remove(oldest);
    }
    let descriptor = Descriptor::unnamed(loan.device, loan.inode, loan.pid, loan.fd);
    // A file that is shorter than the loan says would fault where it ends.
    let file = match SharedFile::open_whole(&descriptor, len) {
        Ok(file) => Arc::new(file),
        Err(error) => {
            log::debug!("lent memory cannot be mapped: {error}");
            return None;
        }
    };
    mapped.push(Mapped { loan: *loan, file: file.clone(), used: now });
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lent_memory_is_the_same_for_who_borrows_it() {
        let lent = Lent::new("/dev/shm", 100_000).expect("lent");
        let there = borrow(&lent.loan()).expect("borrowed");
        assert_ne!(there.base(), lent.address());
        // SAFETY: both are mapped, of that length.
        unsafe {
            lent.address().add(99_999).write(7);
            assert_eq!(there.base().add(99_999).read(), 7);
        }
        assert!(Arc::ptr_eq(&there, &borrow(&lent.loan()).expect("again")));
    }

    #[test]
    fn what_is_not_there_is_not_borrowed() {
        assert!(Lent::new("/dev/shm", 100).is_none(), "too short");
        assert!(Lent::new("/no/such/directory", 1 << 20).is_none());
        let loan = Lent::new("/dev/shm", 1 << 20).expect("lent").loan();
        assert!(borrow(&loan).is_none(), "it is gone");
        let lent = Lent::new("/dev/shm", 1 << 20).expect("lent");
        let loan = lent.loan();
        for wrong in [
            Loan { inode: loan.inode + 1, ..loan },
            Loan { len: loan.len + 1, ..loan },
            Loan { len: u64::MAX, ..loan },
            Loan { fd: 1 << 30, ..loan },
            Loan { pid: 0, ..loan },
        ] {
            assert!(borrow(&wrong).is_none(), "{wrong:?}");
        }
    }
}
