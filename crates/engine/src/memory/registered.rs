//! Memory registrations of this process, and the copies that use them.
//!
//! A description of registered memory has the number of the registration, which the process never
//! reuses, and its index in a table in the node's shared memory ([`Table`]). A rank that copies
//! between that memory and its own without the owner's help checks the table first. An owner that
//! copies on behalf of another rank checks with [`enter`].
//!
//! **Guarantee.** After [`Registration::withdraw`] returns, no byte of the memory is read or
//! written for other ranks, even if they still have its description. Copies that had begun are
//! complete, and later ones are refused. Two mechanisms ensure this:
//!
//! - A rank of the node writes the registration that it copies from or to into a word of its own.
//!   It proceeds only if the owner's table entry still has the number. The owner removes the number
//!   first and reads those words afterwards. All four accesses are sequentially consistent, so at
//!   least one side sees the other: either the rank finds the number removed, or the owner finds
//!   the word and waits until it changes. The owner does not wait for a process that died during
//!   its copy, because the copy ended with the process.
//! - Copies that the owner makes for others are counted in the same way while they last. Their
//!   bytes may travel in messages, so the owner makes progress while it waits.
//!
//! Two cases are not covered. If a rank dies while the owner helps with its copy, the owner may
//! continue for the few microseconds that the current block takes. A process that ignores this
//! protocol can also access the memory, because other processes of the same user cannot be forced
//! to follow it.

use crate::error::{Error, ErrorKind, Result};
use crate::shm::SharedFile;
use crate::trace::Cause;
use crate::wait::{self, Boot, Progress};
use parking_lot::Mutex;
use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// Maximum number of registrations of a rank that other ranks of its node can access without its
/// help. The owner serves the rest.
pub const PLACES: usize = 2000;
/// Maximum number of copies that a rank makes at a time without the owners' help.
const COPIES: usize = 32;
/// Interval at which the owner checks whether a process that it waits for is still alive.
const POLL: Duration = Duration::from_millis(20);

#[repr(C)]
struct RegistrationEntry {
    /// Number of the registration, or 0 for none.
    id: AtomicU64,
    /// Bitmap of the ranks of the node that have accessed this entry since it was opened, by rank
    /// modulo 64. The owner can skip the words of all other ranks.
    seen: AtomicU64,
}

/// A rank's area in the node's shared memory, initially all zeros.
#[repr(C, align(64))]
pub(crate) struct Area {
    pid: AtomicU32,
    /// Registrations that the rank copies from or to now, each encoded by [`word`], or 0.
    copies: [AtomicU64; COPIES],
    places: [RegistrationEntry; PLACES],
}

/// Encodes an entry of a rank's table. The result is never 0.
fn word(rank: usize, place: u32) -> u64 {
    (rank as u64 + 1) << 32 | u64::from(place)
}

/// The areas of all ranks of a node.
#[derive(Debug)]
pub struct Table {
    file: Arc<SharedFile>,
    offset: usize,
    ranks: usize,
    me: usize,
    free: Mutex<Vec<u32>>,
}

/// A copy in progress. The owner of the memory waits until it is dropped.
#[derive(Debug)]
pub struct Copying<'a>(&'a AtomicU64);

impl Drop for Copying<'_> {
    fn drop(&mut self) {
        self.0.store(0, SeqCst);
    }
}

impl Table {
    /// Creates the table in a file that has one area per rank from `offset` on. `offset` is a
    /// multiple of the page size, and the memory of the caller's area is reserved.
    pub fn new(file: Arc<SharedFile>, offset: usize, ranks: usize, me: usize) -> Table {
        let free = Mutex::new((0..PLACES as u32).rev().collect());
        let table = Table { file, offset, ranks, me, free };
        table.area(me).pid.store(std::process::id(), SeqCst);
        table
    }

    fn area(&self, rank: usize) -> &Area {
        assert!(rank < self.ranks, "rank {rank} of {}", self.ranks);
        // SAFETY: the file stays mapped while the table exists and has an area for each rank at
        // this offset. An area consists of atomics, so it may be shared, and zeros are valid
        // values.
        unsafe { &*self.file.base().add(self.offset + rank * size_of::<Area>()).cast() }
    }

    /// Begins a copy from or to registered memory of another rank of the node. Returns `None` if
    /// too many copies are in progress. The caller must then ask the owner to copy.
    ///
    /// # Errors
    /// Returns `Handle` if the registration was withdrawn.
    pub fn begin(&self, owner: usize, place: u32, id: u64) -> Result<Option<Copying<'_>>> {
        let Some(there) = self.area(owner).places.get(place as usize) else {
            return Err(withdrawn());
        };
        let bit = 1 << (self.me % 64);
        if there.seen.load(SeqCst) & bit == 0 {
            there.seen.fetch_or(bit, SeqCst);
        }
        let word = word(owner, place);
        let free = |copy: &&AtomicU64| copy.compare_exchange(0, word, SeqCst, SeqCst).is_ok();
        let Some(copy) = self.area(self.me).copies.iter().find(free) else { return Ok(None) };
        let copying = Copying(copy);
        if there.id.load(SeqCst) != id {
            return Err(withdrawn());
        }
        Ok(Some(copying))
    }

    fn open(&self, place: u32, id: u64) {
        let there = &self.area(self.me).places[place as usize];
        there.seen.store(0, SeqCst);
        there.id.store(id, SeqCst);
    }

    /// Removes the number and waits for the copies that have begun.
    fn close(&self, place: u32) {
        let there = &self.area(self.me).places[place as usize];
        there.id.store(0, SeqCst);
        let seen = there.seen.load(SeqCst);
        if seen == 0 {
            return;
        }
        let word = word(self.me, place);
        for rank in (0..self.ranks).filter(|rank| seen & 1 << (rank % 64) != 0) {
            for copy in self.area(rank).copies.iter().filter(|copy| copy.load(SeqCst) == word) {
                self.wait_for(rank, copy, word);
            }
        }
    }

    #[cold]
    fn wait_for(&self, rank: usize, copy: &AtomicU64, word: u64) {
        let pid = self.area(rank).pid.load(SeqCst);
        let what = || format!("process {pid} to end a copy of memory that is withdrawn");
        let mut looked = Instant::now();
        let ended = wait::until(&Boot, Cause::Other, &what, || {
            if copy.load(SeqCst) != word {
                return Ok(true);
            }
            if looked.elapsed() < POLL {
                return Ok(false);
            }
            looked = Instant::now();
            Ok(!lives(pid))
        });
        if let Err(error) = ended {
            log::error!("{error}");
        }
    }
}

/// Returns whether a process has running threads. A process that has ended exists until its parent
/// reaps it, and its first thread may end before the others.
fn lives(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // The name is in parentheses and may contain any character, so parse from the last one.
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
    let threads = || std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    !matches!(state, Some('Z' | 'X')) || threads() > 1
}

#[cold]
fn withdrawn() -> Error {
    Error::new(ErrorKind::Handle, "the memory is not exposed any more: its owner has withdrawn it")
}

/// A registration of memory of this process.
#[derive(Debug)]
pub struct Registration {
    id: u64,
    /// Address and length in bytes of each contiguous range, sorted by address.
    runs: Vec<(usize, usize)>,
    readable: bool,
    writable: bool,
    open: AtomicBool,
    /// Number of copies in progress that this process makes for others.
    inside: AtomicUsize,
    traced: Mutex<Told>,
    /// Keeps the memory alive if it belongs to the library.
    keeper: Option<Arc<dyn Any + Send + Sync>>,
}

/// The information about a registration that other ranks may have.
#[derive(Debug, Default)]
struct Told {
    /// Whether a description was created. Without one, no rank can name the registration.
    described: bool,
    place: Option<(Arc<Table>, u32)>,
}

static LIVE: LazyLock<Mutex<HashMap<u64, Arc<Registration>>>> = LazyLock::new(Mutex::default);

/// A copy that the owner makes for another process. The memory stays valid until it is dropped.
#[derive(Debug)]
pub struct Inside(Arc<Registration>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, SeqCst);
    }
}

/// Begins a copy that this process makes on behalf of another one, which names the registration and
/// the ranges.
///
/// # Errors
/// Returns `Handle` if the registration was withdrawn or never existed. Returns `Address` if a
/// range is not registered, or not for this kind of access.
pub fn enter(
    id: u64,
    write: bool,
    mut ranges: impl Iterator<Item = (usize, usize)>,
) -> Result<Inside> {
    let found = LIVE.lock().get(&id).cloned();
    let inside = found.ok_or_else(withdrawn)?.enter()?;
    let allowed = if write { inside.0.writable } else { inside.0.readable };
    if !allowed || !ranges.all(|range| inside.0.holds(range)) {
        let text = "the requested bytes are not exposed, or not for this kind of access";
        return Err(Error::new(ErrorKind::Address, text));
    }
    Ok(inside)
}

impl Registration {
    /// Creates a registration that is not open yet. `keeper` is dropped when the memory is no
    /// longer used.
    pub fn new(
        id: u64,
        mut runs: Vec<(usize, usize)>,
        (readable, writable): (bool, bool),
        keeper: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Arc<Registration> {
        runs.sort_unstable();
        Arc::new(Registration {
            id,
            runs,
            readable,
            writable,
            open: AtomicBool::new(false),
            inside: AtomicUsize::new(0),
            traced: Mutex::default(),
            keeper,
        })
    }

    fn holds(&self, (address, len): (usize, usize)) -> bool {
        let Some(end) = address.checked_add(len) else { return false };
        let within = |&(at, bytes): &(usize, usize)| at <= address && end <= at + bytes;
        let nearest = self.runs.partition_point(|&(at, _)| at <= address).checked_sub(1);
        // Ranges may overlap, so a range other than the nearest one may contain it.
        len == 0 || nearest.is_some_and(|n| within(&self.runs[n])) || self.runs.iter().any(within)
    }

    /// Returns whether other ranks may use the memory.
    pub fn is_open(&self) -> bool {
        self.open.load(SeqCst)
    }

    /// Allows other ranks to use the memory.
    pub fn open(self: &Arc<Registration>) {
        let traced = self.traced.lock();
        self.open.store(true, SeqCst);
        if traced.described {
            self.record(&traced);
        }
    }

    fn record(self: &Arc<Registration>, traced: &Told) {
        LIVE.lock().insert(self.id, self.clone());
        if let Some((table, place)) = &traced.place {
            table.open(*place, self.id);
        }
    }

    /// Prepares the registration for a description that is sent to another rank. Returns its index
    /// in the node's table plus one, or 0 if it has none. `table` returns the node's table, if
    /// there is one.
    pub fn describe(self: &Arc<Registration>, table: impl FnOnce() -> Option<Arc<Table>>) -> u32 {
        let mut traced = self.traced.lock();
        if !traced.described {
            traced.described = true;
            traced.place = table().and_then(|table| {
                let free = table.free.lock().pop()?;
                Some((table, free))
            });
            if self.is_open() {
                self.record(&traced);
            }
        }
        traced.place.as_ref().map_or(0, |(_, place)| place + 1)
    }

    /// Begins an access by this process on behalf of another rank.
    ///
    /// # Errors
    /// Returns `Handle` if the registration was withdrawn.
    pub fn enter(self: &Arc<Registration>) -> Result<Inside> {
        self.inside.fetch_add(1, SeqCst);
        let inside = Inside(self.clone());
        if self.is_open() { Ok(inside) } else { Err(withdrawn()) }
    }

    /// Refuses further accesses by other ranks, and waits until none is in progress. Makes
    /// `progress` while it waits.
    pub fn withdraw(&self, progress: &dyn Progress) {
        let traced = self.traced.lock();
        if !self.open.swap(false, SeqCst) {
            return;
        }
        if traced.described {
            LIVE.lock().remove(&self.id);
        }
        if let Some((table, place)) = &traced.place {
            table.close(*place);
        }
        drop(traced);
        if self.inside.load(SeqCst) > 0 {
            self.wait_until_left(progress);
        }
    }

    #[cold]
    fn wait_until_left(&self, progress: &dyn Progress) {
        let what = || {
            format!(
                "copies for other ranks to end before exposed memory is withdrawn ({})",
                self.id
            )
        };
        let done = || Ok(self.inside.load(SeqCst) == 0);
        let waited = wait::until(progress, Cause::Other, &what, done);
        // The wait fails in a handler of active messages, which must not wait. Memory of the
        // library is safe even then, because the copy keeps it alive.
        if let Err(error) = waited
            && self.keeper.is_none()
        {
            log::error!(
                "exposed memory is withdrawn while it is copied for other ranks: {error:#}"
            );
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some((table, place)) = self.traced.get_mut().place.take() {
            table.free.lock().push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let len = 2 * size_of::<Area>();
        let file = SharedFile::create("/dev/shm", len, false).expect("a file");
        file.reserve(0, len).expect("room");
        let file = Arc::new(file);
        Table::new(file.clone(), 0, 2, 1); // this process acts as the other rank too
        Table::new(file, 0, 2, 0)
    }

    fn other(table: &Table) -> Table {
        Table::new(table.file.clone(), 0, 2, 1)
    }

    #[test]
    fn what_is_withdrawn_cannot_be_begun_and_what_has_begun_is_waited_for() {
        let mine = Arc::new(table());
        let theirs = other(&mine);
        let registration = Registration::new(77, vec![(4096, 100)], (true, true), None);
        *registration.traced.lock() = Told { described: true, place: Some((mine.clone(), 5)) };
        assert_eq!(theirs.begin(0, 5, 77).unwrap_err().kind(), ErrorKind::Handle);
        registration.open();
        drop(theirs.begin(0, 5, 77).unwrap().expect("room"));
        assert!(theirs.begin(0, 5, 78).is_err() && theirs.begin(0, 6, 77).is_err());
        assert!(theirs.begin(0, PLACES as u32, 77).is_err());
        let copying = theirs.begin(0, 5, 77).unwrap();
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                registration.withdraw(&Boot);
                assert!(ended.load(SeqCst), "a copy was not waited for");
            });
            while theirs.begin(0, 5, 77).is_ok() {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(50));
            ended.store(true, SeqCst);
            drop(copying);
        });
        registration.open();
        assert!(theirs.begin(0, 5, 77).unwrap().is_some(), "exposed again");
        registration.withdraw(&Boot);
    }

    #[test]
    fn the_dead_are_not_waited_for() {
        let mine = table();
        let theirs = other(&mine);
        let mut child = std::process::Command::new("true").spawn().expect("true");
        theirs.area(1).pid.store(child.id(), SeqCst);
        mine.open(3, 9);
        std::mem::forget(theirs.begin(0, 3, 9).unwrap());
        mine.close(3); // a zombie, not reaped yet
        child.wait().expect("wait");
        mine.open(3, 10);
        std::mem::forget(theirs.begin(0, 3, 10).unwrap());
        mine.close(3);
        assert!(lives(std::process::id()) && lives(1));
    }

    #[test]
    fn copies_by_the_owner_stay_within_what_is_exposed() {
        let id = u64::MAX - 5;
        let keeper = Arc::new(());
        let kept: Arc<dyn Any + Send + Sync> = keeper.clone();
        let registration =
            Registration::new(id, vec![(100, 10), (200, 5)], (true, false), Some(kept));
        let ask = |write, at, len| enter(id, write, std::iter::once((at, len))).map(drop);
        assert_eq!(ask(false, 100, 10).unwrap_err().kind(), ErrorKind::Handle);
        registration.open();
        assert!(ask(false, 100, 10).is_err(), "nobody can know it");
        registration.describe(|| None);
        assert!(ask(false, 100, 10).is_ok() && ask(false, 204, 1).is_ok());
        for (write, at, len) in [
            (true, 100, 1),
            (false, 99, 2),
            (false, 105, 6),
            (false, 110, 90),
            (false, usize::MAX, 2),
        ] {
            assert_eq!(ask(write, at, len).unwrap_err().kind(), ErrorKind::Address, "{at} {len}");
        }
        assert!(Arc::strong_count(&keeper) == 2);
        let inside = enter(id, false, std::iter::once((100, 1))).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| registration.withdraw(&Boot));
            while ask(false, 100, 1).is_ok() {
                std::thread::yield_now();
            }
            drop(inside);
        });
        drop(registration);
        assert_eq!(Arc::strong_count(&keeper), 1);
    }
}
