//! Memory that others may read or write: handles over one region or many segments.
//!
//! A handle is made here ([`Mem::expose`]) or comes as bytes (`wire`). One
//! that comes from another process only names memory; one that comes back to the
//! process that made it is the original again, if that still lives and says the same:
//! bytes that lie about our own memory are refused before anybody follows them.
//!
//! Others use memory from when it is registered until it is deregistered or the handle is
//! freed, and not a moment longer, even if a peer keeps its bytes (`crate::memory::exposed`).

mod access;
mod runs;
mod wire;

pub(crate) use super::zeroed_buffer::ZeroedBuffer;
pub use access::Access;
pub use runs::Run;

use super::wire::number as wire_number;
use super::zeroed_buffer::{LAZY, LINE};
use crate::any_memory::{Span, Within};
use crate::memory::exposed::{Exposure, Inside};
use crate::memory::large_buffer::LargeBuffer;
use crate::memory::shm_export::{self, ShmKey};
use crate::rpc::failure::{Failure, Result, Status, refuse};
use crate::runtime::admission::{self, Outside};
use crate::shm::SharedFile;
use parking_lot::Mutex;
use runs::measure;
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock, Weak};

/// Memory of a handle's own.
#[derive(Debug)]
enum Own {
    Private(ZeroedBuffer),
    Long(LargeBuffer),
}

/// A memory handle.
#[derive(Debug)]
pub struct Mem {
    id: u64,
    process: u64,
    rank: u32,
    runs: Vec<Run>,
    /// Where each run begins within the whole.
    starts: Vec<usize>,
    total: usize,
    access: Access,
    /// What others may use of it, where it is this process's.
    exposure: Option<Arc<Exposure>>,
    /// Another process's place in the node's table, plus one.
    place: u32,
    /// How the memory is found in its node, where it is lent; mapped when first used.
    shm_key: Option<ShmKey>,
    borrowed: OnceLock<Option<Arc<SharedFile>>>,
    /// What a handle that came back stands for.
    original: Option<Arc<Mem>>,
}

/// No rank.
const NOBODY: u32 = u32::MAX;

static LIVE: LazyLock<Mutex<HashMap<u64, Weak<Mem>>>> = LazyLock::new(Mutex::default);

/// A number for a handle that nobody can guess: between jobs, a peer that knows it may use the
/// memory.
fn number() -> Result<u64> {
    /// Random bytes, drawn so many at a time.
    static DRAWN: Mutex<(usize, [u8; 512])> = Mutex::new((512, [0; 512]));
    let mut drawn = DRAWN.lock();
    loop {
        let (used, bytes) = &mut *drawn;
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

/// Tells this process from all others, also of other jobs and earlier times.
static PROCESS: LazyLock<u64> = LazyLock::new(|| {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one((std::process::id(), std::time::SystemTime::now()))
});

/// Makes memory in the directory by way of which it can be lent to others of the node; `None`
/// where there are none.
fn lent<R>(make: impl FnOnce(&str) -> R) -> Option<R> {
    let engine = admission::admit_current().ok()?;
    let neighbours = engine.topology.ranks_of(engine.topology.my_node()).len() > 1;
    (neighbours && engine.config.cross_memory).then(|| make(&engine.memory.policy().shm_dir))
}

/// A long buffer for what another process is to pull.
pub(crate) fn to_send(size: usize) -> Option<LargeBuffer> {
    lent(|dir| LargeBuffer::lent(size, dir)).unwrap_or_else(|| LargeBuffer::heap(size))
}

fn rank() -> u32 {
    admission::admit_current().map_or(NOBODY, |engine| engine.rank() as u32)
}

impl Mem {
    /// Exposes memory. It is not registered yet.
    ///
    /// # Errors
    /// `INVALID_ARG` for no segment, or for a segment at the null address, or one that
    /// wraps around.
    ///
    /// # Safety
    /// The bytes must be valid for what `access` allows to others, and here for both,
    /// as long as the handle lives.
    pub unsafe fn expose(runs: Vec<Run>, access: Access) -> Result<Arc<Mem>> {
        Mem::make(runs, access, None)
    }

    /// Exposes memory of the handle's own, zeroed, freed with it.
    ///
    /// # Errors
    /// `NOMEM`; `INVALID_ARG` for no segment.
    pub fn allocate(sizes: &[usize], access: Access) -> Result<Arc<Mem>> {
        Mem::parcel(sizes, access, |bytes| ZeroedBuffer::new(bytes).map(Own::Private))
    }

    /// The same, for others of the node to use: they reach it with one copy.
    ///
    /// # Errors
    /// As of [`Mem::allocate`].
    pub fn allocate_to_lend(sizes: &[usize], access: Access) -> Result<Arc<Mem>> {
        Mem::parcel(sizes, access, |bytes| {
            match lent(|dir| LargeBuffer::lent_zeroed(bytes, dir)).flatten() {
                Some(long) => Ok(Own::Long(long)),
                None => ZeroedBuffer::new(bytes).map(Own::Private),
            }
        })
    }

    /// Memory of the handle's own that is soon free again: not zeroed.
    ///
    /// # Errors
    /// `NOMEM`.
    pub fn for_a_while(size: usize, access: Access) -> Result<Arc<Mem>> {
        // What is longer is not touched before the bytes come, which somebody else has only
        // announced.
        if size >= LAZY {
            return Mem::allocate(&[size], access);
        }
        match LargeBuffer::heap(size) {
            Some(long) => Mem::over(long, size, access),
            None => refuse!(NOMEM, "no memory for {size} bytes"),
        }
    }

    /// The first bytes of a long buffer, which is the handle's from now on.
    ///
    /// # Errors
    /// `INVALID_ARG` where it has fewer.
    pub(crate) fn over(long: LargeBuffer, len: usize, access: Access) -> Result<Arc<Mem>> {
        if len > long.len() {
            refuse!(INVALID_ARG, "{len} bytes of a buffer of {}", long.len());
        }
        let run = Run { address: long.address() as usize, len };
        Mem::make(vec![run], access, Some(Own::Long(long)))
    }

    fn parcel(
        sizes: &[usize],
        access: Access,
        allocate: impl FnOnce(usize) -> Result<Own>,
    ) -> Result<Arc<Mem>> {
        // One piece of memory, with the segments on lines of their own: neighbours are
        // reached faster than what lies here and there.
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

    fn make(runs: Vec<Run>, access: Access, buffer: Option<Own>) -> Result<Arc<Mem>> {
        if runs.is_empty() {
            refuse!(INVALID_ARG, "memory of no segments cannot be exposed");
        }
        let (starts, total) = measure(&runs)?;
        let id = number()?;
        let shm_key = match &buffer {
            Some(Own::Long(long)) => long.shm_key(),
            Some(Own::Private(_)) | None => None,
        };
        let buffer = buffer.map(|own| Arc::new(own) as Arc<dyn Any + Send + Sync>);
        let ranges = runs.iter().map(|run| (run.address, run.len)).collect();
        let allowed = (access.readable(), access.writable());
        let exposure = Exposure::new(id, ranges, allowed, buffer);
        let mem = Arc::new(Mem {
            id,
            process: *PROCESS,
            rank: rank(),
            runs,
            starts,
            total,
            access,
            exposure: Some(exposure),
            place: 0,
            shm_key,
            borrowed: OnceLock::new(),
            original: None,
        });
        LIVE.lock().insert(id, Arc::downgrade(&mem));
        Ok(mem)
    }

    /// A live handle of this process that is registered, for a copy that this process makes
    /// for another one.
    pub(crate) fn find(id: u64) -> Option<InUse> {
        let mem = LIVE.lock().get(&id)?.upgrade()?;
        let inside = mem.enter().ok()?;
        Some(InUse { mem, _inside: inside })
    }

    /// Begins a use for others of memory of this process: it stays registered meanwhile, or
    /// the thread that deregisters it waits.
    ///
    /// # Errors
    /// `ACCESS` where it is not registered, or not any more.
    pub(crate) fn enter(&self) -> Result<Inside> {
        let whole = self.original.as_deref().unwrap_or(self);
        let entered = whole.exposure.as_ref().and_then(|exposure| exposure.enter().ok());
        entered.ok_or_else(not_registered)
    }

    /// How its owner knows it.
    pub(crate) fn within(&self) -> Within {
        Within { id: self.id, place: self.place }
    }

    /// Bytes in all.
    pub fn len(&self) -> usize {
        self.total
    }

    /// Whether the handle has no bytes.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The segments. Those of another process are its own business.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// What others may do.
    pub fn access(&self) -> Access {
        self.access
    }

    /// The number of the handle in the process that made it.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether its memory is this process's.
    pub fn is_local(&self) -> bool {
        self.process == *PROCESS
    }

    /// Whether the memory is that of a rank of this job, as far as is known.
    pub fn belongs_to(&self, rank: u32) -> bool {
        self.rank == rank && !self.is_local()
    }

    /// Lets others use the memory.
    pub fn register(&self) {
        if let Some(exposure) = &self.exposure {
            exposure.open();
        }
    }

    /// Ends that others use the memory: nobody reads or writes it for them when this returns
    /// (`crate::memory::exposed`). A handle that came as bytes only names memory, and stays
    /// as it is.
    pub fn deregister(&self) {
        if let Some(exposure) = &self.exposure {
            withdraw(exposure);
        }
    }

    /// Whether others may use it.
    pub fn is_registered(&self) -> bool {
        match &self.original {
            Some(original) => original.is_registered(),
            None => self.exposure.as_ref().is_none_or(|exposure| exposure.is_open()),
        }
    }

    /// # Errors
    /// `OVERFLOW` where a part is not within the memory.
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

    /// The parts of the segments that a range consists of. The range is checked.
    pub fn pieces(&self, offset: usize, size: usize) -> impl Iterator<Item = Run> + '_ {
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

    /// Where the memory of a process of the node is mapped here, if that lends it. A loan
    /// that names another process is none.
    pub(crate) fn borrowed(&self, pid: u32) -> Option<Borrowed<'_>> {
        let shm_key = self.shm_key.as_ref().filter(|shm_key| shm_key.pid == pid)?;
        let file = self.borrowed.get_or_init(|| shm_export::borrow(shm_key)).as_ref()?;
        Some(Borrowed { shm_key, file })
    }
}

/// Withdraws memory; a wait that this takes makes progress for others, where this thread may.
fn withdraw(exposure: &Exposure) {
    match admission::admit_current() {
        Ok(engine) if engine.may_use_messages() => exposure.withdraw(&*engine),
        _ => exposure.withdraw(&Outside),
    }
}

impl Drop for Mem {
    fn drop(&mut self) {
        if let Some(exposure) = &self.exposure {
            withdraw(exposure);
            LIVE.lock().remove(&self.id);
        }
        // Memory of the handle's own goes with the exposure.
    }
}

/// Memory of this process that is used for another one; it stays registered meanwhile.
#[derive(Debug)]
pub(crate) struct InUse {
    mem: Arc<Mem>,
    _inside: Inside,
}

impl std::ops::Deref for InUse {
    type Target = Mem;

    fn deref(&self) -> &Mem {
        &self.mem
    }
}

#[cold]
pub(super) fn not_registered() -> Failure {
    let text = "the memory is not registered, or not any more; its owner must register it first";
    Failure::new(Status::ACCESS, text)
}

/// Lent memory that is mapped here.
#[derive(Debug)]
pub(crate) struct Borrowed<'a> {
    shm_key: &'a ShmKey,
    file: &'a SharedFile,
}

impl Borrowed<'_> {
    /// Where a run of the owner's lies here; `None` where it is not within the loan.
    pub(crate) fn at(&self, address: usize, len: usize) -> Option<*mut u8> {
        let offset = (address as u64).checked_sub(self.shm_key.base)?;
        let end = offset.checked_add(len as u64)?;
        (end <= self.shm_key.len).then(|| self.file.base().wrapping_add(offset as usize))
    }
}

/// Pairs the parts of two ranges of the same size.
pub(crate) fn spans(
    local: &Mem,
    local_offset: usize,
    remote: &Mem,
    remote_offset: usize,
    size: usize,
) -> Vec<Span> {
    runs::pair(local.pieces(local_offset, size), remote.pieces(remote_offset, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mem(sizes: &[usize]) -> Arc<Mem> {
        Mem::allocate(sizes, Access::ReadWrite).unwrap()
    }

    #[test]
    fn pieces_cross_segments() {
        let m = mem(&[10, 0, 5, 20]);
        assert_eq!(m.len(), 35);
        for offset in 0..=35 {
            for size in 0..=35 - offset {
                let lens: usize = m.pieces(offset, size).map(|r| r.len).sum();
                assert_eq!(lens, size, "{offset} {size}");
            }
        }
        let at: Vec<Run> = m.pieces(12, 10).collect();
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
            // SAFETY: the memory is refused, so nobody uses it.
            assert!(unsafe { Mem::expose(runs, Access::ReadWrite) }.is_err());
        }
        assert!(Access::from_flags(0).is_err() && Access::from_flags(4).is_err());
    }
}
