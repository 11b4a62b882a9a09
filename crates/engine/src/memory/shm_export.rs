//! Memory that a process exports to other processes of its user on the host.
//!
//! Memory that the library allocates for registration by the program, or for other processes to
//! pull, is anonymous shared memory of its own ([`portolan_base::shm`]) if it is long enough. A
//! process that receives the key ([`ShmKey`]) maps it and copies by itself, with a single copy and
//! no system call. Mappings are cached within limits, and removed if they were unused for some seconds
//! or if the owner is gone. Freed memory stays allocated until no process maps it.
//!
//! **Withdrawal.** Ranks of a node check the table of registrations before they copy
//! ([`super::registered`]). Processes without a common job use the *gate* behind the memory: the
//! number of the registration that is open, a digest of its description, and the processes that
//! copy. A process enters itself first and then reads the number. The owner removes the number
//! first and then reads the entries. These accesses are sequentially consistent, so either the
//! process finds the number removed, or the owner finds the entry, and waits.
//!
//! A forked child shares the memory with its parent. It must not use it for purposes of its own
//! ([`ShmExport::is_own`]).
//!
//! Invariant: device and inode identify a file, so an outdated [`ShmKey`] never leads to another
//! one. If the file is not found, the caller copies in another way.

use super::registered::{lives, wait_for_copy};
use parking_lot::Mutex;
use portolan_base::digest;
use portolan_base::shm::{Descriptor, Mapping, SharedFile};
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// In bytes.
const SHORTEST: usize = 64 << 10;
/// Maximum number of exports of this process. Each takes a file descriptor.
const MOST_LENT: usize = 64;
/// Limits on the mapped exports of other processes: number, and total size in bytes.
const MOST_MAPPED: usize = 32;
const MOST_BYTES: usize = 512 << 20;
/// Minimum age of an unused mapping that is removed.
const KEPT_FOR: Duration = Duration::from_secs(5);
/// Size in bytes of what follows the exported memory.
const GATE: usize = 4096;
/// Maximum number of concurrent copies of an export.
const COPIES: usize = 64;
/// Longest time that an owner waits for a copy of another process. A copy takes milliseconds; only
/// a process that was stopped does not end it.
pub const LONGEST_COPY: Duration = Duration::from_secs(1);

static LENT: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug)]
#[repr(C)]
struct Gate {
    /// The registration that is open, or 0.
    id: AtomicU64,
    digest: AtomicU64,
    /// Random number, part of the digest, so that a program cannot compute it.
    secret: AtomicU64,
    /// The process ID of each copy in progress, or 0.
    copies: [AtomicU32; COPIES],
}

const _: () = assert!(size_of::<Gate>() <= GATE);

impl Gate {
    fn digest(&self, description: impl Hash) -> u64 {
        digest::keyed(self.secret.load(Ordering::Relaxed), description)
    }
}

/// Returns the gate of an export whose exported memory has `len` bytes, a multiple of the page
/// size.
fn gate(memory: &Mapping, len: usize) -> &Gate {
    // SAFETY: the memory has `GATE` bytes from `len` on, which is aligned to a page. Every value of
    // an atomic is valid.
    unsafe { &*memory.base().add(len).cast() }
}

#[derive(Debug)]
pub(crate) struct ShmExport {
    file: SharedFile,
    shm_key: ShmKey,
}

/// Identifies exported memory to another process of the host.
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
    /// Exports `len` zeroed bytes, a multiple of the page size. Returns `None` if `len` is too
    /// short or too long, if the process exports too much already, or if memory is exhausted.
    pub fn new(len: usize) -> Option<ShmExport> {
        if !(SHORTEST..=MOST_BYTES).contains(&len) {
            return None;
        }
        let before = LENT.fetch_add(1, Ordering::Relaxed);
        let made = (before < MOST_LENT).then(|| ShmExport::make(len)).flatten();
        if made.is_none() {
            LENT.fetch_sub(1, Ordering::Relaxed);
        }
        made
    }

    fn make(len: usize) -> Option<ShmExport> {
        let file = SharedFile::sealed(len + GATE).ok()?;
        file.reserve(0, len + GATE).ok()?;
        let (device, inode, pid, fd) = file.place().ok()?;
        let shm_key = ShmKey { device, inode, pid, fd, base: file.base() as u64, len: len as u64 };
        gate(file.mapping(), len).secret.store(digest::key(), Ordering::Relaxed);
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

    fn gate(&self) -> &Gate {
        gate(self.file.mapping(), self.shm_key.len as usize)
    }

    /// Returns whether this process has created the export. Otherwise it was forked since.
    pub fn is_own(&self) -> bool {
        self.shm_key.pid == std::process::id()
    }

    /// Permits copies for the registration `id`, unless a process has not ended an earlier copy.
    pub fn open(&self, id: u64, description: impl Hash) {
        if self.is_copied() || !self.is_own() {
            return;
        }
        let gate = self.gate();
        gate.digest.store(gate.digest(description), Ordering::SeqCst);
        gate.id.store(id, Ordering::SeqCst);
    }

    /// Permits no more copies, and waits until those in progress have ended.
    pub fn close(&self) {
        if !self.is_own() || self.gate().id.swap(0, Ordering::SeqCst) == 0 {
            return;
        }
        self.gate().copies.iter().for_each(wait_for);
    }

    /// Returns whether another process copies. After [`ShmExport::close`], the memory must then not
    /// be used again.
    pub fn is_copied(&self) -> bool {
        self.gate().copies.iter().any(|copy| copy.load(Ordering::SeqCst) != 0)
    }
}

/// Waits until a copy in progress has ended. Removes the entry of a process that is dead.
fn wait_for(copy: &AtomicU32) {
    let pid = copy.load(Ordering::SeqCst);
    let has_ended = || copy.load(Ordering::SeqCst) != pid;
    if pid != 0 {
        wait_for_copy(pid, LONGEST_COPY, has_ended, || lives(pid));
        if !has_ended() && !lives(pid) {
            copy.store(0, Ordering::SeqCst);
        }
    }
}

impl Drop for ShmExport {
    fn drop(&mut self) {
        LENT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Exported memory of another process, mapped here.
#[derive(Debug)]
pub struct Mapped {
    shm_key: ShmKey,
    memory: Mapping,
}

/// A copy in progress. The owner of the memory waits until it is dropped.
#[derive(Debug)]
pub struct Copying<'a>(&'a AtomicU32);

impl Drop for Copying<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::SeqCst);
    }
}

impl Mapped {
    /// Returns where `len` bytes at `address` of the owner's process are mapped, or `None` if they
    /// are not within the export.
    pub fn at(&self, address: usize, len: usize) -> Option<*mut u8> {
        let offset = (address as u64).checked_sub(self.shm_key.base)?;
        let end = offset.checked_add(len as u64)?;
        (end <= self.shm_key.len).then(|| self.memory.base().wrapping_add(offset as usize))
    }

    fn gate(&self) -> &Gate {
        gate(&self.memory, self.shm_key.len as usize)
    }

    /// Returns the digest of the description of a registration of this memory.
    pub fn digest(&self, description: impl Hash) -> u64 {
        self.gate().digest(description)
    }

    /// Begins a copy. Returns `None` if the registration `id` is not open, if its description has
    /// another digest, or if too many copies are in progress. Ranks use
    /// [`super::registered::Table::begin`] instead.
    pub fn begin(&self, id: u64, digest: u64) -> Option<Copying<'_>> {
        let (gate, me) = (self.gate(), std::process::id());
        let free = |copy: &&AtomicU32| {
            copy.compare_exchange(0, me, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        };
        let copying = Copying(gate.copies.iter().find(free)?);
        let opened = gate.id.load(Ordering::SeqCst) == id;
        (opened && gate.digest.load(Ordering::SeqCst) == digest).then_some(copying)
    }
}

struct Cached {
    mapped: Arc<Mapped>,
    used: Instant,
}

static MAPPED: Mutex<Vec<Cached>> = Mutex::new(Vec::new());
static IS_ANY_MAPPED: AtomicBool = AtomicBool::new(false);

fn drop_if(unwanted: impl Fn(&Cached) -> bool) {
    let mut cached = MAPPED.lock();
    let gone: Vec<Cached> = cached.extract_if(.., |c| unwanted(c)).collect();
    IS_ANY_MAPPED.store(!cached.is_empty(), Ordering::Relaxed);
    drop(cached);
    drop(gone); // outside the lock
}

/// Drops the cached mappings that were unused for some seconds. For loops that wait.
#[inline]
pub fn drop_unused() {
    if IS_ANY_MAPPED.load(Ordering::Relaxed) {
        drop_if(|cached| cached.used.elapsed() > KEPT_FOR);
    }
}

/// Drops the cached mappings of memory of a process that is gone.
pub fn drop_those_of(pid: u32) {
    if IS_ANY_MAPPED.load(Ordering::Relaxed) {
        drop_if(|cached| cached.mapped.shm_key.pid == pid);
    }
}

/// Maps exported memory of another process, or returns its cached mapping, or `None` on failure.
pub fn borrow(shm_key: &ShmKey) -> Option<Arc<Mapped>> {
    let mut cached = MAPPED.lock();
    let now = Instant::now();
    if let Some(at) = cached.iter().position(|c| c.mapped.shm_key == *shm_key) {
        cached[at].used = now;
        return Some(cached[at].mapped.clone());
    }
    let len = usize::try_from(shm_key.len).ok()?;
    if !(1..=MOST_BYTES).contains(&len) || !len.is_multiple_of(GATE) {
        return None;
    }
    cached.retain(|c| now - c.used < KEPT_FOR);
    let bytes = |cached: &[Cached]| -> u64 { cached.iter().map(|c| c.mapped.shm_key.len).sum() };
    while cached.len() >= MOST_MAPPED || bytes(&cached) + shm_key.len > MOST_BYTES as u64 {
        let oldest = (0..cached.len()).min_by_key(|&n| cached[n].used)?;
        cached.swap_remove(oldest);
    }
    let descriptor = Descriptor::unnamed(shm_key.device, shm_key.inode, shm_key.pid, shm_key.fd);
    let memory = match descriptor.open().and_then(|file| Mapping::sealed(&file, len + GATE)) {
        Ok(memory) => memory,
        Err(error) => {
            log::debug!("exported memory cannot be mapped: {error:#}");
            return None;
        }
    };
    let mapped = Arc::new(Mapped { shm_key: *shm_key, memory });
    cached.push(Cached { mapped: mapped.clone(), used: now });
    IS_ANY_MAPPED.store(true, Ordering::Relaxed);
    Some(mapped)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 25 << 12;

    #[test]
    fn lent_memory_is_the_same_for_who_borrows_it() {
        let lent = ShmExport::new(LEN).expect("lent");
        let there = borrow(&lent.shm_key()).expect("borrowed");
        let last = there.at(lent.address() as usize + LEN - 1, 1).expect("within");
        assert_ne!(last, lent.address().wrapping_add(LEN - 1));
        // SAFETY: both mappings have `LEN` bytes.
        unsafe {
            lent.address().add(LEN - 1).write(7);
            assert_eq!(last.read(), 7);
        }
        for (address, len) in [(lent.address() as usize + LEN, 1), (8, 8), (usize::MAX, 2)] {
            assert!(there.at(address, len).is_none());
        }
        assert!(Arc::ptr_eq(&there, &borrow(&lent.shm_key()).expect("again")));
        drop_unused();
        assert!(Arc::ptr_eq(&there, &borrow(&lent.shm_key()).expect("used just now")));
        drop_those_of(std::process::id());
        assert!(!Arc::ptr_eq(&there, &borrow(&lent.shm_key()).expect("once more")));
    }

    #[test]
    fn what_is_not_there_is_not_borrowed() {
        assert!(ShmExport::new(4096).is_none(), "too short");
        assert!(ShmExport::new(1 << 40).is_none(), "too long");
        let shm_key = ShmExport::new(1 << 20).expect("lent").shm_key();
        assert!(borrow(&shm_key).is_none(), "it is gone");
        let lent = ShmExport::new(1 << 20).expect("lent");
        let shm_key = lent.shm_key();
        for wrong in [
            ShmKey { inode: shm_key.inode + 1, ..shm_key },
            ShmKey { len: shm_key.len + 1, ..shm_key },
            ShmKey { len: shm_key.len + GATE as u64, ..shm_key },
            ShmKey { len: shm_key.len - GATE as u64, ..shm_key },
            ShmKey { len: u64::MAX, ..shm_key },
            ShmKey { len: 0, ..shm_key },
            ShmKey { fd: 1 << 30, ..shm_key },
            ShmKey { pid: 0, ..shm_key },
        ] {
            assert!(borrow(&wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn an_owner_that_closes_waits_for_copies_and_permits_no_more() {
        let lent = ShmExport::new(LEN).expect("lent");
        let there = borrow(&lent.shm_key()).expect("borrowed");
        let digest = there.digest("read only");
        assert!(there.begin(3, digest).is_none(), "it is not open");
        lent.open(3, "read only");
        assert!(there.begin(4, digest).is_none(), "another registration is open");
        assert!(there.begin(3, there.digest("writable")).is_none(), "a forged description");
        let copying = there.begin(3, digest).expect("open");
        std::thread::scope(|scope| {
            let closing = scope.spawn(|| lent.close());
            while there.begin(3, digest).is_some() {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(20));
            assert!(!closing.is_finished(), "the copy is waited for");
            drop(copying);
        });
        assert!(!lent.is_copied());

        // The copy of a process that was killed has ended.
        let mut dead = std::process::Command::new("true").spawn().expect("a process");
        dead.wait().expect("its end");
        lent.open(4, "read only");
        lent.gate().copies[9].store(dead.id(), Ordering::SeqCst);
        let begun = Instant::now();
        lent.close();
        assert!(begun.elapsed() < LONGEST_COPY / 2 && !lent.is_copied());

        // A process that was stopped does not end its copy.
        lent.open(5, "read only");
        std::mem::forget(there.begin(5, digest).expect("open"));
        lent.close();
        lent.open(6, "read only");
        assert!(there.begin(6, digest).is_none(), "the memory may still be written");
        let begun = Instant::now();
        lent.close();
        assert!(begun.elapsed() < LONGEST_COPY / 2, "it is waited for once");
    }
}
