//! Memory handles: memory, in one run or many segments, that other processes may read or write.
//!
//! A handle is created here ([`Mem::expose`]) or decoded from bytes (`wire`). A decoded handle of
//! another process only names memory. A decoded handle of this process resolves to the original if
//! that still exists with the same contents, so bytes that misdescribe local memory are rejected.
//!
//! Other processes can use the memory only while it is registered, whatever serialised handles they
//! hold (`portolan_engine::memory::registered`). The owner waits for copies by other threads, but
//! not for peers (`lease`).

mod host_export;
mod lease;
mod permission;
mod runs;
mod wire;

pub use super::zeroed_buffer::ZeroedBuffer;
pub(super) use host_export::Neighbours;
pub use lease::InUse;
pub(super) use lease::{Copied, Lease, MOST_COPIED};
pub use permission::Permission;
pub use runs::Run;
pub(super) use runs::{pair, to_mapped};
pub(super) use wire::{KEY, decode_key, encode_key};

use super::wire::number as wire_number;
use super::zeroed_buffer::{LAZY, LINE};
use crate::failure::{Failure, Result, Status, refuse};
use host_export::is_lending;
use parking_lot::Mutex;
use portolan_base::process;
use portolan_engine::any_memory::{Span, Within};
use portolan_engine::memory::large_buffer::LargeBuffer;
use portolan_engine::memory::registered::{Inside, Registration, Table};
use portolan_engine::memory::shm_export::{self, Copying, Mapped, ShmKey};
use portolan_engine::runtime::admission::{self, Outside};
use runs::measure;
use std::any::Any;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, OnceLock, Weak};

#[derive(Debug)]
enum Own {
    Private(ZeroedBuffer),
    Long(LargeBuffer),
}

#[derive(Debug)]
pub struct Mem {
    id: u64,
    process: u64,
    rank: u32,
    runs: Vec<Run>,
    starts: Vec<usize>,
    total: usize,
    access: Permission,
    registration: Option<Arc<Registration>>,
    /// The slot of the registration in the owner's node table plus one, or 0 if it has none. Set
    /// for handles of another process.
    place: u32,
    /// Memory that the handle exports to the host.
    export: Option<Arc<Own>>,
    /// Identifies the exported memory, which other processes map on first use.
    shm_key: Option<ShmKey>,
    borrowed: OnceLock<Option<Arc<Mapped>>>,
    /// Digests of a handle of another process, computed on first use: for the table of the node,
    /// and for the gate of exported memory.
    digest: OnceLock<u64>,
    gate_digest: OnceLock<u64>,
    /// The original of a handle that returned to the process that created it.
    original: Option<Arc<Mem>>,
    /// The bytes of the memory of another process, if they came with the handle.
    data: Option<Box<[u8]>>,
    /// Parts of the memory that wait in connections.
    loans: Mutex<Vec<Weak<Lease>>>,
}

/// The rank number of a process that is not a rank of a running job.
const NOBODY: u32 = u32::MAX;

static LIVE: LazyLock<Mutex<HashMap<u64, Weak<Mem>>>> = LazyLock::new(Mutex::default);

/// Returns an unguessable handle number. Between jobs, a peer that knows it may use the memory.
fn number() -> Result<u64> {
    /// Random bytes, drawn in blocks, the number of bytes used so far, and the process that has
    /// drawn them: a forked child must not use its parent's.
    static DRAWN: Mutex<(u64, usize, [u8; 512])> = Mutex::new((0, 0, [0; 512]));
    let mut drawn = DRAWN.lock();
    let (owner, used, bytes) = &mut *drawn;
    if *owner != this_process() {
        (*owner, *used) = (this_process(), bytes.len());
    }
    loop {
        if let Some(next) = bytes.get_mut(*used..*used + 8) {
            let number = wire_number(next);
            next.fill(0);
            *used += 8;
            if number != 0 && !LIVE.lock().contains_key(&number) {
                return Ok(number);
            }
        } else if let Err(error) = getrandom::fill(bytes) {
            refuse!(FAIL, "the system has no random bytes: {error}");
        } else {
            *used = 0;
        }
    }
}

/// Returns a number that identifies this process, also among its forked children, processes of
/// other jobs, and earlier ones.
fn this_process() -> u64 {
    /// The number, and the value of [`process::forks`] when it was drawn.
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    static DRAWN_FOR: AtomicUsize = AtomicUsize::new(usize::MAX);
    #[cold]
    fn draw() -> u64 {
        use std::hash::{BuildHasher, RandomState};
        static DRAWING: Mutex<()> = Mutex::new(());
        let _drawing = DRAWING.lock();
        process::count_forks();
        let forks = process::forks();
        if DRAWN_FOR.load(Ordering::Relaxed) != forks {
            let facts = (std::process::id(), std::time::SystemTime::now());
            NUMBER.store(RandomState::new().hash_one(facts), Ordering::Relaxed);
            DRAWN_FOR.store(forks, Ordering::Release);
        }
        NUMBER.load(Ordering::Relaxed)
    }
    match DRAWN_FOR.load(Ordering::Acquire) == process::forks() {
        true => NUMBER.load(Ordering::Relaxed),
        false => draw(),
    }
}

/// Allocates a long buffer for data that another process will pull.
pub fn to_send(size: usize) -> Option<LargeBuffer> {
    if is_lending() { LargeBuffer::lent(size) } else { LargeBuffer::heap(size) }
}

fn rank() -> u32 {
    admission::admit_current().map_or(NOBODY, |engine| engine.rank() as u32)
}

impl Mem {
    /// Creates an unregistered handle for memory of the caller. Returns `INVALID_ARG` if `runs` is
    /// empty, or if a segment is at the null address or wraps around the address space.
    ///
    /// # Safety
    /// While the handle lives, the memory must be valid for the accesses that `access` permits to
    /// other processes, and for reads and writes by this process.
    pub unsafe fn expose(runs: Vec<Run>, access: Permission) -> Result<Arc<Mem>> {
        Mem::make(runs, access, None)
    }

    /// Creates a handle that owns zeroed memory, which is freed with the handle. Returns `NOMEM` if
    /// the allocation fails, and `INVALID_ARG` if `sizes` is empty.
    pub fn allocate(sizes: &[usize], access: Permission) -> Result<Arc<Mem>> {
        Mem::parcel(sizes, access, |bytes| ZeroedBuffer::new(bytes).map(Own::Private))
    }

    /// Like [`Mem::allocate`], but places the memory in shared memory if possible, so that other
    /// processes of the host access it with a single copy. Fails like [`Mem::allocate`].
    pub fn allocate_to_lend(sizes: &[usize], access: Permission) -> Result<Arc<Mem>> {
        Mem::parcel(sizes, access, |bytes| {
            match is_lending().then(|| LargeBuffer::lent_zeroed(bytes)).flatten() {
                Some(long) => Ok(Own::Long(long)),
                None => ZeroedBuffer::new(bytes).map(Own::Private),
            }
        })
    }

    /// Creates a handle that owns short-lived memory, not always zeroed. Fails with `NOMEM`.
    pub fn for_a_while(size: usize, access: Permission) -> Result<Arc<Mem>> {
        // Longer memory must not be touched before the bytes arrive, because a peer has only
        // announced their length so far.
        if size >= LAZY {
            return Mem::allocate(&[size], access);
        }
        match LargeBuffer::heap(size) {
            Some(long) => Mem::over(long, size, access),
            None => refuse!(NOMEM, "no memory for {size} bytes"),
        }
    }

    /// Creates a handle for the first `len` bytes of a long buffer, which it then owns. Returns
    /// `INVALID_ARG` if the buffer is shorter.
    pub fn over(long: LargeBuffer, len: usize, access: Permission) -> Result<Arc<Mem>> {
        if len > long.len() {
            refuse!(INVALID_ARG, "{len} bytes of a buffer of {}", long.len());
        }
        let run = Run { address: long.address() as usize, len };
        Mem::make(vec![run], access, Some(Own::Long(long)))
    }

    fn parcel(
        sizes: &[usize],
        access: Permission,
        allocate: impl FnOnce(usize) -> Result<Own>,
    ) -> Result<Arc<Mem>> {
        // All segments share one allocation, because adjacent segments are transferred faster.
        let mut total = 0usize;
        for (n, &len) in sizes.iter().enumerate() {
            let next = len.checked_next_multiple_of(LINE).and_then(|len| total.checked_add(len));
            let Some(next) = next else {
                refuse!(NOMEM, "no memory for {len} bytes of segment {n}");
            };
            total = next;
        }
        let own = allocate(total)?;
        let mut address = match &own {
            Own::Private(buffer) => buffer.address() as usize,
            Own::Long(long) => long.address() as usize,
        };
        let mut runs = Vec::with_capacity(sizes.len());
        for &len in sizes {
            runs.push(Run { address, len });
            address += len.next_multiple_of(LINE);
        }
        Mem::make(runs, access, Some(own))
    }

    fn make(runs: Vec<Run>, access: Permission, buffer: Option<Own>) -> Result<Arc<Mem>> {
        if runs.is_empty() {
            refuse!(INVALID_ARG, "memory without segments cannot be exposed");
        }
        let (starts, total) = measure(&runs)?;
        let id = number()?;
        let shm_key = match &buffer {
            Some(Own::Long(long)) => long.shm_key(),
            Some(Own::Private(_)) | None => None,
        };
        let buffer = buffer.map(Arc::new);
        let export = buffer.clone().filter(|_| shm_key.is_some());
        let buffer = buffer.map(|own| own as Arc<dyn Any + Send + Sync>);
        let allowed = (access.readable(), access.writable());
        let registration = Registration::new(id, runs.clone(), allowed, buffer);
        let mem = Arc::new(Mem {
            id,
            process: this_process(),
            rank: rank(),
            runs,
            starts,
            total,
            access,
            registration: Some(registration),
            place: 0,
            export,
            shm_key,
            borrowed: OnceLock::new(),
            digest: OnceLock::new(),
            gate_digest: OnceLock::new(),
            original: None,
            data: None,
            loans: Mutex::default(),
        });
        LIVE.lock().insert(id, Arc::downgrade(&mem));
        Ok(mem)
    }

    /// Returns a live, registered handle, for a copy that this process makes for another one.
    pub fn find(id: u64) -> Option<InUse> {
        let mem = LIVE.lock().get(&id)?.upgrade()?;
        let inside = mem.enter().ok()?;
        Some(InUse::new(mem, inside))
    }

    /// Begins an access on behalf of another process; deregistration waits for its end. Returns
    /// `ACCESS` if the memory is not registered.
    pub fn enter(&self) -> Result<Inside> {
        let whole = self.original.as_deref().unwrap_or(self);
        let entered =
            whole.registration.as_ref().and_then(|registration| registration.enter().ok());
        entered.ok_or_else(not_registered)
    }

    pub fn within(&self) -> Within {
        Within { id: self.id, place: self.place }
    }

    /// Returns what the digest covers: all data that a rank uses to copy without the owner.
    fn description(&self) -> impl Hash + '_ {
        (&self.runs, self.access.flags(), &self.shm_key)
    }

    /// Returns the digest of the handle, whose owner has the index `owner` in the table.
    pub(super) fn digest(&self, table: &Table, owner: usize) -> u64 {
        *self.digest.get_or_init(|| table.digest(owner, self.description()))
    }

    /// Returns the bytes that came with a handle of another process.
    pub(super) fn data(&self) -> Option<&[u8]> {
        self.data.as_deref()
    }

    pub fn len(&self) -> usize {
        self.total
    }

    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Returns the segments. The addresses of another process's segments are meaningful only there.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    pub fn access(&self) -> Permission {
        self.access
    }

    pub fn id(&self) -> u64 {
        self.id
    }

    pub fn is_local(&self) -> bool {
        self.process == this_process()
    }

    /// Returns whether the handle says that the memory belongs to the given other rank of this job.
    pub fn belongs_to(&self, rank: u32) -> bool {
        self.rank == rank && !self.is_local()
    }

    pub fn register(&self) {
        if let Some(registration) = &self.registration {
            registration.open();
            if let Some(Own::Long(long)) = self.export.as_deref() {
                long.open(self.id, self.description());
            }
        }
    }

    /// Deregisters the memory; has no effect on a decoded handle. When this returns, no access by
    /// or for another process is in progress (`portolan_engine::memory::registered`).
    ///
    /// Bytes that wait until a peer reads them are copied, so a slow peer does not delay the owner.
    /// A wait makes progress for other ranks if this thread may.
    pub fn deregister(&self) {
        let registration = self.registration.as_ref().filter(|found| found.is_open());
        let Some(registration) = registration else { return };
        if let Some(Own::Long(long)) = self.export.as_deref() {
            long.close();
        }
        let recall = || {
            let loans = std::mem::take(&mut *self.loans.lock());
            loans.iter().filter_map(Weak::upgrade).for_each(|loan| loan.recall());
        };
        match admission::admit_current() {
            Ok(engine) if engine.may_use_messages() => registration.withdraw(&*engine, recall),
            _ => registration.withdraw(&Outside, recall),
        }
    }

    /// Handles of another process count as registered, because only the owner knows.
    pub fn is_registered(&self) -> bool {
        match &self.original {
            Some(original) => original.is_registered(),
            None => self.registration.as_ref().is_none_or(|registration| registration.is_open()),
        }
    }

    /// Checks that a range lies within the memory. Returns `OVERFLOW` if it does not.
    pub fn check(&self, offset: usize, size: usize) -> Result<()> {
        if offset.checked_add(size).is_none_or(|end| end > self.total) {
            refuse!(
                OVERFLOW,
                "{size} bytes at offset {offset} are not within the {} bytes of the handle",
                self.total
            );
        }
        Ok(())
    }

    /// Returns the parts of the segments that a checked range consists of.
    pub fn chunks(&self, offset: usize, size: usize) -> impl Iterator<Item = Run> + '_ {
        let first = self.starts.partition_point(|&start| start <= offset).saturating_sub(1);
        let (mut at, mut left) = (offset, size);
        (first..self.runs.len()).map_while(move |n| {
            if left == 0 {
                return None;
            }
            let skip = at - self.starts[n];
            let len = (self.runs[n].len - skip).min(left);
            (at, left) = (at + len, left - len);
            Some(Run { address: self.runs[n].address + skip, len })
        })
    }

    /// Returns the key of exported memory.
    pub(super) fn shm_key(&self) -> Option<ShmKey> {
        self.shm_key
    }

    /// Begins a copy from or to exported memory of another process, which is mapped at `mapped`.
    /// Returns `None` if it is not registered, or not as the handle says.
    pub(super) fn begin_copy<'a>(&self, mapped: &'a Mapped) -> Option<Copying<'a>> {
        let digest = *self.gate_digest.get_or_init(|| mapped.digest(self.description()));
        mapped.begin(self.id, digest)
    }

    /// Returns the local mapping of memory that process `pid` of the host exports, or `None`.
    pub(super) fn borrowed(&self, pid: u32) -> Option<&Mapped> {
        let shm_key = self.shm_key.as_ref().filter(|shm_key| shm_key.pid == pid)?;
        self.borrowed.get_or_init(|| shm_export::borrow(shm_key)).as_deref()
    }
}

impl Drop for Mem {
    fn drop(&mut self) {
        if self.registration.is_some() {
            self.deregister();
            LIVE.lock().remove(&self.id);
        }
        // The registration keeps memory that the handle owns, and releases it when it is dropped.
    }
}

#[cold]
pub(super) fn not_registered() -> Failure {
    let text = "the memory is not registered, or not any more; its owner must register it first";
    Failure::new(Status::ACCESS, text)
}

pub fn spans(
    local: &Mem,
    local_offset: usize,
    remote: &Mem,
    remote_offset: usize,
    size: usize,
) -> Vec<Span> {
    runs::pair(local.chunks(local_offset, size), remote.chunks(remote_offset, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mem(sizes: &[usize]) -> Arc<Mem> {
        Mem::allocate(sizes, Permission::ReadWrite).unwrap()
    }

    #[test]
    fn pieces_cross_segments() {
        let m = mem(&[10, 0, 5, 20]);
        assert_eq!(m.len(), 35);
        for offset in 0..=35 {
            for size in 0..=35 - offset {
                let lens: usize = m.chunks(offset, size).map(|r| r.len).sum();
                assert_eq!(lens, size, "{offset} {size}");
            }
        }
        let at: Vec<Run> = m.chunks(12, 10).collect();
        assert_eq!(at[0], Run { address: m.runs()[2].address + 2, len: 3 });
        assert_eq!(at[1], Run { address: m.runs()[3].address, len: 7 });
        assert!(m.check(30, 6).is_err() && m.check(usize::MAX, 2).is_err());
        assert!(m.check(35, 0).is_ok());
    }

    #[test]
    fn spans_cover_both_sides() {
        let (a, b) = (mem(&[3, 4, 0, 9]), mem(&[5, 1, 1, 12]));
        let all = spans(&a, 1, &b, 2, 15);
        assert_eq!(all.iter().map(|s| s.bytes).sum::<usize>(), 15);
        assert!(all.iter().all(|s| s.bytes > 0));
        assert_eq!(
            all[0],
            Span { local: a.runs()[0].address + 1, remote: b.runs()[0].address + 2, bytes: 2 }
        );
    }

    #[test]
    fn impossible_memory_is_refused() {
        let run = |address, len| vec![Run { address, len }];
        for runs in [vec![], run(0, 1), run(usize::MAX - 3, 8), run(64, usize::MAX)] {
            // SAFETY: `expose` rejects the memory, so it is never accessed.
            assert!(unsafe { Mem::expose(runs, Permission::ReadWrite) }.is_err());
        }
        assert!(Permission::from_flags(0).is_err() && Permission::from_flags(4).is_err());
    }
}
